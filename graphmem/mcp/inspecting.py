"""The tool `inspect`: everything about one item, or a page of items."""

from __future__ import annotations

from typing import Any, Final, cast

from graphmem.errors import ItemNotFound, UsageError
from graphmem.lookup import bindable, meant
from graphmem.mcp.answers import EVIDENCE, Budget, Fields, lean, page
from graphmem.mcp.service import NOTHING_STORED, Service, also_meant
from graphmem.records import ENTITY, KINDS, MEMORY, RELATION
from graphmem.store import Store
from graphmem.store.filters import Filters, Kind
from graphmem.store.lookup import Names
from graphmem.store.read import ItemRef, Page, Reader
from graphmem.store.versions import Versions
from graphmem.times import now

_LISTS: Final = ("memories", "relations", "stated_by", "origins", "history")
"""What stands in an item as a page of its own."""
_UNTOLD: Final = ("vectors", "versions")
_CUT: Final = ("content", "description", "fact")
_ROW: Final = {
    MEMORY: ("id", "title", "content", "memory_type", "about", "tags", "scopes", "source", "valid_at",
             "created_at", "state"),
    ENTITY: ("id", "name", "kind", "scope", "description", "aliases", "stub", "memories", "relations"),
    RELATION: ("id", "subject", "predicate", "object", "fact", "weight", "scope", "valid_at"),
}  # fmt: skip


def inspect(service: Service, given: Fields) -> Fields:
    """One item with all that is known of it, or without an id a page of items."""
    scopes = service.scopes(given)
    with service.reading() as store:
        if store is None:
            if given.get("id"):
                raise ItemNotFound(f"nothing is called '{given['id']}' here", NOTHING_STORED)
            return _page(Page([], 0), given, _type(given))
        if not given.get("id"):
            return _listed(store, scopes, given)
        told = _item(store, scopes, given)
    if told["type"] == MEMORY:
        service.accessed([told["id"]])
    return told


def _type(given: Fields) -> Kind:
    return cast("Kind", given.get("type") or (ENTITY if given.get("kind") or given.get("match") else MEMORY))


# ---- pages ----------------------------------------------------------------------------------------


def _listed(store: Store, scopes: tuple[str, ...] | None, given: Fields) -> Fields:
    kind = _type(given)
    kinds = (given["kind"],) if given.get("kind") else ()
    if given.get("match") and kind != ENTITY:
        raise UsageError(
            "'match' is for entities", "use 'recall' to find memories and relations by their words"
        )
    reader = Reader(store.db, Filters(now(), scopes, kinds))
    limit, offset = given["limit"], given.get("offset", 0)
    if kind == ENTITY:
        return _page(reader.entities(limit, offset, match=given.get("match") or None), given, kind)
    read = reader.memories if kind == MEMORY else reader.relations
    return _page(read(limit, offset), given, kind)


def _page(found: Page, given: Fields, kind: Kind) -> Fields:
    budget = Budget(given["max_tokens"])
    rows = [lean({key: one[key] for key in _ROW[kind] if key in one}) for one in found.items]
    items = budget.take(rows, text="description" if kind == ENTITY else "content")
    return {
        "evidence": EVIDENCE,
        "type": kind,
        "items": items,
        **page(len(items), found.total, given.get("offset", 0)),
    }


# ---- one item -------------------------------------------------------------------------------------


def _item(store: Store, scopes: tuple[str, ...] | None, given: Fields) -> Fields:
    filters = Filters(now(), scopes)
    reader = Reader(store.db, filters)
    ref, notes = _found(store, reader, scopes, given)
    item = reader.item(ref, given["limit"], given.get("offset", 0))
    if item["versions"]:
        changes = Versions(store.db, filters).page(ref, given["limit"], given.get("offset", 0))
        item["history"] = changes.as_dict()
    budget = Budget(given["max_tokens"])
    told: Fields = {"evidence": EVIDENCE}
    head = lean({key: value for key, value in item.items() if key not in (*_LISTS, *_UNTOLD)})
    shown = budget.take([head], share=0.6, text=next((key for key in _CUT if head.get(key)), ""))
    if not shown:  # what is long are its properties
        shown = [{key: head[key] for key in ("type", "id", "name") if key in head}]
        notes.append("its fields do not fit; a larger max_tokens shows them")
    told |= shown[0]
    lists = [key for key in _LISTS if key in item and isinstance(item[key], dict) and item[key]["total"]]
    for place, key in enumerate(lists, start=1):
        told[key] = _list(budget, item[key], key, given.get("offset", 0), 1 / (len(lists) - place + 1))
    if budget.spent or any(told[key].get("truncated") for key in lists):
        told["truncated"] = True
        notes.append("'offset' pages through the lists; a larger max_tokens shows whole texts")
    return told | ({"notes": notes} if notes else {})


def _list(budget: Budget, found: Fields, key: str, offset: int, share: float) -> Fields:
    kind = {"memories": MEMORY, "relations": RELATION}.get(key)
    rows = [_row(one, kind) for one in found["items"]]
    items: list[Any] = budget.take(rows, share=share, text="content" if kind == MEMORY else "fact")
    told = page(len(items), found["total"], offset)
    return told | {"items": [row["id"] if key == "stated_by" else row for row in items]}


def _row(one: Any, kind: str | None) -> Fields:
    if not isinstance(one, dict):
        return {"id": one}
    return lean({key: one[key] for key in (_ROW[kind] if kind else one) if key in one})


def _found(
    store: Store, reader: Reader, scopes: tuple[str, ...] | None, given: Fields
) -> tuple[ItemRef, list[str]]:
    what, kind, as_ = given["id"], given.get("kind") or None, given.get("type")
    by_id = reader.by_id(bindable(what), (cast("Kind", as_),) if as_ else KINDS) if kind is None else []
    if by_id:
        others = ", ".join(f"type '{one.kind}'" for one in by_id[1:])
        return by_id[0], [f"the id is also that of {others}"] if others else []
    if as_ in (MEMORY, RELATION):
        raise ItemNotFound(f"no {as_} has the id '{what}' here", "'recall' finds items and tells their ids")
    found, others_of_name = meant(Names(store.db, scopes), what, kind)
    return ItemRef("entity", found.pk, found.id), also_meant(what, found, others_of_name)
