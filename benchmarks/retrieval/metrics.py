"""The figures of one question. Right answers count all alike; a figure that does not apply is left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final


def recall(ids: Sequence[str], gold: frozenset[str], depth: int) -> float:
    """The share of the right ids among the first `depth`."""
    return len(gold.intersection(ids[:depth])) / len(gold)


def all_gold(ids: Sequence[str], gold: frozenset[str], depth: int) -> float:
    """1 when every right id is among the first `depth`, else 0."""
    return float(gold.issubset(ids[:depth]))


def ndcg(ids: Sequence[str], gold: frozenset[str], depth: int) -> float:
    """The discounted gain of the first `depth` ids over the best that any order could have."""
    gained = sum(1 / math.log2(rank + 1) for rank, id_ in enumerate(ids[:depth], start=1) if id_ in gold)
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(gold), depth) + 1))
    return gained / best


def reciprocal_rank(ids: Sequence[str], gold: frozenset[str]) -> float:
    """One over the rank of the first right id; 0 when there is none."""
    return next((1 / rank for rank, id_ in enumerate(ids, start=1) if id_ in gold), 0.0)


_AT_DEPTH: Final[dict[str, Callable[[Sequence[str], frozenset[str], int], float]]] = {
    "recall": recall,
    "all-gold": all_gold,
    "ndcg": ndcg,
}


def figure(name: str, ids: Sequence[str], gold: frozenset[str], *, refused: bool) -> float | None:
    """One figure by its name: `recall@5`, `all-gold@5`, `ndcg@10`, `mrr`, or a rate of refusals.

    `refused-negative` is of questions that nothing answers, where a refusal is right; all others, among
    them `refused-answerable`, are of questions that have an answer. `None` when it does not apply.
    """
    if name == "refused-negative":
        return None if gold else float(refused)
    if not gold:
        return None
    if name == "refused-answerable":
        return float(refused)
    if name == "mrr":
        return reciprocal_rank(ids, gold)
    kind, _, depth = name.partition("@")
    return _AT_DEPTH[kind](ids, gold, int(depth))


def figures(
    names: Sequence[str], ids: Sequence[str], gold: frozenset[str], *, refused: bool
) -> dict[str, float]:
    """The figures that apply to a question."""
    found = {name: figure(name, ids, gold, refused=refused) for name in names}
    return {name: value for name, value in found.items() if value is not None}
