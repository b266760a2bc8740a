"""An encoder that keeps every vector it makes, so that a store built again encodes nothing again."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from graphmem.embed import Chunk, Encoder, EncoderInfo, Progress, Role, text_digest

_AT_ONCE: Final = 512
_LOOK_UP_AT_ONCE: Final = 500


class KeptVectors:
    """Another encoder behind a file of its vectors, one file for each encoder.

    Query vectors are also held in memory, so that asking for one a second time costs nothing.
    """

    def __init__(self, encoder: Encoder, folder: Path) -> None:
        self._encoder = encoder
        self._held: dict[str, bytes] = {}
        folder.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(folder / f"vectors-{encoder.info.digest[:16]}.db", timeout=60)
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS vector"
            " (digest BLOB, role TEXT, vector BLOB, PRIMARY KEY (digest, role)) WITHOUT ROWID"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    @property
    def info(self) -> EncoderInfo:
        """Which encoder this is."""
        return self._encoder.info

    def chunks(self, text: str) -> list[Chunk]:
        """The pieces of a text that the model reads whole."""
        return self._encoder.chunks(text)

    def encode(self, texts: Sequence[str], role: Role, progress: Progress | None = None) -> list[bytes]:
        """One vector for each text; new ones are made and kept, some hundred at a time."""
        if role == "query" and all(text in self._held for text in texts):
            return [self._held[text] for text in texts]
        digests = [text_digest(text) for text in texts]
        found = self._look_up(digests, role)
        missing = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in found}
        new = list(missing.items())
        for at in range(0, len(new), _AT_ONCE):
            some = new[at : at + _AT_ONCE]
            made = self._encoder.encode([text for _, text in some], role)
            rows = [(digest, role, vector) for (digest, _), vector in zip(some, made, strict=True)]
            with self._db:
                self._db.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?, ?)", rows)
            found |= {digest: vector for digest, _, vector in rows}
        if progress is not None:
            progress(len(texts))
        vectors = [found[digest] for digest in digests]
        if role == "query":
            self._held.update(zip(texts, vectors, strict=True))
        return vectors

    def _look_up(self, digests: Sequence[bytes], role: Role) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for at in range(0, len(digests), _LOOK_UP_AT_ONCE):
            some = digests[at : at + _LOOK_UP_AT_ONCE]
            marks = ", ".join("?" * len(some))
            sql = f"SELECT digest, vector FROM vector WHERE role = ? AND digest IN ({marks})"
            found.update(self._db.execute(sql, (role, *some)))
        return found
