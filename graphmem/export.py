"""Exports: the store's items in a stable order, handed to a format, written beside the target and renamed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

from graphmem import __version__, formats
from graphmem.errors import FormatFailed, UsageError
from graphmem.prepare import canonical_json
from graphmem.records import FORMAT_NAME, FORMAT_VERSION
from graphmem.store import Store
from graphmem.store.export import Exporting, Filters

__all__ = ["ExportReport", "Filters", "export"]


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export wrote: how many items of each kind, their digest, where, in how many files."""

    format: str
    target: str
    counts: dict[str, int]
    digest: str
    filters: dict[str, Any]
    files: int
    bytes: int

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        return {
            "format": self.format,
            "target": self.target,
            "counts": self.counts,
            "digest": self.digest,
            "filters": self.filters,
            "files": self.files,
            "bytes": self.bytes,
        }


def content_digest(records: Iterable[dict[str, Any]]) -> str:
    """SHA-256 in hex over the canonical JSON of records in their order: what a manifest states."""
    digest = sha256()
    for record in records:
        digest.update(canonical_json(record).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _manifest(exporting: Exporting, filters: Filters) -> dict[str, Any]:
    manifest: dict[str, Any] = {
        "type": "manifest",
        "format": FORMAT_NAME,
        "version": FORMAT_VERSION,
        "tool": f"graphmem {__version__}",
        "counts": exporting.counts(),
        "digest": content_digest(exporting.records()),
    }
    given = filters.as_dict()
    if given:
        manifest["filters"] = given
    return manifest


def _into_file(files: Iterator[formats.ExportFile], target: Path) -> tuple[int, int]:
    """Writes a one-file export to a temporary name beside the target, then renames it."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    written = 0
    try:
        with os.fdopen(handle, "wb") as stream:
            for file in files:
                written += _copy(file, stream)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return 1, written


def _copy(file: formats.ExportFile, stream: BinaryIO) -> int:
    written = 0
    for chunk in file.chunks:
        stream.write(chunk)
        written += len(chunk)
    return written


def _inside(folder: Path, path: str) -> Path:
    """The place of an export's file in its folder; an exporter's path never leads out of it."""
    parts = path.split("/")
    if not path or any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts):
        raise FormatFailed(f"an exporter named a file '{path}'")
    return folder.joinpath(*parts)


def _is_export_folder(folder: Path) -> bool:
    """Whether a folder is empty or was made by an export, so that it may be replaced."""
    return not any(folder.iterdir()) or (folder / MARKER).is_file()


MARKER = ".gmem-export"
"""The file by which a folder that an export made is known again."""


def _into_folder(files: Iterator[formats.ExportFile], target: Path) -> tuple[int, int]:
    """Writes an export of many files into a temporary folder beside the target, then swaps the two."""
    if target.exists() and not (target.is_dir() and _is_export_folder(target)):
        raise UsageError(
            f"'{target}' exists and was not made by an export",
            "name a new or empty folder, or one that an earlier export made",
        )
    made = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
    count = written = 0
    try:
        for file in files:
            path = _inside(made, file.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as stream:
                written += _copy(file, stream)
            count += 1
        (made / MARKER).write_bytes(b"")
        made.chmod(0o755)
        if target.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".old", dir=target.parent))
            target.replace(old / "it")
            made.replace(target)
            shutil.rmtree(old)
        else:
            made.replace(target)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return count, written


def export(
    store: Store, format_name: str, target: Path | BinaryIO, filters: Filters | None = None
) -> ExportReport:
    """Writes the store's items in a format to a path, or, for one-file formats, to an open stream.

    The store is read in one transaction, so the export is of one instant. A path is replaced only when
    everything was written. Raises `UsageError` for an unknown format, a folder format without a path or
    a target that must not be replaced.
    """
    chosen = formats.exporter(format_name)
    filters = filters or Filters()
    if chosen.folder and not isinstance(target, Path):
        raise UsageError(f"the format '{format_name}' is a folder of files", "name it with -o FOLDER")
    with store.errors(), store.reading():
        exporting = Exporting(store.db, store.scopes, filters)
        manifest = _manifest(exporting, filters)
        files = chosen.write(manifest, exporting.records())
        if not isinstance(target, Path):
            count, written = 1, sum(_copy(file, target) for file in files)
        elif chosen.folder:
            count, written = _into_folder(files, target.absolute())
        else:
            count, written = _into_file(files, target.absolute())
    return ExportReport(
        format_name,
        str(target) if isinstance(target, Path) else "-",
        manifest["counts"],
        manifest["digest"],
        filters.as_dict(),
        count,
        written,
    )
