"""`gmem restore`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from graphmem.cli._inputs import terminable
from graphmem.cli._shared import configuration, output, standard_options
from graphmem.cli.backup import holding
from graphmem.terminal import visible

if TYPE_CHECKING:
    from graphmem.backup import Restored


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Check the backup and change nothing.")
@standard_options
def restore(file: Path, dry_run: bool, db: str | None, graph: str | None, as_json: bool) -> None:
    """Make the store what a backup holds.

    FILE is what 'gmem backup' wrote, or a store. It is checked whole before anything is replaced. What the
    store held is kept beside it, as a backup of its own; a damaged store is moved aside as it is. Programs
    that have the store open see the new content at once.
    """
    from graphmem.backup import restore as bring_back

    config = configuration(db, graph)
    with terminable():
        done = bring_back(file, config.store, dry_run=dry_run)
    output(done.as_dict(), as_json=as_json, text=lambda: "\n".join(_lines(done)))


def _lines(done: Restored) -> Iterator[str]:
    made = f" of {done.backup.made_at}" if done.backup.made_at else ""
    verb = "would be" if done.dry_run else "is now"
    yield visible(f"{done.store} {verb} the backup{made}: {holding(done.backup)}")
    if done.kept is not None:
        yield visible(f"what it held before is kept in {done.kept}")
    if done.aside:
        yield visible(f"what was there is kept as it was: {', '.join(done.aside)}")
