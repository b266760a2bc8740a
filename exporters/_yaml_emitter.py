"""JSON values as YAML that every YAML reader takes for the same values, texts above all.

Words stand plain, everything that a reader might take for something else is quoted, and text over
several lines is a block where a block gives back exactly that text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Final

_PLAIN: Final = re.compile(r"[^\W\d_][\w./+@(),;'=-]*(?: [\w./+@(),;'=-]+)*")
_NOT_TEXT: Final = frozenset(
    ("true", "false", "null", "yes", "no", "on", "off", "y", "n", "inf", "nan", "none")
)  # fmt: skip
# What a YAML reader refuses or takes for a line end; JSON's own escapes cover the rest.
_ESCAPED: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_UNFIT_FOR_BLOCK: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_LONGEST_KEY: Final = 500  # YAML reads an ordinary key only up to 1024 characters, escapes included


def document(record: dict[str, Any]) -> str:
    """The record as one document, from its `---` to the end of its last line."""
    lines = ["---", *_block(record, 0)] if record else ["--- {}"]
    return "\n".join(lines) + "\n"


def _block(value: dict[str, Any] | list[Any], indent: int) -> Iterator[str]:
    """The lines of a mapping or list that is not empty."""
    left = " " * indent
    if isinstance(value, dict):
        for key, one in value.items():
            name = _quoted(key) if not _is_plain(key) else key
            if len(name) <= _LONGEST_KEY:
                yield from _entry(f"{left}{name}:", one, indent)
            else:
                yield f"{left}? {name}"
                yield from _entry(f"{left}:", one, indent)
        return
    for one in value:
        if isinstance(one, (dict, list)) and one:
            lines = _block(one, indent + 2)
            yield f"{left}- {next(lines).lstrip(' ')}"
            yield from lines
        else:
            yield from _entry(f"{left}-", one, indent)


def _entry(start: str, value: Any, indent: int) -> Iterator[str]:
    """A value behind its key or dash: on the same line, or indented below it."""
    if isinstance(value, (dict, list)) and value:
        yield start
        yield from _block(value, indent + 2)
    elif isinstance(value, str) and "\n" in value and _fits_block(value):
        yield from _literal(start, value, " " * (indent + 2))
    else:
        yield f"{start} {_scalar(value)}"


def _literal(start: str, text: str, left: str) -> Iterator[str]:
    body = text.rstrip("\n")
    ends = len(text) - len(body)
    yield f"{start} |{'-' if ends == 0 else '' if ends == 1 else '+'}"
    for line in body.split("\n"):
        yield left + line if line else ""
    for _ in range(ends - 1):
        yield ""


def _fits_block(text: str) -> bool:
    """Whether a literal block gives back the text: it starts with a line of its own indentation."""
    return text[0] not in " \t\n" and not _UNFIT_FOR_BLOCK.search(text)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return value if _is_plain(value) else _quoted(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a number that can be exported")
    return json.dumps(value)


def _is_plain(text: str) -> bool:
    return _PLAIN.fullmatch(text) is not None and text.lower() not in _NOT_TEXT


def _quoted(text: str) -> str:
    """The text in double quotes; JSON's escapes are YAML's too."""
    quoted = json.dumps(text, ensure_ascii=False)
    if quoted.isascii() and "\x7f" not in quoted:
        return quoted
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04X}", quoted)
