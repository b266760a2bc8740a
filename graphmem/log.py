"""The log as people and programs read it: batches, what one of them changed, what an origin brought."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphmem.errors import ItemNotFound
from graphmem.store import Store
from graphmem.store.diff import Diff
from graphmem.store.history import Entry, History
from graphmem.store.origins import brought, find_origin

Fields = dict[str, Any]


def batches(store: Store, limit: int, offset: int = 0) -> Fields:
    """The batches, the newest first."""
    entries, total = History(store.db).page(limit, offset)
    return {
        "batches": [entry.as_dict() for entry in entries],
        "total": total,
        "truncated": offset + len(entries) < total,
    }


def batch(store: Store, text: str, limit: int, offset: int = 0) -> Fields:
    """What the batch of an id, of the beginning of one, or of a run changed.

    Raises `ItemNotFound` for what is no batch, and for a run of several, which are named.
    """
    entry = one_batch(store, text)
    history = History(store.db)
    changed = Diff(store.db, store.scopes, entry).as_dict(limit, offset)
    return entry.as_dict() | {"kept": history.is_kept(entry.pk) or any(entry.made or ())} | changed


def one_batch(store: Store, text: str) -> Entry:
    """The batch of an id, of the beginning of one, or of a run that is one batch. Raises `ItemNotFound`."""
    found = History(store.db).find(text)
    if not found:
        raise ItemNotFound(f"there is no batch '{text}'", "'gmem log' lists batches")
    if len(found) > 1:
        ids = ", ".join(entry.id for entry in found[:5])
        raise ItemNotFound(f"the run '{text}' has {len(found)} batches", f"name one: {ids}")
    return found[0]


def origin(store: Store, text: str, limit: int, offset: int = 0, *, folder: Path | None = None) -> Fields:
    """What was taken from the origin of a uri, a path seen from `folder`, or the end of one of them.

    Raises `ItemNotFound` when nothing was, or when several origins end so.
    """
    uri = text
    if folder is not None and ":" not in text:
        uri = (folder / text).resolve().as_uri()
    tail = text.removeprefix("./").lstrip("/")
    found = find_origin(store.db, text, "") or find_origin(store.db, uri, f"/{tail}" if tail else "")
    if found is None:
        raise ItemNotFound(
            f"nothing was taken from '{text}', or several origins end so",
            "'gmem show' tells the origins of an item; name the whole path or uri",
        )
    items, total = brought(store.db, found.pop("pk"), limit, offset)
    return found | {"items": items, "total": total, "truncated": offset + len(items) < total}
