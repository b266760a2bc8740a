"""Reading a memory in its place: with what stands around it, in its source, and by how much it states.

The best of the flat order, and what stands within two positions of them in their sources, are ordered anew.
A turn of a conversation or a piece of a document is rarely about all words of a question; its surroundings
hold the others. The score is a product of two things.

what it is about   the sum of its lexical score over the best (.2), of the share of the query's words that
                   are held here or around (.5), and of its cosine over the best, averaged with those around
                   (.8); to which the best such sum of its source adds 40 %
how much it says   from .4 for a text that states nothing to 1 for a long one; questions state nothing.
                   Whoever holds all words of the query says enough.

A word counts by how rare it is. One position away a word counts .7 and two away .49, a cosine .5 and .25.
A memory of no source is its own source, without surroundings.

Chosen on LoCoMo, where nDCG@10 stays within .01 when any of these constants is changed by a quarter (flat
order: .481); benchmarks/README.md has what each part is worth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from graphmem.fusion import Fused
from graphmem.store.places import Placed, Surroundings
from graphmem.store.search import Ranked

LEAD: Final = 30
"""How many of the flat order are read in their places, with what stands around them."""
REACH: Final = 2

_WORDS: Final = 0.2
_AROUND: Final = 0.5
_MEANING: Final = 0.8
_SOURCE: Final = 0.4
_WORD_FALL: Final = 0.7
_MEANING_FALL: Final = 0.5
_SILENT: Final = 0.4
_ENOUGH: Final = 30
"""The bytes of statements at which a text counts half as saying something."""
_HELD_POWER: Final = 4
_SENTENCES: Final = re.compile("(?<=[.!?؟])\\s+|(?<=[。！？])|\n")
_QUESTION_MARKS: Final = ("?", "？", "؟")
_CLOSING: Final = "\"'”’)]» "


class Sought(NamedTuple):
    """A term of the query: its full-text expression, and how rare it is."""

    match: str
    weight: float


class _Reading(NamedTuple):
    """A memory with what was found out about it."""

    placed: Placed
    held: frozenset[int]
    """Numbers of the terms that it holds."""
    said: float


def said(text: str) -> float:
    """How much a text states, from 0 to 1: its bytes without its questions over those and thirty."""
    if any(mark in text for mark in _QUESTION_MARKS):
        sentences = _SENTENCES.split(text)
        text = " ".join(one for one in sentences if not one.rstrip(_CLOSING).endswith(_QUESTION_MARKS))
    stated = len(text.strip().encode("utf-8", "ignore"))
    return stated / (stated + _ENOUGH)


class Places:
    """The memories of one query, read in their places."""

    def __init__(
        self, around: Surroundings, terms: Sequence[Sought], flat: Sequence[Fused], *, by_meaning: bool
    ) -> None:
        self._around = around
        self._terms = terms
        self._whole = sum(term.weight for term in terms)
        self._by_meaning = by_meaning
        self._found = {one.pk: one.found for one in flat}
        self._best_words = self._best("lexical")
        self._best_cosine = self._best("semantic")
        self._read: dict[int, _Reading] = {}
        self._abouts: dict[int, float] = {}
        self._at: dict[tuple[str, int], list[int]] = {}
        self._cosines: dict[int, float] = {
            pk: found["semantic"].score for pk, found in self._found.items() if "semantic" in found
        }

    def _best(self, channel: str) -> float:
        return max((found[channel].score for found in self._found.values() if channel in found), default=0.0)

    def gather(self, memories: Sequence[int]) -> list[int]:
        """Reads memories and what stands around them; the row numbers of all that were not read before."""
        near = self._around.beside(sorted(memories), REACH)
        new = sorted(near - self._read.keys())
        holders = [self._around.holding(term.match, new) for term in self._terms]
        for placed in self._around.placed(new):
            held = frozenset(number for number, pks in enumerate(holders) if placed.pk in pks)
            self._read[placed.pk] = _Reading(placed, held, said(placed.text))
            if placed.source is not None and placed.position is not None:
                self._at.setdefault((placed.source, placed.position), []).append(placed.pk)
        return new

    def without_cosine(self) -> list[int]:
        """Those that were read and whose cosine is not known."""
        return sorted(self._read.keys() - self._cosines.keys()) if self._by_meaning else []

    def learn(self, cosines: Mapping[int, float]) -> None:
        """Takes in cosines."""
        self._cosines.update(cosines)

    def ids(self) -> dict[int, str]:
        """The ids of all that were read."""
        return {pk: one.placed.id for pk, one in self._read.items()}

    def scores(self, memories: Iterable[int]) -> dict[int, float]:
        """The scores, 0 to 1, of some of those that were read; sources are judged by all that were."""
        for pk, one in self._read.items():
            if pk not in self._abouts:
                self._abouts[pk] = self._about(one)
        about = self._abouts
        best: dict[str, float] = {}
        for pk, one in self._read.items():
            if one.placed.source is not None:
                best[one.placed.source] = max(best.get(one.placed.source, 0.0), about[pk])
        scores = {}
        for pk in memories:
            one = self._read[pk]
            source = one.placed.source
            sum_ = about[pk] + _SOURCE * (about[pk] if source is None else best[source])
            enough = max(one.said, self._share(dict.fromkeys(one.held, 1.0)) ** _HELD_POWER)
            scores[pk] = sum_ / (1 + _SOURCE) * (_SILENT + (1 - _SILENT) * enough)
        return scores

    def _about(self, one: _Reading) -> float:
        """What a memory and its surroundings are about: the weighted mean of the figures that there are."""
        sums = weights = 0.0
        beside = self._beside(one)
        if self._terms:
            lexical = self._found.get(one.placed.pk, {}).get("lexical")
            words = max(lexical.score, 0.0) / self._best_words if lexical and self._best_words > 0 else 0.0
            sums, weights = _WORDS * words + _AROUND * self._held_around(one, beside), _WORDS + _AROUND
        if self._by_meaning:
            sums += _MEANING * self._meaning_around(one.placed.pk, beside)
            weights += _MEANING
        return sums / weights if weights else 0.0

    def _beside(self, one: _Reading) -> list[tuple[int, int]]:
        """(memory, positions away) of the surroundings that were read."""
        source, position = one.placed.source, one.placed.position
        if source is None or position is None:
            return []
        return [
            (pk, abs(step))
            for step in range(-REACH, REACH + 1)
            for pk in self._at.get((source, position + step), ())
            if pk != one.placed.pk
        ]

    def _held_around(self, one: _Reading, beside: Sequence[tuple[int, int]]) -> float:
        shares = dict.fromkeys(one.held, 1.0)
        for pk, steps in beside:
            for term in self._read[pk].held:
                shares[term] = max(shares.get(term, 0.0), _WORD_FALL**steps)
        return self._share(shares)

    def _share(self, shares: Mapping[int, float]) -> float:
        """The weight of terms, each counted by its share, over the weight of all."""
        if self._whole <= 0:
            return 0.0
        return min(sum(self._terms[term].weight * share for term, share in shares.items()) / self._whole, 1.0)

    def _meaning_around(self, pk: int, beside: Sequence[tuple[int, int]]) -> float:
        """The cosine over the best one, averaged with its surroundings; those missing are taken as itself."""
        own = self._near(pk)
        sums, weights = own, 1.0
        by_step: dict[int, list[float]] = {}
        for other, steps in beside:
            by_step.setdefault(steps, []).append(self._near(other))
        for steps in range(1, REACH + 1):
            found = by_step.get(steps, [])
            weight = 2 * _MEANING_FALL**steps
            mean = (sum(found) + own * max(2 - len(found), 0)) / max(len(found), 2)
            sums, weights = sums + weight * mean, weights + weight
        return sums / weights

    def _near(self, pk: int) -> float:
        cosine = self._cosines.get(pk, 0.0)
        return max(cosine, 0.0) / self._best_cosine if self._best_cosine > 0 else 0.0


def in_order(places: Places, flat: Sequence[Fused], shown: Mapping[int, str]) -> list[Fused]:
    """Those of `shown` that were read by their scores, with the rest of the flat order behind them.

    `shown` are row numbers and ids of what was read and may be part of an answer.
    """
    scores = places.scores(shown)
    found = {one.pk: one.found for one in flat}
    ranked = sorted(shown, key=lambda pk: (-scores[pk], shown[pk]))
    read = [
        Fused(
            pk, shown[pk], scores[pk], {**found.get(pk, {}), "place": Ranked(pk, shown[pk], scores[pk], rank)}
        )
        for rank, pk in enumerate(ranked, start=1)
    ]
    least = read[-1].score if read else 1.0
    return read + [
        Fused(one.pk, one.id, one.score * least, one.found) for one in flat if one.pk not in scores
    ]
