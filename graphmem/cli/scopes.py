"""`gmem scopes`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from graphmem.cli._acts import actor, batch_line, changing, encoder_for, vector_option
from graphmem.cli._reading import reading
from graphmem.cli._shared import configuration, number, output, standard_options
from graphmem.errors import UsageError
from graphmem.scopes import is_gone
from graphmem.terminal import visible

if TYPE_CHECKING:
    from graphmem.edit.scopes import Renamed


@click.command()
@click.argument("action", type=click.Choice(["list", "rename"]), default="list")
@click.argument("old", required=False)
@click.argument("new", required=False)
@click.option("--unite", is_flag=True, help="Merge entities that both scopes have.")
@click.option("--dry-run", is_flag=True, help="Say what would be moved, and change nothing.")
@vector_option
@standard_options
def scopes(
    action: str, old: str | None, new: str | None, unite: bool, dry_run: bool, no_embeddings: bool,
    db: str | None, graph: str | None, as_json: bool,
) -> None:  # fmt: skip
    """List scopes, or give one another name.

    'rename OLD NEW' moves everything in OLD to NEW as one batch, for example when a repository has moved. When
    NEW has entities of the same name and kind, it is refused, unless --unite merges them; relations and
    memories that become equal are united. 'gmem undo' takes it back.

    Files that still say OLD are known as before; what is new in them goes to OLD, unless 'gmem import' is
    told to map it.
    """
    if action == "list":
        if old is not None:
            raise UsageError(f"'{old}' is one too many", "'gmem scopes' lists all scopes")
        _list(db, graph, as_json=as_json)
        return
    if old is None or new is None:
        raise UsageError("which scope should be renamed, and to what?", "write 'gmem scopes rename OLD NEW'")
    from graphmem.edit.scopes import rename_scope

    config = configuration(db, graph)
    with changing(config) as store:
        encoder = encoder_for(config, store, wanted=unite and not no_embeddings and not dry_run)
        done = rename_scope(store, old, new, unite=unite, encoder=encoder, actor=actor(), dry_run=dry_run)
    output(done.as_dict(), as_json=as_json, text=lambda: "\n".join(_lines(done)))


def _list(db: str | None, graph: str | None, *, as_json: bool) -> None:
    from graphmem.store.status import read_status

    with reading(configuration(db, graph)) as store:
        found = read_status(store.db).scopes
    held: list[dict[str, Any]] = [one._asdict() | {"gone": is_gone(one.name)} for one in found]
    output({"scopes": held}, as_json=as_json, text=lambda: "\n".join(_listed(held)))


def _listed(held: list[dict[str, Any]]) -> Iterator[str]:
    for one in held:
        told = (
            f"{number(one['memories'], 'memory', 'memories')}, "
            f"{number(one['entities'], 'entity', 'entities')}, {number(one['relations'], 'relation')}"
        )
        yield visible(f"{one['name']}: {told}{' [not there any more]' if one['gone'] else ''}")
    yield number(len(held), "scope")


def _lines(done: Renamed) -> Iterator[str]:
    for kind, one, many in (
        ("entity", "entity", "entities"), ("memory", "memory", "memories"), ("relation", "relation", "relations"),
    ):  # fmt: skip
        if done.moved[kind]:
            yield f"{number(done.moved[kind], one, many)} moved"
        if done.united[kind]:
            yield f"{number(done.united[kind], one, many)} united with one that was there"
    yield batch_line(done.batch, dry_run=done.dry_run)
