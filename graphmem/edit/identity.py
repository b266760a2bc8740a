"""Names of entities: renaming, aliases, and uniting two entities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from graphmem.act import Act, Done, perform
from graphmem.commit.edits import Edits
from graphmem.edit.targets import Scopes, find_item
from graphmem.edit.update import Update, Updated, update
from graphmem.store import Store
from graphmem.store.write import ENTITY

if TYPE_CHECKING:
    from graphmem.embed import Encoder


def rename(
    store: Store, text: str, name: str, scopes: Scopes, *, kind: str | None = None,
    encoder: Encoder | None = None, actor: str | None = None,
) -> Updated:  # fmt: skip
    """Gives an entity another name; the old one leads to it from now on, in imports too."""
    return update(store, text, Update(set={"name": name}), scopes, kind=kind, encoder=encoder, actor=actor)


def alias(
    store: Store, text: str, add: Sequence[str], remove: Sequence[str], scopes: Scopes, *,
    kind: str | None = None, encoder: Encoder | None = None, actor: str | None = None,
) -> Updated:  # fmt: skip
    """Gives an entity further names, or takes some away."""
    wanted = Update(
        add={"aliases": list(add)} if add else {}, remove={"aliases": list(remove)} if remove else {}
    )
    return update(store, text, wanted, scopes, kind=kind, encoder=encoder, actor=actor)


def merge(
    store: Store, old: str, new: str, scopes: Scopes, *, kind: str | None = None, into_kind: str | None = None,
    encoder: Encoder | None = None, actor: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Unites the first entity with the second, which stays, as one batch.

    The name, former names and ids of the first lead to the second. Memories and relations move; those that
    become equal are united, relations between the two are dropped. Both descriptions stay; of properties
    with two values the second entity's stands, the first's is under `merged`. Raises `EditRefused` and the
    errors of `find_item`.
    """

    def body(edits: Edits, done: Done) -> dict[str, Any]:
        one = find_item(store, old, scopes, kind=kind, only=ENTITY)
        other = find_item(store, new, scopes, kind=into_kind, only=ENTITY)
        counts = asdict(edits.merge(one.pk, other.pk))
        done.counts |= {"merged": counts}
        return {"id": other.id, "merged": one.id, **counts}

    result, done = perform(store, Act("merge", [old, new], actor), body, encoder)
    return result | {"batch": done.batch}
