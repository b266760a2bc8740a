"""Cutting a text into overlapping pieces that a model reads whole.

The text is tokenised in windows, so that memory stays bounded whatever its length; every piece is
tokenised again by itself before it is accepted, because a piece of a word may cost more tokens than the
word did.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from graphmem.embed.contract import Chunk

Spans: TypeAlias = list[tuple[int, int]]
Tokenise: TypeAlias = Callable[[str], Spans]
"""The character span of each token of a text, special tokens left out."""

OVERLAP: Final = 8
"""One part in eight of a piece is said again by the next."""

_EXPANSION: Final = 18
"""No character becomes more than 18 under compatibility composition, which some tokenisers apply."""


def surely_fits(text: str, capacity: int) -> bool:
    """Whether a text has at most `capacity` tokens, judged by its length alone; `False` means unknown.

    One token is kept back for the word start that some tokenisers put before the text.
    """
    length = len(text) if text.isascii() else len(text) * _EXPANSION
    return length < capacity


def character_spans(text: str) -> Spans:
    """Every character as a token, for a model whose tokeniser does not say where its tokens stand."""
    return [(i, i + 1) for i in range(len(text))]


def cut(text: str, tokenise: Tokenise, capacity: int) -> list[Chunk]:
    """Pieces of at most `capacity` tokens that overlap and hold every character of the text.

    A piece ends at white space where there is any near its end, else between two tokens. A single
    character that is more than `capacity` tokens is a piece by itself.
    """
    pieces: list[Chunk] = []
    start = 0
    while True:
        spans = _window(text, start, tokenise, capacity)
        if len(spans) <= capacity:
            pieces.append(Chunk(start, len(text)))
            return pieces
        end = _accepted_end(text, start, spans, tokenise, capacity)
        if pieces and end <= pieces[-1].end:
            start = pieces[-1].end  # the overlap left no room for anything new
            continue
        pieces.append(Chunk(start, end))
        if end == len(text):
            return pieces
        start = _next_start(text, start, end, spans, capacity)


def _window(text: str, start: int, tokenise: Tokenise, capacity: int) -> Spans:
    """Spans, in the whole text, of the tokens from `start` on: the rest's, or clearly more than fit."""
    size = 6 * capacity
    while True:
        stop = min(start + size, len(text))
        spans = tokenise(text[start:stop])
        # The last word of a window may be half a word, so what follows the limit must not be its only token.
        if stop == len(text) or len(spans) > capacity + capacity // OVERLAP + 1:
            return [(start + a, start + b) for a, b in spans]
        size *= 2


def _accepted_end(text: str, start: int, spans: Spans, tokenise: Tokenise, capacity: int) -> int:
    """Where a piece ends so that it has at most `capacity` tokens when read by itself."""
    kept = capacity
    while kept > 1:
        end = _at_space(text, spans, kept, capacity)
        if end <= start:
            end = spans[kept - 1][1]
        excess = len(tokenise(text[start:end])) - capacity
        if excess <= 0 and end > start:
            return end
        kept -= max(1, min(excess, kept - 1))
    return max(spans[0][1], start + 1)


def _at_space(text: str, spans: Spans, kept: int, capacity: int) -> int:
    """The last place before white space among the last tokens kept, else the end of the last one."""
    lowest = max(kept - capacity // OVERLAP, 1)
    for last in range(kept - 1, lowest - 1, -1):
        end = spans[last][1]
        if end < len(text) and text[end].isspace():
            return end
    return spans[kept - 1][1]


def _next_start(text: str, start: int, end: int, spans: Spans, capacity: int) -> int:
    """Where the next piece starts: some tokens before `end`, at the start of a word if there is one."""
    inside = [a for a, b in spans if b <= end]
    starts = [a for a in inside[len(inside) - capacity // OVERLAP :] if start < a < end]
    for candidate in starts:
        if text[candidate - 1].isspace():
            return candidate
    return starts[0] if starts else end
