"""How a command that failed ends: one line on stderr, a hint, an exit status, and never a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, TextIO

import click

from graphmem import __version__
from graphmem.errors import EXIT_INTERRUPTED, EXIT_USAGE, GraphmemError, InputUnreadable, UsageError
from graphmem.terminal import visible, write, write_json

_MAX_LOG: Final = 1_000_000


class Failure(NamedTuple):
    """What is told of a failure; `code` and `exit_status` are stable, the texts are not."""

    code: str
    exit_status: int
    message: str
    hint: str = ""
    suggestions: tuple[str, ...] = ()
    details: Mapping[str, object] = MappingProxyType({})


def report(error: BaseException, args: list[str]) -> int:
    """Tell of an exception and return the exit status.

    stderr always has it as text; with `--json` stdout has it as an object as well.
    """
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else EXIT_USAGE * bool(error.code)
    failure = failure_of(error, args)
    if sys.stderr is not None:
        with suppress(OSError):
            _tell(failure, sys.stderr)
    if sys.stdout is not None and wants_json(args):
        told = {"code": failure.code, "message": failure.message, "hint": failure.hint}
        shape = {"ok": False, "error": told | {"suggestions": list(failure.suggestions)}, **failure.details}
        with suppress(OSError):
            write_json(shape, sys.stdout)
            sys.stdout.flush()
    return failure.exit_status


def wants_json(args: list[str]) -> bool:
    """Whether `--json` is among the options, whatever else is wrong with them."""
    return "--json" in (args[: args.index("--")] if "--" in args else args)


def failure_of(error: BaseException, args: list[str]) -> Failure:
    """What is told of an exception."""
    if isinstance(error, GraphmemError):
        return Failure(
            error.code, error.exit_status, error.message, error.hint, error.suggestions, error.details
        )
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return Failure("interrupted", EXIT_INTERRUPTED, "interrupted")
    if isinstance(error, click.ClickException):
        return _misused(error)
    return _internal(error, args)


def _tell(failure: Failure, stream: TextIO) -> None:
    if failure.exit_status == EXIT_INTERRUPTED and stream.isatty():
        stream.write("\n")  # the terminal's own ^C stands on this line
    lines = [f"error: {visible(failure.message)} [{failure.code}]"]
    if failure.suggestions:
        lines.append(f"  did you mean: {visible(', '.join(failure.suggestions))}")
    if failure.hint:
        lines.append(f"  hint: {visible(failure.hint)}")
    write("".join(f"{line}\n" for line in lines), stream)


def _misused(error: click.ClickException) -> Failure:
    """Click's words in our form: lower case, without a full stop, suggestions apart."""
    kind = InputUnreadable if isinstance(error, click.FileError) else UsageError
    message = error.message if isinstance(error, click.NoSuchOption) else error.format_message()
    message = " ".join(message.split()).rstrip(".")
    if message[:2].istitle():
        message = message[0].lower() + message[1:]
    ctx = getattr(error, "ctx", None)
    hint = f"see '{ctx.command_path} --help'" if isinstance(ctx, click.Context) else ""
    if isinstance(error, click.NoSuchOption) and ctx is not None and ctx.parent is None:
        hint = f"options come after the command; {hint}"
    close = getattr(error, "possibilities", None) or ()
    return Failure(kind.code, kind.exit_status, message, hint, tuple(close))


def _internal(error: BaseException, args: list[str]) -> Failure:
    from traceback import format_exception

    trace = "".join(format_exception(error))
    debug = bool(os.environ.get("GRAPHMEM_DEBUG"))
    log = _log(trace, args)
    if debug and sys.stderr is not None:
        write(visible(trace, lines=True), sys.stderr)
    said = f"internal error: {type(error).__name__}: {error}"[:500]
    where = f"the details are in '{log}'" if log else "run it again with GRAPHMEM_DEBUG=1 for the details"
    return Failure("internal", EXIT_USAGE, said, "" if debug else where)


def _log(trace: str, args: list[str]) -> Path | None:
    """Append to `$GRAPHMEM_HOME/logs/gmem.log` (1 MB, one older file is kept); its path if that worked.

    Of the arguments only the command is kept: the others may be what somebody wants to remember.
    """
    from graphmem import config, private
    from graphmem.times import now

    command = next((arg for arg in args if not arg.startswith("-")), "")
    try:
        log = config.home_folder(os.environ, Path.cwd()) / "logs" / "gmem.log"
        private.make_folder(log.parent)
        if log.exists() and log.stat().st_size > _MAX_LOG:
            log.replace(log.with_suffix(".log.1"))
        private.create_file(log)
        with log.open("a", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(f"{now()} graphmem {__version__} {command}\n{trace}\n")
    except (OSError, GraphmemError):
        return None
    return log
