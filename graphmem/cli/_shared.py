"""What every command shares: the options that all of them take, and how results are printed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click

from graphmem.cli import abandon_stdout, unwritable
from graphmem.config import Config, locate
from graphmem.errors import UsageError
from graphmem.terminal import visible, write, write_json

_Function = TypeVar("_Function", bound=Callable[..., Any])
_UNITS = ("B", "kB", "MB", "GB")


def standard_options(function: _Function) -> _Function:
    """Add `--db`, `--graph` and `--json`, which every command takes, as `db`, `graph` and `as_json`."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
        click.option("--graph", metavar="NAME", help="The store NAME.db beside the default one."),
        click.option("--db", metavar="PATH", help="The store file, or the folder it is in."),
    ):
        function = option(function)
    return function


def here() -> Path:
    """The current folder. Raises `UsageError` when it is gone."""
    try:
        return Path.cwd()
    except OSError as error:
        raise UsageError("the current folder does not exist any more", "change to another one") from error


def configuration(db: str | None, graph: str | None) -> Config:
    """Where the store is, for the values of the standard options; raises as `locate` does."""
    return locate(db, graph, os.environ, here())


def say(text: str) -> None:
    """Print lines of a result. Text from files must have gone through `visible` already."""
    if sys.stdout is not None:
        _print(write, f"{text}\n")


def note(text: str) -> None:
    """Tell a person something on stderr."""
    if sys.stderr is not None:
        write(f"{visible(text)}\n", sys.stderr)


def output(result: Any, *, as_json: bool, text: Callable[[], str]) -> None:
    """Print a result: as JSON, or as the text that is only made when it is wanted."""
    if not as_json:
        say(text())
    elif sys.stdout is not None:
        _print(write_json, result)


def number(count: int, one: str, many: str = "") -> str:
    """A count with what is counted, one or many."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def size(count: int) -> str:
    """A number of bytes in a unit that people read."""
    told, unit = float(count), 0
    while told >= 1000 and unit + 1 < len(_UNITS):
        told /= 1000
        unit += 1
    return f"{told:.3g} {_UNITS[unit]}" if unit else f"{count} B"


def _print(writer: Callable[[Any, TextIO], None], what: Any) -> None:
    try:
        writer(what, sys.stdout)
    except BrokenPipeError:
        # What was done is done: the exit status must tell of that, not of the reader who left.
        abandon_stdout()
    except OSError as error:
        raise unwritable(error) from error
