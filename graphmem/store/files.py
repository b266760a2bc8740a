"""The files of a store as a whole: emptying it for good, and removing it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import apsw

from graphmem.errors import StoreReadOnly
from graphmem.store.connection import connect, translated
from graphmem.store.schema import MIGRATIONS, migration_sql

if TYPE_CHECKING:
    from graphmem.store import Store

_TABLES: Final = """
SELECT name, sql LIKE 'CREATE VIRTUAL%' FROM sqlite_schema
WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY 2 DESC, 1
"""
SUFFIXES: Final = ("", "-wal", "-shm")


def empty_store(store: Store) -> None:
    """Empties a store for good: items, history, indexes, and every trace of them in its files.

    Numbers of batches and items go on, so that no other process mistakes new ones for old. Raises
    `StoreBusy` while another process writes, or reads what is to go.
    """
    db: Any = store.db
    with store.errors():
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute("PRAGMA secure_delete = ON")
        with store.transaction():
            last = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'batch'").get or 0
            pks = {
                table: store.writer().next_pk(kind) - 1
                for kind, table in enumerate(("entity", "memory", "relation"))
            }
            for name, virtual in db.execute(_TABLES).fetchall():
                shadow = db.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (name,)).get is None
                if virtual or not shadow:
                    db.execute(f'DROP TABLE IF EXISTS "{name}"')
            for version in range(len(MIGRATIONS)):
                db.execute(migration_sql(version))
            db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('batch', ?)", (last,))
            db.executemany(
                "INSERT INTO meta (key, value) VALUES (?, ?)",
                [(f"last {table}", str(pk)) for table, pk in pks.items() if pk],
            )
            store.scopes.forget()
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("VACUUM")
        clear_log(db)


def clear_log(db: apsw.Connection) -> None:
    """Brings everything from the log into the file and cuts the log to nothing.

    Raises `apsw.BusyError` while another connection reads what is in it.
    """
    told: Any = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if told[0]:
        raise apsw.BusyError("another connection reads the log")


def remove_store(path: Path) -> None:
    """Removes a store's files.

    Raises `StoreBusy` while another connection has it open, `StoreReadOnly` where files cannot be removed.
    """
    db = connect(path, write=True)
    with translated(path):
        try:
            # Only the last connection can leave the log behind: this fails while there is another.
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
            db.execute("PRAGMA journal_mode = DELETE")
        finally:
            db.close()  # an open file cannot be removed everywhere
    try:
        for suffix in SUFFIXES:
            Path(f"{path}{suffix}").unlink(missing_ok=True)
    except OSError as error:
        raise StoreReadOnly(
            f"{path}: cannot be removed: {(error.strerror or str(error)).lower()}",
            "check the permissions of its folder",
        ) from error
