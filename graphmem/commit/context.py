"""What the batches of one run share, and what the steps of one batch share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from graphmem.findings import Finding, finding
from graphmem.formats import Rejected
from graphmem.names import kind_key, predicate_key
from graphmem.outcome import ImportReport
from graphmem.prepare import canonical_json
from graphmem.records import KINDS, EntityRecord, MemoryRecord, Place, Record
from graphmem.store.run import RunTables
from graphmem.store.write import ENTITY, MEMORY, RELATION, Writer

if TYPE_CHECKING:
    from graphmem.embed import Encoder

BASE_ORIGIN: Final = ""
"""The uri that stands for "no origin", for items a transport file gives without saying where from."""

FOR_GOOD: Final = 2
"""A change that no later batch of a run undoes."""

MEMORY_SCOPES: Final = 3
"""The number under which a run's tables keep the sets of scopes that records give to a memory id."""


@dataclass(slots=True)
class Input:
    """One input of the run, as batches need it."""

    label: str
    uri: str
    format: str | None = None
    digest: str | None = None
    transport: bool = False
    origin: int = 0
    records: int = 0
    broken: bool = False
    """Whether something in it could not be read or stored, so that nothing is withdrawn for its sake."""
    reread: bool = False
    """Whether the store has another version of this input, so that what it no longer says is counted."""

    @property
    def origin_uri(self) -> str:
        """The uri of the origin of its records; a transport file is none itself."""
        return BASE_ORIGIN if self.transport else self.uri


@dataclass(frozen=True, slots=True)
class Choices:
    """What the caller decided for cases that records leave open."""

    on_conflict: str = "merge"
    on_ambiguous: str = "error"
    dangling: str = "stub"
    fold_case: bool = False
    restore_archived: bool = False


@dataclass(slots=True)
class RunState:
    """What the batches of one run share."""

    clock: str
    inputs: list[Input]
    choices: Choices
    tables: RunTables
    report: ImportReport
    reject: Callable[[Record | Rejected], None]
    batches: set[int] = field(default_factory=set)
    later: bool = False
    """Whether an earlier batch of the run may have made items that this one's records go to."""
    had_memories: bool = True
    """Whether the store held memories before the run."""
    has_ids: tuple[bool, bool, bool] = (False, False, False)
    rivals: dict[int, dict[str, list[bytes]]] = field(default_factory=dict)
    mentions: bool = True
    """Whether the index of mentions is kept in step."""
    heads: set[int] | None = None
    """Hashes of the heads of all names, once a batch had many texts."""
    targets: dict[bytes, int] = field(default_factory=dict)
    """Of records by digest: the memories that they take the place of, where a sync has found them."""
    replaced: set[tuple[int, int]] = field(default_factory=set)
    """Items (kind, row number) of which nothing counts that was said before."""
    left: set[tuple[int, int]] = field(default_factory=set)
    """Items (kind, row number) whose support a sync took away for a record that went elsewhere."""
    near_noted: set[tuple[str, str]] = field(default_factory=set)

    def prepare(self) -> None:
        """Reads off the run's tables what holds for all its batches, once they are filled."""
        tables = self.tables
        self.has_ids = (tables.has_ids(ENTITY), tables.has_ids(MEMORY), tables.has_ids(RELATION))
        self.rivals = {
            kind: tables.rival_ids(kind) for kind in (ENTITY, RELATION, MEMORY_SCOPES) if tables.has_ids(kind)
        }


class Refused(Exception):
    """A record that is not stored: the finding says why; `skip` counts it as skipped, not as rejected."""

    def __init__(self, rule: str, message: str, *, skip: bool = False) -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message
        self.skip = skip


def natural_key(record: Record) -> bytes:
    """The natural key as written, by which records of a run are compared before names are resolved."""
    if isinstance(record, EntityRecord):
        return canonical_json([record.scope, record.name, kind_key(record.kind)]).encode()
    if isinstance(record, MemoryRecord):
        said = canonical_json([record.content, record.about, record.scopes])
        return blake2b(said.encode(), digest_size=16).digest()
    return canonical_json(
        [record.scope, record.subject, predicate_key(record.predicate), record.object, record.valid_at]
    ).encode()


