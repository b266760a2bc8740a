"""`gmem show`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from graphmem.cli._reading import entity_meant, page_options, reading, scope_options, scopes_wanted
from graphmem.cli._shared import configuration, note, output, standard_options
from graphmem.errors import EntityNotFound, ItemNotFound
from graphmem.records import ENTITY, KINDS
from graphmem.terminal import to_json, visible
from graphmem.times import now

if TYPE_CHECKING:
    from graphmem.store import Store
    from graphmem.store.read import ItemRef, Reader

Fields = dict[str, Any]


@click.command()
@click.argument("what", metavar="ID|NAME")
@click.option("--kind", metavar="KIND", help="The entity of that name that is of this kind.")
@click.option(
    "--as", "as_", type=click.Choice(KINDS), help="Look only for a memory, an entity or a relation."
)
@scope_options
@page_options(limit=20)
@standard_options
def show(
    what: str, kind: str | None, as_: Any, scopes: tuple[str, ...], all_scopes: bool, limit: int,
    offset: int, db: str | None, graph: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Show a memory, an entity or a relation.

    It is found by its id or a former one, else an entity is found by its name as 'gmem resolve' does.

    All that is known of it is shown, also the files and lines it was taken from, and of an entity its
    memories and relations that hold now. --limit and --offset page through every list.
    """
    from graphmem.store.filters import Filters
    from graphmem.store.read import Reader

    seen = scopes_wanted(scopes, all_scopes=all_scopes)
    with reading(configuration(db, graph)) as store:
        reader = Reader(store.db, Filters(now(), seen))
        ref = _by_id(reader, what, as_) if kind is None else None
        if ref is None:
            ref = _by_name(store, what, kind, as_, seen)
        item = reader.item(ref, limit, offset)
    output(item, as_json=as_json, text=lambda: "\n".join(_lines(item)))


def _by_id(reader: Reader, what: str, as_: Any) -> ItemRef | None:
    from graphmem.lookup import bindable

    found = reader.by_id(bindable(what), *([(as_,)] if as_ is not None else []))
    if len(found) > 1:
        others = " and ".join(f"a{'n' if one.kind == ENTITY else ''} {one.kind}" for one in found[1:])
        note(f"note: '{what}' is also the id of {others} (--as)")
    return found[0] if found else None


def _by_name(store: Store, what: str, kind: str | None, as_: Any, seen: tuple[str, ...] | None) -> ItemRef:
    from graphmem.store.read import ItemRef

    hint = "" if seen is None else "; --all-scopes looks in every scope"
    if as_ not in (None, ENTITY):
        raise ItemNotFound(f"no {as_} has the id '{what}' here", f"'gmem list' shows ids{hint}")
    try:
        found = entity_meant(store, what, seen, kind)
    except EntityNotFound as error:
        message = error.message if kind is not None or as_ else f"nothing has the id or name '{what}' here"
        raise EntityNotFound(message, f"{error.hint}{hint}", error.suggestions) from None
    return ItemRef("entity", found.pk, found.id)


# ---- text -------------------------------------------------------------------------------------------

_HEAD: Final = ("type", "id", "content", "relations", "memories", "origins", "stated_by", "subject",
                "predicate", "object", "name", "versions", "batch", "vectors")  # fmt: skip


_UNTOLD: Final[tuple[Any, ...]] = (None, [], {}, "")
_ORDINARY: Final = (("state", "active"), ("access_count", 0), ("stub", False))


def _lines(item: Fields) -> Iterator[str]:
    yield f"{item['type']} {visible(item['id'])}"
    if item["type"] == "entity":
        yield _row("name", item["name"])
    if item["type"] == "relation":
        for end in ("subject", "object"):
            yield _row(end, _named(item[end]))
        yield _row("predicate", item["predicate"])
    for key, value in item.items():
        if key not in _HEAD and value not in _UNTOLD and (key, value) not in _ORDINARY:
            yield _row(key, value)
    yield from _history(item)
    if "content" in item:
        yield ""
        yield visible(item["content"], lines=True)
    for key, line in (
        ("memories", _memory),
        ("relations", _relation),
        ("stated_by", str),
        ("origins", _origin),
    ):
        if key in item and item[key]["total"]:
            yield ""
            yield from _section(key, item[key], line)


def _row(key: str, value: Any) -> str:
    label = key.replace("_", " ")
    if isinstance(value, list):
        text = ", ".join(_named(one) if isinstance(one, dict) else one for one in value)
    elif key == "source" and isinstance(value, dict):
        text = f"{value['uri']}:{value['position']}"
    elif isinstance(value, dict):
        text = to_json(value, indent=None)
    else:
        text = "yes" if value is True else str(value)
    return f"{label:<16} {visible(text)}"


def _named(entity: Fields) -> str:
    return f"{entity['name']} ({entity['kind']}, {entity['scope']})"


def _history(item: Fields) -> Iterator[str]:
    batch = item["batch"]
    if batch is not None:
        yield _row("stored", f"by '{batch['command']}' at {batch['at']} (batch {batch['id']})")
    if item["versions"]:
        yield _row("changed", f"{item['versions']:,} time{'' if item['versions'] == 1 else 's'}")
    if item["vectors"] != 1:
        yield _row("vectors", item["vectors"])


def _section(name: str, page: Fields, line: Any) -> Iterator[str]:
    shown, total = len(page["items"]), page["total"]
    part = f"{shown} of {total:,}" if shown < total else f"{total:,}"
    yield f"{name.replace('_', ' ')} ({part})"
    for one in page["items"]:
        yield f"  {visible(line(one))}"


def _memory(hit: Fields) -> str:
    text = " ".join(hit["content"][:200].split())
    title = f"{hit['title']}: " if hit["title"] else ""
    return f"{hit['id']}  {title}{text[:100]}{'…' if len(text) > 100 else ''}"


def _relation(one: Fields) -> str:
    fact = f": {one['fact']}" if one["fact"] else ""
    return f"{one['id']}  {one['subject']} {one['predicate']} {one['object']}{fact}"


def _origin(one: Fields) -> str:
    line = f":{one['line']}" if one["line"] else ""
    batch = f", batch {one['batch']}" if one["batch"] else ""
    return f"{one['uri'] or '(not from a file)'}{line} taken at {one['taken_at']}{batch}"
