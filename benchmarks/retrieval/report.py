"""A run as a document to be saved, and the difference between two of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Final

from .anchors import ANCHORS
from .answering import Result, percentile
from .intervals import Estimate, Score, differences, estimate, mean_of
from .sets import BenchmarkSet

VERSION: Final = 1


def scores_of(results: Sequence[Mapping[str, Any]], metric: str) -> list[Score]:
    """One figure of the saved results of a recipe, where it applies."""
    return [
        Score(one["id"], one["group"], one["figures"][metric]) for one in results if metric in one["figures"]
    ]


def document(
    wanted: BenchmarkSet, imported: Mapping[str, Any], runs: Mapping[str, Sequence[Result]]
) -> dict[str, Any]:
    """What is saved of a set: the figures of each recipe, their differences, and every single result."""
    saved = {recipe: [one.as_dict() for one in results] for recipe, results in runs.items()}
    pairs = [
        {"before": before, "after": after} | row
        for before, after in combinations(saved, 2)
        for row in difference_rows(wanted.metrics, saved[before], saved[after], macro=wanted.macro)
    ]
    return {
        "title": wanted.title,
        "macro": wanted.macro,
        "metrics": list(wanted.metrics),
        "questions": len(wanted.questions),
        "notes": list(wanted.notes),
        "import": dict(imported),
        "recipes": {recipe: _recipe(wanted, results) for recipe, results in saved.items()},
        "differences": pairs,
        "anchors": [anchor._asdict() for anchor in ANCHORS.get(wanted.name, ())],
    }


def _recipe(wanted: BenchmarkSet, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    groups = sorted({one["group"] for one in results})
    scores = {metric: found for metric in wanted.metrics if (found := scores_of(results, metric))}
    times = [one["ms"] for one in results]
    return {
        "figures": {metric: _rounded(estimate(each, macro=wanted.macro)) for metric, each in scores.items()},
        "groups": {
            group: {
                metric: round(mean_of(of_group, macro=False), 4)
                for metric, each in scores.items()
                if (of_group := [score for score in each if score.group == group])
            }
            for group in groups
        },
        "ms": {"p50": percentile(times, 0.5), "p95": percentile(times, 0.95)},
        "results": list(results),
    }


def _rounded(found: Estimate) -> dict[str, float | int]:
    return {name: round(value, 4) for name, value in found._asdict().items()}


def difference_rows(
    metrics: Sequence[str],
    before: Sequence[Mapping[str, Any]],
    after: Sequence[Mapping[str, Any]],
    *,
    macro: bool,
) -> list[dict[str, Any]]:
    """After minus before in each figure, paired by question, with how many questions changed.

    A figure that applies to none of the questions has no row.
    """
    rows = []
    for metric in metrics:
        each = differences(scores_of(before, metric), scores_of(after, metric))
        if not each:
            continue
        better = sum(score.value > 0 for score in each)
        worse = sum(score.value < 0 for score in each)
        changed = {"metric": metric, "higher": better, "lower": worse}
        rows.append(changed | _rounded(estimate(each, macro=macro)))
    return rows


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Two saved runs, set by set and recipe by recipe, where both have them."""
    found: dict[str, Any] = {}
    for name, old in before["sets"].items():
        new = after["sets"].get(name)
        if new is None:
            continue
        found[name] = {
            "title": new["title"],
            "recipes": {
                recipe: difference_rows(
                    new["metrics"], rows["results"], new["recipes"][recipe]["results"], macro=new["macro"]
                )
                for recipe, rows in old["recipes"].items()
                if recipe in new["recipes"]
            },
        }
    return found
