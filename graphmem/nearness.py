"""The recipe `near`: what was found, ordered anew by its distance from one entity in the graph.

A memory that is about the entity, mentions it or states a relation of it is one step away, as is an entity
related to it; so a memory about a related entity, or beside a memory about this one, is two steps away.
A fact is as far as its nearer end. The score of an item is its score in the order that it comes from, over
one more than its distance: what answers the query well is not lost for being a step farther away. Nothing
is followed beyond three steps, nor from an entity to more than 100 memories; what is not reached counts as
five steps away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from graphmem.fusion import Fused
from graphmem.records import ENTITY, MEMORY
from graphmem.store.filters import Kind
from graphmem.store.neighbourhood import Neighbourhood, entity_node, memory_node
from graphmem.store.search import Ranked

STEPS: Final = 3
FAR: Final = 5
BUDGET: Final = 1_000
"""How many nodes are followed at most."""


def by_distance(
    near: Neighbourhood, entity: int, kind: Kind, items: Sequence[Fused], most: int
) -> list[Fused]:
    """The items in the order of their scores over one more than their distance from the entity.

    Distances are taken of the first `most`; the others, which score less, stay behind them as they are.
    The channel `near` of an item that was reached has its distance as rank, 0 for the entity itself.
    """
    pks = [one.pk for one in items[:most]]
    reached = _reached(near, entity, pks if kind == MEMORY else ())
    if kind == MEMORY:
        steps = {pk: reached.get(memory_node(pk), FAR) for pk in pks}
    elif kind == ENTITY:
        steps = {pk: reached.get(entity_node(pk), FAR) for pk in pks}
    else:
        ends = near.ends(pks)
        steps = {
            pk: min((reached.get(entity_node(end), FAR) for end in ends.get(pk, ())), default=FAR)
            for pk in pks
        }
    moved = [_moved(one, steps.get(one.pk, FAR)) for one in items]
    return sorted(moved, key=lambda one: (-one.score, one.id))


def _moved(one: Fused, distance: int) -> Fused:
    nearness = 1 / (1 + distance)
    found = {**one.found, "near": Ranked(one.pk, one.id, nearness, distance)} if distance < FAR else one.found
    return Fused(one.pk, one.id, one.score * nearness, found)


def _reached(near: Neighbourhood, entity: int, memories: Sequence[int]) -> Mapping[int, int]:
    """The steps from an entity to each node within reach, and to those of the memories that hold it.

    An entity that very many memories hold is a hub, which is not followed; hence the second.
    """
    found = {entity_node(entity): 0}
    frontier = [entity_node(entity)]
    left = BUDGET
    for step in range(1, STEPS + 1):
        following, left = frontier[:left], left - len(frontier[:left])
        reached = {other for links in near.links(following).values() for other, _ in links}
        if step == 1:
            reached |= {memory_node(memory) for memory in near.holding(entity, memories)}
        frontier = sorted(reached - found.keys())
        found |= dict.fromkeys(frontier, step)
    return found
