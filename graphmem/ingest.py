"""The straight line of an import: parse, validate, resolve, embed, commit, report.

The inputs are read once. What they declare is noted in the run's tables, their records wait in batches
(on disk, but for the newest); then each batch is committed in one transaction.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from graphmem import times
from graphmem.commit import NeedVectors, RunState, commit_batch
from graphmem.commit.context import BatchContext
from graphmem.commit.withdraw import Matching, Withdrawal, apply_renames
from graphmem.errors import Interrupted
from graphmem.findings import finding
from graphmem.formats import Rejected
from graphmem.gather import Gathering
from graphmem.options import ImportOptions
from graphmem.outcome import ImportReport, InputSummary
from graphmem.prepare import canonical_json
from graphmem.records import KINDS, Record
from graphmem.rejects import Rejects
from graphmem.store import Store
from graphmem.store.changes import Recorder, drop_changes
from graphmem.store.vectors import StoredEncoder, check_encoder
from graphmem.store.write import Writer
from graphmem.ulid import mint

if TYPE_CHECKING:
    from graphmem.embed import Encoder

_ENCODE_AT_ONCE: Final = 512

Progress = Callable[[str, int, int | None], None]
"""Told the stage ("read", "encode", "store"), how much of it is done, and of how much if that is known."""


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Keeps the cycle collector from walking the records of a batch again and again: they have no cycles."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class _Abandoned(Exception):
    """The transaction is rolled back on purpose: there was an error under --strict."""


class _Import:
    """One run over one store."""

    def __init__(
        self, opening: Callable[[], Store], options: ImportOptions, encoder: Encoder | None,
        report: ImportReport, progress: Progress | None, rejects: Rejects,
    ) -> None:  # fmt: skip
        self._opening = opening
        self._options = options
        self._encoder = encoder
        self._report = report
        self._progress = progress
        self._rejects = rejects
        self._gathering = Gathering(options, lambda: self._run.tables, report, progress, rejects.keep)
        self._ready: dict[bytes, bytes] = {}
        self._gave_up = False
        self._moved = False
        """Whether origins of renamed files have their new addresses."""

    @cached_property
    def _store(self) -> Store:
        """The store, opened when the first records are ready for it."""
        return self._opening()

    @cached_property
    def _clock(self) -> str:
        clock = self._options.clock or times.now()
        last = self._store.last_time()
        return clock if clock > last else times.next_millisecond(last)

    @cached_property
    def _run(self) -> RunState:
        choices = self._options.choices
        tables = self._store.run_tables()
        if choices.on_ambiguous == "newest":
            tables.judge(self._clock, overwrite=choices.on_conflict == "overwrite")
        return RunState(
            self._clock, self._gathering.inputs, choices, tables, self._report, self._reject,
            mentions=self._options.mentions,
        )  # fmt: skip

    def _reject(self, record: Record | Rejected) -> None:
        if not isinstance(record, Rejected):
            self._gathering.inputs[record.input].broken = True
        self._rejects.keep(record)

    def run(self) -> None:
        """Reads everything, then commits batch by batch."""
        try:
            with _collector_at_rest(), self._errors():
                self._go()
        except KeyboardInterrupt:
            self._report.interrupted = True
            self._close()
            raise Interrupted(
                f"interrupted; {self._report.batches_told()}",
                "run the same command again to store the rest",
            ) from None
        finally:
            self._gathering.spool.close()
        self._close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turns what SQLite raises into errors that name the store, once that is open."""
        try:
            yield
        except Exception as error:
            if "_store" not in self.__dict__:
                raise
            with self._store.errors():
                raise error

    def _go(self) -> None:
        self._gathering.read()
        self._gave_up = self._gathering.gave_up or (self._options.strict and self._report.findings.errors > 0)
        if not self._gave_up and (self._gathering.records or self._options.follow is not None):
            self._prepare()
            self._commit()

    def _commit(self) -> None:
        spool = self._gathering.spool
        if self._options.atomic or self._options.strict or not len(spool):
            self._unit(lambda: spool.batches(), last=True)
            return
        for number, batch in enumerate(spool.batches(), start=1):
            self._unit(lambda batch=batch: [batch], last=number == len(spool))  # type: ignore[misc]
            if self._gave_up:
                break

    def _prepare(self) -> None:
        self._run.prepare()
        if self._encoder is not None:
            held = self._store.encoder()
            if held is not None:
                info = self._encoder.info
                check_encoder(held, info.name, info.digest, info.dimension)

    # ---- one transaction --------------------------------------------------------------------------

    def _unit(self, chunks: Callable[[], Any], *, last: bool) -> None:
        """One batch in one transaction, done again with vectors when some were missing."""
        self._ready.clear()
        while True:
            before = self._state()
            held = set(self._run.batches)
            try:
                with self._store.transaction():
                    self._transact(chunks, last=last)
                break
            except NeedVectors as need:
                self._restore(before)
                self._encode(need.texts)
            except _Abandoned:
                self._abandon(before)
                break
            except KeyboardInterrupt:
                # It may come when the transaction is through: then the batch stands and counts.
                if not any(self._store.has_batch(number) for number in self._run.batches - held):
                    self._restore(before)
                raise
            except BaseException:
                self._restore(before)
                raise
        self._run.later = True
        self._moved = True

    def _transact(self, chunks: Callable[[], Any], *, last: bool) -> None:
        store, run = self._store, self._run
        number = store.writer().batch
        run.batches.add(number)
        if not run.tables.first_batch:
            run.tables.first_batch = number
            run.had_memories = store.has_memories()
        choices = self._options.choices
        run.tables.settle(fold_case=choices.fold_case, stubs=choices.dangling == "stub")
        missing: dict[bytes, str] = {}
        counts = deepcopy(self._report.counts)
        records = 0
        dirty = False
        items = [0, 0, 0]
        labels: list[str] = []
        following = self._options.follow is not None
        for at, (chunk, ends) in enumerate(_with_last(chunks(), empty=following)):
            run.later = run.later or at > 0
            records += len(chunk)
            with self._recorded(number, at) as recorder:
                writer = Writer(store.db, store.scopes, number, recorder)
                if not at and not self._moved:
                    apply_renames(writer, self._renamed.items())
                labels += [label for label in self._keep_origins(writer, chunk) if label not in labels]
                try:
                    commit_batch(
                        run, writer, chunk, self._encoder, self._hold, self._ready,
                        before=self._matching(chunk) if following else None,
                        after=self._withdraw if following and last and ends else None,
                    )  # fmt: skip
                except NeedVectors as need:
                    missing |= need.texts
            dirty = dirty or writer.dirty
            items = [one + more for one, more in zip(items, writer.made, strict=True)]
            self._tell("store", records, self._gathering.records)
        if self._has_too_many_errors():
            raise _Abandoned
        if missing:
            raise NeedVectors(missing)
        if dirty:
            self._write_batch(writer, counts, records, items, labels)
        elif self._options.history:
            drop_changes(store.db, number)

    # ---- steps of a sync --------------------------------------------------------------------------

    def _matching(self, chunk: Sequence[Record]) -> Callable[[BatchContext], None]:
        """Finds what edited files turned memories into, before the records of a chunk are stored."""
        whole: dict[int, list[Record]] = {}
        for record in chunk:
            whole.setdefault(record.input, []).append(record)

        def match(context: BatchContext) -> None:
            matching = Matching(context)
            for number, records in sorted(whole.items()):
                source = self._gathering.inputs[number]
                if len(records) == source.records:
                    matching.match(number, source, records, renamed=source.uri in self._renamed)

        return match

    @cached_property
    def _renamed(self) -> Mapping[str, int]:
        follow = self._options.follow
        return {} if follow is None else follow.renamed

    def _withdraw(self, context: BatchContext) -> set[tuple[int, int]]:
        """Withdraws what files no longer say, after all records were stored."""
        follow = self._options.follow
        if follow is None:
            return set()
        withdrawal = Withdrawal(context)
        for number, source in enumerate(self._gathering.inputs):
            if not source.origin or source.transport:
                continue
            if not source.broken:
                withdrawal.gone(source.origin, number)
            elif count := len(self._run.tables.said_no_more(source.origin, number)):
                message = (
                    f"{count:,} of what it said before {'is' if count == 1 else 'are'} not in it now; kept"
                )
                self._report.findings.add(finding("kept-while-broken", message, file=source.label))
        for origin in follow.removed:
            withdrawal.gone(origin, None)
        told = withdrawal.settle(follow.allowed)
        self._report.archived, self._report.withdrawn = told.archived, told.changed
        return withdrawal.touched

    @contextmanager
    def _recorded(self, batch: int, segment: int) -> Iterator[Recorder | None]:
        """Keeps what changes meanwhile as a segment of the batch."""
        if not self._options.history:
            yield None
            return
        recorder = Recorder(self._store.db)
        try:
            yield recorder
            recorder.keep(batch, segment)
        finally:
            recorder.close()

    def _has_too_many_errors(self) -> bool:
        errors, most = self._report.findings.errors, self._options.max_errors
        return (self._options.strict and errors > 0) or (most is not None and errors > most)

    def _abandon(self, before: tuple[Any, ...]) -> None:
        """After a batch was rolled back on purpose: its findings stay, what it counted as stored does not."""
        counts = self._report.counts
        for kind, old in before[0].items():
            counts[kind].created, counts[kind].merged = old.created, old.merged
        self._run.batches = set(before[5])
        if not self._run.batches:
            self._run.tables.first_batch = 0
        self._run.tables.unsettle()
        self._gave_up = True

    def _hold(self) -> StoredEncoder:
        """The store's encoder, set to ours when this is the first batch with vectors."""
        if self._encoder is None:
            raise AssertionError("vectors asked for without an encoder")
        info = self._encoder.info
        return self._store.use_encoder(info.name, info.revision, info.digest, info.dimension)

    def _keep_origins(self, writer: Writer, chunk: Sequence[Record]) -> list[str]:
        """Gives the inputs of a chunk their numbers in the store; their labels."""
        labels: list[str] = []
        for number in sorted({record.input for record in chunk}):
            source = self._gathering.inputs[number]
            labels.append(source.label)
            source.origin = writer.origin(source.origin_uri) or 0
            if source.origin and not source.transport:
                source.reread = source.reread or writer.origin_digest(source.uri) != source.digest
                writer.keep_origin(source.uri, source.format, source.digest, self._clock)
        return labels

    def _write_batch(
        self, writer: Writer, before: Mapping[str, Any], records: int, items: list[int], labels: list[str]
    ) -> None:
        made = {
            kind: self._report.counts[kind].created - before[kind].created
            for kind in KINDS
            if self._report.counts[kind].created > before[kind].created
        }
        formats = sorted({one.format for one in self._gathering.inputs if one.format and one.label in labels})
        id_ = mint(self._clock, "batch", str(writer.batch), canonical_json(labels))
        writer.add_batch(
            id_=id_, run=mint(self._clock, "run"), at=self._clock, command=self._options.command,
            importer=",".join(formats) or None, inputs=labels,
            counts={"records": records, "created": made, "items": items},
            actor=self._options.actor,
        )  # fmt: skip
        self._report.batches.append(
            {"batch": writer.batch, "id": id_, "records": records, "created": made, "inputs": labels}
        )

    # ---- doing a batch again ----------------------------------------------------------------------

    def _state(self) -> tuple[Any, ...]:
        report = self._report
        return (
            deepcopy(report.counts), report.kept_archived, report.findings.mark(), len(report.batches),
            set(self._run.near_noted), set(self._run.batches), self._run.later, self._run.tables.pending,
            self._rejects.mark(),
        )  # fmt: skip

    def _restore(self, state: tuple[Any, ...]) -> None:
        report = self._report
        report.counts, report.kept_archived, mark, batches, near, held, self._run.later, pending, kept = state
        self._run.tables.pending = pending
        report.findings.rewind(mark)
        self._rejects.rewind(kept)
        del report.batches[batches:]
        self._run.near_noted, self._run.batches = set(near), set(held)
        if not held:
            self._run.tables.first_batch = 0
        self._run.tables.unsettle()

    def _encode(self, texts: Mapping[bytes, str]) -> None:
        """Encodes texts outside any transaction."""
        if self._encoder is None:
            raise AssertionError("vectors asked for without an encoder")
        digests = list(texts)
        done = 0
        order = sorted(digests, key=lambda digest: len(texts[digest]))
        for start in range(0, len(order), _ENCODE_AT_ONCE):
            part = order[start : start + _ENCODE_AT_ONCE]
            vectors = self._encoder.encode([texts[digest] for digest in part], "document")
            self._ready.update(zip(part, vectors, strict=True))
            done += len(part)
            self._report.encoded += len(part)
            self._tell("encode", done, len(digests))

    # ---- the end ----------------------------------------------------------------------------------

    def _close(self) -> None:
        """Brings the counts of items that stood before the run into the report."""
        report = self._report
        if "_run" in self.__dict__:
            with self._store.errors():
                self._count_old()
        report.committed = bool(report.batches)
        report.inputs = [
            InputSummary(one.label, one.uri, one.format, one.digest, one.records, one.transport, one.broken)
            for one in self._gathering.inputs
        ]
        for counts in report.counts.values():  # of batches that were not stored
            counts.skipped += counts.read - counts.stored - counts.skipped - counts.rejected

    def _count_old(self) -> None:
        report, run = self._report, self._run
        if len(run.batches) > 1:
            run.tables.untouch(self._store.writer().came_back(run.tables.first_batch))
        for kind, changed, to_changed, to_unchanged in run.tables.touched():
            counts = report.counts[KINDS[kind]]
            counts.updated += changed
            counts.merged += to_changed - changed
            counts.unchanged += to_unchanged
        first = run.tables.first_batch
        report.stubs = self._store.count_stubs(first) if first and report.batches else 0
        for one in self._gathering.inputs:
            told = one.reread and not self._gave_up and self._options.follow is None
            gone = run.tables.unseen(one.origin) if told else 0
            if gone:
                report.no_longer_in_source += gone
                message = (
                    f"{gone:,} of what this source said before {'is' if gone == 1 else 'are'} not in it now"
                )
                report.findings.add(finding("not-in-source", message, file=one.label))

    def _tell(self, stage: str, done: int, of: int | None) -> None:
        if self._progress is not None:
            self._progress(stage, done, of)


