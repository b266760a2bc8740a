"""Batches of prepared records put aside on disk while the rest of the run's declarations are read."""

from __future__ import annotations

import marshal
from collections.abc import Iterator
from dataclasses import fields
from operator import attrgetter
from tempfile import TemporaryFile
from typing import Any, Final

from graphmem.outfile import room_for_temporary
from graphmem.records import Claim, EntityRecord, MemoryRecord, Place, Record, Ref, RelationRecord

_CLASSES: Final[tuple[type[Record], ...]] = (EntityRecord, MemoryRecord, RelationRecord)
_GETTERS: Final = {made: attrgetter(*(field.name for field in fields(made))) for made in _CLASSES}
_NAMES: Final = {made: [field.name for field in fields(made)] for made in _CLASSES}
_PLACE: Final = {made: _NAMES[made].index("place") for made in _CLASSES}
_REF_LISTS: Final[dict[type[Record], list[int]]] = {
    MemoryRecord: [_NAMES[MemoryRecord].index(name) for name in ("about", "mentions")],
    EntityRecord: [_NAMES[EntityRecord].index("redirects")],
    RelationRecord: [],
}
_REFS: Final[dict[type[Record], list[int]]] = {
    RelationRecord: [_NAMES[RelationRecord].index(name) for name in ("subject", "object")]
}
_CLAIMS: Final = {made: _NAMES[made].index("origins") for made in _CLASSES}
_claim_values: Final = attrgetter(*(field.name for field in fields(Claim)))


def pack(record: Record) -> tuple[Any, ...]:
    """The record as a tuple of builtin values, its class first."""
    made = type(record)
    values = list(_GETTERS[made](record))
    for at in _REF_LISTS[made]:
        if values[at]:
            values[at] = [tuple(ref) for ref in values[at]]
    for at in _REFS.get(made, ()):
        values[at] = tuple(values[at])
    values[_PLACE[made]] = tuple(values[_PLACE[made]])
    if values[_CLAIMS[made]] is not None:
        values[_CLAIMS[made]] = [_claim_values(claim) for claim in values[_CLAIMS[made]]]
    return (_CLASSES.index(made), *values)


def unpack(packed: tuple[Any, ...]) -> Record:
    """The record that `pack` made the tuple of."""
    made = _CLASSES[packed[0]]
    values = list(packed[1:])
    for at in _REF_LISTS[made]:
        if values[at]:
            values[at] = [Ref(*ref) for ref in values[at]]
    for at in _REFS.get(made, ()):
        values[at] = Ref(*values[at])
    values[_PLACE[made]] = Place(*values[_PLACE[made]])
    if values[_CLAIMS[made]] is not None:
        values[_CLAIMS[made]] = [Claim(*claim) for claim in values[_CLAIMS[made]]]
    record: Record = made(*values)
    return record


_HELD: Final = 40_000


class Spool:
    """Batches put aside in order; all but the newest 40,000 records or so are on disk.

    The chunks of a file too large for one batch are pushed into two lanes, declarations and the rest;
    `seal` puts the declarations first, so that few references meet an entity before its declaration.
    """

    def __init__(self) -> None:
        with room_for_temporary():
            # Without a buffer, so that nothing is left to be written, and to fail, when it is closed.
            self._file = TemporaryFile(prefix="gmem-spool-", buffering=0)  # noqa: SIM115 -- closed by close()
        self._order: list[int] = []
        self._lanes: tuple[list[int], list[int]] = ([], [])
        self._spans: list[tuple[int, int]] = []
        self._held: dict[int, list[Record]] = {}

    def push(self, batch: list[Record], lane: int | None = None) -> None:
        """Adds a batch, to a lane of the file being read or straight into the order.

        Raises `OutputUnwritable` where there is no room for it.
        """
        number = len(self._spans)
        self._spans.append((0, 0))
        self._held[number] = batch
        while len(self._held) > 1 and sum(map(len, self._held.values())) > _HELD:
            oldest = next(iter(self._held))
            self._write(oldest, self._held.pop(oldest))
        (self._order if lane is None else self._lanes[lane]).append(number)

    def seal(self) -> None:
        """Ends a file whose chunks were pushed into lanes."""
        for lane in self._lanes:
            self._order += lane
            lane.clear()

    def _write(self, number: int, batch: list[Record]) -> None:
        packed = memoryview(marshal.dumps([pack(record) for record in batch]))
        with room_for_temporary():
            start = self._file.tell()
            done = 0
            while done < len(packed):
                done += self._file.write(packed[done:])
        self._spans[number] = (start, len(packed))

    def __len__(self) -> int:
        return len(self._order)

    def batches(self) -> Iterator[list[Record]]:
        """The batches in order; may be asked for again."""
        for number in self._order:
            if number in self._held:
                yield self._held[number]
                continue
            start, length = self._spans[number]
            yield [unpack(packed) for packed in marshal.loads(self._read(start, length))]  # noqa: S302

    def _read(self, start: int, length: int) -> bytes:
        self._file.seek(start)
        pieces: list[bytes] = []
        while length and (piece := self._file.read(length)):
            pieces.append(piece)
            length -= len(piece)
        return b"".join(pieces)

    def close(self) -> None:
        """Removes what is on disk."""
        self._file.close()
