"""The records of one YAML document with their places, going on after a fault where that is possible.

Characters that YAML forbids or takes for line ends are hidden from the parser behind characters of the
private use area and put back, so that they come through as in JSON.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Final

import yaml

from graphmem.findings import Finding, finding
from graphmem.formats import Rejected, Source
from graphmem.records import Place

from ._json_values import undecodable
from ._window import Window
from ._yaml_composer import Composed, Composer
from ._yaml_documents import Piece

_MOST_FAULTS: Final = 100
_HIDDEN: Final = re.compile("[^\t\n\r -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NEXT_KEY: Final = re.compile(r"""^( *)["']?[A-Za-z_]\w*["']?[ \t]*:(?=[ \t\r\n]|$)""", re.MULTILINE)
_PRIVATE: Final = range(0xE000, 0xF900)


class YamlText:
    """One document. `findings` receives what is wrong with a record before the record is yielded.

    `rejected` receives the text of records that are not: each a YAML document of its own.
    """

    def __init__(
        self, piece: Piece, source: Source, findings: list[Finding], rejected: list[Rejected]
    ) -> None:
        assert piece.data is not None
        text = piece.data.decode("utf-8", "surrogateescape")
        self._source = source
        self._findings = findings
        self._rejected = rejected
        self._window = Window(text, piece.line, piece.offset)
        self._hidden = [match.start() for match in _HIDDEN.finditer(text)]
        self._shown: dict[int, str] = {}
        if self._hidden:
            text = self._hide(text)
        self._text = text

    def records(self) -> Iterator[tuple[Any, Place]]:
        """Every sound record with its place."""
        parts: list[tuple[int, int, str | None]] = [(0, len(self._text), None)]
        faults = 0
        while parts:
            start, end, key = parts.pop()
            composer = Composer(self._text[start:end], key)
            try:
                for composed in composer.records():
                    if self._is_sound(composed, start):
                        value = self._restored(composed.value) if self._shown else composed.value
                        yield value, self._window.place(start + composed.start)
                    else:
                        self._reject_record(start + composed.start, start + composed.end, composer.list_key)
            except yaml.YAMLError as error:
                faults += 1
                at = self._report_fault(error, start)
                rest = self._after_fault(composer, start, end, at) if faults < _MOST_FAULTS else []
                if faults == _MOST_FAULTS:
                    self._report("bad-yaml", "too many faults; the rest of the document was not read", start)
                self._reject_part(start + composer.done, rest[0][0] if rest else end, composer.list_key)
                parts.extend(reversed(rest))

    # ---- characters the parser must not see --------------------------------------------------------

    def _hide(self, text: str) -> str:
        found = sorted({text[at] for at in self._hidden})
        free = (chr(code) for code in _PRIVATE if chr(code) not in text)
        hidden = {ord(sign): stand_in for sign, stand_in in zip(found, free, strict=False)}
        self._shown = {ord(stand_in): chr(code) for code, stand_in in hidden.items()}
        return text.translate(hidden)

    def _restored(self, value: Any) -> Any:
        if isinstance(value, str):
            return value.translate(self._shown)
        if isinstance(value, list):
            return [self._restored(one) for one in value]
        if isinstance(value, dict):
            return {self._restored(key): self._restored(one) for key, one in value.items()}
        return value

    # ---- what is wrong -----------------------------------------------------------------------------

    def _is_sound(self, composed: Composed, start: int) -> bool:
        """Whether a record can be used; reports what is odd in it."""
        sound = composed.sound
        for rule, message, at in composed.odd:
            self._report(rule, message, start + at)
        for at in self._hidden_within(start + composed.start, start + composed.end):
            sign = self._window.text[at]
            if "\udc80" <= sign <= "\udcff":
                self._report("bad-encoding", undecodable(ord(sign) & 0xFF, self._source), at)
                return False
            if sign < " ":
                message = f"the control character U+{ord(sign):04X} in the text"
                self._report("raw-control-character", message, at)
                break
        return sound

    def _hidden_within(self, start: int, end: int) -> list[int]:
        return self._hidden[bisect_left(self._hidden, start) : bisect_left(self._hidden, end)]

    def _report_fault(self, error: yaml.YAMLError, start: int) -> int:
        """Report what the parser says; the index where it stopped."""
        mark = getattr(error, "problem_mark", None)
        begun = getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        context = getattr(error, "context", None)
        stopped = start + mark.index if mark is not None else len(self._text)
        if begun is not None and (
            mark is None or "end of stream" in problem or _spans_lines(context, begun, mark)
        ):
            mark = begun  # where the quote or bracket opens that nothing closes
        at = start + mark.index if mark is not None else start
        message = f"{problem} {context}" if context else f"{problem}"
        self._report("bad-yaml", message.replace("\n", " "), min(at, len(self._text)))
        return stopped

    def _report(self, rule: str, message: str, at: int) -> None:
        place = self._window.place(at)
        excerpt = self._window.text[max(0, at - 40) : at + 60].encode("utf-8", "replace").decode()
        self._findings.append(
            finding(rule, message, file=self._source.label, place=place, excerpt=excerpt.strip())
        )

    # ---- what was not read -------------------------------------------------------------------------

    def _reject_record(self, start: int, end: int, key: str | None) -> None:
        """Keep a record that cannot be used, at the indentation where it stood."""
        text = self._window.text
        column = start - (text.rfind("\n", 0, start) + 1)
        raw = f"{' ' * column}{text[start:end].rstrip()}\n"
        if key is not None and column >= 2:
            raw = f"{key}:\n{' ' * (column - 2)}- {raw.lstrip(' ')}"
        self._rejected.append(Rejected(self._window.place(start), raw, "yaml"))

    def _reject_part(self, start: int, end: int, key: str | None) -> None:
        """Keep the text that a fault made unreadable, whole lines of it."""
        text = self._window.text
        if not text[start : start + 1].strip("- "):
            start = text.rfind("\n", 0, start) + 1
        raw = text[start:end].strip("\n") + "\n"
        if key is not None and not text[:start].rpartition("\n")[2].strip():
            raw = f"{key}:\n{raw}"
        self._rejected.append(Rejected(self._window.place(start), raw, "yaml"))

    # ---- going on ----------------------------------------------------------------------------------

    def _after_fault(
        self, composer: Composer, start: int, end: int, stopped: int
    ) -> list[tuple[int, int, str | None]]:
        """What is left to read after a fault in a block list: its next items, and what follows it."""
        if composer.list_column is None:
            return []
        item = re.compile(rf"^ {{{composer.list_column}}}-(?=[ \t\r\n])", re.MULTILINE)
        begun = start + composer.done
        if not self._text[begun : begun + 1].strip("- "):
            begun = self._text.rfind("\n", 0, begun) + 1
        items = item.finditer(self._text, begun, end)
        # The first dash behind the last whole item opens the damaged one, unless the fault lies before it.
        resume = next(items, None)
        if resume is not None and resume.start() <= stopped:
            resume = next(items, None)
        after = self._list_end(begun, end, composer.list_column) if composer.list_key else end
        parts: list[tuple[int, int, str | None]] = []
        if resume is not None and resume.start() < after:
            parts.append((resume.start(), after, composer.list_key))
        if after < end:
            parts.append((after, end, None))
        return parts

    def _list_end(self, start: int, end: int, column: int) -> int:
        """Where a key follows that stands no further right than the items of the list."""
        for match in _NEXT_KEY.finditer(self._text, start, end):
            if len(match[1]) <= column:
                return match.start()
        return end


def _spans_lines(context: str | None, begun: Any, stopped: Any) -> bool:
    """Whether a bracket was opened on a line before the one where the parser stopped."""
    return context is not None and "flow" in context and bool(begun.line != stopped.line)
