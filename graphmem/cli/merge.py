"""`gmem merge`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from graphmem.cli._acts import actor, batch_line, changing, encoder_for, vector_option
from graphmem.cli._reading import scope_options, scopes_wanted
from graphmem.cli._shared import configuration, number, output, standard_options
from graphmem.terminal import visible


@click.command()
@click.argument("from_", metavar="FROM")
@click.argument("into", metavar="INTO")
@click.option("--kind", metavar="KIND", help="The kind of FROM.")
@click.option("--into-kind", metavar="KIND", help="The kind of INTO.")
@scope_options
@vector_option
@standard_options
def merge(
    from_: str, into: str, kind: str | None, into_kind: str | None, scopes: tuple[str, ...], all_scopes: bool,
    no_embeddings: bool, db: str | None, graph: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Make two entities one.

    FROM and INTO are names or ids. INTO stays; the name, aliases and ids of FROM lead to it from then on, in
    imports too. Memories and relations move; those that become equal are united, and relations between the
    two are dropped. Both descriptions are kept; of a property that both have, the value of INTO stands and
    that of FROM goes to the property 'merged'.
    """
    from graphmem.edit.identity import merge as run

    seen = scopes_wanted(scopes, all_scopes=all_scopes)
    config = configuration(db, graph)
    with changing(config) as store:
        encoder = encoder_for(config, store, wanted=not no_embeddings)
        done = run(store, from_, into, seen, kind=kind, into_kind=into_kind, encoder=encoder, actor=actor())
    output(done, as_json=as_json, text=lambda: "\n".join(_lines(done)))


def _lines(done: dict[str, Any]) -> Iterator[str]:
    yield visible(f"merged entity {done['merged']} into {done['id']}")
    for kind, one, many in (("memories", "memory", "memories"), ("relations", "relation", "relations")):
        moved, united = done[kind], done[f"{kind}_united"]
        if moved:
            yield f"  {number(moved, one, many)} moved"
        if united:
            yield f"  {number(united, one, many)} united with one that was there"
    if done["loops_dropped"]:
        yield f"  {number(done['loops_dropped'], 'relation')} between the two dropped"
    yield batch_line(done["batch"])
