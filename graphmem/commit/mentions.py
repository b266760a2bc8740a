"""Keeping the index of mentions in step with a batch: new texts against all names, new names against all texts."""

from __future__ import annotations

from typing import Final

from graphmem.commit.context import BatchContext
from graphmem.store.mentions import Mentions, entities_in

_MANY: Final = 500
"""From so many texts on, the heads of all names are read once instead of being asked for word by word."""


def find_mentions(context: BatchContext) -> None:
    """Brings the index up to date with what the batch made and changed; no part of the batch's changes."""
    if not context.new_names and not context.new_texts:
        return
    index = Mentions(context.writer.db)
    for entity in context.renamed:
        index.drop_names(entity)
    for memory in context.rewritten:
        index.drop_memory(memory)
    filed = index.add_names(context.new_names)
    run = context.run
    if run.heads is not None:
        run.heads.update(hash(one) for one in _heads(filed))
    # Texts first: what is new on both sides is found here, and once.
    if len(context.new_texts) >= _MANY and run.heads is None:
        run.heads = index.heads()
    rows: list[tuple[int, int]] = []
    for memory, title, content in context.new_texts:
        rows += [(memory, entity) for entity in entities_in(index, title, content, run.heads)]
    index.add(rows)
    if filed and context.had_memories:
        for entity, name in filed:
            index.add([(memory, entity) for memory in index.naming(name)])


def _heads(filed: list[tuple[int, str]]) -> list[str]:
    from graphmem.mentions import head

    return [one for one in (head(name) for _, name in filed) if one is not None]
