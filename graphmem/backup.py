"""Backups: a store as one compressed file, checked when it is written and again before it replaces a store.

A backup is a SQLite file, compressed with zstd, behind a label that says what it holds. `zstd -d` makes a
store of it without graphmem.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Final

from graphmem import packing, private, times
from graphmem.errors import (
    BackupDamaged,
    BackupUnusable,
    OutputUnwritable,
    StoreBusy,
    StoreDamaged,
    StoreNotFound,
    UsageError,
)
from graphmem.outfile import refuse_databases, refuse_store, unwritable
from graphmem.store import Store, is_there
from graphmem.store import backup as stores

ENDING: Final = ".db.zst"
FORMAT: Final = "graphmem-backup"
VERSION: Final = 1

_SQLITE: Final = b"SQLite format 3\0"
_LOGS: Final = ("-wal", "-shm", "-journal")
_SCRATCH: Final = ".gmem-backup-"
_ABANDONED_SECONDS: Final = 24 * 3600
_BLOCK: Final = 1 << 20
_UNLABELLED_MOST: Final = 1 << 40


@dataclass(slots=True)
class Backup:
    """A backup that was written, or looked at: where it is, and what it holds.

    `size` and `store_size` are in bytes, compressed and not; `newest` is the time of its newest batch.
    """

    file: str
    made_at: str | None
    schema_version: int
    counts: dict[str, int]
    newest: str | None
    size: int
    store_size: int
    sha256: str

    def as_dict(self) -> dict[str, Any]:
        """The backup as it stands in JSON."""
        return asdict(self)


@dataclass(slots=True)
class Restored:
    """What became of a store: the backup it is now like, and where the store that was there is kept.

    `aside` has the files of a store that was damaged, as they were.
    """

    store: str
    backup: Backup
    kept: str | None = None
    aside: list[str] = field(default_factory=list)
    dry_run: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The outcome as it stands in JSON."""
        return {
            "store": self.store, "backup": self.backup.as_dict(), "kept": self.kept, "aside": self.aside,
            "dry_run": self.dry_run,
        }  # fmt: skip


# ---- writing one ------------------------------------------------------------------------------------


def backup(store: Path, target: Path | None = None) -> Backup:
    """Writes a backup of a store as it is now, whole or not at all; others may write to it meanwhile.

    `target` is a file, or a folder in which the file is named by the time; without it that is the folder of
    the store. What was written is read again and compared before it is put in place. Raises the errors
    of opening a store, `StoreDamaged` for one that is not sound, `OutputUnwritable`, `UsageError`.
    """
    made_at = times.now()
    target = _target(store, target, made_at, "")
    refuse_store(target, store, "--output")
    refuse_databases(target, "--output")
    real = Path(os.path.realpath(target))
    if real.exists() and not real.is_file():
        raise UsageError(f"'{target}' is neither a file nor a folder", "name a file to write to")
    with unwritable(target), scratch_folder(real.parent) as folder:
        plain, packed = folder / "memory.db", folder / "backup"
        private.create_file(plain)
        copied = stores.copy(store, plain)
        with _named(store):
            held = stores.inspect(plain)
        if held != copied:
            raise StoreDamaged(
                f"{store}: a copy of it does not hold what it does", "'gmem doctor' looks at it"
            )
        label = {
            "format": FORMAT, "version": VERSION, "made_at": made_at, "size": plain.stat().st_size,
            "sha256": _digest(plain), **held._asdict(),
        }  # fmt: skip
        private.create_file(packed)
        with packed.open("wb") as stream, plain.open("rb") as source:
            packing.pack(source, stream, label)
            stream.flush()
            os.fsync(stream.fileno())
        _check_written(packed, label)
        size = packed.stat().st_size
        packed.replace(real)
    return Backup(
        str(target),
        made_at,
        held.schema_version,
        held.counts,
        held.newest,
        size,
        label["size"],
        label["sha256"],
    )


