"""Folders and files that only their owner may read: 0700 and 0600, whatever the umask.

Memories are private; on Windows the user's profile folder has that effect and the modes are ignored.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from graphmem.errors import StoreError

_FOLDER_MODE = 0o700
_FILE_MODE = 0o600


def make_folder(folder: Path) -> None:
    """Make a folder and what is missing above it; folders that exist are left as they are.

    Raises `StoreError` when that is not possible.
    """
    try:
        missing = []
        here = folder
        while not here.exists() and here != here.parent:
            missing.append(here)
            here = here.parent
        for one in reversed(missing):
            one.mkdir(_FOLDER_MODE, exist_ok=True)
            one.chmod(_FOLDER_MODE)
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    except OSError as error:
        raise _cannot("make the folder", folder, error) from error


def create_file(file: Path, content: bytes = b"") -> bool:
    """Create a file unless it exists; whether it was created. Its folder must exist.

    Raises `StoreError` when that is not possible.
    """
    try:
        _create(file, content)
    except FileExistsError:
        return False
    except OSError as error:
        raise _cannot("write", file, error) from error
    return True


def replace_file(file: Path, content: bytes) -> None:
    """Write a file whole or not at all: beside it, then renamed over it.

    Raises `StoreError` when that is not possible.
    """
    beside = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        beside.unlink(missing_ok=True)
        _create(beside, content)
        beside.replace(file)
    except OSError as error:
        raise _cannot("write", file, error) from error


def _create(file: Path, content: bytes) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE)
    with os.fdopen(handle, "wb") as stream:
        if os.name == "posix":
            os.fchmod(handle, _FILE_MODE)
        stream.write(content)


def _cannot(what: str, path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"cannot {what} '{path}': {(error.strerror or str(error)).lower()}",
        "check the path and its permissions, or set GRAPHMEM_HOME or --db to a place you may write to",
    )
