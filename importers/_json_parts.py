"""Where the parts of a JSON value stand in its text, for findings and records inside a value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Final, NamedTuple

from graphmem.records import Place

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_ESCAPE: Final = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|.)")
_HIGH_SURROGATE: Final = re.compile(r"\\u[dD][89abAB]")
_scan = json.JSONDecoder(strict=False).raw_decode


class Part(NamedTuple):
    """A member of an object or an element of a list: its key or number, and its stretch of the text."""

    key: str | int
    start: int
    end: int


def parts(text: str, at: int = 0) -> Iterator[Part]:
    """The members of the object, or the elements of the list, that starts at an index of sound JSON."""
    at = _past(text, at)
    is_object = text[at] == "{"
    at = _past(text, at + 1)
    number = 0
    while text[at] not in "}]":
        key: str | int = number
        if is_object:
            key, at = scanstring(text, at + 1, False)
            at = _past(text, _past(text, at) + 1)
        end = _scan(text, at)[1]
        yield Part(key, at, end)
        number += 1
        at = _past(text, end)
        if text[at] == ",":
            at = _past(text, at + 1)


def find(text: str, *path: str | int) -> Part | None:
    """The part that a path of keys and numbers leads to, the last where a key is given twice."""
    found: Part | None = None
    at = 0
    for key in path:
        found = None
        if text[_past(text, at)] not in "{[":
            return None
        for part in parts(text, at):
            if part.key == key:
                found = part
        if found is None:
            return None
        at = found.start
    return found


def place_within(text: str, place: Place, at: int) -> Place:
    """The place of the character at an index of a text that starts at `place`."""
    before = text[:at]
    line = before.count("\n")
    column = at - before.rfind("\n") if line else place.column + at
    return Place(place.line + line, column, place.offset + len(before.encode("utf-8", "surrogateescape")))


class Decoded:
    """The characters of a JSON string and where each of them stands in the string's text, quotes included."""

    def __init__(self, literal: str) -> None:
        self._literal = literal
        self._raw, self._at = 1, 0

    def index(self, at: int) -> int:
        """Where the character at an index of the decoded string starts; ask in rising order."""
        while self._at < at:
            escape = _ESCAPE.match(self._literal, self._raw)
            self._raw = escape.end() if escape else self._raw + 1
            if escape and _HIGH_SURROGATE.match(escape[0]):
                low = _ESCAPE.match(self._literal, self._raw)
                self._raw = low.end() if low else self._raw
            self._at += 1
        return self._raw


def _past(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
