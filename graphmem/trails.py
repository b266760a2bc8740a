"""How the graph leads to an item: a shortest way from where the graph was entered."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from graphmem.records import ENTITY, MEMORY
from graphmem.spread import Links
from graphmem.store.filters import Filters, Kind
from graphmem.store.neighbourhood import Neighbourhood, entity_node, memory_node
from graphmem.store.search import Searcher

STEPS: Final = 4
"""How far back from an item its beginning is looked for."""

BUDGET: Final = 1_000
"""After how many nodes the search is given up."""


def trail(
    node: int, beginnings: Collection[int], links: Callable[[Sequence[int]], Links], steps: int = STEPS
) -> list[int]:
    """A shortest way to a node from one of the beginnings, other than itself; empty when all are farther.

    Of several ways of that length it is the one over the heaviest links, looked at from the node, then over
    the smallest numbers.
    """
    after: dict[int, int] = {}
    frontier = [node]
    seen = {node}
    for _ in range(steps):
        found = links(frontier[: BUDGET - len(seen)])
        following: list[int] = []
        for near in frontier:
            for far, _weight in sorted(found.get(near, ()), key=lambda link: (-link[1], link[0])):
                if far in seen:
                    continue
                seen.add(far)
                after[far] = near
                if far in beginnings:
                    return _way(far, after)
                following.append(far)
        frontier = following
        if not frontier or len(seen) >= BUDGET:
            break
    return []


def _way(start: int, after: dict[int, int]) -> list[int]:
    way = [start]
    while way[-1] in after:
        way.append(after[way[-1]])
    return way


def ways_to(
    searcher: Searcher, kind: Kind, items: Sequence[int], beginnings: Collection[int]
) -> dict[int, list[dict[str, str]]]:
    """For each item the way that leads to it: memories by id, entities by id, name and kind, itself left out.

    A fact is reached by way of one of its ends. The way is empty where none is found.
    """
    near = Neighbourhood(searcher)
    if kind == MEMORY:
        ways = {pk: trail(memory_node(pk), beginnings, near.links)[:-1] for pk in items}
    elif kind == ENTITY:
        ways = {pk: trail(entity_node(pk), beginnings, near.links)[:-1] for pk in items}
    else:
        ends = near.ends(items)
        ways = {pk: _to_an_end(map(entity_node, ends.get(pk, ())), beginnings, near) for pk in items}
    named = _names(searcher, {node for way in ways.values() for node in way})
    return {pk: [named[node] for node in way] for pk, way in ways.items()}


def _to_an_end(nodes: Iterable[int], beginnings: Collection[int], near: Neighbourhood) -> list[int]:
    ways = ([node] if node in beginnings else trail(node, beginnings, near.links) for node in nodes)
    return min(filter(None, ways), key=len, default=[])


def _names(searcher: Searcher, nodes: Collection[int]) -> dict[int, dict[str, str]]:
    """Nodes as they are told of; also of memories that the other filters of the search leave out."""
    walked = Searcher(searcher.db, Filters(searcher.filters.now, searcher.filters.scopes))
    found: dict[int, dict[str, str]] = {
        memory_node(pk): {"memory": id_}
        for pk, id_ in walked.ids(MEMORY, [node // 2 for node in nodes if node % 2]).items()
    }
    for pk, entity in walked.entities([node // 2 for node in nodes if not node % 2]).items():
        found[entity_node(pk)] = {"entity": entity["id"], "name": entity["name"], "kind": entity["kind"]}
    return found
