"""Frontmatter as people read it: YAML in which every value reads back as its text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

MAX_SHOWN: Final = 4_000
_MAX_KEY: Final = 100
_MAX_NESTED: Final = 8

_KEY: Final = re.compile(r"[^\W\d_](?:[\w .-]*[\w.-])?\Z")
_PLAIN: Final = re.compile(r"[^\W\d_](?:[\w ./@()+-]*[\w./@()+-])?\Z")
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?\Z")
_WORDS_OF_YAML: Final = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null", "none"))
_UNPRINTABLE: Final = re.compile(
    "[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
# Keys that say something else to a reader of notes than what a property of that name says.
_TAKEN: Final = frozenset(
    (
        *("title", "type", "description", "desc", "aliases", "alias", "tag", "permalink", "gmem"),
        *("created", "created_at", "updated", "updated_at", "modified"),
    )
)


def json_line(value: Any) -> str:
    """A value as JSON on one line, with every character escaped that YAML would not keep."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def as_text(value: Any) -> Any:
    """A JSON value as the frontmatter shows it: every scalar as its text."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return [as_text(one) for one in value]
    if isinstance(value, dict):
        return {key: as_text(one) for key, one in value.items()}
    return json.dumps(value)


def is_shown(key: str, value: Any) -> bool:
    """Whether a property is shown in the frontmatter; the others are only in the `gmem` block."""
    if len(key) > _MAX_KEY or not _KEY.match(key) or key.lower() in _TAKEN:
        return False
    if key.lower() == "tags":
        return _are_plain_tags(value)
    return _depth(value) <= _MAX_NESTED and _has_short_keys(value) and len(json.dumps(value)) <= MAX_SHOWN


def _are_plain_tags(value: Any) -> bool:
    if not isinstance(value, list) or not value or len(set(map(str, value))) != len(value):
        return False
    return all(
        isinstance(tag, str) and tag == " ".join(tag.split()) and tag and not tag.startswith("#")
        for tag in value
    )


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


def _has_short_keys(value: Any) -> bool:
    if isinstance(value, dict):
        return all(len(key) <= _MAX_KEY and _has_short_keys(one) for key, one in value.items())
    return all(map(_has_short_keys, value)) if isinstance(value, list) else True


def yaml_lines(values: dict[str, Any]) -> Iterator[str]:
    """The lines of a mapping; its values are JSON values that read back as `as_text` of them."""
    for key, value in values.items():
        if isinstance(value, str) and _is_block(value):
            yield f"{key}: |-"
            for line in value.split("\n"):
                yield f"  {line}" if line else ""
        elif isinstance(value, list) and value and all(not isinstance(one, (list, dict)) for one in value):
            yield f"{key}:"
            for one in value:
                yield f"- {_scalar(one)}"
        elif isinstance(value, (list, dict)):
            yield f"{key}: {_flow(value)}"
        else:
            yield f"{key}: {_scalar(value)}"


def _is_block(text: str) -> bool:
    """Whether a text of several lines can be written as a block without loss."""
    lines = text.split("\n")
    if len(lines) < 2 or _UNPRINTABLE.search(text):
        return False
    if text[0] in " \t\n" or not lines[-1].strip():
        return False
    return all(not line or line.strip() for line in lines)


def _scalar(value: Any) -> str:
    if not isinstance(value, str):
        text = json.dumps(value)
        return text if _NUMBER.match(text) or text in ("true", "false", "null") else _quoted(text)
    plain = _PLAIN.match(value) is not None and value.lower() not in _WORDS_OF_YAML
    return value if plain else _quoted(value)


def _quoted(text: str) -> str:
    return json_line(text)


def _flow(value: Any) -> str:
    text = json.dumps(as_text(value), ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
