"""`gmem reindex`."""

from __future__ import annotations

import click

from graphmem.cli._shared import configuration, number, output, standard_options
from graphmem.errors import StoreNotFound


@click.command()
@standard_options
def reindex(db: str | None, graph: str | None, as_json: bool) -> None:
    """Look for names in all memories anew.

    Which memories mention which entities is kept up to date by every import. After imports that were told
    to leave it out this makes up for it; otherwise it changes nothing.
    """
    from graphmem.store import Store, is_there

    config = configuration(db, graph)
    if not is_there(config.store):
        raise StoreNotFound(f"there is no store at {config.store}", "import something, or name it with --db")
    with Store(config.store, write=True) as store, store.transaction():
        names, mentions = store.find_mentions_anew()
    result = {"names": names, "mentions": mentions}
    output(result, as_json=as_json, text=lambda: f"{number(mentions, 'mention')} of {number(names, 'name')}")
