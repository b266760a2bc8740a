"""`gmem rename`."""

from __future__ import annotations

import click

from graphmem.cli._acts import actor, changing, encoder_for, vector_option
from graphmem.cli._reading import scope_options, scopes_wanted
from graphmem.cli._shared import configuration, standard_options
from graphmem.cli.update import tell


@click.command()
@click.argument("old")
@click.argument("new")
@click.option("--kind", metavar="KIND", help="The kind of OLD.")
@scope_options
@vector_option
@standard_options
def rename(
    old: str, new: str, kind: str | None, scopes: tuple[str, ...], all_scopes: bool, no_embeddings: bool,
    db: str | None, graph: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Give an entity another name.

    OLD is its name or id. The old name leads to it from then on, in imports too. A name that another entity
    of the kind has is refused: 'gmem merge' makes two entities one.
    """
    from graphmem.edit.identity import rename as run

    seen = scopes_wanted(scopes, all_scopes=all_scopes)
    config = configuration(db, graph)
    with changing(config) as store:
        encoder = encoder_for(config, store, wanted=not no_embeddings)
        done = run(store, old, new, seen, kind=kind, encoder=encoder, actor=actor())
    tell(done, as_json=as_json)
