"""The links that recall walks: memories to the entities they are linked to or mention, entities to each other.

Nodes are numbers: an entity's row number doubled, a memory's doubled plus one.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Final

from graphmem.mentions import find, plain
from graphmem.records import ENTITY, MEMORY, RELATION
from graphmem.store.filters import NO_FILTER
from graphmem.store.mentions import Mentions
from graphmem.store.near import numbers
from graphmem.store.search import Searcher
from graphmem.store.warm import remembered

HUB: Final = 100
"""What more memories than this hold says little about any of them, and is not followed to them; in the same
way an entity of more relations is not followed along them."""
_LOOKED_AT: Final = 1_000
"""What so many memories hold, visible or not, is not followed either: looking for the visible costs too much."""
_MOST_KEPT: Final = 100_000
"""The numbers of links of so many entities, and the links of a tenth as many nodes, are remembered from one
question to the next: some 20 MB."""
_MOST_WALKS: Final = 5
"""For so many sets of scopes."""
_USUAL: Final = 5
"""How many entities a memory holds, where that is not worth counting."""
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

    def __init__(self, searcher: Searcher) -> None:
        self._db: Any = searcher.db
        # The walk sees all that is visible and holds; what an answer may consist of is judged later.
        self._searcher = searcher.loosened()
        kept = self._kept()
        self._degrees: dict[int, int] = kept.setdefault("degrees", {})
        self._relations: dict[int, int] = kept.setdefault("relations", {})
        self._links: dict[int, list[tuple[int, float]]] = kept.setdefault("links", {})
        if len(self._degrees) > _MOST_KEPT:
            self._degrees.clear()
            self._relations.clear()
        if len(self._links) > _MOST_KEPT // 10:
            self._links.clear()

    def _kept(self) -> dict[Any, Any]:
        """What earlier questions that see the same found out."""
        standing = self._searcher.standing
        if standing is None:
            return {}
        walks: dict[Any, dict[Any, Any]] = remembered(self._searcher.db).setdefault("walks", {})
        if standing not in walks and len(walks) >= _MOST_WALKS:
            walks.clear()
        return walks.setdefault(standing, {})

    # ---- links ------------------------------------------------------------------------------------

    def links(self, nodes: Sequence[int]) -> dict[int, list[tuple[int, float]]]:
        """The weighted neighbours of nodes."""
        new = [node for node in nodes if node not in self._links]
        if new:
            found: dict[int, list[tuple[int, float]]] = {node: [] for node in new}
            self._from_entities([node // 2 for node in new if not node % 2], found)
            self._from_memories([node // 2 for node in new if node % 2], found)
            self._links.update(found)
        return {node: self._links[node] for node in nodes}

    def sizes(self, nodes: Sequence[int]) -> dict[int, int]:
        """About how many neighbours nodes have; of memories not counted but taken for usual."""
        self.count(node // 2 for node in nodes if not node % 2)
        return {
            node: _USUAL if node % 2 else self._degrees[node // 2] + self._relations[node // 2]
            for node in nodes
        }

    def degree(self, entity: int) -> int:
        """How many times memories are about an entity or mention it, counted up to the hub limit."""
        self.count([entity])
        return self._degrees[entity]

    def count(self, entities: Iterable[int]) -> None:
        """Counts for the entities that were not counted before, all in one go.

        Counted is what there is; where that would make a hub, what is visible of it.
        """
        known = self._degrees
        new = sorted({entity for entity in entities if entity not in known})
        many: list[int] = []
        for entity, memories, relations in self._execute(_COUNTS, new, most=HUB + 1):
            self._degrees[entity], self._relations[entity] = memories, relations
            if max(memories, relations) > HUB:
                many.append(entity)
        if all(self._searcher.hides_nothing(kind) for kind in (MEMORY, RELATION)):
            return
        memory, relation = self._searcher.condition(MEMORY), self._searcher.condition(RELATION)
        sql = _VISIBLE_COUNTS.format(memory=memory.sql, relation=relation.sql)
        binds = memory.binds | relation.binds | {"most": HUB + 1, "looked": _LOOKED_AT}
        for entity, memories, relations, looked in self._execute(sql, many, **binds):
            self._degrees[entity] = memories if looked < _LOOKED_AT else _LOOKED_AT
            self._relations[entity] = relations

    def _from_entities(self, entities: list[int], found: dict[int, list[tuple[int, float]]]) -> None:
        self.count(entities)
        share = {
            one: 1 / math.log(2 + max(self._degrees[one], 1)) for one in entities if self._degrees[one] <= HUB
        }
        # Entities of very many relations are not followed along these, to the memories that state them either.
        few = [one for one in share if self._relations[one] <= HUB]
        linked = self._linked(_MEMORIES_OF, MEMORY, list(share), few=numbers(few), most=HUB)
        for entity, weight in share.items():
            links = found[entity_node(entity)]
            for memory, role in linked.get(entity, {}).items():
                links.append((memory_node(memory), weight if role else 2 * weight))
        related = self._related([one for one in entities if self._relations[one] <= HUB])
        for (entity, far), count in related.items():
            found[entity_node(entity)].append((entity_node(far), _RELATION * count))

    def _related(self, entities: list[int]) -> dict[tuple[int, int], int]:
        """How many relations join an entity and another one."""
        counts: dict[tuple[int, int], int] = {}
        for pair in self._ask(_RELATED, RELATION, entities):
            if pair[0] != pair[1]:
                counts[pair] = counts.get(pair, 0) + 1
        return counts

    def _from_memories(self, memories: list[int], found: dict[int, list[tuple[int, float]]]) -> None:
        linked = self._linked(_ENTITIES_OF, ENTITY, memories)
        self.count({entity for entities in linked.values() for entity in entities})
        for memory, entities in linked.items():
            links = found[memory_node(memory)]
            for entity, role in entities.items():
                degree = self._degrees[entity]
                if degree <= HUB:
                    weight = (1 if role else 2) / math.log(2 + max(degree, 1))
                    links.append((entity_node(entity), weight))

    def _linked(self, sql: str, kind: Any, those: Sequence[int], **binds: Any) -> dict[int, dict[int, int]]:
        """The visible items of a kind at the other end of links, with their best role: 0 where one is about it."""
        rows = self._execute(sql, those, **binds)
        if not self._searcher.hides_nothing(kind):
            visible = self.visible(kind, {far for _, far, _ in rows})
            rows = [row for row in rows if row[1] in visible]
        linked: dict[int, dict[int, int]] = {}
        for near, far, role in rows:
            roles = linked.setdefault(near, {})
            if far not in roles or role < roles[far]:
                roles[far] = role
        return linked

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
        return [pk for (pk,) in self._execute(_HOLDING, memories, entity=entity)]

    def visible(self, kind: Any, pks: Iterable[int]) -> set[int]:
        """Those of some items that may be walked through."""
        passes = self._searcher.passes(kind)
        if passes is not None:
            return {pk for pk in pks if passes(pk)}
        rows = self._ask(
            f"SELECT i.pk FROM carray(:those) AS c CROSS JOIN {kind} AS i ON i.pk = c.value "  # noqa: S608
            "WHERE {condition}",
            kind,
            sorted(pks),
        )
        return {pk for (pk,) in rows}

    def _ask(self, sql: str, kind: Any, those: Sequence[int], **binds: Any) -> list[Any]:
        """The rows of a statement with the condition of what is visible of a kind."""
        condition = NO_FILTER if self._searcher.hides_nothing(kind) else self._searcher.condition(kind)
        filled = sql.replace("{condition}", condition.sql)
        return self._execute(filled, those, **condition.binds, **binds)

    def _execute(self, sql: str, those: Sequence[int], **binds: Any) -> list[Any]:
        import apsw

        if not those:
            return []
        given = {**binds, "those": apsw.carray(array("q", those))}
        rows: list[Any] = self._db.execute(sql, given).fetchall()
        return rows


_COUNTS: Final = """
SELECT c.value, (SELECT count(*) FROM (SELECT 1 FROM memory_link WHERE entity = c.value LIMIT :most))
 + (SELECT count(*) FROM (SELECT 1 FROM mention WHERE entity = c.value LIMIT :most)),
 (SELECT count(*) FROM (SELECT 1 FROM relation WHERE subject = c.value LIMIT :most))
 + (SELECT count(*) FROM (SELECT 1 FROM relation WHERE object = c.value LIMIT :most))
