"""The tools that write: each one act of the core, with its vectors, told in few words.

A write touches the scope of the server and `global` and nothing else, whatever ids a read has shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Final

from graphmem.edit import forget as forgetting
from graphmem.edit import identity, remember, update
from graphmem.errors import GraphmemError, NothingUsable, UsageError
from graphmem.lookup import bindable
from graphmem.mcp.answers import Fields, lean
from graphmem.mcp.arguments import checked
from graphmem.mcp.service import NOTHING_STORED, Service
from graphmem.mcp.tools import SETTABLE
from graphmem.outcome import ImportReport
from graphmem.records import ENTITY, KINDS
from graphmem.store import Store, is_there
from graphmem.store.lookup import Names

ACTOR: Final = "mcp"
"""Who the log says has asked, with the name of the client where that is known."""

_STATUSES: Final = ("created", "merged", "unchanged", "rejected")
_ENDS: Final = ("subject", "object")


# ---- remember and relate --------------------------------------------------------------------------


def remember_(service: Service, given: Fields, actor: str) -> Fields:
    """What became of each record. Raises `NothingUsable` when all were rejected."""
    scope = service.scope_to_write(given)
    report, outcomes = _stored(service, given["records"], scope, actor)
    rows = [lean(one.as_dict()) for one in outcomes]
    counts = {status: sum(row["status"] == status for row in rows) for status in _STATUSES}
    if counts["rejected"] == len(rows):
        raise _nothing_stored(rows)
    told: Fields = {"counts": counts, "records": rows, "stubs": report.stubs}
    return told | _notes(report, rows)


def relate(service: Service, given: Fields, actor: str) -> Fields:
    """What became of one relation. Raises `NothingUsable` when it cannot be stored."""
    record: Fields = {"type": "relation"} | lean(
        {key: given.get(key) for key in ("predicate", "fact", "weight", "valid_at")}
    )
    for end in _ENDS:
        record[end] = given[end]
        if given.get(f"{end}_kind"):
            record[end] = {"name": given[end], "kind": given[f"{end}_kind"]}
    report, (outcome,) = _stored(service, [record], service.scope_to_write(given), actor)
    row = lean(outcome.as_dict())
    if outcome.status == "rejected":
        raise _nothing_stored([row])
    return {"status": outcome.status, "id": outcome.id, "type": outcome.type} | _notes(report, [row])


def _stored(
    service: Service, records: list[Fields], scope: str, actor: str
) -> tuple[ImportReport, list[remember.Remembered]]:
    encoder = service.encoder()
    with ExitStack() as opened:

        def opening() -> Store:
            return opened.enter_context(service.writing())

        if is_there(service.path):
            _by_id(service, records, scope)
        return remember.remember(opening, records, scope=scope, encoder=encoder, actor=actor)


def _by_id(service: Service, records: list[Fields], scope: str) -> None:
    """Puts what is the id of an entity in the place of a name, wherever a record refers to one."""
    with service.reading() as store:
        if store is None:
            return
        names = Names(store.db, tuple(dict.fromkeys((scope, *service.own_scopes))))
        for record in records:
            for end in _ENDS:
                if end in record:
                    record[end] = _ref(names, record[end])
            for refs in ("about", "mentions"):
                if refs in record:
                    record[refs] = [_ref(names, one) for one in record[refs]]


def _ref(names: Names, text: Any) -> Any:
    found = names.by_id(bindable(text)) if isinstance(text, str) else None
    return text if found is None else {"id": found.id}


def _nothing_stored(rows: Sequence[Fields]) -> GraphmemError:
    problems = [problem for row in rows for problem in row.get("problems", ["it was rejected"])]
    further = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
    return NothingUsable(
        f"nothing was stored: {'; '.join(problems[:3])}{further}",
        "mend the records; where a name means several, give the id instead",
    )


def _notes(report: ImportReport, rows: Sequence[Fields]) -> Fields:
    notes = []
    if report.stubs:
        notes.append("names that nothing declares became stubs; remember these entities with their kind")
    if any(row["status"] == "rejected" for row in rows):
        notes.append("rejected records were not stored, the others were")
    return {"notes": notes} if notes else {}


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
    encoder = service.encoder()
    kind, scopes = given.get("kind") or None, service.own_scopes
    with service.writing() as store:
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
    encoder = None if dry else service.encoder()
    with service.writing() as store:
        done = forgetting.forget(
            store, given["ids"], service.own_scopes, kind=given.get("kind") or None, only=only, actor=actor,
            encoder=encoder, dry_run=dry,
        )  # fmt: skip
    return done.as_dict()


def _check_stored(service: Service) -> None:
    if not is_there(service.path):
        raise UsageError("there is nothing to change", NOTHING_STORED)
