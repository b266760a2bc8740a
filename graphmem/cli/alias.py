"""`gmem alias`."""

from __future__ import annotations

import click

from graphmem.cli._acts import actor, changing, encoder_for, vector_option
from graphmem.cli._reading import scope_options, scopes_wanted
from graphmem.cli._shared import configuration, standard_options
from graphmem.cli.update import tell


@click.command()
@click.argument("name")
@click.argument("aliases", metavar="ALIAS…", nargs=-1, required=True)
@click.option("--remove", is_flag=True, help="Take the aliases away.")
@click.option("--kind", metavar="KIND", help="The kind of NAME.")
@scope_options
@vector_option
@standard_options
def alias(
    name: str, aliases: tuple[str, ...], remove: bool, kind: str | None, scopes: tuple[str, ...],
    all_scopes: bool, no_embeddings: bool, db: str | None, graph: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Give an entity further names.

    NAME is its name or id. References by an alias mean the entity from then on.
    """
    from graphmem.edit.identity import alias as run

    seen = scopes_wanted(scopes, all_scopes=all_scopes)
    add, gone = ((), aliases) if remove else (aliases, ())
    config = configuration(db, graph)
    with changing(config) as store:
        encoder = encoder_for(config, store, wanted=not no_embeddings)
        done = run(store, name, add, gone, seen, kind=kind, encoder=encoder, actor=actor())
    tell(done, as_json=as_json)
