"""The items nearest to a vector: candidates by their sketches, which then are compared by their vectors.

All sketches of a kind are compared, and the filters are asked of candidates in the order of their sketches,
as many as it takes. Where they leave out most, what passes them is looked up first instead. With up to 600
pieces, and where there is no NumPy, the vectors themselves are compared.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Sequence
from heapq import nlargest
from typing import TYPE_CHECKING, Any, Final

from graphmem.store import blocks
from graphmem.store.filters import Condition, Table

if TYPE_CHECKING:
    import apsw
    import numpy as np
    from numpy.typing import NDArray

NEAREST_LIMIT: Final = 4096
"""More items than this are compared by their vectors, without sketches."""
CANDIDATES: Final = 400
"""How many of the nearest of 10,000 sketches are compared by their vectors, at least; more when more is wanted,
and twice as many of ten times as many."""
_FEWER: Final = 250
"""The same where fewer items are wanted than must be found."""
_SURE: Final = 50
"""The nearest items of which hardly one may be missed."""
_LATE: Final = 0.8
"""Where one of them has a sketch beyond this share of the candidates, more candidates are looked at."""
_MOST: Final = 3_200
"""So many candidates are looked at for that reason."""
_GROWTH: Final = 0.3
FEW: Final = 600
"""So many pieces are compared by their vectors, without sketches: that is as fast, and exact."""
_PASS: Final = 0.25
"""Where less than this share of the candidates passes the filters, what passes them is looked up first."""

_EXACT: Final = """
WITH near AS MATERIALIZED (SELECT s.item, s.vector FROM sketch_{table} AS s {sketched})
SELECT near.item, 1 - vec_distance_cosine(v.vector, :vector)
FROM near CROSS JOIN vector AS v ON v.pk = near.vector
"""
_AMONG: Final = """
SELECT i.pk FROM carray(:those) AS t CROSS JOIN {table} AS i ON i.pk = t.value WHERE {condition}
"""
_VECTORS: Final = "SELECT v.vector FROM carray(:those) AS t CROSS JOIN vector AS v ON v.pk = t.value"
_PASSING: Final = "SELECT s.chunk FROM sketch_{table} AS s {sketched}"


class Near:
    """The nearest items of one kind for one vector, by the filters of a search.

    `hidden` are the items that the filters leave out, where these are few and known; `mask` says of each
    number whether the item passes, where that is known.
    """

    def __init__(
        self, db: apsw.Connection, kind: Table, condition: Condition, hidden: Collection[int] | None,
        mask: bytearray | None,
    ) -> None:  # fmt: skip
        self._db: Any = db
        self._kind = kind
        self._condition = condition
        self._hidden = hidden
        self._mask = mask

    def cosines(self, vector: bytes, sketch: bytes, depth: int) -> dict[int, float]:
        """At least `depth` items, where there are so many, with the cosine of the best of their near pieces."""
        if depth > NEAREST_LIMIT or not blocks.available():
            return best_of(self._ask(_EXACT, vector=vector))
        pieces, order = self._by_sketch(sketch)
        if self._hidden is None and self._mask is not None:
            order = order[masked(self._mask, pieces[1][order])]
            self._hidden = ()
        found, passed, looked_at = self._looked_through(vector, depth, pieces, order)
        if passed < _PASS * looked_at:
            order = order[self._passes(pieces[0])[order]]
            self._hidden = ()
            return self._looked_through(vector, depth, pieces, order)[0]
        return found

    def count(self, sketch: bytes) -> int | None:
        """How many items have a vector; `None` where that takes a query."""
        import numpy as np

        if self._hidden is None and self._mask is None:
            return None
        parts = [part.numbers[1] for part in blocks.sketches(self._db, self._kind.number, len(sketch))]
        held = np.bincount(np.concatenate(parts)) > 0
        if self._hidden is None and self._mask is not None:
            return int((held & masked(self._mask, np.arange(len(held)))).sum())
        hidden = [pk for pk in self._hidden or () if pk < len(held)]
        held[hidden] = False
        return int(held.sum())

    def _looked_through(
        self, vector: bytes, depth: int, pieces: NDArray[np.int64], order: NDArray[np.int64]
    ) -> tuple[dict[int, float], int, int]:
        """The best cosines of items; how many pieces passed the filters, and how many were looked at."""
        rows: list[tuple[int, float]] = []
        there, looked_at = len(order), 0
        least = CANDIDATES if depth >= _SURE else _FEWER
        until = max(round(least * max(1.0, there / 10_000) ** _GROWTH), depth + depth // 2)
        if there <= FEW:
            until = there
        while True:
            rows += self._compared(vector, pieces, order[looked_at:until])
            looked_at = min(until, there)
            found = best_of(rows)
            # Where items have many pieces, those may be of few items.
            enough = len(found) >= depth + depth // 4
            if (
                looked_at >= there
                or (self._hidden is None and len(rows) < _PASS * looked_at)
                or (enough and (len(rows) >= _MOST or not comes_late(rows, found, min(depth, _SURE))))
            ):
                return found, len(rows), looked_at
            until += until // 2

    def _by_sketch(self, sketch: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All pieces as `blocks.Sketches` has them, and their places by the distance of their sketches."""
        import numpy as np

        query = blocks.words_of(sketch)
        numbers, distances = [], []
        for part in blocks.sketches(self._db, self._kind.number, len(sketch)):
            differ = np.zeros(part.words.shape[1], np.uint16)
            for word, same in zip(part.words, query, strict=True):
                differ += np.bitwise_count(word ^ same)
            numbers.append(part.numbers)
            distances.append(differ)
        order = np.argsort(np.concatenate(distances), kind="stable")
        return (numbers[0] if len(numbers) == 1 else np.concatenate(numbers, axis=1)), order

    def _passes(self, pieces: NDArray[np.int64]) -> NDArray[np.bool_]:
        """For each piece whether its item passes the filters."""
        import numpy as np

        passing = [piece for (piece,) in self._ask(_PASSING)]
        return np.isin(pieces, np.array(passing, np.int64))

    def _compared(
        self, vector: bytes, pieces: NDArray[np.int64], places: NDArray[np.int64]
    ) -> list[tuple[int, float]]:
        """(item, cosine) of the pieces at some places whose items pass the filters, in their order."""
        import numpy as np

        items = pieces[1][places]
        passing: NDArray[np.bool_] | None = None
        if self._hidden is None and len(items):
            among = self._ask(_AMONG, those=numbers(np.unique(items).tolist()))
            passing = np.isin(items, np.array([pk for (pk,) in among], np.int64))
        elif self._hidden:
            passing = ~np.isin(items, list(self._hidden))
        if passing is not None:
            items, places = items[passing], places[passing]
        if not len(items):
            return []
        kept = blocks.vectors(self._db, self._kind.number, len(vector) // 4)
        if kept is not None and len(kept) == pieces.shape[1]:
            found = products(kept[places], vector)
        else:
            held = self._db.execute(_VECTORS, {"those": numbers(pieces[2][places].tolist())}).fetchall()
            found = cosines([one for (one,) in held], vector)
        return list(zip(items.tolist(), found, strict=True))

    def cosines_of(self, vector: bytes, sketch: bytes, items: Sequence[int]) -> dict[int, float] | None:
        """The cosine of the best piece of each of some items that have vectors; `None` where none are kept."""
        for part in blocks.sketches(self._db, self._kind.number, len(sketch)):
            kept = blocks.vectors(self._db, self._kind.number, len(vector) // 4)
            if kept is None or len(kept) != part.numbers.shape[1]:
                return None
            places = blocks.places_of(self._db, self._kind.number, items)
            return best_of(zip(part.numbers[1][places].tolist(), products(kept[places], vector), strict=True))
        return None

    def _ask(self, statement: str, **binds: Any) -> Any:
        condition = self._condition
        sql = statement.format(table=self._kind.table, condition=condition.sql, sketched=condition.sketched)
        return self._db.execute(sql, condition.binds | binds)


def cosines(vectors: Sequence[bytes], query: bytes) -> list[float]:
    """The cosines of unit vectors (float32, little-endian) and another one."""
    import numpy as np

    return products(np.frombuffer(b"".join(vectors), "<f4").reshape(len(vectors), -1), query)


def products(rows: NDArray[np.float32], query: bytes) -> list[float]:
    """The products of unit vectors, one in each row, with another one."""
    import numpy as np

    # Not a product of matrices, in which rounding depends on where a row stands.
    found: list[float] = np.einsum("ij,j->i", rows, np.frombuffer(query, "<f4")).tolist()
    return found


def best_of(rows: Iterable[tuple[int, float]]) -> dict[int, float]:
    """The best score of each item."""
    best: dict[int, float] = {}
    for item, score in rows:
        if item not in best or score > best[item]:
            best[item] = score
    return best


def comes_late(rows: Sequence[tuple[int, float]], found: dict[int, float], count: int) -> bool:
    """Whether one of the nearest items stands near the end of the candidates, in the order of their sketches.

    Then there may be more beyond it. With real texts it hardly happens; vectors that are all about equally
    far from the query need more candidates.
    """
    least = nlargest(count, found.values())[-1]
    late = rows[round(_LATE * len(rows)) :]
    return any(score >= least and score == found[item] for item, score in late)


def masked(mask: bytearray, items: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For each of some items whether a mask has it."""
    import numpy as np

    held = np.frombuffer(mask, np.bool_)
    return held[np.minimum(items, len(held) - 1)] & (items < len(held))


def numbers(values: Iterable[int]) -> Any:
    """Numbers that a statement reads as the table `carray`."""
    import apsw

    # An array of nothing cannot be bound; no row has the number -1.
    return apsw.carray(array("q", values) or array("q", [-1]))