class BatchContext:
    """What the steps of one batch share: the writer, the counts, the texts that want vectors."""

    def __init__(self, run: RunState, writer: Writer, encoder: Encoder | None) -> None:
        self.run = run
        self.writer = writer
        self.tables = run.tables
        self.encoder = encoder
        self.texts: dict[tuple[int, int], str] = {}
        self.new_items: set[tuple[int, int]] = set()
        self.any_archived = writer.any_archived()
        self.new_names: list[tuple[int, str]] = []
        """(entity, name or alias) that no memory was searched for yet."""
        self.new_texts: list[tuple[int, str | None, str]] = []
        """(memory, title, content) that no name was looked for in yet."""
        self.renamed: list[int] = []
        self.rewritten: list[int] = []
        self.had_memories = writer.has_memories()
        self._counts = [run.report.counts[kind] for kind in KINDS]
        self._touched: dict[tuple[int, int], tuple[int, int]] = {}
        self._seen: list[tuple[int, bytes]] = []

    # ---- findings ---------------------------------------------------------------------------------

    def found(self, rule: str, message: str, record: Record | None = None) -> Finding:
        """A finding about a record of the batch."""
        if record is None:
            return finding(rule, message)
        return finding(rule, message, file=self.run.inputs[record.input].label, place=Place(*record.place))

    def note(self, rule: str, message: str, record: Record | None = None) -> None:
        """Adds a finding about a record."""
        self.run.report.findings.add(self.found(rule, message, record))

    def refuse(self, kind: int, record: Record, why: Refused) -> None:
        """Counts a record as skipped or rejected, and says why."""
        counts = self.run.report.counts[KINDS[kind]]
        if kind == ENTITY:
            # The run still declares it, whichever batch asks.
            self.tables.pending += 1
        if why.skip:
            counts.skipped += 1
        else:
            counts.rejected += 1
            self.run.reject(record)
        self.note(why.rule, why.message, record)

    # ---- counts -----------------------------------------------------------------------------------

    def count_made(self, kind: int, records: int) -> None:
        """Counts the records of an item that this batch made."""
        counts = self._counts[kind]
        counts.created += 1
        counts.merged += records - 1

    def touch(self, kind: int, item: int, records: int, *, changed: int) -> None:
        """Counts records that went to an item which stood before the batch.

        `changed` is `FOR_GOOD` for a change that no later batch can undo, such as a further id.
        """
        if self.writer.batch_of(kind, item) in self.run.batches:
            self.run.report.counts[KINDS[kind]].merged += records
        else:
            self.touch_old(kind, item, records, changed=changed)

    def touch_old(self, kind: int, item: int, records: int, *, changed: int) -> None:
        """Counts records that went to an item which stood before the run."""
        before, was = self._touched.get((kind, item), (0, 0))
        self._touched[kind, item] = (before + records, max(was, changed))

    def see(self, record: Record) -> None:
        """Notes that an origin still says this."""
        source = self.run.inputs[record.input]
        if source.reread:
            self._seen.append((source.origin, record.digest))

    def close(self) -> None:
        """Hands the batch's counts over to the run's tables."""
        self.tables.touch((kind, item, n, changed) for (kind, item), (n, changed) in self._touched.items())
        self.tables.see(self._seen)

    # ---- contributions ----------------------------------------------------------------------------

    def contribute(self, kind: int, item: int, record: Record, said: str | None) -> None:
        """Keeps where a new item of one record was taken from; `said` where the item's fields differ."""
        source = self.run.inputs[record.input]
        origin = source.origin or self.origin(source)
        self.writer.add_contribution(origin, record.digest, kind, item, record.place[0], self.run.clock, said)
        if source.reread:
            self._seen.append((source.origin, record.digest))
        if self.tables.archives:
            self.support(kind, item, (record,))

    def origin(self, source: Input) -> int:
        """The number of an input's origin, which is made when something is first taken from it."""
        if not source.origin and source.transport:
            source.origin = self.writer.keep_origin(BASE_ORIGIN, None, None, None)
        elif not source.origin:
            source.origin = self.writer.keep_origin(source.uri, source.format, source.digest, self.run.clock)
        return source.origin

    def support(self, kind: int, item: int, records: Iterable[Record]) -> None:
        """Notes for later batches whether records speak of an item as one that is not archived."""
        if self.tables.archives and any(record.state != "archived" for record in records):
            self.tables.support(kind, item)

    def name(self, entity: int, *names: str) -> None:
        """Notes names under which an entity may be mentioned from now on."""
        if self.run.mentions:
            self.new_names += [(entity, name) for name in names]

    def text(self, memory: int, title: str | None, content: str) -> None:
        """Notes a text that may mention entities."""
        if self.run.mentions:
            self.new_texts.append((memory, title, content))

    def want_vector(self, kind: int, item: int, text: str, *, new: bool) -> None:
        """Notes that an item's text is new or has changed."""
        if self.encoder is not None or not new:
            self.texts[kind, item] = text
            if new:
                self.new_items.add((kind, item))
