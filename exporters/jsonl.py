"""JSON Lines: the manifest and then one record per line, each as compact as JSON allows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from graphmem.formats import Exporter, ExportFile

# JSON lets these three stand in a string; tools that cut text at Unicode line ends do not.
_LINE_ENDS: Final = re.compile("[\x85\u2028\u2029]")


class JsonlExporter(Exporter):
    """Writes the canonical format, which `JsonlImporter` reads back to the same records."""

    name = "jsonl"
    suffix = ".jsonl"
    folder = False

    def write(self, manifest: dict[str, Any], records: Iterable[dict[str, Any]]) -> Iterator[ExportFile]:
        """One file of UTF-8 lines, each ended by LF, with keys in the order given.

        Raises `ValueError` for a number that is not finite, which JSON does not have.
        """
        yield ExportFile("", _lines(manifest, records))


def _lines(manifest: dict[str, Any], records: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    yield _line(encoder, manifest)
    for record in records:
        yield _line(encoder, record)


def _line(encoder: json.JSONEncoder, record: dict[str, Any]) -> bytes:
    text = encoder.encode(record)
    if not text.isascii():
        text = _LINE_ENDS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return text.encode() + b"\n"
