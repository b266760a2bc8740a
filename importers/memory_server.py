"""The files of the MCP memory server and its forks: `memory.jsonl`, the older `memory.json`, and dumps.

An entity's observations become memories about it, a relation a relation; names alone are identities, so
the first type that a file gives a name is its kind. Keys that the server does not have are kept as
properties. What several lines say of one entity is united. Records of the canonical format may stand
in the same file, as they do in a file of rejects. Text is read as that of the format `jsonl` is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final

from graphmem.findings import Finding
from graphmem.formats import Importer, Item, Rejected, Source

from ._memory_server_answers import Answers
from ._memory_server_records import Graph, Value
from ._memory_server_shapes import recognised
from .jsonl import JsonLines

_SUFFIXES: Final = (".jsonl", ".ndjson", ".json")


class MemoryServerImporter(Importer):
    """Reads what the MCP memory server wrote or answered."""

    name = "memory-server"
    suffixes = _SUFFIXES

    def sniff(self, head: bytes, name: str) -> str | None:
        """Why the text is the memory server's, judged by the keys of its objects.

        In a file with a suffix of this format a later line may show it.
        """
        plain = name.lower().removesuffix(".gz").removesuffix(".zst")
        return recognised(head, lines=plain.endswith(_SUFFIXES))

    def read(self, stream: BinaryIO, source: Source) -> Iterator[Item]:
        """The records and findings of a file, in memory bounded by its names and types."""
        findings: list[Finding] = []
        lines = JsonLines(stream, source, findings)
        answers, graph = Answers(source.label, findings), Graph(source.label, findings)
        for said, place in lines.values():
            value = Value(said, place, lines.raw)
            for one in answers.inside(value) or (value,):
                yield from self._items(one, graph, findings)
            if lines.rejected:
                yield from lines.rejected
                lines.rejected.clear()
        yield from findings
        findings.clear()
        yield from lines.rejected
        for one in graph.waiting:
            yield from self._items(one, graph, findings, last=True)

    @staticmethod
    def _items(value: Value, graph: Graph, findings: list[Finding], *, last: bool = False) -> Iterator[Item]:
        """What is found wrong, and the records of one object or the text of it."""
        records = graph.records(value, last=last)
        made = None if records is None else list(records)
        yield from findings
        findings.clear()
        if made is None:
            yield Rejected(value.place, value.raw())
        else:
            yield from made
