"""A new file of what a damaged one holds, where its tables can be read and only what is derived cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import apsw

from graphmem.errors import StoreDamaged
from graphmem.store import Store
from graphmem.store.mend import Mender
from graphmem.store.physical import CHECKED_BY_DIGEST, DERIVED, FULL_TEXT, Physical, in_order

_TABLES: Final = """
SELECT name FROM main.sqlite_schema WHERE type = 'table' AND rootpage > 0 AND name NOT LIKE 'sqlite!_%' ESCAPE '!'
"""
_OLD: Final = "SELECT 1 FROM old.sqlite_schema WHERE name = ?"
_SEQUENCE: Final = """
INSERT INTO main.sqlite_sequence (name, seq) SELECT 'batch', seq FROM old.sqlite_sequence WHERE name = 'batch'
"""


def carry_over(store: Store, old: Path, found: Physical) -> Mender:
    """Copies every table that is not derived from an old file into an empty store, and makes the others.

    Inside no transaction; what was made anew is in the answer. Raises what SQLite raises where the old file
    cannot be read, and `StoreDamaged` where what it holds does not fit together.
    """
    db: Any = store.db
    db.execute("ATTACH ? AS old", (str(old),))
    db.execute("PRAGMA foreign_keys = OFF")
    try:
        with store.transaction():
            for (table,) in db.execute(_TABLES).fetchall():
                if table not in DERIVED and not table.startswith(FULL_TEXT):
                    _carry(db, table)
            db.execute("DELETE FROM main.sqlite_sequence")
            db.execute(_SEQUENCE)
            mender = Mender(db)
            mender.physical(Physical(tables=set(DERIVED)))
            mender.done = dict.fromkeys(sorted({*found.tables, *found.indexes}) or ["file"], 1)
    finally:
        db.execute("DETACH old")
        db.execute("PRAGMA foreign_keys = ON")
    return mender


def _carry(db: Any, table: str) -> None:
    if db.execute(_OLD, (table,)).get is None:
        return
    columns = ", ".join(f'"{name}"' for _, name, *_ in db.execute(f'PRAGMA main.table_info("{table}")'))
    # Of pieces and vectors those that do not fit together are left out: the texts decide which are right.
    also = " OR IGNORE" if table in CHECKED_BY_DIGEST else ""
    try:
        # In an order, or else SQLite would copy the trees of indexes as they are.
        db.execute(
            f'INSERT{also} INTO main."{table}" ({columns}) '  # noqa: S608
            f'SELECT {columns} FROM old."{table}" {in_order(db, table, schema="old")}'
        )
    except apsw.ConstraintError as error:
        raise StoreDamaged(f"rows of '{table}' do not fit together ({error})", "restore a backup") from error
