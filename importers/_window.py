"""A growing stretch of text in which every character's line, column and byte offset are known."""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from typing import BinaryIO, Final

from graphmem.reading import SIZE_LIMIT
from graphmem.records import Place

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_BLOCK: Final = 256 * 1024


class Window:
    """Text, of which more is read from `stream` when it is asked for.

    Bytes that are not UTF-8 stand in it as surrogates, so that offsets stay right and whoever reads
    the text can tell. `line` and `offset` are those of the first character.
    """

    def __init__(self, text: str, line: int, offset: int, stream: BinaryIO | None = None) -> None:
        self.text = text
        self._stream = stream
        self._decode = getincrementaldecoder("utf-8")("surrogateescape").decode
        self._at, self._line, self._line_start, self._offset = 0, line, 0, offset
        self._held: list[str] = []
        self._held_from: int | None = None

    def grow(self, least: int = 0) -> bool:
        """Read more text, at least `least` characters where there are as many; false at the end."""
        pieces: list[str] = []
        while self._stream is not None and (not pieces or sum(map(len, pieces)) < least):
            block = self._stream.read(_BLOCK)
            pieces.append(self._decode(block, not block))
            if not block:
                self._stream = None
        self.text += "".join(pieces)
        return any(pieces)

    def drop(self, at: int) -> int:
        """Forget the text before `at` where that is worth while; the new index of what stands there."""
        if at < _BLOCK:
            return at
        self._advance(at)
        if self._held_from is not None:
            self._hold_on(at)
        self.text = self.text[at:]
        self._at -= at
        self._line_start -= at
        return 0

    def hold(self, at: int) -> None:
        """Keep the text from `at` on, also where it is dropped, until `held` takes it."""
        self._held, self._held_from = [], at

    def held(self, at: int) -> str | None:
        """The text from where `hold` was told up to `at`; `None` when it was more than is kept."""
        start, self._held_from = self._held_from, None
        if start is None:
            return None
        text = "".join(self._held) + self.text[start:at]
        self._held = []
        return text if len(text) <= SIZE_LIMIT else None

    def _hold_on(self, at: int) -> None:
        """Put the held part of what is being dropped aside."""
        start = self._held_from or 0
        self._held_from = max(0, start - at)
        self._held.append(self.text[start:at])
        if sum(map(len, self._held)) > SIZE_LIMIT:
            self._held_from = None

    def skip_space(self, at: int) -> int | None:
        """The index of the first character from `at` that is not white space, `None` at the end."""
        while True:
            match = _SPACE.match(self.text, at)
            at = match.end() if match else at
            if at < len(self.text):
                return at
            if not self.grow():
                return None

    def place(self, at: int) -> Place:
        """The place of the character at an index; quick when asked in rising order."""
        if at >= self._at:
            self._advance(at)
            return Place(self._line, at - self._line_start + 1, self._offset)
        line = self._line - self.text.count("\n", at, self._at)
        column = at - self.text.rfind("\n", 0, at)
        behind = len(self.text[at : self._at].encode("utf-8", "surrogateescape"))
        if line == self._line:
            column = at - self._line_start + 1
        return Place(line, column, self._offset - behind)

    def _advance(self, at: int) -> None:
        passed = self.text[self._at : at]
        self._line += passed.count("\n")
        newline = passed.rfind("\n")
        if newline >= 0:
            self._line_start = self._at + newline + 1
        self._offset += len(passed.encode("utf-8", "surrogateescape"))
        self._at = at
