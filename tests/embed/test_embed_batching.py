"""Batches: equal texts once, similar lengths together, memory bounded, order kept."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from graphmem.embed.batching import BATCH, Reading, batches, encode
from graphmem.embed.contract import Role


class Recorder:
    """An engine whose vectors are the texts themselves, and which remembers its batches."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def read(self, texts: Sequence[str], role: Role) -> list[Reading]:
        return [Reading(len(text), f"{role}:{text}") for text in texts]

    def run(self, batch: Sequence[Reading]) -> list[bytes]:
        self.batches.append([reading.content for reading in batch])
        return [reading.content.encode() for reading in batch]


@given(st.lists(st.text("abc", max_size=5)))
def test_results_stand_in_the_order_of_the_texts(texts: list[str]) -> None:
    assert encode(Recorder(), texts, "query", None) == [f"query:{text}".encode() for text in texts]


def test_equal_texts_are_run_once() -> None:
    engine = Recorder()

    encode(engine, ["same"] * 50 + ["other"], "document", None)

    assert sorted(chain.from_iterable(engine.batches)) == ["document:other", "document:same"]


def test_texts_of_similar_length_share_a_batch() -> None:
    engine = Recorder()
    texts = [letter * length for length in (1, 50) for letter in "abcdefghijklmnop"]

    encode(engine, texts[::2] + texts[1::2], "document", None)

    assert [{len(text) for text in batch} for batch in engine.batches] == [{59}, {10}]


def test_progress_adds_up_to_all_texts_repeated_ones_included() -> None:
    told: list[int] = []
    texts = [f"text {i % 60}" for i in range(100)]

    encode(Recorder(), texts, "document", told.append)

    assert sum(told) == 100
    assert len(told) == 4


@given(st.lists(st.integers(0, 9000), max_size=60))
def test_each_text_is_in_one_batch_and_batches_fit_memory(lengths: list[int]) -> None:
    made = list(batches(lengths))

    assert sorted(chain.from_iterable(made)) == list(range(len(lengths)))
    for batch in made:
        longest = max(lengths[i] for i in batch)
        assert len(batch) == 1 or (len(batch) <= BATCH and len(batch) * longest**2 <= BATCH * 512**2)
