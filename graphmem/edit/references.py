"""What a person or an agent names, as a reference of a record."""

from __future__ import annotations

from typing import Any

from graphmem.edit.targets import find_item
from graphmem.errors import ItemNotFound
from graphmem.lookup import bindable
from graphmem.scopes import visible_scopes
from graphmem.store import Store
from graphmem.store.lookup import Names
from graphmem.store.write import ENTITY


def referring(
    store: Store | None, text: str, scope: str, kind: str | None = None, *, existing: bool = False
) -> Any:
    """The reference that a text stands for: by id where it is that of a visible entity, else by name.

    With `existing` the entity must be there, and is found as a person would find it. Raises `AmbiguousName`
    and `EntityNotFound` with suggestions then.
    """
    seen = visible_scopes(scope)
    if existing:
        if store is None:
            raise ItemNotFound(f"no entity is called '{text}': there is no store", "leave --existing out")
        return {"id": find_item(store, text, seen, kind=kind, only=ENTITY).id}
    found = None
    if store is not None and kind is None:
        found = Names(store.db, seen).by_id(bindable(text))
    if found is not None:
        return {"id": found.id}
    return text if kind is None else {"name": text, "kind": kind}
