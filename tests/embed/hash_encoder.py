"""An encoder without a model, for tests: texts that share words have vectors that are close."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from hashlib import sha256

from graphmem.embed import Chunk, EncoderInfo, Progress, Role
from graphmem.embed.chunking import cut
from graphmem.errors import EncoderError

DIMENSION = 32
_WORD = re.compile(r"\w+")


class HashEncoder:
    """Adds up one fixed direction for each word of a text, blind to case.

    `encoded` holds every text that was really encoded, in order. With `fails_at` = k the k-th of them,
    counted from 1, raises `EncoderError`. A text of more than `capacity` words is cut. Vectors have
    `dimension` numbers, at most 32.
    """

    def __init__(
        self, *, name: str = "hash-words", capacity: int = 100, fails_at: int | None = None,
        dimension: int = DIMENSION,
    ) -> None:  # fmt: skip
        self.info = EncoderInfo(name, "", sha256(name.encode()).hexdigest(), dimension)
        self.encoded: list[str] = []
        self.fails_at = fails_at
        self._capacity = capacity

    def chunks(self, text: str) -> list[Chunk]:
        return cut(text, lambda piece: [match.span() for match in _WORD.finditer(piece)], self._capacity)

    def encode(self, texts: Sequence[str], role: Role, progress: Progress | None = None) -> list[bytes]:
        vectors = {text: self._encode_one(text) for text in dict.fromkeys(texts)}
        if progress is not None:
            progress(len(texts))
        return [vectors[text] for text in texts]

    def _encode_one(self, text: str) -> bytes:
        self.encoded.append(text)
        if len(self.encoded) == self.fails_at:
            raise EncoderError(f"text {self.fails_at} cannot be encoded")
        dimension = self.info.dimension
        total = [0.0] * dimension
        for word in _WORD.findall(text.casefold()) or [text]:
            digest = sha256(word.encode("utf-8", "surrogatepass")).digest()
            total = [sum_ + byte - 127.5 for sum_, byte in zip(total, digest[:dimension], strict=True)]
        length = math.sqrt(sum(value * value for value in total))
        return struct.pack(f"<{dimension}f", *(value / length for value in total))
