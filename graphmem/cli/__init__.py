"""The command line: one file per command, which parses options, calls the core, renders and exits.

Results go to stdout and everything else to stderr. A command returns its exit status, `None` for 0.
Nothing is imported here before it is needed: starting is most of what a short command does.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from graphmem.errors import EXIT_DONE, GraphmemError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; no exception leaves this function.

    `argv` are the arguments without the program's name, those of the process unless given.
    """
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        status = _run(args)
        _flush()
    except BrokenPipeError:
        # The reader has had enough, as with `gmem list | head`.
        abandon_stdout()
        return EXIT_DONE
    except BaseException as error:
        from graphmem.cli.failures import report

        return report(error, args)
    return status


def _run(args: list[str]) -> int:
    from graphmem.cli.group import run

    return run(args)


def _flush() -> None:
    """Write out what stdout still holds, so that a full disk is an error and not a surprise at exit."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        abandon_stdout()
    except OSError as error:
        raise unwritable(error) from error


def unwritable(error: OSError) -> GraphmemError:
    """What is told when stdout cannot be written, which is given up."""
    abandon_stdout()
    return GraphmemError(f"cannot write the output: {(error.strerror or str(error)).lower()}")


def abandon_stdout() -> None:
    """Point stdout at nothing, because Python flushes it once more at exit and would complain."""
    import os
    from contextlib import suppress

    with suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
