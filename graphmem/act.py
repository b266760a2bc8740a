"""One act of a person or an agent on the store: one transaction, one batch in the log, its vectors included."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from graphmem import times
from graphmem.commit import Choices, NeedVectors, RunState
from graphmem.commit.context import BatchContext
from graphmem.commit.derive import refresh
from graphmem.commit.edits import Edits
from graphmem.commit.vectors import Vectors
from graphmem.outcome import ImportReport
from graphmem.prepare import canonical_json
from graphmem.store import Store
from graphmem.store.changes import Recorder
from graphmem.store.vectors import StoredEncoder, check_encoder
from graphmem.store.write import Writer
from graphmem.ulid import mint

if TYPE_CHECKING:
    from graphmem.embed import Encoder

_Result = TypeVar("_Result")
_ENCODE_AT_ONCE: Final = 512


class _Rehearsed(Exception):
    """A dry run has come to its end."""


@dataclass(frozen=True, slots=True)
class Act:
    """What the log says of an act: the command, what it was given, who asked."""

    command: str
    inputs: Sequence[str] = ()
    actor: str | None = None


@dataclass(slots=True)
class Done:
    """What became of an act: its batch, or none when nothing changed."""

    batch: str | None = None
    number: int | None = None
    encoded: int = 0
    counts: dict[str, Any] = field(default_factory=dict)


def perform(
    store: Store,
    act: Act,
    body: Callable[[Edits, Done], _Result],
    encoder: Encoder | None = None,
    *,
    dry_run: bool = False,
) -> tuple[_Result, Done]:
    """Does what `body` does in one transaction, and writes the batch when something changed.

    The body may run again: texts without a vector are encoded outside the transaction, then everything is
    done anew. What it puts into `counts` is kept with the batch. A dry run is rolled back at its end.
    Raises what the body raises, after a rollback, and `StoreBusy`, `StoreFull`, `EncoderMismatch`,
    `EncoderError`.
    """
    ready: dict[bytes, bytes] = {}
    encoded = 0
    while True:
        done = Done(encoded=encoded)
        try:
            with store.transaction():
                result = _attempt(store, act, body, None if dry_run else encoder, ready, done)
                if dry_run:
                    raise _Rehearsed
            return result, done
        except _Rehearsed:
            done.batch = done.number = None
            return result, done
        except NeedVectors as need:
            if encoder is None:
                raise AssertionError("vectors asked for without an encoder") from need
            encoded += len(need.texts)
            _encode(encoder, need.texts, ready)


def _attempt(
    store: Store, act: Act, body: Callable[[Edits, Done], _Result], encoder: Encoder | None,
    ready: Mapping[bytes, bytes], done: Done,
) -> _Result:  # fmt: skip
    if encoder is not None:
        held = store.encoder()
        if held is not None:
            check_encoder(held, encoder.info.name, encoder.info.digest, encoder.info.dimension)
    last = store.last_time()
    clock = times.now()
    clock = clock if clock > last else times.next_millisecond(last)
    number = store.writer().batch
    recorder = Recorder(store.db)
    try:
        writer = Writer(store.db, store.scopes, number, recorder)
        report = ImportReport(act.command)
        run = RunState(clock, [], Choices(), store.run_tables(), report, lambda _: None, {number})
        context = BatchContext(run, writer, encoder)
        edits = Edits(context)
        result = body(edits, done)
        writer.flush()
        refresh(context, edits.touched)

        def hold() -> StoredEncoder:
            info = encoder.info if encoder is not None else None
            if info is None:
                raise AssertionError("vectors asked for without an encoder")
            return store.use_encoder(info.name, info.revision, info.digest, info.dimension)

        Vectors(context, encoder, hold, ready).store()
        if writer.dirty or edits.touched:
            recorder.keep(number, 0)
            done.number = number
            done.batch = mint(clock, "batch", str(number), canonical_json([act.command, *act.inputs]))
            writer.add_batch(
                id_=done.batch, run=mint(clock, "run"), at=clock, command=act.command, importer=None,
                inputs=list(act.inputs), counts={**done.counts, "items": writer.made}, actor=act.actor,
            )  # fmt: skip
        return result
    finally:
        recorder.close()


def _encode(encoder: Encoder, texts: Mapping[bytes, str], ready: dict[bytes, bytes]) -> None:
    order = sorted(texts, key=lambda digest: len(texts[digest]))
    for start in range(0, len(order), _ENCODE_AT_ONCE):
        part = order[start : start + _ENCODE_AT_ONCE]
        vectors = encoder.encode([texts[digest] for digest in part], "document")
        ready.update(zip(part, vectors, strict=True))
