"""The tools that write: each one act of the core, with its vectors, told in few words.

A write touches the scope of the server and `global` and nothing else, whatever ids a read has shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Final

from graphmem.edit import forget as forgetting
from graphmem.edit import identity, update
from graphmem.edit.references import referring
from graphmem.edit.remember import Remembered, remember
from graphmem.errors import GraphmemError, NothingUsable, UsageError
from graphmem.mcp.answers import Fields, lean
from graphmem.mcp.arguments import checked
from graphmem.mcp.service import NOTHING_STORED, Service
from graphmem.mcp.tools import SETTABLE
from graphmem.outcome import ImportReport
from graphmem.records import ENTITY, KINDS
from graphmem.scopes import is_scope, visible_scopes
from graphmem.store import Store, is_there
from graphmem.store.lookup import Names

ACTOR: Final = "mcp"
"""Who the log says has asked, with the name of the client where that is known."""

_STATUSES: Final = ("created", "merged", "unchanged", "rejected")
_ENDS: Final = ("subject", "object")
_ULID: Final = re.compile("[0-7][0-9A-HJKMNP-TV-Z]{25}")
_WRONG_IDS: Final = ("[dangling-reference]", "[foreign-scope]")


# ---- remember and relate --------------------------------------------------------------------------


def remember_(service: Service, given: Fields, actor: str) -> Fields:
    """What became of each record. Raises `NothingUsable` when all were rejected."""
    scope = service.scope_to_write(given)
    report, outcomes, notes = _stored(service, given["records"], scope, actor, "remember")
    rows = [lean(one.as_dict()) for one in outcomes]
    counts = {status: sum(row["status"] == status for row in rows) for status in _STATUSES}
    if counts["rejected"] == len(rows):
        raise _nothing_stored(rows)
    told: Fields = {"counts": counts, "records": rows, "stubs": report.stubs}
    return told | ({"notes": notes} if notes else {})


def relate(service: Service, given: Fields, actor: str) -> Fields:
    """What became of one relation. Raises `NothingUsable` when it cannot be stored."""
    record = {"type": "relation"} | {key: value for key, value in given.items() if key != "scope"}
    scope = service.scope_to_write(given)
    _, (outcome,), notes = _stored(service, [record], scope, actor, "relate")
    row = lean(outcome.as_dict())
    if outcome.status == "rejected":
        raise _nothing_stored([row])
    told = {"status": outcome.status, "id": outcome.id, "type": outcome.type}
    return told | ({"notes": notes} if notes else {})


def _stored(
    service: Service, records: list[Fields], scope: str, actor: str, command: str
) -> tuple[ImportReport, list[Remembered], list[str]]:
    """What became of the records, and what is to be said of the whole."""
    with ExitStack() as stack:
        opened: list[Store] = []

        def opening() -> Store:
            if not opened:
                opened.append(stack.enter_context(service.writing()))
            return opened[0]

        store = opening() if is_there(service.path) else None
        encoder = service.encoder(store)
        for record in records:
            _refer(store, record, scope)
        report, outcomes = remember(
            opening, records, scope=scope, encoder=encoder, actor=actor, command=command
        )  # fmt: skip
    notes = []
    if report.stubs:
        notes.append("names that nothing declares became stubs; remember these entities with their kind")
    if any(one.status == "rejected" for one in outcomes):
        notes.append("rejected records were not stored, the others were")
    if encoder is None and service.encoder_name and report.batches:
        notes.append("stored without vectors, as what the store holds; 'gmem reembed' makes them")
    return report, outcomes, notes


def _refer(store: Store | None, record: Any, scope: str) -> None:
    """Puts references in the place of texts that are ids, or names with their kinds."""
    if not isinstance(record, dict):
        return
    own = record.get("scope")
    scope = own if own and is_scope(own) else scope
    for end in _ENDS:
        if end in record:
            record[end] = _referring(store, record[end], scope, record.pop(f"{end}_kind", None) or None)
    for refs in ("about", "mentions"):
        if refs in record:
            record[refs] = [_referring(store, one, scope) for one in record[refs]]


def _referring(store: Store | None, given: Any, scope: str, kind: str | None = None) -> Any:
    """The reference that is given, or that a text stands for.

    What has the form of an id and is no name is one, also where no entity has it: nothing is to be made of
    that name.
    """
    if not isinstance(given, str):
        return given if kind is None else {"kind": kind} | given
    found = referring(store, given, scope, kind)
    if found == given and _ULID.fullmatch(given):
        named = store is not None and Names(store.db, visible_scopes(scope)).under(given, 1)
        return given if named else {"id": given}
    return found


def _nothing_stored(rows: Sequence[Fields]) -> GraphmemError:
    problems = [problem for row in rows for problem in row.get("problems", ["it was rejected"])]
    further = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
    hint = "mend the records; where a name means several, give the id instead"
    if any(problem.endswith(_WRONG_IDS) for problem in problems):
        hint = (
            "refer to entities by name, or by an id that 'recall' or 'inspect' tells in the scope written to"
        )
    return NothingUsable(f"nothing was stored: {'; '.join(problems[:3])}{further}", hint)


# ---- update and forget ----------------------------------------------------------------------------


def update_(service: Service, given: Fields, actor: str) -> Fields:
    """What became of an item. Raises `UsageError` for what does not go together, and as the core does."""
    merging, replacing = given.get("merge_into"), "keep" in given or "memories" in given
    changing = bool(given.get("set") or given.get("clear"))
    if sum((bool(merging), replacing, changing)) != 1:
        raise UsageError(
            "give one of 'set' with 'clear', 'merge_into', and 'keep' with 'memories'",
            "call update once for each",
        )
    wanted = None if merging or replacing else _wanted(given)
    _check_stored(service)
    kind, scopes = given.get("kind") or None, service.own_scopes
    with service.writing() as store:
        encoder = service.encoder(store)
        if merging:
            told = identity.merge(
                store, given["id"], merging, scopes, kind=kind, encoder=encoder, actor=actor
            )  # fmt: skip
            return {"id": told.pop("id"), "type": ENTITY, "status": "merged", "counts": told}
        if wanted is None:
            told = forgetting.replace_memories(
                store, given["id"], given.get("keep", ()), given.get("memories", ()), service.scope, scopes,
                kind=kind, actor=actor, encoder=encoder,
            )  # fmt: skip
            added = told.pop("added")
            return {
                "id": told.pop("entity"),
                "type": ENTITY,
                "status": "replaced",
                "counts": told,
                "added": added,
            }
        done = update.update(store, given["id"], wanted, scopes, kind=kind, encoder=encoder, actor=actor)
    return {"id": done.id, "type": done.type, "status": done.status, "fields": list(done.fields)}


def _wanted(given: Fields) -> update.Update:
    fields = checked({"type": "object", "properties": SETTABLE["properties"]}, given.get("set", {}))
    properties = fields.pop("properties", {})
    clear, known = given.get("clear", ()), SETTABLE["properties"]
    return update.Update(
        set=fields, clear=[name for name in clear if name in known], properties=properties,
        without_properties=[name for name in clear if name not in known],
    )  # fmt: skip


def forget_(service: Service, given: Fields, actor: str) -> Fields:
    """What was archived, and what went with it."""
    _check_stored(service)
    only = KINDS.index(given["type"]) if given.get("type") else None
    dry = given.get("dry_run", False)
    with service.writing() as store:
        encoder = None if dry else service.encoder(store)
        done = forgetting.forget(
            store, given["ids"], service.own_scopes, kind=given.get("kind") or None, only=only, actor=actor,
            encoder=encoder, dry_run=dry,
        )  # fmt: skip
    return done.as_dict()


def _check_stored(service: Service) -> None:
    if not is_there(service.path):
        raise UsageError("there is nothing to change", NOTHING_STORED)
