"""`gmem graph`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import click

from graphmem.cli._reading import entity_meant, reading, scope_options, scopes_wanted
from graphmem.cli._shared import configuration, output, standard_options
from graphmem.cli._walks import (
    arrow,
    dot,
    edge_result,
    label,
    mermaid,
    node_budget,
    node_result,
    walk_options,
)
from graphmem.errors import UsageError
from graphmem.terminal import visible
from graphmem.times import now

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphmem.store.graph import Direction, Edge, Graph
    from graphmem.traverse import Subgraph

_MEMORIES_SHOWN: Final = 200
_WIDTH: Final = 90


@click.command("graph")
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@click.option("--kind", metavar="KIND", help="The kind of the entities that are named.")
@click.option(
    "--depth", type=click.IntRange(0, 10), default=1, show_default=True, metavar="N", help="How many hops."
)
@walk_options
@click.option("--memories", is_flag=True, help="Also the newest memories of the entities.")
@click.option(
    "--format", "style", type=click.Choice(["text", "mermaid", "dot"]), default="text", show_default=True,
    help="How to draw it.",
)  # fmt: skip
@scope_options
@standard_options
def graph_(
    names: tuple[str, ...], kind: str | None, depth: int, direction: str, predicates: tuple[str, ...],
    memories: bool, style: str, scopes: tuple[str, ...], all_scopes: bool, db: str | None, graph: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Show what is around entities.

    NAME is a name or an id; several are expanded together. The walk visits each entity once and stops at
    GRAPHMEM_TRAVERSAL_NODE_BUDGET entities (5,000), which it then says; of the relations among them the
    nearest 20,000 are shown.
    """
    from graphmem.store.filters import Filters
    from graphmem.store.graph import Graph
    from graphmem.traverse import expand

    if as_json and style != "text":
        raise UsageError("--json and --format do not go together", "leave one of them out")
    seen = scopes_wanted(scopes, all_scopes=all_scopes)
    budget = node_budget()
    with reading(configuration(db, graph)) as store:
        seeds = [entity_meant(store, name, seen, kind).pk for name in names]
        walk = Graph(store.db, Filters(now(), seen), predicates)
        found = expand(walk, seeds, depth, cast("Direction", direction), budget)
        held = _memories(walk, found) if memories else []
    output(_result(found, held, memories=memories), as_json=as_json, text=lambda: _text(found, held, style))


def _memories(walk: Graph, found: Subgraph) -> list[tuple[int, dict[str, Any]]]:
    """(entity, memory) of the newest memories of the entities, each memory once for each entity."""
    pairs = walk.memories(list(found.nodes), _MEMORIES_SHOWN)
    rows = walk.memory_rows(sorted({memory for _, memory in pairs}))
    return [(entity, rows[memory]) for entity, memory in pairs if memory in rows]


def _result(found: Subgraph, held: list[tuple[int, dict[str, Any]]], *, memories: bool) -> dict[str, Any]:
    result: dict[str, Any] = {
        "entities": [node_result(node) | {"depth": found.depths[pk]} for pk, node in found.nodes.items()],
        "relations": [edge_result(edge, found.nodes) for edge in found.edges],
        "totals": {"entities": len(found.nodes), "relations": len(found.edges)},
        "truncated": found.truncated,
    }
    if memories:
        result["memories"] = [memory | {"entity": found.nodes[entity].id} for entity, memory in held]
    return result


def _text(found: Subgraph, held: list[tuple[int, dict[str, Any]]], style: str) -> str:
    if style != "text":
        draw = mermaid if style == "mermaid" else dot
        comment = "%%" if style == "mermaid" else "//"
        lines = list(draw(found.nodes.values(), found.edges))
        return "\n".join([*lines, *([f"{comment} truncated"] if found.truncated else [])])
    lines = list(_tree(found, held))
    nodes = _count(len(found.nodes), "entity", "entities")
    lines += ["", f"{nodes}, {_count(len(found.edges), 'relation', 'relations')}"]
    if found.truncated:
        from graphmem.traverse import MAX_EDGES

        ended = f"only the nearest {MAX_EDGES:,} relations are shown"
        if len(found.edges) < MAX_EDGES:
            ended = "GRAPHMEM_TRAVERSAL_NODE_BUDGET ended the walk"
        lines[-1] += f"; there is more ({ended})"
    return "\n".join(lines)


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _tree(found: Subgraph, held: list[tuple[int, dict[str, Any]]]) -> Iterator[str]:
    """The walk as an indented tree: every relation stands once, every entity's own relations once."""
    touching: dict[int, list[Edge]] = {}
    for edge in found.edges:
        for end in {edge.subject, edge.object}:
            touching.setdefault(end, []).append(edge)
    texts: dict[int, list[str]] = {}
    for entity, memory in held:
        texts.setdefault(entity, []).append(" ".join(memory["content"].split())[:_WIDTH])
    drawn: set[int] = set()
    # A walk of its own, not recursion: a chain may be as long as the budget.
    stack = [(pk, 0, "") for pk, depth in reversed(found.depths.items()) if depth == 0]
    opened: set[int] = set()
    while stack:
        pk, indent, lead = stack.pop()
        pad = "  " * indent
        yield f"{pad}{lead}{label(found.nodes[pk])}"
        if pk in opened or found.depths[pk] != indent:
            continue  # it is drawn out where the walk first met it
        opened.add(pk)
        for text in texts.get(pk, ()):
            yield f"{pad}    * {visible(text)}"
        below: list[tuple[int, int, str]] = []
        for edge in touching.get(pk, ()):
            if edge.pk not in drawn:
                drawn.add(edge.pk)
                far = edge.object if edge.subject == pk else edge.subject
                below.append((far, indent + 1, f"{arrow(edge, pk)} "))
        stack += reversed(below)
