"""The three forms in which names are compared, and the forms of kinds and predicates.

exact   NFC, trimmed, inner white space as one space; case counts
folded  NFKC, case folding, NFKC again, white space; nothing more, so `C`, `C++` and `C#` stay apart
words   folded words in order, cut at spaces, `_`, `-`, `/` and humps

All three are idempotent, and `folded(exact(x)) == folded(x)`; the store's name keys rely on that.
"""

from __future__ import annotations

import re
from functools import lru_cache
from unicodedata import normalize

from graphmem.records import UNKNOWN_KIND

_SEPARATORS = re.compile(r"[\s_\-/]+")
_ASCII_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_FIXPOINT_ROUNDS = 4


def exact(name: str) -> str:
    """The name as it is stored and compared first; "" when nothing is left of it."""
    if not name.isascii():
        name = normalize("NFC", name)
    return " ".join(name.split())


@lru_cache(maxsize=16384)
def folded(name: str) -> str:
    """The name blind to case and compatibility forms."""
    if name.isascii():
        return " ".join(name.lower().split())
    return _fold_wide(name)


def _fold_wide(name: str) -> str:
    for _ in range(_FIXPOINT_ROUNDS):
        again = " ".join(normalize("NFKC", normalize("NFKC", name).casefold()).split())
        if again == name:
            break
        name = again
    return name


def _cut_humps(word: str) -> list[str]:
    if word.isascii():
        return _ASCII_HUMP.sub(" ", word).split(" ")
    parts: list[str] = []
    start = 0
    for i in range(1, len(word)):
        if word[i].isupper() and (
            word[i - 1].islower() or (word[i - 1].isupper() and i + 1 < len(word) and word[i + 1].islower())
        ):
            parts.append(word[start:i])
            start = i
    parts.append(word[start:])
    return parts


def _words_once(name: str) -> str:
    if not name.isascii():
        name = normalize("NFKC", name)
    pieces = [part for word in _SEPARATORS.split(name) if word for part in _cut_humps(word)]
    return " ".join(filter(None, (folded(piece) for piece in pieces)))


def _ascii_words(name: str) -> str:
    """The words of an ASCII name; one pass is a fixpoint, because small letters have no humps."""
    if not name.islower():
        name = _ASCII_HUMP.sub(" ", name).lower()
    return " ".join(_SEPARATORS.sub(" ", name).split())


@lru_cache(maxsize=16384)
def words(name: str) -> str:
    """The folded words of the name joined by one space; the folded name when it has only separators."""
    if name.isascii():
        return _ascii_words(name) or folded(name)
    result = _words_once(name)
    for _ in range(_FIXPOINT_ROUNDS):
        again = _words_once(result)
        if again == result:
            break
        result = again
    return result or folded(name)


@lru_cache(maxsize=4096)
def kind_key(kind: str | None) -> str:
    """A kind blind to case and separators; "" for the absence of a kind."""
    if kind is None:
        return ""
    key = predicate_key(kind)
    return "" if key == UNKNOWN_KIND else key


@lru_cache(maxsize=4096)
def predicate_key(predicate: str) -> str:
    """A predicate blind to case and separators."""
    form = folded(predicate)
    # Folded again, because signs that were apart may now combine.
    return folded(_SEPARATORS.sub("", form)) or form


def name_keys(name: str) -> list[tuple[str, int]]:
    """The keys under which a stored name is found: (key, step), step 1 exact, 2 folded, 3 words.

    A key that equals an earlier one is left out: a look-up at step n also accepts rows of lower steps
    under the same key, which is right because every form is a fixpoint of itself.
    """
    rows = [(name, 1)]
    if name.isascii():
        # Not through the caches of `folded` and `words`: the names of an import are mostly new.
        fold = name.lower()
        word = _ascii_words(name) or fold
    else:
        fold, word = folded(name), words(name)
    if fold != name:
        rows.append((fold, 2))
    if word not in (fold, name):
        rows.append((word, 3))
    return rows
