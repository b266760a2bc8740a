"""Encoding many texts well: equal ones once, long ones with long ones, in small batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Protocol

from graphmem.embed.contract import Progress, Role

BATCH: Final = 16
"""Texts in one run of the model; measured best on two cores, and larger ones only cost memory."""

_WINDOW: Final = 4096
"""Texts that are sorted together: enough to fill batches evenly, and a bound on what is held tokenised."""

_AREA: Final = BATCH * 512 * 512
"""Bound on texts × longest², which is what attention needs memory for."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a model will read of one text: how long it is, and a content that only its engine knows."""

    length: int
    content: Any


class Engine(Protocol):
    """A loaded model."""

    def read(self, texts: Sequence[str], role: Role) -> list[Reading]:
        """What the model reads of each text, its role's prompt included."""
        ...

    def run(self, batch: Sequence[Reading]) -> list[bytes]:
        """One vector for each."""
        ...


def encode(engine: Engine, texts: Sequence[str], role: Role, progress: Progress | None) -> list[bytes]:
    """One vector for each text in their order, each different text run once."""
    repeats: dict[str, int] = {}
    for text in texts:
        repeats[text] = repeats.get(text, 0) + 1
    vectors: dict[str, bytes] = {}
    distinct = iter(repeats)
    while window := list(islice(distinct, _WINDOW)):
        readings = engine.read(window, role)
        for batch in batches([reading.length for reading in readings]):
            made = engine.run([readings[i] for i in batch])
            vectors.update(zip((window[i] for i in batch), made, strict=True))
            if progress is not None:
                progress(sum(repeats[window[i]] for i in batch))
    return [vectors[text] for text in texts]


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Positions grouped by similar length, the longest first, in groups that fit memory."""
    order = sorted(range(len(lengths)), key=lambda i: lengths[i], reverse=True)
    at = 0
    while at < len(order):
        longest = max(lengths[order[at]], 1)
        size = max(1, min(BATCH, _AREA // longest**2))
        yield order[at : at + size]
        at += size
