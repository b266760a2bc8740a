"""What walking the graph asks of the store: the relations of a frontier, the entities at their ends."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from graphmem.names import predicate_key
from graphmem.records import ENTITY, RELATION, UNKNOWN_KIND
from graphmem.store.filters import Filters
from graphmem.store.search import Searcher

if TYPE_CHECKING:
    import apsw as apsw_types

Direction: TypeAlias = Literal["out", "in", "both"]


class Edge(NamedTuple):
    """A relation as a walk sees it; ends are row numbers of entities."""

    pk: int
    id: str
    subject: int
    predicate: str
    object: int
    weight: float | None
    fact: str | None
    valid_at: str | None


class Node(NamedTuple):
    """An entity as a walk sees it."""

    pk: int
    id: str
    name: str
    kind: str
    scope: str
    description: str | None
    stub: bool

    @property
    def order(self) -> tuple[str, str, str, str]:
        """What nodes are sorted by: name, kind, scope, id."""
        return (self.name, self.kind, self.scope, self.id)


_COLUMNS: Final = "i.pk, i.id, i.subject, i.predicate, i.object, i.weight, i.fact, i.valid_at"
# The frontier is the outer loop, so that a hop costs one index look-up for each of its nodes.
_FROM: Final = """
SELECT {columns} FROM carray(:frontier) AS c CROSS JOIN relation AS i ON i.{end} = c.value
WHERE {condition} AND (:any OR i.predicate_key IN (SELECT value FROM json_each(:predicates)))
"""
# The far ends of relations that hold, from the index alone, but for the few relations that ended.
_FAR: Final = """
SELECT DISTINCT i.{far} FROM carray(:frontier) AS c CROSS JOIN relation AS i INDEXED BY {index}
 ON i.{end} = c.value
WHERE {within} AND (:any OR i.predicate_key IN (SELECT value FROM json_each(:predicates)))
 AND i.pk NOT IN (
  SELECT pk FROM relation WHERE (state <> 'active' OR invalid_at IS NOT NULL OR expired_at IS NOT NULL)
   AND NOT (state = 'active' AND ifnull(invalid_at > :now, 1) AND ifnull(expired_at > :now, 1)))
"""
_INDEXES: Final = {"subject": "relation_key", "object": "relation_object"}
_OTHER: Final = {"subject": "object", "object": "subject"}
# The sign keeps every pair of nodes from being looked up.
_BETWEEN: Final = """
WITH some AS MATERIALIZED (
  SELECT i.pk FROM carray(:frontier) AS c CROSS JOIN relation AS i ON i.subject = c.value
  WHERE +i.object IN (SELECT value FROM carray(:others)) AND {condition}
   AND (:any OR i.predicate_key IN (SELECT value FROM json_each(:predicates)))
  ORDER BY i.id LIMIT :most
)
SELECT {columns} FROM some CROSS JOIN relation AS i ON i.pk = some.pk
"""
_NODES: Final = """
SELECT i.pk, i.id, i.name, ifnull(i.kind, :unknown), s.name, i.description, i.stub
FROM carray(:frontier) AS c CROSS JOIN entity AS i ON i.pk = c.value JOIN scope AS s ON s.pk = i.scope
WHERE {condition}
"""
_MEMORIES: Final = """
SELECT l.entity, l.memory FROM carray(:frontier) AS c
CROSS JOIN memory_link AS l ON l.entity = c.value CROSS JOIN memory AS i ON i.pk = l.memory
WHERE {condition} ORDER BY i.created_at DESC, i.id LIMIT :most
"""
_ENDS: Final[dict[Direction, tuple[str, ...]]] = {
    "out": ("subject",),
    "in": ("object",),
    "both": ("subject", "object"),
}


class Graph:
    """The visible part of the store's graph, asked hop by hop."""

    def __init__(self, db: apsw_types.Connection, filters: Filters, predicates: Iterable[str] = ()) -> None:
        import json

        self._db: Any = db
        self._searcher = Searcher(db, filters)
        keys = sorted({predicate_key(predicate) for predicate in predicates})
        self._predicates = {"any": not keys, "predicates": json.dumps(keys)}

    def _ask(self, sql: str, kind: Any, frontier: Sequence[int], *, end: str = "", far: str = "",
             index: str = "", within: str = "", **binds: Any) -> list[Any]:  # fmt: skip
        import apsw

        if not frontier:
            return []
        condition = self._searcher.condition(kind)
        given = {
            **condition.binds,
            **self._predicates,
            **binds,
            "frontier": apsw.carray(array("q", frontier)),
        }
        statement = sql.format(
            condition=condition.sql, columns=_COLUMNS, end=end, far=far, index=index, within=within
        )
        rows: list[Any] = self._db.execute(statement, given).fetchall()
        return rows

    def hop(self, frontier: Sequence[int], direction: Direction) -> list[Edge]:
        """The relations that leave the frontier in a direction, each once, in the order of their ids."""
        found: dict[int, Edge] = {}
        for end in _ENDS[direction]:
            for row in self._ask(_FROM, RELATION, frontier, end=end):
                found[row[0]] = Edge(*row)
        return sorted(found.values(), key=lambda edge: edge.id)

    def far(self, frontier: Sequence[int], direction: Direction) -> set[int]:
        """The far ends of the relations that leave the frontier in a direction."""
        found: set[int] = set()
        for end in _ENDS[direction]:
            rows = self._ask(
                _FAR, RELATION, frontier, end=end, far=_OTHER[end], index=_INDEXES[end],
                within=self._searcher.within(RELATION),
            )  # fmt: skip
            found.update(pk for (pk,) in rows)
        return found

    def between(self, nodes: Sequence[int], others: Sequence[int], most: int) -> list[Edge]:
        """Relations from some nodes to others, at most so many, those with the least ids."""
        import apsw

        if not others:
            return []
        rows = self._ask(_BETWEEN, RELATION, nodes, others=apsw.carray(array("q", others)), most=most)
        return [Edge(*row) for row in rows]

    def nodes(self, pks: Sequence[int]) -> list[Node]:
        """The visible entities among these, sorted."""
        rows = self._ask(_NODES, ENTITY, pks, unknown=UNKNOWN_KIND)
        found = [
            Node(pk, id_, name, kind, scope, description, bool(stub))
            for pk, id_, name, kind, scope, description, stub in rows
        ]
        return sorted(found, key=lambda node: node.order)

    def memories(self, pks: Sequence[int], most: int) -> list[tuple[int, int]]:
        """(entity, memory) of the newest visible memories linked to these entities."""
        rows = self._ask(_MEMORIES, "memory", pks, most=most)
        return [(entity, memory) for entity, memory in rows]

    def memory_rows(self, pks: Sequence[int]) -> dict[int, dict[str, Any]]:
        """The memories by row number, as searches show them."""
        return self._searcher.memories(pks)
