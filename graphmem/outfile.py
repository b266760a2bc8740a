"""Files that are written whole or not at all: under a temporary name beside the target, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from graphmem.errors import OutputUnwritable


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """A stream whose bytes replace the file when the block ends well; else the old file stays as it was.

    A link is followed, and what is no regular file (a device, a pipe) is written straight. The file can
    be read by its owner alone, as everything that holds memories. Raises `OutputUnwritable`.
    """
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
