"""What an encoder is to the rest of graphmem, without any model behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

Role: TypeAlias = Literal["document", "query"]
Progress: TypeAlias = Callable[[int], None]
"""Told how many more texts are done; over one call the numbers add up to the number of texts."""


Say: TypeAlias = Callable[[str], None]
"""Told what a person should know: a long first preparation, a model served the slow way."""


class Chunk(NamedTuple):
    """A piece of a text that the model reads in one go: `text[start:end]`, counted in characters."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class EncoderInfo:
    """Which encoder made a vector.

    `name` is the model's hub id or the name of its folder, `revision` the hub's commit ("" when the model
    did not come from the hub), `digest` the SHA-256 of the weights in hexadecimal, `dimension` the number
    of floats in a vector.
    """

    name: str
    revision: str
    digest: str
    dimension: int

    def fits(self, other: EncoderInfo) -> bool:
        """Whether vectors of both can be compared: same weights and dimension, wherever they came from."""
        return (self.digest, self.dimension) == (other.digest, other.dimension)


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into vectors."""

    @property
    def info(self) -> EncoderInfo:
        """Which encoder this is; known without loading the model once it was used before."""
        ...

    def chunks(self, text: str) -> list[Chunk]:
        """The pieces, in order and overlapping, that together hold every character of the text.

        There is one for any text the model reads whole, the empty text included.
        """
        ...

    def encode(self, texts: Sequence[str], role: Role, progress: Progress | None = None) -> list[bytes]:
        """One vector for each text, in their order: float32, little-endian, of length 1.

        Equal texts are encoded once. A text longer than the model reads is cut off at its limit: pass
        chunks. Raises `EncoderError` when the model cannot be used.
        """
        ...


@dataclass(frozen=True, slots=True)
class Availability:
    """An encoder, or why there is none and what to do about it, to be told once."""

    encoder: Encoder | None
    reason: str = ""
    hint: str = ""


def text_digest(text: str) -> bytes:
    """The SHA-256 of a text's UTF-8 bytes: what vectors are filed under."""
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