FROM carray(:those) AS c
"""
# The innermost limits keep what is hidden from costing much.
_VISIBLE_COUNTS: Final = """
SELECT c.value,
 (SELECT count(*) FROM (SELECT 1 FROM (SELECT memory FROM memory_link WHERE entity = c.value LIMIT :looked) AS l
   CROSS JOIN memory AS i ON i.pk = l.memory WHERE {memory} LIMIT :most))
 + (SELECT count(*) FROM (SELECT 1 FROM (SELECT memory FROM mention WHERE entity = c.value LIMIT :looked) AS l
   CROSS JOIN memory AS i ON i.pk = l.memory WHERE {memory} LIMIT :most)),
 (SELECT count(*) FROM (SELECT 1 FROM relation AS i WHERE i.subject = c.value AND {relation} LIMIT :most))
 + (SELECT count(*) FROM (SELECT 1 FROM relation AS i WHERE i.object = c.value AND {relation} LIMIT :most)),
 max((SELECT count(*) FROM (SELECT 1 FROM memory_link WHERE entity = c.value LIMIT :looked)),
   (SELECT count(*) FROM (SELECT 1 FROM mention WHERE entity = c.value LIMIT :looked)))
FROM carray(:those) AS c
"""
# A memory holds an entity when it is about it, mentions it, or states a relation that ends in it.
_MEMORIES_OF: Final = """
SELECT l.entity, l.memory, l.role
FROM carray(:those) AS c CROSS JOIN memory_link AS l ON l.entity = c.value
UNION ALL SELECT l.entity, l.memory, 1
FROM carray(:those) AS c CROSS JOIN mention AS l ON l.entity = c.value
UNION ALL SELECT r.subject, m.pk, 1 FROM carray(:few) AS c CROSS JOIN relation AS r ON r.subject = c.value
CROSS JOIN stated_by AS s ON s.relation = r.pk AND s.memory IN (
  SELECT memory FROM stated_by WHERE relation = r.pk ORDER BY memory LIMIT :most
) CROSS JOIN memory AS m ON m.id = s.memory
UNION ALL SELECT r.object, m.pk, 1 FROM carray(:few) AS c CROSS JOIN relation AS r ON r.object = c.value
CROSS JOIN stated_by AS s ON s.relation = r.pk AND s.memory IN (
  SELECT memory FROM stated_by WHERE relation = r.pk ORDER BY memory LIMIT :most
) CROSS JOIN memory AS m ON m.id = s.memory
"""
_ENTITIES_OF: Final = """
SELECT l.memory, l.entity, l.role
FROM carray(:those) AS c CROSS JOIN memory_link AS l ON l.memory = c.value
UNION ALL SELECT l.memory, l.entity, 1
FROM carray(:those) AS c CROSS JOIN mention AS l ON l.memory = c.value
UNION ALL SELECT m.pk, r.subject, 1 FROM carray(:those) AS c CROSS JOIN memory AS m ON m.pk = c.value
CROSS JOIN stated_by AS s ON s.memory = m.id CROSS JOIN relation AS r ON r.pk = s.relation
UNION ALL SELECT m.pk, r.object, 1 FROM carray(:those) AS c CROSS JOIN memory AS m ON m.pk = c.value
CROSS JOIN stated_by AS s ON s.memory = m.id CROSS JOIN relation AS r ON r.pk = s.relation
"""
_RELATED: Final = """
SELECT i.subject, i.object FROM carray(:those) AS c CROSS JOIN relation AS i ON i.subject = c.value
WHERE {condition}
UNION ALL SELECT i.object, i.subject
FROM carray(:those) AS c CROSS JOIN relation AS i ON i.object = c.value WHERE {condition}
"""
_HOLDING: Final = """
SELECT m.pk FROM carray(:those) AS c CROSS JOIN memory AS m ON m.pk = c.value
WHERE EXISTS (SELECT 1 FROM memory_link WHERE memory = m.pk AND entity = :entity)
 OR EXISTS (SELECT 1 FROM mention WHERE memory = m.pk AND entity = :entity)
 OR EXISTS (SELECT 1 FROM stated_by AS s CROSS JOIN relation AS r ON r.pk = s.relation
   WHERE s.memory = m.id AND (r.subject = :entity OR r.object = :entity))
ORDER BY m.pk
"""
