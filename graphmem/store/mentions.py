"""The index of names found in memories: which names there are, who names whom; derived, kept in step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from graphmem.mentions import contains, find, head, plain

if TYPE_CHECKING:
    import apsw

_NAMES: Final = "SELECT name, entity FROM mention_name WHERE head = ?"
_ADD_NAME: Final = "INSERT OR IGNORE INTO mention_name (head, name, entity) VALUES (?, ?, ?)"
_ADD: Final = "INSERT OR IGNORE INTO mention (memory, entity) VALUES (?, ?)"
# Full text narrows the memories down; whether one really names the entity is looked at in its text.
_NAMING: Final = """
SELECT m.pk, m.title, m.content FROM memory_fts AS f CROSS JOIN memory AS m ON m.pk = f.rowid
WHERE memory_fts MATCH ?
"""
_AT_ONCE: Final = 5_000


class Mentions:
    """Writes the index inside the transaction of a batch."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db: Any = db

    def names(self, one: str) -> list[tuple[str, int]]:
        """The (name, entity) filed under a head."""
        found: list[tuple[str, int]] = self._db.execute(_NAMES, (one,)).fetchall()
        return found

    def heads(self) -> set[int]:
        """The hashes of all heads, to pass over words that start no name."""
        return {hash(one) for (one,) in self._db.execute("SELECT DISTINCT head FROM mention_name")}

    def add_names(self, names: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
        """Files (entity, name); those that can be looked for."""
        rows = [(head(name), name, entity) for entity, name in names]
        filed = [row for row in rows if row[0] is not None]
        self._db.executemany(_ADD_NAME, filed)
        return [(entity, name) for _, name, entity in filed]

    def names_of(self, entity: int) -> set[str]:
        """The names under which an entity is looked for."""
        sql = "SELECT name FROM mention_name WHERE entity = ?"
        return {name for (name,) in self._db.execute(sql, (entity,))}

    @staticmethod
    def filed(names: Iterable[str]) -> set[str]:
        """Those of some names that can be looked for."""
        return {name for name in names if head(name) is not None}

    def drop_names(self, entity: int) -> None:
        """Forgets an entity's names and where they were found."""
        self._db.execute("DELETE FROM mention_name WHERE entity = ?", (entity,))
        self._db.execute("DELETE FROM mention WHERE entity = ?", (entity,))

    def drop_memory(self, memory: int) -> None:
        """Forgets whom a memory names."""
        self._db.execute("DELETE FROM mention WHERE memory = ?", (memory,))

    def add(self, rows: Iterable[tuple[int, int]]) -> None:
        """Adds (memory, entity)."""
        self._db.executemany(_ADD, rows)

    def naming(self, name: str) -> Iterator[int]:
        """The memories whose title or content holds a name."""
        phrase = '{title content} : "' + name.replace('"', '""').replace("\0", " ") + '"'
        for memory, title, content in self._db.execute(_NAMING, (phrase,)):
            if contains(plain(content), name) or (title and contains(plain(title), name)):
                yield memory

    def has_memories(self) -> bool:
        """Whether there are memories that a new name could stand in."""
        return self._db.execute("SELECT 1 FROM memory LIMIT 1").get is not None


def entities_in(index: Mentions, title: str | None, content: str, known: set[int] | None) -> set[int]:
    """The entities that a memory names; `known` holds the hashes of heads that are worth a look-up."""

    def lookup(one: str) -> list[tuple[str, int]]:
        return index.names(one) if known is None or hash(one) in known else []

    found = find(plain(content), lookup)
    if title:
        found |= find(plain(title), lookup)
    return {entity for _, entity in found}


def rebuild(db: apsw.Connection) -> tuple[int, int]:
    """Makes the index anew from entities and memories, inside a transaction; how many names and mentions."""
    import json

    execute: Any = db.execute
    execute("DELETE FROM mention")
    execute("DELETE FROM mention_name")
    index = Mentions(db)
    for pk, name, aliases in execute("SELECT pk, name, aliases FROM entity"):
        index.add_names([(pk, name), *((pk, alias) for alias in (json.loads(aliases) if aliases else ()))])
    known = index.heads()
    rows: list[tuple[int, int]] = []
    for pk, title, content in execute("SELECT pk, title, content FROM memory"):
        rows += [(pk, entity) for entity in entities_in(index, title, content, known)]
        if len(rows) >= _AT_ONCE:
            index.add(rows)
            rows.clear()
    index.add(rows)
    return (
        execute("SELECT count(*) FROM mention_name").get,
        execute("SELECT count(*) FROM mention").get,
    )
