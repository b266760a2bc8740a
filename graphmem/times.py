"""Times: UTC in milliseconds, as text ISO 8601 with `Z`; an unknown time stays `None`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_CANONICAL = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")
_DATE_ONLY = re.compile(r"\d{4}-\d\d-\d\d\Z")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?\Z")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Numbers are seconds below 1e11 (year 5138), then milliseconds, microseconds, nanoseconds.
_UNITS: Final = ((1e11, 1), (1e14, 1_000), (1e17, 1_000_000), (1e20, 1_000_000_000))


def format_time(moment: datetime) -> str:
    """The canonical text of an aware moment, cut to milliseconds."""
    moment = moment.astimezone(UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + f".{moment.microsecond // 1000:03d}Z"


def now() -> str:
    """The current time, canonical."""
    return format_time(datetime.now(UTC))


def next_millisecond(time: str) -> str:
    """The canonical time one millisecond later."""
    return format_time(datetime.fromisoformat(time) + timedelta(milliseconds=1))


def _from_number(number: float) -> str:
    for limit, divisor in _UNITS:
        if abs(number) < limit:
            return format_time(_EPOCH + timedelta(seconds=number / divisor))
    raise ValueError("a number too large for a time")


def parse_bound(text: str, *, last: bool) -> str:
    """The canonical time that a text bounds something by; a date is its first or its last millisecond.

    Raises `ValueError` for what is no time.
    """
    time = parse_time(text)[0]
    return f"{time[:10]}T23:59:59.999Z" if last and _DATE_ONLY.match(text.strip()) else time


def parse_time(value: object) -> tuple[str, bool]:
    """The canonical text of a time, and whether its zone or unit had to be guessed.

    Accepts ISO 8601 text, dates, and epoch numbers in seconds to nanoseconds, also as text.
    A naive time is taken as UTC. Raises `ValueError` for anything else.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError("not a time")
    try:
        if not isinstance(value, str):
            return _from_number(value), True
        text = value.strip()
        if _CANONICAL.match(text):
            datetime.fromisoformat(text)
            return text, False
        if _NUMBER.match(text) and not (len(text) in (4, 8) and text.isdigit()):
            return _from_number(float(text)), True
        if text.isdigit() or "W" in text.upper():
            raise ValueError("not a time")
        moment = datetime.fromisoformat(text.upper() if text[-1:] == "z" else text)
    except (OverflowError, ValueError) as error:
        raise ValueError("not a time") from error
    if moment.tzinfo is None:
        return format_time(moment.replace(tzinfo=UTC)), not _DATE_ONLY.match(text)
    try:
        return format_time(moment), False
    except OverflowError as error:
        raise ValueError("not a time") from error
