"""Times as people and programs write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.times import format_time, next_millisecond, now, parse_time

CANONICAL = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("2026-05-08T12:30:00.000Z", "2026-05-08T12:30:00.000Z"),
        ("2026-05-08T12:30:00Z", "2026-05-08T12:30:00.000Z"),
        ("2026-05-08t12:30:00z", "2026-05-08T12:30:00.000Z"),
        ("2026-05-08T12:30:00.123999Z", "2026-05-08T12:30:00.123Z"),
        ("2026-05-08T12:30:00+02:00", "2026-05-08T10:30:00.000Z"),
        ("2026-05-08", "2026-05-08T00:00:00.000Z"),
        ("0001-01-01", "0001-01-01T00:00:00.000Z"),
        (" 2026-05-08 ", "2026-05-08T00:00:00.000Z"),
    ],
)
def test_a_time_that_says_what_it_means(written: str, canonical: str) -> None:
    assert parse_time(written) == (canonical, False)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("2026-05-08T12:30:00", "2026-05-08T12:30:00.000Z"),
        ("2026-05-08 12:30", "2026-05-08T12:30:00.000Z"),
        (1_778_243_400, "2026-05-08T12:30:00.000Z"),
        ("1778243400", "2026-05-08T12:30:00.000Z"),
        (1_778_243_400_123, "2026-05-08T12:30:00.123Z"),
        (1_778_243_400_123_456, "2026-05-08T12:30:00.123Z"),
        (1_778_243_400_123_456_789, "2026-05-08T12:30:00.123Z"),
        (0, "1970-01-01T00:00:00.000Z"),
        (-1.5, "1969-12-31T23:59:58.500Z"),
    ],
)
def test_a_time_whose_zone_or_unit_is_guessed(written: Any, canonical: str) -> None:
    assert parse_time(written) == (canonical, True)


@pytest.mark.parametrize(
    "written",
    ["", "soon", "2026", "20260508", "2026-13-01", "2026-02-30T00:00:00.000Z", "2026-W19", "9999-12-31T23:59:59-01:00",
     "0001-01-01T00:00:00+01:00", True, None, [], {}, 1e300, float("nan"), float("inf"), 10**30, "1e5"],
)  # fmt: skip
def test_what_is_no_time(written: Any) -> None:
    with pytest.raises(ValueError, match="time"):
        parse_time(written)


@given(
    st.one_of(
        st.text(max_size=30), st.integers(), st.floats(), st.none(), st.lists(st.integers(), max_size=2)
    )
)
def test_anything_is_a_canonical_time_or_refused(value: Any) -> None:
    try:
        time, _ = parse_time(value)
    except ValueError:
        return
    assert CANONICAL.match(time)
    assert parse_time(time) == (time, False)


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.just(UTC)))
def test_canonical_times_sort_as_moments(moment: datetime) -> None:
    time = format_time(moment)

    assert CANONICAL.match(time)
    assert time < next_millisecond(time)
    assert abs(datetime.fromisoformat(time) - moment).total_seconds() < 0.001


def test_now_is_canonical() -> None:
    assert CANONICAL.match(now())
