"""Moving items from one scope to another, inside the transaction of an act."""

from __future__ import annotations

from typing import Any, NamedTuple

from graphmem.commit.edits import Edits
from graphmem.commit.merge import Merger, Said
from graphmem.prepare import canonical_json
from graphmem.store.write import ENTITY, MEMORY, RELATION


class Moved(NamedTuple):
    """How many items of a kind were moved, and how many united with one that was there."""

    moved: int
    united: int


def move_scope(edits: Edits, old: str, new: str) -> tuple[Moved, Moved, Moved]:
    """Moves all entities, memories and relations of a scope to another; how many, by kind.

    Entities that the new scope has too are merged into those. Former names move along.
    """
    scopes, editor = edits.context.writer.scopes, edits.editor
    from_, into = scopes.pk(old), scopes.pk(new)
    entities, memories, relations = editor.items_in(from_)
    united = [_move_entity(edits, pk, into) for pk in entities]
    edits.touched.update((ENTITY, pk) for pk in editor.redirected(from_))
    editor.move_redirects(from_, into)
    # Merging may have united some of these with others.
    more = [_move_relation(edits, pk, into) for pk in relations if editor.is_there(RELATION, pk)]
    most = [_move_memory(edits, pk, old, new) for pk in memories if editor.is_there(MEMORY, pk)]
    entity, memory, relation = (Moved(len(one) - sum(one), sum(one)) for one in (united, most, more))
    return entity, memory, relation


def _move_entity(edits: Edits, pk: int, scope: int) -> bool:
    """Whether the entity was merged into one of its name and kind in the new scope."""
    editor = edits.editor
    row = edits.row(ENTITY, pk)
    there = editor.same_entity(scope, row["name"], row["kind_key"])
    if there is not None:
        edits.merge(pk, there, scopes=False)
        return True
    gone = editor.drop_redirect(scope, row["name"], row["kind_key"])
    if gone is not None:
        edits.touched.add((ENTITY, gone))
    edits.keep(ENTITY, pk)
    editor.put(ENTITY, row | {"scope": scope})
    return False


def _move_relation(edits: Edits, pk: int, scope: int) -> bool:
    """Whether the relation was united with an equal one."""
    moved = edits.row(RELATION, pk) | {"scope": scope}
    twin = edits.editor.twin(moved)
    if twin is not None:
        edits.unite(RELATION, pk, twin)
        return True
    edits.keep(RELATION, pk)
    edits.editor.put(RELATION, moved)
    return False


def _move_memory(edits: Edits, pk: int, old: str, new: str) -> bool:
    """Whether the memory was united with an equal one."""
    row = edits.row(MEMORY, pk)
    for one in Merger(edits.context).held(MEMORY, row):
        if one.written and one.digest:
            said = canonical_json(_in_scope(one.said, old, new))
            edits.editor.rewrite_said(MEMORY, pk, one.digest, said)
    edits.keep(MEMORY, pk)
    row["scopes"] = _moved(row["scopes"], old, new)
    edits.write(MEMORY, row)
    twin = edits.editor.memories_of_key(row["key"], pk)
    if twin is None or edits.row(MEMORY, twin)["state"] != row["state"]:
        return False
    edits.unite(MEMORY, pk, twin)
    return True


def _moved(names: list[str], old: str, new: str) -> list[str]:
    return sorted({new if name == old else name for name in names})


def _in_scope(said: Said, old: str, new: str) -> Said:
    """What was said about a memory, with the scope by its new name."""
    changed: dict[str, Any] = dict(said)
    if "scopes" in said:
        changed["scopes"] = _moved(said["scopes"], old, new)
    without = said.get("without") or {}
    if "scopes" in without:
        # That it was taken out of the new scope before does not hold for what comes from the old one.
        gone = [name for name in without["scopes"] if name != new]
        changed["without"] = without | {"scopes": _moved(gone, old, new)}
    return changed
