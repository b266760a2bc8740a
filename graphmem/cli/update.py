"""`gmem update`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from graphmem.cli._acts import actor, batch_line, changing, encoder_for, vector_option
from graphmem.cli._inputs import terminable
from graphmem.cli._reading import scope_options, scopes_wanted
from graphmem.cli._shared import configuration, output, standard_options
from graphmem.errors import UsageError
from graphmem.terminal import visible

if TYPE_CHECKING:
    from graphmem.edit.update import Updated

_FIELDS = {"type_": "memory_type", "new_kind": "kind"}
"""What fields are called that have another name as an option."""


@click.command()
@click.argument("what", metavar="ID|NAME")
@click.option("--kind", metavar="KIND", help="The entity of that name that is of this kind.")
@click.option("--content", metavar="TEXT", help="Of a memory: its text; '-' is standard input.")
@click.option("--title", metavar="TEXT", help="Of a memory: its title.")
@click.option("--type", "type_", metavar="TYPE", help="Of a memory: its type.")
@click.option("--importance", type=float, metavar="X", help="Of a memory: how much it matters, 0 to 1.")
@click.option("--source", metavar="SOURCE", help="Of a memory: where it comes from.")
@click.option("--valid-at", metavar="TIME", help="Of a memory: since when it is true.")
@click.option("--about", multiple=True, metavar="NAME", help="Of a memory: also about this entity.")
@click.option("--not-about", multiple=True, metavar="NAME", help="Of a memory: not about this entity.")
@click.option("--mentions", multiple=True, metavar="NAME", help="Of a memory: also mentions this entity.")
@click.option("--not-mentions", multiple=True, metavar="NAME", help="Of a memory: does not mention it.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Of a memory: a further tag.")
@click.option("--untag", multiple=True, metavar="TAG", help="Of a memory: take the tag away.")
@click.option("--description", metavar="TEXT", help="Of an entity: its description.")
@click.option("--new-kind", metavar="KIND", help="Of an entity: its kind.")
@click.option("--fact", metavar="TEXT", help="Of a relation: the fact as a sentence.")
@click.option("--predicate", metavar="P", help="Of a relation: its predicate.")
@click.option("--weight", type=float, metavar="X", help="Of a relation: how strong it is, 0 to 1.")
@click.option("--invalid-at", metavar="TIME", help="Of a memory or relation: until when it was true.")
@click.option("--expired-at", metavar="TIME", help="Of a memory or relation: until when it was known.")
@click.option(
    "--property", "properties", multiple=True, metavar="KEY=VALUE",
    help="Set a property; VALUE is JSON, else text. May be repeated.",
)  # fmt: skip
@click.option("--without-property", multiple=True, metavar="KEY", help="Take a property away.")
@click.option("--clear", multiple=True, metavar="FIELD", help="Make a field unknown, or a set empty.")
@click.option("--archive", is_flag=True, help="Archive it, as 'gmem forget' does to it alone.")
@click.option("--restore", is_flag=True, help="Bring back what is archived.")
@scope_options
@vector_option
@standard_options
def update(
    what: str, kind: str | None, about: tuple[str, ...], not_about: tuple[str, ...],
    mentions: tuple[str, ...], not_mentions: tuple[str, ...], tags: tuple[str, ...], untag: tuple[str, ...],
    properties: tuple[str, ...], without_property: tuple[str, ...], clear: tuple[str, ...], archive: bool,
    restore: bool, scopes: tuple[str, ...], all_scopes: bool, no_embeddings: bool, db: str | None,
    graph: str | None, as_json: bool, **fields: Any,
) -> None:  # fmt: skip
    """Change an item in place.

    A memory, an entity or a relation is found by its id, else an entity by its name; a name that could be
    several is refused. What is changed by hand stays so when the files that said otherwise are imported
    again. What it said before is kept: 'gmem log' shows it.

    --clear takes the name of a field as 'gmem show' has it, for example title or tags.
    """
    from graphmem.edit.update import Update
    from graphmem.edit.update import update as run

    if archive and restore:
        raise UsageError("--archive and --restore do not go together", "leave one of them out")
    setting = {_FIELDS.get(name, name): value for name, value in fields.items() if value is not None}
    if setting.get("content") == "-":
        setting["content"] = sys.stdin.read().strip("\n")
    if archive or restore:
        setting["state"] = "archived" if archive else "active"
    wanted = Update(
        setting,
        [name.replace("-", "_") for name in clear],
        _sets(about=about, mentions=mentions, tags=tags),
        _sets(about=not_about, mentions=not_mentions, tags=untag),
        _properties(properties),
        without_property,
    )
    seen = scopes_wanted(scopes, all_scopes=all_scopes)
    config = configuration(db, graph)
    with terminable(), changing(config) as store:
        encoder = encoder_for(config, store, wanted=not no_embeddings)
        done = run(store, what, wanted, seen, kind=kind, encoder=encoder, actor=actor())
    tell(done, as_json=as_json)


def tell(done: Updated, *, as_json: bool) -> None:
    """Prints what became of an item."""
    output(done.as_dict(), as_json=as_json, text=lambda: "\n".join(_lines(done)))


def _lines(done: Updated) -> Iterator[str]:
    if done.status == "united":
        yield visible(f"united with {done.type} {done.id}, which says the same")
    else:
        yield visible(f"{done.status} {done.type} {done.id}")
    if done.fields:
        yield visible(f"  changed: {', '.join(done.fields)}")
    yield batch_line(done.batch)


def _sets(**members: Sequence[str]) -> dict[str, list[str]]:
    return {name: list(given) for name, given in members.items() if given}


def _properties(given: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in given:
        key, sign, text = one.partition("=")
        if not sign or not key:
            raise UsageError(f"'{one}' is not KEY=VALUE", "write for example --property port=5432")
        try:
            found[key] = json.loads(text)
        except ValueError:
            found[key] = text
    return found