def _with_last(chunks: Any, *, empty: bool) -> Iterator[tuple[list[Record], bool]]:
    """Chunks with whether each is the last; where there is none, an empty one if that is wanted."""
    held: list[Record] | None = [] if empty else None
    first = True
    for chunk in chunks:
        if not first and held is not None:
            yield held, False
        held, first = chunk, False
    if held is not None:
        yield held, True


def run(
    store: Store | Callable[[], Store],
    options: ImportOptions,
    encoder: Encoder | None = None,
    *,
    progress: Progress | None = None,
    rejects: Rejects | None = None,
    report: ImportReport | None = None,
) -> ImportReport:
    """Imports `options.paths` into an open store and says what became of every record.

    In place of the store there may be a function that opens it, which is called when there is something to
    be stored. Without an encoder the items are stored without vectors. `rejects` keeps the records that
    were rejected. A `report` that is given is filled also where something is raised. Raises
    `InputUnreadable`, `UsageError`, `EncoderMismatch`, `EncoderError`, `StoreBusy`, `StoreFull` and
    `Interrupted`; whatever is raised, only whole batches are stored.
    """
    began = time.monotonic()
    report = report if report is not None else ImportReport(options.command)
    opening = (lambda: store) if isinstance(store, Store) else store
    with nullcontext(rejects) if rejects is not None else Rejects() as kept:
        try:
            _Import(opening, options, encoder, report, progress, kept).run()
        finally:
            report.seconds = time.monotonic() - began
    return report


def rehearse(
    path: str | Path, options: ImportOptions, *, progress: Progress | None = None,
    rejects: Rejects | None = None, report: ImportReport | None = None,
) -> ImportReport:  # fmt: skip
    """What `run` would do to the store at `path`, done on a copy that is thrown away; nothing is encoded."""
    with Store.snapshot(path) as copy:
        options = replace(options, history=False)
        report = run(copy, options, None, progress=progress, rejects=rejects, report=report)
    report.dry_run = True
    report.committed = False
    return report
