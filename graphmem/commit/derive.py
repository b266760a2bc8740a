"""Bringing the indexes in step with items that were changed by hand, whatever it was that changed them."""

from __future__ import annotations

from collections.abc import Iterable

from graphmem.commit.context import BatchContext
from graphmem.commit.mentions import find_mentions
from graphmem.store.derived import Derived
from graphmem.store.write import ENTITY, MEMORY, RELATION


def refresh(context: BatchContext, touched: Iterable[tuple[int, int]]) -> None:
    """Makes full text, names, tags and mentions of items anew and notes which texts want a vector.

    `touched` holds (kind, row number), of items that are gone too. What shows an entity's name follows it.
    """
    derived = Derived(context.writer.db)
    entities = sorted({pk for kind, pk in touched if kind == ENTITY})
    memories = {pk for kind, pk in touched if kind == MEMORY}
    relations = {pk for kind, pk in touched if kind == RELATION}
    for pk in entities:
        now = derived.refresh(ENTITY, pk)
        if now is None:
            continue
        if now.names:
            context.renamed.append(pk)
            context.name(pk, *now.names)
        if now.renamed:
            memories.update(derived.memories_about(pk))
            relations.update(derived.relations_of(pk))
        _want(context, derived, ENTITY, pk, now.said)
    for kind, pks in ((MEMORY, memories), (RELATION, relations)):
        for pk in sorted(pks):
            now = derived.refresh(kind, pk)
            if now is None:
                continue
            if now.text is not None:
                context.rewritten.append(pk)
                context.text(pk, *now.text)
            _want(context, derived, kind, pk, now.said)
    find_mentions(context)


def _want(context: BatchContext, derived: Derived, kind: int, pk: int, said: str) -> None:
    if not derived.has_vectors_of(kind, pk, said):
        context.want_vector(kind, pk, said, new=False)
