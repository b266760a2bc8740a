"""The measurement of how often nothing relevant is found, and its questions."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from graphmem.relevance import HARDLY_RELEVANT

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

if TYPE_CHECKING:
    from benchmarks.retrieval import calibrate, refusals
    from benchmarks.retrieval.answering import Result
    from benchmarks.retrieval.sets import BenchmarkSet, Question
else:
    from retrieval import calibrate, refusals
    from retrieval.answering import Result
    from retrieval.sets import BenchmarkSet, Question

QUESTIONS = [json.loads(line) for line in refusals.FILE.read_text(encoding="utf-8").splitlines()]


def result(group: str, best: float) -> Result:
    return Result("q", group, {}, [], best, 1.0)


def test_the_file_has_enough_questions_without_an_answer_and_none_twice() -> None:
    negatives = [one for one in QUESTIONS if one["kind"] != refusals.ANSWERED]

    assert len(negatives) >= 100
    assert {one["kind"] for one in negatives} == {"far", "near", "name"}
    assert {one["set"] for one in negatives} == {"devbench", "locomo", "musique", "vault"}
    assert len({one["id"] for one in QUESTIONS}) == len(QUESTIONS)
    assert len({(one["set"], one["query"]) for one in QUESTIONS}) == len(QUESTIONS)


def test_a_share_comes_with_the_interval_of_wilson() -> None:
    half = refusals.rate(50, 100)

    assert half[:3] == (100, 50, 0.5)
    assert half[3:] == pytest.approx((0.4038, 0.5962), abs=1e-4)
    assert refusals.rate(0, 15)[3:] == pytest.approx((0.0, 0.2039), abs=1e-4)
    assert refusals.rate(0, 0)[2:] == (0.0, 0.0, 1.0)


def test_the_questions_of_the_file_join_those_of_their_set() -> None:
    asked = [
        Question("1", "who?", frozenset({"a"}), "adversarial"),
        Question("2", "what?", frozenset({"a"}), "single-hop"),
        Question("3", "zebra?", frozenset(), "negative"),
    ]

    for name in ("musique", "musique-mentions"):
        found = refusals.of_set(BenchmarkSet(name, "t", [], asked, ("recall@5",)))
        groups = [one.group for one in found.questions]
        assert groups[:3] == ["other person", "answered", "far"]
        assert groups.count("near") == sum(
            one["kind"] == "near" for one in QUESTIONS if one["set"] == "musique"
        )
    assert refusals.own_questions("vault")[-1].gold
    (one, *_) = refusals.own_questions("locomo")
    assert one.scopes == ("conversation:conv-26",)


def test_rates_are_taken_by_kind_at_the_threshold_of_the_product() -> None:
    low, high = HARDLY_RELEVANT - 0.01, HARDLY_RELEVANT
    found = refusals.counted(
        "s", "hybrid", [result("answered", high), result("far", low), result("far", high)]
    )

    assert {kind: rate[:2] for kind, rate in found.rates.items()} == {"answered": (1, 0), "far": (2, 1)}


def test_the_handbook_is_asked_without_any_data(tmp_path: Path) -> None:
    said: list[str] = []
    found = refusals.measure([], ["lexical"], None, tmp_path, said.append)
    text = "\n".join(refusals.lines(found))

    assert [one["set"] for one in found] == ["vault", "all"]
    rates = found[0]["rates"]
    assert rates["answered"]["questions"] >= 40
    assert rates["answered"]["share"] <= 0.05
    assert rates["far"]["share"] >= 0.7
    assert "12 0." in text


# ---- fitting ----------------------------------------------------------------------------------------


def bag(number: int, kind: str, *rows: tuple[float, float], name: str = "s") -> calibrate.Bag:
    return calibrate.Bag(f"q{number}", name, kind, [(*row, 1.0) for row in rows])


def bags() -> list[calibrate.Bag]:
    """Questions whose best memory tells the two sides apart, but for one of each side."""
    found = []
    for number in range(40):
        answered, turn = number % 2 == 0, number % 7 / 20
        cosine, coverage = (0.5 + turn, 0.6) if answered else (0.1 + turn, 0.2)
        if number in (3, 8):
            cosine, coverage = 0.35, 0.4
        found.append(bag(number, "answered" if answered else "far", (cosine, coverage), (0.0, 0.1)))
    return found


def test_the_regression_is_where_its_slope_is_zero() -> None:
    found = bags()
    constants = calibrate.fit(found)

    best = [one.rows[0] for one in found]
    errors = [
        one.answered - 1 / (1 + math.exp(-sum(a * b for a, b in zip(row, constants, strict=True))))
        for one, row in zip(found, best, strict=True)
    ]
    assert [sum(error * row[i] for error, row in zip(errors, best, strict=True)) for i in range(3)] == (
        pytest.approx([1e-3 * value for value in constants], abs=1e-5)
    )
    assert constants[0] > 0 > constants[2]


def test_a_large_set_counts_no_more_than_a_small_one() -> None:
    small = [
        bag(n, kind, (cosine, 0.5), name="small")
        for n, (kind, cosine) in enumerate(
            [("answered", 0.6), ("answered", 0.3), ("far", 0.4), ("far", 0.2), ("far", 0.35)]
        )
    ]
    large = [bag(n, "far" if n % 3 else "answered", (n % 5 / 5, n % 4 / 4), name="large") for n in range(30)]

    assert calibrate.fit(small + large) == pytest.approx(calibrate.fit(small + large * 9), rel=0.05)


def test_every_question_is_judged_by_constants_of_the_others() -> None:
    fitted = calibrate.calibrated([*bags(), bag(99, "far")])
    text = "\n".join(calibrate.lines(fitted))

    assert fitted.held_out["s answered"]["questions"] == 20
    assert fitted.held_out["all far"]["questions"] == 21
    assert fitted.held_out["s answered"]["share"] <= 0.1
    assert fitted.held_out["s far"]["share"] >= 0.9
    assert text.startswith("constants: ")
