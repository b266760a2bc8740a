"""The parts of a note in which nothing is matched: code, comments, math and escaped signs.

Masking replaces characters one by one, so that columns stay what they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

COMMENT: Final = "\x1a"
OPAQUE: Final = "\x1b"

_QUOTE: Final = r"(?:[ \t]*>)*"
_FENCE: Final = re.compile(rf"({_QUOTE})[ \t]*(?:(?:[-*+]|\d{{1,9}}[.)])[ \t]+)*(`{{3,}}(?=[^`]*\Z)|~{{3,}})")
_LIST_ITEM: Final = re.compile(r"([ \t]*)([-*+]|\d{1,9}[.)])(?:([ \t]+)|\Z)")
_HEADING: Final = re.compile(r" {0,3}#{1,6}(?:[ \t]|\Z)")
_SPECIAL: Final = re.compile(r"\\.|`+|<!--|%%|\$\$|\$")
_INLINE_MATH: Final = re.compile(r"\$(?=\S)[^$\n]*?(?<=[^\s\\])\$(?!\d)")


@dataclass(slots=True)
class Masked:
    """The lines with the unmatched parts replaced, and which lines are code blocks as a whole."""

    lines: list[str]
    code: list[bool]


def mask(lines: list[str]) -> Masked:
    """The masked form of a note's body."""
    masker = _Masker(lines)
    masker.run()
    return Masked(masker.masked, masker.code)


def _width(indent: str) -> int:
    return len(indent.expandtabs(4))


class _Masker:
    """One pass over the lines, with the little state that code blocks and comments need."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.masked = list(lines)
        self.code = [False] * len(lines)
        self._last = {end: self._last_line_with(end) for end in ("-->", "%%", "$$")}
        self._list_content = 0
        self._after_blank = True

    def _last_line_with(self, end: str) -> int:
        return max((i for i, line in enumerate(self.lines) if end in line), default=-1)

    def run(self) -> None:
        i = 0
        while i < len(self.lines):
            line = self.lines[i]
            fence = _FENCE.match(line)
            if fence is not None and not self._is_indented_code(line):
                i = self._fenced(i, fence[1].count(">"), fence[2])
                self._after_blank = True
                continue
            if not line.strip():
                self._after_blank = True
                i += 1
                continue
            if self._after_blank and self._is_indented_code(line):
                self._hide_line(i)
                i += 1
                continue
            self._follow_lists(line)
            self._after_blank = False
            i = self._inline(i)

    def _is_indented_code(self, line: str) -> bool:
        indent = line[: len(line) - len(line.lstrip(" \t"))]
        return _width(indent) >= self._list_content + 4

    def _follow_lists(self, line: str) -> None:
        item = _LIST_ITEM.match(line)
        if item is not None:
            self._list_content = _width(item[1]) + len(item[2]) + 1
        elif self._after_blank and line[0] not in " \t":
            self._list_content = 0

    def _hide_line(self, i: int) -> None:
        self.masked[i] = OPAQUE * len(self.lines[i])
        self.code[i] = True

    def _fenced(self, i: int, quotes: int, sign: str) -> int:
        """Hide a fenced block and return the line after it; an unclosed one runs to the end."""
        close = re.compile(rf"{_QUOTE}[ \t]*{re.escape(sign[0])}{{{len(sign)},}}[ \t]*\Z")
        self._hide_line(i)
        for j in range(i + 1, len(self.lines)):
            if quotes and not self.lines[j].lstrip().startswith(">"):
                return j
            self._hide_line(j)
            if close.match(self.lines[j]):
                return j + 1
        return len(self.lines)

    def _inline(self, i: int) -> int:
        """Mask inside line i and return the next line to look at."""
        column = 0
        while True:
            special = _SPECIAL.search(self.lines[i], column)
            if special is None:
                return i + 1
            sign = special[0]
            if sign[0] == "\\":
                self._hide(i, special.start(), i, special.end(), OPAQUE)
                column = special.end()
                continue
            end = self._end_of(sign, i, special)
            if end is None:
                column = special.end()
                continue
            self._hide(i, special.start(), end[0], end[1], COMMENT if sign in ("<!--", "%%") else OPAQUE)
            i, column = end

    def _end_of(self, sign: str, i: int, special: re.Match[str]) -> tuple[int, int] | None:
        """Where what a sign opens ends, as line and column; `None` when it opens nothing."""
        if sign == "$":
            math = _INLINE_MATH.match(self.lines[i], special.start())
            return (i, math.end()) if math else None
        if sign[0] == "`":
            return self._end_of_code(sign, i, special.end())
        end = "-->" if sign == "<!--" else sign
        for j in range(i, self._last[end] + 1):
            found = self.lines[j].find(end, special.end() if j == i else 0)
            if found >= 0:
                return j, found + len(end)
        if sign == "<!--" and not self.lines[i][: special.start()].strip():
            return len(self.lines) - 1, len(self.lines[-1])
        return None

    def _end_of_code(self, ticks: str, i: int, column: int) -> tuple[int, int] | None:
        """The end of inline code, which may run over lines but not out of its paragraph."""
        close = re.compile(rf"(?<!`){ticks}(?!`)")
        for j in range(i, len(self.lines)):
            line = self.lines[j]
            if j > i and (
                not line.strip() or _LIST_ITEM.match(line) or _HEADING.match(line) or _FENCE.match(line)
            ):
                return None
            found = close.search(line, column if j == i else 0)
            if found is not None:
                return j, found.end()
        return None

    def _hide(self, i: int, start: int, j: int, end: int, sign: str) -> None:
        for at in range(i, j + 1):
            first = start if at == i else 0
            last = end if at == j else len(self.lines[at])
            text = self.masked[at]
            self.masked[at] = text[:first] + sign * (last - first) + text[last:]
