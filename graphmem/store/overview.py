"""What is visible of a store, in numbers: how much of what kind, what is most connected, what is missing."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from graphmem.records import DEFAULT_MEMORY_TYPE, ENTITY, KINDS, MEMORY, RELATION, UNKNOWN_KIND
from graphmem.store.filters import Condition, Filters, Kind
from graphmem.store.search import Searcher
from graphmem.store.vectors import StoredEncoder, current_encoder

if TYPE_CHECKING:
    import apsw

CROWDED: Final = 300
"""With more memories than this an entity is not walked through by the graph channel."""

# {condition} is one of `Searcher` over a row `i`.
_COUNT: Final = "SELECT count(*) FROM {table} AS i WHERE {condition}"
_KINDS: Final = """
SELECT min(ifnull({column}, :ordinary)) AS shown, count(*) AS many FROM {table} AS i WHERE {condition}
GROUP BY {key} ORDER BY many DESC, shown LIMIT :most
"""
_CONNECTED: Final = """
WITH ends AS MATERIALIZED (
  SELECT pk, sum(many) AS many FROM (
    SELECT i.subject AS pk, count(*) AS many FROM relation AS i WHERE {relation} GROUP BY i.subject
    UNION ALL SELECT i.object, count(*) FROM relation AS i
      WHERE {relation} AND i.object <> i.subject GROUP BY i.object
  ) GROUP BY pk
)
SELECT i.id, i.name, i.kind, n.many FROM ends AS n CROSS JOIN entity AS i ON i.pk = n.pk WHERE {entity}
ORDER BY n.many DESC, i.name, i.kind_key, i.id LIMIT :most
"""
_STUBS: Final = "i.stub = 1"
_UNDESCRIBED: Final = "i.stub = 0 AND ifnull(i.description, '') = ''"
_ALONE: Final = """NOT EXISTS (SELECT 1 FROM memory_link AS l WHERE l.entity = i.pk)
 AND NOT EXISTS (SELECT 1 FROM relation AS r WHERE r.subject = i.pk AND r.state = 'active')
 AND NOT EXISTS (SELECT 1 FROM relation AS r WHERE r.object = i.pk AND r.state = 'active')"""
_WITHOUT: Final = "NOT EXISTS (SELECT 1 FROM chunk AS c WHERE c.item = i.pk AND c.kind = {number})"
_CROWDED: Final = """
SELECT i.id, i.name, i.kind, n.many FROM (
  SELECT entity, count(*) AS many FROM memory_link GROUP BY entity HAVING count(*) > :crowded
) AS n CROSS JOIN entity AS i ON i.pk = n.entity WHERE {condition}
ORDER BY n.many DESC, i.name, i.kind_key, i.id LIMIT :most
"""
_OTHERS: Final = "SELECT count(*) FROM scope WHERE name NOT IN (SELECT value FROM json_each(?))"
_COLUMNS: Final[dict[str, tuple[str, str, str]]] = {
    MEMORY: ("i.memory_type", "ifnull(i.memory_type, :ordinary)", DEFAULT_MEMORY_TYPE),
    ENTITY: ("i.kind", "i.kind_key", UNKNOWN_KIND),
    RELATION: ("i.predicate", "i.predicate_key", ""),
}


class Connected(NamedTuple):
    """An entity, and how many relations or memories it has."""

    id: str
    name: str
    kind: str
    many: int


@dataclass(slots=True)
class Overview:
    """What holds now in the visible scopes; `kinds` by kind of item, the most frequent first."""

    counts: dict[str, int]
    kinds: dict[str, dict[str, int]]
    connected: list[Connected]
    stubs: int
    undescribed: int
    """Entities that are declared without a description."""
    alone: int
    """Entities that no memory and no relation is about."""
    without_vectors: int
    crowded: list[Connected]
    """Entities with more memories than the graph channel walks through."""
    scopes: dict[str, dict[str, int]] = field(default_factory=dict)
    other_scopes: int = 0
    encoder: StoredEncoder | None = None


def read_overview(db: apsw.Connection, filters: Filters, most: int) -> Overview:
    """The overview, each of its lists with at most so many entries; use it inside a read transaction."""
    seen = _Counting(db, filters)
    return Overview(
        {kind: seen.count(kind) for kind in KINDS},
        {kind: seen.kinds(kind, most) for kind in KINDS},
        seen.connected(most),
        seen.count(ENTITY, _STUBS),
        seen.count(ENTITY, _UNDESCRIBED),
        seen.count(ENTITY, _ALONE),
        sum(seen.count(kind, _WITHOUT.format(number=number)) for number, kind in enumerate(KINDS)),
        seen.crowded(most),
        {
            scope: {kind: one.count(kind) for kind in KINDS}
            for scope in filters.scopes or ()
            for one in (_Counting(db, Filters(filters.now, (scope,))),)
        },
        0 if filters.scopes is None else int(seen.db.execute(_OTHERS, (json.dumps(filters.scopes),)).get),
        current_encoder(db),
    )


class _Counting:
    def __init__(self, db: apsw.Connection, filters: Filters) -> None:
        self.db: Any = db
        self._searcher = Searcher(db, filters)

    def _condition(self, kind: str) -> Condition:
        by_name: dict[str, Kind] = {MEMORY: "memory", ENTITY: "entity", RELATION: "relation"}
        return self._searcher.condition(by_name[kind])

    def count(self, kind: str, further: str = "1") -> int:
        condition = self._condition(kind)
        sql = _COUNT.format(table=kind, condition=f"{condition.sql} AND {further}")
        return int(self.db.execute(sql, condition.binds).get)

    def kinds(self, kind: str, most: int) -> dict[str, int]:
        column, key, ordinary = _COLUMNS[kind]
        condition = self._condition(kind)
        sql = _KINDS.format(column=column, key=key, table=kind, condition=condition.sql)
        return dict(self.db.execute(sql, condition.binds | {"ordinary": ordinary, "most": most}))

    def connected(self, most: int) -> list[Connected]:
        relation, entity = self._condition(RELATION), self._condition(ENTITY)
        sql = _CONNECTED.format(relation=relation.sql, entity=entity.sql)
        return self._rows(sql, relation.binds | entity.binds, most)

    def crowded(self, most: int) -> list[Connected]:
        entity = self._condition(ENTITY)
        return self._rows(
            _CROWDED.format(condition=entity.sql), entity.binds | {"crowded": CROWDED}, most
        )  # fmt: skip

    def _rows(self, sql: str, binds: dict[str, Any], most: int) -> list[Connected]:
        rows = self.db.execute(sql, binds | {"most": most})
        return [Connected(id_, name, kind or UNKNOWN_KIND, many) for id_, name, kind, many in rows]
