"""YAML: documents that are records, lists of records, or mappings with a list of records per kind.

A document (between lines `---`) is one record, a short triple `[A, depends_on, B]`, a list of either,
or a mapping with lists under `entities`, `memories` and `relations`, whose elements need no `type`.
The shapes are those of `gmem schema`.

An unquoted scalar is the text that was written (`1.10`, `no`, `2024-01-15`, `0x1F`) wherever the schema
wants text; `importance`, `weight`, `position` and `stub` are read as numbers and flag; in `properties`
and unknown keys it is a JSON value where JSON would write the same letters (`true`, `42`, `0.5`, `null`).

A damaged document costs no other document, a damaged item of a block list no other item. Keys given
twice are united when they are lists, else the last one counts. Anchors and aliases are followed up to
100,000 values per record; merge keys stay plain keys; tags other than those of JSON's types are
refused. Control characters come through, with a warning. A file with conflict markers is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import BinaryIO, Final

from graphmem.findings import Finding, finding
from graphmem.formats import Importer, Item, Rejected, Source
from graphmem.mapping import to_record
from graphmem.records import Place

from ._yaml_sniff import recognised

_SUFFIXES: Final = (".yaml", ".yml")


class YamlImporter(Importer):
    """Reads YAML in the canonical format."""

    name = "yaml"
    suffixes = _SUFFIXES

    def sniff(self, head: bytes, name: str) -> str | None:
        """Why the text is YAML of canonical records, judged by the keys of the first record."""
        plain = name.lower().removesuffix(".gz").removesuffix(".zst")
        return recognised(head, plain.endswith(_SUFFIXES))

    def read(self, stream: BinaryIO, source: Source) -> Iterator[Item]:
        """The records and findings of a YAML text, in bounded memory."""
        from ._yaml_documents import documents, spooled
        from ._yaml_text import YamlText

        findings: list[Finding] = []
        rejected: list[Rejected] = []
        copy, conflicts = spooled(stream)
        with copy:
            if conflicts:
                for place, line in conflicts:
                    yield self._conflict(place, line, source)
                return
            for piece in documents(copy):
                if piece.data is None:
                    place = Place(piece.line, 1, piece.offset)
                    message = "a document of more than 32 MiB"
                    yield finding("record-too-large", message, file=source.label, place=place)
                    continue
                for value, place in YamlText(piece, source, findings, rejected).records():
                    record = to_record(value, place, source.label, findings)
                    if record is None:
                        rejected.append(Rejected(place, json.dumps(value, ensure_ascii=False)))
                    yield from self._problems(findings, rejected)
                    if record is not None:
                        yield record
                yield from self._problems(findings, rejected)

    @staticmethod
    def _problems(findings: list[Finding], rejected: list[Rejected]) -> Iterator[Item]:
        """What is wrong, then the text of what that made useless; both lists are empty afterwards."""
        yield from findings
        yield from rejected
        findings.clear()
        rejected.clear()

    def _conflict(self, place: Place, line: bytes, source: Source) -> Finding:
        message = "an unresolved conflict; nothing of this file was read"
        excerpt = line.decode("utf-8", "replace").strip()
        return finding("conflict-markers", message, file=source.label, place=place, excerpt=excerpt)
