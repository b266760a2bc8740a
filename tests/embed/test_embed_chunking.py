"""Cutting texts: nothing is lost, nothing is longer than the model reads."""

from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from graphmem.embed.chunking import Spans, character_spans, cut, surely_fits
from graphmem.embed.contract import Chunk


def words(text: str) -> Spans:
    return [match.span() for match in re.finditer(r"\S+", text)]


def pairs(text: str) -> Spans:
    """Tokens of at most two characters within words, as subword tokenisers make them."""
    return [match.span() for match in re.finditer(r"\S{1,2}", text)]


TEXTS = st.text(st.sampled_from("ab 東\n\u2028🚀"), max_size=400)


def test_a_text_that_fits_is_one_piece() -> None:
    assert cut("one two three", words, 3) == [Chunk(0, 13)]


def test_the_empty_text_is_one_empty_piece() -> None:
    assert cut("", words, 3) == [Chunk(0, 0)]


def test_white_space_alone_is_one_piece() -> None:
    assert cut(" " * 1000, words, 3) == [Chunk(0, 1000)]


def test_pieces_overlap_by_an_eighth_and_break_at_white_space() -> None:
    text = " ".join(f"word{i:03}" for i in range(100))

    first, second, *_ = [text[chunk.start : chunk.end] for chunk in cut(text, words, 16)]

    assert first.split() == [f"word{i:03}" for i in range(16)]
    assert second.split()[:3] == ["word014", "word015", "word016"]


def test_a_long_word_near_the_end_moves_whole_to_the_next_piece() -> None:
    text = " ".join(["ab"] * 15 + ["abcdef"] + ["ab"] * 20)

    first = cut(text, pairs, 16)[0]

    assert text[first.start : first.end] == " ".join(["ab"] * 15)


@given(TEXTS, st.integers(1, 40), st.sampled_from([words, pairs, character_spans]))
def test_every_character_is_in_some_piece_and_no_piece_is_too_long(
    text: str, capacity: int, tokenise: object
) -> None:
    assert callable(tokenise)

    chunks = cut(text, tokenise, capacity)

    assert (chunks[0].start, chunks[-1].end) == (0, len(text))
    for before, after in pairwise(chunks):
        assert before.start < after.start <= before.end < after.end
    assert all(len(tokenise(text[chunk.start : chunk.end])) <= capacity for chunk in chunks)


@given(TEXTS, st.integers(1, 40))
def test_a_text_that_surely_fits_is_one_piece_for_a_tokeniser_that_expands_characters(
    text: str, capacity: int
) -> None:
    def expanding(piece: str) -> Spans:
        plain = [
            (i, i + 1) for i, character in enumerate(piece) for _ in range(18 if character > "\x7f" else 1)
        ]
        return [(0, 0), *plain]

    if surely_fits(text, capacity):
        assert len(expanding(text)) <= capacity


def test_a_character_that_is_more_tokens_than_fit_is_a_piece_by_itself() -> None:
    assert cut("🚀🚀", lambda text: [(i, i + 1) for i in range(len(text)) for _ in range(9)], 4) == [
        Chunk(0, 1),
        Chunk(1, 2),
    ]


def test_a_long_text_is_tokenised_in_windows() -> None:
    longest = 0

    def watched(text: str) -> Spans:
        nonlocal longest
        longest = max(longest, len(text))
        return words(text)

    cut("word " * 20_000, watched, 100)

    assert longest < 5_000
