"""What became of records that were handed over: the item that each went to, and how it stands now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from graphmem.store.write import TABLES

if TYPE_CHECKING:
    import apsw


class Went(NamedTuple):
    """Where a record went: kind number, id, and the batches that made the item and changed it last."""

    kind: int
    id: str
    made_by: int
    changed_by: int


def where_it_went(db: apsw.Connection, uri: str, digest: bytes) -> Went | None:
    """The item of a record of an origin, `None` when it was not stored."""
    execute: Any = db.execute
    row = execute(
        "SELECT kind, item FROM contribution WHERE origin = (SELECT pk FROM origin WHERE uri = ?) "
        "AND digest = ?",
        (uri, digest),
    ).fetchone()
    if row is None:
        return None
    kind, item = row
    id_, made = execute(f"SELECT id, batch FROM {TABLES[kind]} WHERE pk = ?", (item,)).fetchone()  # noqa: S608
    changed = execute("SELECT max(batch) FROM version WHERE kind = ? AND item = ?", (kind, item)).get
    return Went(kind, id_, made, changed or 0)
