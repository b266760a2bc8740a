"""`gmem schema`."""

from __future__ import annotations

import click

from graphmem import schema as schemas
from graphmem.cli._shared import output, standard_options
from graphmem.terminal import to_json


@click.command()
@click.argument("name", type=click.Choice(schemas.NAMES), default=schemas.NAMES[0])
@standard_options
def schema(name: str, db: str | None, graph: str | None, as_json: bool) -> None:  # noqa: ARG001
    """Print the JSON Schema of a record.

    NAME is a kind of record; without it the schema of any line of a JSONL file is printed. The schema
    needs no other file. No store is opened, so that --db and --graph make no difference here.
    """
    shape = schemas.schema(name)
    output(shape, as_json=as_json, text=lambda: to_json(shape))
