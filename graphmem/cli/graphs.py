"""`gmem graphs`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from graphmem.cli._shared import configuration, number, output, standard_options
from graphmem.errors import EXIT_DONE, EXIT_USAGE, UsageError
from graphmem.terminal import visible

if TYPE_CHECKING:
    from graphmem.graphs import Graph


@click.command()
@click.argument("action", type=click.Choice(["list", "create", "delete"]), default="list")
@click.argument("name", required=False)
@click.option("--yes", is_flag=True, help="Really delete it.")
@standard_options
def graphs(
    action: str, name: str | None, yes: bool, db: str | None, graph: str | None, as_json: bool
) -> int:  # fmt: skip
    """List, create or delete graphs.

    A graph is a store of its own beside the default one; every command takes --graph NAME. 'create NAME' makes
    an empty one. 'delete NAME' removes it with its file for good, and only with --yes; not while another
    command or a server has it open.
    """
    from graphmem import graphs as of

    config = configuration(db, graph)
    folder = config.store.parent
    if action == "list":
        if name is not None:
            raise UsageError(f"'{name}' is one too many", "'gmem graphs' lists all graphs")
        found = of.graphs(folder, config.store)
        output(
            {"folder": str(folder), "graphs": [one.as_dict() for one in found]},
            as_json=as_json, text=lambda: "\n".join(_lines(str(folder), found)),
        )  # fmt: skip
        return EXIT_DONE
    if name is None:
        raise UsageError(f"which graph should be {action}d?", f"write 'gmem graphs {action} NAME'")
    if action == "create":
        path = of.create(folder, name)
        output({"created": name, "path": str(path)}, as_json=as_json, text=lambda: visible(f"made {path}"))
        return EXIT_DONE
    held = of.delete(folder, name, really=yes)
    word = "deleted" if yes else "would delete"
    output(
        {"deleted": yes, "graph": held.as_dict()}, as_json=as_json,
        text=lambda: f"{word} {_one(held)}" + ("" if yes else "\nnothing was deleted: give --yes to do it"),
    )  # fmt: skip
    return EXIT_DONE if yes else EXIT_USAGE


def _lines(folder: str, found: list[Graph]) -> Iterator[str]:
    for one in found:
        yield f"{'*' if one.current else ' '} {_one(one)}"
    yield visible(f"{number(len(found), 'graph')} in {folder}")


def _one(one: Graph) -> str:
    held: dict[str, Any] = one.counts
    if one.problem:
        return visible(f"{one.name}: {one.problem}")
    told = (
        f"{number(held['memories'], 'memory', 'memories')}, "
        f"{number(held['entities'], 'entity', 'entities')}, {number(held['relations'], 'relation')}"
    )
    return visible(f"{one.name}: {told}")
