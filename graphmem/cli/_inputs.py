"""What the commands that read inputs share: their options, signals, and findings for a person."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NoReturn, TypeVar

import click

from graphmem.findings import Finding, Severity
from graphmem.render import line_of, ordered
from graphmem.terminal import visible

_Function = TypeVar("_Function", bound=Callable[..., Any])

SEVERITIES: Final = {one.word: one for one in reversed(Severity)}
_SHOWN: Final = {Severity.ERROR: 20, Severity.WARNING: 20, Severity.NOTE: 3}
"""How many findings of one rule a person is shown at once."""


def input_options(function: _Function) -> _Function:
    """Add the options of every command that reads inputs: `--from`, `--encoding`, `--dangling` and so on."""
    for option in (
        click.option(
            "--fail-on", type=click.Choice(list(SEVERITIES)), default="error", show_default=True,
            help="The least severity of a finding that makes the exit status 1.",
        ),
        click.option(
            "--max-errors", type=click.IntRange(min=0), metavar="N",
            help="Give up at more errors than N; the batch that is being read or stored is not stored.",
        ),
        click.option(
            "--dangling", type=click.Choice(["stub", "skip", "error"]), default="stub", show_default=True,
            help="For a reference to nothing: make a stub, leave it out, or reject the record.",
        ),
        click.option(
            "--encoding", metavar="NAME",
            help="The encoding of the inputs where they do not show it; UTF-8 unless given.",
        ),
        click.option(
            "--from", "from_", metavar="FORMAT",
            help="Read every input as this format: jsonl, yaml, markdown, memory-server.",
        ),
    ):  # fmt: skip
        function = option(function)
    return function


def brief(
    findings: Iterable[Finding], by_rule: Mapping[str, int] | None = None, *,
    all_of: Severity | None = None, whole: str = "",
) -> str:  # fmt: skip
    """The findings for a person: of each rule the first ones, its hint once, and how many more there are.

    `by_rule` counts all findings, also those that are not among `findings`; `all_of` is the least severity
    of which all are shown; `whole` says where all can be seen.
    """
    findings = ordered(findings)
    total = by_rule or Counter(one.rule for one in findings)
    shown: dict[str, int] = {}
    severities: dict[str, Severity] = {}
    lines: list[str] = []
    for one in findings:
        count = shown.get(one.rule, 0)
        severities[one.rule] = one.severity
        if count == _SHOWN[one.severity] and (all_of is None or one.severity < all_of):
            continue
        shown[one.rule] = count + 1
        lines.append(line_of(one))
        if not count and one.hint:
            lines.append(f"  hint: {visible(one.hint)}")
    more = {rule: total[rule] - count for rule, count in sorted(shown.items()) if total[rule] > count}
    lines += [f"{severities[rule].word}: and {count:,} more like it [{rule}]" for rule, count in more.items()]
    if more and whole:
        lines.append(f"  hint: {whole}")
    return "\n".join(lines)


@contextmanager
def terminable() -> Iterator[None]:
    """While it lasts, being told to terminate is what being interrupted at the keyboard is."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt
