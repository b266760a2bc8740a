"""Markdown export: a folder with one note per entity, for people and for Obsidian, that imports exactly.

The layout is described in `docs/markdown.md`. What no note can show goes to a remainder file of
canonical JSONL beside the notes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

from graphmem.canonical import to_mapping
from graphmem.formats import Exporter, ExportFile
from graphmem.mapping import to_record
from graphmem.prepare import canonical_json
from graphmem.records import (
    ENTITY,
    FORMAT_NAME,
    FORMAT_VERSION,
    GLOBAL_SCOPE,
    KINDS,
    MEMORY,
    NO_PLACE,
    UNKNOWN_KIND,
    ManifestRecord,
)

from ._export_spool import NOWHERE, Spool
from ._file_names import EntityKey, encoded, stems
from ._note_front import json_line
from ._note_items import Item
from ._note_page import note_lines

REMAINDER: Final = "gmem-remainder.jsonl"


class MarkdownExporter(Exporter):
    """Writes one note per entity and a remainder file."""

    name = "markdown"
    suffix = ".md"
    folder = True

    def write(self, manifest: dict[str, Any], records: Iterable[dict[str, Any]]) -> Iterator[ExportFile]:
        """The notes in the order of their entities, then the remainder file."""
        with Spool() as spool, Spool() as rest:
            vault = _Vault(spool)
            for record in records:
                vault.add(record)
            yield from vault.notes(manifest, rest)
            counts = dict.fromkeys(KINDS, 0)
            for number in range(len(rest)):
                counts[KINDS[rest.page(number)]] += 1
            yield ExportFile(REMAINDER, _remainder(manifest, counts, rest))


def _remainder(manifest: dict[str, Any], counts: dict[str, int], rest: Spool) -> Iterator[bytes]:
    """The lines of the remainder file; its manifest counts its own records."""
    head = {"type": "manifest", "format": FORMAT_NAME, "version": FORMAT_VERSION, **manifest}
    head |= {"counts": counts, "digest": _digest(rest)}
    yield f"{json_line(head)}\n".encode()
    for record in _in_order(rest):
        yield f"{json_line(record)}\n".encode()


def _in_order(rest: Spool) -> Iterator[Item]:
    """The remaining records: entities, memories, relations."""
    for _, numbers in rest.by_page():
        yield from map(rest.get, numbers)


def _digest(rest: Spool) -> str:
    """The content digest that the manifest of a JSONL file has."""
    digest = hashlib.sha256()
    for item in _in_order(rest):
        record = to_record(item, NO_PLACE, "", [])
        if record is not None and not isinstance(record, ManifestRecord):
            digest.update(canonical_json(to_mapping(record)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


class _Vault:
    """The export while its records arrive: which entities there are and which note each item goes to."""

    def __init__(self, spool: Spool) -> None:
        self.spool = spool
        self.numbers: dict[EntityKey, int] = {}
        self.keys: list[EntityKey] = []
        self.names: list[str] = []
        self.open: list[bool] = []
        """Whether each entity can have a note: archived ones cannot."""

    # ---- arriving ----------------------------------------------------------------------------------

    def add(self, record: Item) -> None:
        """Put a record aside for the note it belongs to."""
        if record["type"] == ENTITY:
            key = (
                record.get("scope") or GLOBAL_SCOPE,
                record["name"],
                record.get("kind") or UNKNOWN_KIND,
            )
            self.numbers[key] = len(self.keys)
            self.keys.append(key)
            self.open.append(record.get("state") != "archived")
            self.spool.put(record, self.numbers[key])
            return
        page = NOWHERE if _is_past(record) else self._page(record)
        self.spool.put(record, page)

    def _page(self, record: Item) -> int:
        refs = record.get("about") or [] if record["type"] == MEMORY else [record["subject"]]
        for ref in refs:
            number = self._entity(ref, record)
            if number is not None and self.open[number]:
                return number
        return NOWHERE

    def _entity(self, ref: Any, record: Item) -> int | None:
        """The number of the entity a reference means, `None` where the export does not hold it."""
        if isinstance(ref, str):
            ref = {"name": ref}
        name, kind = ref.get("name"), ref.get("kind") or UNKNOWN_KIND
        if not isinstance(name, str):
            return None
        own = [record["scope"]] if record.get("scope") else record.get("scopes") or []
        for scope in [ref["scope"]] if ref.get("scope") else [*own, GLOBAL_SCOPE]:
            number = self.numbers.get((scope, name, kind))
            if number is not None:
                return number
        return None

    # ---- leaving -----------------------------------------------------------------------------------

    def notes(self, manifest: dict[str, Any], rest: Spool) -> Iterator[ExportFile]:
        """The notes; what they cannot show is put into `rest` under the number of its kind."""
        self.names = stems(self.keys)
        head = {"format": FORMAT_NAME, "version": FORMAT_VERSION}
        if isinstance(manifest.get("tool"), str):
            head["tool"] = manifest["tool"]
        for page, numbers in self.spool.by_page():
            items = map(self.spool.get, numbers)
            if page == NOWHERE:
                for item in items:
                    _leave(rest, item)
                continue
            entity, *others = items
            if not self.open[page] or (entity.get("stub") and not others):
                _leave(rest, entity)
                continue
            memories = [item for item in others if item["type"] == MEMORY]
            relations = [item for item in others if item["type"] != MEMORY]
            lines, left = note_lines(entity, memories, relations, self._link, head)
            for item in left:
                _leave(rest, item)
            text = "\n".join(lines) + "\n"
            yield ExportFile(f"{self.names[page]}.md", (text.encode("utf-8"),))

    def _link(self, ref: Any, record: Item) -> tuple[str, str] | None:
        name = ref if isinstance(ref, str) else ref.get("name")
        if not isinstance(name, str) or not name:
            return None
        number = self._entity(ref, record)
        stem = encoded(name) if number is None else self.names[number]
        if stem == name:
            return f"[[{stem}]]", stem
        shown = "".join(sign for sign in name if sign.isprintable() and sign not in "[]|`$%<\\\\")
        shown = " ".join(shown.split())
        return (f"[[{stem}|{shown}]]" if shown else f"[[{stem}]]"), stem


def _is_past(record: Item) -> bool:
    """Whether an item no longer holds; a note shows what holds now."""
    return record.get("state") == "archived" or bool(record.get("invalid_at") or record.get("expired_at"))


def _leave(rest: Spool, item: Item) -> None:
    rest.put(item, KINDS.index(item["type"]))
