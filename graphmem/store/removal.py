"""Removing items from the store with all that belongs to them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from graphmem.store.packed import measured, unpack
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
    ENTITY: (
        "DELETE FROM redirect WHERE entity = ?", "DELETE FROM mention_name WHERE entity = ?",
        "DELETE FROM mention WHERE entity = ?",
    ),
    MEMORY: (
        "DELETE FROM memory_link WHERE memory = ?", "DELETE FROM memory_tag WHERE memory = ?",
        "DELETE FROM mention WHERE memory = ?",
    ),
    RELATION: ("DELETE FROM stated_by WHERE relation = ?",),
}  # fmt: skip
_OF_ALL: Final = ("id_alias", "contribution", "version")
# The keys of names are in the order of the keys: one pass for all entities.
_KEYS: Final = "DELETE FROM name_key WHERE entity IN (SELECT value FROM json_each(?))"
_WITH_VECTORS: Final = """
SELECT DISTINCT item FROM chunk WHERE kind = ? AND item IN (SELECT value FROM json_each(?)) ORDER BY item
"""


def keep_last(db: apsw.Connection) -> None:
    """Remembers the highest row numbers in use, before items are removed, so that none is given again."""
    for table in TABLES:
        if db.execute(f"SELECT 1 FROM {table} LIMIT 1").get is not None:  # noqa: S608
            db.execute(_LAST.format(table=table))


def remove_items(db: apsw.Connection, kind: int, pks: Sequence[int]) -> None:
    """Removes items with their rows in all tables, indexes included. Links of others to them must be gone.

    `keep_last` comes first.
    """
    if not pks:
        return
    given, listed = [(pk,) for pk in pks], json.dumps(list(pks))
    if kind == ENTITY:
        db.execute(_KEYS, (listed,))
    for sql in _BELONGING[kind]:
        db.executemany(sql, given)
    for table in _OF_ALL:
        db.executemany(f"DELETE FROM {table} WHERE kind = {kind} AND item = ?", given)  # noqa: S608
    execute: Any = db.execute
    for (pk,) in execute(_WITH_VECTORS, (kind, listed)).fetchall():
        detach(db, kind, pk)
    db.executemany(f"DELETE FROM {TABLES[kind]}_fts WHERE rowid = ?", given)  # noqa: S608
    unpack(db, measured(kind), pks)
    db.executemany(f"DELETE FROM {TABLES[kind]} WHERE pk = ?", given)  # noqa: S608
