"""`gmem reembed`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from graphmem.cli._inputs import terminable
from graphmem.cli._progress import Bar
from graphmem.cli._shared import configuration, output, standard_options
from graphmem.errors import ModelUnavailable, StoreNotFound
from graphmem.terminal import visible

if TYPE_CHECKING:
    from graphmem.config import Config
    from graphmem.embed import Encoder
    from graphmem.reembed import ReembedReport


@click.command()
@click.option("--no-progress", is_flag=True, help="Show no progress bar.")
@standard_options
def reembed(no_progress: bool, db: str | None, graph: str | None, as_json: bool) -> None:
    """Make missing vectors, or all anew.

    What was stored without vectors gets them. When GRAPHMEM_EMBEDDING_MODEL names another model than the
    one that made the store's vectors, all are made anew; until that is complete, search and import go on
    with the former model.

    Interrupted, it loses little: run it again to go on from there.
    """
    from graphmem.reembed import reembed as run
    from graphmem.store import Store, is_there

    config = configuration(db, graph)
    if not is_there(config.store):
        raise StoreNotFound(f"there is no store at {config.store}", "import something, or name it with --db")
    with terminable(), Bar(wanted=not no_progress) as bar:
        encoder = _encoder(config, bar.say)
        with Store(config.store, write=True) as store:
            report = run(store, encoder, progress=bar.told)
    output(report.as_dict(), as_json=as_json, text=lambda: _text(report))


def _encoder(config: Config, say: Callable[[str], None]) -> Encoder:
    from graphmem import embed

    found = embed.load(embed.from_environ(os.environ, config.home), say)
    if found.encoder is None:
        raise ModelUnavailable(f"no vectors can be made: {found.reason}", found.hint)
    return found.encoder


def _text(report: ReembedReport) -> str:
    name = visible(str(report.encoder["name"]))
    counts = [
        f"{report.items[kind]:,} {one if report.items[kind] == 1 else many}"
        for kind, one, many in (
            ("memory", "memory", "memories"), ("entity", "entity", "entities"),
            ("relation", "relation", "relations"),
        )
        if report.items[kind]
    ]  # fmt: skip
    if not counts:
        return f"nothing to do: everything has its vectors by {name}"
    texts = f"{report.encoded:,} text{'' if report.encoded == 1 else 's'} encoded by {name}"
    verb = "has" if sum(report.items.values()) == 1 else "have"
    lines = [f"{', '.join(counts)} {verb} new vectors ({texts})"]
    if report.replaced is not None:
        lines.append(f"they replace those by {visible(str(report.replaced['name']))}")
    return "\n".join(lines)
