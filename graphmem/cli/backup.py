"""`gmem backup`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from graphmem.cli._inputs import terminable
from graphmem.cli._shared import configuration, number, output, size, standard_options
from graphmem.terminal import visible

if TYPE_CHECKING:
    from graphmem.backup import Backup


@click.command()
@click.option(
    "-o", "--output", "target", type=click.Path(path_type=Path), metavar="PATH",
    help="The file to write, or the folder to write it to; unless given, the folder of the store.",
)  # fmt: skip
@standard_options
def backup(target: Path | None, db: str | None, graph: str | None, as_json: bool) -> None:
    """Write the store to one checked file.

    Others may go on writing meanwhile: the file holds the store as it was at one instant. It is compressed,
    readable by you alone, and put in place only after it was read again and found the same. Unless PATH
    is a file it is named by the store and the time.

    A damaged store is not backed up, and an older file stays then as it is. 'gmem restore' brings a backup
    back; 'zstd -d' makes a plain SQLite file of it.
    """
    from graphmem.backup import backup as write

    config = configuration(db, graph)
    with terminable():
        made = write(config.store, target)
    output(
        made.as_dict(),
        as_json=as_json,
        text=lambda: f"{visible(made.file)}: {holding(made)}; {size(made.size)} of {size(made.store_size)}",
    )


def holding(made: Backup) -> str:
    """What a backup holds, in words."""
    counts = made.counts
    return ", ".join(
        (
            number(counts["memories"], "memory", "memories"),
            number(counts["entities"], "entity", "entities"),
            number(counts["relations"], "relation"),
            number(counts["batches"], "batch", "batches"),
        )
    )
