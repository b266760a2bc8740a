"""The two protocols a format implements, the registry of formats, and picking one by content.

A format is found through an entry point (`graphmem.importers`, `graphmem.exporters`), so that a
plugin is a package with one class. Importers see bytes and yield records and findings; they never
open a path and never see the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, BinaryIO, Protocol, TypeAlias, runtime_checkable

from graphmem.errors import AmbiguousFormat, FormatFailed, UnknownFormat, UsageError
from graphmem.findings import Finding
from graphmem.json_head import described
from graphmem.records import ManifestRecord, Place, Record


@dataclass(frozen=True, slots=True)
class Rejected:
    """The text of a record that an importer could not read, for a file of rejects.

    It comes after the error findings about it and has their place; `raw` is the text as it stood, with
    bytes that are not UTF-8 as surrogates. `syntax` is `jsonl`, or `yaml` for a document of its own.
    """

    place: Place
    raw: str
    syntax: str = "jsonl"


Item: TypeAlias = Record | ManifestRecord | Finding | Rejected


@dataclass(slots=True)
class Source:
    """What an importer is told about the input it reads.

    `label` names the input in findings; `name` is its path relative to `root`, the folder that was
    given (POSIX separators), or its file name where a single file was given, or "" for standard input.
    """

    label: str
    name: str = ""
    root: str | None = None
    encoding: str | None = None
    siblings: frozenset[str] = field(default_factory=frozenset)


@runtime_checkable
class Importer(Protocol):
    """Reads one file format."""

    name: str
    suffixes: tuple[str, ...]

    def sniff(self, head: bytes, name: str) -> str | None:
        """Why the first bytes (decompressed, without byte-order mark) are this format, or `None`."""
        ...

    def read(self, stream: BinaryIO, source: Source) -> Iterator[Item]:
        """The records and findings of one input, in its order, in bounded memory where possible."""
        ...


@dataclass(slots=True)
class ExportFile:
    """One file of an export: a relative POSIX path and its bytes in pieces."""

    path: str
    chunks: Iterable[bytes]


@runtime_checkable
class Exporter(Protocol):
    """Writes one file format."""

    name: str
    suffix: str
    folder: bool
    """Whether the format is a folder of files rather than one stream."""

    def write(self, manifest: dict[str, Any], records: Iterable[dict[str, Any]]) -> Iterator[ExportFile]:
        """The files of the export; a format with `folder` false yields one, whose path is "".

        `records` are mappings in the canonical shape and order of the JSONL format: entities, then
        memories, then relations.
        """
        ...


@runtime_checkable
class Lossy(Protocol):
    """An exporter whose format cannot say everything that a store holds."""

    def lost(self, records: Iterable[dict[str, Any]]) -> dict[str, int]:
        """How many of the records of an export lose something, by what that is in words; empty for none."""
        ...


def _load(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in sorted(entry_points(group=group), key=lambda p: p.name)}


@cache
def importer_points() -> dict[str, EntryPoint]:
    """The installed importers by name, not yet loaded."""
    return _load("graphmem.importers")


@cache
def exporter_points() -> dict[str, EntryPoint]:
    """The installed exporters by name, not yet loaded."""
    return _load("graphmem.exporters")


@cache
def importer(name: str) -> Importer:
    """The importer of that name.

    Raises `UsageError` when there is none and `FormatFailed` when it cannot be loaded.
    """
    points = importer_points()
    if name not in points:
        raise UsageError(f"there is no import format '{name}'", f"known formats: {', '.join(points)}")
    try:
        made = points[name].load()()
    except Exception as error:
        raise FormatFailed(f"the import format '{name}' cannot be loaded: {error}") from error
    if not isinstance(made, Importer):
        raise FormatFailed(f"the import format '{name}' has no 'sniff' or no 'read'")
    return made


@cache
def exporter(name: str) -> Exporter:
    """The exporter of that name.

    Raises `UsageError` when there is none and `FormatFailed` when it cannot be loaded.
    """
    points = exporter_points()
    if name not in points:
        raise UsageError(f"there is no export format '{name}'", f"known formats: {', '.join(points)}")
    try:
        made = points[name].load()()
    except Exception as error:
        raise FormatFailed(f"the export format '{name}' cannot be loaded: {error}") from error
    if not isinstance(made, Exporter):
        raise FormatFailed(f"the export format '{name}' has no 'write'")
    return made


def _started(head: bytes) -> str:
    start = head[:60].decode("utf-8", "replace").strip().replace("\n", " ")
    return f"which starts with {start!r}" if start else "which is empty"


def pick(head: bytes, name: str) -> tuple[Importer, str]:
    """The importer that recognises an input, and why.

    `head` is the start of the decompressed input, without byte-order mark. Content decides; a suffix
    breaks a tie. A format that fails on the input does not claim it. Raises `UnknownFormat` naming what
    was seen and the formats that failed, and `AmbiguousFormat` naming the claims.
    """
    claims: list[tuple[Importer, str]] = []
    failed: list[str] = []
    for known in importer_points():
        candidate = importer(known)
        try:
            why = candidate.sniff(head, name)
        except MemoryError:
            raise
        except Exception as error:
            failed.append(f"the format '{known}' failed on it: {type(error).__name__}: {error}")
            continue
        if why is not None:
            claims.append((candidate, why))
    if not claims:
        start = head[:60].decode("utf-8", "replace").strip().replace("\n", " ")
        seen = described(head) or (f"text that starts with {start!r}" if start else "nothing but white space")
        hint = (
            f"name its format with --from: {', '.join(importer_points())}; "
            "'gmem schema' prints the shapes of records"
        )
        raise UnknownFormat(
            "; ".join((f"no format recognises this input: it is {seen if head else 'empty'}", *failed)),
            hint if head.strip() else "there is nothing in it to read",
        )
    if len(claims) > 1:
        by_suffix = [claim for claim in claims if name.lower().endswith(claim[0].suffixes)]
        if len(by_suffix) == 1:
            return by_suffix[0]
        names = ", ".join(claim[0].name for claim in claims)
        raise AmbiguousFormat(f"this input could be any of {names}", "choose one with --from")
    return claims[0]
