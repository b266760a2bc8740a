"""Rows changed by hand: what an act of a person does to items, links and identities."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from graphmem.store.removal import keep_last, remove_items
from graphmem.store.sets import Scopes
from graphmem.store.write import ABOUT, COLUMNS, ENTITY, MEMORY, MENTION, TABLES, Row, encoded

if TYPE_CHECKING:
    import apsw

_UPDATE: Final = tuple(
    f"UPDATE {table} SET {', '.join(f'{column} = ?' for column in columns[1:])} WHERE pk = ?"  # noqa: S608
    for table, columns in zip(TABLES, COLUMNS, strict=True)
)
_SAME_ENTITY: Final = "SELECT pk FROM entity WHERE scope = ? AND name = ? AND kind_key = ?"
_ENDS: Final = "SELECT pk FROM relation WHERE subject = ?1 OR object = ?1 ORDER BY pk"
_LINKED: Final = "SELECT DISTINCT memory FROM memory_link WHERE entity = ? ORDER BY memory"
_TWIN: Final = """
SELECT pk FROM relation WHERE subject = ? AND object = ? AND predicate_key = ? AND scope = ?
  AND ifnull(valid_at, '') = ? AND pk <> ?
"""
_OTHERS_ABOUT: Final = """
SELECT 1 FROM memory_link AS l JOIN entity AS e ON e.pk = l.entity
WHERE l.memory = ? AND l.role = 0 AND l.entity <> ? AND e.state = 'active' LIMIT 1
"""
_ONLY_ABOUT: Final = """
SELECT l.memory FROM memory_link AS l JOIN memory AS m ON m.pk = l.memory
WHERE l.entity = ?1 AND l.role = 0 AND m.state = 'active' AND NOT EXISTS (
  SELECT 1 FROM memory_link AS o JOIN entity AS e ON e.pk = o.entity
  WHERE o.memory = l.memory AND o.role = 0 AND o.entity <> ?1 AND e.state = 'active'
) ORDER BY l.memory
"""
_ALL_ABOUT: Final = """
SELECT l.memory FROM memory_link AS l JOIN memory AS m ON m.pk = l.memory
WHERE l.entity = ? AND l.role = 0 AND m.state = 'active' ORDER BY l.memory
"""
_ACTIVE_ENDS: Final = """
SELECT pk FROM relation WHERE (subject = ?1 OR object = ?1) AND state = 'active' ORDER BY pk
"""


_IN_SCOPE: Final = (
    "SELECT pk FROM entity WHERE scope = ? ORDER BY pk",
    (
        "SELECT m.pk FROM memory AS m JOIN scope_member AS s ON s.scope_set = m.scope_set WHERE s.scope = ? "
        "ORDER BY m.pk"
    ),
    "SELECT pk FROM relation WHERE scope = ? ORDER BY pk",
)
_NAMESAKES: Final = """
SELECT DISTINCT e.name FROM entity AS e JOIN entity AS o ON o.name = e.name AND o.kind_key = e.kind_key
WHERE e.scope = ? AND o.scope = ? ORDER BY e.name
"""


class Seen(NamedTuple):
    """What decides whether an act may touch an item: its scopes and state."""

    scopes: tuple[str, ...]
    state: str


class Editor:
    """Statements of acts, inside a transaction. Versions are kept by the caller."""

    def __init__(self, db: apsw.Connection, scopes: Scopes) -> None:
        self._db: Any = db
        self._scopes = scopes

    def find(self, kind: int, id_: str) -> int | None:
        """The item that has this id or this id alias."""
        table = TABLES[kind]
        found: int | None = self._db.execute(
            f"SELECT pk FROM {table} WHERE id = ?1 UNION ALL "  # noqa: S608
            "SELECT item FROM id_alias WHERE kind = ?2 AND id = ?1 LIMIT 1",
            (id_, kind),
        ).get
        return found

    def is_there(self, kind: int, pk: int) -> bool:
        """Whether there is an item of that number."""
        return self._db.execute(f"SELECT 1 FROM {TABLES[kind]} WHERE pk = ?", (pk,)).get is not None  # noqa: S608

    def id(self, kind: int, pk: int) -> str:
        """The id of an item."""
        found: str = self._db.execute(f"SELECT id FROM {TABLES[kind]} WHERE pk = ?", (pk,)).get  # noqa: S608
        return found

    def seen(self, kind: int, pk: int) -> Seen:
        """The scopes and the state of an item."""
        column = "scope_set" if kind == MEMORY else "scope"
        scope, state = self._db.execute(
            f"SELECT {column}, state FROM {TABLES[kind]} WHERE pk = ?",  # noqa: S608
            (pk,),
        ).fetchone()
        names = self._scopes.set_names(scope) if kind == MEMORY else [self._scopes.name(scope)]
        return Seen(tuple(names), state)

    def put(self, kind: int, row: Row) -> None:
        """Replaces the columns of an item's row; nothing that is derived from them."""
        self._db.execute(_UPDATE[kind], (*encoded(kind, row)[1:], row["pk"]))

    def set_links(self, memory: int, about: Iterable[int], mentions: Iterable[int]) -> None:
        """Makes these the links of a memory; those that stay are not touched."""
        wanted = {(pk, ABOUT) for pk in about} | {(pk, MENTION) for pk in mentions}
        held = set(self._db.execute("SELECT entity, role FROM memory_link WHERE memory = ?", (memory,)))
        for entity, role in sorted(held - wanted):
            self._db.execute(
                "DELETE FROM memory_link WHERE memory = ? AND entity = ? AND role = ?", (memory, entity, role)
            )
        for entity, role in sorted(wanted - held):
            self._db.execute("INSERT INTO memory_link VALUES (?, ?, ?)", (memory, entity, role))

    def set_stated_by(self, relation: int, memories: Iterable[str]) -> None:
        """Makes these the memories that state a relation."""
        wanted = set(memories)
        sql = "SELECT memory FROM stated_by WHERE relation = ?"
        held = {id_ for (id_,) in self._db.execute(sql, (relation,))}
        for id_ in sorted(held - wanted):
            self._db.execute("DELETE FROM stated_by WHERE relation = ? AND memory = ?", (relation, id_))
        for id_ in sorted(wanted - held):
            self._db.execute("INSERT INTO stated_by VALUES (?, ?)", (relation, id_))

    # ---- identities -------------------------------------------------------------------------------

    def same_entity(self, scope: int, name: str, key: str) -> int | None:
        """The entity of an identity, redirects left aside."""
        found: int | None = self._db.execute(_SAME_ENTITY, (scope, name, key)).get
        return found

    def redirect(self, scope: int, name: str, kind: str | None, key: str, entity: int) -> None:
        """Lets a former identity lead to an entity."""
        self._db.execute(
            "INSERT INTO redirect VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET entity = excluded.entity",
            (scope, name, kind, key, entity),
        )

    def drop_redirect(self, scope: int, name: str, key: str) -> int | None:
        """Lets a former identity lead nowhere; the entity that it led to."""
        found: int | None = self._db.execute(
            "DELETE FROM redirect WHERE scope = ? AND name = ? AND kind_key = ? RETURNING entity",
            (scope, name, key),
        ).get
        return found

    def move_names(self, old: int, new: int) -> None:
        """Lets the former names and ids of an entity lead to another."""
        self._db.execute("UPDATE redirect SET entity = ? WHERE entity = ?", (new, old))
        self.move_ids(ENTITY, old, new)

    def move_ids(self, kind: int, old: int, new: int) -> None:
        """Lets the ids of an item lead to another, its own id included: the item must go afterwards."""
        self._db.execute("UPDATE id_alias SET item = ? WHERE kind = ? AND item = ?", (new, kind, old))
        self._db.execute(
            f"INSERT OR IGNORE INTO id_alias SELECT ?, id, ? FROM {TABLES[kind]} WHERE pk = ?",  # noqa: S608
            (kind, new, old),
        )

    def move_contributions(self, kind: int, old: int, new: int) -> None:
        """Gives the contributions of an item to another."""
        self._db.execute("UPDATE contribution SET item = ? WHERE kind = ? AND item = ?", (new, kind, old))

    def write_said(self, kind: int, item: int, digest: bytes, said: str) -> None:
        """Writes out what contributions of that digest said, where the item's own fields stood for it."""
        self._db.execute(
            "UPDATE contribution SET said = ? WHERE item = ? AND kind = ? AND digest = ? AND said IS NULL",
            (said, item, kind, digest),
        )

    def rewrite_said(self, kind: int, item: int, digest: bytes, said: str) -> None:
        """Replaces what contributions of that digest said about an item."""
        self._db.execute(
            "UPDATE contribution SET said = ? WHERE item = ? AND kind = ? AND digest = ?",
            (said, item, kind, digest),
        )

    def remove(self, kind: int, pk: int) -> None:
        """Removes an item with all that belongs to it."""
        keep_last(self._db)
        remove_items(self._db, kind, [pk])

    # ---- what hangs on what -----------------------------------------------------------------------

    def relations_of(self, entity: int, *, active: bool = False) -> list[int]:
        """The relations that have the entity at an end."""
        return [pk for (pk,) in self._db.execute(_ACTIVE_ENDS if active else _ENDS, (entity,))]

    def memories_linked(self, entity: int) -> list[int]:
        """The memories that are about the entity or mention it."""
        return [pk for (pk,) in self._db.execute(_LINKED, (entity,))]

    def memories_only_about(self, entity: int) -> list[int]:
        """The active memories that are about the entity and about no other active one."""
        return [pk for (pk,) in self._db.execute(_ONLY_ABOUT, (entity,))]

    def memories_about(self, entity: int) -> list[int]:
        """The active memories that are about the entity."""
        return [pk for (pk,) in self._db.execute(_ALL_ABOUT, (entity,))]

    # ---- scopes -----------------------------------------------------------------------------------

    def items_in(self, scope: int) -> tuple[list[int], list[int], list[int]]:
        """The entities, memories and relations of a scope."""
        entities, memories, relations = (
            [pk for (pk,) in self._db.execute(sql, (scope,)).fetchall()] for sql in _IN_SCOPE
        )
        return entities, memories, relations

    def namesakes(self, one: int, other: int) -> list[str]:
        """The names of entities of a scope of which another has one of the same name and kind."""
        return [name for (name,) in self._db.execute(_NAMESAKES, (one, other)).fetchall()]

    def move_redirects(self, old: int, new: int) -> None:
        """Lets former names in a scope be former names in another, but for those that it has already."""
        self._db.execute(
            "UPDATE OR IGNORE redirect SET scope = ? WHERE scope = ? AND NOT EXISTS (SELECT 1 FROM entity AS e "
            "WHERE e.scope = ?1 AND e.name = redirect.name AND e.kind_key = redirect.kind_key)",
            (new, old),
        )
        self._db.execute("DELETE FROM redirect WHERE scope = ?", (old,))

    def redirected(self, scope: int) -> list[int]:
        """The entities that former names in a scope lead to."""
        sql = "SELECT DISTINCT entity FROM redirect WHERE scope = ? ORDER BY entity"
        return [pk for (pk,) in self._db.execute(sql, (scope,)).fetchall()]

    def twin(self, row: Row) -> int | None:
        """Another relation of the same natural key."""
        found: int | None = self._db.execute(
            _TWIN,
            (row["subject"], row["object"], row["predicate_key"], row["scope"], row["valid_at"] or "",
             row["pk"]),
        ).get  # fmt: skip
        return found

    def memories_of_key(self, key: bytes, but: int) -> int | None:
        """The oldest other memory of a natural key."""
        found: int | None = self._db.execute(
            "SELECT pk FROM memory WHERE key = ? AND pk <> ? ORDER BY pk LIMIT 1", (key, but)
        ).get
        return found

    def restate(self, old: str, new: str) -> list[int]:
        """Lets relations that a memory states be stated by another; which relations."""
        sql = "SELECT relation FROM stated_by WHERE memory = ?"
        found = [pk for (pk,) in self._db.execute(sql, (old,)).fetchall()]
        for pk in found:
            self._db.execute("INSERT OR IGNORE INTO stated_by VALUES (?, ?)", (pk, new))
            self._db.execute("DELETE FROM stated_by WHERE relation = ? AND memory = ?", (pk, old))
        return found
