"""The filters of a search as SQL: one condition for each kind of item, which stands inside every query.

So whatever is filtered out never takes a place.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self, TypeAlias

from graphmem.names import kind_key
from graphmem.records import DEFAULT_MEMORY_TYPE, ENTITY, KINDS, MEMORY, RELATION
from graphmem.store.connection import translated
from graphmem.store.warm import remembered

if TYPE_CHECKING:
    import apsw

Kind: TypeAlias = Literal["memory", "entity", "relation"]
State: TypeAlias = Literal["active", "archived", "all"]

AT_ONCE: Final = 1_500
"""So many items are read in one go."""


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


class Table(NamedTuple):
    """How one kind of item is stored and searched."""

    number: int
    table: str
    columns: tuple[str, ...]
    """Of its full-text table."""
    double: tuple[str, ...]
    """Those that count double: names, titles and context."""
    holds: str
    filters: dict[str, str]

    @property
    def weights(self) -> str:
        """What its columns count, as `bm25` takes it."""
        return ", ".join("2" if column in self.double else "1" for column in self.columns)


TABLES: Final[dict[str, Table]] = {
    ENTITY: Table(
        KINDS.index(ENTITY),
        "entity",
        ("names", "description", "parts"),
        ("names",),
        "i.state = 'active'",
        _ENTITY,
    ),
    MEMORY: Table(
        KINDS.index(MEMORY),
        "memory",
        ("content", "title", "context", "parts"),
        ("title", "context"),
        _HOLDS,
        _MEMORY,
    ),
    RELATION: Table(KINDS.index(RELATION), "relation", ("fact", "parts"), (), _HOLDS, _RELATION),
}

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


_ENDS: Final = " UNION ".join(
    f"SELECT i.{end} FROM {table} AS i WHERE {_MAY_HAVE_ENDED} AND i.{end} IS NOT NULL"  # noqa: S608
    for table in (MEMORY, RELATION)
    for end in ("invalid_at", "expired_at")
)
_MOST_ENDS: Final = 10_000
_MOST_MASKS: Final = 30
"""So many masks are remembered, of one byte for each item."""


def packed(values: Iterable[object]) -> str:
    """Values as the JSON that `json_each` reads."""
    return json.dumps(list(values))


NO_FILTER: Final = Condition("1", {})


class Filtered:
    """A store seen through filters, on one connection."""

    def __init__(self, db: apsw.Connection, filters: Filters) -> None:
        self._db: Any = db
        self.db = db
        self.filters = filters
        self._forget()

    def _forget(self) -> None:
        """Forgets what was found out about the store, which may be another one now."""
        self._conditions: dict[str, Condition] = {}
        self._hidden: dict[str, set[int] | None] = {}
        self._loosened: dict[str, Self] = {}
        self._masks: dict[str, bytearray | None] = {}
        for name in ("scopes", "seen", "standing"):
            self.__dict__.pop(name, None)

    def loosened(self, state: State = "active") -> Self:
        """The same store with nothing but scopes and what holds as its filters."""
        filters = Filters(self.filters.now, self.filters.scopes, state=state)
        if filters == self.filters:
            return self
        if state not in self._loosened:
            self._loosened[state] = type(self)(self.db, filters)
        return self._loosened[state]

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """A time in which every question is answered from the same state of the store."""
        with translated(self._db.filename or ":memory:"):
            if self._db.in_transaction:
                yield
                return
            self._db.execute("BEGIN DEFERRED")
            self._forget()
            try:
                yield
            finally:
                if self._db.in_transaction:  # some errors end it: a full disk, a damaged file
                    self._db.execute("ROLLBACK")

    # ---- filters ----------------------------------------------------------------------------------

    @cached_property
    def scopes(self) -> list[int] | None:
        """The numbers of the visible scopes that the store has."""
        if self.filters.scopes is None:
            return None
        rows = self._db.execute(
            "SELECT pk FROM scope WHERE name IN (SELECT value FROM json_each(?))",
            (packed(self.filters.scopes),),
        )
        return [pk for (pk,) in rows]

    def condition(self, kind: Kind) -> Condition:
        """The filters as SQL for one kind of item."""
        if kind not in self._conditions:
            self._conditions[kind] = self.compile(kind)
        return self._conditions[kind]

    def within(self, kind: Kind) -> str:
        """The visible scopes alone as SQL for one kind of item; its parameters are those of the condition."""
        return "1" if self.scopes is None else TABLES[kind].filters["scopes"]

    def compile(self, kind: Kind, *, elsewhere: bool = False) -> Condition:
        """The condition; with `elsewhere`, of what other scopes hold."""
        filters, table = self.filters, TABLES[kind]
        binds: dict[str, Any] = {"now": filters.now, "observation": DEFAULT_MEMORY_TYPE}
        seen = _SEEN_ENTITIES
        parts = [_STATES.get(filters.state, table.holds)]
        sketched = [_SKETCH_STATES.get(filters.state, _SKETCH_HOLDS)]
        wanted: set[str] = set()
        if self.scopes is not None:
            within = table.filters["scopes"]
            parts.append(f"NOT {within}" if elsewhere else within)
            if not elsewhere:
                seen += f" AND {_IN_SCOPES}"
            binds["sets"] = packed(self._scope_sets(self.scopes))
            binds["scopes"] = packed(self.scopes)
            sketched.append(within.replace("i.scope_set", "s.scope").replace("i.scope", "s.scope"))
        if filters.kinds:
            wanted.add("kinds")
            binds["kinds"] = packed(kind_key(one) for one in filters.kinds)
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
                binds[bind] = packed(values)
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
            (packed(scopes),),
        )
        return [pk for (pk,) in rows]

    def ask(
        self,
        statement: str,
        kind: Kind,
        condition: Condition | None = None,
        **binds: Any,
    ) -> Any:
        """The rows of a statement about one kind, with its table and the condition of the filters filled in."""
        table = TABLES[kind]
        condition = condition or self.condition(kind)
        sql = statement.format(
            table=table.table,
            number=table.number,
            weights=table.weights,
            condition=condition.sql,
            sketched=condition.sketched,
        )
        return self._db.execute(sql, condition.binds | binds)

    def hidden(self, kind: Kind) -> set[int] | None:
        """The items that the filters leave out, where these are few and can be told from the indexes."""
        if kind not in self._hidden:
            self._hidden[kind] = self._left_out(kind)
        return self._hidden[kind]

    def _left_out(self, kind: Kind) -> set[int] | None:
        condition = self.condition(kind)
        if not condition.plain:
            return None
        parts = [_ENDED[kind]]
        if self.scopes is not None:
            parts.append(f"SELECT i.pk FROM {_SCOPES[kind]} AS s CROSS JOIN {_UNSEEN[kind]}")  # noqa: S608
        statement = f"SELECT pk FROM ({' UNION ALL '.join(parts)}) LIMIT {AT_ONCE + 1}"  # noqa: S608
        rows = self.ask(statement, kind).fetchall()
        # Rows are counted and not items: one that ended and is of another scope too is there twice.
        return {pk for (pk,) in rows} if len(rows) <= AT_ONCE else None

    # ---- what is remembered of them -----------------------------------------------------------------

    @cached_property
    def standing(self) -> tuple[Hashable, ...] | None:
        """What decides, in a store as it is, which items are seen; `None` where that is not scopes and time alone.

        Of time it is between which two ends of items the present lies.
        """
        if self.filters != Filters(self.filters.now, self.filters.scopes):
            return None
        kept = remembered(self.db)
        if "ends" not in kept:
            ends = {end for (end,) in self._db.execute(_ENDS)}
            kept["ends"] = sorted(ends) if len(ends) <= _MOST_ENDS else None
        if kept["ends"] is None:
            return None
        return (
            None if self.scopes is None else tuple(self.scopes),
            bisect_right(kept["ends"], self.filters.now),
        )

    def mask(self, kind: Kind) -> bytearray | None:
        """For each number of a kind 1 where the item passes; `None` where more than scopes and time decides."""
        if kind not in self._masks:
            self._masks[kind] = self._remembered_mask(kind)
        return self._masks[kind]

    def _remembered_mask(self, kind: Kind) -> bytearray | None:
        standing = self.standing
        if standing is None:
            return None
        masks: dict[tuple[Hashable, ...], bytearray] = remembered(self.db).setdefault("masks", {})
        key = (kind, *standing)
        if key not in masks:
            if len(masks) >= _MOST_MASKS:
                masks.clear()
            masks[key] = self._masked(kind)
        return masks[key]

    def _masked(self, kind: Kind) -> bytearray:
        highest: int = self.ask("SELECT ifnull(max(pk), 0) FROM {table}", kind, NO_FILTER).get
        mask = bytearray(b"\0" if self.scopes is not None else b"\1") * (highest + 1)
        if self.scopes is not None:
            visible = f"SELECT i.pk FROM {{table}} AS i WHERE {TABLES[kind].filters['scopes']}"  # noqa: S608
            for (pk,) in self.ask(visible, kind):
                mask[pk] = 1
        for (pk,) in self.ask(_ENDED[kind], kind):
            mask[pk] = 0
        return mask

    def hides_nothing(self, kind: Kind) -> bool:
        """Whether everything of a kind is visible and holds; `False` where that cannot be told cheaply."""
        return self.hidden(kind) == set()

    @property
    def sees_all(self) -> bool:
        """Whether there is no scope but those that are visible."""
        if self.scopes is None:
            return True
        others = "SELECT 1 FROM scope WHERE pk NOT IN (SELECT value FROM json_each(?)) LIMIT 1"
        return self._db.execute(others, (packed(self.scopes),)).get is None

    @cached_property
    def seen(self) -> str:
        """The condition of a visible entity."""
        holds = "i.state = 'active'" if self.filters.state == "active" else "1"
        return holds + ("" if self.scopes is None else f" AND {_IN_SCOPES}")
