"""Times as options give them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from graphmem.errors import UsageError
from graphmem.times import parse_time

if TYPE_CHECKING:
    import click

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d\Z")


def moment(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:  # noqa: ARG001
    """The canonical time of `--since` or `--until`; a date means its first or its last millisecond.

    Raises `UsageError` for what is no time.
    """
    if value is None:
        return None
    try:
        time = parse_time(value)[0]
    except ValueError as error:
        raise UsageError(
            f"'{value}' is not a time", "write a date such as 2026-05-08, or an ISO 8601 time"
        ) from error
    if parameter.name == "until" and _DATE.match(value.strip()):
        return f"{time[:10]}T23:59:59.999Z"
    return time
