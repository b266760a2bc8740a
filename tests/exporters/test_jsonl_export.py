"""Writing JSON Lines: one compact line per record, which its importer reads back to the same."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem import formats
from graphmem.formats import Source
from graphmem.records import EntityRecord, ManifestRecord

MANIFEST = {"type": "manifest", "format": "graphmem", "version": 1}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


def exported(*records: dict[str, Any]) -> bytes:
    (file,) = formats.exporter("jsonl").write(MANIFEST, records)
    assert file.path == ""
    return b"".join(file.chunks)


def test_each_record_is_one_compact_line_with_its_keys_in_order() -> None:
    data = exported({"type": "entity", "name": "Zoë", "aliases": ["a", "b"], "stub": True, "weight": 0.5})

    assert data.decode() == (
        '{"type":"manifest","format":"graphmem","version":1}\n'
        '{"type":"entity","name":"Zoë","aliases":["a","b"],"stub":true,"weight":0.5}\n'
    )


def test_unicode_line_ends_are_escaped_so_that_no_tool_cuts_there() -> None:
    data = exported({"type": "memory", "content": "a\u2028b\u2029c\x85d\re\nf\0"})

    line = data.decode().splitlines()[1]
    assert line == '{"type":"memory","content":"a\\u2028b\\u2029c\\u0085d\\re\\nf\\u0000"}'
    assert json.loads(line)["content"] == "a\u2028b\u2029c\x85d\re\nf\0"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_does_not_have_is_never_written(number: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        exported({"type": "entity", "name": "A", "properties": {"n": number}})


@given(st.lists(st.dictionaries(st.text(), json_values, max_size=4), max_size=4))
def test_what_is_written_is_read_back_as_it_was(properties: list[dict[str, Any]]) -> None:
    records = [{"type": "entity", "name": f"e{i}", "properties": one} for i, one in enumerate(properties)]

    manifest, *read = formats.importer("jsonl").read(io.BytesIO(exported(*records)), Source("f"))

    assert isinstance(manifest, ManifestRecord)
    assert repr([one.properties for one in read if isinstance(one, EntityRecord)]) == repr(properties)
    assert len(read) == len(properties)


def test_records_are_written_as_they_come() -> None:
    taken: list[int] = []

    def records() -> Iterable[dict[str, Any]]:
        for number in range(3):
            taken.append(number)
            yield {"type": "entity", "name": str(number)}

    (file,) = formats.exporter("jsonl").write(MANIFEST, records())
    chunks = iter(file.chunks)
    next(chunks)
    next(chunks)

    assert taken == [0]
