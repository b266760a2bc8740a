"""What recall asks of the store: ranked rows of each channel, and the items that they stand for.

The filters of a search are one SQL condition per kind of item. It stands inside the full-text query and
inside the nearest-neighbour query, so that whatever is filtered out never takes a place.
"""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from heapq import nlargest
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from graphmem.names import kind_key
from graphmem.records import DEFAULT_MEMORY_TYPE, ENTITY, KINDS, MEMORY, RELATION, UNKNOWN_KIND
from graphmem.store.connection import load_vectors, translated
from graphmem.store.lookup import Names
from graphmem.store.sketches import Sketcher
from graphmem.store.vectors import StoredEncoder, current_encoder, has_encoder

if TYPE_CHECKING:
    import apsw

Kind: TypeAlias = Literal["memory", "entity", "relation"]
State: TypeAlias = Literal["active", "archived", "all"]

NEAREST_LIMIT: Final = 4096
"""More items than this are compared by their vectors, without sketches."""

CANDIDATES: Final = 400
"""How many of the nearest sketches are compared by their vectors, at least; more when more is wanted."""
_SURE: Final = 50
"""The nearest items of which hardly one may be missed."""
_LATE: Final = 0.8
"""Where one of them has a sketch beyond this share of the candidates, more candidates are looked at."""
_MOST: Final = 1_600
_FEW: Final = 600
"""So many pieces are compared by their vectors, without sketches: that is as fast, and exact."""
_MANY: Final = 8_000
"""From so many items that contain a word on, those with a telling one come first."""
_TELLING: Final = 600
"""How many items the telling words find together, at least."""
_AT_ONCE: Final = 1_500
"""So many items that contain a word are read in one go."""
_SAMPLE: Final = 1000
_SLACK: Final = 16


_Row: TypeAlias = tuple[int, str, float]
"""An item's number, id and score."""


class Ranked(NamedTuple):
    """One item in the order of one channel; ranks count from 1."""

    pk: int
    id: str
    score: float
    rank: int


class Ranking(NamedTuple):
    """The best rows of one channel, and how many it has in all."""

    rows: list[Ranked]
    total: int


NO_RANKING: Final = Ranking([], 0)


@dataclass(frozen=True, slots=True)
class Filters:
    """What an item must be to be found at all. Empty means that anything goes.

    `scopes` is `None` for all scopes. `now` is the canonical time at which an item must hold. `kinds` are
    kinds of entities: a memory is about or mentions one, a relation has one at an end. `memory_types` and
    `tags` are things that only memories have; one of each is enough. `since` and `until`, both included,
    judge when a memory or relation became true, else when it was stored; an entity, when it was stored.
    `entity` is an entity's id, `source` a memory's source. `state` is `active` for what holds at `now`,
    `archived` for what was archived, `all` for everything.
    """

    now: str
    scopes: tuple[str, ...] | None = None
    kinds: tuple[str, ...] = ()
    memory_types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    entity: str | None = None
    source: str | None = None
    state: State = "active"


# ---- the condition of a kind ----------------------------------------------------------------------

_HOLDS: Final = """i.state = 'active'
 AND (i.invalid_at IS NULL OR i.invalid_at > :now) AND (i.expired_at IS NULL OR i.expired_at > :now)"""
_MAY_HAVE_ENDED: Final = "(i.state <> 'active' OR i.invalid_at IS NOT NULL OR i.expired_at IS NOT NULL)"
_STATES: Final = {"archived": "i.state = 'archived'", "all": "1"}
_SKETCH_HOLDS: Final = "(s.until IS NULL OR s.until > :now)"
_SKETCH_STATES: Final = {"archived": "s.until = ''", "all": "1"}
_SINCE: Final = "ifnull(i.valid_at, i.created_at) >= :since"
_UNTIL: Final = "ifnull(i.valid_at, i.created_at) <= :until"
_IN_SCOPES: Final = "i.scope IN (SELECT value FROM json_each(:scopes))"
_SEEN_ENTITIES: Final = """SELECT i.pk FROM entity AS i
 WHERE i.state = 'active' AND i.kind_key IN (SELECT value FROM json_each(:kinds))"""

