"""`gmem entities`."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Final

import click

from graphmem.cli._reading import how_many, page_options, reading, scope_options, scopes_wanted
from graphmem.cli._shared import configuration, output, standard_options
from graphmem.terminal import visible
from graphmem.times import now

if TYPE_CHECKING:
    from graphmem.store.read import Page

_MAX_WIDTH: Final = 110


@click.command()
@click.option(
    "--kind", "kinds", multiple=True, metavar="KIND", help="Only entities of this kind; may be repeated."
)
@click.option(
    "--match",
    metavar="TEXT",
    help="Only those with this text in their name or an alias, whatever its case and separators.",
)
@click.option("--stubs", is_flag=True, help="Only those that are referred to and never declared.")
@scope_options
@page_options(limit=50)
@standard_options
def entities(
    kinds: tuple[str, ...], match: str | None, stubs: bool, scopes: tuple[str, ...], all_scopes: bool,
    limit: int, offset: int, db: str | None, graph: str | None, as_json: bool,
) -> None:  # fmt: skip
    """List entities.

    They come by name, each with how many memories and relations it has.
    """
    from graphmem.lookup import bindable
    from graphmem.store.filters import Filters
    from graphmem.store.read import Reader

    seen = scopes_wanted(scopes, all_scopes=all_scopes)
    with reading(configuration(db, graph)) as store:
        reader = Reader(store.db, Filters(now(), seen, kinds))
        text = None if match is None else bindable(match)
        page = reader.entities(limit, offset, match=text, stubs=stubs)
    result = {"entities": page.items, "totals": {"entities": page.total}, "truncated": page.truncated}
    output(result, as_json=as_json, text=lambda: _text(page, seen))


def _text(page: Page, seen: tuple[str, ...] | None) -> str:
    lines = [_line(one) for one in page.items]
    lines += [*([""] if lines else []), how_many(page, "entity", "entities")]
    if not page.total and seen is not None:
        lines.append(visible(f"looked in: {', '.join(seen)}"))
    return "\n".join(lines)


def _line(one: dict[str, Any]) -> str:
    known = [
        f"{one[key]:,} {single if one[key] == 1 else key}"
        for key, single in (("memories", "memory"), ("relations", "relation"))
        if one[key]
    ]
    parts = [f"{one['name']} ({one['kind']})", *(["stub"] if one["stub"] else []), *known, one["scope"]]
    head = visible(" · ".join(parts))
    if not one["description"]:
        return head
    return f"{head}\n  {visible(textwrap.shorten(one['description'], _MAX_WIDTH - 2, placeholder=' …'))}"
