"""Removing items from the store with all that belongs to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from graphmem.store.mentions import Mentions
from graphmem.store.vectors import detach
from graphmem.store.write import ENTITY, MEMORY, RELATION, TABLES

if TYPE_CHECKING:
    import apsw

_LAST: Final = """
INSERT INTO meta (key, value) SELECT 'last {table}', CAST(max(pk) AS TEXT) FROM {table} WHERE true
ON CONFLICT (key) DO UPDATE SET value = excluded.value
WHERE CAST(excluded.value AS INTEGER) > CAST(value AS INTEGER)
"""
_BELONGING: Final = {
    ENTITY: ("DELETE FROM redirect WHERE entity = ?", "DELETE FROM name_key WHERE entity = ?"),
    MEMORY: ("DELETE FROM memory_link WHERE memory = ?", "DELETE FROM memory_tag WHERE memory = ?"),
    RELATION: ("DELETE FROM stated_by WHERE relation = ?",),
}
_OF_ALL: Final = ("id_alias", "contribution", "version")


def keep_last(db: apsw.Connection) -> None:
    """Remembers the highest row numbers in use, before items are removed, so that none is given again."""
    for table in TABLES:
        if db.execute(f"SELECT 1 FROM {table} LIMIT 1").get is not None:  # noqa: S608
            db.execute(_LAST.format(table=table))


def remove_items(db: apsw.Connection, kind: int, pks: Sequence[int]) -> None:
    """Removes items with their rows in all tables, indexes included. Links of others to them must be gone.

    `keep_last` comes first.
    """
    execute: Any = db.execute
    index = Mentions(db)
    for pk in pks:
        for sql in _BELONGING[kind]:
            execute(sql, (pk,))
        for table in _OF_ALL:
            execute(f"DELETE FROM {table} WHERE kind = ? AND item = ?", (kind, pk))  # noqa: S608
        if kind == ENTITY:
            index.drop_names(pk)
        elif kind == MEMORY:
            index.drop_memory(pk)
        detach(db, kind, pk)
        execute(f"DELETE FROM {TABLES[kind]}_fts WHERE rowid = ?", (pk,))  # noqa: S608
        execute(f"DELETE FROM {TABLES[kind]} WHERE pk = ?", (pk,))  # noqa: S608
