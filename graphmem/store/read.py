"""Reading items back: pages of memories and entities, and one item with everything the store says of it.

What is visible is judged by the same conditions as in a search. Every page has a total, and an order that
ends in the id, so that pages are disjoint and add up.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from graphmem.names import folded, words
from graphmem.records import DEFAULT_MEMORY_TYPE, ENTITY, KINDS, MEMORY, RELATION, UNKNOWN_KIND
from graphmem.store.filters import Condition, Filters, Kind
from graphmem.store.search import Searcher

if TYPE_CHECKING:
    import apsw

Fields = dict[str, Any]

_NUMBERS: Final[dict[str, int]] = {kind: number for number, kind in enumerate(KINDS)}
_ABOUT, _MENTION = 0, 1

# ---- pages; {condition} is one of `Searcher` over a row `i` -----------------------------------------

_NEWEST_FIRST: Final = "ifnull(i.valid_at, i.created_at) DESC, i.source, i.position, i.id"
_IN_SOURCE: Final = "i.position IS NULL, i.position, ifnull(i.valid_at, i.created_at), i.id"
_MEMORIES: Final = """
SELECT i.pk FROM memory AS i WHERE {condition} ORDER BY {order} LIMIT :limit OFFSET :offset
"""
_ENTITIES: Final = """
SELECT i.pk FROM entity AS i JOIN scope AS s ON s.pk = i.scope WHERE {condition}
ORDER BY i.name COLLATE NOCASE, i.name, i.kind_key, s.name, i.id LIMIT :limit OFFSET :offset
"""
_RELATIONS: Final = """
SELECT i.pk FROM relation AS i JOIN entity AS a ON a.pk = i.subject JOIN entity AS b ON b.pk = i.object
WHERE {condition} ORDER BY a.name, i.predicate_key, b.name, i.valid_at, i.id LIMIT :limit OFFSET :offset
"""
_COUNT: Final = "SELECT count(*) FROM {table} AS i WHERE {condition}"
_NAMED: Final = """i.pk IN (
  SELECT entity FROM name_key WHERE instr(key, :folded) OR instr(replace(key, ' ', ''), :joined)
)"""
_LINKED: Final = "i.pk IN (SELECT memory FROM memory_link WHERE entity = :linked)"
_ENDING: Final = "(i.subject = :linked OR i.object = :linked)"
_STATING: Final = "i.pk IN (SELECT relation FROM stated_by WHERE memory = :memory)"
_MORE_OF_ENTITIES: Final = """
SELECT pk, stub, state, updated_at FROM entity WHERE pk IN (SELECT value FROM json_each(?))
"""

# ---- one item ---------------------------------------------------------------------------------------

_BY_ID: Final = """
SELECT i.pk, i.id FROM {table} AS i WHERE {condition} AND i.pk IN (
  SELECT pk FROM {table} WHERE id = :id
  UNION ALL SELECT item FROM id_alias WHERE kind = {number} AND id = :id
)
"""
_MEMORY: Final = """
SELECT i.id, i.content, i.title, i.memory_type, i.importance, i.tags, i.scope_set, i.source, i.position,
  i.properties, i.state, i.archived_by, i.created_at, i.updated_at, i.valid_at, i.invalid_at, i.expired_at,
  i.last_accessed_at, i.access_count, i.batch FROM memory AS i WHERE i.pk = ?
"""
_ENTITY: Final = """
SELECT i.id, i.name, i.kind, s.name, i.description, i.aliases, i.properties, i.state, i.archived_by, i.stub,
  i.created_at, i.updated_at, i.batch FROM entity AS i JOIN scope AS s ON s.pk = i.scope WHERE i.pk = ?
"""
_RELATION: Final = """
SELECT i.id, s.name, i.subject, i.predicate, i.object, i.fact, i.weight, i.properties, i.state,
  i.archived_by, i.created_at, i.updated_at, i.valid_at, i.invalid_at, i.expired_at, i.batch
