"""What an unquoted YAML scalar means in a record: mostly the text that was written.

In names, texts, tags, times and every other key that holds text, a plain scalar is that text (`1.10`,
`no`, `2024-01-15`, `0x1F`), and only an empty one, `~` and `null` mean nothing. The keys that hold
numbers or a flag are read as such. In `properties` and in keys that graphmem does not know, a plain
scalar is what the same letters are in JSON, where JSON would write them back unchanged: `true`, `42`
and `0.5` are values, `1.10`, `1_000` and `yes` stay text.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

_NULLS: Final = frozenset(("", "~", "null"))
_FLAGS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_FLOAT: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[-+][0-9]+)?")
_NUMBER: Final = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_NUMBER_KEYS: Final = frozenset(("importance", "weight"))
_FLAG_KEYS: Final = frozenset(("stub",))
_TEXT_KEYS: Final = frozenset(
    (
        "type", "id", "name", "kind", "scope", "description", "aliases", "id_aliases", "redirects",
        "content", "title", "memory_type", "tags", "scopes", "about", "mentions",
        "subject", "predicate", "object", "fact", "stated_by", "state", "archived_by",
        "created_at", "updated_at", "valid_at", "invalid_at", "expired_at",
        "format", "digest", "tool",
    )
)  # fmt: skip


class Plain(str):
    """The text of an unquoted scalar."""

    __slots__ = ()


def resolved(record: Any) -> Any:
    """The record that a composed node stands for, with every plain scalar given its meaning."""
    if not isinstance(record, dict):
        return _text(record)
    made: dict[str, Any] = {}
    for key, value in record.items():
        if key in _TEXT_KEYS:
            made[key] = _text(value)
        elif key in _NUMBER_KEYS:
            made[key] = _number(value)
        elif key in _FLAG_KEYS:
            made[key] = _FLAGS.get(value, _text(value)) if isinstance(value, Plain) else _json(value)
        elif key == "source":
            made[key] = _source(value)
        else:
            made[key] = _json(value)
    return made


def _text(value: Any) -> Any:
    kind = type(value)
    if kind is Plain:
        return None if value in _NULLS else str(value)
    if kind is list:
        return [_text(one) for one in value]
    if kind is dict:
        return {key: _text(one) for key, one in value.items()}
    return value


def _number(value: Any) -> Any:
    """A number however it is written (`.5`, `0.50`, `1`), anything else as it stands."""
    if type(value) is Plain and len(value) <= 40 and _NUMBER.fullmatch(value):
        number = float(value)
        if value.lstrip("+-").isdigit():
            return int(value)
        return number if math.isfinite(number) else str(value)
    return _json(value)


def _source(value: Any) -> Any:
    if type(value) is not dict:
        return _text(value)
    return {key: _number(one) if key == "position" else _text(one) for key, one in value.items()}


def _json(value: Any) -> Any:
    kind = type(value)
    if kind is Plain:
        return _json_scalar(value)
    if kind is list:
        return [_json(one) for one in value]
    if kind is dict:
        return {key: _json(one) for key, one in value.items()}
    return value


def _json_scalar(text: str) -> Any:
    if text in _NULLS:
        return None
    if text in ("true", "false"):
        return text == "true"
    if _INT.fullmatch(text):
        number = int(text)
        return number if -(2**63) <= number < 2**63 and str(number) == text else str(text)
    if _FLOAT.fullmatch(text) and len(text) <= 40 and repr(float(text)) == text:
        return float(text)
    return str(text)
