"""JSON texts that are not one record per line: an array of records, an object of lists, values in a row.

Records are taken one by one from a growing window, so that memory stays bounded by the greatest record.
After a damaged one reading goes on at the next line that starts a record at the same indentation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from typing import Any, Final, TypeAlias

from graphmem.findings import Finding, finding
from graphmem.formats import Rejected, Source
from graphmem.reading import SIZE_LIMIT
from graphmem.records import Place

from ._json_values import Scanner, is_too_deep, lone_surrogate, undecodable, undecoded
from ._shapes import CONTAINERS, contained
from ._window import Window

Valued: TypeAlias = tuple[Any, Place]

CONFLICT: Final = re.compile(r"(?:<{7}|={7}|>{7}|\|{7})(?=[ \r\n]|$)")
_CONFLICT_END: Final = re.compile(r"^>{7}(?:[ \r][^\n]*)?\n", re.MULTILINE)
_RECORDS: Final = re.compile(r"\[[ \t\r\n]*[\[{]")
_LIST_KEY: Final = re.compile(rf'"({"|".join(CONTAINERS)})"[ \t\r\n]*:[ \t\r\n]*\[')
_CONTAINER: Final = re.compile(r"\{[ \t\r\n]*" + _LIST_KEY.pattern)
_KEY: Final = re.compile(r'"((?:[^"\\\n]|\\.)*)"[ \t\r\n]*:')
_LOOK_AHEAD: Final = 4096
_TAIL: Final = 12  # no literal or escape that the end of the text cuts is longer


class _BrokenTextError(Exception):
    """Text that is not a JSON value: the rule, what is wrong, and where."""

    def __init__(self, rule: str, message: str, at: int) -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message
        self.at = at


class Document:
    """The records of one JSON text, with a cursor in it.

    `findings` receives what is wrong with a record before the record itself is yielded. With
    `one_line` the text is a line of its own, which a fault ends.
    """

    def __init__(
        self,
        window: Window,
        scanner: Scanner,
        source: Source,
        findings: list[Finding],
        rejected: list[Rejected],
        one_line: bool = False,
    ) -> None:
        self._window = window
        self._scanner = scanner
        self._source = source
        self._findings = findings
        self._rejected = rejected
        self._one_line = one_line
        self._at = 0
        self._span = (0, 0)
        self._gave_up = False

    def raw(self) -> str:
        """The text of the value that was yielded last."""
        return self._window.text[slice(*self._span)]

    def values(self) -> Iterator[Valued]:
        """Every value that should be a record, with its place."""
        number = 0
        while self._skip():
            number += 1
            if self._one_line and number == 2:
                self._report("two-records-on-a-line", "another JSON value on the same line", self._at)
            self._ensure(_LOOK_AHEAD)
            if _RECORDS.match(self._window.text, self._at):
                yield from self._list()
            elif _CONTAINER.match(self._window.text, self._at):
                yield from self._container()
            else:
                yield from self._record(None if self._one_line else "")
            self._forget()

    # ---- the parts of a text ---------------------------------------------------------------------------

    def _record(self, indent: str | None, key: str | None = None) -> Generator[Valued, None, bool]:
        """The value at the cursor; false when the text there is damaged and was skipped."""
        start = self._at
        try:
            value, end = self._value(start)
        except _BrokenTextError as broken:
            self._skip_fault(broken, indent)
            return False
        place = self._window.place(start)
        self._at = end
        self._span = (start, end)
        if self._is_sound(value, start, end, place):
            yield value if key is None else contained(key, value), place
        return True

    def _list(self, key: str | None = None) -> Iterator[Valued]:
        """The elements of the array that opens at the cursor."""
        self._at += 1
        indent: str | None = None
        comma, first = True, True
        while True:
            before = self._at
            if not self._skip():
                return self._end_early("the text ends inside an array of records")
            if first:
                space = self._window.text[before : self._at]
                indent, first = space.rpartition("\n")[2] if "\n" in space else None, False
            sign = self._window.text[self._at]
            if sign == "]":
                self._at += 1
                if key is None and indent is not None and not self._at_value_or_end():
                    fault = _BrokenTextError("bad-json", "an array that is closed too early", self._at)
                    self._skip_fault(fault, indent)
                    comma = True
                    continue
                return
            if sign == "," and not comma:
                self._at += 1
                comma = True
                continue
            if not comma:
                broken = _BrokenTextError("bad-json", "expecting ',' or ']' after a record", self._at)
                if sign not in "[{":
                    self._skip_fault(broken, indent)
                    comma = True
                    continue
                self._report(broken.rule, broken.message, self._at)
            comma = not (yield from self._record(indent, key))
            self._forget()

    def _container(self) -> Iterator[Valued]:
        """The records of the lists in the object that opens at the cursor."""
        self._at += 1
        while True:
            if not self._skip():
                return self._end_early("the text ends inside an object of lists")
            self._ensure(_LOOK_AHEAD)
            text, at = self._window.text, self._at
            if text[at] in "},":
                self._at += 1
                if text[at] == "}":
                    return
            elif listed := _LIST_KEY.match(text, at):
                self._at = listed.end() - 1
                yield from self._list(listed[1])
            elif key := _KEY.match(text, at):
                message = f"the key '{key[1][:80]}' beside lists of records is not read"
                self._report("unknown-shape", message, at)
                self._at = key.end()
                self._pass_value()
            else:
                self._skip_fault(_BrokenTextError("bad-json", "expecting a key in double quotes", at), None)

    def _pass_value(self) -> None:
        if self._skip():
            try:
                _, self._at = self._value(self._at)
            except _BrokenTextError as broken:
                self._skip_fault(broken, None)
            self._scanner.odd.clear()

    # ---- one value -------------------------------------------------------------------------------------

    def _value(self, start: int) -> tuple[Any, int]:
        """The value at an index and where it ends, reading on while the text may just be cut."""
        window = self._window
        while True:
            try:
                value, end = self._scanned(start)
            except json.JSONDecodeError as error:
                message, at = error.msg, error.pos
            except StopIteration as stop:
                message, at = "expecting a value", stop.value
            except RecursionError:
                raise _BrokenTextError("too-deep", "the value is nested absurdly deep", start) from None
            else:
                if end < len(window.text) or window.text[start] in '{["' or not window.grow():
                    return value, end
                continue
            if not message.startswith("Unterminated string") and at < len(window.text) - _TAIL:
                raise _BrokenTextError("bad-json", _worded(message), at)
            if len(window.text) - start > SIZE_LIMIT:
                raise _BrokenTextError("record-too-large", "a record of more than 32 MiB", start)
            if not window.grow(len(window.text) - start):
                rule = "bad-json" if self._one_line else "truncated-input"
                raise _BrokenTextError(rule, _worded(message), at)

    def _scanned(self, start: int) -> tuple[Any, int]:
        text, odd = self._window.text, self._scanner.odd
        odd.clear()
        try:
            return self._scanner.strict(text, start)
        except json.JSONDecodeError as error:
            # A raw line end in a string is more likely a missing quote than a text over two lines.
            if not error.msg.startswith("Invalid control character") or text[error.pos] == "\n":
                raise
            odd.clear()
            result = self._scanner.loose(text, start)
            message = f"the control character U+{ord(text[error.pos]):04X} inside a string"
            odd.append(("raw-control-character", message, error.pos))
            return result

    def _is_sound(self, value: Any, start: int, end: int, place: Place) -> bool:
        """Whether a value can be a record; reports what is odd in it, and why it cannot."""
        text = self._window.text
        for rule, message, at in self._scanner.odd:
            self._report(rule, message, start if at is None else at)
        self._scanner.odd.clear()
        bad_byte = undecoded(text, start, end)
        half = lone_surrogate(text, start, end)
        if bad_byte is not None:
            self._report("bad-encoding", undecodable(ord(text[bad_byte]) & 0xFF, self._source), bad_byte)
        elif half is not None:
            self._report("lone-surrogate", f"{text[half : half + 6]} is half of a character", half)
        elif is_too_deep(value):
            self._findings.append(
                finding("too-deep", "the record is nested too deep", file=self._source.label, place=place)
            )
        else:
            return True
        self._rejected.append(Rejected(place, text[start:end]))
        return False

    # ---- moving on -------------------------------------------------------------------------------------

    def _skip(self) -> bool:
        """Move the cursor over white space; false at the end of the text."""
        at = self._window.skip_space(self._at)
        self._at = len(self._window.text) if at is None else at
        return at is not None

    def _at_value_or_end(self) -> bool:
        return not self._skip() or self._window.text[self._at] in "[{"

    def _ensure(self, size: int) -> None:
        if len(self._window.text) - self._at < size:
            self._window.grow()

    def _forget(self) -> None:
        self._at = self._window.drop(self._at)

    def _skip_fault(self, broken: _BrokenTextError, indent: str | None) -> None:
        """Report a fault and move the cursor to the next record of that indentation, or to the end."""
        window, start = self._window, self._at
        place = window.place(start)
        window.hold(start)
        is_conflict = self._report_fault(broken, indent)
        self._move_on(indent)
        raw = window.held(self._at)
        if raw is not None and not is_conflict:
            self._rejected.append(Rejected(place, raw.strip(" \t\r\n,")))

    def _report_fault(self, broken: _BrokenTextError, indent: str | None) -> bool:
        """Report a fault; whether it is a conflict, which is passed by."""
        text, at = self._window.text, broken.at
        line = text.rfind("\n", 0, at) + 1
        if CONFLICT.match(text, line):
            self._report("conflict-markers", "an unresolved conflict; its records were not read", line)
            self._at = line
            self._search(_CONFLICT_END)
            self._at = max(0, self._at - 1)
            return True
        bad_byte = undecoded(text, self._at, at + 1)
        if bad_byte is not None:
            self._report("bad-encoding", undecodable(ord(text[bad_byte]) & 0xFF, self._source), bad_byte)
        else:
            if text[at : at + 1] in ("{", "[") and not text[line:at].strip():
                at = len(text[:at].rstrip())  # the record before ends too early, this one is innocent
            rest = "" if indent is not None or self._one_line else "; the rest was not read"
            self._report(broken.rule, broken.message + rest, max(at, self._at))
        return False

    def _move_on(self, indent: str | None) -> None:
        """Move the cursor to the next record of that indentation, or to the end."""
        if indent is not None and self._search(re.compile(rf"\n{re.escape(indent)}(?=[\[{{])")):
            return
        while self._window.grow():
            self._at = len(self._window.text)
            self._forget()
        self._at = len(self._window.text)
        self._gave_up = True

    def _end_early(self, message: str) -> None:
        """Report that the text ends too early, unless a fault before it was what ended the reading."""
        if not self._gave_up:
            self._report("truncated-input", message, self._at)
        self._gave_up = True

    def _search(self, expression: re.Pattern[str]) -> bool:
        """Move the cursor behind the next match, or to the end of the text."""
        while True:
            match = expression.search(self._window.text, self._at)
            if match:
                self._at = match.end()
                return True
            start = self._window.text.rfind("\n", self._at)
            self._at = start if start >= 0 else max(self._at, len(self._window.text) - _LOOK_AHEAD)
            self._forget()
            if not self._window.grow():
                self._at = len(self._window.text)
                return False

    def _report(self, rule: str, message: str, at: int) -> None:
        text = self._window.text
        excerpt = text[max(0, at - 40) : at + 60].encode("utf-8", "replace").decode().strip()
        place = self._window.place(at)
        self._findings.append(finding(rule, message, file=self._source.label, place=place, excerpt=excerpt))


def _worded(message: str) -> str:
    """What the scanner says of a fault, in our words where they are clearer."""
    if message.startswith("Unterminated string"):
        return "a string that is not closed"
    if message.startswith("Invalid control character"):
        return "a string that is not closed on its line"
    return message[:1].lower() + message[1:].removesuffix(" at")
