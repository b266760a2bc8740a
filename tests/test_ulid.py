"""Ids that are ULIDs, and the same for the same item at the same time."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from graphmem.ulid import from_seed, mint, seed

ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}\Z")
keys = st.lists(st.text(max_size=4), max_size=3)


@given(keys)
def test_an_id_is_a_ulid(key: list[str]) -> None:
    assert ULID.match(mint("2026-05-08T12:30:00.000Z", *key))


@given(keys, keys)
def test_different_keys_have_different_ids(one: list[str], other: list[str]) -> None:
    clock = "2026-05-08T12:30:00.000Z"

    assert (mint(clock, *one) == mint(clock, *other)) == (one == other)


@given(
    st.lists(
        st.datetimes().map(lambda moment: f"{moment.year:04}-{moment.month:02}-03T04:05:06.789Z"), min_size=2
    )
)
def test_ids_sort_by_time(times: list[str]) -> None:
    late = [time for time in times if time >= "1970-01-01"]

    assert [mint(time, "same") for time in sorted(late)] == sorted(mint(time, "same") for time in late)


def test_the_digits_are_those_of_the_specification() -> None:
    assert from_seed("1970-01-01T00:00:00.000Z", bytes(16)) == "0" * 26
    assert from_seed("1970-01-01T00:00:00.001Z", b"\xff" * 16) == "0000000001" + "Z" * 16
    assert from_seed("2016-07-30T22:36:16.385Z", bytes(16))[:10] == "01ARYZ6S41"


def test_parts_of_a_key_do_not_run_together() -> None:
    assert seed("ab", "c") != seed("a", "bc") != seed("abc")
    assert seed("\ud800") != seed("\ud801")
