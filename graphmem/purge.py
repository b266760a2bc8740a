"""Erasing for good: text that must not stay, such as a secret that was imported by mistake.

Unlike forgetting this cannot be taken back. What is erased is gone from the rows, their history, what
batches changed, the indexes, the vectors, the pages of the file and its log; the file is searched for it
afterwards. Backups, exports and the files that it came from are not touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from graphmem import times
from graphmem.edit.targets import Scopes, find_item
from graphmem.errors import StoreNotFound
from graphmem.prepare import canonical_json
from graphmem.records import KINDS
from graphmem.store import Store, is_there
from graphmem.store.purge import Eraser, Erasure, alone, found_in, rewrite
from graphmem.ulid import mint

COMMAND: Final = "purge"
_LISTED: Final = 20


@dataclass(slots=True)
class Purged:
    """What was erased, by kind, and what is left to be said.

    `unlinked` counts memories that stay and were linked to an erased entity; `not_undoable` are batches
    that cannot be taken back any more. `also_in` lists other items that hold one of the erased texts
    (`also` counts them), `left` files of the store in which a piece of one was found.
    """

    named: list[dict[str, Any]] = field(default_factory=list)
    erased: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    unlinked: int = 0
    not_undoable: list[str] = field(default_factory=list)
    also_in: list[dict[str, str]] = field(default_factory=list)
    also: int = 0
    left: list[str] = field(default_factory=list)
    batch: str | None = None
    dry_run: bool = False

    @property
    def complete(self) -> bool:
        """Whether nothing of it was found afterwards, in the file or in another item."""
        return not self.left and not self.also

    def as_dict(self) -> dict[str, Any]:
        """The outcome as it stands in JSON."""
        return {
            "purged": self.named, "erased": self.erased, "unlinked_memories": self.unlinked,
            "not_undoable": self.not_undoable, "also_in": self.also_in, "also": self.also,
            "left_in_files": self.left, "batch": self.batch, "dry_run": self.dry_run,
        }  # fmt: skip


def purge(
    path: Path, texts: Sequence[str], scopes: Scopes, *, kind: str | None = None, only: int | None = None,
    actor: str | None = None, dry_run: bool = False,
) -> Purged:  # fmt: skip
    """Erases the items of ids, or the entities of names, from the store at a path.

    With an entity go its relations and the memories that are about nothing else. All is done or nothing.
    A dry run says what would go. Raises the errors of `find_item`, `StoreNotFound`, `StoreFull`, and
    `StoreBusy` while another program has the store open.
    """
    if not is_there(path):
        raise StoreNotFound(f"there is no store at {path}", "import something, or name it with --db")
    told = Purged(dry_run=dry_run)
    erasure = Erasure()
    with Store(path, write=not dry_run) as store, store.errors():
        with nullcontext() if dry_run else alone(store.db, store.path):
            eraser = Eraser(store.db)
            for text in texts:
                target = find_item(store, text, scopes, kind=kind, only=only)
                told.named.append({"type": target.type, "id": target.id})
                eraser.add(erasure, target.kind, target.pk)
            found = eraser.also_in(erasure)
            if not dry_run:
                with store.transaction():
                    eraser.erase(erasure)
                    told.batch = _log(store, told.named, erasure, actor)
                rewrite(store.db)
        told.also = len(found)
        told.also_in = [{"type": KINDS[number], "id": id_} for number, id_ in found[:_LISTED]]
    told.erased = {name: len(pks) for name, pks in zip(KINDS, erasure.items, strict=True)}
    told.unlinked, told.not_undoable = erasure.unlinked, erasure.batches
    if not dry_run:
        with Store(path) as store, store.errors():
            told.left = found_in(path, erasure.texts, store.db)
    return told


def _log(store: Store, named: Sequence[dict[str, Any]], erasure: Erasure, actor: str | None) -> str:
    """The row of the log: ids of what was named, unless they hold what is erased."""
    clock, last = times.now(), store.last_time()
    clock = clock if clock > last else times.next_millisecond(last)
    writer = store.writer()
    ids = [one["id"] for one in named if not any(text in one["id"] for text in erasure.texts)]
    batch = mint(clock, "batch", str(writer.batch), canonical_json([COMMAND]))
    writer.add_batch(
        id_=batch, run=mint(clock, "run"), at=clock, command=COMMAND, importer=None, inputs=ids,
        counts={"erased": {
            name: len(pks) for name, pks in zip(KINDS, erasure.items, strict=True) if pks
        }, "history": "lost"}, actor=actor,
    )  # fmt: skip
    return batch
