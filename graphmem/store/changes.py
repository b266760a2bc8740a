"""What a batch changed: recorded while it is written, read back row by row.

SQLite's session extension notes the rows of the authority tables as they change. Derived tables are left
out, since they are made anew from the others: full text, keys of names, tags, mentions, vectors. So are
the items that the batch made, with what belongs to them: they carry its number.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import apsw

from graphmem.errors import StoreDamaged

RECORDED: Final = (
    "scope", "origin", "entity", "redirect", "id_alias", "memory", "memory_link", "relation", "stated_by",
    "contribution", "version",
)  # fmt: skip
"""The tables whose changes are kept."""

_PART: Final = 1 << 20
_LEVEL: Final = 1  # a higher one costs more time than it saves space
_KEEP: Final = "INSERT INTO change (batch, segment, part, data) VALUES (?, ?, ?, ?)"
_SEGMENTS: Final = "SELECT DISTINCT segment FROM change WHERE batch = ? ORDER BY segment DESC"
_PARTS: Final = "SELECT data FROM change WHERE batch = ? AND segment = ? ORDER BY part"

Values = tuple[Any, ...]


class Change(NamedTuple):
    """One row before and after: `old` is `None` for a row that was made, `new` for one that was removed.

    Of a row that was changed, columns without a change are `apsw.no_change`, but for the key in `old`.
    """

    table: str
    old: Values | None
    new: Values | None
    key: tuple[int, ...]
    """The columns of the primary key, by number."""


class Recorder:
    """Notes what changes on a connection from now on."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._session = apsw.Session(db, "main")
        for table in RECORDED:
            self._session.attach(table)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """A time in which new items are written, which need no note."""
        self._session.enabled = False
        try:
            yield
        finally:
            self._session.enabled = True

    def keep(self, batch: int, segment: int) -> None:
        """Stores what was noted as a segment of a batch, and notes no more."""
        press = zlib.compressobj(_LEVEL)
        waiting = bytearray()
        part = 0

        def store() -> None:
            nonlocal part
            self._db.execute(_KEEP, (batch, segment, part, bytes(waiting)))
            part += 1
            waiting.clear()

        def take(data: memoryview[int]) -> None:
            waiting.extend(press.compress(data))
            if len(waiting) >= _PART:
                store()

        if not self._session.is_empty:
            self._session.changeset_stream(take)
            waiting.extend(press.flush())
            store()
        self.close()

    def close(self) -> None:
        """Notes no more; may be called again."""
        self._session.close()


def changes(db: apsw.Connection, batch: int) -> Iterator[Change]:
    """The rows that a batch changed, the last segment first; a row is in a segment once.

    Raises `StoreDamaged` where that cannot be read any more.
    """
    for (segment,) in db.execute(_SEGMENTS, (batch,)).fetchall():
        parts = b"".join(data for (data,) in db.execute(_PARTS, (batch, segment)))
        try:
            data = zlib.decompress(parts)
        except zlib.error as error:
            raise StoreDamaged(
                f"what batch number {batch} changed cannot be read any more ({error})", "run 'gmem doctor'"
            ) from error
        for one in apsw.Changeset.iter(data):
            yield Change(one.name, one.old, one.new, tuple(sorted(one.pk_columns)))


def has_changes(db: apsw.Connection, batch: int) -> bool:
    """Whether it was kept what a batch changed."""
    return db.execute("SELECT 1 FROM change WHERE batch = ? LIMIT 1", (batch,)).get is not None


def drop_changes(db: apsw.Connection, batch: int) -> None:
    """Forgets what a batch changed."""
    db.execute("DELETE FROM change WHERE batch = ?", (batch,))


def lose_changes(db: apsw.Connection, batch: int) -> None:
    """Forgets what a batch changed, and notes that it was known once: the batch cannot be taken back."""
    drop_changes(db, batch)
    db.execute("UPDATE batch SET counts = json_set(counts, '$.history', 'lost') WHERE pk = ?", (batch,))


def is_lost(db: apsw.Connection, batch: int) -> bool:
    """Whether what a batch changed was known once and was forgotten."""
    sql = "SELECT counts ->> '$.history' = 'lost' FROM batch WHERE pk = ?"
    return bool(db.execute(sql, (batch,)).get)
