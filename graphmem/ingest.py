"""The straight line of an import: parse, validate, resolve, embed, commit, report.

The inputs are read once. What they declare is noted in the run's tables, their records wait in batches
(on disk, but for the newest); then each batch is committed in one transaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

from graphmem import times
from graphmem.commit import BASE_ORIGIN, Choices, Input, NeedVectors, RunState, commit_batch
from graphmem.embed import Encoder
from graphmem.errors import Interrupted
from graphmem.formats import Rejected
from graphmem.gather import Gathering
from graphmem.outcome import ImportReport, InputSummary
from graphmem.prepare import canonical_json
from graphmem.records import GLOBAL_SCOPE, KINDS, Record
from graphmem.store import Store
from graphmem.store.vectors import StoredEncoder, check_encoder
from graphmem.store.write import Writer
from graphmem.ulid import mint

DEFAULT_BATCH_SIZE: Final = 10_000
_ENCODE_AT_ONCE: Final = 512

Progress = Callable[[str, int, int | None], None]
"""Told the stage ("read", "encode", "store"), how much of it is done, and of how much if that is known."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What the caller asks of an import."""

    paths: Sequence[str]
    format: str | None = None
    encoding: str | None = None
    scope: str = GLOBAL_SCOPE
    map_scope: Mapping[str, str] = field(default_factory=dict)
    choices: Choices = field(default_factory=Choices)
    strict: bool = False
    atomic: bool = False
    batch_size: int = DEFAULT_BATCH_SIZE
    max_errors: int | None = None
    command: str = "import"
    clock: str | None = None


class _Abandoned(Exception):
    """The transaction is rolled back on purpose: there was an error under --strict."""