FROM relation AS i JOIN scope AS s ON s.pk = i.scope WHERE i.pk = ?
"""
_END: Final = """
SELECT i.id, i.name, i.kind, s.name FROM entity AS i JOIN scope AS s ON s.pk = i.scope WHERE i.pk = ?
"""
_LINKS: Final = """
SELECT i.id, i.name, i.kind, s.name FROM memory_link AS l JOIN entity AS i ON i.pk = l.entity
JOIN scope AS s ON s.pk = i.scope
WHERE l.memory = :memory AND l.role = :role AND {condition} ORDER BY i.name, i.kind_key, s.name, i.id
"""
_ID_ALIASES: Final = "SELECT id FROM id_alias WHERE item = ? AND kind = ? ORDER BY id"
_REDIRECTS: Final = """
SELECT r.name, r.kind, s.name FROM redirect AS r JOIN scope AS s ON s.pk = r.scope
WHERE r.entity = ? ORDER BY s.name, r.name, r.kind_key
"""
# A memory that is stated before it arrives is told by its id, one that is not visible here is not.
_STATING_HERE: Final = """
FROM stated_by AS t WHERE t.relation = :pk
  AND NOT EXISTS (SELECT 1 FROM memory AS i WHERE i.id = t.memory AND NOT ({condition}))
"""
_STATED_BY: Final = f"SELECT t.memory {_STATING_HERE} ORDER BY t.memory LIMIT :limit OFFSET :offset"
_COUNT_STATED_BY: Final = f"SELECT count(*) {_STATING_HERE}"
_ORIGINS: Final = """
SELECT o.uri, o.format, c.line, c.taken_at, b.id FROM contribution AS c JOIN origin AS o ON o.pk = c.origin
LEFT JOIN batch AS b ON b.pk = c.batch
WHERE c.item = :pk AND c.kind = :kind ORDER BY c.taken_at, o.uri, c.line, c.digest LIMIT :limit OFFSET :offset
"""
_COUNT_ORIGINS: Final = "SELECT count(*) FROM contribution WHERE item = :pk AND kind = :kind"
_VERSIONS: Final = "SELECT count(*) FROM version WHERE item = ? AND kind = ?"
_PIECES: Final = "SELECT count(*) FROM chunk WHERE item = ? AND kind = ?"
_BATCH: Final = "SELECT id, at, command FROM batch WHERE pk = ?"


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of an ordered answer, and how many it has in all."""

    items: list[Any]
    total: int
    offset: int = 0

    @property
    def truncated(self) -> bool:
        """Whether there is more after these."""
        return self.offset + len(self.items) < self.total

    def as_dict(self) -> Fields:
        """The page as it stands in JSON inside an item."""
        return {"total": self.total, "truncated": self.truncated, "items": self.items}


class ItemRef(NamedTuple):
    """An item by kind and row number; `id` is its own id, whichever it was found by."""

    kind: Kind
    pk: int
    id: str


def _loaded(text: str | None, empty: Any) -> Any:
    return json.loads(text) if text else empty


def _named(row: tuple[Any, ...]) -> Fields:
    id_, name, kind, scope = row
    return {"id": id_, "name": name, "kind": kind or UNKNOWN_KIND, "scope": scope}