def _check_written(path: Path, label: dict[str, Any]) -> None:
    """Reads what was written. Raises `BackupDamaged` where it is not what was to be written."""
    with path.open("rb") as stream:
        try:
            if packing.read_label(stream) != label:
                raise packing.DamagedError("its label is another")
            found = sha256()
            for block in packing.unpack(stream):
                found.update(block)
        except packing.DamagedError as error:
            raise BackupDamaged(
                f"what was written could not be read back: {error}", "look at the disk"
            ) from error
    if found.hexdigest() != label["sha256"]:
        raise BackupDamaged("what was written is not what was read back", "look at the disk")


def _target(store: Path, wanted: Path | None, time: str, why: str) -> Path:
    """The file that is written: the one that was named, else one in a folder, named by store and time."""
    folder = store.parent if wanted is None else wanted
    if wanted is not None and not wanted.is_dir():
        return wanted
    return free_name(folder, f"{store.stem}{why}-{moment(time)}", ENDING)


def moment(time: str) -> str:
    """A canonical time as it stands in names of files, to the second."""
    return "".join(sign for sign in time[:19] if sign not in "-:") + "Z"


def free_name(folder: Path, start: str, ending: str = "") -> Path:
    """The path of a file that is not there, with a number where the name is taken."""
    number = 1
    path = folder / f"{start}{ending}"
    while os.path.lexists(path):
        number += 1
        path = folder / f"{start}-{number}{ending}"
    return path


@contextmanager
def _named(store: Path) -> Iterator[None]:
    """Lets damage that was found in a copy be told of the store."""
    try:
        yield
    except StoreDamaged as error:
        message = error.message.partition(": ")[2]
        raise StoreDamaged(f"{store}: {message}; no backup was made of it", error.hint) from error


# ---- reading one ------------------------------------------------------------------------------------


def restore(file: Path, store: Path, *, dry_run: bool = False) -> Restored:
    """Makes a store what a backup holds, after the backup was checked; what was there is kept beside it.

    `file` is a backup or a store. Whoever has the store open sees the new content from then on; where the
    file of the store is damaged it is moved aside instead. Killed at whatever point, the store is the old
    one or the new one. Raises `BackupUnusable` for a file that is no backup, `BackupDamaged`,
    `StoreForeign`, `StoreTooNew`, `StoreBusy` when others do not let go of the store, `StoreFull`.
    """
    refuse_store(file, store)
    if not dry_run:
        private.make_folder(store.parent)
    with unwritable(store), scratch_folder(None if dry_run else store.parent) as folder:
        plain = folder / "memory.db"
        private.create_file(plain)
        held = _unpacked(file, plain)
        told = Restored(str(store), held, dry_run=dry_run)
        if not dry_run:
            Store(
                plain, write=True
            ).close()  # of an earlier schema: who has the store open wants the present one
            _put(plain, store, told)
    return told


def _unpacked(file: Path, plain: Path) -> Backup:
    """Makes a sound store of a backup, in a file that is there and empty; what the backup says of it."""
    label: dict[str, Any] | None = None
    with _readable(file), file.open("rb") as stream:
        start = stream.read(len(_SQLITE))
        stream.seek(0)
        if start != _SQLITE:
            label = _label(file, stream)
            _unpack(file, stream, plain, label)
    if start == _SQLITE:
        stores.copy(file, plain)
    try:
        held = stores.inspect(plain)
    except (StoreDamaged, StoreNotFound) as error:
        what = error.message.removeprefix(f"{plain}: ")
        raise BackupDamaged(f"'{file}' is damaged: {what}", "restore an older backup") from error
    if label is not None and label.get("counts", held.counts) != held.counts:
        raise BackupDamaged(f"'{file}' does not hold what its label says", "restore an older backup")
    return Backup(
        str(file), (label or {}).get("made_at"), held.schema_version, held.counts, held.newest,
        file.stat().st_size, plain.stat().st_size, _digest(plain),
    )  # fmt: skip


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    try:
        yield
    except OutputUnwritable:
        raise
    except OSError as error:
        raise BackupUnusable(
            f"cannot read '{file}': {(error.strerror or str(error)).lower()}",
            "check the path and its permissions",
        ) from error


