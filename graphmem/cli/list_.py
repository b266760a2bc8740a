"""`gmem list`."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from graphmem.cli._answers import about, details
from graphmem.cli._reading import (
    entity_meant,
    how_many,
    page_options,
    reading,
    scope_options,
    scopes_wanted,
)
from graphmem.cli._shared import configuration, output, standard_options
from graphmem.cli._times import moment
from graphmem.records import MEMORY
from graphmem.terminal import visible
from graphmem.times import now

if TYPE_CHECKING:
    from graphmem.store.read import Page

_MAX_WIDTH: Final = 110
_LINES: Final = 2


@click.command("list")
@click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="Only memories of this type; may be repeated."
)
@click.option(
    "--tag",
    "tags",
    multiple=True,
    metavar="TAG",
    help="Only memories with this tag; repeated, with any of them.",
)
@scope_options
@click.option("--entity", metavar="NAME", help="Only what is about or mentions this entity, by name or id.")
@click.option("--source", metavar="SOURCE", help="Only what has this source, in its order there.")
@click.option(
    "--state",
    type=click.Choice(["active", "archived", "all"]),
    default="active",
    show_default=True,
    help="What holds now, what was archived, or everything.",
)
@click.option("--since", metavar="TIME", callback=moment, help="Only what was true or stored since then.")
@click.option("--until", metavar="TIME", callback=moment, help="Only what was true or stored until then.")
@page_options(limit=50)
@standard_options
def list_(
    types: tuple[str, ...], tags: tuple[str, ...], scopes: tuple[str, ...], all_scopes: bool,
    entity: str | None, source: str | None, state: Any, since: str | None, until: str | None, limit: int,
    offset: int, db: str | None, graph: str | None, as_json: bool,
) -> None:  # fmt: skip
    """List memories.

    The newest come first, by when they became true, else by when they were stored; with --source they come
    in the order of the source.
    """  # fmt: skip
    from graphmem.lookup import bindable
    from graphmem.store.filters import Filters
    from graphmem.store.read import Reader
    from graphmem.store.search import Searcher

    seen = scopes_wanted(scopes, all_scopes=all_scopes)
    with reading(configuration(db, graph)) as store:
        chosen = None if entity is None else entity_meant(store, entity, seen).id
        source = None if source is None else bindable(source)
        filters = Filters(now(), seen, (), types, tags, since, until, chosen, source, state)
        reader = Reader(store.db, filters)
        page = reader.memories(limit, offset)
        names = {name for hit in page.items for name in hit["about"]}
        shared = Searcher(store.db, filters).shared_names(names)
        elsewhere = (0, 0) if page.total else reader.elsewhere(MEMORY)
    result = {
        "hits": page.items,
        "totals": {"hits": page.total},
        "truncated": page.truncated,
        "elsewhere": {"hits": elsewhere[0], "scopes": elsewhere[1]} if elsewhere[0] else None,
    }
    output(result, as_json=as_json, text=lambda: _text(page, elsewhere, seen, shared))


def _text(
    page: Page, elsewhere: tuple[int, int], seen: tuple[str, ...] | None, shared: frozenset[str]
) -> str:
    width = min(shutil.get_terminal_size().columns, _MAX_WIDTH)
    blocks = ["\n".join(_memory(hit, width, shared)) for hit in page.items]
    blocks.append("\n".join([how_many(page, "memory", "memories"), *_elsewhere(page, elsewhere, seen)]))
    return "\n\n".join(blocks)


def _memory(hit: dict[str, Any], width: int, shared: frozenset[str]) -> Iterator[str]:
    head = " · ".join(visible(part) for part in (hit["title"], about(hit, shared)) if part)
    archived = " (archived)" if hit["state"] != "active" else ""
    yield f"{head or visible(hit['id'])}{archived}"
    text = " ".join(visible(hit["content"][: width * (_LINES + 2)], lines=True).split())
    yield from textwrap.wrap(
        text, width, initial_indent="  ", subsequent_indent="  ", max_lines=_LINES, placeholder=" …",
        break_on_hyphens=False,
    )  # fmt: skip
    yield f"  {' · '.join(visible(part) for part in details(hit))}"


def _elsewhere(page: Page, elsewhere: tuple[int, int], seen: tuple[str, ...] | None) -> Iterator[str]:
    if page.total or seen is None:
        return
    count, scopes = elsewhere
    if count:
        memories = "memory" if count == 1 else "memories"
        yield f"{count:,} {memories} in {scopes:,} other scope{'' if scopes == 1 else 's'} (--all-scopes)"
    yield visible(f"looked in: {', '.join(seen)}")
