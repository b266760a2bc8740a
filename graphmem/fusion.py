"""Putting the rankings of several channels into one order.

`sum`  each channel's scores over its best one, times its weight, added up
`rrf`  reciprocal ranks: the sum over channels of weight / (k + rank), with ranks from 1 and k = 60
       (Cormack, Clarke and Buettcher 2009); what a channel only scored and did not rank gets nothing of it

With `rrf` a score has no fixed greatest value: it is the raw sum, at most the weights over 61.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from graphmem.store.search import Ranked

Fusion: TypeAlias = Literal["sum", "rrf"]
FUSIONS: Final[tuple[Fusion, ...]] = ("sum", "rrf")

RRF_CONSTANT: Final = 60
"""The k of reciprocal rank fusion: how slowly a rank's worth falls."""


class Channel(NamedTuple):
    """What one channel found, and how much it counts."""

    name: str
    weight: float
    rows: Sequence[Ranked]


class Scored(NamedTuple):
    """An item with its place in an order, greater is better."""

    pk: int
    id: str
    score: float


class Fused(NamedTuple):
    """An item with its place in the fused order, and its row in each channel that found it."""

    pk: int
    id: str
    score: float
    found: Mapping[str, Ranked]


def fuse(channels: Iterable[Channel], fusion: Fusion = "sum") -> list[Fused]:
    """The items of all channels by their fused score, then by id."""
    shares = _reciprocals if fusion == "rrf" else _shares_of_best
    sums: dict[int, float] = {}
    found: dict[int, dict[str, Ranked]] = {}
    for channel in channels:
        for row, share in zip(channel.rows, shares(channel.rows), strict=True):
            sums[row.pk] = sums.get(row.pk, 0.0) + channel.weight * share
            found.setdefault(row.pk, {})[channel.name] = row
    fused = [Fused(pk, next(iter(rows.values())).id, sums[pk], rows) for pk, rows in found.items()]
    return sorted(fused, key=lambda one: (-one.score, one.id))


def _shares_of_best(rows: Sequence[Ranked]) -> list[float]:
    best = max((row.score for row in rows), default=0.0)
    return [max(row.score, 0.0) / best if best > 0 else 0.0 for row in rows]


def _reciprocals(rows: Sequence[Ranked]) -> list[float]:
    return [1 / (RRF_CONSTANT + row.rank) if row.rank else 0.0 for row in rows]
