"""`gmem init`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from graphmem import config
from graphmem.cli._shared import here, note, output, standard_options
from graphmem.terminal import visible


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
@standard_options
def init(folder: Path, db: str | None, graph: str | None, as_json: bool) -> None:
    """Give a project a store of its own.

    Makes .graphmem/ in FOLDER (default: here), readable by you alone and ignored by Git. From then on
    every command in FOLDER and below uses the store in it, which is made by the first write. Doing it
    again changes nothing.

    --db and GRAPHMEM_DB still come first; the command tells when they hide the new store.
    """
    made, created = config.init(folder, os.environ, here())
    used = config.locate(db, graph, os.environ, here() if db is not None else made.parent)
    if used.via in ("option", "environment"):
        name = "--db" if used.via == "option" else "GRAPHMEM_DB"
        note(f"note: {name} is given and comes first: '{used.store}' is used, not this folder")
    result = {"folder": str(made), "created": created, "store": str(used.store), "via": used.via}
    verb = "made" if created else "already there:"
    output(
        result,
        as_json=as_json,
        text=lambda: f"{verb} {visible(str(made))}\nstore: {visible(str(used.store))}",
    )
