"""Fitting the constants of relevance, and how well they hold for questions that they were not fitted on.

Every question of `refusals.py` is a bag of the first memories found for it, each with its cosine and its
coverage. A logistic regression tells bags with an answer from those without by their best memory: the best
by the constants so far, fitted anew until that settles. Every set, and in it each of the two sides, counts
alike. LoCoMo's questions about the other person are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from graphmem.embed import Availability, Encoder
from graphmem.recall import Query, meaning, search
from graphmem.relevance import HARDLY_RELEVANT, VERDICT_DEPTH
from graphmem.store import Store
from graphmem.store.filters import Filters
from graphmem.store.search import Searcher
from graphmem.times import now

from .folds import split
from .refusals import ANSWERED, OTHER_PERSON, rate
from .sets import BenchmarkSet

Row: TypeAlias = tuple[float, ...]
FOLDS: Final = 10
_SETTLING: Final = 8
_STEPS: Final = 30
_RIDGE: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Bag:
    """A question with the figures of the first memories found for it, each ending in a 1."""

    id: str
    set: str
    kind: str
    rows: list[Row]

    @property
    def answered(self) -> bool:
        """Whether the question has an answer."""
        return self.kind == ANSWERED


def bags(path: Path, wanted: BenchmarkSet, encoder: Encoder | None) -> Iterator[Bag]:
    """The questions of a set; without an encoder the figures are coverages alone."""
    at = now()
    with Store(path) as store:
        for question in wanted.questions:
            if question.group == OTHER_PERSON:
                continue
            filters = Filters(at, question.scopes)
            searcher = Searcher(store.db, filters)
            query = Query(question.text, filters, VERDICT_DEPTH, explain=True)
            held = meaning(searcher, query.recipe, lambda: Availability(encoder, "by words only"))
            answer = search(searcher, query, held.encoder)
            rows = [row for hit in answer.hits if (row := _row(hit["judged"], alone=encoder is None))]
            yield Bag(question.id, wanted.name, question.group, rows)


def _row(judged: Mapping[str, float | None], *, alone: bool) -> Row | None:
    cosine, coverage = judged["cosine"], judged["coverage"]
    if coverage is None or (cosine is None and not alone):
        return None
    return (coverage, 1.0) if alone or cosine is None else (cosine, coverage, 1.0)


# ---- fitting ----------------------------------------------------------------------------------------


def best(bag: Bag, constants: Row) -> float:
    """The greatest logit in a bag; a very small one for an empty bag."""
    logits = (sum(a * b for a, b in zip(row, constants, strict=True)) for row in bag.rows)
    return max(logits, default=-99.0)


def fit(found: Sequence[Bag]) -> Row:
    """The constants, the last of them the intercept."""
    weights = _weights(found)
    told = [(bag, weight) for bag, weight in zip(found, weights, strict=True) if bag.rows]
    wide = len(told[0][0].rows[0])
    constants: Row = (1.0,) * wide
    for _ in range(_SETTLING):
        chosen = [max(bag.rows, key=lambda row: _dot(row, constants)) for bag, _ in told]
        constants = _regression(chosen, [bag.answered for bag, _ in told], [weight for _, weight in told])
    return constants


def _weights(found: Sequence[Bag]) -> list[float]:
    counts: dict[tuple[str, bool], int] = {}
    for bag in found:
        counts[bag.set, bag.answered] = counts.get((bag.set, bag.answered), 0) + 1
    return [len(found) / len(counts) / counts[bag.set, bag.answered] for bag in found]


def _dot(one: Row, other: Row) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def _regression(rows: Sequence[Row], sides: Sequence[bool], weights: Sequence[float]) -> Row:
    """Logistic regression by Newton's method, with a slight pull towards zero that keeps it finite."""
    wide = len(rows[0])
    at = [0.0] * wide
    for _ in range(_STEPS):
        slope = [-_RIDGE * value for value in at]
        curve = [[_RIDGE * (i == j) for j in range(wide)] for i in range(wide)]
        for row, side, weight in zip(rows, sides, weights, strict=True):
            chance = 1 / (1 + math.exp(-max(min(_dot(row, tuple(at)), 30.0), -30.0)))
            for i in range(wide):
                slope[i] += weight * (side - chance) * row[i]
                for j in range(wide):
                    curve[i][j] += weight * chance * (1 - chance) * row[i] * row[j]
        step = _solved(curve, slope)
        at = [value + moved for value, moved in zip(at, step, strict=True)]
        if max(map(abs, step)) < 1e-9:
            break
    return tuple(at)


def _solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """The solution of a small positive definite system, by Gauss's elimination."""
    rows = [[*line, value] for line, value in zip(matrix, right, strict=True)]
    for i in range(len(rows)):
        for k in range(i + 1, len(rows)):
            factor = rows[k][i] / rows[i][i]
            rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    found = [0.0] * len(rows)
    for i in reversed(range(len(rows))):
        rest = sum(rows[i][j] * found[j] for j in range(i + 1, len(rows)))
        found[i] = (rows[i][-1] - rest) / rows[i][i]
    return found


# ---- judging ----------------------------------------------------------------------------------------


class Fit(NamedTuple):
    """Constants of all questions, and the rates of refusal of questions that were held out."""

    constants: Row
    held_out: dict[str, dict[str, Any]]


def calibrated(found: Sequence[Bag]) -> Fit:
    """The constants of all bags; and each bag judged by constants of the other folds, at the threshold."""
    least = math.log(HARDLY_RELEVANT / (1 - HARDLY_RELEVANT))
    by_id = {f"{bag.set} {bag.id}": bag for bag in found}
    refused: dict[str, bool] = {}
    for train, test in split(by_id, FOLDS):
        constants = fit([by_id[one] for one in train])
        refused |= {one: best(by_id[one], constants) < least for one in test}
    groups: dict[str, list[bool]] = {}
    for one, bag in by_id.items():
        for group in (f"{bag.set} {bag.kind}", f"all {bag.kind}"):
            groups.setdefault(group, []).append(refused[one])
    rates = {name: rate(sum(each), len(each))._asdict() for name, each in sorted(groups.items())}
    return Fit(fit(found), rates)


def lines(found: Fit) -> Iterator[str]:
    """A fit as text."""
    yield "constants: " + ", ".join(f"{value:.2f}" for value in found.constants)
    yield f"refused when held out, at {HARDLY_RELEVANT}, with 95 % intervals"
    for name, one in found.held_out.items():
        part = f"{one['refused']}/{one['questions']}"
        yield f"  {name:<28}{part:>9} {one['share']:.3f} [{one['low']:.2f}, {one['high']:.2f}]"
