"""Packed figures as arrays, kept for each connection as long as they are what the store holds.

NumPy comes with whatever makes vectors; the store imports it only where a query has one. A range is read
again when its stamp is another one, so a search after a small write reads one range, and the others not.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from graphmem.store.packed import LENGTHS, measured, read, sketched, stamps

if TYPE_CHECKING:
    from collections.abc import Iterator

    import apsw
    import numpy as np
    from numpy.typing import NDArray

MOST_KEPT: Final = 400_000
"""So many sketches of a kind are kept between searches: 58 MB with 384 dimensions. More are read each time."""


MOST_VECTORS: Final = 20_000
"""The vectors of up to so many pieces of a kind are kept as well: 31 MB with 384 dimensions."""
_ONE_QUESTION: Final = 8
"""How often a single question looks at the sketches of a kind, at most."""
_AT_ONCE: Final = 1_000
_VECTORS: Final = "SELECT v.vector FROM carray(:those) AS t CROSS JOIN vector AS v ON v.pk = t.value"


class Sketches(NamedTuple):
    """The sketches of a kind: numbers of pieces, items and vectors as rows, and bits as one row for each word."""

    numbers: NDArray[np.int64]
    words: NDArray[np.uint64]


class Kept:
    """The last used arrays, up to a number of values in all."""

    def __init__(self) -> None:
        self._held: dict[Any, Any] = {}
        self._count = 0

    def get(self, key: Any) -> Any:
        """What is kept under a key; `None` for nothing."""
        if key not in self._held:
            return None
        value, _ = self._held[key] = self._held.pop(key)
        return value

    def put(self, key: Any, value: Any, size: int, most: int) -> None:
        """Keeps something that has a size, and drops what was not used for longest."""
        if key in self._held:
            self._count -= self._held.pop(key)[1]
        self._held[key] = (value, size)
        self._count += size
        while self._count > most:
            _, dropped = self._held.pop(next(iter(self._held)))
            self._count -= dropped


class Lengths(NamedTuple):
    """The words of each full text of a kind by the number of the item; -1 where there is none.

    `kept` holds what was made of them, for as long as they are kept.
    """

    words: NDArray[np.int32]
    texts: int
    mean: float
    kept: Kept


class _Kept(NamedTuple):
    stamps: Mapping[int, int]
    made: Any


_KEPT: WeakKeyDictionary[apsw.Connection, dict[int, Any]] = WeakKeyDictionary()


@cache
def available() -> bool:
    """Whether there is a NumPy that can count bits; looks for one and loads it."""
    if find_spec("numpy") is None:
        return False
    import numpy as np

    return hasattr(np, "bitwise_count")


def lengths(db: apsw.Connection, kind: int) -> Lengths:
    """The lengths of a kind's full texts; of at least one number, and of up to 1,023 more than there are."""
    import numpy as np

    what = measured(kind)
    now = stamps(db, what)
    kept = _of(db).get(what)
    if kept is not None and kept.stamps == now:
        made: Lengths = kept.made
        return made
    words = np.full(LENGTHS * (1 + max(now.values(), default=0)), -1, np.int32)
    for stamp, number in now.items():
        body = read(db, stamp).body
        if body:
            figures = np.frombuffer(body, "<u4").astype(np.int32)
            words[number * LENGTHS : (number + 1) * LENGTHS] = figures - 1
    texts = int((words >= 0).sum())
    made = Lengths(words, texts, int(words[words > 0].sum(dtype=np.int64)) / texts if texts else 0.0, Kept())
    _of(db)[what] = _Kept(now, made)
    return made


def sketches(db: apsw.Connection, kind: int, width: int) -> Iterator[Sketches]:
    """The sketches of a kind, of `width` bytes each, in one part or, where they are very many, in several.

    Pieces are in ascending order. What has another width is left out.
    """
    what = sketched(kind)
    now = stamps(db, what)
    before: _KeptSketches | None = _of(db).get(what)
    if before is not None and before.width != width:
        before = None
    if before is not None and before.stamps == now:
        before.used += 1
        yield before.made
        return
    parts: list[Sketches] = []
    places: dict[int, slice] = {}
    count = 0
    for stamp in now:
        part = None if before is None else before.part(stamp)
        parts.append(part or _arrays(*read(db, stamp), width))
        places[stamp] = slice(count, count := count + parts[-1].numbers.shape[1])
        if count > MOST_KEPT:
            yield from parts
            parts.clear()
    if count <= MOST_KEPT:
        kept = _KeptSketches(now, _joined(parts, width), width, places)
        if before is not None and before.vectors is not None and count <= MOST_VECTORS:
            kept.vectors = _followed(db, before, kept)
        _of(db)[what] = kept
        yield kept.made


