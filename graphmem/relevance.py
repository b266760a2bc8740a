"""Relevance: how much an item is about a query, from 0 to 1, comparable between queries and stores.

It is a logistic function of two raw figures: the cosine of the item and the query, and the coverage, which
is the share of the query's words that the item contains, each word weighted by how rare it is. Nothing of
it depends on what else was found. Where one figure is missing the other decides by constants of its own:
by words only, in a store or for an item without vectors; by meaning only, where no words are compared.

The constants are logistic regressions of "is this the best memory for a question with an answer, or for
one without" on the development sets and `benchmarks/retrieval/negatives.jsonl`, each set and each side
counted alike, with the default model; `bench_retrieval.py --refusals --fit` fits them again. By words only,
where the two are harder to tell apart, the intercept leans towards relevant. A fact says little and a name
next to nothing, so short texts are nearer to every query than memories are: they are judged more strictly.

What this cannot tell: a question about somebody of whom much is known, but not that. It finds memories
about them, and they are relevant by every figure there is; benchmarks/README.md says how often.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from graphmem.records import ENTITY, MEMORY, RELATION

Kind: TypeAlias = Literal["memory", "entity", "relation"]

HARDLY_RELEVANT: Final = 0.2
"""Below this an item is hardly about the query; an answer whose best is below it has nothing relevant."""

VERDICT_DEPTH: Final = 10
"""How many of the first items of each kind decide whether an answer has anything relevant."""

_COSINE: Final = 13.0
_COVERAGE: Final = 4.7
_BOTH: Final = -7.3
_COSINE_ALONE: Final = 16.6
_NO_COVERAGE: Final = -7.4
_COVERAGE_ALONE: Final = 9.3
_NO_COSINE: Final = -3.7
_STRICTER: Final[Mapping[Kind, float]] = {MEMORY: 0.0, RELATION: 1.5, ENTITY: 3.5}


def relevance(cosine: float | None, coverage: float | None, kind: Kind = MEMORY) -> float:
    """How relevant an item is by its cosine and its coverage; a figure that is not known is `None`."""
    if cosine is None and coverage is None:
        return 0.0
    if cosine is None:
        logit = _COVERAGE_ALONE * (coverage or 0.0) + _NO_COSINE
    elif coverage is None:
        logit = _COSINE_ALONE * cosine + _NO_COVERAGE
    else:
        logit = _COSINE * cosine + _COVERAGE * coverage + _BOTH
    return 1 / (1 + math.exp(_STRICTER[kind] - logit))
