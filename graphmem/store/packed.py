"""Figures of many rows in one row: what a search compares with every row of a kind.

Two things are packed: the sketches of pieces of text, by 256 numbers of pieces, and the lengths of full
texts, by 1,024 numbers of items. Whoever changes one of the rows says so here (`unpack`), inside the
transaction; what is not packed is read from the rows themselves, so a search never depends on packing, and
`pack`, at the end of each transaction, only makes the next search faster.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from sys import byteorder
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from graphmem.records import KINDS

if TYPE_CHECKING:
    import apsw

LENGTHS: Final = 1024
"""The numbers of items whose lengths stand in one row."""
_NUMBERS: Final = 3
"""The numbers of a piece in the head of a block: its own, its item's, its vector's."""
_SHIFTS: Final = (8, 8, 8, 10, 10, 10)
"""The binary digits of a number that only tell where in its range it stands, for each thing that is packed."""

_STAMPS: Final = "SELECT pk, number FROM packed WHERE what = ? ORDER BY number"
_BLOCK: Final = "SELECT what, number, head, body FROM packed WHERE pk = ?"
_NOT: Final = "SELECT what, number FROM packed WHERE body IS NULL"
_ADD: Final = """
INSERT INTO packed (pk, what, number, head, body) VALUES (random() & 0x7fffffffffffffff, ?, ?, ?, ?)
"""
_DROP: Final = "DELETE FROM packed WHERE what = ? AND number = ?"
_SKETCHES: Final = (
    "SELECT chunk, item, vector, bits FROM sketch_{kind} WHERE chunk >= ? AND chunk < ? ORDER BY chunk"
)
_SIZES: Final = "SELECT id, sz FROM {kind}_fts_docsize WHERE id >= ? AND id < ?"
_RANGES: Final = (
    *(f"SELECT DISTINCT chunk >> 8 FROM sketch_{kind}" for kind in KINDS),  # noqa: S608
    *(f"SELECT DISTINCT id >> 10 FROM {kind}_fts_docsize" for kind in KINDS),  # noqa: S608
)


class Block(NamedTuple):
    """The packed figures of a range of rows.

    Of sketches `head` holds the numbers of the pieces in ascending order, then those of their items, then
    those of their vectors (int64), and `body` their sketches, one after the other. Of lengths `body` holds,
    for each number of the range, one more than the words of the item's full text (uint32), 0 where there is
    no item; `head` is empty. All little-endian.
    """

    head: bytes
    body: bytes


_NOTHING: Final = Block(b"", b"")


def sketched(kind: int) -> int:
    """What the sketches of a kind are packed as."""
    return kind


def measured(kind: int) -> int:
    """What the lengths of a kind's full texts are packed as."""
    return len(KINDS) + kind


def unpack(db: apsw.Connection, what: int, rows: Iterable[int]) -> None:
    """Says that rows (numbers of pieces or items) are new, changed or gone, inside a transaction."""
    execute: Any = db.execute
    for number in {row >> _SHIFTS[what] for row in rows}:
        execute(_DROP, (what, number))
        execute(_ADD, (what, number, None, None))


def unpack_all(db: apsw.Connection, what: Iterable[int] = range(len(_RANGES))) -> None:
    """Says that any row may have changed, inside a transaction."""
    for one in what:
        db.execute("DELETE FROM packed WHERE what = ?", (one,))
        ranges: Any = db.execute(_RANGES[one]).fetchall()
        db.executemany(_ADD, [(one, number, None, None) for (number,) in ranges])


def pack(db: apsw.Connection) -> None:
    """Packs what is not, inside a transaction."""
    execute: Any = db.execute
    for what, number in execute(_NOT).fetchall():
        block = made(db, what, number)
        execute(_DROP, (what, number))
        if block.body:
            execute(_ADD, (what, number, *block))


def stamps(db: apsw.Connection, what: int) -> dict[int, int]:
    """The range of each block by its number; one whose number is known is as it was."""
    return dict(db.execute(_STAMPS, (what,)))


def read(db: apsw.Connection, stamp: int) -> Block:
    """A block by its number: as it was packed, or as its rows are now."""
    row: Any = db.execute(_BLOCK, (stamp,)).fetchone()
    if row is None:
        return _NOTHING
    what, number, head, body = row
    return Block(head, body) if _is_whole(what, head, body) else made(db, what, number)


def _is_whole(what: int, head: bytes | None, body: bytes | None) -> bool:
    """Whether a block has the form of one: it may not be packed, or be damaged."""
    if head is None or body is None:
        return False
    if what >= len(KINDS):
        return not head and len(body) == 4 * LENGTHS
    pieces, rest = divmod(len(head), _NUMBERS * 8)
    return pieces > 0 and not rest and len(body) % pieces == 0


def made(db: apsw.Connection, what: int, number: int) -> Block:
    """The block of a range, from its rows; without a body where there are none."""
    kind = KINDS[what % len(KINDS)]
    bounds = (number << _SHIFTS[what], (number + 1) << _SHIFTS[what])
    if what < len(KINDS):
        rows: Any = db.execute(_SKETCHES.format(kind=kind), bounds).fetchall()
        columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
        return Block(b"".join(_little(array("q", one)) for one in columns[:_NUMBERS]), b"".join(columns[-1]))
    figures = array("I", bytes(4 * LENGTHS))
    sizes: Any = db.execute(_SIZES.format(kind=kind), bounds)
    for pk, size in sizes:
        figures[pk - bounds[0]] = _words(size) + 1
    return Block(b"", _little(figures)) if any(figures) else _NOTHING


def out_of_step(db: apsw.Connection) -> int:
    """How many ranges are packed otherwise than their rows are, or not known of."""
    execute: Any = db.execute
    held = {(what, number): pk for pk, what, number in execute("SELECT pk, what, number FROM packed")}
    there = {(what, number) for what, sql in enumerate(_RANGES) for (number,) in execute(sql)}
    wrong = 0
    for (what, number), pk in held.items():
        head, body = execute("SELECT head, body FROM packed WHERE pk = ?", (pk,)).fetchone()
        wrong += body is not None and (head, body) != made(db, what, number)
    return wrong + len(there - held.keys())


def _words(size: bytes) -> int:
    """The sum of the numbers of a row of `docsize`, which are written as SQLite writes them: seven bits a byte."""
    if not size or max(size) < 0x80:
        return sum(size)
    total = value = 0
    for byte in size:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            total, value = total + value, 0
    return total


def _little(figures: array[int]) -> bytes:
    if byteorder == "big":
        figures = figures[:]
        figures.byteswap()
    return figures.tobytes()
