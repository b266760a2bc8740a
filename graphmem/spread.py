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
LEAST: Final = 1e-4
"""The share of all mass that each link of a node must be able to get for the node to be followed."""
WIDTH: Final = 50
"""How many nodes of a round are followed, with those that hold as much as the last of them."""


def spread(
    seeds: Mapping[Node, float],
    links: Callable[[Sequence[Node]], Links],
    sizes: Callable[[Sequence[Node]], Mapping[Node, int]] | None = None,
    *,
    damping: float = DAMPING,
    rounds: int = ROUNDS,
    least: float = LEAST,
    width: int = WIDTH,
) -> dict[Node, float]:
    """The mass of each node that the walk from the seeds reaches; the masses add up to at most 1.

    `links` gives the weighted neighbours of nodes and is asked for each node once. `sizes` tells about how
    many those are, without getting them: a node that would spread what it holds too thinly is not followed
    (as in the push of Andersen, Chung and Lang 2006).
    """
    whole = sum(seeds.values())
    if whole <= 0:
        return {}
    known: dict[Node, tuple[Sequence[tuple[Node, float]], float]] = {}
    holding = {node: weight / whole for node, weight in seeds.items() if weight > 0}
    mass: dict[Node, float] = {}
    for number in range(rounds + 1):
        _add(mass, holding.items(), 1 - damping)
        if number == rounds:
            break
        moving = _worth_following(holding, sizes, least, width)
        unknown = [node for node in moving if node not in known]
        if unknown:
            found = links(unknown)
            for node in unknown:
                out = found.get(node, ())
                known[node] = (out, sum([weight for _, weight in out]))
        holding = {}
        for node, held in moving.items():
            out, total = known[node]
            if total > 0:
                _add(holding, out, damping * held / total)
    return mass


def _worth_following(
    holding: Mapping[Node, float],
    sizes: Callable[[Sequence[Node]], Mapping[Node, int]] | None,
    least: float,
    width: int,
) -> dict[Node, float]:
    """The nodes that are followed, with what they hold."""
    some = {node: held for node, held in holding.items() if held >= least}
    if sizes is not None:
        size = sizes(list(some))
        some = {node: held for node, held in some.items() if held >= least * (1 + size[node])}
    if len(some) <= width:
        return some
    enough = nlargest(width, some.values())[-1]
    return {node: held for node, held in some.items() if held >= enough}


def _add(sums: dict[Node, float], parts: Iterable[tuple[Node, float]], factor: float) -> None:
    for node, weight in parts:
        sums[node] = sums.get(node, 0.0) + weight * factor
