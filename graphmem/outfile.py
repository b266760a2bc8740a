"""Files that are written whole or not at all: under a temporary name beside the target, then renamed."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, cast

from graphmem.errors import OutputUnwritable, UsageError

EXPORT_MARKER: Final = ".gmem-export"
"""The file in which an export lists the files of its folder, so that it may be replaced later."""

_SQLITE: Final = b"SQLite format 3\0"
_BESIDE: Final = ("-wal", "-shm", "-journal")
"""What SQLite adds to the name of a database for its own files."""


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """A stream whose bytes replace the file when the block ends well; else the old file stays as it was.

    A link is followed, and what is no regular file (a device, a pipe) is written straight. The file can
    be read by its owner alone, as everything that holds memories. A database is never replaced. Raises
    `OutputUnwritable` and `UsageError`.
    """
    refuse_databases(target)
    with unwritable(target):
        real = Path(os.path.realpath(target))
        if real.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        if real.exists() and not real.is_file():
            with real.open("wb") as stream:
                yield stream
            return
        handle, name = tempfile.mkstemp(prefix=f".{real.name[:100]}.", suffix=".part", dir=real.parent)
        try:
            with os.fdopen(handle, "wb") as temporary:
                yield cast("BinaryIO", temporary)
                temporary.flush()
                os.fsync(temporary.fileno())
            Path(name).replace(real)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise


def refuse_databases(target: Path, name: str = "") -> None:
    """Raises `UsageError` where writing to a path would replace a SQLite database or a file beside it.

    `name` is the option that named the path, for the message.
    """
    real = os.path.realpath(target)
    databases = [real, *(real.removesuffix(end) for end in _BESIDE if real.endswith(end))]
    if any(map(_is_database, databases)):
        raise _refused(target, name, "is a database, which would be lost")


def refuse_store(target: Path, store: Path, name: str = "") -> None:
    """Raises `UsageError` where a path is the store in use, also by way of a link, or a file beside it."""
    real, kept = (os.path.normcase(os.path.realpath(path)) for path in (target, store))
    if real in (kept, *(kept + end for end in _BESIDE)) or _same(file_number(target), file_number(store)):
        raise _refused(target, name, "is the store in use, which would be lost")


def refuse_inputs(target: Path, inputs: Iterable[Path | int], name: str = "") -> None:
    """Raises `UsageError` where a path is one of the inputs: paths, or the numbers of open files."""
    wanted = file_number(target)
    if wanted is not None and any(_same(wanted, file_number(one)) for one in inputs):
        raise _refused(target, name, "is one of the inputs, which would be lost")


def file_number(path: Path | int) -> tuple[int, int] | None:
    """What tells a regular file from every other, whatever it is called; `None` where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - also of an open file
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _same(one: tuple[int, int] | None, two: tuple[int, int] | None) -> bool:
    return one is not None and one == two


def _is_database(path: str) -> bool:
    if file_number(Path(path)) is None:
        return False
    try:
        with Path(path).open("rb") as stream:
            return stream.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def _refused(target: Path, name: str, why: str) -> UsageError:
    return UsageError(f"{name + ' ' if name else ''}'{target}' {why}", "name another file to write to")


@contextmanager
def unwritable(target: Path) -> Iterator[None]:
    """Turns failures of the file system into `OutputUnwritable`, which names the target."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputUnwritable(
            f"cannot write '{target}': {(error.strerror or str(error)).lower()}",
            "check that its folder exists, that you may write there, and that there is room",
        ) from error


@contextmanager
def room_for_temporary() -> Iterator[None]:
    """Turns failures to write a temporary file into `OutputUnwritable`, which names the folder."""
    try:
        yield
    except OSError as error:
        where = tempfile.tempdir or "the folder for temporary files"
        raise OutputUnwritable(
            f"cannot write a temporary file in '{where}': {(error.strerror or str(error)).lower()}",
            "free some room there, or set TMPDIR to a folder that has it",
        ) from error
