"""Personalised PageRank by rounds, over a graph that is asked for as the mass reaches it.

The stationary distribution of a walk that follows a link with probability `damping` and else returns to
the seeds is the sum over t of (1 - damping) * damping^t * W^t * seeds (Page et al. 1999; personalised as
in HippoRAG, arXiv 2405.14831). With a damping of .65 five rounds hold 92 % of it, so the sum is
cut there, and nodes that hold next to nothing are not followed: the cost is that of the neighbourhood.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nlargest
from typing import Final, TypeAlias

Node: TypeAlias = int
Links: TypeAlias = Mapping[Node, Sequence[tuple[Node, float]]]

DAMPING: Final = 0.65
ROUNDS: Final = 5
LEAST: Final = 5e-4
"""The share of all mass below which a node is not followed."""
WIDTH: Final = 50
"""How many nodes of a round are followed, with those that hold as much as the last of them."""


def spread(
    seeds: Mapping[Node, float],
    links: Callable[[Sequence[Node]], Links],
    *,
    damping: float = DAMPING,
    rounds: int = ROUNDS,
    least: float = LEAST,
    width: int = WIDTH,
) -> dict[Node, float]:
    """The mass of each node that the walk from the seeds reaches; the masses add up to at most 1.

    `links` gives the weighted neighbours of nodes and is asked for each node once.
    """
    whole = sum(seeds.values())
    if whole <= 0:
        return {}
    known: dict[Node, Sequence[tuple[Node, float]]] = {}
    holding = {node: weight / whole for node, weight in seeds.items() if weight > 0}
    mass: dict[Node, float] = {}
    for number in range(rounds + 1):
        _add(mass, holding.items(), 1 - damping)
        if number == rounds:
            break
        enough = _enough(holding, least, width)
        moving = {node: held for node, held in holding.items() if held >= enough}
        unknown = [node for node in moving if node not in known]
        if unknown:
            found = links(unknown)
            known.update((node, found.get(node, ())) for node in unknown)
        holding = {}
        for node, held in moving.items():
            out = known[node]
            total = sum(weight for _, weight in out)
            if total > 0:
                _add(holding, out, damping * held / total)
    return mass


def _enough(holding: Mapping[Node, float], least: float, width: int) -> float:
    """What the last node that is followed holds."""
    if len(holding) <= width:
        return least
    return max(least, nlargest(width, holding.values())[-1])


def _add(sums: dict[Node, float], parts: Iterable[tuple[Node, float]], factor: float) -> None:
    for node, weight in parts:
        sums[node] = sums.get(node, 0.0) + weight * factor
