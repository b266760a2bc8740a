"""Answers stay within their budget, and say so when something did not fit."""

from __future__ import annotations

from graphmem.budget import tokens
from graphmem.mcp.answers import Budget, lean, packed, page


def test_rows_that_fit_are_untouched() -> None:
    budget = Budget(1_000)
    rows = [{"id": str(number), "content": "a short text"} for number in range(5)]

    assert budget.take(rows, text="content") == rows
    assert not budget.spent


def test_no_more_is_taken_than_the_budget_holds() -> None:
    budget = Budget(500)
    rows = [{"id": str(number), "content": "word " * 40} for number in range(50)]
    taken = budget.take(rows)

    assert 0 < len(taken) < 50
    assert sum(tokens(packed(row)) for row in taken) <= 500
    assert budget.spent


def test_a_long_text_is_cut_and_the_others_stay() -> None:
    budget = Budget(2_000)
    rows = [{"id": "long", "content": "word " * 5_000}, {"id": "short", "content": "all of it"}]
    taken = budget.take(rows, text="content")

    assert [row["id"] for row in taken] == ["long", "short"]
    assert taken[0]["cut"] is True
    assert "cut" not in taken[1]
    assert sum(tokens(packed(row)) for row in taken) <= 2_000


def test_a_share_leaves_room_for_what_follows() -> None:
    budget = Budget(1_000)
    budget.take([{"content": "word " * 2_000}], share=0.5, text="content")

    assert budget.left >= 500


def test_what_is_empty_is_left_out_and_zero_is_not() -> None:
    assert lean({"a": None, "b": "", "c": [], "d": {}, "e": 0, "f": False}) == {"e": 0, "f": False}


def test_a_page_says_where_the_next_one_begins() -> None:
    assert page(10, 25, 10) == {"total": 25, "truncated": True, "next_offset": 20}
    assert page(5, 25, 20) == {"total": 25}