_MEMORY: Final = {
    "scopes": "i.scope_set IN (SELECT value FROM json_each(:sets))",
    "memory_types": "ifnull(i.memory_type, :observation) IN (SELECT value FROM json_each(:types))",
    "tags": "i.pk IN (SELECT memory FROM memory_tag WHERE tag IN (SELECT value FROM json_each(:tags)))",
    "since": _SINCE,
    "until": _UNTIL,
    "entity": "i.pk IN (SELECT memory FROM memory_link WHERE entity = :entity)",
    "source": "i.source = :source",
    "kinds": "i.pk IN (SELECT memory FROM memory_link WHERE entity IN ({seen}))",
}
_ENTITY: Final = {
    "scopes": _IN_SCOPES,
    "since": "i.created_at >= :since",
    "until": "i.created_at <= :until",
    "entity": "i.pk = :entity",
    "kinds": "i.pk IN ({seen})",
}
_RELATION: Final = {
    "scopes": _IN_SCOPES,
    "since": _SINCE,
    "until": _UNTIL,
    "entity": "(i.subject = :entity OR i.object = :entity)",
    "kinds": "(i.subject IN ({seen}) OR i.object IN ({seen}))",
}


_BY_NUMBER: Final = "i.pk "
"""How a filter starts that only needs the number of an item."""


class Condition(NamedTuple):
    """A compiled filter: SQL over a row `i`, and what its parameters are.

    `sketched` says the same of a sketch `s`, with a join of the item where the sketch does not say it.
    """

    sql: str
    binds: dict[str, Any]
    sketched: str = ""
    plain: bool = False
    """Whether it asks for nothing but scopes and what holds."""


class _Table(NamedTuple):
    """How one kind of item is stored and searched."""

    number: int
    table: str
    weights: str
    """Of the columns of its full-text table: names, titles and context count double."""
    holds: str
    filters: dict[str, str]


_TABLES: Final[dict[str, _Table]] = {
    ENTITY: _Table(KINDS.index(ENTITY), "entity", "2, 1, 1", "i.state = 'active'", _ENTITY),
    MEMORY: _Table(KINDS.index(MEMORY), "memory", "1, 2, 2, 1", _HOLDS, _MEMORY),
    RELATION: _Table(KINDS.index(RELATION), "relation", "1, 1", _HOLDS, _RELATION),
}

# ---- statements; {table} is one of the three kinds, {condition} of its filters ---------------------

