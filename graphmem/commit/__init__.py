"""One batch inside its transaction.

The lines of `commit_batch` are the table of contents. Everything is looked up under the write lock, so
nothing is planned on a store that has moved on. Encoding happens outside it: texts without a vector
raise `NeedVectors`, the caller rolls back, encodes, and commits the batch again with the vectors ready.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from graphmem.commit.context import BASE_ORIGIN, BatchContext, Choices, Input, RunState, natural_key
from graphmem.commit.derive import refresh
from graphmem.commit.entities import Entities
from graphmem.commit.known import Known
from graphmem.commit.memories import Memories
from graphmem.commit.mentions import find_mentions
from graphmem.commit.merge import Merger
from graphmem.commit.references import References
from graphmem.commit.relations import Relations
from graphmem.commit.vectors import NeedVectors, Vectors
from graphmem.records import EntityRecord, MemoryRecord, Record, RelationRecord
from graphmem.store.vectors import StoredEncoder
from graphmem.store.write import Writer

if TYPE_CHECKING:
    from graphmem.embed import Encoder

__all__ = [
    "BASE_ORIGIN",
    "Choices",
    "Input",
    "NeedVectors",
    "RunState",
    "commit_batch",
    "natural_key",
]


def commit_batch(
    run: RunState,
    writer: Writer,
    records: list[Record],
    encoder: Encoder | None,
    hold: Callable[[], StoredEncoder],
    ready: Mapping[bytes, bytes],
    *,
    before: Callable[[BatchContext], None] | None = None,
    after: Callable[[BatchContext], Iterable[tuple[int, int]]] | None = None,
) -> None:
    """Stores a batch's records, with their vectors when there is an encoder.

    `hold` gives the store's encoder and sets it at need; `ready` are the vectors encoded so far, by digest
    of their text. `before` and `after` are steps of a sync; the latter gives the items (kind, row number)
    that it changed. The caller owns the transaction. Raises `NeedVectors`.
    """
    context = BatchContext(run, writer, encoder)
    if before is not None:
        before(context)
    references = References(context)
    merger = Merger(context)
    fresh = Known(context).recognise(records)
    Entities(context, references, merger).store([one for one in fresh if type(one) is EntityRecord])
    # Stubs are left out: those that a run makes do not count, and so those that it declares must.
    run.tables.pending -= sum(type(one) is EntityRecord and not one.stub for one in records)
    Memories(context, references, merger).store([one for one in fresh if type(one) is MemoryRecord])
    Relations(context, references, merger).store([one for one in fresh if type(one) is RelationRecord])
    writer.flush()
    if after is None:
        find_mentions(context)
    else:
        refresh(context, set(after(context)))
    Vectors(context, encoder, hold, ready).store()
    context.close()
