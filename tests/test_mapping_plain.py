"""The short way through common shapes gives what the long way gives."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from graphmem.findings import Finding
from graphmem.mapping import to_record
from graphmem.records import Place

texts = st.one_of(
    st.sampled_from(
        ["", " ", "a", " a  b ", "e\u0301", "C++", "x\x00y", "\u2028", "global", "repo:/a", "kind:v"]
    ),
    st.text(max_size=6),
)
values = st.one_of(
    st.none(), texts, st.integers(), st.booleans(), st.lists(texts, max_size=2), st.just({}), st.just([["a"]])
)
KEYS = (
    *("type", "name", "kind", "description", "aliases", "scope", "content", "title", "about"),
    *("memory_type", "subject", "predicate", "object"),
)
records = st.one_of(
    st.dictionaries(st.sampled_from(KEYS), values, max_size=6),
    st.builds(
        lambda type_, rest: {"type": type_, **rest},
        st.sampled_from(["entity", "memory", "relation"]),
        st.dictionaries(st.sampled_from(KEYS[1:]), st.one_of(texts, texts.map(lambda t: [t])), max_size=6),
    ),
)


@given(records)
def test_a_plain_record_is_read_like_any_other(value: dict[str, Any]) -> None:
    place = Place(3, 1, 17)
    short: list[Finding] = []
    long: list[Finding] = []
    # A null is an absent value, but sends the record the long way.
    expected = to_record({**value, "id": None}, place, "f", long)
    got = to_record(value, place, "f", short)
    if expected is None and got is None and "unknown-shape" in {one.rule for one in long}:
        return  # the message lists the keys
    assert got == expected
    assert short == long
