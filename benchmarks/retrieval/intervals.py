"""Means with their uncertainty: a bootstrap over questions, paired where two runs answered the same ones.

For the mean of groups, questions are drawn anew within each group. Questions about one conversation are
not independent of each other, so that the true uncertainty is somewhat larger than what is told here.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

RESAMPLES: Final = 2000
_SEED: Final = 20_260_301
_TAIL: Final = 0.025


class Score(NamedTuple):
    """One figure of one question."""

    question: str
    group: str
    value: float


class Estimate(NamedTuple):
    """A mean, its standard error, and the interval that holds it with 95 %."""

    mean: float
    error: float
    low: float
    high: float
    questions: int


def mean_of(scores: Iterable[Score], *, macro: bool) -> float:
    """The mean of the questions; with `macro` the plain mean of the groups' means. 0 for no scores."""
    means = [statistics.fmean(values) for values in _strata(scores, macro=macro)]
    return statistics.fmean(means) if means else 0.0


def estimate(scores: Sequence[Score], *, macro: bool, resamples: int = RESAMPLES) -> Estimate:
    """The mean with its uncertainty; the same for the same scores in every run."""
    strata = _strata(scores, macro=macro)
    mean = mean_of(scores, macro=macro)
    if not strata:
        return Estimate(0.0, 0.0, 0.0, 0.0, 0)
    rng = random.Random(_SEED)
    draws = sorted(
        statistics.fmean(sum(rng.choices(values, k=len(values))) / len(values) for values in strata)
        for _ in range(resamples)
    )
    low, high = draws[int(_TAIL * resamples)], draws[min(int((1 - _TAIL) * resamples), resamples - 1)]
    return Estimate(mean, statistics.pstdev(draws), low, high, len(scores))


def differences(before: Iterable[Score], after: Iterable[Score]) -> list[Score]:
    """After minus before, question by question, for the questions that both have."""
    known = {score.question: score.value for score in before}
    return [
        score._replace(value=score.value - known[score.question])
        for score in after
        if score.question in known
    ]


def _strata(scores: Iterable[Score], *, macro: bool) -> list[list[float]]:
    by_group: dict[str, list[float]] = {}
    for score in scores:
        by_group.setdefault(score.group if macro else "", []).append(score.value)
    return [by_group[group] for group in sorted(by_group)]
