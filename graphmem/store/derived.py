"""The rows that are made from an item's own: full text, keys of names, tags. For items changed by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from graphmem import lexical
from graphmem.names import exact, name_keys
from graphmem.prepare import text_hash
from graphmem.store.mentions import Mentions
from graphmem.store.packed import measured, unpack
from graphmem.store.vectors import detach
from graphmem.store.write import ABOUT, ENTITY, MEMORY, RELATION, TABLES

if TYPE_CHECKING:
    import apsw

_ENTITY: Final = "SELECT name, kind, description, aliases FROM entity WHERE pk = ?"
_MEMORY: Final = "SELECT content, title, source, valid_at, tags FROM memory WHERE pk = ?"
_RELATION: Final = """
SELECT i.fact, a.name, i.predicate, b.name FROM relation AS i
JOIN entity AS a ON a.pk = i.subject JOIN entity AS b ON b.pk = i.object WHERE i.pk = ?
"""
_ABOUT: Final = """
SELECT e.name FROM memory_link AS l JOIN entity AS e ON e.pk = l.entity
WHERE l.memory = ? AND l.role = 0 ORDER BY e.name
"""
_NAME_KEY: Final = "SELECT key FROM name_key WHERE entity = ? AND step = 1 AND alias = 0"
_FTS: Final = {
    ENTITY: "INSERT INTO entity_fts (rowid, names, description, parts) VALUES (?, ?, ?, ?)",
    MEMORY: "INSERT INTO memory_fts (rowid, content, title, context, parts) VALUES (?, ?, ?, ?, ?)",
    RELATION: "INSERT INTO relation_fts (rowid, fact, parts) VALUES (?, ?, ?)",
}
_PIECES: Final = """
SELECT c.start, c.stop, v.text_digest FROM chunk AS c JOIN vector AS v ON v.pk = c.vector
WHERE c.item = ? AND c.kind = ? ORDER BY c.ordinal
"""
_ALL_ENTITIES: Final = "SELECT pk, name, aliases, description FROM entity ORDER BY pk"
_ALL_MEMORIES: Final = "SELECT pk, content, title, source, valid_at FROM memory ORDER BY pk"
_ALL_RELATIONS: Final = """
SELECT i.pk, i.fact, a.name, i.predicate, b.name FROM relation AS i
JOIN entity AS a ON a.pk = i.subject JOIN entity AS b ON b.pk = i.object ORDER BY i.pk
"""


def full_text(db: apsw.Connection, kind: int) -> Iterator[tuple[Any, ...]]:
    """The rows that the full-text table of a kind should have: row number, then its columns."""
    ask: Any = db.cursor().execute
    if kind == ENTITY:
        for pk, name, packed, description in ask(_ALL_ENTITIES):
            yield pk, *lexical.entity_row(name, json.loads(packed) if packed else (), description)
    elif kind == RELATION:
        for pk, *row in ask(_ALL_RELATIONS):
            yield pk, *lexical.relation_row(*row)
    else:
        about: Any = db.cursor()
        for pk, content, title, source, valid_at in ask(_ALL_MEMORIES):
            names = [name for (name,) in about.execute(_ABOUT, (pk,))]
            yield pk, *lexical.memory_row(content, title, source, valid_at, names)


class Refreshed(NamedTuple):
    """What an item looks like now to the indexes that its batch keeps: names, text, what is embedded."""

    said: str
    names: tuple[str, ...] = ()
    text: tuple[str | None, str] | None = None
    renamed: bool = False


class Derived:
    """Makes derived rows anew, inside a transaction."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db: Any = db
        self._mentions = Mentions(db)

    def refresh(self, kind: int, pk: int) -> Refreshed | None:
        """Makes an item's full text, keys and tags anew; `None` for an item that is gone.

        `names` are an entity's names when they are not those that texts were searched for.
        """
        self._db.execute(f"DELETE FROM {TABLES[kind]}_fts WHERE rowid = ?", (pk,))  # noqa: S608
        unpack(self._db, measured(kind), [pk])
        return (self._entity, self._memory, self._relation)[kind](pk)

    def memories_about(self, entity: int) -> Iterator[int]:
        """The memories whose text in the indexes holds the entity's name."""
        sql = "SELECT memory FROM memory_link WHERE entity = ? AND role = ?"
        return (pk for (pk,) in self._db.execute(sql, (entity, ABOUT)).fetchall())

    def relations_of(self, entity: int) -> Iterator[int]:
        """The relations that have the entity at an end."""
        sql = "SELECT pk FROM relation WHERE subject = ?1 OR object = ?1"
        return (pk for (pk,) in self._db.execute(sql, (entity,)).fetchall())

    def has_vectors_of(self, kind: int, pk: int, text: str) -> bool:
        """Whether the pieces of an item that have vectors are those of this text."""
        rows = self._db.execute(_PIECES, (pk, kind)).fetchall()
        return (
            bool(rows)
            and max(stop for _, stop, _ in rows) == len(text)
            and all(text_hash(text[start:stop]) == digest for start, stop, digest in rows)
        )

    # ---- per kind ---------------------------------------------------------------------------------

    def _entity(self, pk: int) -> Refreshed | None:
        row = self._db.execute(_ENTITY, (pk,)).fetchone()
        before = self._db.execute(_NAME_KEY, (pk,)).get
        self._db.execute("DELETE FROM name_key WHERE entity = ?", (pk,))
        if row is None:
            self._mentions.drop_names(pk)
            detach(self._db, ENTITY, pk)
            return None
        name, kind, description, packed = row
        aliases: list[str] = json.loads(packed) if packed else []
        former = [
            old for (old,) in self._db.execute("SELECT name FROM redirect WHERE entity = ?", (pk,)).fetchall()
        ]
        self._keys(pk, name, {*aliases, *former} - {name})
        self._db.execute(_FTS[ENTITY], (pk, *lexical.entity_row(name, aliases, description)))
        names = (name, *aliases)
        if self._mentions.names_of(pk) == self._mentions.filed(names):
            names = ()
        said = lexical.entity_text(name, kind, description)
        return Refreshed(said, names, renamed=before != exact(name))

    def _keys(self, pk: int, name: str, aliases: Iterable[str]) -> None:
        rows = [(key, step, 0, pk) for key, step in name_keys(name)]
        rows += [(key, step, 1, pk) for alias in sorted(aliases) for key, step in name_keys(alias)]
        self._db.executemany(
            "INSERT OR IGNORE INTO name_key (key, step, alias, entity) VALUES (?, ?, ?, ?)", rows
        )

    def _memory(self, pk: int) -> Refreshed | None:
        self._db.execute("DELETE FROM memory_tag WHERE memory = ?", (pk,))
        row = self._db.execute(_MEMORY, (pk,)).fetchone()
        if row is None:
            self._mentions.drop_memory(pk)
            detach(self._db, MEMORY, pk)
            return None
        content, title, source, valid_at, tags = row
        about = [name for (name,) in self._db.execute(_ABOUT, (pk,)).fetchall()]
        self._db.execute(_FTS[MEMORY], (pk, *lexical.memory_row(content, title, source, valid_at, about)))
        self._db.executemany(
            "INSERT INTO memory_tag (tag, memory) VALUES (?, ?)",
            [(tag, pk) for tag in (json.loads(tags) if tags else ())],
        )
        return Refreshed(lexical.memory_text(content, title, about), text=(title, content))

    def _relation(self, pk: int) -> Refreshed | None:
        row = self._db.execute(_RELATION, (pk,)).fetchone()
        if row is None:
            detach(self._db, RELATION, pk)
            return None
        self._db.execute(_FTS[RELATION], (pk, *lexical.relation_row(*row)))
        return Refreshed(lexical.relation_text(*row))
