"""Finding the names of entities in text: exactly as written, bounded by words.

A name is filed under its head, its first two words (or its only one), so that a text is looked up by its
own words and never against all names. Names of one sign, and those without a letter or digit, are not
looked for, nor are names inside a run of a script that is written without spaces. Pure; the look-up is
the caller's. Whether a memory names an entity depends on the two alone, so the index can be kept in step
piece by piece.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Final
from unicodedata import normalize

_WORD: Final = re.compile(r"\w+")
_LEAST: Final = 2
_SIGNS_AFTER: Final = "+#"
"""Signs that belong to the word they follow: a text with `C++` does not name `C`."""

Lookup = Callable[[str], Iterable[tuple[str, int]]]
"""A head to the (name, entity) filed under it."""


def plain(text: str) -> str:
    """The text in the form in which names are compared: NFC, white space as one space."""
    if not text.isascii():
        text = normalize("NFC", text)
    return " ".join(text.split())


def head(name: str) -> str | None:
    """What an exact name is filed under; `None` for one that is not looked for."""
    found = _WORD.findall(name)
    if not found or len(name) < _LEAST:
        return None
    return " ".join(found[:2])


def _is_word(sign: str) -> bool:
    return sign.isalnum() or sign == "_"


def _bounded(text: str, start: int, end: int, name: str) -> bool:
    """Whether a name stands as words of its own at a place of the text."""
    if start:
        before = text[start - 1]
        if _is_word(name[0]) and _is_word(before):
            return False
        if before == "." and _is_word(name[0]) and (start < 2 or not _is_word(text[start - 2])):
            return False  # `.NET` does not name `NET`
    if end < len(text):
        after = text[end]
        if _is_word(name[-1]) and (_is_word(after) or after in _SIGNS_AFTER):
            return False
        if name[-1] in _SIGNS_AFTER and after in _SIGNS_AFTER:
            return False
    return True


def contains(text: str, name: str) -> bool:
    """Whether a plain text names something, by a name in its exact form."""
    at = text.find(name)
    while at >= 0:
        if _bounded(text, at, at + len(name), name):
            return True
        at = text.find(name, at + 1)
    return False


def heads(text: str) -> Iterator[str]:
    """The heads under which names in a plain text would be filed, each once."""
    words = _WORD.findall(text)
    yield from dict.fromkeys(words)
    yield from dict.fromkeys(map(" ".join, pairwise(words)))


def find(text: str, lookup: Lookup) -> set[tuple[str, int]]:
    """The (name, entity) that a plain text names."""
    return {(name, entity) for one in heads(text) for name, entity in lookup(one) if contains(text, name)}
