"""Fusion: one order of several, by sums of scores or of reciprocal ranks."""

from __future__ import annotations

import pytest

from graphmem.fusion import RRF_CONSTANT, Channel, fuse
from graphmem.store.search import Ranked

WORDS = Channel("lexical", 0.6, [Ranked(1, "a", 8.0, 1), Ranked(2, "b", 4.0, 2)])
NEAR = Channel("semantic", 0.4, [Ranked(2, "b", 0.5, 1), Ranked(3, "c", 0.25, 2), Ranked(4, "d", -0.1, 3)])


def test_a_sum_is_of_shares_of_the_best_score() -> None:
    fused = fuse([WORDS, NEAR])

    assert [one.id for one in fused] == ["b", "a", "c", "d"]
    assert [one.score for one in fused] == pytest.approx([0.7, 0.6, 0.2, 0.0])
    assert set(fused[0].found) == {"lexical", "semantic"}


def test_reciprocal_ranks_are_the_raw_weighted_sum() -> None:
    fused = fuse([WORDS, NEAR], "rrf")

    k = RRF_CONSTANT
    assert [one.id for one in fused] == ["b", "a", "c", "d"]
    assert [one.score for one in fused] == pytest.approx(
        [0.6 / (k + 2) + 0.4 / (k + 1), 0.6 / (k + 1), 0.4 / (k + 2), 0.4 / (k + 3)]
    )


def test_what_a_channel_scored_without_ranking_it_has_nothing_of_its_ranks() -> None:
    unranked = Channel("semantic", 0.4, [Ranked(1, "a", 0.9, 0), Ranked(2, "b", 0.1, 1)])

    by_rank = {one.id: one.score for one in fuse([unranked], "rrf")}

    assert by_rank["a"] == 0.0
    assert by_rank["b"] == pytest.approx(0.4 / (RRF_CONSTANT + 1))


@pytest.mark.parametrize("fusion", ["sum", "rrf"])
def test_equal_scores_are_ordered_by_id(fusion: str) -> None:
    rows = [Ranked(pk, id_, 1.0, 1) for pk, id_ in ((1, "c"), (2, "a"), (3, "b"))]

    assert [one.id for one in fuse([Channel("lexical", 1.0, rows)], fusion)] == ["a", "b", "c"]  # type: ignore[arg-type]


def test_fusing_nothing_gives_nothing() -> None:
    assert fuse([Channel("lexical", 1.0, []), Channel("semantic", 1.0, [])]) == []
