"""The tool `stats`: what is stored, in numbers, and what could be better about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from graphmem.mcp.answers import Fields
from graphmem.mcp.service import NOTHING_STORED, Service
from graphmem.records import ENTITY, MEMORY, RELATION
from graphmem.store.filters import Filters
from graphmem.store.overview import Connected, Overview, read_overview
from graphmem.times import now

_MOST: Final = 10
"""How many kinds, and how many of the most connected entities, are told."""


def stats(service: Service, given: Fields) -> Fields:
    """The numbers of what is visible."""
    scopes = service.scopes(given)
    with service.reading() as store:
        if store is None:
            empty: Fields = {"memories": 0, "entities": 0, "relations": 0, "scope": service.scope}
            return empty | {"hints": [NOTHING_STORED]}
        found = read_overview(store.db, Filters(now(), scopes), _MOST)
    return {
        "memories": found.counts[MEMORY], "entities": found.counts[ENTITY],
        "relations": found.counts[RELATION], "kinds": found.kinds[ENTITY],
        "memory_types": found.kinds[MEMORY], "predicates": found.kinds[RELATION],
        "connected": _connected(found.connected, "relations"), "scope": service.scope,
        "scopes": [{"scope": name} | _plural(counts) for name, counts in found.scopes.items()],
        "encoder": found.encoder.name if found.encoder is not None else "",
        "hints": list(_hints(found)),
    }  # fmt: skip


def _plural(counts: dict[str, int]) -> dict[str, int]:
    return {"memories": counts[MEMORY], "entities": counts[ENTITY], "relations": counts[RELATION]}


def _connected(rows: Sequence[Connected], what: str) -> list[dict[str, Any]]:
    return [{"id": one.id, "name": one.name, "kind": one.kind, what: one.many} for one in rows]


def _hints(found: Overview) -> Iterator[str]:
    if found.stubs:
        yield f"{found.stubs:,} entities are only referred to; remember them with a kind and a description"
    if found.undescribed:
        yield f"{found.undescribed:,} entities have no description; update adds one"
    if found.alone:
        yield f"{found.alone:,} entities have no memory and no relation; relate them, or forget them"
    if found.without_vectors:
        yield f"{found.without_vectors:,} items have no vector; 'gmem reembed' on the command line makes them"
    for one in found.crowded[:3]:
        yield f"'{one.name}' ({one.id}) has {one.many:,} memories; merge what repeats itself"
    if found.other_scopes:
        yield f"the store has {found.other_scopes:,} other scopes (scopes=['*'] counts them too)"
