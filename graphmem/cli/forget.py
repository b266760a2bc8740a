"""`gmem forget`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from graphmem.cli._acts import actor, batch_line, changing
from graphmem.cli._reading import scope_options, scopes_wanted
from graphmem.cli._shared import configuration, number, output, standard_options
from graphmem.errors import EXIT_DONE, EXIT_FINDINGS, EXIT_INTEGRITY
from graphmem.records import KINDS
from graphmem.terminal import visible

if TYPE_CHECKING:
    from graphmem.config import Config
    from graphmem.edit.forget import Forgotten
    from graphmem.purge import Purged

_MANY = {"entity": "entities", "memory": "memories", "relation": "relations"}


@click.command()
@click.argument("whats", metavar="ID|NAME…", nargs=-1, required=True)
@click.option("--kind", metavar="KIND", help="The entity of that name that is of this kind.")
@click.option("--as", "as_", type=click.Choice(KINDS), help="Look only for memories, entities or relations.")
@click.option("--purge", is_flag=True, help="Erase for good, so that nothing of it stays in the file.")
@click.option("--dry-run", is_flag=True, help="Say what would be forgotten, and change nothing.")
@scope_options
@standard_options
def forget(
    whats: tuple[str, ...], kind: str | None, as_: str | None, purge: bool, dry_run: bool,
    scopes: tuple[str, ...], all_scopes: bool, db: str | None, graph: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Forget memories, relations or entities.

    They are archived: nothing finds them any more, files that say them do not bring them back, and 'gmem
    undo' does. With an entity go its relations, and the memories that are about it alone. A name that could
    be several is refused. All is done as one batch, or nothing.

    --purge is for text that must not stay, a leaked password for example. It cannot be undone, nor can the
    batches that held the text. Rows, history, indexes, vectors and the log are erased, the file is written
    anew and searched for the text; nobody else may have the store open meanwhile (exit status 4). What
    else still holds the text is told, and makes the exit status 1. Backups, exports and the files that it
    came from are yours to clean: a file that still says it brings it back when it is imported.
    """
    from graphmem.edit.forget import forget as run

    seen = scopes_wanted(scopes, all_scopes=all_scopes)
    only = None if as_ is None else KINDS.index(as_)
    if purge:
        return _purge(configuration(db, graph), whats, seen, kind, only, dry_run=dry_run, as_json=as_json)
    with changing(configuration(db, graph)) as store:
        told = run(store, whats, seen, kind=kind, only=only, actor=actor(), dry_run=dry_run)
    output(told.as_dict(), as_json=as_json, text=lambda: "\n".join(_lines(told)))
    return EXIT_DONE


def _purge(
    config: Config, whats: tuple[str, ...], scopes: tuple[str, ...] | None, kind: str | None,
    only: int | None, *, dry_run: bool, as_json: bool,
) -> int:  # fmt: skip
    from graphmem.purge import purge

    told = purge(config.store, whats, scopes, kind=kind, only=only, actor=actor(), dry_run=dry_run)
    output(told.as_dict(), as_json=as_json, text=lambda: "\n".join(_purged(told)))
    if told.left:
        return EXIT_INTEGRITY
    return EXIT_DONE if told.complete or dry_run else EXIT_FINDINGS


def _purged(told: Purged) -> Iterator[str]:
    verb = "would erase" if told.dry_run else "erased"
    yield f"{verb} {counted(told.erased)}"
    if told.unlinked:
        yield f"kept: {number(told.unlinked, 'memory', 'memories')} about something else too"
    if told.not_undoable:
        yield visible(f"can no longer be undone: {', '.join(told.not_undoable)}")
    if told.also:
        some = ", ".join(f"{one['type']} {one['id']}" for one in told.also_in)
        more = told.also - len(told.also_in)
        yield visible(f"the same text stands in {some}{f' and {more:,} more' if more else ''}")
    if told.left:
        yield visible(
            f"pieces of it are still in {', '.join(told.left)}: run it again when there is more room"
        )
    elif not told.dry_run:
        yield "nothing else of it is left in the store" if told.also else "nothing of it is left in the store"
    yield batch_line(told.batch, dry_run=told.dry_run)


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
