"""The log: which batches there were, and what each of them changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from graphmem.store.changes import has_changes
from graphmem.store.write import TABLES

if TYPE_CHECKING:
    import apsw

_COLUMNS: Final = """
b.pk, b.id, b.run, b.at, b.command, b.importer, b.inputs, b.counts, b.actor,
(SELECT id FROM batch AS u WHERE u.pk = b.undone_by)
"""
_ROWS: Final = f"SELECT {_COLUMNS} FROM batch AS b"  # noqa: S608
_PAGE: Final = f"{_ROWS} ORDER BY b.pk DESC LIMIT ? OFFSET ?"
_ONE: Final = f"{_ROWS} WHERE b.pk = ?"
_BY_ID: Final = f"{_ROWS} WHERE b.id = ?1 OR b.run = ?1 ORDER BY b.pk DESC"
_BY_PREFIX: Final = f"{_ROWS} WHERE substr(b.id, 1, length(?1)) = ?1 ORDER BY b.pk DESC"
_LAST_RUN: Final = """
SELECT run FROM batch WHERE undone_by IS NULL AND command <> 'undo' ORDER BY pk DESC LIMIT 1
"""
_OF_RUN: Final = f"{_ROWS} WHERE b.run = ? AND b.undone_by IS NULL ORDER BY b.pk DESC"
LEAST_PREFIX: Final = 6
"""How many characters of a batch's id are enough, where they name one."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One batch of the log."""

    pk: int
    id: str
    run: str
    at: str
    command: str
    importer: str | None
    inputs: list[str]
    counts: dict[str, Any]
    actor: str | None
    undone_by: str | None

    @property
    def made(self) -> tuple[int, int, int] | None:
        """How many entities, memories and relations it made, where that was kept."""
        items = self.counts.get("items")
        return None if items is None else (items[0], items[1], items[2])

    def as_dict(self) -> dict[str, Any]:
        """The entry as it stands in JSON."""
        return {
            "id": self.id, "run": self.run, "at": self.at, "command": self.command, "importer": self.importer,
            "inputs": self.inputs, "counts": self.counts, "actor": self.actor, "undone_by": self.undone_by,
        }  # fmt: skip


def _entry(row: tuple[Any, ...]) -> Entry:
    pk, id_, run, at, command, importer, inputs, counts, actor, undone_by = row
    return Entry(
        pk, id_, run, at, command, importer, json.loads(inputs), json.loads(counts), actor, undone_by
    )


class History:
    """Questions about the log."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db: Any = db

    def page(self, limit: int, offset: int = 0) -> tuple[list[Entry], int]:
        """The newest batches first, and how many there are."""
        rows = self._db.execute(_PAGE, (limit, offset)).fetchall()
        return [_entry(row) for row in rows], self._db.execute("SELECT count(*) FROM batch").get

    def entry(self, pk: int) -> Entry:
        """A batch by number."""
        return _entry(self._db.execute(_ONE, (pk,)).fetchone())

    def find(self, text: str) -> list[Entry]:
        """The batch of an id or of the beginning of one, else all batches of a run, newest first."""
        found = [_entry(row) for row in self._db.execute(_BY_ID, (text,))]
        if not found and len(text) >= LEAST_PREFIX:
            found = [_entry(row) for row in self._db.execute(_BY_PREFIX, (text.upper(),))]
            found = found if len(found) == 1 else []
        return found

    def last(self) -> list[Entry]:
        """The batches of the last run that stands and is no undo, newest first."""
        run = self._db.execute(_LAST_RUN).get
        return [] if run is None else [_entry(row) for row in self._db.execute(_OF_RUN, (run,))]

    def is_kept(self, pk: int) -> bool:
        """Whether it is known what a batch changed."""
        return has_changes(self._db, pk)

    def made_by(self, pk: int, kind: int, limit: int) -> Iterator[str]:
        """Ids of the items of a kind that a batch made and that are still there."""
        sql = f"SELECT id FROM {TABLES[kind]} WHERE batch = ? ORDER BY pk LIMIT ?"  # noqa: S608
        return (id_ for (id_,) in self._db.execute(sql, (pk, limit)))
