"""Asking a store the questions of a set, as `gmem search` asks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, cast

from graphmem.embed import Availability, Encoder
from graphmem.recall import RECIPES, Query, Recipe, meaning, search
from graphmem.store import Store
from graphmem.store.filters import Filters
from graphmem.store.search import Searcher
from graphmem.times import now

from .metrics import figures
from .sets import BenchmarkSet

DEPTH: Final = 10
"""How many memories are asked for."""


SINGLE: Final = ("lexical", "semantic")
"""The recipes of one channel, which a recipe of several must not be worse than."""


class NoVectorsError(Exception):
    """A recipe needs vectors, and there are none."""


@dataclass(frozen=True, slots=True)
class Result:
    """One question answered: its figures, the ids found, the best relevance in the answer, milliseconds."""

    id: str
    group: str
    figures: dict[str, float]
    hits: list[str]
    best: float
    ms: float

    def as_dict(self) -> dict[str, Any]:
        """The result as it is saved."""
        return asdict(self)


def recipes_of_product() -> list[str]:
    """The recipes that need nothing but a query, the single channels first; `near` wants an entity too."""
    return sorted((name for name in RECIPES if name != "near"), key=lambda name: name not in SINGLE)


def ask(path: Path, wanted: BenchmarkSet, recipe: str, encoder: Encoder | None) -> list[Result]:
    """The results of all questions of a set. Raises `NoVectorsError`.

    The query's vector is taken before the clock starts.
    """
    at = now()
    results = []
    with Store(path) as store:
        for question in wanted.questions:
            filters = Filters(at, question.scopes)
            query = Query(question.text, filters, DEPTH, recipe=cast("Recipe", recipe))
            searcher = Searcher(store.db, filters)
            with_meaning = meaning(searcher, query.recipe, lambda: Availability(encoder, "no encoder"))
            if with_meaning.why_not:
                raise NoVectorsError(with_meaning.why_not)
            if with_meaning.encoder is not None:
                with_meaning.encoder.encode([question.text], "query")
            began = time.perf_counter()
            answer = search(searcher, query, with_meaning.encoder)
            ms = (time.perf_counter() - began) * 1000
            ids = [str(hit["id"]) for hit in answer.hits]
            figured = figures(wanted.metrics, ids, question.gold, refused=not answer.relevant)
            best = answer.best_relevance
            results.append(Result(question.id, question.group, figured, ids, best, round(ms, 2)))
    return results


def percentile(values: Sequence[float], share: float) -> float:
    """The value that a share of the values does not exceed; 0 for none."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0
