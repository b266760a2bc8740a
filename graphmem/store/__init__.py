"""The store: the only package that knows SQLite and holds SQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Final, Self

import apsw

from graphmem.errors import StoreNotFound, StoreReadOnly
from graphmem.store.connection import SCHEMA_VERSION, SCRATCH_PATH, connect, is_there, translated
from graphmem.store.mentions import rebuild
from graphmem.store.packed import pack
from graphmem.store.run import RunTables
from graphmem.store.sets import Scopes
from graphmem.store.vectors import StoredEncoder, current_encoder, has_encoder, need_index, use_encoder
from graphmem.store.write import TABLES, Writer

MEMORY_PATH: Final = ":memory:"

__all__ = ["MEMORY_PATH", "SCHEMA_VERSION", "Store", "is_there"]


class Store:
    """An open store. Use it as a context manager, or close it.

    Opened for reading, SQLite itself refuses writes; opened for writing, the file is made and migrated.
    """

    def __init__(self, path: str | Path, *, write: bool = False) -> None:
        self.path = str(path)
        self.write = write
        self._scratch: TemporaryDirectory[str] | None = None
        self.db: apsw.Connection = connect(path, write=write)
        self.scopes = Scopes(self.db)
        if write and has_encoder(self.db):
            need_index(self.db)

    @classmethod
    def scratch(cls) -> Store:
        """An empty store that is thrown away, in memory while it is small."""
        return cls(SCRATCH_PATH, write=True)

    @classmethod
    def snapshot(cls, path: str | Path) -> Store:
        """A writable copy of a store as it is now, or an empty store where there is none.

        For rehearsals: nothing done to it reaches the file, which is neither locked nor changed. The copy
        lies in a temporary folder that goes with it, since a store may be larger than memory.
        """
        try:
            with translated(path):
                origin = connect(path, write=False)
        except StoreNotFound:
            return cls.scratch()
        scratch = TemporaryDirectory(prefix="gmem-rehearsal-")
        try:
            target = Path(scratch.name) / "memory.db"
            copy = apsw.Connection(str(target))
            with translated(path), copy.backup("main", origin, "main") as backup:
                backup.step()
            copy.close()
            store = cls(target, write=True)
            store.db.execute("PRAGMA synchronous = OFF")
        except BaseException:
            scratch.cleanup()
            raise
        finally:
            origin.close()
        store._scratch = scratch
        return store

    def __enter__(self) -> Self:
        """The store itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the store."""
        self.close()

    def close(self) -> None:
        """Closes the file; may be called again."""
        self.db.close()
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turns what SQLite raises into errors that name this store."""
        with translated(self.path):
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """One `BEGIN IMMEDIATE … COMMIT`; an exception rolls everything back.

        Raises `StoreBusy` when the lock is not free in time, `StoreReadOnly`, `StoreFull`, `StoreDamaged`.
        """
        if not self.write:
            raise StoreReadOnly(f"{self.path}: the store was opened for reading")
        # Not `with self.db`, which keeps every other thread from running while it waits for the lock.
        with translated(self.path):
            self.db.execute("BEGIN IMMEDIATE")
            self.scopes.forget()  # another process may have emptied the store since
            try:
                yield
                pack(self.db)
                self.db.execute("COMMIT")
            except BaseException:
                self.scopes.forget()
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """One read transaction: everything in it sees the store at one instant."""
        self.db.execute("BEGIN")
        try:
            yield
        finally:
            if self.db.in_transaction:  # some errors end it: a full disk, a damaged file
                self.db.execute("ROLLBACK")

    def writer(self) -> Writer:
        """What a batch writes through, inside a transaction."""
        return Writer(self.db, self.scopes)

    def run_tables(self) -> RunTables:
        """Fresh temporary tables for a run's declarations."""
        return RunTables(self.db, self.scopes)

    def encoder(self) -> StoredEncoder | None:
        """The encoder of the store's vectors."""
        return current_encoder(self.db)

    def use_encoder(self, name: str, revision: str, digest: str, dimension: int) -> StoredEncoder:
        """The store's encoder, set when it has none; inside a transaction. Raises `EncoderMismatch`."""
        need_index(self.db)
        return use_encoder(self.db, name, revision, digest, dimension)

    def last_time(self) -> str:
        """The clock reading of the newest batch, "" when there is none."""
        return str(self.db.execute("SELECT max(at) FROM batch").get or "")

    def find_mentions_anew(self) -> tuple[int, int]:
        """Makes the index of mentions anew, inside a transaction; how many names and mentions it has."""
        return rebuild(self.db)

    def has_batch(self, number: int) -> bool:
        """Whether a batch is stored."""
        return self.db.execute("SELECT 1 FROM batch WHERE pk = ?", (number,)).get is not None

    def is_empty(self) -> bool:
        """Whether the store holds no item at all."""
        return not any(
            self.db.execute(f"SELECT 1 FROM {table} LIMIT 1").get  # noqa: S608
            for table in TABLES
        )

    def has_memories(self) -> bool:
        """Whether the store holds any memory."""
        return self.db.execute("SELECT 1 FROM memory LIMIT 1").get is not None

    def count_stubs(self, since_batch: int) -> int:
        """Stub entities made by a batch or a later one."""
        count: Any = self.db.execute(
            "SELECT count(*) FROM entity WHERE stub = 1 AND batch >= ?", (since_batch,)
        ).get
        return int(count)

    def total_changes(self) -> int:
        """Rows that this connection has changed so far."""
        return self.db.total_changes()
