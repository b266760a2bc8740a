"""Walks agree with a plain reference on random graphs with cycles and parallel relations."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_store import SmallStore

from graphmem.ingest import run
from graphmem.options import ImportOptions
from graphmem.store import Store
from graphmem.store.filters import Filters
from graphmem.store.graph import Direction, Edge, Graph, Node
from graphmem.traverse import expand, reach, shortest_paths

NOW = "2030-01-01T00:00:00.000Z"


class Plain:
    """A graph in memory, asked like the store's."""

    def __init__(self, count: int, pairs: list[tuple[int, int]]) -> None:
        self.count = count
        self.edges = [
            Edge(number, f"e{number:04}", a, "to", b, None, None, None) for number, (a, b) in enumerate(pairs)
        ]

    def hop(self, frontier: Sequence[int], direction: Direction) -> list[Edge]:
        near = set(frontier)
        return [
            edge
            for edge in self.edges
            if (direction != "in" and edge.subject in near) or (direction != "out" and edge.object in near)
        ]

    def far(self, frontier: Sequence[int], direction: Direction) -> set[int]:
        pairs = [(edge.subject, edge.object) for edge in self.edges]
        return {end for node in frontier for end in neighbours(pairs, node, direction)}

    def between(self, nodes: Sequence[int], others: Sequence[int], most: int) -> list[Edge]:
        return [e for e in self.edges if e.subject in set(nodes) and e.object in set(others)][:most]

    def nodes(self, pks: Sequence[int]) -> list[Node]:
        return [
            Node(pk, str(pk), f"n{pk:03}", "thing", "global", None, False) for pk in pks if pk < self.count
        ]


graphs = st.integers(2, 9).flatmap(
    lambda n: st.tuples(
        st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=24)
    )
)
directions = st.sampled_from(["out", "in", "both"])


def neighbours(pairs: list[tuple[int, int]], node: int, direction: str) -> set[int]:
    ahead = {b for a, b in pairs if a == node} if direction != "in" else set()
    behind = {a for a, b in pairs if b == node} if direction != "out" else set()
    return ahead | behind


def distances(pairs: list[tuple[int, int]], start: int, direction: str) -> dict[int, int]:
    found, queue = {start: 0}, deque([start])
    while queue:
        node = queue.popleft()
        for far in neighbours(pairs, node, direction):
            if far not in found:
                found[far] = found[node] + 1
                queue.append(far)
    return found


@given(graphs, directions, st.integers(0, 5))
def test_expansion_reaches_what_a_plain_search_reaches(
    graph: tuple[int, list[tuple[int, int]]], direction: Direction, depth: int
) -> None:
    count, pairs = graph
    found = expand(Plain(count, pairs), [0], depth, direction)
    expected = {node: far for node, far in distances(pairs, 0, direction).items() if far <= depth}
    assert found.depths == expected
    inside = [number for number, (a, b) in enumerate(pairs) if a in expected and b in expected]
    assert sorted(edge.pk for edge in found.edges) == inside
    assert not found.truncated


@given(graphs, directions, st.integers(0, 4), st.sets(st.integers(0, 8), min_size=1), st.integers(1, 6))
def test_several_seeds_are_one_walk_that_stops_at_the_budget(
    graph: tuple[int, list[tuple[int, int]]], direction: Direction, depth: int, seeds: set[int], budget: int
) -> None:
    count, pairs = graph
    inside = sorted(seed for seed in seeds if seed < count)
    from_each = [distances(pairs, seed, direction) for seed in inside]
    nearest = {
        node: min(found[node] for found in from_each if node in found) for node in set().union(*from_each)
    }
    expected = {node: far for node, far in nearest.items() if far <= depth}

    found = reach(Plain(count, pairs), inside, depth, direction, budget)

    in_order = sorted(expected, key=lambda node: (expected[node], node))
    assert found.depths == {node: expected[node] for node in in_order[:budget]}
    assert found.truncated == (len(expected) > budget)


