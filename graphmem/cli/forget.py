"""`gmem forget`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from graphmem.cli._acts import actor, batch_line, changing
from graphmem.cli._reading import scope_options, scopes_wanted
from graphmem.cli._shared import configuration, number, output, standard_options
from graphmem.records import KINDS
from graphmem.terminal import visible

if TYPE_CHECKING:
    from graphmem.edit.forget import Forgotten

_MANY = {"entity": "entities", "memory": "memories", "relation": "relations"}


@click.command()
@click.argument("whats", metavar="ID|NAME…", nargs=-1, required=True)
@click.option("--kind", metavar="KIND", help="The entity of that name that is of this kind.")
@click.option("--as", "as_", type=click.Choice(KINDS), help="Look only for memories, entities or relations.")
@click.option("--dry-run", is_flag=True, help="Say what would be forgotten, and change nothing.")
@scope_options
@standard_options
def forget(
    whats: tuple[str, ...], kind: str | None, as_: str | None, dry_run: bool, scopes: tuple[str, ...],
    all_scopes: bool, db: str | None, graph: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Forget memories, relations or entities.

    They are archived: nothing finds them any more, files that say them do not bring them back, and 'gmem
    undo' does. With an entity go its relations, and the memories that are about it alone. A name that could
    be several is refused. All is done as one batch, or nothing.
    """
    from graphmem.edit.forget import forget as run

    seen = scopes_wanted(scopes, all_scopes=all_scopes)
    only = None if as_ is None else KINDS.index(as_)
    with changing(configuration(db, graph)) as store:
        told = run(store, whats, seen, kind=kind, only=only, actor=actor(), dry_run=dry_run)
    output(told.as_dict(), as_json=as_json, text=lambda: "\n".join(_lines(told)))


def _lines(told: Forgotten) -> Iterator[str]:
    for one in told.named:
        word = "already forgotten" if one["status"] == "unchanged" else "forgotten"
        yield visible(f"{word} {one['type']} {one['id']}")
    with_it = counted({kind: count - _named(told, kind) for kind, count in told.archived.items()})
    if with_it:
        yield f"with it: {with_it}" if len(told.named) == 1 else f"with them: {with_it}"
    if told.kept and any(told.archived.values()):
        yield f"kept: {number(told.kept, 'memory', 'memories')} about something else too"
    yield batch_line(told.batch, dry_run=told.dry_run)


def _named(told: Forgotten, kind: str) -> int:
    return sum(one["type"] == kind and one["status"] == "archived" for one in told.named)


def counted(counts: dict[str, Any]) -> str:
    """Counts of items by kind in words, those of none left out."""
    return ", ".join(number(count, kind, _MANY[kind]) for kind, count in counts.items() if count)
