"""`gmem path`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import click

from graphmem.cli._reading import entity_meant, reading, scope_options, scopes_wanted
from graphmem.cli._shared import configuration, output, standard_options
from graphmem.cli._walks import arrow, edge_result, label, node_budget, node_result, walk_options
from graphmem.times import now

if TYPE_CHECKING:
    from graphmem.store.graph import Direction
    from graphmem.traverse import Paths, Step


@click.command()
@click.argument("start", metavar="A")
@click.argument("end", metavar="B")
@click.option("--kind-a", metavar="KIND", help="The kind of A.")
@click.option("--kind-b", metavar="KIND", help="The kind of B.")
@click.option(
    "--max-hops", type=click.IntRange(1, 10), default=10, show_default=True, metavar="N",
    help="The longest path that is looked for.",
)  # fmt: skip
@click.option(
    "--limit", type=click.IntRange(min=1), default=10, show_default=True, metavar="N",
    help="How many paths to show.",
)  # fmt: skip
@walk_options
@scope_options
@standard_options
def path(
    start: str, end: str, kind_a: str | None, kind_b: str | None, max_hops: int, limit: int, direction: str,
    predicates: tuple[str, ...], scopes: tuple[str, ...], all_scopes: bool, db: str | None, graph: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Show all shortest paths between two entities.

    A and B are names or ids. Parallel relations are steps of one path.
    """
    from graphmem.store.filters import Filters
    from graphmem.store.graph import Graph
    from graphmem.traverse import shortest_paths

    seen = scopes_wanted(scopes, all_scopes=all_scopes)
    budget = node_budget()
    with reading(configuration(db, graph)) as store:
        first = entity_meant(store, start, seen, kind_a)
        last = entity_meant(store, end, seen, kind_b)
        found = shortest_paths(
            Graph(store.db, Filters(now(), seen), predicates), first.pk, last.pk,
            direction=cast("Direction", direction), max_hops=max_hops, limit=limit, budget=budget,
        )  # fmt: skip
    names = (first.candidate.name, last.candidate.name)
    output(_result(found), as_json=as_json, text=lambda: _text(found, names, max_hops))


def _result(found: Paths) -> dict[str, Any]:
    return {
        "length": found.length,
        "paths": [[_step(step) for step in path] for path in found.paths],
        "truncated": found.truncated,
        "gave_up": found.exhausted,
    }


def _step(step: Step) -> dict[str, Any]:
    nodes = {step.start.pk: step.start, step.end.pk: step.end}
    return {
        "from": node_result(step.start),
        "to": node_result(step.end),
        "relations": [edge_result(edge, nodes) for edge in step.edges],
    }


def _text(found: Paths, names: tuple[str, str], max_hops: int) -> str:
    from graphmem.terminal import visible

    if found.length is None:
        why = "the walk gave up at GRAPHMEM_TRAVERSAL_NODE_BUDGET" if found.exhausted else f"{max_hops} hops"
        return visible(f"no path from {names[0]} to {names[1]} ({why})")
    if found.length == 0:
        return visible(f"{names[0]} is the same entity")
    lines: list[str] = []
    for steps in found.paths:
        line = label(steps[0].start)
        for step in steps:
            arrows = " / ".join(arrow(edge, step.start.pk) for edge in step.edges)
            line += f" {arrows} {label(step.end)}"
        lines.append(line)
    hops = f"{found.length} hop{'s' if found.length != 1 else ''}"
    paths = f"{len(found.paths)} path{'s' if len(found.paths) != 1 else ''}"
    return "\n".join([*lines, "", f"{paths} of {hops}{'; there are more' if found.truncated else ''}"])
