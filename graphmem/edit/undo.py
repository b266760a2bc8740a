"""Taking batches back: exactly what stood before, where nothing later was built on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from graphmem.act import Act, Done, perform
from graphmem.commit.edits import Edits
from graphmem.errors import UndoRefused
from graphmem.records import KINDS
from graphmem.store import Store
from graphmem.store.history import Entry, History
from graphmem.store.undo import Taken, Undoing

if TYPE_CHECKING:
    from graphmem.embed import Encoder

COMMAND: Final = "undo"
_WITHOUT_ITEMS: Final = ("reembed", "repair")
"""Commands that change nothing that is said."""

_MAX_TOLD: Final = 5


@dataclass(slots=True)
class Undone:
    """Which batches were taken back, newest first, and what that did to items of each kind."""

    batches: list[str] = field(default_factory=list)
    removed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    restored: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    batch: str | None = None
    dry_run: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The outcome as it stands in JSON."""
        return {
            "undone": self.batches, "removed": self.removed, "restored": self.restored,
            "batch": self.batch, "dry_run": self.dry_run,
        }  # fmt: skip


class _Further(Exception):
    """More batches must be taken back first."""

    def __init__(self, batches: set[int]) -> None:
        super().__init__()
        self.batches = batches


def undo(
    store: Store, text: str | None = None, *, cascade: bool = False, encoder: Encoder | None = None,
    actor: str | None = None, dry_run: bool = False,
) -> Undone:  # fmt: skip
    """Takes back the batch of an id, all batches of a command's run, or without one the last run that stands.

    A batch that later ones were built on is refused, or with `cascade` these are taken back too. An undo is
    a batch itself and can be taken back. Raises `UndoRefused` and `ItemNotFound`.
    """
    wanted = {entry.pk for entry in _wanted(History(store.db), text)}
    while True:
        try:
            return _undo(store, wanted, cascade, encoder, actor, dry_run)
        except _Further as more:
            wanted |= more.batches


def _wanted(history: History, text: str | None) -> list[Entry]:
    found = history.last() if text is None else history.find(text)
    if not found:
        message = "there is nothing to take back" if text is None else f"there is no batch '{text}'"
        raise UndoRefused(message, "'gmem log' shows what was done")
    undone = [entry for entry in found if entry.undone_by is not None]
    if undone:
        raise UndoRefused(
            f"batch {undone[0].id} was taken back already, by {undone[0].undone_by}",
            f"'gmem undo {undone[0].undone_by}' brings it back",
        )
    return found


def _undo(
    store: Store, wanted: set[int], cascade: bool, encoder: Encoder | None, actor: str | None,
    dry_run: bool,
) -> Undone:  # fmt: skip
    def body(edits: Edits, done: Done) -> Undone:
        db = store.db
        history, undoing = History(db), Undoing(db)
        told = Undone(dry_run=dry_run)
        for number in sorted(wanted, reverse=True):
            entry = history.entry(number)
            if not undoing.can(number) and entry.command not in _WITHOUT_ITEMS:
                raise UndoRefused(
                    f"it was not kept what batch {entry.id} ('{entry.command}') changed",
                    "it was done before the store kept a history, or its history was erased",
                )
            taken = undoing.take_back(number, entry.made)
            _check(history, entry, taken, wanted, cascade=cascade)
            for kind, name in enumerate(KINDS):
                told.removed[name] += taken.removed[kind]
                told.restored[name] += taken.changed[kind]
            edits.touched.update((item.kind, item.pk) for item in taken.touched)
            told.batches.append(entry.id)
        undoing.drop_origins()
        undoing.mark(sorted(wanted, reverse=True), edits.context.writer.batch)
        edits.context.writer.dirty = True
        done.counts |= {"removed": told.removed, "restored": told.restored}
        return told

    told, done = perform(store, Act(COMMAND, _inputs(store, wanted), actor), body, encoder, dry_run=dry_run)
    told.batch = done.batch
    return told


def _inputs(store: Store, wanted: set[int]) -> list[str]:
    history = History(store.db)
    return [history.entry(number).id for number in sorted(wanted, reverse=True)]


def _check(history: History, entry: Entry, taken: Taken, wanted: set[int], *, cascade: bool) -> None:
    builders = taken.builders - wanted
    if not builders and not taken.clashes:
        return
    if builders and cascade:
        raise _Further(builders)
    told = ", ".join(_told(history, number) for number in sorted(builders)[:_MAX_TOLD])
    more = len(builders) - _MAX_TOLD
    if builders:
        raise UndoRefused(
            f"later batches were built on batch {entry.id}: {told}{f' and {more} more' if more > 0 else ''}",
            "take those back first, or all of them at once with --cascade",
        )
    what = ", ".join(taken.clashes[:_MAX_TOLD])
    raise UndoRefused(
        f"what batch {entry.id} changed is not as it left it: {what}",
        "'gmem log' shows what was done since",
    )


def _told(history: History, number: int) -> str:
    entry = history.entry(number)
    return f"{entry.id} ('{entry.command}' at {entry.at})"
