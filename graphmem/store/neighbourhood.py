"""The links that recall walks: memories to the entities they are linked to or mention, entities to each other.

Nodes are numbers: an entity's row number doubled, a memory's doubled plus one.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from graphmem.mentions import find, plain
from graphmem.records import ENTITY, MEMORY, RELATION
from graphmem.store.mentions import Mentions
from graphmem.store.search import Filters, Searcher

if TYPE_CHECKING:
    import apsw as apsw_types

HUB: Final = 300
"""An entity that more memories are linked to says nothing about any of them, and is not walked through."""
_RELATIONS: Final = 500
_RELATION: Final = 0.5
"""What a relation between two entities weighs; a memory that mentions one weighs 1 / log(2 + memories)."""


def entity_node(pk: int) -> int:
    """The node of an entity."""
    return 2 * pk


def memory_node(pk: int) -> int:
    """The node of a memory."""
    return 2 * pk + 1


class Neighbourhood:
    """The visible links around nodes; what another scope holds is never walked through."""

    def __init__(self, db: apsw_types.Connection, filters: Filters) -> None:
        self._db: Any = db
        # The walk sees all that is visible and holds; what an answer may consist of is judged later.
        self._searcher = Searcher(db, Filters(filters.now, filters.scopes))
        self._degrees: dict[int, int] = {}

    # ---- links ------------------------------------------------------------------------------------

    def links(self, nodes: Sequence[int]) -> dict[int, list[tuple[int, float]]]:
        """The weighted neighbours of nodes."""
        entities = [node // 2 for node in nodes if not node % 2]
        memories = [node // 2 for node in nodes if node % 2]
        found: dict[int, list[tuple[int, float]]] = {node: [] for node in nodes}
        self._from_entities(entities, found)
        self._from_memories(memories, found)
        return found

    def degree(self, entity: int) -> int:
        """How many memories an entity is linked to or mentioned by, counted up to the hub limit."""
        held = self._degrees.get(entity)
        if held is None:
            held = len(self._memories_of(entity))
            self._degrees[entity] = held
        return held

    def _memories_of(self, entity: int) -> list[tuple[int, int]]:
        """(memory, role) of an entity; role 0 about, 1 mentioned. At most one more than the hub limit."""
        rows: list[tuple[int, int]] = self._db.execute(_MEMORIES_OF, (entity, HUB + 1)).fetchall()
        self._degrees[entity] = len(rows)
        return rows

    def _from_entities(self, entities: list[int], found: dict[int, list[tuple[int, float]]]) -> None:
        linked: list[tuple[int, int, float]] = []
        for entity in entities:
            rows = self._memories_of(entity)
            if len(rows) <= HUB:
                share = 1 / math.log(2 + len(rows))
                linked += [(entity, memory, share * (2 if role == 0 else 1)) for memory, role in rows]
        seen = self.visible(MEMORY, {memory for _, memory, _ in linked})
        for entity, memory, weight in linked:
            if memory in seen:
                found[entity_node(entity)].append((memory_node(memory), weight))
        for entity, far, count in self._related(entities):
            found[entity_node(entity)].append((entity_node(far), _RELATION * count))

    def _related(self, entities: list[int]) -> Iterable[tuple[int, int, float]]:
        """(entity, other entity, how many relations join them)."""
        counts: dict[tuple[int, int], int] = {}
        for near, far in (("subject", "object"), ("object", "subject")):
            for entity, other in self._ask(
                f"SELECT i.{near}, i.{far} FROM carray(:those) AS c CROSS JOIN relation AS i "  # noqa: S608
                f"ON i.{near} = c.value WHERE {{condition}} LIMIT {_RELATIONS * max(len(entities), 1)}",
                RELATION,
                entities,
            ):
                if entity != other:
                    counts[entity, other] = counts.get((entity, other), 0) + 1
        return ((entity, other, float(count)) for (entity, other), count in counts.items())

    def _from_memories(self, memories: list[int], found: dict[int, list[tuple[int, float]]]) -> None:
        import apsw

        if not memories:
            return
        those = {"those": apsw.carray(array("q", memories))}
        linked: list[tuple[int, int, int]] = self._db.execute(_ENTITIES_OF, those).fetchall()
        seen = self.visible(ENTITY, {entity for _, entity, _ in linked})
        for memory, entity, role in linked:
            if entity in seen and self.degree(entity) <= HUB:
                weight = (2 if role == 0 else 1) / math.log(2 + self.degree(entity))
                found[memory_node(memory)].append((entity_node(entity), weight))

    # ---- seeds ------------------------------------------------------------------------------------

    def named_in(self, text: str) -> list[int]:
        """The visible entities that a text names."""
        found = {entity for _, entity in find(plain(text), Mentions(self._db).names)}
        return sorted(self.visible(ENTITY, found))

    def ends(self, relations: Sequence[int]) -> dict[int, tuple[int, int]]:
        """The ends of relations."""
        rows = self._ask(
            "SELECT i.pk, i.subject, i.object FROM carray(:those) AS c CROSS JOIN relation AS i "
            "ON i.pk = c.value WHERE {condition}",
            RELATION,
            relations,
        )
        return {pk: (subject, object_) for pk, subject, object_ in rows}

    def entity(self, id_: str) -> int:
        """The row number of the entity with an id. Raises `KeyError`."""
        pk = self._db.execute("SELECT pk FROM entity WHERE id = ?", (id_,)).get
        if pk is None:
            raise KeyError(id_)
        return int(pk)

    def holding(self, entity: int, memories: Sequence[int]) -> list[int]:
        """Those of some memories that are about an entity, mention it, or state a relation of it."""
        import apsw

        if not memories:
            return []
        those = apsw.carray(array("q", memories))
        rows = self._db.execute(_HOLDING, {"those": those, "entity": entity})
        return [pk for (pk,) in rows]

    def stating(self, relations: Sequence[int]) -> list[tuple[int, int]]:
        """(relation, memory) of the memories that state relations."""
        return self._ask(
            "SELECT s.relation, i.pk FROM carray(:those) AS c CROSS JOIN stated_by AS s ON s.relation = c.value "
            "CROSS JOIN memory AS i ON i.id = s.memory WHERE {condition}",
            MEMORY,
            relations,
        )

    def visible(self, kind: Any, pks: Iterable[int]) -> set[int]:
        """Those of some items that may be walked through."""
        rows = self._ask(
            f"SELECT i.pk FROM carray(:those) AS c CROSS JOIN {kind} AS i ON i.pk = c.value "  # noqa: S608
            "WHERE {condition}",
            kind,
            sorted(pks),
        )
        return {pk for (pk,) in rows}

    def _ask(self, sql: str, kind: Any, those: Sequence[int]) -> list[Any]:
        import apsw

        if not those:
            return []
        condition = self._searcher.condition(kind)
        given = {**condition.binds, "those": apsw.carray(array("q", those))}
        rows: list[Any] = self._db.execute(sql.format(condition=condition.sql), given).fetchall()
        return rows


# A memory holds an entity when it is about it, mentions it, or states a relation that ends in it.
_MEMORIES_OF: Final = """
SELECT memory, min(role) FROM (
  SELECT memory, role FROM memory_link WHERE entity = ?1
  UNION ALL SELECT memory, 1 FROM mention WHERE entity = ?1
  UNION ALL SELECT m.pk, 1 FROM relation AS r CROSS JOIN stated_by AS s ON s.relation = r.pk
    CROSS JOIN memory AS m ON m.id = s.memory WHERE r.subject = ?1
  UNION ALL SELECT m.pk, 1 FROM relation AS r CROSS JOIN stated_by AS s ON s.relation = r.pk
    CROSS JOIN memory AS m ON m.id = s.memory WHERE r.object = ?1
  LIMIT ?2
) GROUP BY memory
"""
_ENTITIES_OF: Final = """
SELECT memory, entity, min(role) FROM (
  SELECT l.memory, l.entity, l.role
  FROM carray(:those) AS c CROSS JOIN memory_link AS l ON l.memory = c.value
  UNION ALL SELECT l.memory, l.entity, 1
  FROM carray(:those) AS c CROSS JOIN mention AS l ON l.memory = c.value
  UNION ALL SELECT m.pk, r.subject, 1 FROM carray(:those) AS c CROSS JOIN memory AS m ON m.pk = c.value
  CROSS JOIN stated_by AS s ON s.memory = m.id CROSS JOIN relation AS r ON r.pk = s.relation
  UNION ALL SELECT m.pk, r.object, 1 FROM carray(:those) AS c CROSS JOIN memory AS m ON m.pk = c.value
  CROSS JOIN stated_by AS s ON s.memory = m.id CROSS JOIN relation AS r ON r.pk = s.relation
) GROUP BY memory, entity
"""
_HOLDING: Final = """
SELECT m.pk FROM carray(:those) AS c CROSS JOIN memory AS m ON m.pk = c.value
WHERE EXISTS (SELECT 1 FROM memory_link WHERE memory = m.pk AND entity = :entity)
 OR EXISTS (SELECT 1 FROM mention WHERE memory = m.pk AND entity = :entity)
 OR EXISTS (SELECT 1 FROM stated_by AS s CROSS JOIN relation AS r ON r.pk = s.relation
   WHERE s.memory = m.id AND (r.subject = :entity OR r.object = :entity))
ORDER BY m.pk
"""
