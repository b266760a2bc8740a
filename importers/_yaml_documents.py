"""A YAML stream cut into its documents, so that one that is damaged costs no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import IO, BinaryIO, Final

from graphmem.reading import SIZE_LIMIT
from graphmem.records import Place

_MARKER: Final = re.compile(rb"---(?=[ \t\r\n]|$)")
_PROLOG: Final = re.compile(rb"[ \t]*(?:#[^\n]*)?\r?\n?$|%[^\n]*\n?$")
_CONFLICT: Final = re.compile(rb"<{7}(?=[ \r\n]|$)")
_IN_MEMORY: Final = 8 * 1024 * 1024


@dataclass(slots=True)
class Piece:
    """The bytes of one document with the place of the first; `None` where it is too large to be read."""

    data: bytes | None
    line: int
    offset: int


def spooled(stream: BinaryIO) -> tuple[IO[bytes], list[tuple[Place, bytes]]]:
    """The stream again from its start, on disk when it is large, and the conflicts that start in it."""
    copy = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 (the caller closes it)
    conflicts: list[tuple[Place, bytes]] = []
    number, offset = 1, 0
    for line in iter(lambda: stream.readline(SIZE_LIMIT), b""):
        if line.startswith(b"<") and _CONFLICT.match(line):
            conflicts.append((Place(number, 1, offset), line))
        copy.write(line)
        number += line.endswith(b"\n")
        offset += len(line)
    copy.seek(0)
    return copy, conflicts


def documents(stream: IO[bytes]) -> Iterator[Piece]:
    """The stream cut before every line that starts with `---`, which nothing inside a document may.

    Directives and comments stay with the document that follows them.
    """
    lines: list[bytes] = []
    line_number, number, offset, size = 1, 1, 0, 0
    only_prolog = True
    for line in iter(lambda: stream.readline(SIZE_LIMIT), b""):
        if not only_prolog and line.startswith(b"---") and _MARKER.match(line):
            yield Piece(b"".join(lines) if size <= SIZE_LIMIT else None, line_number, offset)
            lines, line_number, offset, size = [], number, offset + size, 0
            only_prolog = True
        only_prolog = only_prolog and _PROLOG.match(line) is not None
        size += len(line)
        if size <= SIZE_LIMIT:
            lines.append(line)
        number += line.endswith(b"\n")
    if lines or size:
        yield Piece(b"".join(lines) if size <= SIZE_LIMIT else None, line_number, offset)