class _Import:
    """One run over one store."""

    def __init__(
        self, store: Store, options: ImportOptions, encoder: Encoder | None, report: ImportReport,
        progress: Progress | None, keep_reject: Callable[[Record | Rejected], None],
    ) -> None:  # fmt: skip
        self._store = store
        self._options = options
        self._encoder = encoder
        self._report = report
        self._progress = progress
        clock = options.clock or times.now()
        last = store.last_time()
        self._clock = clock if clock > last else times.next_millisecond(last)
        tables = store.run_tables()
        self._gathering = Gathering(options, tables, report, progress, keep_reject)
        self._run = RunState(
            self._clock, self._gathering.inputs, options.choices, tables, report, keep_reject
        )
        self._ready: dict[bytes, bytes] = {}

    def run(self) -> None:
        """Reads everything, then commits batch by batch."""
        try:
            self._gathering.read()
            if self._gathering.gave_up or (self._options.strict and self._report.findings.errors):
                self._count_unstored()
                return
            self._prepare()
            spool = self._gathering.spool
            if self._options.atomic or self._options.strict:
                self._unit(lambda: spool.batches())
            else:
                for batch in spool.batches():
                    self._unit(lambda batch=batch: [batch])  # type: ignore[misc]
        except KeyboardInterrupt:
            self._report.interrupted = True
            self._close()
            whole = sum(batch["records"] for batch in self._report.batches)
            raise Interrupted(
                f"interrupted; {len(self._report.batches)} whole batches of {whole} records are stored",
                "run the same command again to store the rest",
            ) from None
        finally:
            self._gathering.spool.close()
        self._close()

    def _prepare(self) -> None:
        self._run.prepare()
        if self._encoder is not None:
            held = self._store.encoder()
            if held is not None:
                info = self._encoder.info
                check_encoder(held, info.name, info.digest, info.dimension)

    # ---- one transaction --------------------------------------------------------------------------

    def _unit(self, chunks: Callable[[], Any]) -> None:
        """One batch in one transaction, done again with vectors when some were missing."""
        self._ready.clear()
        while True:
            before = self._state()
            try:
                with self._store.transaction():
                    self._transact(chunks)
                break
            except NeedVectors as need:
                self._restore(before)
                self._encode(need.texts)
            except _Abandoned:
                self._run.tables.unsettle()
                break
            except BaseException:
                self._restore(before)
                raise
        self._run.later = True

    def _transact(self, chunks: Callable[[], Any]) -> None:
        store, run = self._store, self._run
        writer = store.writer()
        number = writer.batch
        run.batches.add(number)
        if not run.tables.first_batch:
            run.tables.first_batch = number
        run.tables.settle(fold_case=self._options.choices.fold_case)
        missing: dict[bytes, str] = {}
        counts = deepcopy(self._report.counts)
        records = 0
        dirty = False
        labels: list[str] = []
        for at, chunk in enumerate(chunks()):
            if at:
                writer = Writer(store.db, store.scopes, number)
                run.later = True
            records += len(chunk)
            labels += [label for label in self._keep_origins(writer, chunk) if label not in labels]
            try:
                commit_batch(run, writer, chunk, self._encoder, self._hold, self._ready)
            except NeedVectors as need:
                missing |= need.texts
            dirty = dirty or writer.dirty
            self._tell("store", records, self._gathering.records)
        if missing:
            raise NeedVectors(missing)
        if self._options.strict and self._report.findings.errors:
            raise _Abandoned
        if dirty:
            self._write_batch(writer, counts, records, labels)

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
            if source.transport:
                source.origin = writer.keep_origin(BASE_ORIGIN, None, None, None)
                continue
            source.reread = source.reread or self._is_other_version(writer, source)
            source.origin = writer.keep_origin(source.uri, source.format, source.digest, self._clock)
        return labels

    @staticmethod
    def _is_other_version(writer: Writer, source: Input) -> bool:
        held = writer.origin_digest(source.uri)
        return held is not None and held != source.digest

    def _write_batch(
        self, writer: Writer, before: Mapping[str, Any], records: int, labels: list[str]
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
            importer=",".join(formats) or None, inputs=labels, counts={"records": records, "created": made},
        )  # fmt: skip
        self._report.batches.append(
            {"batch": writer.batch, "id": id_, "records": records, "created": made, "inputs": labels}
        )

    # ---- doing a batch again ----------------------------------------------------------------------

    def _state(self) -> tuple[Any, ...]:
        report = self._report
        return (
            deepcopy(report.counts), report.kept_archived, report.findings.mark(), len(report.batches),
            set(self._run.near_noted), set(self._run.batches), self._run.later,
        )  # fmt: skip

    def _restore(self, state: tuple[Any, ...]) -> None:
        report = self._report
        report.counts, report.kept_archived, mark, batches, near, held, self._run.later = state
        report.findings.rewind(mark)
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
        report, run = self._report, self._run
        with self._store.errors():
            for kind, changed, to_changed, to_unchanged in run.tables.touched():
                counts = report.counts[KINDS[kind]]
                counts.updated += changed
                counts.merged += to_changed - changed
                counts.unchanged += to_unchanged
            first = run.tables.first_batch
            report.stubs = self._store.count_stubs(first) if first and report.batches else 0
            report.no_longer_in_source = sum(
                run.tables.unseen(one.origin) for one in self._gathering.inputs if one.reread
            )
        report.committed = bool(report.batches)
        report.inputs = [
            InputSummary(one.label, one.uri, one.format, one.digest, one.records, one.transport)
            for one in self._gathering.inputs
        ]
        if self._options.strict and report.findings.errors:
            self._count_unstored()

    def _count_unstored(self) -> None:
        """After a run that stores nothing: every record that was read and not rejected is skipped."""
        self._report.committed = False
        self._report.stubs = 0
        for counts in self._report.counts.values():
            counts.created = counts.updated = counts.unchanged = counts.merged = 0
            counts.skipped = counts.read - counts.rejected

    def _tell(self, stage: str, done: int, of: int | None) -> None:
        if self._progress is not None:
            self._progress(stage, done, of)


def run(
    store: Store,
    options: ImportOptions,
    encoder: Encoder | None = None,
    *,
    progress: Progress | None = None,
    keep_reject: Callable[[Record | Rejected], None] | None = None,
) -> ImportReport:
    """Imports `options.paths` into an open store and says what became of every record.

    Without an encoder the items are stored without vectors. `keep_reject` receives the records that were
    understood and not stored. Raises `InputUnreadable`, `UsageError`, `EncoderMismatch`, `EncoderError`,
    `StoreBusy`, `StoreFull` and `Interrupted`; whatever is raised, only whole batches are stored.
    """
    began = time.monotonic()
    report = ImportReport(options.command)
    _Import(store, options, encoder, report, progress, keep_reject or _drop).run()
    report.seconds = time.monotonic() - began
    return report


def rehearse(
    path: str, options: ImportOptions, *, progress: Progress | None = None,
    keep_reject: Callable[[Record | Rejected], None] | None = None,
) -> ImportReport:  # fmt: skip
    """What `run` would do to the store at `path`, done on a copy that is thrown away; nothing is encoded."""
    with Store.snapshot(path) as copy:
        report = run(copy, options, None, progress=progress, keep_reject=keep_reject)
    report.dry_run = True
    report.committed = False
    return report


def _drop(_record: Record | Rejected) -> None:
    """Forgets a rejected record."""
