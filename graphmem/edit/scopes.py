"""Scopes: giving one another name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from graphmem.act import Act, Done, perform
from graphmem.commit.edits import Edits
from graphmem.commit.moves import move_scope
from graphmem.errors import EditRefused, UsageError
from graphmem.records import GLOBAL_SCOPE, KINDS
from graphmem.scopes import checked
from graphmem.store import Store
from graphmem.store.edit import Editor

if TYPE_CHECKING:
    from graphmem.embed import Encoder

_MAX_TOLD: Final = 5


@dataclass(slots=True)
class Renamed:
    """How many items of each kind were moved, and how many were united with one of the new scope."""

    moved: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    united: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    batch: str | None = None
    dry_run: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The outcome as it stands in JSON."""
        return {"moved": self.moved, "united": self.united, "batch": self.batch, "dry_run": self.dry_run}


def rename_scope(
    store: Store, old: str, new: str, *, unite: bool = False, encoder: Encoder | None = None,
    actor: str | None = None, dry_run: bool = False,
) -> Renamed:  # fmt: skip
    """Moves everything of one scope to another, as one batch; the ids of all items stay.

    Former names move along. Relations and memories that become equal are united. Entities of one name and
    kind in both scopes are merged with `unite`, else raise `EditRefused`. Raises `UsageError` for what is no
    scope and for `global`, whose entities other scopes refer to.
    """
    checked(old)
    checked(new)
    if old == GLOBAL_SCOPE:
        raise UsageError("the scope 'global' cannot be renamed", "every scope refers to what is in it")
    if old == new:
        raise UsageError(f"'{old}' is that already", "give another name")

    def body(edits: Edits, done: Done) -> Renamed:
        told = Renamed(dry_run=dry_run)
        found = store.scopes.find(old)
        if found is None or not any(edits.editor.items_in(found)):
            raise UsageError(f"nothing is in the scope '{old}'", "'gmem scopes' lists scopes")
        if not unite:
            _check_namesakes(edits.editor, store, found, new)
        for kind, counts in zip(KINDS, move_scope(edits, old, new), strict=True):
            told.moved[kind], told.united[kind] = counts
        done.counts |= {"moved": told.moved, "united": told.united}
        return told

    told, done = perform(store, Act("scopes", [old, new], actor), body, encoder, dry_run=dry_run)
    told.batch = done.batch
    return told


def _check_namesakes(editor: Editor, store: Store, old: int, new: str) -> None:
    into = store.scopes.find(new)
    shared = [] if into is None else editor.namesakes(old, into)
    if shared:
        told = ", ".join(f"'{name}'" for name in shared[:_MAX_TOLD])
        more = f" and {len(shared) - _MAX_TOLD} more" if len(shared) > _MAX_TOLD else ""
        raise EditRefused(
            f"the scope '{new}' has entities of the same name and kind: {told}{more}",
            "--unite merges them; 'gmem rename' gives them names of their own",
        )
