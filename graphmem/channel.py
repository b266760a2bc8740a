"""The graph channel of recall: a walk from what the other channels found to what belongs to it.

The mass starts at the best memories of the order before it, at the ends of the facts that answer best
(facts are linked as facts, the strongest lesson of HippoRAG 2, arXiv 2502.14802) and at the entities that
the query names; it ends on memories. What stands beside a memory in its source takes no part: it is read
with it already (`graphmem.places`), and walking there as well cost .018 nDCG@10 on LoCoMo.

The constants were chosen on the development sets of `benchmarks/bench_retrieval.py`, where the order is flat
around them; benchmarks/README.md has what the walk adds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from graphmem.fusion import Fused, Scored
from graphmem.spread import spread
from graphmem.store.neighbourhood import HUB, Neighbourhood, entity_node, memory_node
from graphmem.store.search import Ranked

SEEDS: Final = 20
"""How many of the best memories the walk starts from."""


@dataclass(frozen=True, slots=True)
class Walk:
    """The constants of the channel."""

    memories: int = SEEDS
    """How many of the best memories are seeds."""
    temperature: float = 0.1
    """How fast their share falls with their score."""
    facts: int = 5
    """How many of the best facts are seeds."""
    fact_mass: float = 5.0
    """The mass of the facts, against 1 for the memories."""
    named_mass: float = 3.0
    """The mass of the entities that the query names, against 1 for the memories."""


DEFAULT: Final = Walk()
_NO_MASS: Final = 1e-6


def beginnings(
    near: Neighbourhood,
    text: str,
    memories: Sequence[Scored],
    facts: Sequence[Fused],
    walked: Walk = DEFAULT,
) -> dict[int, float]:
    """The nodes that the walk starts from, with their mass."""
    seeds: dict[int, float] = {}
    _seed_memories(seeds, memories[: walked.memories], walked)
    _seed_facts(seeds, near, facts[: walked.facts], walked)
    _seed_names(seeds, near, text, walked)
    return seeds


def arrive(near: Neighbourhood, seeds: Mapping[int, float]) -> dict[int, float]:
    """The mass of each memory that a walk from the seeds reaches, by row number."""
    mass = spread(seeds, near.links, near.sizes)
    return {node // 2: held for node, held in mass.items() if node % 2}


def by_mass(order: Sequence[Scored], reached: Sequence[Ranked]) -> list[Scored]:
    """An order and what the walk reached, by the mass of each times e to the power of its score.

    Both count where they differ by about as much: a score is at most 1. What the walk does not reach has
    next to no mass, and what is not in the order has the score 0.
    """
    mass = {row.pk: row.score for row in reached}
    best = max(mass.values(), default=0.0) + _NO_MASS
    rows = [Scored(pk, id_, _both(mass.pop(pk, 0.0), best, score)) for pk, id_, score in order]
    rows += [Scored(row.pk, row.id, _both(row.score, best, 0.0)) for row in reached if row.pk in mass]
    return sorted(rows, key=lambda row: (-row.score, row.id))


def _both(mass: float, best: float, score: float) -> float:
    return (mass + _NO_MASS) / best * math.exp(score - 1)


def _seed_memories(seeds: dict[int, float], memories: Sequence[Scored], walked: Walk) -> None:
    if not memories:
        return
    best = memories[0].score
    weights = [math.exp((one.score - best) / walked.temperature) for one in memories]
    whole = sum(weights)
    for one, weight in zip(memories, weights, strict=True):
        _put(seeds, memory_node(one.pk), weight / whole)


def _seed_facts(seeds: dict[int, float], near: Neighbourhood, facts: Sequence[Fused], walked: Walk) -> None:
    """Each end of a fact gets its score over how many memories hold the end; a mean over its facts."""
    ends = near.ends([one.pk for one in facts])
    near.count(end for both in ends.values() for end in both)
    given: dict[int, list[float]] = {}
    for one in facts:
        for end in ends.get(one.pk, ()):
            given.setdefault(end, []).append(one.score / max(near.degree(end), 1))
    _share(seeds, {end: sum(scores) / len(scores) for end, scores in given.items()}, walked.fact_mass)


def _seed_names(seeds: dict[int, float], near: Neighbourhood, text: str, walked: Walk) -> None:
    found = near.named_in(text)
    near.count(found)
    named = {entity: near.degree(entity) for entity in found}
    rarity = {entity: 1 / math.log(2 + degree) for entity, degree in named.items() if degree <= HUB}
    _share(seeds, rarity, walked.named_mass)


def _share(seeds: dict[int, float], weights: dict[int, float], mass: float) -> None:
    whole = sum(weights.values())
    for entity, weight in weights.items():
        if whole > 0:
            _put(seeds, entity_node(entity), mass * weight / whole)


def _put(seeds: dict[int, float], node: int, weight: float) -> None:
    seeds[node] = seeds.get(node, 0.0) + weight
