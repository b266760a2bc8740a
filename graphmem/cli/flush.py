"""`gmem flush`."""

from __future__ import annotations

import click

from graphmem.cli._acts import changing
from graphmem.cli._shared import configuration, number, output, standard_options
from graphmem.errors import EXIT_DONE, EXIT_USAGE
from graphmem.terminal import visible


@click.command()
@click.option("--yes", is_flag=True, help="Really do it.")
@standard_options
def flush(yes: bool, db: str | None, graph: str | None, as_json: bool) -> int:
    """Empty the store for good.

    Everything goes: memories, entities, relations, where they came from, the log and what 'gmem undo' needs,
    vectors and indexes; no text stays in the file. Without --yes it says what would go and changes nothing.

    It waits for other commands that write, and gives up with exit status 4 while one goes on. 'gmem forget'
    and 'gmem undo' are for less.
    """
    from graphmem.store.files import empty_store
    from graphmem.store.status import read_status

    config = configuration(db, graph)
    with changing(config) as store:
        with store.reading():
            held = read_status(store.db)
        if yes:
            empty_store(store)
    counts = {"memories": held.memories, "entities": held.entities, "relations": held.relations,
              "archived": held.archived, "origins": held.origins}  # fmt: skip
    told = (
        f"{number(held.memories, 'memory', 'memories')}, {number(held.entities, 'entity', 'entities')}, "
        f"{number(held.relations, 'relation')}, {held.archived:,} archived"
    )
    last = "nothing was changed: give --yes to do it" if not yes else "the store is empty"
    output(
        {"flushed": yes, "path": str(config.store), "held": counts}, as_json=as_json,
        text=lambda: visible(f"{config.store} {'held' if yes else 'holds'} {told}") + f"\n{last}",
    )  # fmt: skip
    return EXIT_DONE if yes else EXIT_USAGE
