"""Finding the names of entities in text: exact, bounded by words, the longest at each place.

A name is filed under its head, its first two words (or its only one), so that a text is looked up by its
own words and never against all names. Names of one sign, and those without a letter or digit, are not
looked for. Pure; the look-up is the caller's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
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
    """What a name is filed under; `None` for one that is not looked for."""
    found = _WORD.findall(name)
    if not found or len(name) < _LEAST:
        return None
    return " ".join(found[:2])


def _bounded(text: str, start: int, end: int, name: str) -> bool:
    """Whether a name stands as words of its own at a place of the text."""
    if start:
        before = text[start - 1]
        if _is_word(before) and _is_word(name[0]):
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


def _is_word(sign: str) -> bool:
    return sign.isalnum() or sign == "_"


def contains(text: str, name: str) -> bool:
    """Whether a plain text names something, by a name in its exact form."""
    at = text.find(name)
    while at >= 0:
        if _bounded(text, at, at + len(name), name):
            return True
        at = text.find(name, at + 1)
    return False


def find(text: str, lookup: Lookup) -> Iterator[tuple[str, int]]:
    """The (name, entity) that a plain text names; of names that overlap, the longest that starts first.

    All entities of one name are given.
    """
    words = [(match.group(), match.start()) for match in _WORD.finditer(text)]
    seen: dict[str, list[tuple[str, int]]] = {}
    free = 0
    for number, (word, start) in enumerate(words):
        if start < free:
            continue
        best: list[tuple[str, int]] = []
        longest = 0
        heads = [word]
        if number + 1 < len(words):
            heads.append(f"{word} {words[number + 1][0]}")
        for one in heads:
            if one not in seen:
                seen[one] = list(lookup(one))
            for name, entity in seen[one]:
                lead = _WORD.search(name)
                begin = start - (lead.start() if lead else 0)
                if begin < 0 or len(name) < longest or not text.startswith(name, begin):
                    continue
                if _bounded(text, begin, begin + len(name), name):
                    if len(name) > longest:
                        longest, best = len(name), []
                        end = begin + len(name)
                    best.append((name, entity))
        if best:
            free = end
            yield from best
