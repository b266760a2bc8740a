"""Times as options give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphmem.errors import UsageError
from graphmem.times import parse_bound

if TYPE_CHECKING:
    import click


def moment(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:  # noqa: ARG001
    """The canonical time of `--since` or `--until`; a date means its first or its last millisecond.

    Raises `UsageError` for what is no time.
    """
    if value is None:
        return None
    try:
        return parse_bound(value, last=parameter.name == "until")
    except ValueError as error:
        raise UsageError(
            f"'{value}' is not a time", "write a date such as 2026-05-08, or an ISO 8601 time"
        ) from error
