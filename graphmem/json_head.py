"""What the start of a JSON text shows: the keys of its first object, even where it is cut or damaged.

Formats recognise their input by it, and an input that nobody recognises is described by it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*("?)|[{}\[\],:]|[^\s"{}\[\],:]+')
_OPENING: Final = re.compile(r"[ \t\r\n\ufeff]*")
_MOST_KEYS: Final = 64
_MOST_LISTS: Final = 8


@dataclass(slots=True)
class JsonHead:
    """The first value of a JSON text, or the first element where that is a list of objects or lists."""

    keys: list[str] = field(default_factory=list)
    """The keys of the first object, in their order, as far as they are seen."""
    type: str | None = None
    """The value of its key `type`, where that is text."""
    strings: int = 0
    """How many texts the first list holds, where the first value is a list of nothing but texts."""
    listed: bool = False
    """Whether it is an element of a list."""
    cut: bool = False
    """Whether the text ends before the object does."""
    inner: JsonHead | None = None
    """The first element of the list under its first key, where the object starts with a list."""


def json_head(head: bytes | str) -> JsonHead | None:
    """What a text that starts with `{` or `[` shows, or `None` for any other text.

    Of lists in lists in lists nothing is shown beyond a depth at which no record stands.
    """
    text = head.decode("utf-8", "replace") if isinstance(head, bytes) else head
    return _first(text, 0, with_inner=True)


def described(head: bytes) -> str | None:
    """The first object of a JSON text in words, naming its keys; `None` for any other text."""
    seen = json_head(head)
    if seen is None:
        return None
    if not seen.keys:
        return "a JSON list of texts" if seen.strings else "JSON without keys"
    keys = ", ".join(f"'{key[:40]}'" for key in seen.keys[:12])
    more = ", …" if len(seen.keys) > 12 else ""
    type_ = f" of type '{seen.type[:40]}'" if seen.type is not None else ""
    return f"a JSON object{type_} with the keys {keys}{more}"


def _first(text: str, start: int, *, with_inner: bool = False) -> JsonHead | None:
    """What the value that starts there shows; `None` where no object or list does."""
    lists = 0
    at = _past_space(text, start)
    while text[at : at + 1] == "[" and lists <= _MOST_LISTS:
        lists += 1
        start = at + 1
        at = _past_space(text, start)
    if lists > _MOST_LISTS:
        return JsonHead(listed=True)
    if text[at : at + 1] == "{":
        seen = _object(text, at + 1, with_inner=with_inner)
        seen.listed = lists > 0
        return seen
    if not lists:
        return None
    seen = _strings(text, start)
    seen.listed = lists > 1
    return seen


def _past_space(text: str, at: int) -> int:
    match = _OPENING.match(text, at)
    return match.end() if match else at


def _object(text: str, start: int, *, with_inner: bool) -> JsonHead:
    seen = JsonHead(cut=True)
    depth, key = 1, None
    expect_key = True
    for token in _TOKEN.finditer(text, start):
        sign = token[0]
        if sign in ("{", "["):
            if with_inner and depth == 1 and sign == "[" and len(seen.keys) == 1 and key is not None:
                seen.inner = _first(text, token.end())
            depth += 1
        elif sign in ("}", "]"):
            depth -= 1
            if depth == 0:
                seen.cut = False
                break
        elif depth == 1 and sign == ",":
            expect_key, key = True, None
        elif depth == 1 and sign[0] == '"' and token[1]:
            if expect_key:
                expect_key, key = False, sign[1:-1]
                seen.keys.append(key)
            elif key == "type":
                seen.type = sign[1:-1]
        if len(seen.keys) > _MOST_KEYS:
            break
    return seen


def _strings(text: str, start: int) -> JsonHead:
    seen = JsonHead()
    for token in _TOKEN.finditer(text, start):
        if token[0] == "]":
            break
        if token[0][0] == '"':
            seen.strings += 1
        elif token[0] != ",":
            return JsonHead()
    return seen
