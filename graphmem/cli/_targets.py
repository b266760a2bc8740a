"""Whether the files that a command was told to write may be written: nothing that is needed is replaced."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from graphmem.errors import UsageError
from graphmem.outfile import file_number, refuse_databases, refuse_inputs, refuse_store
from graphmem.reading import Found, discover


def check_targets(
    targets: Mapping[str, Path | None], *, store: Path | None = None, inputs: Sequence[str] = ()
) -> None:
    """Raises `UsageError` where a file to be written is the store, any database, or one of the inputs.

    `targets` are the files by the options that named them; `inputs` are paths as an import takes them.
    Nothing was read or written before. Raises `InputUnreadable` for a path that does not exist.
    """
    given = {name: path for name, path in targets.items() if path is not None}
    for name, path in given.items():
        if store is not None:
            refuse_store(path, store, name)
        refuse_databases(path, name)
    _check_apart(given)
    existing = {name: path for name, path in given.items() if file_number(path) is not None}
    if not existing or not inputs:
        return
    read = list(_files(inputs))
    for name, path in existing.items():
        refuse_inputs(path, read, name)


def _check_apart(given: Mapping[str, Path]) -> None:
    """Raises `UsageError` where two options name one file; devices and pipes may be named twice."""
    seen: dict[str, str] = {}
    for name, path in given.items():
        with suppress(OSError):  # what cannot be looked at cannot be written either, which is told then
            if path.exists() and not path.is_file():
                continue
        other = seen.setdefault(os.path.normcase(os.path.realpath(path)), name)
        if other != name:
            raise UsageError(f"{other} and {name} would both be written to '{path}'", "name two files")


def _files(inputs: Sequence[str]) -> Iterator[Path | int]:
    """The files that are going to be read; standard input as the number of an open file."""
    for one in discover(inputs):
        if isinstance(one, Found):
            if one.path is not None:
                yield one.path
            elif sys.stdin is not None:
                with suppress(OSError, ValueError):
                    yield sys.stdin.fileno()