@given(graphs, directions)
def test_the_store_walks_like_a_plain_graph(
    graph: tuple[int, list[tuple[int, int]]], direction: Direction
) -> None:
    count, pairs = graph
    store = SmallStore()
    pks = [store.entity(f"n{number:03}") for number in range(count)]
    for number, (a, b) in enumerate(pairs):
        store.relation(pks[a], f"to {number}", pks[b])
    ended = store.relation(pks[0], "once", pks[1], invalid_at="2020-01-01T00:00:00.000Z")
    later = store.relation(pks[1], "still", pks[0], invalid_at="2040-01-01T00:00:00.000Z")

    found = expand(Graph(store.db, Filters(NOW, ("global",))), [pks[0]], 3, direction)

    expected = distances([*pairs, (1, 0)], 0, direction)
    near = {node for node, far in expected.items() if far <= 3}
    assert {pks.index(pk): depth for pk, depth in found.depths.items()} == {
        node: expected[node] for node in near
    }
    ids = {edge.id for edge in found.edges}
    assert ended not in ids
    assert (later in ids) == ({0, 1} <= near)
    assert len(ids) == sum(a in near and b in near for a, b in [*pairs, (1, 0)])


@given(graphs, directions, st.integers(1, 6))
def test_paths_are_all_the_shortest_ones(
    graph: tuple[int, list[tuple[int, int]]], direction: Direction, max_hops: int
) -> None:
    count, pairs = graph
    end = count - 1
    found = shortest_paths(Plain(count, pairs), 0, end, direction=direction, max_hops=max_hops, limit=1000)
    length = distances(pairs, 0, direction).get(end)
    if length is None or length > max_hops:
        assert found.length is None
        assert found.paths == []
        return
    trails = [[0]]
    for _ in range(length):
        trails = [[*trail, far] for trail in trails for far in neighbours(pairs, trail[-1], direction)]
    expected = sorted(trail for trail in trails if trail[-1] == end)
    assert found.length == length
    got = [[0, *(step.end.pk for step in path)] for path in found.paths]
    assert sorted(got) == expected
    for path in found.paths:
        for step in path:
            joined = {
                number
                for number, pair in enumerate(pairs)
                if (direction != "in" and pair == (step.start.pk, step.end.pk))
                or (direction != "out" and pair == (step.end.pk, step.start.pk))
            }
            assert {edge.pk for edge in step.edges} == joined


def test_a_budget_is_honoured_and_said() -> None:
    star = Plain(50, [(0, leaf) for leaf in range(1, 50)])
    found = expand(star, [0], 3, budget=10)
    assert len(found.nodes) == 10
    assert found.truncated
    assert list(found.nodes) == [0, *range(1, 10)]
    gone = shortest_paths(Plain(50, [(n, n + 1) for n in range(49)]), 0, 9, budget=4)
    assert gone.exhausted
    assert gone.length is None


@pytest.fixture
def complete(tmp_path: Path) -> Store:
    """A complete graph of 14 entities and 91 relations, with one more island."""
    lines = [
        json.dumps([f"node {a:02}", "touches", f"node {b:02}"]) for a in range(14) for b in range(a + 1, 14)
    ]
    lines.append(json.dumps(["island", "touches", "reef"]))
    source = tmp_path / "complete.jsonl"
    source.write_text("\n".join(lines))
    with Store(tmp_path / "memory.db", write=True) as store:
        run(store, ImportOptions([str(source)]))
    return Store(tmp_path / "memory.db")


def test_a_complete_graph_is_walked_once(complete: Store) -> None:
    asked: list[str] = []
    with complete as store:
        graph = Graph(store.db, Filters(NOW))
        start = store.db.execute("SELECT pk FROM entity WHERE name = 'node 00'").get

        def trace(_cursor: object, sql: str, _bindings: object) -> bool:
            asked.append(sql)
            return True

        store.db.exec_trace = trace
        found = expand(graph, [start], 6)
        store.db.exec_trace = None
    assert len(found.nodes) == 14
    assert len(found.edges) == 91
    assert len(asked) < 12


def test_predicates_and_visibility_limit_a_walk(complete: Store) -> None:
    with complete as store:
        island = store.db.execute("SELECT pk FROM entity WHERE name = 'island'").get
        reef = store.db.execute("SELECT pk FROM entity WHERE name = 'reef'").get
        assert len(expand(Graph(store.db, Filters(NOW), ["TOUCHES"]), [island], 2).nodes) == 2
        assert len(expand(Graph(store.db, Filters(NOW), ["other"]), [island], 2).nodes) == 1
        assert not expand(Graph(store.db, Filters(NOW, scopes=("repo:/elsewhere",))), [island], 2).nodes
        assert shortest_paths(Graph(store.db, Filters(NOW)), island, reef).length == 1
        assert shortest_paths(Graph(store.db, Filters(NOW)), reef, island, direction="out").length is None
