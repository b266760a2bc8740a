"""The records of a run that were rejected, as text that can be repaired and imported again."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import Final, NamedTuple, Self

from graphmem.canonical import to_mapping
from graphmem.formats import Rejected
from graphmem.outfile import replacing, room_for_temporary
from graphmem.records import Record

DOCUMENTS_SUFFIX: Final = ".yaml"
"""What is added to the name of the file for damaged YAML documents, which no line of JSON can hold."""
_IN_MEMORY: Final = 1024 * 1024
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_encode_ascii = json.JSONEncoder(separators=(",", ":")).encode


class Mark(NamedTuple):
    """How much was kept at some moment."""

    lines: int
    documents: int
    kept: int


class Rejects:
    """Keeps rejected records, on disk when they are many. Use it as a context manager.

    A record that was understood is kept as a line of canonical JSONL, one that was not as the text that
    stood in the input. `count` says how many were kept.
    """

    def __init__(self) -> None:
        self._lines = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 -- closed by close()
        self._documents = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
        self.count = 0

    def __enter__(self) -> Self:
        """The keeper itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Forget what was kept."""
        for kept in (self._lines, self._documents):
            with suppress(OSError):  # of what could not be written, which nobody is going to read
                kept.close()

    def keep(self, rejected: Record | Rejected) -> None:
        """Keeps one rejected record. Raises `OutputUnwritable` where there is no room for it."""
        self.count += 1
        with room_for_temporary():
            if not isinstance(rejected, Rejected):
                self._lines.write(_line(rejected))
            elif rejected.syntax == "yaml":
                self._documents.write(_document(rejected.raw))
            else:
                # JSON has no line end inside a value, so a record over several lines may become one.
                self._lines.write(b" ".join(_bytes(rejected.raw).split(b"\n")).strip() + b"\n")

    def mark(self) -> Mark:
        """A moment to which `rewind` goes back."""
        return Mark(self._lines.tell(), self._documents.tell(), self.count)

    def rewind(self, mark: Mark) -> None:
        """Forgets what was kept since a mark."""
        for kept, size in ((self._lines, mark.lines), (self._documents, mark.documents)):
            kept.seek(size)
            kept.truncate()
        self.count = mark.kept

    def write(self, target: Path) -> list[Path]:
        """Writes what was kept; the paths of the files.

        JSON lines go to `target`, which is empty when there are none, so that an older run's rejects never
        stay behind; damaged YAML documents go to a file beside it. Raises `OutputUnwritable`.
        """
        written = [target]
        self._copy(self._lines, target)
        if self._documents.tell():
            written.append(target.with_name(target.name + DOCUMENTS_SUFFIX))
            self._copy(self._documents, written[-1])
        return written

    @staticmethod
    def _copy(kept: SpooledTemporaryFile[bytes], target: Path) -> None:
        end = kept.tell()
        kept.seek(0)
        with replacing(target) as stream:
            shutil.copyfileobj(kept, stream)
        kept.seek(end)


def _line(record: Record) -> bytes:
    mapping = to_mapping(record)
    with suppress(UnicodeEncodeError):
        return _encode(mapping).encode() + b"\n"
    return _encode_ascii(mapping).encode() + b"\n"


def _document(raw: str) -> bytes:
    """The text as a YAML document that may follow another."""
    start = "" if raw.startswith("---") else "...\n" if raw.startswith("%") else "---\n"
    return _bytes(start + raw.rstrip("\n") + "\n")


def _bytes(raw: str) -> bytes:
    """The bytes as they stood in the input, also where they were not UTF-8."""
    with suppress(UnicodeEncodeError):
        return raw.encode("utf-8", "surrogateescape")
    return raw.encode("utf-8", "backslashreplace")
