"""What an item is, as a function of what was said about it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import TIMES

from graphmem.fold import SCALARS, SETS, Contribution, Folded, fold

RUNS = ("2026-02-01T00:00:00.000Z", "2026-03-01T00:00:00.000Z", "2026-04-01T00:00:00.000Z")
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "weight": st.sampled_from((0.0, 0.5)), "importance": st.sampled_from((0.0, 0.5)),
    "place": st.sampled_from((["a", None], ["a", 1], ["b", 1])),
    **dict.fromkeys(("valid_at", "invalid_at", "expired_at"), st.sampled_from(TIMES)),
}  # fmt: skip


def said(kind: int) -> st.SearchStrategy[dict[str, Any]]:
    words = st.sampled_from(("x", "y", "Z"))
    scalars = {name: _VALUES.get(name, words) for name in SCALARS[kind]}
    sets = {name: st.lists(words, max_size=2, unique=True) for name in SETS[kind]}
    properties = st.dictionaries(
        st.sampled_from("pq"), st.sampled_from((None, 1, True, 1.0, "1", [1])), max_size=2
    )
    times = {name: st.sampled_from(TIMES) for name in ("created_at", "updated_at")}
    return st.fixed_dictionaries({}, optional={**scalars, **sets, **times, "properties": properties})


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, list[Contribution]]:
    kind = draw(st.integers(0, 2))
    one = st.builds(Contribution, st.sampled_from(RUNS), said(kind))
    return kind, draw(st.lists(one, min_size=1, max_size=5))


@given(cases(), st.randoms())
def test_the_order_of_contributions_does_not_count(case: tuple[int, list[Contribution]], random: Any) -> None:
    kind, contributions = case
    shuffled = random.sample(contributions, len(contributions))

    assert fold(kind, shuffled) == fold(kind, contributions)


@given(cases(), st.data())
def test_a_contribution_that_comes_twice_counts_once(
    case: tuple[int, list[Contribution]], data: st.DataObject
) -> None:
    kind, contributions = case
    again = data.draw(st.sampled_from(contributions))

    assert fold(kind, [*contributions, again]) == fold(kind, contributions)


@given(cases(), st.data())
def test_withdrawing_a_contribution_gives_what_was_without_it(
    case: tuple[int, list[Contribution]], data: st.DataObject
) -> None:
    """The fold keeps nothing of what it is not given: it depends on its input alone."""
    kind, contributions = case
    gone = data.draw(st.sampled_from(contributions))
    rest = [one for one in contributions if one is not gone]
    if not rest:
        return
    without = fold(kind, rest)

    fold(kind, contributions)

    assert fold(kind, rest) == without
    for one in rest:
        for name in SETS[kind]:
            assert set(one.said.get(name, ())) <= set(without.fields[name])


@given(cases())
def test_runs_can_be_folded_one_after_another(case: tuple[int, list[Contribution]]) -> None:
    """A later run of the clock never changes what an earlier one had unless it says so."""
    kind, contributions = case
    first = [one for one in contributions if one.taken_at == RUNS[0]]
    if not first:
        return
    silent = [*first, Contribution(RUNS[2], {})]

    assert fold(kind, silent).fields == fold(kind, first).fields
    assert fold(kind, silent).created_at == fold(kind, first).created_at


@given(cases())
def test_every_value_was_said_by_somebody(case: tuple[int, list[Contribution]]) -> None:
    kind, contributions = case
    folded = fold(kind, contributions)

    for name in SCALARS[kind]:
        stated = [one.said[name] for one in contributions if name in one.said]
        assert (folded.fields.get(name) in stated) if stated else name not in folded.fields
    for name in SETS[kind]:
        united = {member for one in contributions for member in one.said.get(name, ())}
        assert folded.fields[name] == sorted(united)
    stated_times = [one.known or one.taken_at for one in contributions]
    assert folded.updated_at in stated_times
    assert folded.updated_at <= max(stated_times)


def of(*contributions: tuple[str, dict[str, Any]]) -> Folded:
    return fold(0, [Contribution(taken_at, said) for taken_at, said in contributions])


OLD, NEW = "2025-01-01T00:00:00.000Z", "2025-06-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("one", "other", "wins"),
    [
        ({"description": "a", "updated_at": OLD}, {"description": "b", "updated_at": NEW}, "b"),
        ({"description": "a", "updated_at": OLD}, {"description": "b"}, "a"),
        ({"description": "a"}, {"description": "b"}, "b"),
        ({"description": "a", "created_at": NEW}, {"description": "b", "updated_at": OLD}, "a"),
        ({"description": "a", "updated_at": OLD}, {"updated_at": NEW}, "a"),
    ],
)
def test_within_a_run(one: dict[str, Any], other: dict[str, Any], wins: str) -> None:
    """The later of two known times wins, a known one beats an unknown, a tie goes to the greater text."""
    assert of((RUNS[0], one), (RUNS[0], other)).fields["description"] == wins


def test_a_tie_is_told() -> None:
    assert of((RUNS[0], {"description": "a"}), (RUNS[0], {"description": "b"})).ties == ["description"]
    assert of((RUNS[0], {"description": "a"}), (RUNS[0], {"description": "a"})).ties == []
    assert of((RUNS[0], {"description": "a"}), (RUNS[1], {"description": "b"})).ties == []


def test_an_older_input_does_not_overwrite_a_newer_value() -> None:
    held = (RUNS[0], {"description": "a", "updated_at": NEW})

    assert of(held, (RUNS[1], {"description": "b", "updated_at": OLD})).fields["description"] == "a"
    assert of(held, (RUNS[1], {"description": "b"})).fields["description"] == "b"


def test_what_is_said_again_is_as_new_as_its_last_time() -> None:
    folded = of(
        (RUNS[0], {"description": "a", "updated_at": OLD}), (RUNS[1], {"description": "a", "updated_at": NEW}),
        (RUNS[2], {"description": "b", "updated_at": "2025-03-01T00:00:00.000Z"}),
    )  # fmt: skip

    assert folded.fields["description"] == "a"
    assert folded.updated_at == OLD


def test_unknown_times_are_the_clock_and_links_touch_no_time() -> None:
    assert of((RUNS[0], {})) == Folded({"properties": {}, "aliases": []}, RUNS[0], RUNS[0])
    links = fold(
        1,
        [Contribution(RUNS[0], {"content": "c"}), Contribution(RUNS[1], {"about": ["i"], "mentions": ["j"]})],
    )
    assert links.updated_at == RUNS[0]
    assert links.fields["about"] == ["i"]


def test_the_first_run_decides_when_an_item_was_made() -> None:
    assert of((RUNS[1], {"created_at": OLD}), (RUNS[0], {})).created_at == RUNS[0]
    assert of((RUNS[0], {"created_at": NEW}), (RUNS[0], {"created_at": OLD})).created_at == OLD
