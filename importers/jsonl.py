"""JSON Lines: one record per line; also a whole file that is one JSON array or object of records.

The format is that of `gmem schema`. Lines are cut at LF only. What is tolerated, with a warning:
several objects on one line, raw control characters in strings, keys given twice (lists are united,
else the last one counts), NaN, infinities and numbers beyond 64 bits (kept as text). Damaged lines,
bytes that are not UTF-8 and lone surrogates cost their record and no other. Between Git's conflict
markers nothing is read; what stands outside them is the same on both sides and is.

A file that is one array, an object with the lists `entities`, `memories` and `relations`, or objects
printed over several lines, is read record by record as well; one line or record may have 32 MiB.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final

from graphmem.findings import Finding, finding
from graphmem.formats import Importer, Item, Rejected, Source
from graphmem.json_head import JsonHead, json_head
from graphmem.mapping import to_record
from graphmem.reading import HEAD_SIZE, SIZE_LIMIT
from graphmem.records import Place

from ._json_document import CONFLICT, Document, Valued
from ._json_values import MAX_DEPTH, Scanner
from ._memory_server_shapes import recognised as memory_server
from ._shapes import CONTAINERS, is_canonical, is_foreign, is_start_of_record
from ._window import Window

_LINE_SUFFIXES: Final = (".jsonl", ".ndjson")
_SUFFIXES: Final = (*_LINE_SUFFIXES, ".json")
_BREAKS: Final = (b"{", b"[", b",")
_MARKERS: Final = (b"<" * 7, b"=" * 7, b">" * 7, b"|" * 7)


class JsonlImporter(Importer):
    """Reads JSON Lines and whole-file JSON in the canonical format."""

    name = "jsonl"
    suffixes = _SUFFIXES

    def sniff(self, head: bytes, name: str) -> str | None:
        """Why the text is JSON of canonical records, judged by the keys of the first object.

        In a file with a suffix of this format a later line may show it, so that a damaged first line
        does not hide the rest; and where no line ends in `head`, a suffix for lines of JSON decides,
        unless what is seen is JSON of another kind.
        """
        plain = name.lower().removesuffix(".gz").removesuffix(".zst")
        if memory_server(head, lines=plain.endswith(_SUFFIXES)) is not None:
            return None  # whose reader takes records of ours as well
        seen = json_head(head)
        why = _recognised(seen)
        if why is not None or not plain.endswith(_SUFFIXES):
            return why
        first, *others = head.lstrip().split(b"\n")
        why = next(filter(None, (_recognised(json_head(line)) for line in others)), None)
        if why is None and plain.endswith(_LINE_SUFFIXES) and not others and _may_be_ours(first, seen):
            return f"a long first line in a file named '*{plain[plain.rfind('.') :]}'"
        return why

    def read(self, stream: BinaryIO, source: Source) -> Iterator[Item]:
        """The records and findings of a JSON text, in bounded memory."""
        findings: list[Finding] = []
        label = source.label
        lines = JsonLines(stream, source, findings)
        for value, place in lines.values():
            record = to_record(value, place, label, findings)
            if record is None:
                lines.rejected.append(Rejected(place, lines.raw()))
            if findings:
                yield from findings
                findings.clear()
                yield from lines.rejected
                lines.rejected.clear()
            if record is not None:
                yield record
        yield from findings
        yield from lines.rejected


class JsonLines:
    """The JSON values of one stream that should be records.

    `findings` receives what is wrong before the next value is yielded, and `rejected` the text of what
    that made useless.
    """

    def __init__(self, stream: BinaryIO, source: Source, findings: list[Finding]) -> None:
        self._stream = stream
        self._source = source
        self._findings = findings
        self._scanner = Scanner()
        self._in_conflict = False
        self.rejected: list[Rejected] = []
        self._line = ""
        self._document: Document | None = None

    def raw(self) -> str:
        """The text of the value that was yielded last."""
        return self._line.rstrip("\r\n") if self._document is None else self._document.raw()

    def values(self) -> Iterator[Valued]:
        """Every value with its place. Ordinary lines are decoded and scanned once, here."""
        readline, scan, odd = self._stream.readline, self._scanner.strict, self._scanner.odd
        number, offset = 1, 0
        line = readline(SIZE_LIMIT)
        while line and line.isspace():
            number, offset, line = number + 1, offset + len(line), readline(SIZE_LIMIT)
        if _breaks_off(line):
            window = Window(line.decode("utf-8", "surrogateescape"), number, offset, self._stream)
            yield from self._values_in(window)
            return
        while line:
            try:
                text = line.decode()
                value, end = scan(text, 0)
                plain = not odd and _is_plain(value, text, end)
            except (ValueError, StopIteration, RecursionError):
                plain = False
            if plain and not self._in_conflict:
                self._line = text
                yield value, Place(number, 1, offset)
            elif len(line) < SIZE_LIMIT or line.endswith(b"\n"):
                yield from self._careful(line, Place(number, 1, offset))
            else:
                self._report("record-too-large", "a line of more than 32 MiB", Place(number, 1, offset), line)
                while line and not line.endswith(b"\n"):
                    offset += len(line)
                    line = readline(SIZE_LIMIT)
            number, offset, line = number + 1, offset + len(line), readline(SIZE_LIMIT)

    def _careful(self, line: bytes, place: Place) -> Iterator[Valued]:
        """The values of a line that is not ordinary, and findings that say why."""
        self._scanner.odd.clear()
        if line[:7] in _MARKERS and CONFLICT.match(line[:9].decode("ascii", "replace")):
            self._conflict(line, place)
        elif not self._in_conflict and not line.isspace():
            text = line.decode("utf-8", "surrogateescape").rstrip("\r\n")
            window = Window(text, place.line, place.offset)
            yield from self._values_in(window, one_line=True)

    def _values_in(self, window: Window, *, one_line: bool = False) -> Iterator[Valued]:
        self._document = Document(
            window, self._scanner, self._source, self._findings, self.rejected, one_line
        )
        yield from self._document.values()
        self._document = None

    def _conflict(self, line: bytes, place: Place) -> None:
        """Note where a conflict starts and ends; each is reported once, at its first marker."""
        if not self._in_conflict:
            message = "an unresolved conflict; nothing between its markers was read"
            self._report("conflict-markers", message, place, line)
        self._in_conflict = not line.startswith(b">")

    def _report(self, rule: str, message: str, place: Place, line: bytes) -> None:
        start = line[max(0, place.column - 40) : place.column + 120]
        excerpt = start.decode("utf-8", "backslashreplace").strip()
        self._findings.append(finding(rule, message, file=self._source.label, place=place, excerpt=excerpt))


def _is_plain(value: object, text: str, end: int) -> bool:
    """Whether a scanned line is one record and nothing in it needs a second look."""
    rest = text[end:]
    return (
        (rest == "\n" or not rest.strip(" \t\r\n"))
        and (
            ("type" in value or "subject" in value)
            if type(value) is dict
            else type(value) is list and bool(value) and type(value[0]) is str
        )
        and "\\ud" not in text
        and "\\uD" not in text
        and text.count("{") + text.count("[") <= MAX_DEPTH
    )


def _breaks_off(line: bytes) -> bool:
    """Whether a first line ends where JSON printed over several lines is broken, or is all of the file.

    No array of records starts with three brackets: that is a damaged line.
    """
    text = line.strip(b" \t\r\n")
    return (
        text.startswith((b"{", b"["))
        and not text.startswith(b"[[[")
        and (text.endswith(_BREAKS) or (text.startswith(b"[") and len(line) >= SIZE_LIMIT))
    )


def _may_be_ours(line: bytes, seen: JsonHead | None) -> bool:
    """Whether a first line is longer than what is looked at and shows nothing that is not ours."""
    if len(line) < HEAD_SIZE // 2:
        return False
    return seen is None or not seen.keys or (seen.cut and not is_foreign(seen.type, seen.keys))


def _recognised(seen: JsonHead | None) -> str | None:
    """Why what the start of a JSON text shows is ours."""
    if seen is None:
        return None
    if seen.strings == 3:
        return "JSON lists of subject, predicate and object"
    if seen.keys and seen.keys[0] in CONTAINERS and seen.inner is not None:
        key, inner = seen.keys[0], seen.inner
        ours = inner.strings == 3 or is_canonical(inner.type or CONTAINERS[key], inner.keys)
        return f"a JSON object with a list of {key}" if ours else None
    if seen.cut and seen.type is None and is_start_of_record(seen.keys):
        what = "objects with the keys of records"
    elif is_canonical(seen.type, seen.keys):
        what = f"objects of type '{seen.type}'" if seen.type else "objects with subject, predicate and object"
    else:
        return None
    return f"a JSON array of {what}" if seen.listed else f"JSON {what}"
