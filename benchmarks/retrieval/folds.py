"""Folds for tuning by cross-validation: a question's fold depends on its id and on nothing else.

What is chosen for a fold is chosen by the questions of the others, and judged by its own; the mean over
all of them is then an honest figure of the way of choosing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

from .intervals import Score, mean_of


def fold_of(question: str, folds: int, salt: str = "") -> int:
    """The fold of a question, from 0; another `salt` gives another division."""
    digest = blake2b(f"{salt}\0{question}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % folds


class Split(NamedTuple):
    """The questions to choose by, and the ones to judge by."""

    train: list[str]
    test: list[str]


def split(questions: Iterable[str], folds: int, salt: str = "") -> Iterator[Split]:
    """Every fold in turn as the one to judge by. Every question is in exactly one `test`."""
    numbered = [(fold_of(question, folds, salt), question) for question in questions]
    for fold in range(folds):
        yield Split(
            [question for number, question in numbered if number != fold],
            [question for number, question in numbered if number == fold],
        )


class HeldOut(NamedTuple):
    """The scores of the questions under what was chosen without them, and what was chosen for each fold."""

    scores: list[Score]
    chosen: list[str]


def hold_out(variants: Mapping[str, Sequence[Score]], folds: int, *, macro: bool, salt: str = "") -> HeldOut:
    """For each fold the variant that is best on the others (the first of equals), judged on the fold.

    `variants` are the scores of the same questions under different settings. Raises `ValueError` when there
    is none or when their questions differ.
    """
    by_question = {
        name: {score.question: score for score in scores} for name, scores in sorted(variants.items())
    }
    questions = sorted(next(iter(by_question.values()), {}))
    if not questions or any(sorted(scores) != questions for scores in by_question.values()):
        raise ValueError("the variants do not answer the same questions")
    found = HeldOut([], [])
    for train, test in split(questions, folds, salt):
        means = {
            name: mean_of((scores[one] for one in train), macro=macro) for name, scores in by_question.items()
        }
        best = max(means, key=lambda name: means[name])
        found.chosen.append(best)
        found.scores.extend(by_question[best][one] for one in test)
    return found
