"""What `gmem graph` and `gmem path` share: options, and how nodes and relations are drawn."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from graphmem.errors import UsageError
from graphmem.records import UNKNOWN_KIND
from graphmem.terminal import visible

if TYPE_CHECKING:
    from graphmem.store.graph import Edge, Node

_Function = TypeVar("_Function", bound=Callable[..., Any])

BUDGET_VARIABLE: Final = "GRAPHMEM_TRAVERSAL_NODE_BUDGET"


def walk_options(function: _Function) -> _Function:
    """Add `--direction` and `--predicate`, as `direction` and `predicates`."""
    for option in (
        click.option(
            "--predicate", "predicates", multiple=True, metavar="P",
            help="Follow only relations of this predicate; may be repeated.",
        ),
        click.option(
            "--direction", type=click.Choice(["both", "out", "in"]), default="both", show_default=True,
            help="Follow relations whichever way, from subject to object, or back.",
        ),
    ):  # fmt: skip
        function = option(function)
    return function


def node_budget() -> int:
    """How many entities a walk may reach. Raises `UsageError` for what is no positive number."""
    from graphmem.traverse import DEFAULT_BUDGET

    given = os.environ.get(BUDGET_VARIABLE, "")
    if not given:
        return DEFAULT_BUDGET
    if not given.isascii() or not given.isdigit() or not int(given):
        raise UsageError(f"{BUDGET_VARIABLE} is '{given}'", "give it a whole number from 1")
    return int(given)


def node_result(node: Node) -> dict[str, Any]:
    """An entity as it stands in JSON."""
    return {
        "id": node.id,
        "name": node.name,
        "kind": node.kind,
        "scope": node.scope,
        "description": node.description,
        "stub": node.stub,
    }


def edge_result(edge: Edge, nodes: dict[int, Node]) -> dict[str, Any]:
    """A relation as it stands in JSON; its ends by id and name."""
    subject, object_ = nodes[edge.subject], nodes[edge.object]
    return {
        "id": edge.id,
        "subject": {"id": subject.id, "name": subject.name},
        "predicate": edge.predicate,
        "object": {"id": object_.id, "name": object_.name},
        "weight": edge.weight,
        "fact": edge.fact,
        "valid_at": edge.valid_at,
    }


def label(node: Node) -> str:
    """An entity on one line of a terminal."""
    kind = f" ({node.kind})" if node.kind != UNKNOWN_KIND else ""
    return visible(f"{node.name}{kind}")


def arrow(edge: Edge, near: int) -> str:
    """A relation as seen from one of its ends."""
    word = visible(edge.predicate)
    return f"-- {word} -->" if edge.subject == near else f"<-- {word} --"


def _quoted(text: str, replaced: dict[str, str]) -> str:
    flat = " ".join(visible(text).split())
    return "".join(replaced.get(sign, sign) for sign in flat)


_MERMAID: Final = {sign: f"#{ord(sign)};" for sign in '"#&<>[]{}()|`;'}
_DOT: Final = {'"': '\\"', "\\": "\\\\"}


def mermaid(nodes: Iterable[Node], edges: Iterable[Edge]) -> Iterator[str]:
    """The lines of a Mermaid flowchart; text is escaped so that it stays text."""
    yield "flowchart LR"
    for node in nodes:
        yield f'  n{node.pk}["{_quoted(node.name, _MERMAID)}"]'
    for edge in edges:
        yield f'  n{edge.subject} -- "{_quoted(edge.predicate, _MERMAID)}" --> n{edge.object}'


def dot(nodes: Iterable[Node], edges: Iterable[Edge]) -> Iterator[str]:
    """The lines of a Graphviz digraph; text is escaped so that it stays text."""
    yield "digraph graphmem {"
    yield "  rankdir=LR; node [shape=box];"
    for node in nodes:
        yield f'  n{node.pk} [label="{_quoted(node.name, _DOT)}"];'
    for edge in edges:
        yield f'  n{edge.subject} -> n{edge.object} [label="{_quoted(edge.predicate, _DOT)}"];'
    yield "}"
