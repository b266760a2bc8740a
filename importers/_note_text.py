"""The lines of a note and where they stand in its bytes."""

from __future__ import annotations

from typing import BinaryIO

from graphmem.findings import Finding, finding
from graphmem.formats import Source
from graphmem.records import Place

from ._json_values import undecodable


class NoteText:
    """The lines of a note without their line ends; only LF and CRLF end a line.

    Lines are counted from 0 here and from 1 in places.
    """

    __slots__ = ("_starts", "lines")

    def __init__(self, text: str) -> None:
        self.lines: list[str] = []
        self._starts: list[int] = []
        start = 0
        ascii_only = text.isascii()
        for line in text.split("\n"):
            self._starts.append(start)
            start += (len(line) if ascii_only else len(line.encode())) + 1
            self.lines.append(line.removesuffix("\r"))

    def place(self, line: int, column: int = 0) -> Place:
        """The place of a character, given its line and column counted from 0."""
        before = self.lines[line][:column]
        return Place(line + 1, column + 1, self._starts[line] + len(before.encode()))


def read_note(stream: BinaryIO, source: Source, limit: int) -> NoteText | Finding:
    """The text of a note of at most `limit` bytes, or the finding that says why it cannot be read.

    Where the input was in another encoding, what that could not decode arrives as a byte that is not UTF-8.
    """
    data = stream.read(limit + 1)
    if len(data) > limit:
        message = f"the note is larger than {limit // 1024 // 1024} MB and was not imported"
        return finding("record-too-large", message, file=source.label, place=Place(1, 1, 0))
    try:
        return NoteText(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        line_start = data.rfind(b"\n", 0, error.start) + 1
        column = len(data[line_start : error.start].decode("utf-8", "replace"))
        place = Place(data.count(b"\n", 0, error.start) + 1, column + 1, error.start)
        message = f"{undecodable(data[error.start], source)}; the note was not imported"
        return finding("bad-encoding", message, file=source.label, place=place)
