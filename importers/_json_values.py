"""JSON values with what is odd about them: one C scanner, and findings for what JSON does not have."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, Final

from graphmem.formats import Source

MAX_DEPTH: Final = 100
"""How deep objects and lists may be nested; the same on every Python."""

_INT_DIGITS: Final = 18  # integers of up to so many characters fit 64 bits, sign included
_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|.)", re.DOTALL)
_RAW_SURROGATE: Final = re.compile("[\ud800-\udfff]")

Scan = Callable[[str, int], tuple[Any, int]]


class Scanner:
    """Scans JSON values; what is odd in one is appended to `odd` as (rule, message, index).

    The index is `None` where only the value as a whole is known.

    `strict` refuses raw control characters in strings, `loose` takes them. Both raise `StopIteration`
    or `json.JSONDecodeError` for what is not JSON, `RecursionError` where the nesting is absurd.
    """

    def __init__(self) -> None:
        self.odd: list[tuple[str, str, int | None]] = []
        self.strict = self._made(True)
        self.loose = self._made(False)

    def _made(self, strict: bool) -> Scan:
        decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_int=self._int,
            parse_float=self._float,
            parse_constant=self._constant,
            strict=strict,
        )
        scan: Scan = decoder.scan_once  # type: ignore[attr-defined]  # `raw_decode` without a Python frame
        return scan

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            made = self._united(pairs)
        return made

    def _united(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        twice: set[str] = set()
        for key, value in pairs:
            if key in made:
                twice.add(key)
                value = united(made[key], value)
            made[key] = value
        for key in sorted(twice):
            self._note("duplicate-key", f"the key '{key[:80]}' is given more than once")
        return made

    def _note(self, rule: str, message: str) -> None:
        self.odd.append((rule, message, None))

    def _int(self, text: str) -> int | str:
        if len(text) <= _INT_DIGITS or (len(text) <= 20 and -(2**63) <= int(text) < 2**63):
            return int(text)
        self._note("huge-number", f"the number {_short(text)} is beyond 64 bits")
        return text

    def _float(self, text: str) -> float | str:
        number = float(text)
        if math.isfinite(number):
            return number
        self._note("huge-number", f"the number {_short(text)} is beyond what a number can be")
        return text

    def _constant(self, text: str) -> str:
        self._note("not-finite", f"{text} is not a JSON number")
        return text


def united(first: Any, second: Any) -> Any:
    """The value of a key that is given twice: lists are united in their order, else the second counts."""
    if isinstance(first, list) and isinstance(second, list):
        known = {repr(one) for one in first}
        return first + [one for one in second if repr(one) not in known]
    return second


def is_too_deep(value: Any) -> bool:
    """Whether objects and lists are nested deeper than `MAX_DEPTH`."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            one
            for outer in level
            if isinstance(outer, (dict, list))
            for one in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(one, (dict, list))
        ]
        if not level:
            return False
    return True


def lone_surrogate(text: str, start: int, end: int) -> int | None:
    """Where in a stretch of JSON text half of a surrogate pair is escaped, or `None`."""
    if text.find("\\ud", start, end) < 0 and text.find("\\uD", start, end) < 0:
        return None
    high: re.Match[str] | None = None
    for match in _ESCAPE.finditer(text, start, end):
        code = int(match[1], 16) if match[1] else 0
        if high is not None and (not 0xDC00 <= code <= 0xDFFF or match.start() != high.end()):
            return high.start()
        if high is not None:
            high = None
        elif 0xD800 <= code <= 0xDBFF:
            high = match
        elif 0xDC00 <= code <= 0xDFFF:
            return match.start()
    return None if high is None else high.start()


def undecoded(text: str, start: int, end: int) -> int | None:
    """Where in a stretch of text a byte stands that could not be decoded, or `None`."""
    match = _RAW_SURROGATE.search(text, start, end)
    return None if match is None else match.start()


def undecodable(byte: int, source: Source) -> str:
    """What to say of a byte that could not be decoded; 0xFF stands for any where `--encoding` was used."""
    if source.encoding is not None and byte == 0xFF:
        return f"bytes that cannot be decoded as {source.encoding}"
    return f"the byte 0x{byte:02X} is not UTF-8 here"


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:30]}… ({len(text)} characters)"