class _KeptSketches:
    """The sketches of a kind as one array, where each range stands in it, and its vectors once they are used."""

    def __init__(
        self, stamps: Mapping[int, int], made: Sketches, width: int, places: Mapping[int, slice]
    ) -> None:
        self.stamps = stamps
        self.made = made
        self.width = width
        self.places = places
        self.used = 0
        self.vectors: NDArray[np.float32] | None = None
        self.by_item: NDArray[np.int64] | None = None

    def part(self, stamp: int) -> Sketches | None:
        """What is kept of a range."""
        place = self.places.get(stamp)
        if place is None:
            return None
        return Sketches(self.made.numbers[:, place], self.made.words[:, place])


def vectors(db: apsw.Connection, kind: int, dimension: int) -> NDArray[np.float32] | None:
    """The vectors of all pieces, in the order of `sketches`; `None` where they are not kept.

    That is where they are very many, and until their sketches were used before: for one question alone it
    would not be worth reading them.
    """
    kept: _KeptSketches | None = _of(db).get(sketched(kind))
    if kept is None or not 0 < kept.made.numbers.shape[1] <= MOST_VECTORS:
        return None
    if kept.vectors is None and kept.used > _ONE_QUESTION:
        kept.vectors = _read_vectors(db, kept.made.numbers[2])
    if kept.vectors is None or kept.vectors.shape[1] != dimension:
        return None
    return kept.vectors


def places_of(db: apsw.Connection, kind: int, items: Sequence[int]) -> NDArray[np.int64]:
    """Where in `vectors` the pieces of some items stand."""
    import numpy as np

    kept: _KeptSketches = _of(db)[sketched(kind)]
    held = kept.made.numbers[1]
    if kept.by_item is None:
        kept.by_item = held.argsort(kind="stable")
    wanted = np.unique(np.array(items, np.int64))
    start, stop = (held.searchsorted(wanted, side=side, sorter=kept.by_item) for side in ("left", "right"))
    counts = stop - start
    first = np.repeat(start - counts.cumsum() + counts, counts)
    places: NDArray[np.int64] = kept.by_item[first + np.arange(len(first))]
    return places


def _followed(db: apsw.Connection, before: _KeptSketches, kept: _KeptSketches) -> NDArray[np.float32] | None:
    """The vectors of what is kept now, of which only those of new ranges are read."""
    import numpy as np

    if before.vectors is None:
        return None
    parts = []
    for stamp, place in kept.places.items():
        old = before.places.get(stamp)
        part = _read_vectors(db, kept.made.numbers[2, place]) if old is None else before.vectors[old]
        if part is None or part.shape[1] != before.vectors.shape[1]:
            return None
        parts.append(part)
    return np.concatenate(parts) if parts else None


def _read_vectors(db: apsw.Connection, numbers: NDArray[np.int64]) -> NDArray[np.float32] | None:
    """Vectors by their numbers; `None` where they are not all there, or not of one length."""
    import apsw
    import numpy as np

    parts = []
    for start in range(0, len(numbers), _AT_ONCE):
        those = apsw.carray(array("q", numbers[start : start + _AT_ONCE].tolist()))
        rows: Any = db.execute(_VECTORS, {"those": those}).fetchall()
        parts += [one for (one,) in rows]
        if len(parts) != min(start + _AT_ONCE, len(numbers)):
            return None
    if not parts or {len(one) for one in parts} != {len(parts[0])} or len(parts[0]) % 4:
        return None
    return np.frombuffer(b"".join(parts), "<f4").reshape(len(parts), -1)


def _of(db: apsw.Connection) -> dict[int, Any]:
    return _KEPT.setdefault(db, {})


def words_of(sketch: bytes) -> NDArray[np.uint64]:
    """The bits of one sketch, filled up with zeros to whole words."""
    import numpy as np

    return np.frombuffer(sketch + bytes(-len(sketch) % 8), "<u8").astype(np.uint64)


def _arrays(head: bytes, body: bytes, width: int) -> Sketches:
    import numpy as np

    numbers = np.frombuffer(head, "<i8").astype(np.int64).reshape(3, -1)
    if len(body) != numbers.shape[1] * width:
        return _arrays(b"", b"", width)
    rows = np.frombuffer(body, np.uint8).reshape(-1, width)
    if width % 8:
        rows = np.pad(rows, ((0, 0), (0, -width % 8)))
    words = np.ascontiguousarray(rows).view("<u8").astype(np.uint64, copy=False)
    return Sketches(numbers, words.T)


def _joined(parts: list[Sketches], width: int) -> Sketches:
    import numpy as np

    if not parts:
        return _arrays(b"", b"", width)
    words = np.empty((parts[0].words.shape[0], sum(part.words.shape[1] for part in parts)), np.uint64)
    np.concatenate([part.words for part in parts], axis=1, out=words)
    return Sketches(np.concatenate([part.numbers for part in parts], axis=1), words)
