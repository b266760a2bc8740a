"""Patterns of `.gitignore` and `.gmemignore`, and of globs: which paths below a folder they match.

The rules are those of Git: the last pattern that matches decides, `!` takes a path back in, a pattern
with a slash before its end is anchored to the folder of its file, `**` crosses folders, and a trailing
slash matches folders only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final

_POSIX_CLASSES: Final = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "blank": r" \t", "digit": "0-9", "lower": "a-z",
    "space": r"\s", "upper": "A-Z", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_FLAGS: Final = re.DOTALL | (re.IGNORECASE if os.name == "nt" else 0)


def _class(pattern: str, start: int) -> tuple[str, int]:
    """The bracket expression that opens at `start` and where it ends; an unclosed one matches nothing."""
    i = start + 1
    negated = pattern[i : i + 1] in ("!", "^")
    i += negated
    parts: list[str] = []
    first = True
    while i < len(pattern) and (pattern[i] != "]" or first):
        first = False
        named = re.match(r"\[:(\w+):\]", pattern[i:])
        if named and named[1] in _POSIX_CLASSES:
            parts.append(_POSIX_CLASSES[named[1]])
            i += named.end()
        elif pattern[i] == "-" and parts and pattern[i + 1 : i + 2] not in ("]", ""):
            parts.append("-")
            i += 1
        else:
            i += pattern[i] == "\\" and i + 1 < len(pattern)
            parts.append("\\" + pattern[i] if pattern[i] in r"\]^[-&~|" else pattern[i])
            i += 1
    if i >= len(pattern):
        return r"(?!)", len(pattern)
    return f"(?!/)[{'^' if negated else ''}{''.join(parts)}]", i + 1


def segment_expression(pattern: str) -> str:
    """The regular expression of a pattern in which `*` and `?` do not cross a slash."""
    out: list[str] = []
    i = 0
    while i < len(pattern):
        sign = pattern[i]
        if sign == "*":
            while i + 1 < len(pattern) and pattern[i + 1] == "*":
                i += 1
            out.append("[^/]*")
        elif sign == "?":
            out.append("[^/]")
        elif sign == "[":
            expression, i = _class(pattern, i)
            out.append(expression)
            continue
        elif sign == "\\" and i + 1 < len(pattern):
            i += 1
            out.append(re.escape(pattern[i]))
        else:
            out.append(re.escape(sign))
        i += 1
    return "".join(out)


def compiled(expression: str) -> re.Pattern[str] | None:
    """The compiled expression, or `None` when it is none (`[z-a]`): such a pattern matches nothing."""
    try:
        return re.compile(expression, _FLAGS)
    except re.error:
        return None


def _path_expression(pattern: str) -> str:
    """The expression of a whole anchored pattern, with `**` between slashes crossing folders."""
    parts = pattern.split("/")
    out: list[str] = []
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == "**":
            out.append(".+" if last else "(?:[^/]+/)*")
        else:
            out.append(segment_expression(part) + ("" if last else "/"))
    return "".join(out)


def _trimmed(line: str) -> str:
    """The line without its end and without trailing spaces, unless a backslash keeps the space."""
    line = line.rstrip("\r\n")
    while line.endswith(" ") and not re.search(r"(?<!\\)(?:\\\\)*\\ $", line):
        line = line[:-1]
    return line


class Patterns:
    """The patterns of one ignore file, matched against paths relative to its folder."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._rules: list[tuple[re.Pattern[str], bool, bool]] = []
        for line in lines:
            self._add(_trimmed(line))

    def _add(self, pattern: str) -> None:
        if not pattern or pattern.startswith("#"):
            return
        keeps = pattern.startswith("!")
        pattern = pattern[keeps:]
        folders_only = pattern.endswith("/")
        pattern = pattern.removesuffix("/")
        if not pattern:
            return
        anchored = "/" in pattern
        expression = _path_expression(pattern.removeprefix("/"))
        made = compiled(expression if anchored else f"(?:.*/)?{expression}")
        if made is not None:
            self._rules.append((made, keeps, folders_only))

    def __bool__(self) -> bool:
        """Whether there is any pattern."""
        return bool(self._rules)

    def ignores(self, path: str, is_folder: bool) -> bool | None:
        """Whether the path is ignored (true) or taken back in (false); `None` when nothing matches.

        `path` is relative to the folder of the ignore file, with forward slashes.
        """
        for expression, keeps, folders_only in reversed(self._rules):
            if (is_folder or not folders_only) and expression.fullmatch(path):
                return not keeps
        return None
