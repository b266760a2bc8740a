"""`gmem log`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from graphmem.cli._reading import page_options, reading, scope_options, scopes_wanted
from graphmem.cli._shared import configuration, here, output, standard_options
from graphmem.cli.forget import counted
from graphmem.errors import UsageError
from graphmem.terminal import to_json, visible
from graphmem.times import now

if TYPE_CHECKING:
    from graphmem.store import Store

Fields = dict[str, Any]

_RECORDS: Final = "record"
"""What the log calls records that were handed over: no file that would be worth naming."""

_WIDTH: Final = 100
"""How much of a text is shown on a line."""


@click.command("log")
@click.argument("batch", required=False)
@click.option("--item", metavar="ID|NAME", help="The history of this item.")
@click.option("--origin", metavar="URI", help="What was taken from this file or other origin.")
@scope_options
@page_options(limit=20)
@standard_options
def log(
    batch: str | None, item: str | None, origin: str | None, scopes: tuple[str, ...], all_scopes: bool,
    limit: int, offset: int, db: str | None, graph: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Show what was done to the store.

    Batches come newest first: what is stored together, and taken back together by 'gmem undo'. BATCH, an id
    or its beginning, is shown as what it changed: items made and removed, and each field before and after.

    --item shows what an item said before each batch that changed it; --scope and --all-scopes say where to
    look for it. --origin shows each record that was taken from a file, in order, with the item it went to.
    """
    if sum(one is not None for one in (batch, item, origin)) > 1:
        raise UsageError("a batch, --item and --origin do not go together", "ask for one of them")
    if scopes and item is None:
        raise UsageError("--scope goes with --item", "batches are of the whole store")
    from graphmem import log as of

    with reading(configuration(db, graph)) as store:
        if batch is not None:
            result, lines = of.batch(store, batch, limit, offset), _diff
        elif item is not None:
            seen = scopes_wanted(scopes, all_scopes=all_scopes)
            result, lines = _history(store, item, seen, limit, offset), _changes
        elif origin is not None:
            result, lines = of.origin(store, origin, limit, offset, folder=here()), _brought
        else:
            result, lines = of.batches(store, limit, offset), _batches
    output(result, as_json=as_json, text=lambda: "\n".join([*lines(result), *_more(result, limit, offset)]))


def _history(store: Store, text: str, seen: tuple[str, ...] | None, limit: int, offset: int) -> Fields:
    from graphmem.edit.targets import find_item
    from graphmem.store.filters import Filters
    from graphmem.store.read import ItemRef
    from graphmem.store.versions import Versions

    target = find_item(store, text, seen)
    ref = ItemRef(target.type, target.pk, target.id)  # type: ignore[arg-type]
    page = Versions(store.db, Filters(now(), seen)).page(ref, limit, offset)
    return {"type": target.type, "id": target.id} | {
        "changes": page.items, "total": page.total, "truncated": page.truncated,
    }  # fmt: skip


# ---- text -------------------------------------------------------------------------------------------


def _more(result: Fields, limit: int, offset: int) -> Iterator[str]:
    if result["truncated"]:
        yield f"there is more: --offset {offset + limit}"


def _batches(result: Fields) -> Iterator[str]:
    for one in result["batches"]:
        yield from _head(one)
    if not result["batches"] and not result["total"]:
        yield "nothing was done yet"


def _head(one: Fields) -> Iterator[str]:
    undone = f"  [taken back by {one['undone_by']}]" if one["undone_by"] else ""
    by = f" by {one['actor']}" if one["actor"] else ""
    yield visible(f"{one['id']}  {one['at']}  {one['command']}{by}{undone}")
    told = _short(", ".join(one["inputs"]))
    if told and one["inputs"] != [_RECORDS]:
        yield f"  {told}"
    counts = _counts(one["counts"])
    if counts:
        yield f"  {counts}"


def _counts(counts: Fields) -> str:
    told = []
    for word in ("created", "archived", "changed", "removed", "restored"):
        held = counts.get(word)
        if isinstance(held, dict) and counted(held):
            told.append(f"{word} {counted(held)}")
    if not told and counts.get("records"):
        told.append(f"{counts['records']:,} records read")
    return "; ".join(told)


def _diff(result: Fields) -> Iterator[str]:
    yield from _head(result)
    if not result["kept"]:
        yield "  what it changed was not kept"
    for one in result["removed"]:
        yield f"- {_item(one)}"
    for one in result["made"]:
        yield f"+ {_item(one)}"
    for one in result["changed"]:
        yield f"~ {_item(one)}"
        for field in one["fields"]:
            yield from _field(field)
    totals = [f"{word} {counted(of)}" for word, of in result["totals"].items() if counted(of)]
    yield "; ".join(totals) or "no item was made, removed or changed"


def _item(one: Fields) -> str:
    return f"{one['type']} {visible(one['id'] or '')}  {_short(one['label'])}"


def _field(field: Fields) -> Iterator[str]:
    name = field["field"].replace("_", " ")
    if "before" in field:
        yield f"    {name}: {_value(field['before'])} -> {_value(field['after'])}"
        return
    for sign, key in (("-", "removed"), ("+", "added")):
        for member in field[key]:
            yield f"    {name}: {sign} {_value(member)}"


def _value(value: Any) -> str:
    if value is None:
        return "(none)"
    return _short(value if isinstance(value, str) else to_json(value, indent=None))


def _short(text: str) -> str:
    flat = " ".join(visible(text[: 4 * _WIDTH], lines=True).split())
    return flat if len(flat) <= _WIDTH else f"{flat[: _WIDTH - 1]}…"


def _changes(result: Fields) -> Iterator[str]:
    yield visible(f"{result['type']} {result['id']}")
    for one in result["changes"]:
        by = f" by {one['by']}" if one["by"] else ""
        yield visible(f"before {one['batch']}  {one['at']}  {one['command']}{by}")
        for name, value in one["before"].items():
            yield f"    {name.replace('_', ' ')}: {_value(value)}"
    if not result["total"]:
        yield "it was not changed since it was made"


def _brought(result: Fields) -> Iterator[str]:
    yield visible(result["uri"])
    for one in result["items"]:
        line = f"{one['line']}: " if one["line"] else ""
        archived = " (archived)" if one["state"] == "archived" else ""
        yield f"{line}{_item(one)}{archived}"
    yield f"{result['total']:,} record{'' if result['total'] == 1 else 's'} taken from it"
