"""Text on its way to a person: made harmless for terminals, and printable whatever the encoding.

File text is shown, never obeyed: what a terminal or a log reader would act on is shown as an escape.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Any, Final, TextIO

# Controls, marks that reorder text, line separators, halves of surrogate pairs and noncharacters.
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_UNSAFE_IN_LINES: Final = re.compile(f"(?![\t\n]){_UNSAFE.pattern}")
_JSON_ERRORS: Final = "graphmem-json"


def visible(text: str, *, lines: bool = False) -> str:
    r"""The text with unsafe characters shown as escapes such as `\n`, `\x1b` and `\u202e`.

    With `lines`, line ends and tabs stay.
    """
    return (_UNSAFE_IN_LINES if lines else _UNSAFE).sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    sign = match.group()
    return _NAMED.get(sign) or (f"\\x{ord(sign):02x}" if sign < "\u0100" else f"\\u{ord(sign):04x}")


_NAMED: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def write(text: str, stream: TextIO) -> None:
    """Write text to a stream; a character that its encoding lacks is written as a backslash escape."""
    _write(text, stream, "backslashreplace")


def to_json(value: Any, *, indent: int | None = 2) -> str:
    """A value as JSON text that can be printed: unsafe characters and halves of surrogates are escaped."""
    return _UNSAFE_IN_LINES.sub(
        lambda match: _json_escape(match.group()), json.dumps(value, ensure_ascii=False, indent=indent)
    )


def write_json(value: Any, stream: TextIO, *, indent: int | None = 2) -> None:
    """Write a value as JSON and end the line; a character that the encoding lacks is escaped as JSON does."""
    _write(to_json(value, indent=indent) + "\n", stream, _JSON_ERRORS)


def _write(text: str, stream: TextIO, errors: str) -> None:
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, errors).decode(encoding))


def _json_escape(text: str) -> str:
    return "".join(
        f"\\u{unit:04x}"
        for sign in text
        for unit in (
            (ord(sign),)
            if ord(sign) < 0x10000
            else (0xD800 + (ord(sign) - 0x10000 >> 10), 0xDC00 + (ord(sign) - 0x10000 & 0x3FF))
        )
    )


def _json_errors(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return _json_escape(error.object[error.start : error.end]), error.end


codecs.register_error(_JSON_ERRORS, _json_errors)
