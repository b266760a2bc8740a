"""The encoder that other tests use keeps the promises of the protocol."""

from __future__ import annotations

import math
import struct

import pytest
from hash_encoder import DIMENSION, HashEncoder

from graphmem.embed import Encoder
from graphmem.errors import EncoderError


def floats(vector: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{DIMENSION}f", vector)


def cosine(one: bytes, other: bytes) -> float:
    return sum(a * b for a, b in zip(floats(one), floats(other), strict=True))


def test_it_is_an_encoder() -> None:
    assert isinstance(HashEncoder(), Encoder)


@pytest.mark.parametrize("text", ["", "C++", "two words", "東京 🚀", "\ud800"])
def test_every_vector_has_length_one(text: str) -> None:
    (vector,) = HashEncoder().encode([text], "document")

    assert math.isclose(sum(value * value for value in floats(vector)), 1, abs_tol=1e-6)


def test_texts_that_share_words_are_closer() -> None:
    near, far, query = HashEncoder().encode(
        ["the billing service writes invoices", "goats eat grass", "Billing invoices"], "document"
    )

    assert cosine(query, near) > cosine(query, far) + 0.3


def test_equal_texts_are_encoded_once_and_keep_their_places() -> None:
    encoder = HashEncoder()

    one, other, again = encoder.encode(["a", "b", "a"], "document")

    assert encoder.encoded == ["a", "b"]
    assert one == again != other


def test_a_long_text_is_cut() -> None:
    text = " ".join(f"w{i}" for i in range(250))

    chunks = HashEncoder(capacity=100).chunks(text)

    assert len(chunks) == 3
    assert (chunks[0].start, chunks[-1].end) == (0, len(text))


def test_it_fails_at_the_text_it_was_told_to() -> None:
    encoder = HashEncoder(fails_at=3)
    encoder.encode(["a", "b"], "document")

    with pytest.raises(EncoderError, match="text 3"):
        encoder.encode(["c"], "document")
