"""Exports: the store's items in a stable order, handed to a format, written beside the target and renamed."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from graphmem import __version__, formats
from graphmem.errors import FormatFailed, GraphmemError, UsageError
from graphmem.outfile import EXPORT_MARKER, replacing, unwritable
from graphmem.prepare import canonical_json
from graphmem.records import FORMAT_NAME, FORMAT_VERSION
from graphmem.store import Store
from graphmem.store.export import Exporting, Filters

__all__ = ["ExportReport", "Filters", "export"]


_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export wrote: how many items of each kind, their digest, where, in how many files.

    `lost` says what of these items the format could not hold: how many, by what it is in words.
    """

    format: str
    target: str
    counts: dict[str, int]
    digest: str
    filters: dict[str, Any]
    files: int
    bytes: int
    lost: dict[str, int]

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
            "lost": self.lost,
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
    with replacing(target) as stream:
        return 1, sum(_copy(file, stream) for file in files)


def _sound(name: str, files: Iterable[formats.ExportFile]) -> Iterator[formats.ExportFile]:
    """What an exporter yields; what it raises, also while it makes bytes, becomes an error of the format."""

    def guarded(items: Iterable[_Item]) -> Iterator[_Item]:
        try:
            yield from items
        except (GraphmemError, OSError, MemoryError):
            raise
        except Exception as error:
            raise FormatFailed(
                f"the export format '{name}' failed: {type(error).__name__}: {error}",
                "this is a fault of the format; please report it",
            ) from error

    for file in guarded(files):
        yield formats.ExportFile(file.path, guarded(file.chunks))


def _records(store: Store, exporting: Exporting) -> Iterator[dict[str, Any]]:
    """The items, with what SQLite raises told apart from what an exporter does."""
    with store.errors():
        yield from exporting.records()


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


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def _listed(folder: Path) -> dict[str, str]:
    """The files that an export wrote into a folder, with their digests; none where none did."""
    try:
        files = json.loads((folder / EXPORT_MARKER).read_bytes())["files"]
    except (OSError, ValueError, LookupError, TypeError):
        return {}
    return files if isinstance(files, dict) else {}


def _check_folder(folder: Path) -> None:
    """Raises `UsageError` unless a folder is empty or holds nothing but what an export put there."""
    if not folder.is_dir():
        raise UsageError(f"'{folder}' exists and is no folder", "name a new or empty folder")
    listed = _listed(folder)
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name == EXPORT_MARKER or (path.is_dir() and not path.is_symlink()):
            continue
        if name not in listed:
            raise UsageError(
                f"'{folder}' holds '{name}', which no export put there",
                "name a new or empty folder, or move away what is not of an export",
            )
        if path.is_symlink() or _digest(path) != listed[name]:
            raise UsageError(
                f"'{name}' in '{folder}' was edited since it was exported",
                "import the folder first to keep the edits, then export to another one",
            )


def _into_folder(files: Iterator[formats.ExportFile], target: Path) -> tuple[int, int]:
    """Writes an export of many files into a temporary folder beside the target, then swaps the two."""
    target = Path(os.path.realpath(target))
    exists = target.exists()
    if exists:
        _check_folder(target)
    made = Path(tempfile.mkdtemp(prefix=f".{target.name[:100]}.", suffix=".part", dir=target.parent))
    listed: dict[str, str] = {}
    written = 0
    try:
        for file in files:
            path = _inside(made, file.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as stream:
                written += _copy(file, stream)
            listed[file.path] = _digest(path)
        (made / EXPORT_MARKER).write_bytes(
            canonical_json({"format": "graphmem-export", "files": listed}).encode() + b"\n"
        )
        if exists:
            made.chmod(target.stat().st_mode & 0o777)
            _swap(made, target)
        else:
            made.replace(target)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return len(listed), written


def _swap(made: Path, target: Path) -> None:
    """Puts a folder in the place of another, which goes; when that fails the old one is put back."""
    old = Path(tempfile.mkdtemp(prefix=f".{target.name[:100]}.", suffix=".old", dir=target.parent))
    target.replace(old / "it")
    try:
        made.replace(target)
    except BaseException:
        (old / "it").replace(target)
        old.rmdir()
        raise
    shutil.rmtree(old)


def export(
    store: Store, format_name: str, target: Path | BinaryIO, filters: Filters | None = None
) -> ExportReport:
    """Writes the store's items in a format to a path, or, for one-file formats, to an open stream.

    The store is read in one transaction, so the export is of one instant. A path is replaced only when
    everything was written. Raises `UsageError` for an unknown format, a folder format without a path or
    a target that must not be replaced, `FormatFailed` for a format that fails and `OutputUnwritable`.
    """
    chosen = formats.exporter(format_name)
    filters = filters or Filters()
    if chosen.folder and not isinstance(target, Path):
        raise UsageError(f"the format '{format_name}' is a folder of files", "name it with -o FOLDER")
    with store.errors(), store.reading():
        exporting = Exporting(store.db, store.scopes, filters)
        manifest = _manifest(exporting, filters)
        lost = chosen.lost(exporting.records()) if isinstance(chosen, formats.Lossy) else {}
        files = _sound(format_name, chosen.write(manifest, _records(store, exporting)))
        if not isinstance(target, Path):
            count, written = 1, sum(_copy(file, target) for file in files)
        elif chosen.folder:
            with unwritable(target):
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
        lost,
    )