def _label(file: Path, stream: BinaryIO) -> dict[str, Any] | None:
    try:
        label = packing.read_label(stream)
    except packing.DamagedError as error:
        raise BackupDamaged(f"'{file}' is damaged: {error}", "restore an older backup") from error
    start = stream.read(len(packing.MAGIC))
    stream.seek(-len(start), os.SEEK_CUR)
    if (label is not None and label.get("format") != FORMAT) or (label is None and start != packing.MAGIC):
        raise BackupUnusable(
            f"'{file}' is no backup of a store",
            "name a file that 'gmem backup' wrote; 'gmem import' reads other files",
        )
    if label is not None and label.get("version") != VERSION:
        raise BackupUnusable(f"'{file}' was written by a newer graphmem", "upgrade graphmem")
    return label


def _unpack(file: Path, stream: BinaryIO, plain: Path, label: dict[str, Any] | None) -> None:
    most = _UNLABELLED_MOST if label is None else label.get("size", _UNLABELLED_MOST)
    done, found = 0, sha256()
    try:
        with unwritable(plain), plain.open("wb") as target:
            for block in packing.unpack(stream):
                done += len(block)
                if done > most:
                    raise packing.DamagedError("it holds more than its label says")
                found.update(block)
                target.write(block)
    except packing.DamagedError as error:
        raise BackupDamaged(f"'{file}' is damaged: {error}", "restore an older backup") from error
    if label is not None and label.get("sha256") != found.hexdigest():
        raise BackupDamaged(
            f"'{file}' is damaged: its content is another than was written", "restore an older backup"
        )
    with plain.open("rb") as target:
        if target.read(len(_SQLITE)) != _SQLITE:
            raise BackupUnusable(f"'{file}' holds no store", "name a file that 'gmem backup' wrote")


# ---- putting it in place ----------------------------------------------------------------------------


def _put(plain: Path, store: Path, told: Restored) -> None:
    now = times.now()
    if not is_there(store) or not store.stat().st_size:
        _set_aside(store, now, told)
        _place(plain, store)
        return

    def keep() -> Path:
        kept = _target(store, store.parent, now, "-before-restore")
        backup(store, kept)
        told.kept = str(kept)
        return kept

    try:
        stores.replace(store, plain, keep, lambda kept: kept.unlink())
    except StoreDamaged:
        if stores.is_in_use(store):
            raise StoreBusy(
                f"{store}: damaged, and another process has it open", "end that process, and try again"
            ) from None
        _set_aside(store, now, told)
        _place(plain, store)


def _place(plain: Path, store: Path) -> None:
    """Puts a checked file where no store is, or a damaged one that was kept, in one step."""
    with plain.open("rb+") as stream:
        os.fsync(stream.fileno())
    plain.replace(store)


def _set_aside(store: Path, now: str, told: Restored) -> None:
    """Keeps the files of a store that is of no use as they are, under other names.

    The store itself keeps its place until another takes it, so that no instant is without one; its log
    goes first, since SQLite would read it into the new store.
    """
    aside = free_name(store.parent, f"{store.name}.damaged-{moment(now)}")
    if is_there(store) and store.stat().st_size:
        try:
            aside.hardlink_to(store)
        except OSError:
            private.create_file(aside)
            shutil.copyfile(store, aside)
        told.aside.append(str(aside))
    for end in _LOGS:
        log = store.with_name(store.name + end)
        if end == "-shm" or (is_there(log) and not log.stat().st_size):
            log.unlink(missing_ok=True)  # it holds nothing that is not in the other files
        elif is_there(log):
            moved = aside.with_name(aside.name + end)
            log.replace(moved)
            told.aside.append(str(moved))


# ---- files ------------------------------------------------------------------------------------------


@contextmanager
def scratch_folder(beside: Path | None) -> Iterator[Path]:
    """A private folder that goes away, in another one, since a store may be larger than /tmp holds."""
    if beside is not None:
        _remove_abandoned(beside)
    folder = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=beside))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned(folder: Path) -> None:
    """Removes what killed processes left behind long ago."""
    for left in folder.glob(f"{_SCRATCH}*"):
        with suppress(OSError):
            found = left.lstat()
            if stat.S_ISDIR(found.st_mode) and time.time() - found.st_mtime > _ABANDONED_SECONDS:
                shutil.rmtree(left, ignore_errors=True)


def _digest(path: Path) -> str:
    found = sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            found.update(block)
    return found.hexdigest()
