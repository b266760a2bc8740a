"""The vectors of a batch: which texts have one, which must be encoded before the batch can stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from graphmem.commit.context import BatchContext
from graphmem.prepare import text_hash
from graphmem.store.vectors import StoredEncoder, VectorWriter, detach

if TYPE_CHECKING:
    from graphmem.embed import Encoder


class NeedVectors(Exception):
    """Texts, by digest, that must be encoded before the batch can be committed."""

    def __init__(self, texts: dict[bytes, str]) -> None:
        super().__init__(f"{len(texts)} texts without a vector")
        self.texts = texts


class Vectors:
    """Gives the new and changed items of a batch their vectors."""

    def __init__(
        self,
        context: BatchContext,
        encoder: Encoder | None,
        hold: Callable[[], StoredEncoder],
        ready: Mapping[bytes, bytes],
    ) -> None:
        self._context = context
        self._encoder = encoder
        self._hold = hold
        self._writer: VectorWriter | None = None
        self._ready = ready
        self._known: dict[bytes, int] = {}

    def store(self) -> None:
        """Stores the vectors. Raises `NeedVectors` when some are neither stored nor ready."""
        self._drop_stale()
        if self._encoder is None or not self._context.texts:
            return
        writer = self._writer = VectorWriter(self._context.writer.db, self._hold())
        missing: dict[bytes, str] = {}
        wanted: list[tuple[int, int, list[tuple[int, int, bytes]]]] = []
        for (kind, item), text in self._context.texts.items():
            pieces: list[tuple[int, int, bytes]] = []
            for chunk in self._encoder.chunks(text):
                part = text[chunk.start : chunk.end]
                digest = text_hash(part)
                pieces.append((chunk.start, chunk.end, digest))
                if digest not in self._ready and digest not in missing and self._vector(digest) is None:
                    missing[digest] = part
            wanted.append((kind, item, pieces))
        if missing:
            raise NeedVectors(missing)
        for kind, item, found in wanted:
            self._attach(writer, kind, item, found)

    def _drop_stale(self) -> None:
        for kind, item in self._context.texts:
            if (kind, item) not in self._context.new_items:
                detach(self._context.writer.db, kind, item)

    def _vector(self, digest: bytes) -> int | None:
        found = self._known.get(digest)
        if found is None and self._writer is not None:
            found = self._writer.find(digest)
            if found is not None:
                self._known[digest] = found
        return found

    def _attach(
        self, writer: VectorWriter, kind: int, item: int, pieces: list[tuple[int, int, bytes]]
    ) -> None:
        rows: list[tuple[int, int, int]] = []
        for start, stop, digest in pieces:
            vector = self._vector(digest)
            if vector is None:
                vector = self._known[digest] = writer.put(digest, self._ready[digest])
            rows.append((start, stop, vector))
        writer.attach(kind, item, rows)
