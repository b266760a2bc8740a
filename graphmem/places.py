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

from graphmem.fusion import Fused, Scored
from graphmem.lexical import Term
from graphmem.store.places import Placed, Surroundings

LEAD: Final = 20
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
_STEPS: Final = tuple((steps, _WORD_FALL**steps, 2 * _MEANING_FALL**steps) for steps in range(1, REACH + 1))
"""Positions away, what a word counts there, and what the cosines there count."""
_SENTENCES: Final = re.compile("(?<=[.!?؟])\\s+|(?<=[。！？])|\n")
_QUESTION_MARKS: Final = ("?", "？", "؟")
_ASKS: Final = re.compile(f"[{''.join(_QUESTION_MARKS)}]")
_CLOSING: Final = "\"'”’)]» "


class Sought(NamedTuple):
    """A term of the query, and how rare it is."""

    term: Term
    weight: float


class _Reading(NamedTuple):
    """A memory with what was found out about it."""

    placed: Placed
    held: Sequence[int]
    """Numbers of the terms that it holds."""
    worth: float
    """By how much it says, from .4 to 1."""


def said(text: str) -> float:
    """How much a text states, from 0 to 1: its bytes without its questions over those and thirty."""
    if _ASKS.search(text):
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
        self._weights = [term.weight for term in terms]
        self._whole = sum(self._weights)
        self._by_meaning = by_meaning
        self._found = {one.pk: one.found for one in flat}
        self._best_words = self._best("lexical")
        self._best_cosine = self._best("semantic")
        self._read: dict[int, _Reading] = {}
        self._abouts: dict[int, float] = {}
        self._at: dict[tuple[str, int], list[int]] = {}
        # Cosines over the best one, from 0 to 1.
        self._near: dict[int, float] = {}
        self.learn({pk: found["semantic"].score for pk, found in self._found.items() if "semantic" in found})

    def _best(self, channel: str) -> float:
        return max((found[channel].score for found in self._found.values() if channel in found), default=0.0)

    def gather(self, memories: Sequence[int]) -> list[int]:
        """Reads memories and what stands around them; the row numbers of all that were not read before."""
        near = self._around.beside(sorted(memories), REACH)
        new = sorted(near - self._read.keys())
        held: dict[int, list[int]] = {}
        for number, sought in enumerate(self._terms):
            for pk in self._around.holding(sought.term, new):
                held.setdefault(pk, []).append(number)
        for placed in self._around.placed(new):
            terms = held.get(placed.pk, ())
            enough = max(said(placed.text), self._share(dict.fromkeys(terms, 1.0)) ** _HELD_POWER)
            self._read[placed.pk] = _Reading(placed, terms, _SILENT + (1 - _SILENT) * enough)
            if placed.source is not None and placed.position is not None:
                self._at.setdefault((placed.source, placed.position), []).append(placed.pk)
        return new

    def without_cosine(self) -> list[int]:
        """Those that were read and whose cosine is not known."""
        return sorted(self._read.keys() - self._near.keys()) if self._by_meaning else []

    def learn(self, cosines: Mapping[int, float]) -> None:
        """Takes in cosines."""
        best = self._best_cosine
        self._near.update(
            (pk, max(cosine, 0.0) / best if best > 0 else 0.0) for pk, cosine in cosines.items()
        )

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
            scores[pk] = sum_ / (1 + _SOURCE) * one.worth
        return scores

    def _about(self, one: _Reading) -> float:
        """What a memory and its surroundings are about: the weighted mean of the figures that there are."""
        pk, shares = one.placed.pk, dict.fromkeys(one.held, 1.0)
        meaning = self._around_it(one, shares)
        sums = weights = 0.0
        if self._terms:
            lexical = self._found[pk].get("lexical") if pk in self._found else None
            words = max(lexical.score, 0.0) / self._best_words if lexical and self._best_words > 0 else 0.0
            sums, weights = _WORDS * words + _AROUND * self._share(shares), _WORDS + _AROUND
        if self._by_meaning:
            sums += _MEANING * meaning
            weights += _MEANING
        return sums / weights if weights else 0.0

    def _around_it(self, one: _Reading, shares: dict[int, float]) -> float:
        """Looks at the surroundings that were read: adds the share by which a term is held to `shares`.

        The cosine over the best one, averaged with its surroundings; those missing are taken as itself.
        """
        source, position = one.placed.source, one.placed.position
        near, at, read = self._near, self._at, self._read
        own = near.get(one.placed.pk, 0.0)
        if source is None or position is None:
            return own
        here = at[source, position]
        if len(here) > 1:
            for other in here:
                shares.update(dict.fromkeys(read[other].held, 1.0))
        sums, weights = own, 1.0
        for steps, fall, weight in _STEPS:
            total, count = 0.0, 0
            for place in (position - steps, position + steps):
                for other in at.get((source, place), ()):
                    total += near.get(other, 0.0)
                    count += 1
                    for term in read[other].held:
                        if shares.get(term, 0.0) < fall:
                            shares[term] = fall
            mean = (total + own * (2 - count)) / 2 if count < 2 else total / count
            sums, weights = sums + weight * mean, weights + weight
        return sums / weights

    def _share(self, shares: Mapping[int, float]) -> float:
        """The weight of terms, each counted by its share, over the weight of all."""
        if self._whole <= 0 or not shares:
            return 0.0
        weights = self._weights
        return min(sum([weights[term] * share for term, share in shares.items()]) / self._whole, 1.0)


def best_first(places: Places, shown: Mapping[int, str]) -> list[Scored]:
    """Those of `shown` that were read by their scores, the best first.

    `shown` are row numbers and ids of what was read and may be part of an answer.
    """
    scores = places.scores(shown)
    rows = [Scored(pk, shown[pk], score) for pk, score in scores.items()]
    return sorted(rows, key=lambda row: (-row.score, row.id))


def behind(read: Sequence[Scored], flat: Sequence[Fused]) -> list[Scored]:
    """The rest of the flat order, with scores that put it behind what was read."""
    known = {row.pk for row in read}
    least = read[-1].score if read else 1.0
    return [Scored(one.pk, one.id, one.score * least) for one in flat if one.pk not in known]
