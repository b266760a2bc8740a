"""`gmem undo`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from graphmem.cli._acts import actor, batch_line, changing, encoder_for, vector_option
from graphmem.cli._inputs import terminable
from graphmem.cli._shared import configuration, output, standard_options
from graphmem.cli.forget import counted
from graphmem.terminal import visible

if TYPE_CHECKING:
    from graphmem.edit.undo import Undone


@click.command()
@click.argument("batch", required=False)
@click.option("--cascade", is_flag=True, help="Also take back the later batches that were built on it.")
@click.option("--dry-run", is_flag=True, help="Say what would be taken back, and change nothing.")
@vector_option
@standard_options
def undo(
    batch: str | None, cascade: bool, dry_run: bool, no_embeddings: bool, db: str | None, graph: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Take back what a command did.

    BATCH is the id of a batch as 'gmem log' shows it, the beginning of one, or a run: all batches of one
    command. Without it the last command that changed the store and stands is taken back.

    What stood before is put back exactly. A batch that later ones were built on is refused, unless --cascade
    takes these back too. An undo is a batch itself: taken back, it brings everything back. What an import
    brought can be imported again.
    """
    from graphmem.edit.undo import undo as run

    config = configuration(db, graph)
    with terminable(), changing(config) as store:
        encoder = None if dry_run else encoder_for(config, store, wanted=not no_embeddings)
        done = run(store, batch, cascade=cascade, encoder=encoder, actor=actor(), dry_run=dry_run)
    output(done.as_dict(), as_json=as_json, text=lambda: "\n".join(_lines(done)))


def _lines(done: Undone) -> Iterator[str]:
    for one in done.batches:
        yield visible(f"took back batch {one}" if not done.dry_run else f"would take back batch {one}")
    for word, counts in (("removed", done.removed), ("put back", done.restored)):
        told = counted(counts)
        if told:
            yield f"  {word}: {told}"
    yield batch_line(done.batch, dry_run=done.dry_run)
