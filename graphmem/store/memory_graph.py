"""The store as one graph of names: entities with their observations, and relations between names.

Everything is in the order in which it came to be seen: what came back, or stopped being a stub, came anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from graphmem.records import ENTITY, KINDS, MEMORY, RELATION, UNKNOWN_KIND
from graphmem.store.filters import Filters, Kind
from graphmem.store.search import Searcher

if TYPE_CHECKING:
    import apsw

# The batch since which a row `i` is seen without a break.
_BEGAN: Final = """ifnull((SELECT max(v.batch) FROM version AS v WHERE v.kind = {number} AND v.item = i.pk
  AND (v.before ->> '$.state' = 'archived' OR v.before ->> '$.stub' = 1)), i.batch)"""

_ENTITIES: Final = f"""
SELECT i.pk, i.id, i.name, i.kind, i.stub FROM entity AS i WHERE {{condition}} {{more}}
ORDER BY {_BEGAN}, i.pk
"""  # noqa: S608
_OBSERVATIONS: Final = f"""
SELECT l.entity, i.pk, i.content FROM memory AS i JOIN memory_link AS l ON l.memory = i.pk AND l.role = 0
WHERE {{condition}} {{more}} ORDER BY {_BEGAN}, i.pk
"""  # noqa: S608
_RELATIONS: Final = f"""
SELECT i.pk, a.name, i.predicate, b.name FROM relation AS i
JOIN entity AS a ON a.pk = i.subject JOIN entity AS b ON b.pk = i.object
WHERE {{condition}} {{more}} ORDER BY {_BEGAN}, i.pk
"""  # noqa: S608
# Of several the one that is seen comes first, then a stub, then what was archived.
_CALLED: Final = """
SELECT i.pk, i.id, i.name, i.state FROM entity AS i WHERE {condition} {more}
ORDER BY i.state = 'archived', i.stub, i.pk
"""
# What SQLite makes of small and capital letters is right for ASCII alone; other texts are looked at by the caller.
_HOLDING: Final = """
SELECT i.pk FROM entity AS i WHERE {condition} AND ({name} OR {kind})
UNION SELECT l.entity FROM memory AS i JOIN memory_link AS l ON l.memory = i.pk AND l.role = 0
WHERE {other} AND {content}
"""
_MAY_HOLD: Final = "(instr(lower({0}), :text) OR length({0}) <> octet_length({0}))"
_NAMED: Final = "AND i.name IN (SELECT value FROM json_each(:names))"
_THESE: Final = "AND i.pk IN (SELECT value FROM json_each(:entities))"
_OF: Final = "AND l.entity IN (SELECT value FROM json_each(:entities))"
_AT: Final = """AND (i.subject IN (SELECT value FROM json_each(:entities))
  OR i.object IN (SELECT value FROM json_each(:entities)))"""


class Observation(NamedTuple):
    """A memory about an entity, by row number and content."""

    pk: int
    content: str


class Node(NamedTuple):
    """An entity that is seen, with what is observed of it."""

    pk: int
    id: str
    name: str
    kind: str | None
    observations: list[Observation]


class Link(NamedTuple):
    """A relation between two names."""

    pk: int
    subject: str
    predicate: str
    object: str


class Called(NamedTuple):
    """An entity of a name, also a stub or one that is archived."""

    pk: int
    id: str
    name: str
    archived: bool


class MemoryGraph:
    """What is seen through filters, by exact name."""

    def __init__(self, db: apsw.Connection, filters: Filters) -> None:
        self._db: Any = db
        self._seen = Searcher(db, filters)
        self._any = Searcher(db, Filters(filters.now, filters.scopes, state="all"))

    def nodes(self, names: Iterable[str] | None = None) -> list[Node]:
        """The entities, all or those of the names; a stub only when something is observed of it."""
        if names is None:
            return self._nodes("", {})
        return self._nodes(_NAMED, {"names": json.dumps(list(names))})

    def nodes_of(self, pks: Iterable[int]) -> list[Node]:
        """The entities of these row numbers."""
        return self._nodes(_THESE, {"entities": json.dumps(list(pks))})

    def may_contain(self, text: str) -> list[int]:
        """The entities that may have a text of small ASCII letters in name, kind or an observation.

        It is in all that have it, whatever the case, and in those with letters that are not ASCII perhaps.
        """
        entities, memories = self._seen.condition(ENTITY), self._seen.condition(MEMORY)
        sql = _HOLDING.format(
            condition=entities.sql, other=memories.sql, name=_MAY_HOLD.format("i.name"),
            kind=_MAY_HOLD.format(f"ifnull(i.kind, '{UNKNOWN_KIND}')"), content=_MAY_HOLD.format("i.content"),
        )  # fmt: skip
        binds = entities.binds | memories.binds | {"text": text}
        return [pk for (pk,) in self._db.execute(sql, binds)]

    def of_ids(self, ids: Iterable[str]) -> list[int]:
        """The row numbers of entities by their ids."""
        sql = "SELECT pk FROM entity WHERE id IN (SELECT value FROM json_each(?)) ORDER BY pk"
        return [pk for (pk,) in self._db.execute(sql, (json.dumps(list(ids)),))]

    def _nodes(self, more: str, binds: dict[str, str]) -> list[Node]:
        rows = self._rows(_ENTITIES, ENTITY, more, binds)
        held: dict[int, list[Observation]] = {pk: [] for pk, *_ in rows}
        of = {"entities": json.dumps(list(held))} if more else {}
        for entity, pk, content in self._rows(_OBSERVATIONS, MEMORY, _OF if of else "", of):
            if entity in held:
                held[entity].append(Observation(pk, content))
        return [
            Node(pk, id_, name, kind, held[pk]) for pk, id_, name, kind, stub in rows if held[pk] or not stub
        ]

    def links(self, names: Iterable[str] | None = None) -> list[Link]:
        """The relations, all or those with one of the names at an end."""
        more = {} if names is None else {"entities": json.dumps([one.pk for one in self.called(names)])}
        return [Link(*row) for row in self._rows(_RELATIONS, RELATION, _AT if more else "", more)]

    def called(self, names: Iterable[str]) -> list[Called]:
        """All entities of these names, the ones that are seen first."""
        rows = self._rows(_CALLED, ENTITY, _NAMED, {"names": json.dumps(list(names))}, self._any)
        return [Called(pk, id_, name, state == "archived") for pk, id_, name, state in rows]

    def _rows(
        self, sql: str, kind: Kind, more: str, binds: dict[str, Any], seen: Searcher | None = None
    ) -> list[tuple[Any, ...]]:
        condition = (seen or self._seen).condition(kind)
        statement = sql.format(condition=condition.sql, more=more, number=KINDS.index(kind))
        rows: list[tuple[Any, ...]] = self._db.execute(statement, condition.binds | binds).fetchall()
        return rows
