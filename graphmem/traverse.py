"""Walks over the graph: neighbours and subgraphs, and all shortest paths between two entities.

Breadth-first with one visited set for the whole walk and one indexed query for each hop (two where both
directions are wanted), so that dense graphs cost what they hold and not what their paths would. A walk
stops at a budget of nodes and says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Protocol

from graphmem.store.graph import Direction, Edge, Node

MAX_DEPTH: Final = 10
DEFAULT_BUDGET: Final = 5_000
MAX_EDGES: Final = 20_000
_OPPOSITE: Final[dict[Direction, Direction]] = {"out": "in", "in": "out", "both": "both"}


class Hops(Protocol):
    """What a walk asks for."""

    def hop(self, frontier: Sequence[int], direction: Direction) -> list[Edge]:
        """The relations that leave a frontier."""
        ...

    def far(self, frontier: Sequence[int], direction: Direction) -> set[int]:
        """The far ends of the relations that leave a frontier."""
        ...

    def between(self, nodes: Sequence[int], others: Sequence[int], most: int) -> list[Edge]:
        """Relations from some nodes to others."""
        ...

    def nodes(self, pks: Sequence[int]) -> list[Node]:
        """The visible entities among these, sorted."""
        ...


@dataclass(slots=True)
class Subgraph:
    """What a walk reached: nodes with their distance from the nearest seed, and the relations among them."""

    nodes: dict[int, Node] = field(default_factory=dict)
    depths: dict[int, int] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    truncated: bool = False


def reach(
    graph: Hops, seeds: Sequence[int], depth: int, direction: Direction = "both", budget: int = DEFAULT_BUDGET
) -> Subgraph:
    """The nodes within `depth` hops of the seeds, all expanded together, without the relations among them.

    Nodes nearer to a seed come before farther ones when the budget runs out, and by name within a hop;
    `truncated` says that it did. Seeds beyond the budget are left out too.
    """
    found = Subgraph()
    new = graph.nodes(sorted(set(seeds)))
    for level in range(min(depth, MAX_DEPTH) + 1):
        if level:
            fresh = graph.far([node.pk for node in new], direction).difference(found.nodes)
            new = graph.nodes(sorted(fresh))
        room = max(budget - len(found.nodes), 0)
        found.truncated = len(new) > room
        for node in new[:room]:
            found.nodes[node.pk], found.depths[node.pk] = node, level
        if found.truncated or not new:
            break
    return found


def expand(
    graph: Hops, seeds: Sequence[int], depth: int, direction: Direction = "both", budget: int = DEFAULT_BUDGET
) -> Subgraph:
    """Everything within `depth` hops of the seeds (see `reach`), with all relations among it.

    `truncated` says that the budget of nodes ran out, or that there are more than 20,000 relations.
    """
    found = reach(graph, seeds, depth, direction, budget)
    # All that joins the nodes belongs to the picture, also what no hop had to follow.
    inside = list(found.nodes)
    edges = graph.between(inside, inside, MAX_EDGES + 1)
    found.truncated = found.truncated or len(edges) > MAX_EDGES
    places = {node.pk: place for place, node in enumerate(sorted(found.nodes.values(), key=_by_name))}
    edges.sort(key=lambda edge: edge.id)
    # Nearer relations first, then by predicate and names: the same for every store of the same content.
    found.edges = sorted(
        edges[:MAX_EDGES],
        key=lambda edge: (
            min(found.depths[edge.subject], found.depths[edge.object]),
            edge.predicate,
            places[edge.subject],
            places[edge.object],
            edge.valid_at or "",
            edge.id,
        ),
    )
    return found


def _by_name(node: Node) -> tuple[str, str, str, str]:
    return node.order


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a path: the relations, parallel ones included, that lead from one node to the next."""

    start: Node
    end: Node
    edges: tuple[Edge, ...]


@dataclass(slots=True)
class Paths:
    """All shortest paths between two entities, by the names on them; `length` is `None` when there is none."""

    length: int | None = None
    paths: list[tuple[Step, ...]] = field(default_factory=list)
    truncated: bool = False
    """Whether there are more paths than were asked for."""
    exhausted: bool = False
    """Whether the walk gave up at its budget of nodes, so that a path may have been missed."""


