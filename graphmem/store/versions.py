"""What an item said before each batch that changed it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from graphmem.records import ENTITY, KINDS, MEMORY, RELATION
from graphmem.store.filters import Filters
from graphmem.store.read import ItemRef, Page
from graphmem.store.search import Searcher

if TYPE_CHECKING:
    import apsw

Fields = dict[str, Any]

_TOLD: Final = {
    ENTITY: ("name", "kind", "description", "aliases", "properties", "state"),
    MEMORY: ("content", "title", "memory_type", "importance", "tags", "source", "position", "valid_at",
             "invalid_at", "expired_at", "properties", "state"),
    RELATION: ("predicate", "fact", "weight", "valid_at", "invalid_at", "expired_at", "properties", "state"),
}  # fmt: skip
_PACKED: Final = frozenset(("aliases", "properties", "tags"))
_LINKS: Final = ("about", "mentions")

_NOW: Final = "SELECT {columns} FROM {table} WHERE pk = ?"
_LINKED: Final = "SELECT entity FROM memory_link WHERE memory = ? AND role = ? ORDER BY entity"
_VERSIONS: Final = """
SELECT v.before, b.at, b.command, b.actor, b.id FROM version AS v LEFT JOIN batch AS b ON b.pk = v.batch
WHERE v.kind = ? AND v.item = ? ORDER BY v.batch DESC LIMIT ?
"""
_COUNT: Final = "SELECT count(*) FROM version WHERE kind = ? AND item = ?"
_NAMES: Final = """
SELECT i.pk, i.name FROM entity AS i WHERE i.pk IN (SELECT value FROM json_each(:items)) AND {condition}
"""


class Versions:
    """The earlier states of items, asked on one connection under one set of filters."""

    def __init__(self, db: apsw.Connection, filters: Filters) -> None:
        self._db: Any = db
        self._seen = Searcher(db, Filters(filters.now, filters.scopes, state="all"))

    def page(self, ref: ItemRef, limit: int, offset: int = 0) -> Page:
        """The changes of an item, the newest first: when, by what, and what of it was different before.

        Entities that a memory was about are told where they are visible.
        """
        kind = KINDS.index(ref.kind)
        rows = self._db.execute(_VERSIONS, (kind, ref.pk, offset + limit)).fetchall()
        states = [self._now(ref), *(json.loads(row[0]) for row in rows)]
        names = self._names(states[offset:]) if ref.kind == MEMORY else {}
        items = []
        for place, (_, at, command, actor, batch) in enumerate(rows):
            if place >= offset:
                before = _different(ref.kind, states[place + 1], states[place], names)
                items.append({"at": at, "by": actor, "command": command, "batch": batch, "before": before})
        return Page(items, int(self._db.execute(_COUNT, (kind, ref.pk)).get), offset)

    def _now(self, ref: ItemRef) -> Fields:
        columns = _TOLD[ref.kind]
        row = self._db.execute(_NOW.format(columns=", ".join(columns), table=ref.kind), (ref.pk,)).fetchone()
        state = dict(zip(columns, row, strict=True))
        if ref.kind == MEMORY:
            for role, key in enumerate(_LINKS):
                state[key] = [entity for (entity,) in self._db.execute(_LINKED, (ref.pk, role))]
        return state

    def _names(self, states: Iterable[Fields]) -> dict[int, str]:
        """The names of the visible entities that the states link to."""
        linked = {pk for state in states for key in _LINKS for pk in state.get(key, ())}
        condition = self._seen.condition("entity")
        sql = _NAMES.format(condition=condition.sql)
        return dict(self._db.execute(sql, condition.binds | {"items": json.dumps(sorted(linked))}))


def _different(kind: str, before: Fields, after: Fields, names: dict[int, str]) -> Fields:
    """The fields that were different, as they were."""
    told = {key: _unpacked(key, before.get(key)) for key in _TOLD[kind] if before.get(key) != after.get(key)}
    for key in _LINKS if kind == MEMORY else ():
        if sorted(before.get(key, ())) != sorted(after.get(key, ())):
            told[key] = _named(before.get(key, ()), names)
    return told


def _named(pks: Sequence[int], names: dict[int, str]) -> list[str]:
    return sorted(names[pk] for pk in pks if pk in names)


def _unpacked(key: str, value: Any) -> Any:
    if key not in _PACKED:
        return value
    return json.loads(value) if value else ({} if key == "properties" else [])