_IDS: Final = """
SELECT i.pk, i.id FROM json_each(:items) AS c CROSS JOIN {table} AS i ON i.pk = c.value WHERE {condition}
"""
# The full-text table is the outer loop and gives its rows by rank: what the filters leave out costs a
# look-up, and the loop ends when there are enough.
_BEST: Final = """
SELECT i.pk, i.id, -f.rank FROM {table}_fts AS f CROSS JOIN {table} AS i ON i.pk = f.rowid
WHERE {table}_fts MATCH :match AND f.rank MATCH 'bm25({weights})' AND {condition} ORDER BY f.rank LIMIT :most
"""
# Scores are by the whole expression, but only of the rows that a part of it finds.
_BEST_OF_SOME: Final = """
SELECT i.pk, i.id, -bm25({table}_fts, {weights}) FROM {table}_fts AS f CROSS JOIN {table} AS i ON i.pk = f.rowid
WHERE {table}_fts MATCH :match AND +f.rowid IN (SELECT rowid FROM {table}_fts WHERE {table}_fts MATCH :some)
  AND {condition}
"""
_MATCHING_ROWS: Final = "SELECT count(*) FROM {table}_fts WHERE {table}_fts MATCH :match"
_TOTAL: Final = """
SELECT count(*) FROM {table}_fts AS f CROSS JOIN {table} AS i ON i.pk = f.rowid
WHERE {table}_fts MATCH :match AND {condition}
"""
# What a plain condition leaves out: of scopes that are not visible, and what does not hold.
_UNSEEN: Final[dict[str, str]] = {
    ENTITY: "{table} AS i ON i.scope = s.pk WHERE s.pk NOT IN (SELECT value FROM json_each(:scopes))",
    MEMORY: "{table} AS i ON i.scope_set = s.pk WHERE s.pk NOT IN (SELECT value FROM json_each(:sets))",
    RELATION: "{table} AS i ON i.scope = s.pk WHERE s.pk NOT IN (SELECT value FROM json_each(:scopes))",
}
_SCOPES: Final[dict[str, str]] = {ENTITY: "scope", MEMORY: "scope_set", RELATION: "scope"}
_ENDED: Final[dict[str, str]] = {
    ENTITY: "SELECT i.pk FROM entity AS i WHERE i.state <> 'active'",
    MEMORY: f"SELECT i.pk FROM memory AS i WHERE {_MAY_HAVE_ENDED} AND NOT ({_HOLDS})",  # noqa: S608
    RELATION: f"SELECT i.pk FROM relation AS i WHERE {_MAY_HAVE_ENDED} AND NOT ({_HOLDS})",  # noqa: S608
}
_MATCHING_OF: Final = """
SELECT count(*) FROM {table}_fts
WHERE {table}_fts MATCH :match AND +rowid IN (SELECT value FROM json_each(:items))
"""
# The sign keeps full text from being started anew, with its statistics, for each of the rows.
_ALSO: Final = """
SELECT i.pk, i.id, -bm25({table}_fts, {weights}) FROM {table}_fts AS f CROSS JOIN {table} AS i ON i.pk = f.rowid
WHERE {table}_fts MATCH :match AND +f.rowid IN (SELECT value FROM json_each(:also)) AND {condition}
"""
_NEAREST: Final = """
WITH near AS MATERIALIZED (SELECT s.item, s.vector FROM sketch_{table} AS s {sketched})
SELECT near.item, 1 - vec_distance_cosine(v.vector, :vector)
FROM near CROSS JOIN vector AS v ON v.pk = near.vector
"""
_BY_SKETCH: Final = """
SELECT s.item, s.vector FROM sketch_{table} AS s {sketched}
ORDER BY vec_distance_hamming(vec_bit(s.bits), vec_bit(:sketch)) LIMIT :most
"""
_COSINES_OF: Final = """
SELECT 1 - vec_distance_cosine(v.vector, :vector)
FROM carray(:those) AS c CROSS JOIN vector AS v ON v.pk = c.value
"""
_NAMED: Final = """
SELECT i.pk, i.id FROM carray(:those) AS c CROSS JOIN {table} AS i ON i.pk = c.value
"""
_PIECES: Final = "SELECT count(*) FROM (SELECT 1 FROM sketch_{table} LIMIT :most)"
_WITH_VECTORS: Final = "SELECT count(*) FROM sketch_{table} AS s {sketched} AND s.ordinal = 0"
_COSINES: Final = """
SELECT c.item, max(1 - vec_distance_cosine(v.vector, :vector))
FROM chunk AS c JOIN vector AS v ON v.pk = c.vector
WHERE c.kind = {number} AND c.item IN (SELECT value FROM json_each(:items)) GROUP BY c.item
"""
_MATCHED: Final = """
SELECT rowid FROM {table}_fts
WHERE {table}_fts MATCH :match AND +rowid IN (SELECT value FROM json_each(:items))
"""
_FREQUENCY: Final = """
SELECT count(*), max(rowid) FROM (SELECT rowid FROM {table}_fts WHERE {table}_fts MATCH :match LIMIT :sample)
"""
_ROWS: Final = "SELECT ifnull(max(pk), 0) FROM {table}"
_COUNT: Final = "SELECT count(*) FROM {table} AS i WHERE {condition}"
_MATCHING: Final = "i.pk IN (SELECT rowid FROM {table}_fts WHERE {table}_fts MATCH :match)"
_SCOPES_OF_MEMORIES: Final = """
SELECT DISTINCT scope FROM scope_member
WHERE scope_set IN (SELECT DISTINCT scope_set FROM memory AS i WHERE {condition})
"""
_SCOPES_OF_OTHERS: Final = "SELECT DISTINCT scope FROM {table} AS i WHERE {condition}"

