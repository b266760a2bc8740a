"""The walk by rounds gives what the linear algebra of personalised PageRank gives."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.spread import spread

SIZE = 6
matrices = st.lists(
    st.lists(st.sampled_from([0.0, 0.0, 0.5, 1.0, 3.0]), min_size=SIZE, max_size=SIZE),
    min_size=SIZE,
    max_size=SIZE,
)
seeds = st.dictionaries(st.integers(0, SIZE - 1), st.floats(0.1, 5), min_size=1)


def reference(
    weights: list[list[float]], given_seeds: dict[int, float], damping: float, rounds: int
) -> list[float]:
    whole = sum(given_seeds.values())
    held = [given_seeds.get(node, 0.0) / whole for node in range(SIZE)]
    mass = [0.0] * SIZE
    for _ in range(rounds + 1):
        mass = [m + (1 - damping) * h for m, h in zip(mass, held, strict=True)]
        following = [0.0] * SIZE
        for node, row in enumerate(weights):
            total = sum(row)
            for other, weight in enumerate(row):
                if total:
                    following[other] += damping * held[node] * weight / total
        held = following
    return mass


@given(matrices, seeds, st.sampled_from([0.3, 0.5, 0.85]), st.integers(0, 7))
def test_mass_is_that_of_the_reference(
    weights: list[list[float]], given_seeds: dict[int, float], damping: float, rounds: int
) -> None:
    asked: list[int] = []

    def links(nodes: Sequence[int]) -> dict[int, list[tuple[int, float]]]:
        asked.extend(nodes)
        return {node: [(other, w) for other, w in enumerate(weights[node]) if w] for node in nodes}

    found = spread(given_seeds, links, damping=damping, rounds=rounds, least=0.0)
    expected = reference(weights, given_seeds, damping, rounds)
    assert [found.get(node, 0.0) for node in range(SIZE)] == pytest.approx(expected)
    assert sum(found.values()) <= 1 + 1e-9
    assert len(asked) == len(set(asked))


def test_next_to_nothing_is_not_followed() -> None:
    asked: list[int] = []

    def links(nodes: Sequence[int]) -> dict[int, list[tuple[int, float]]]:
        asked.extend(nodes)
        return {node: [(node + 1, 1.0)] for node in nodes}

    spread({0: 1.0}, links, damping=0.5, rounds=50, least=0.1)
    assert asked == [0, 1, 2, 3]


def test_without_seeds_there_is_no_mass() -> None:
    assert spread({}, lambda _nodes: {}) == {}


def test_a_node_that_would_spread_too_thinly_is_not_followed() -> None:
    asked: list[int] = []

    def links(nodes: Sequence[int]) -> dict[int, list[tuple[int, float]]]:
        asked.extend(nodes)
        return {node: [(node + 10, 1.0)] for node in nodes}

    spread(
        {1: 1.0, 2: 1.0}, links, lambda nodes: {node: 1000 if node == 2 else 1 for node in nodes}, least=0.01
    )

    assert 1 in asked
    assert 2 not in asked


def test_of_many_nodes_the_heaviest_are_followed_with_those_as_heavy_as_the_last() -> None:
    asked: list[int] = []

    def links(nodes: Sequence[int]) -> dict[int, list[tuple[int, float]]]:
        asked.extend(nodes)
        return {}

    spread({1: 5.0, 2: 3.0, 3: 3.0, 4: 1.0}, links, width=2, least=0.0)

    assert sorted(asked) == [1, 2, 3]
