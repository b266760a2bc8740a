"""Reading the inputs of a run: format by format, record by record, into batches and declarations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from graphmem import formats
from graphmem.canonical import to_mapping
from graphmem.commit import Input, natural_key
from graphmem.commit.context import MEMORY_SCOPES
from graphmem.errors import AmbiguousFormat, FormatError, FormatFailed, UnknownFormat
from graphmem.findings import Finding, Severity, finding
from graphmem.leaks import likely_secret
from graphmem.mapping import to_record
from graphmem.names import kind_key
from graphmem.options import Given, ImportOptions
from graphmem.outcome import UNRECOGNISED, ImportReport
from graphmem.prepare import canonical_json, prepare
from graphmem.reading import Found, discover, open_input
from graphmem.records import (
    KINDS,
    NO_PLACE,
    EntityRecord,
    ManifestRecord,
    MemoryRecord,
    Place,
    Record,
    Ref,
    RelationRecord,
    kind_of,
)
from graphmem.spool import Spool
from graphmem.store.run import RunTables
from graphmem.store.write import ENTITY, MEMORY, RELATION

STDIN_URI: Final = "stdin:"
_TELL_EVERY: Final = 2_000


@dataclass(slots=True)
class _File:
    """The input that is being read."""

    number: int
    source: Input
    manifest: ManifestRecord | None = None
    counts: dict[str, int] | None = None
    hash: Any = None
    last_error: Place | None = None


class Gathering:
    """Reads all inputs; afterwards `spool` holds the batches and `inputs` where they came from."""

    def __init__(
        self, wanted: ImportOptions, tables: Callable[[], RunTables], report: ImportReport,
        progress: Callable[[str, int, int | None], None] | None,
        keep_reject: Callable[[Record | formats.Rejected], None],
    ) -> None:  # fmt: skip
        self._wanted = wanted
        self._tables = tables
        self._report = report
        self._progress = progress
        self._keep_reject = keep_reject
        self._importer = formats.importer(wanted.format) if wanted.format else None
        self.inputs: list[Input] = []
        self.spool = Spool()
        self.records = 0
        self.gave_up = False
        self._batch: list[Record] = []
        self._lanes: tuple[list[Record], list[Record]] = ([], [])
        self._split = False
        self._notes: dict[tuple[str | None, str], dict[str, str]] = {}

    def read(self) -> None:
        """Reads every input to its end, or until there are more errors than the caller bears."""
        follow = self._wanted.follow
        if follow is None:
            discovery = discover(self._wanted.paths)
            inputs = list(discovery)
            self._report.ignored_files = discovery.ignored_files
            self._report.other_files = discovery.other_files
            siblings = siblings_of(inputs)
        else:
            inputs, siblings = list(follow.inputs), dict(follow.siblings)
        for found in inputs:
            if isinstance(found, Finding):
                self._report.findings.add(found)
            else:
                self._read(found, siblings.get(found.root, frozenset()))
            if self.gave_up:
                return
        if self._wanted.given is not None:
            self._read_given(self._wanted.given)
        self._flush(self._batch)

    def _read_given(self, given: Given) -> None:
        """Reads records that were handed over as values."""
        source = Input(given.label, given.uri, format="given")
        file = _File(len(self.inputs), source)
        self.inputs.append(source)
        for number, value in enumerate(given.values, start=1):
            found: list[Finding] = []
            place = Place(number, 1)
            try:
                json.dumps(value, allow_nan=False)
                record = to_record(value, place, given.label, found)
            except (ValueError, TypeError, RecursionError):
                message = "a value that JSON does not have, or that is nested too deep"
                found.append(finding("bad-value", message, file=given.label, place=place))
                record = None
            for problem in found:
                self._found(file, problem)
            if record is not None and not isinstance(record, ManifestRecord):
                self._record(file, record)
            if self.gave_up:
                break
        self._end(file)

    def _is_lost(self) -> bool:
        """Whether it is known already that nothing will be stored."""
        return self._wanted.strict and self._report.findings.errors > 0

    # ---- one input --------------------------------------------------------------------------------

    def _read(self, found: Found, siblings: frozenset[str]) -> None:
        before = None if self._wanted.follow is None else looked_at(found)
        uri = STDIN_URI if found.path is None else found.uri
        source = Input(found.label, uri)
        file = _File(len(self.inputs), source)
        self.inputs.append(source)
        with open_input(found, self._wanted.encoding) as opened:
            try:
                head = opened.head()
                importer = self._importer or formats.pick(head, found.name)[0]
            except (UnknownFormat, AmbiguousFormat) as error:
                if opened.complete:
                    rule = "unknown-format" if isinstance(error, UnknownFormat) else "ambiguous-format"
                    self._report.findings.add(finding(rule, error.message, file=found.label, hint=error.hint))
            else:
                source.format = importer.name
                root = None if found.root is None else str(found.root)
                told = formats.Source(found.label, found.name, root, opened.encoding, siblings)
                # What could not be opened says nothing, not even by its name.
                for item in self._items(importer, opened.stream, told) if head or opened.complete else ():
                    self._take(file, item)
                    if self.gave_up:
                        break
            source.digest = opened.digest if not self.gave_up else None
            for problem in opened.findings:
                self._found(file, problem)
        if before is not None and looked_at(found) != before:
            self._leave_for_later(file)
        self._end(file)

    def _leave_for_later(self, file: _File) -> None:
        """Takes nothing from a file that changed while it was read, where that can still be helped."""
        source = file.source
        source.broken, source.digest = True, None
        if not self._split:
            for lane in self._lanes:
                for record in lane:
                    self._report.counts[kind_of(record)].read -= 1
                self.records -= len(lane)
                source.records -= len(lane)
            self._lanes = ([], [])
        message = "the file changed while it was read; it is taken the next time"
        self._report.findings.add(finding("changed-while-read", message, file=source.label))

    @staticmethod
    def _items(importer: formats.Importer, stream: Any, told: formats.Source) -> Iterator[formats.Item]:
        """What an importer yields; what it raises becomes an error of the format."""
        try:
            yield from importer.read(stream, told)
        except (FormatError, OSError, MemoryError):
            raise
        except Exception as error:
            raise FormatFailed(
                f"{told.label}: the import format '{importer.name}' failed: {type(error).__name__}: {error}",
                "this is a fault of the format, not of the file; please report it",
            ) from error

    def _take(self, file: _File, item: formats.Item) -> None:
        if isinstance(item, (MemoryRecord, RelationRecord, EntityRecord)):
            self._record(file, item)
        elif isinstance(item, Finding):
            self._found(file, item)
        elif isinstance(item, ManifestRecord):
            self._begin_transport(file, item)
        else:
            self._keep_reject(item)

    def _found(self, file: _File, found: Finding) -> None:
        report = self._report
        report.findings.add(found)
        if found.severity is not Severity.ERROR:
            return
        file.source.broken = True
        if found.place.line and found.place != file.last_error:
            file.last_error = found.place
            counts = report.counts[found.record_kind if found.record_kind in KINDS else UNRECOGNISED]
            counts.read += 1
            counts.rejected += 1
        limit = self._wanted.max_errors
        if limit is not None and report.findings.errors > limit:
            self.gave_up = True

    # ---- records ----------------------------------------------------------------------------------

    def _record(self, file: _File, record: Record) -> None:
        kind = kind_of(record)
        counts = self._report.counts[kind]
        counts.read += 1
        if file.counts is not None:
            file.counts[kind] += 1
            file.hash.update(canonical_json(to_mapping(record)).encode("utf-8", "surrogatepass"))
        elif record.origins is not None:
            record.origins = None
        try:
            prepare(record, file.number, self._wanted.scope, self._wanted.map_scope)
        except UnicodeEncodeError:
            counts.read -= 1
            message = "text with half of a surrogate pair"
            self._found(
                file,
                finding("lone-surrogate", message, file=file.source.label, place=record.place,
                        record_kind=kind),
            )  # fmt: skip
            self._keep_reject(record)
            return
        secret = likely_secret(_text_of(record))
        if secret is not None:
            self._warn_of_secret(file, record, secret)
        file.source.records += 1
        self.records += 1
        if isinstance(record, EntityRecord):
            if file.source.format == "markdown" and not file.source.transport:
                self._note_note(file, record)
            self._lanes[0].append(record)
        else:
            self._lanes[1].append(record)
        if len(self._lanes[0]) + len(self._lanes[1]) >= self._wanted.batch_size:
            self._split_file()
        if self._progress is not None and self.records % _TELL_EVERY == 0:
            self._progress("read", self.records, None)

    def _warn_of_secret(self, file: _File, record: Record, secret: str) -> None:
        message = f"this {kind_of(record)} seems to hold {secret}"
        self._report.findings.add(
            finding("likely-secret", message, file=file.source.label, place=record.place)
        )

    def _note_note(self, file: _File, note: EntityRecord) -> None:
        """Warns of two notes that are one entity; which of them meets the other depends on their paths only."""
        kind = kind_key(note.kind)
        seen = self._notes.setdefault((note.scope, note.name), {})
        # A note without a kind joins the only kind of its name.
        alike = [label for other, label in seen.items() if other == kind or not other or not kind]
        if alike:
            message = f"'{note.name}' is also the note {alike[0]}"
            self._report.findings.add(
                finding("duplicate-note", message, file=file.source.label, place=note.place)
            )
        seen.setdefault(kind, file.source.label)

    def _split_file(self) -> None:
        """Puts aside a part of a file that is too large for one batch."""
        if not self._split:
            self._flush(self._batch)
            self._batch = []
            self._split = True
        longer = len(self._lanes[1]) >= len(self._lanes[0])
        self._flush(self._lanes[longer], int(longer))
        self._lanes[longer].clear()

    def _end(self, file: _File) -> None:
        """Closes an input: whole files share a batch while they fit."""
        self._check_manifest(file)
        if self._split:
            for lane, rest in enumerate(self._lanes):
                self._flush(rest, lane)
            self.spool.seal()
            self._split = False
        else:
            records = [*self._lanes[0], *self._lanes[1]]
            if len(self._batch) + len(records) > self._wanted.batch_size:
                self._flush(self._batch)
                self._batch = records
            else:
                self._batch += records
        self._lanes = ([], [])

    def _flush(self, batch: list[Record], lane: int | None = None) -> None:
        """Notes what a full batch declares and puts it aside."""
        if not batch or self._is_lost():
            return
        tables = self._tables()
        if not tables.archives:
            tables.archives = any(one.state == "archived" for one in batch)
        transport = [one.transport for one in self.inputs]
        entities = [one for one in batch if type(one) is EntityRecord]
        tables.declare(
            (
                one.scope or "",
                one.name,
                kind_key(one.kind),
                one.kind,
                one.aliases,
                one.updated_at or one.created_at,
                one.digest,
                transport[one.input],
            )
            for one in entities
        )
        refs: set[tuple[str, str, str, str]] = set()
        for one in batch:
            if transport[one.input]:
                continue
            if type(one) is MemoryRecord:
                for ref in (*one.about, *one.mentions):
                    if ref.kind is not None and ref.name:
                        self._note_ref(refs, one.scopes, ref)
            elif type(one) is RelationRecord:
                for ref in (one.subject, one.object):
                    if ref.kind is not None and ref.name:
                        self._note_ref(refs, [one.scope or ""], ref)
        if refs:
            tables.refer(sorted(refs))
        self._claim(tables, batch)
        if self._wanted.follow is not None:
            tables.say_now((one.input, one.digest) for one in batch)
        self.spool.push(list(batch), lane)

    @staticmethod
    def _note_ref(refs: set[tuple[str, str, str, str]], scopes: list[str], ref: Ref) -> None:
        key = kind_key(ref.kind)
        if key and ref.kind is not None:
            for scope in [ref.scope] if ref.scope is not None else scopes:
                refs.add((scope, ref.name, key, ref.kind))

    @staticmethod
    def _claim(tables: RunTables, batch: list[Record]) -> None:
        claims: list[tuple[int, str, bytes, bool]] = []
        for one in batch:
            if isinstance(one, MemoryRecord):
                if one.id is not None:
                    claims.append((MEMORY, one.id, natural_key(one), True))
                    claims.append((MEMORY_SCOPES, one.id, canonical_json(one.scopes).encode(), True))
            elif one.id is not None or one.id_aliases:
                kind = ENTITY if type(one) is EntityRecord else RELATION
                key = natural_key(one)
                claims += [(kind, alias, key, False) for alias in one.id_aliases]
                if one.id is not None:
                    claims.append((kind, one.id, key, True))
        if claims:
            tables.claim(claims)

    # ---- manifests --------------------------------------------------------------------------------

    def _begin_transport(self, file: _File, manifest: ManifestRecord) -> None:
        label = file.source.label
        if file.source.records or file.manifest is not None:
            message = "a manifest that is not the first record was ignored"
            self._report.findings.add(
                finding("manifest-not-first", message, file=label, place=manifest.place)
            )
            return
        file.manifest = manifest
        file.counts = dict.fromkeys(KINDS, 0)
        file.hash = sha256()
        file.source.transport = True
        if manifest.filters:
            told = ", ".join(f"{key} = {value}" for key, value in sorted(manifest.filters.items()))
            message = f"this export was made with the filters {told}"
            self._report.findings.add(finding("partial-export", message, file=label, place=manifest.place))

    def _check_manifest(self, file: _File) -> None:
        manifest = file.manifest
        if manifest is None or file.counts is None or self.gave_up:
            return
        wrong = [
            f"{file.counts[kind]} instead of {manifest.counts.get(kind)} {kind} records"
            for kind in KINDS
            if manifest.counts is not None and manifest.counts.get(kind, 0) != file.counts[kind]
        ]
        if not wrong and manifest.digest is not None and manifest.digest != file.hash.hexdigest():
            wrong = ["content of another digest"]
        if wrong:
            message = f"the file has {', '.join(wrong)}"
            self._report.findings.add(
                finding(
                    "manifest-mismatch", message, file=file.source.label, place=manifest.place or NO_PLACE
                )
            )


def _text_of(record: Record) -> str:
    """The text of a record in which a secret may stand."""
    if isinstance(record, MemoryRecord):
        return record.content
    return (record.fact if isinstance(record, RelationRecord) else record.description) or ""


def looked_at(found: Found) -> tuple[int, int] | None:
    """Size and time of the last change (nanoseconds) of an input; `None` where they cannot be told."""
    if found.path is None:
        return None
    try:
        state = found.path.stat()
    except OSError:
        return None
    return state.st_size, state.st_mtime_ns


def siblings_of(inputs: Sequence[Found | Finding]) -> dict[Path | None, frozenset[str]]:
    """The names of all inputs of each folder that was given."""
    names: dict[Path | None, set[str]] = {}
    for found in inputs:
        if isinstance(found, Found) and found.root is not None:
            names.setdefault(found.root, set()).add(found.name)
    return {root: frozenset(inside) for root, inside in names.items()}