_MEMORIES: Final = """
SELECT pk, id, content, title, memory_type, tags, scope_set, source, position, valid_at, created_at,
  properties
FROM memory WHERE pk IN (SELECT value FROM json_each(:items))
"""
_ABOUT: Final = """
SELECT l.memory, i.id, i.name, i.kind, s.name
FROM memory_link AS l JOIN entity AS i ON i.pk = l.entity JOIN scope AS s ON s.pk = i.scope
WHERE l.role = 0 AND l.memory IN (SELECT value FROM json_each(:items)) AND {seen}
ORDER BY l.memory, i.name, i.kind_key, i.id
"""
_SHARED: Final = """
SELECT i.name FROM entity AS i
WHERE i.name IN (SELECT value FROM json_each(:names)) AND {seen} GROUP BY i.name HAVING count(*) > 1
"""
_ENTITIES: Final = """
SELECT i.pk, i.id, i.name, i.kind, s.name, i.description, i.aliases, i.properties
FROM entity AS i JOIN scope AS s ON s.pk = i.scope WHERE i.pk IN (SELECT value FROM json_each(:items))
"""
_RELATIONS: Final = """
SELECT i.pk, i.id, a.name, i.predicate, b.name, i.fact, s.name, i.weight, i.valid_at, i.created_at,
  i.properties
FROM relation AS i JOIN entity AS a ON a.pk = i.subject JOIN entity AS b ON b.pk = i.object
JOIN scope AS s ON s.pk = i.scope WHERE i.pk IN (SELECT value FROM json_each(:items))
"""


def _packed(values: Iterable[object]) -> str:
    return json.dumps(list(values))


def _list(text: str | None) -> list[str]:
    found: list[str] = json.loads(text) if text else []
    return found


def _mapping(text: str | None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text) if text else {}
    return found


