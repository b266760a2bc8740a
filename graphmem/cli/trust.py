"""`gmem trust`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from graphmem import config
from graphmem.cli._shared import here, output, standard_options
from graphmem.terminal import visible


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
@standard_options
def trust(folder: Path, db: str | None, graph: str | None, as_json: bool) -> None:
    """Allow a store that came with a repository.

    A .graphmem/ that Git tracks, or that belongs to another user, is not used until you trust it here.
    Trusts the nearest one from FOLDER (default: here) upwards, by its path, on this machine only; the
    record is trusted.json in $GRAPHMEM_HOME.
    """
    found, new = config.trust(folder, os.environ, here())
    used = config.locate(db, graph, os.environ, here() if db is not None else found.parent)
    result = {"folder": str(found), "new": new, "store": str(used.store), "via": used.via}
    verb = "trusted" if new else "already trusted:"
    output(
        result,
        as_json=as_json,
        text=lambda: f"{verb} {visible(str(found))}\nstore: {visible(str(used.store))}",
    )
