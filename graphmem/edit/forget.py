"""Forgetting: items are archived, so that nothing finds them any more and the act can be taken back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graphmem.act import Act, Done, perform
from graphmem.commit.edits import Edits
from graphmem.edit.targets import Scopes, find_item
from graphmem.records import KINDS
from graphmem.store import Store
from graphmem.store.write import ENTITY, MEMORY, RELATION

if TYPE_CHECKING:
    from graphmem.embed import Encoder


@dataclass(slots=True)
class Forgotten:
    """What was archived, by kind: what was named, and what goes with an entity.

    `kept` counts memories that are about another entity too, and stay.
    """

    named: list[dict[str, Any]] = field(default_factory=list)
    archived: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    kept: int = 0
    batch: str | None = None
    dry_run: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The outcome as it stands in JSON."""
        return {
            "forgotten": self.named, "archived": self.archived, "kept_memories": self.kept,
            "batch": self.batch, "dry_run": self.dry_run,
        }  # fmt: skip


def forget(
    store: Store, texts: Sequence[str], scopes: Scopes, *, kind: str | None = None, only: int | None = None,
    actor: str | None = None, encoder: Encoder | None = None, dry_run: bool = False,
) -> Forgotten:  # fmt: skip
    """Archives the items of ids, or the entities of names, as one batch.

    With an entity go its relations and the memories that are about it and about nothing else that is
    active. What was archived before stays so. All is done or nothing: raises the errors of `find_item`.
    """

    def body(edits: Edits, done: Done) -> Forgotten:
        told = Forgotten(dry_run=dry_run)
        for text in texts:
            target = find_item(store, text, scopes, kind=kind, only=only)
            told.named.append(
                {"type": target.type, "id": target.id, "status": "archived"}
                if _archive(edits, told, target.kind, target.pk)
                else {"type": target.type, "id": target.id, "status": "unchanged"}
            )
            if target.kind == ENTITY:
                _with_entity(edits, told, target.pk, scopes)
        done.counts["archived"] = {name: count for name, count in told.archived.items() if count}
        return told

    told, done = perform(store, Act("forget", list(texts), actor), body, encoder, dry_run=dry_run)
    told.batch = done.batch
    return told


def _archive(edits: Edits, told: Forgotten, number: int, pk: int) -> bool:
    done = edits.set_state(number, pk, "archived")
    told.archived[KINDS[number]] += done
    return done


def _with_entity(edits: Edits, told: Forgotten, pk: int, scopes: Scopes) -> None:
    """What goes with an entity: only what lies in the scopes that may be touched, and in no other."""
    editor = edits.editor

    def ours(number: int, item: int) -> bool:
        return scopes is None or all(scope in scopes for scope in editor.seen(number, item).scopes)

    only = [memory for memory in editor.memories_only_about(pk) if ours(MEMORY, memory)]
    seen = [
        memory for memory in editor.memories_about(pk)
        if scopes is None or any(scope in scopes for scope in editor.seen(MEMORY, memory).scopes)
    ]  # fmt: skip
    told.kept += len(set(seen) - set(only))
    for memory in only:
        _archive(edits, told, MEMORY, memory)
    for relation in editor.relations_of(pk, active=True):
        if ours(RELATION, relation):
            _archive(edits, told, RELATION, relation)


def replace_memories(
    store: Store, text: str, keep: Sequence[str], contents: Sequence[str], scope: str, scopes: Scopes, *,
    kind: str | None = None, actor: str | None = None, encoder: Encoder | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Makes the memories about an entity those of `keep` (ids) and new ones of `contents`, as one batch.

    The others are archived. Raises `UsageError` for an id that is no memory about the entity.
    """
    from graphmem.errors import UsageError

    def body(edits: Edits, done: Done) -> dict[str, Any]:
        target = find_item(store, text, scopes, kind=kind, only=ENTITY)
        held = edits.editor.memories_about(target.pk)
        kept = {find_item(store, one, scopes, only=MEMORY).pk for one in keep}
        strange = kept - set(held)
        if strange:
            ids = ", ".join(edits.editor.id(MEMORY, pk) for pk in sorted(strange))
            raise UsageError(
                f"not a memory about that entity: {ids}", "'gmem show' lists an entity's memories"
            )
        told = Forgotten()
        for pk in held:
            if pk not in kept:
                _archive(edits, told, MEMORY, pk)
        made = edits.add_memories(
            [{"content": one, "about": [{"id": target.id}], "scopes": [scope]} for one in contents]
        )
        done.counts |= {"archived": told.archived["memory"], "created": len(made)}
        return {
            "entity": target.id, "before": len(held), "kept": len(kept), "archived": told.archived["memory"],
            "added": made, "after": len(edits.editor.memories_about(target.pk)),
        }  # fmt: skip

    result, done = perform(store, Act("update", [text], actor), body, encoder)
    return result | {"batch": done.batch}