class Searcher:
    """The questions of one search, asked on one connection."""

    def __init__(self, db: apsw.Connection, filters: Filters) -> None:
        self._db: Any = db
        self.db = db
        self.filters = filters
        self._conditions: dict[str, Condition] = {}
        self._hides_nothing: dict[str, bool] = {}
        self._frequencies: dict[tuple[str, str], int] = {}
        self._row_counts: dict[str, int] = {}

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """A time in which every question is answered from the same state of the store."""
        with translated(self._db.filename or ":memory:"):
            if self._db.in_transaction:
                yield
                return
            self._db.execute("BEGIN DEFERRED")
            try:
                yield
            finally:
                if self._db.in_transaction:  # some errors end it: a full disk, a damaged file
                    self._db.execute("ROLLBACK")

    # ---- filters ----------------------------------------------------------------------------------

    @cached_property
    def _scopes(self) -> list[int] | None:
        """The numbers of the visible scopes that the store has."""
        if self.filters.scopes is None:
            return None
        rows = self._db.execute(
            "SELECT pk FROM scope WHERE name IN (SELECT value FROM json_each(?))",
            (_packed(self.filters.scopes),),
        )
        return [pk for (pk,) in rows]

    def condition(self, kind: Kind) -> Condition:
        """The filters as SQL for one kind of item."""
        if kind not in self._conditions:
            self._conditions[kind] = self._compile(kind)
        return self._conditions[kind]

    def within(self, kind: Kind) -> str:
        """The visible scopes alone as SQL for one kind of item; its parameters are those of the condition."""
        return "1" if self._scopes is None else _TABLES[kind].filters["scopes"]

    def _compile(self, kind: Kind, *, elsewhere: bool = False) -> Condition:
        """The condition; with `elsewhere`, of what other scopes hold."""
        filters, table = self.filters, _TABLES[kind]
        binds: dict[str, Any] = {"now": filters.now, "observation": DEFAULT_MEMORY_TYPE}
        seen = _SEEN_ENTITIES
        parts = [_STATES.get(filters.state, table.holds)]
        sketched = [_SKETCH_STATES.get(filters.state, _SKETCH_HOLDS)]
        wanted: set[str] = set()
        if self._scopes is not None:
            within = table.filters["scopes"]
            parts.append(f"NOT {within}" if elsewhere else within)
            if not elsewhere:
                seen += f" AND {_IN_SCOPES}"
            binds["sets"] = _packed(self._scope_sets(self._scopes))
            binds["scopes"] = _packed(self._scopes)
            sketched.append(within.replace("i.scope_set", "s.scope").replace("i.scope", "s.scope"))
        if filters.kinds:
            wanted.add("kinds")
            binds["kinds"] = _packed(kind_key(one) for one in filters.kinds)
        if filters.entity is not None:
            wanted.add("entity")
            binds["entity"] = self._db.execute("SELECT pk FROM entity WHERE id = ?", (filters.entity,)).get
        for name, value in (("since", filters.since), ("until", filters.until), ("source", filters.source)):
            if value is not None:
                wanted.add(name)
                binds[name] = value
        for name, bind, values in (
            ("memory_types", "types", filters.memory_types),
            ("tags", "tags", filters.tags),
        ):
            if values:
                wanted.add(name)
                binds[bind] = _packed(values)
        more = [sql.format(seen=seen) for name, sql in table.filters.items() if name in wanted]
        numbers = [sql for sql in more if sql.startswith(_BY_NUMBER)]
        sketched += [sql.replace(_BY_NUMBER, "s.item ", 1) for sql in numbers]
        join = ""
        if len(numbers) < len(more):
            join = f"CROSS JOIN {table.table} AS i ON i.pk = s.item "
            sketched += [sql for sql in more if sql not in numbers]
        plain = not more and not elsewhere and filters.state == "active"
        return Condition(" AND ".join(parts + more), binds, f"{join}WHERE {' AND '.join(sketched)}", plain)

    def _scope_sets(self, scopes: Sequence[int]) -> list[int]:
        rows = self._db.execute(
            "SELECT DISTINCT scope_set FROM scope_member WHERE scope IN (SELECT value FROM json_each(?))",
            (_packed(scopes),),
        )
        return [pk for (pk,) in rows]

    def _ask(
        self,
        statement: str,
        kind: Kind,
        condition: Condition | None = None,
        **binds: Any,
    ) -> Any:
        table = _TABLES[kind]
        condition = condition or self.condition(kind)
        sql = statement.format(
            table=table.table,
            number=table.number,
            weights=table.weights,
            condition=condition.sql,
            sketched=condition.sketched,
        )
        return self._db.execute(sql, condition.binds | binds)

    # ---- channels ---------------------------------------------------------------------------------

    def lexical(
        self, kind: Kind, match: str, *, depth: int, also: Iterable[int] = (), terms: Sequence[str] = ()
    ) -> Ranking:
        """The best `depth` items by BM25, and whichever of `also` contain a word too. Higher is better.

        Of what is not among the best the rank is not known: it is 0. `terms` are the expressions of which
        `match` finds any. Where that finds very many items, those come first that contain one of the rarest
        terms: the score of the others is hardly worth what it costs.
        """
        matched: int = self._ask(_MATCHING_ROWS, kind, _NO_FILTER, match=match).get
        telling = self._telling(kind, terms) if matched > _MANY else None
        if telling is not None:
            rows = self._ask(_BEST_OF_SOME, kind, match=match, some=telling).fetchall()
            rows.sort(key=_best_first)
            if len(rows) >= depth:
                total = self._total(kind, match, matched)
                wanted = set(also).difference(row[0] for row in rows[:depth])
                further = self._scored(kind, match, wanted)
                return _ranking(rows[:depth], further, total)
        if matched <= max(depth, _AT_ONCE):
            rows = self._best_rows(kind, match, matched)
            total, wanted = len(rows), set(also)
            further = [row for row in rows[depth:] if row[0] in wanted]
        else:
            rows = self._best_rows(kind, match, depth)
            total = self._total(kind, match, matched)
            wanted = set(also).difference(row[0] for row in rows[:depth])
            further = self._scored(kind, match, wanted)
        return _ranking(rows[:depth], further, total)

    def _telling(self, kind: Kind, terms: Sequence[str]) -> str | None:
        """The expression of the rarest terms that find enough items; `None` when that takes all of them."""
        counted = sorted((self._frequency(kind, term), term) for term in terms)
        found = 0
        for number, (count, _) in enumerate(counted, start=1):
            found += count
            if found >= _TELLING and number < len(counted):
                return " OR ".join(term for _, term in counted[:number])
        return None

    def _total(self, kind: Kind, match: str, matched: int) -> int:
        """How many of the items that contain a word pass the filters."""
        hidden = self._hidden(kind)
        if hidden is None:
            count: int = self._ask(_TOTAL, kind, match=match).get
            return count
        left_out: int = self._ask(_MATCHING_OF, kind, match=match, items=_packed(hidden)).get if hidden else 0
        return matched - left_out

    def _hidden(self, kind: Kind) -> set[int] | None:
        """The items that the filters leave out, where these are few and can be told from the indexes."""
        condition = self.condition(kind)
        if not condition.plain:
            return None
        parts = [_ENDED[kind]]
        if self._scopes is not None:
            parts.append(f"SELECT i.pk FROM {_SCOPES[kind]} AS s CROSS JOIN {_UNSEEN[kind]}")  # noqa: S608
        statement = f"SELECT pk FROM ({' UNION ALL '.join(parts)}) LIMIT {_AT_ONCE + 1}"  # noqa: S608
        found = {pk for (pk,) in self._ask(statement, kind)}
        return found if len(found) <= _AT_ONCE else None

    def hides_nothing(self, kind: Kind) -> bool:
        """Whether everything of a kind is visible and holds; `False` where that cannot be told cheaply."""
        if kind not in self._hides_nothing:
            self._hides_nothing[kind] = self._hidden(kind) == set()
        return self._hides_nothing[kind]

    def _scored(self, kind: Kind, match: str, items: set[int]) -> list[_Row]:
        """Those of some items that contain a word, the best first."""
        if not items:
            return []
        rows: list[_Row] = self._ask(_ALSO, kind, match=match, also=_packed(sorted(items))).fetchall()
        return sorted(rows, key=_best_first)

    def _best_rows(self, kind: Kind, match: str, depth: int) -> list[_Row]:
        """The best rows, more than `depth` if there are more, and all that are as good as the last of these."""
        most = depth + _SLACK
        while True:
            rows: list[_Row] = self._ask(_BEST, kind, match=match, most=most).fetchall()
            if len(rows) < most or rows[-1][2] < rows[depth - 1][2]:
                return sorted(rows, key=_best_first)
            most *= 2

    def nearest(self, kind: Kind, vector: bytes, *, depth: int) -> list[Ranked]:
        """The `depth` items nearest by cosine of their best piece of text.

        Of many pieces only those with the nearest sketches are compared (`graphmem.store.sketches`).
        """
        scores = self._cosines_of_near(kind, vector, depth) if depth > 0 else {}
        if not scores:
            return []
        least = nlargest(depth, scores.values())[-1]
        near = {pk: score for pk, score in scores.items() if score >= least}
        those = _numbers(near)
        named: list[tuple[int, str]] = self._ask(_NAMED, kind, _NO_FILTER, those=those).fetchall()
        rows = sorted(((pk, id_, near[pk]) for pk, id_ in named), key=_best_first)
        return [Ranked(*row, rank) for rank, row in enumerate(rows[:depth], start=1)]

    def _cosines_of_near(self, kind: Kind, vector: bytes, depth: int) -> dict[int, float]:
        """At least `depth` items, where there are so many, with the cosine of the best of their near pieces."""
        pieces: int = self._ask(_PIECES, kind, _NO_FILTER, most=_FEW + 1).get
        if pieces <= _FEW or depth > NEAREST_LIMIT:
            return _best_of(self._ask(_NEAREST, kind, vector=vector))
        sketch = Sketcher(self.db, len(vector) // 4).of(vector)
        compared = max(CANDIDATES, 2 * depth)
        most = 2 * compared
        while True:
            near = self._ask(_BY_SKETCH, kind, sketch=sketch, most=most).fetchall()
            rows: list[tuple[int, float]] = []
            found: dict[int, float] = {}
            while len(rows) < len(near):
                further = near[len(rows) : compared]
                rows += zip((item for item, _ in further), self._cosines_of(vector, further), strict=True)
                found = _best_of(rows)
                # Where items have many pieces, the nearest may be of too few items.
                if len(found) >= 2 * depth and not _comes_late(rows, found, min(depth, _SURE)):
                    return found
                compared *= 2
            if len(near) < most or (len(found) >= 2 * depth and most >= _MOST):
                return found
            most *= 2

    def _cosines_of(self, vector: bytes, pieces: Sequence[tuple[int, int]]) -> Iterator[float]:
        """The cosines of pieces (item, number of the vector), in their order."""
        those = _numbers(one for _, one in pieces)
        rows = self._db.execute(_COSINES_OF, {"those": those, "vector": vector}).fetchall()
        return (cosine for (cosine,) in rows)

    def with_vectors(self, kind: Kind) -> int:
        """How many items have a vector."""
        return int(self._ask(_WITH_VECTORS, kind).get)

    def ids(self, kind: Kind, items: Iterable[int]) -> dict[int, str]:
        """The ids of those items that pass the filters."""
        rows = self._ask(_IDS, kind, items=_packed(items))
        return dict(rows)

    def cosines(self, kind: Kind, vector: bytes, items: Iterable[int]) -> dict[int, float]:
        """The cosine of the best piece of text of each of the items that have vectors."""
        return dict(self._ask(_COSINES, kind, _NO_FILTER, vector=vector, items=_packed(items)))

    def matched(self, kind: Kind, match: str, items: Iterable[int]) -> set[int]:
        """Which of the items a full-text expression finds."""
        return {pk for (pk,) in self._ask(_MATCHED, kind, _NO_FILTER, match=match, items=_packed(items))}

    def rarity(self, kind: Kind, match: str) -> float:
        """How telling an expression is: the logarithm of all rows over those it finds.

        Store-wide, from at most a thousand rows: beyond those the rate so far is taken for the rest.
        """
        found = self._frequency(kind, match)
        return math.log(1 + max(self._rows(kind), found, 1) / (found + 0.5))

    def _frequency(self, kind: Kind, match: str) -> int:
        """How many rows an expression finds, about."""
        if (kind, match) not in self._frequencies:
            found, last = self._ask(_FREQUENCY, kind, _NO_FILTER, match=match, sample=_SAMPLE).fetchone()
            if found == _SAMPLE:
                found = max(found, round(found * max(self._rows(kind), found) / max(last, 1)))
            self._frequencies[kind, match] = found
        return self._frequencies[kind, match]

    def _rows(self, kind: Kind) -> int:
        if kind not in self._row_counts:
            self._row_counts[kind] = int(self._ask(_ROWS, kind, _NO_FILTER).get)
        return self._row_counts[kind]

    # ---- vectors ----------------------------------------------------------------------------------

    def encoder(self) -> StoredEncoder | None:
        """The encoder of the store's vectors; `None` while it has none."""
        return current_encoder(self._db)

    @cached_property
    def has_vectors(self) -> bool:
        """Whether vectors can be searched on this connection; loads what that takes."""
        return has_encoder(self._db) and load_vectors(self._db)

    # ---- names ------------------------------------------------------------------------------------

    def names(self) -> Names:
        """The names of the entities in the visible scopes."""
        return Names(self._db, self.filters.scopes)

    @cached_property
    def _seen(self) -> str:
        """The condition of a visible entity."""
        holds = "i.state = 'active'" if self.filters.state == "active" else "1"
        return holds + ("" if self._scopes is None else f" AND {_IN_SCOPES}")

    # ---- elsewhere --------------------------------------------------------------------------------

    @property
    def sees_all(self) -> bool:
        """Whether there is no scope but those that are visible."""
        if self._scopes is None:
            return True
        others = "SELECT 1 FROM scope WHERE pk NOT IN (SELECT value FROM json_each(?)) LIMIT 1"
        return self._db.execute(others, (_packed(self._scopes),)).get is None

    def elsewhere(self, kind: Kind, match: str | None) -> tuple[int, set[int]]:
        """How many items other scopes hold that the other filters leave, and which scopes those are.

        With `match`, only those that it finds. Numbers only: nothing of another scope is told.
        """
        condition = self._compile(kind, elsewhere=True)
        if match is not None:
            condition = Condition(
                f"{condition.sql} AND {_MATCHING.format(table=_TABLES[kind].table)}",
                condition.binds | {"match": match},
            )
        count = self._ask(_COUNT, kind, condition).get
        where = _SCOPES_OF_MEMORIES if kind == MEMORY else _SCOPES_OF_OTHERS
        scopes = {pk for (pk,) in self._ask(where, kind, condition)}
        return count, scopes - set(self._scopes or ())

    # ---- items ------------------------------------------------------------------------------------

    def memories(self, items: Sequence[int]) -> dict[int, dict[str, Any]]:
        """The memories by row number, as hits show them; scopes and entities only where visible."""
        binds = {"items": _packed(items), "scopes": _packed(self._scopes or ())}
        about: dict[int, list[dict[str, str]]] = {}
        for pk, id_, name, kind, scope in self._db.execute(_ABOUT.format(seen=self._seen), binds):
            about.setdefault(pk, []).append(
                {"id": id_, "name": name, "kind": kind or UNKNOWN_KIND, "scope": scope}
            )
        found: dict[int, dict[str, Any]] = {}
        for row in self._db.execute(_MEMORIES, binds):
            pk, id_, content, title, type_, tags, scopes, source, position, valid_at, created_at, more = row
            found[pk] = {
                "id": id_,
                "content": content,
                "title": title,
                "memory_type": type_ or DEFAULT_MEMORY_TYPE,
                "scopes": self.visible_names(scopes),
                "tags": _list(tags),
                "about": list(dict.fromkeys(ref["name"] for ref in about.get(pk, []))),
                "about_refs": about.get(pk, []),
                "source": source if position is None else {"uri": source, "position": position},
                "valid_at": valid_at,
                "created_at": created_at,
                "properties": _mapping(more),
            }
        return found

    def shared_names(self, names: Iterable[str]) -> frozenset[str]:
        """Which of the names several visible entities have."""
        wanted = sorted(names)
        if not wanted:
            return frozenset()
        binds = {"names": _packed(wanted), "scopes": _packed(self._scopes or ())}
        return frozenset(name for (name,) in self._db.execute(_SHARED.format(seen=self._seen), binds))

    def visible_names(self, scope_set: int) -> list[str]:
        """The scopes of a set that the filters let through."""
        names = _list(self._db.execute("SELECT key FROM scope_set WHERE pk = ?", (scope_set,)).get)
        visible = self.filters.scopes
        return names if visible is None else [name for name in names if name in visible]

    def entities(self, items: Sequence[int]) -> dict[int, dict[str, Any]]:
        """The entities by row number."""
        keys = ("id", "name", "kind", "scope", "description", "aliases", "properties")
        found: dict[int, dict[str, Any]] = {}
        for pk, *values in self._db.execute(_ENTITIES, {"items": _packed(items)}):
            entity = dict(zip(keys, values, strict=True))
            entity["kind"] = entity["kind"] or UNKNOWN_KIND
            found[pk] = entity | {
                "aliases": _list(entity["aliases"]),
                "properties": _mapping(entity["properties"]),
            }
        return found

    def relations(self, items: Sequence[int]) -> dict[int, dict[str, Any]]:
        """The relations by row number."""
        keys = ("id", "subject", "predicate", "object", "fact", "scope", "weight", "valid_at", "created_at")
        found: dict[int, dict[str, Any]] = {}
        for pk, *values, more in self._db.execute(_RELATIONS, {"items": _packed(items)}):
            found[pk] = dict(zip(keys, values, strict=True)) | {"properties": _mapping(more)}
        return found


_NO_FILTER: Final = Condition("1", {})


def _ranking(best: Sequence[_Row], further: Sequence[_Row], total: int) -> Ranking:
    """The best rows with their ranks, and further ones whose rank is not known."""
    ranked = [Ranked(*row, rank) for rank, row in enumerate(best, start=1)]
    return Ranking(ranked + [Ranked(*row, 0) for row in further], total)


def _best_first(row: _Row) -> tuple[float, str]:
    return (-row[2], row[1])


def _best_of(rows: Iterable[tuple[int, float]]) -> dict[int, float]:
    """The best score of each item."""
    best: dict[int, float] = {}
    for item, score in rows:
        if score > best.get(item, -math.inf):
            best[item] = score
    return best


def _comes_late(rows: Sequence[tuple[int, float]], found: dict[int, float], count: int) -> bool:
    """Whether one of the nearest items stands near the end of the candidates, in the order of their sketches.

    Then there may be more beyond it. With real texts it hardly happens; vectors that are all about equally
    far from the query need more candidates.
    """
    least = nlargest(count, found.values())[-1]
    late = rows[round(_LATE * len(rows)) :]
    return any(score >= least and score == found[item] for item, score in late)


def _numbers(values: Iterable[int]) -> Any:
    """Numbers that a statement reads as the table `carray`."""
    import apsw

    # An array of nothing cannot be bound; no row has the number -1.
    return apsw.carray(array("q", values) or array("q", [-1]))