class Reader:
    """The questions of one reading, asked on one connection under one set of filters."""

    def __init__(self, db: apsw.Connection, filters: Filters) -> None:
        self._db: Any = db
        self._searcher = Searcher(db, filters)
        self._filters = filters

    # ---- pages ------------------------------------------------------------------------------------

    def memories(self, limit: int, offset: int = 0) -> Page:
        """The memories that the filters leave, newest first; those of one source in their order in it."""
        order = _NEWEST_FIRST if self._filters.source is None else _IN_SOURCE
        return self._memories(self._condition(MEMORY), order, limit, offset)

    def _memories(self, condition: Condition, order: str, limit: int, offset: int) -> Page:
        pks = self._pks(_MEMORIES, condition, limit, offset, order=order)
        found = self._searcher.memories(pks)
        states = dict(
            self._db.execute(
                "SELECT pk, state FROM memory WHERE pk IN (SELECT value FROM json_each(?))",
                (json.dumps(pks),),
            )
        )
        items = [found[pk] | {"state": states[pk]} for pk in pks]
        return Page(items, self._count("memory", condition), offset)

    def entities(self, limit: int, offset: int = 0, *, match: str | None = None, stubs: bool = False) -> Page:
        """The entities that the filters leave by name, each with how many memories and relations it has.

        With `match`, those with this text in their name or an alias, blind to case and separators; with
        `stubs`, those that are only referred to.
        """
        condition = self._condition(ENTITY)
        if match is not None:
            condition = _and(condition, _NAMED, folded=folded(match), joined=words(match).replace(" ", ""))
        if stubs:
            condition = _and(condition, "i.stub = 1")
        pks = self._pks(_ENTITIES, condition, limit, offset)
        found = self._searcher.entities(pks)
        more = {row[0]: row[1:] for row in self._db.execute(_MORE_OF_ENTITIES, (json.dumps(pks),))}
        items = []
        for pk in pks:
            stub, state, updated = more[pk]
            items.append(
                found[pk]
                | {"stub": bool(stub), "state": state, "updated_at": updated}
                | {"memories": self._count("memory", self._linked(pk)),
                   "relations": self._count("relation", self._ending(pk))}
            )  # fmt: skip
        return Page(items, self._count("entity", condition), offset)

    def relations(self, limit: int, offset: int = 0) -> Page:
        """The relations that the filters leave, by the names of their ends."""
        return self._relations(self._condition(RELATION), limit, offset)

    def elsewhere(self, kind: Kind) -> tuple[int, int]:
        """How many items other scopes hold that the other filters leave, and in how many scopes."""
        if self._filters.scopes is None:
            return 0, 0
        count, scopes = self._searcher.elsewhere(kind, None)
        return count, len(scopes)

    def _condition(self, kind: Kind) -> Condition:
        return self._searcher.condition(kind)

    def _linked(self, entity: int) -> Condition:
        """The visible memories of an entity."""
        return _and(self._holding.condition(MEMORY), _LINKED, linked=entity)

    def _ending(self, entity: int) -> Condition:
        """The visible relations of an entity."""
        return _and(self._holding.condition(RELATION), _ENDING, linked=entity)

    @cached_property
    def _holding(self) -> Searcher:
        """What is visible and holds now, whatever the other filters are."""
        return Searcher(self._db, Filters(self._filters.now, self._filters.scopes))

    @cached_property
    def _anything(self) -> Searcher:
        """What is visible, in any state."""
        return Searcher(self._db, Filters(self._filters.now, self._filters.scopes, state="all"))

    def _pks(self, sql: str, condition: Condition, limit: int, offset: int, **parts: str) -> list[int]:
        rows = self._db.execute(
            sql.format(condition=condition.sql, **parts), condition.binds | {"limit": limit, "offset": offset}
        )
        return [pk for (pk,) in rows]

    def _count(self, table: str, condition: Condition) -> int:
        return int(self._db.execute(_COUNT.format(table=table, condition=condition.sql), condition.binds).get)

    # ---- one item ---------------------------------------------------------------------------------

    def by_id(self, id_: str, kinds: Iterable[Kind] = (MEMORY, ENTITY, RELATION)) -> list[ItemRef]:
        """The visible items with this id or id alias, in any state, in the order of the kinds."""
        found = []
        for kind in kinds:
            condition = self._anything.condition(kind)
            sql = _BY_ID.format(table=kind, number=_NUMBERS[kind], condition=condition.sql)
            found += [
                ItemRef(kind, pk, own) for pk, own in self._db.execute(sql, condition.binds | {"id": id_})
            ]
        return found

    def item(self, ref: ItemRef, limit: int, offset: int = 0) -> Fields:
        """Everything the store says of an item; lists that may be long are pages of `limit`.

        Memories and relations are listed where they hold now.
        """
        read = {MEMORY: self._memory, ENTITY: self._entity, RELATION: self._relation}[ref.kind]
        number = _NUMBERS[ref.kind]
        fields = {"type": ref.kind} | read(ref.pk, limit, offset)
        made = self._db.execute(_BATCH, (fields.pop("batch"),)).fetchone()
        binds = {"pk": ref.pk, "kind": number, "limit": limit, "offset": offset}
        keys = ("uri", "format", "line", "taken_at", "batch")
        origins = [dict(zip(keys, row, strict=True)) for row in self._db.execute(_ORIGINS, binds)]
        for one in origins:
            one["uri"] = one["uri"] or None
            one["line"] = one["line"] or None
        return fields | {
            "id_aliases": [id_ for (id_,) in self._db.execute(_ID_ALIASES, (ref.pk, number))],
            "origins": Page(origins, self._number(_COUNT_ORIGINS, binds), offset).as_dict(),
            "versions": self._number(_VERSIONS, (ref.pk, number)),
            "batch": None if made is None else dict(zip(("id", "at", "command"), made, strict=True)),
            "vectors": self._number(_PIECES, (ref.pk, number)),
        }

    def _number(self, sql: str, binds: Any) -> int:
        return int(self._db.execute(sql, binds).get)

    def _memory(self, pk: int, limit: int, offset: int) -> Fields:
        (id_, content, title, type_, importance, tags, scope_set, source, position, properties, state, by,
         created, updated, valid, invalid, expired, accessed, count,
         batch) = self._row(_MEMORY, pk)  # fmt: skip
        stating = _and(self._holding.condition(RELATION), _STATING, memory=id_)
        return {
            "id": id_, "content": content, "title": title, "memory_type": type_ or DEFAULT_MEMORY_TYPE,
            "importance": importance, "tags": _loaded(tags, []),
            "scopes": self._searcher.visible_names(scope_set),
            "about": self._links(pk, _ABOUT), "mentions": self._links(pk, _MENTION),
            "source": source if position is None else {"uri": source, "position": position},
            "properties": _loaded(properties, {}), "state": state, "archived_by": by, "created_at": created,
            "updated_at": updated, "last_accessed_at": accessed, "access_count": count, "valid_at": valid,
            "invalid_at": invalid, "expired_at": expired, "batch": batch,
            "relations": self._relations(stating, limit, offset).as_dict(),
        }  # fmt: skip

    def _entity(self, pk: int, limit: int, offset: int) -> Fields:
        (id_, name, kind, scope, description, aliases, properties, state, by, stub, created, updated,
         batch) = self._row(_ENTITY, pk)  # fmt: skip
        redirects = [
            {"name": old, "kind": old_kind or UNKNOWN_KIND, "scope": of}
            for old, old_kind, of in self._db.execute(_REDIRECTS, (pk,))
            if self._filters.scopes is None or of in self._filters.scopes
        ]
        return {
            "id": id_, "name": name, "kind": kind or UNKNOWN_KIND, "scope": scope, "description": description,
            "aliases": _loaded(aliases, []), "properties": _loaded(properties, {}), "state": state,
            "archived_by": by, "stub": bool(stub), "created_at": created, "updated_at": updated,
            "batch": batch, "redirects": redirects,
            "memories": self._memories(self._linked(pk), _NEWEST_FIRST, limit, offset).as_dict(),
            "relations": self._relations(self._ending(pk), limit, offset).as_dict(),
        }  # fmt: skip

    def _relation(self, pk: int, limit: int, offset: int) -> Fields:
        (id_, scope, subject, predicate, object_, fact, weight, properties, state, by, created, updated,
         valid, invalid, expired, batch) = self._row(_RELATION, pk)  # fmt: skip
        visible = self._anything.condition(MEMORY)
        binds = visible.binds | {"pk": pk, "limit": limit, "offset": offset}
        stated = [memory for (memory,) in self._db.execute(_STATED_BY.format(condition=visible.sql), binds)]
        of_all = self._number(_COUNT_STATED_BY.format(condition=visible.sql), binds)
        return {
            "id": id_, "scope": scope, "subject": _named(self._row(_END, subject)), "predicate": predicate,
            "object": _named(self._row(_END, object_)), "fact": fact, "weight": weight,
            "properties": _loaded(properties, {}), "state": state, "archived_by": by, "created_at": created,
            "updated_at": updated, "valid_at": valid, "invalid_at": invalid, "expired_at": expired,
            "batch": batch,
            "stated_by": Page(stated, of_all, offset).as_dict(),
        }  # fmt: skip

    def _row(self, sql: str, pk: int) -> tuple[Any, ...]:
        row: tuple[Any, ...] = self._db.execute(sql, (pk,)).fetchone()
        return row

    def _links(self, memory: int, role: int) -> list[Fields]:
        condition = self._anything.condition(ENTITY)
        rows = self._db.execute(
            _LINKS.format(condition=condition.sql), condition.binds | {"memory": memory, "role": role}
        )
        return [_named(row) for row in rows]

    def _relations(self, condition: Condition, limit: int, offset: int) -> Page:
        pks = self._pks(_RELATIONS, condition, limit, offset)
        found = self._searcher.relations(pks)
        return Page([found[pk] for pk in pks], self._count("relation", condition), offset)


def _and(condition: Condition, sql: str, **binds: Any) -> Condition:
    return Condition(f"{condition.sql} AND {sql}", condition.binds | binds)
