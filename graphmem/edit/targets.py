"""Finding the item that an act is about: by id, or an entity by its name."""

from __future__ import annotations

from typing import NamedTuple

from graphmem.errors import AmbiguousName, ItemNotFound
from graphmem.lookup import bindable, look_up
from graphmem.records import KINDS, UNKNOWN_KIND
from graphmem.store import Store
from graphmem.store.edit import Editor
from graphmem.store.lookup import Names
from graphmem.store.write import ENTITY

Scopes = tuple[str, ...] | None
"""The scopes that an act may touch; `None` for all."""


class Target(NamedTuple):
    """An item by kind number, row number and id."""

    kind: int
    pk: int
    id: str

    @property
    def type(self) -> str:
        """`entity`, `memory` or `relation`."""
        return KINDS[self.kind]


def find_item(
    store: Store, text: str, scopes: Scopes, *, kind: str | None = None, only: int | None = None
) -> Target:
    """The visible item of an id, else the entity of a name, archived ones included.

    `kind` is the kind of an entity, `only` leaves other items than that number aside. Unlike a read, an act
    never picks one of several: raises `AmbiguousName` with all of them, `ItemNotFound` and, for names,
    `EntityNotFound` with suggestions.
    """
    editor = Editor(store.db, store.scopes)
    text = bindable(text)
    if kind is None:
        for number in range(len(KINDS)):
            if only not in (None, number):
                continue
            pk = editor.find(number, text)
            if pk is not None and _visible(editor.seen(number, pk).scopes, scopes):
                return Target(number, pk, editor.id(number, pk))
    if only not in (None, ENTITY):
        raise ItemNotFound(
            f"no {KINDS[only or 0]} has the id '{text}' here", "'gmem search' and 'gmem list' show ids"
        )
    answer = look_up(Names(store.db, scopes), text, kind)
    found = answer.found
    if answer.others:
        named = [one.candidate for one in (found, *answer.others)]
        told = "; ".join(f"{one.name} ({one.kind or UNKNOWN_KIND}, {one.scope})" for one in named)
        ids = ", ".join(one.id for one in (found, *answer.others))
        raise AmbiguousName(
            f"'{text}' could be any of: {told}", f"say which by its kind, or by its id: {ids}"
        )
    return Target(ENTITY, found.pk, found.id)


def _visible(held: tuple[str, ...], scopes: Scopes) -> bool:
    return scopes is None or any(scope in scopes for scope in held)
