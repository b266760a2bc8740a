"""YAML: the manifest and then every record as a document of its own, for people to read and edit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from graphmem.formats import Exporter, ExportFile

from ._yaml_emitter import document


class YamlExporter(Exporter):
    """Writes documents that `YamlImporter` reads back to the same records."""

    name = "yaml"
    suffix = ".yaml"
    folder = False

    def write(self, manifest: dict[str, Any], records: Iterable[dict[str, Any]]) -> Iterator[ExportFile]:
        """One file of UTF-8 documents with keys in the order given and LF at every line's end.

        Raises `ValueError` for a number that is not finite.
        """
        yield ExportFile("", _documents(manifest, records))


def _documents(manifest: dict[str, Any], records: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    yield document(manifest).encode()
    for record in records:
        yield document(record).encode()