class _Side:
    """One end of a two-sided search: what it reached, at which distance, over which relations."""

    def __init__(self, start: int, direction: Direction) -> None:
        self.direction = direction
        self.distance = {start: 0}
        self.links: dict[int, dict[int, list[Edge]]] = {}
        """Node to the nodes one hop nearer to the start, with the relations between."""
        self.frontier = [start]
        self.level = 0

    def advance(self, graph: Hops, nodes: dict[int, Node]) -> None:
        """One whole level further."""
        self.level += 1
        edges = graph.hop(self.frontier, self.direction)
        inside = set(self.frontier)
        reached: dict[int, dict[int, list[Edge]]] = {}
        for edge in edges:
            for near, far in ((edge.subject, edge.object), (edge.object, edge.subject)):
                forward = near == edge.subject
                if near not in inside or far in self.distance or near == far:
                    continue
                if (self.direction == "out" and not forward) or (self.direction == "in" and forward):
                    continue
                reached.setdefault(far, {}).setdefault(near, []).append(edge)
        visible = graph.nodes(sorted(reached))
        for node in visible:
            nodes[node.pk] = node
            self.distance[node.pk] = self.level
            self.links[node.pk] = reached[node.pk]
        self.frontier = [node.pk for node in visible]

    def trails(self, node: int) -> Iterator[list[int]]:
        """The shortest node sequences from a node back to the start."""
        if not self.distance[node]:
            yield [node]
            return
        for near in self.links[node]:
            for trail in self.trails(near):
                yield [node, *trail]


def shortest_paths(
    graph: Hops, start: int, end: int, *, direction: Direction = "both", max_hops: int = MAX_DEPTH,
    limit: int = 10, budget: int = DEFAULT_BUDGET,
) -> Paths:  # fmt: skip
    """All shortest paths from one entity to another, at most `limit` of them, in the order of their names.

    The search goes level by level from both ends, the smaller frontier first. `direction` is that of the
    relations as the path is walked.
    """
    nodes = {node.pk: node for node in graph.nodes(sorted({start, end}))}
    found = Paths()
    if start not in nodes or end not in nodes:
        return found
    if start == end:
        found.length, found.paths = 0, [()]
        return found
    left, right = _Side(start, direction), _Side(end, _OPPOSITE[direction])
    while left.frontier and right.frontier and left.level + right.level < max_hops:
        if len(left.distance) + len(right.distance) > budget:
            found.exhausted = True
            return found
        side = left if len(left.frontier) <= len(right.frontier) else right
        side.advance(graph, nodes)
        other = right if side is left else left
        met = [node for node in side.frontier if other.distance.get(node) == other.level]
        if met:
            found.length = left.level + right.level
            _collect(found, left, right, met, nodes, limit)
            return found
    return found


def _collect(
    found: Paths, left: _Side, right: _Side, met: Sequence[int], nodes: dict[int, Node], limit: int
) -> None:
    """Joins the trails of both sides; keeps the first `limit` by the order of the nodes on them."""
    trails: list[list[int]] = []
    most = 50 * limit + 1000
    for node in met:
        for back in left.trails(node):
            for ahead in right.trails(node):
                trails.append([*reversed(back), *ahead[1:]])
                if len(trails) > most:
                    found.truncated = True
                    break
            if len(trails) > most:
                break
        if len(trails) > most:
            break
    trails.sort(key=lambda trail: [nodes[pk].order for pk in trail])
    found.truncated = found.truncated or len(trails) > limit
    for trail in trails[:limit]:
        found.paths.append(
            tuple(
                Step(nodes[a], nodes[b], tuple(sorted(_edges(left, right, a, b), key=lambda edge: edge.id)))
                for a, b in pairwise(trail)
            )
        )


def _edges(left: _Side, right: _Side, a: int, b: int) -> list[Edge]:
    return left.links.get(b, {}).get(a) or right.links.get(a, {}).get(b) or []
