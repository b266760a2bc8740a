"""Making vectors: for what has none, or for everything when another encoder is wanted.

With the store's own encoder, items that lack vectors get them, some hundred at a time, each time in one
transaction: what is done stays done, and search sees it at once.

With another encoder all vectors are made anew beside the old ones, also in transactions of some hundred
texts. Until the last one is there the old encoder stays the store's: search answers by it and imports go
on with it. Then one transaction changes everything over. Under its lock every text is looked at again; if
an import brought one without a new vector, nothing is changed and the work goes on with that. A run that
was interrupted, at whatever point, is continued by the next one, which finds the vectors made so far.

Encoding happens outside every lock. The change-over holds the write lock while it rebuilds the indexes,
so other writers wait for it; readers do not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from graphmem import times
from graphmem.embed import Encoder
from graphmem.errors import EncoderError, Interrupted
from graphmem.prepare import text_hash
from graphmem.records import KINDS
from graphmem.store import Store
from graphmem.store.reembed import Change, ItemText, Piece, Span, Texts, drop_unused, has_unused
from graphmem.store.vectors import StoredEncoder, VectorWriter, fits, need_index
from graphmem.ulid import mint

COMMAND: Final = "reembed"
TEXTS_AT_ONCE: Final = 512
"""How many texts are encoded and stored together."""

_PAGE: Final = 256
_MAX_ITEMS: Final = 2048

Progress = Callable[[str, int, int | None], None]
"""Told the stage ("encode", "store"), how many items are done, and of how many."""


@dataclass(slots=True)
class ReembedReport:
    """What a run did. `items` counts those that have vectors now and had none, or others, before."""

    encoder: dict[str, Any]
    replaced: dict[str, Any] | None = None
    items: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    encoded: int = 0
    batch: str | None = None
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        return asdict(self) | {"seconds": round(self.seconds, 3)}


def reembed(
    store: Store, encoder: Encoder, *, progress: Progress | None = None, clock: str | None = None
) -> ReembedReport:
    """Gives every item of an open store, archived ones too, its vectors by this encoder.

    Raises `EncoderError`, `StoreError` and its kinds, and `Interrupted`; whatever is raised, what was
    stored so far is sound and the next run goes on from there.
    """
    began = time.monotonic()
    run = _Reembed(store, encoder, progress, clock)
    try:
        report = run.run()
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted; {run.stored:,} of the texts that were encoded are stored",
            "run 'gmem reembed' again to go on from there",
        ) from None
    report.seconds = time.monotonic() - began
    return report


def _spelled(encoder: StoredEncoder) -> dict[str, Any]:
    return {
        "name": encoder.name,
        "revision": encoder.revision,
        "digest": encoder.digest,
        "dimension": encoder.dimension,
    }


@dataclass(slots=True)
class _Part:
    """Items that are dealt with together: their pieces, and the pieces that have no vector yet."""

    items: list[ItemText] = field(default_factory=list)
    pieces: list[list[Piece]] = field(default_factory=list)
    missing: dict[bytes, str] = field(default_factory=dict)


class _Reembed:
    """One run."""

    def __init__(self, store: Store, encoder: Encoder, progress: Progress | None, clock: str | None) -> None:
        self._store = store
        self._encoder = encoder
        self._progress = progress
        self._clock = clock
        self._texts = Texts(store.db)
        self._report = ReembedReport(asdict(encoder.info))
        self.stored = 0

    def run(self) -> ReembedReport:
        with self._store.errors():
            need_index(self._store.db)
            held = self._store.encoder()
            info = self._encoder.info
            if held is None or fits(held, info.digest, info.dimension):
                self._fill()
            else:
                self._report.replaced = _spelled(held)
                self._change()
        return self._report

    # ---- what both ways share ---------------------------------------------------------------------

    def _cut(self, text: str) -> list[Span]:
        spans = [(chunk.start, chunk.end) for chunk in self._encoder.chunks(text)]
        if not spans:
            raise EncoderError(f"the encoder gives no piece for a text of {len(text):,} characters")
        return spans

    def _parts(
        self, cut: Callable[[str], list[Span]], find: Callable[[bytes], int | None], *, bare: bool
    ) -> Iterator[_Part]:
        """The items in parts of so many that there are about `TEXTS_AT_ONCE` texts to encode."""
        part = _Part()
        for page in self._texts.pages(_PAGE, bare=bare):
            for one in page:
                pieces = _pieces(one.text, cut(one.text))
                part.items.append(one)
                part.pieces.append(pieces)
                for start, stop, digest in pieces:
                    if digest not in part.missing and find(digest) is None:
                        part.missing[digest] = one.text[start:stop]
                if len(part.missing) >= TEXTS_AT_ONCE or len(part.items) >= _MAX_ITEMS:
                    yield part
                    part = _Part()
        if part.items:
            yield part

    def _encode(self, texts: Mapping[bytes, str]) -> dict[bytes, bytes]:
        """The vectors of texts by digest; no lock is held."""
        if not texts:
            return {}
        vectors = self._encoder.encode(list(texts.values()), "document")
        self._report.encoded += len(texts)
        return dict(zip(texts, vectors, strict=True))

    def _tell(self, stage: str, done: int, of: int) -> None:
        if self._progress is not None:
            self._progress(stage, min(done, of), of)

    def _count(self, items: list[ItemText]) -> None:
        for one in items:
            self._report.items[KINDS[one.kind]] += 1

    def _write_batch(self) -> None:
        """The row of this run, inside its last transaction."""
        report = self._report
        writer = self._store.writer()
        clock, last = self._clock or times.now(), self._store.last_time()
        clock = clock if clock > last else times.next_millisecond(last)
        report.batch = mint(clock, "batch", str(writer.batch), COMMAND)
        writer.add_batch(
            id_=report.batch, run=mint(clock, "run"), at=clock, command=COMMAND, importer=None, inputs=[],
            counts={"vectors": {kind: count for kind, count in report.items.items() if count},
                    "encoder": report.encoder["name"]},
        )  # fmt: skip

    # ---- the store's own encoder ------------------------------------------------------------------

    def _fill(self) -> None:
        while True:
            self._fill_once()
            with self._store.transaction():
                if self._texts.count(bare=True):
                    continue  # an import brought more meanwhile
                held = self._store.encoder()
                if held is not None:
                    self._report.encoder = _spelled(held)
                    if has_unused(self._store.db, held):
                        drop_unused(self._store.db)
                if any(self._report.items.values()):
                    self._write_batch()
                return

    def _fill_once(self) -> None:
        done, total = 0, self._texts.count(bare=True)
        self._tell("encode", done, total)
        for part in self._parts(self._cut, self._known(), bare=True):
            vectors = self._encode(part.missing)
            with self._store.transaction():
                self._attach(part, vectors)
            self.stored += len(vectors)
            done += len(part.items)
            self._tell("encode", done, total)

    def _known(self) -> Callable[[bytes], int | None]:
        held = self._store.encoder()
        if held is None:
            return lambda digest: None  # noqa: ARG005 - nothing is known without an encoder
        return VectorWriter(self._store.db, held).find

    def _attach(self, part: _Part, vectors: Mapping[bytes, bytes]) -> None:
        """Gives the items of a part their vectors, but for those that changed since they were read."""
        info = self._encoder.info
        held = self._store.use_encoder(info.name, info.revision, info.digest, info.dimension)
        writer = VectorWriter(self._store.db, held)
        now = {(one.kind, one.pk): one.text for one in self._texts.bare_among(part.items)}
        attached = []
        for one, pieces in zip(part.items, part.pieces, strict=True):
            found = {digest: writer.find(digest) for _, _, digest in pieces}
            absent = {digest for digest, vector in found.items() if vector is None}
            if now.get((one.kind, one.pk)) != one.text or not vectors.keys() >= absent:
                continue
            rows = [
                (start, stop, writer.find(digest) or writer.put(digest, vectors[digest]))
                for start, stop, digest in pieces
            ]
            writer.attach(one.kind, one.pk, rows)
            attached.append(one)
        self._count(attached)

    # ---- another encoder --------------------------------------------------------------------------

    def _change(self) -> None:
        info = self._encoder.info
        change = Change(self._store.db, info.name, info.revision, info.digest, info.dimension)
        while True:
            self._make_vectors(change)
            with self._store.transaction():
                held = self._store.encoder()
                if held is not None and fits(held, info.digest, info.dimension):
                    break  # another run was faster
                if self._change_over(change):
                    return
        self._report.replaced = None
        self._fill()

    def _make_vectors(self, change: Change) -> None:
        """Makes and stores the new vectors of all texts that have none yet."""
        with self._store.transaction():
            change.begin()
        done, total = 0, self._texts.count(bare=False)
        self._tell("encode", done, total)
        fresh: dict[bytes, list[Span]] = {}

        def cut(text: str) -> list[Span]:
            digest = text_hash(text)
            spans = change.spans(digest) or fresh.get(digest)
            if spans is None:
                spans = fresh[digest] = self._cut(text)
            return spans

        for part in self._parts(cut, change.find, bare=False):
            vectors = self._encode(part.missing)
            with self._store.transaction():
                change.put(vectors.items())
                for digest, spans in fresh.items():
                    change.keep_spans(digest, spans)
            fresh.clear()
            self.stored += len(vectors)
            done += len(part.items)
            self._tell("encode", done, total)

    def _change_over(self, change: Change) -> bool:
        """Changes everything over, if every text as it is now has a new vector."""
        change.start_plan()
        counts = dict.fromkeys(KINDS, 0)
        done, total = 0, self._texts.count(bare=False)
        for page in self._texts.pages(_PAGE, bare=False):
            for one in page:
                spans = change.spans(text_hash(one.text))
                if spans is None or not change.plan(one.kind, one.pk, _pieces(one.text, spans)):
                    return False
                counts[KINDS[one.kind]] += 1
            done += len(page)
            self._tell("store", done, total)
        change.change_over()
        self._report.items = counts
        self._write_batch()
        return True


def _pieces(text: str, spans: list[Span]) -> list[Piece]:
    return [(start, stop, text_hash(text[start:stop])) for start, stop in spans]
