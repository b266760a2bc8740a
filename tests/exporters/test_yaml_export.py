"""Writing YAML: documents that people can read, and that read back to the same records."""

from __future__ import annotations

import io
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from graphmem import formats
from graphmem.formats import Source
from graphmem.mapping import to_record
from graphmem.records import NO_PLACE, EntityRecord, ManifestRecord

MANIFEST = {"type": "manifest", "format": "graphmem", "version": 1, "counts": {"entity": 2}}

HARD_TEXTS = [
    "", " ", "no", "Yes", "null", "~", "true", "1", "-1", "1.10", "1e5", "0x1F", "2024-01-15", "12:30:45",
    " a", "a ", "a\n", "\na", "a\n\n", "a\n b\n", "a\n  \nb", "a\n   ", "\ta", "a\n\tb", "a\tb",
    "---\na", "a\n---\nb", "a\n...\n", "a: b", "a:", "- a", "? a", "# a", "a #b", "{a}", "[a]", "&a", "*a",
    "!a", "|", ">", "%a", "@a", "`a`", "'a'", '"a"', "\\n", "a\r\nb", "a\rb", "\0", "\x07", "\x7f", "\x85",
    "a\u2028b\n", "\ufeffa", "\ufffe", "é", "日本\n語", "😀", "\U0001fffe", "<<", "=",
    "<<<<<<< HEAD\na\n", "=======",
]  # fmt: skip

texts = st.sampled_from(HARD_TEXTS) | st.text() | st.text(alphabet=" \n\t-#:?ab\"'|>", max_size=12)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | texts
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)  # fmt: skip
refs = texts | st.fixed_dictionaries({"name": texts, "kind": texts})
records = st.fixed_dictionaries(
    {"type": st.just("memory"), "content": texts},
    optional={
        "title": texts,
        "importance": st.floats(0, 1) | st.integers(0, 1),
        "tags": st.lists(texts, max_size=3),
        "about": st.lists(refs, max_size=2),
        "source": texts | st.fixed_dictionaries({"uri": texts, "position": st.integers(0, 99)}),
        "properties": st.dictionaries(texts, json_values, max_size=4),
        "origins": st.lists(
            st.fixed_dictionaries({"uri": texts, "line": st.integers(1, 9), "said": json_values})
        ),
        "created_at": st.just("2026-05-08T12:30:00.000Z"),
    },
)


def exported(*given_records: dict[str, Any]) -> bytes:
    (file,) = formats.exporter("yaml").write(MANIFEST, given_records)
    assert file.path == ""
    return b"".join(file.chunks)


def read_mappings(data: bytes) -> list[Any]:
    """What the importer makes of YAML before it becomes records: the properties of an entity show it."""
    items = list(formats.importer("yaml").read(io.BytesIO(data), Source("f")))
    assert isinstance(items[0], ManifestRecord)
    return items[1:]


def test_a_record_is_a_document_that_people_can_read() -> None:
    data = exported(
        {
            "type": "memory",
            "content": "Sessions live in Redis.\nThey end after 30 days.\n",
            "title": "no",
            "importance": 0.5,
            "tags": ["auth", "1.10"],
            "about": ["AuthService", {"name": "Redis", "kind": "cache"}],
            "properties": {"empty": {}, "list": [], "nothing": None, "nested": [[1, 2], {"a": True}]},
        }
    )

    assert data.decode().split("---\n")[2] == (
        "type: memory\n"
        "content: |\n"
        "  Sessions live in Redis.\n"
        "  They end after 30 days.\n"
        'title: "no"\n'
        "importance: 0.5\n"
        "tags:\n"
        "  - auth\n"
        '  - "1.10"\n'
        "about:\n"
        "  - AuthService\n"
        "  - name: Redis\n"
        "    kind: cache\n"
        "properties:\n"
        "  empty: {}\n"
        "  list: []\n"
        "  nothing: null\n"
        "  nested:\n"
        "    - - 1\n"
        "      - 2\n"
        "    - a: true\n"
    )


@given(st.lists(records, max_size=3))
def test_what_is_written_is_read_back_as_it_was(written: list[dict[str, Any]]) -> None:
    # The whole record travels in `properties`, where nothing is normalised; a few keys travel as such below.
    wrapped = [{"type": "entity", "name": f"e{i}", "properties": one} for i, one in enumerate(written)]

    read = read_mappings(exported(*wrapped))

    assert repr([one.properties for one in read if isinstance(one, EntityRecord)]) == repr(written)
    assert len(read) == len(written)


@given(st.lists(records, max_size=3))
def test_yaml_gives_the_same_records_as_the_mappings_themselves(written: list[dict[str, Any]]) -> None:
    expected: list[Any] = []
    for one in written:
        problems: list[Any] = []
        record = to_record(one, NO_PLACE, "f", problems)
        expected += [(problem.rule, problem.message) for problem in problems]
        expected += [] if record is None else [record]

    read = read_mappings(exported(*written))
    read = [one for one in read if not isinstance(one, formats.Rejected)]
    got = [(one.rule, one.message) if hasattr(one, "rule") else _without_place(one) for one in read]

    assert repr(got) == repr(expected)


def _without_place(record: Any) -> Any:
    record.place = NO_PLACE
    return record


@pytest.mark.parametrize("text", HARD_TEXTS)
def test_other_readers_of_yaml_see_the_same_text(text: str) -> None:
    data = exported({"type": "entity", "name": text, "properties": {text: [text]}})

    _, record = yaml.safe_load_all(data)

    assert record == {"type": "entity", "name": text, "properties": {text: [text]}}


@pytest.mark.parametrize("size", [499, 500, 501, 1023, 1025, 20_000])
def test_a_key_too_long_for_a_plain_mapping_is_written_all_the_same(size: int) -> None:
    for key in ("k" * size, "\x01" * size, "é b" * size):
        (record,) = read_mappings(exported({"type": "entity", "name": "A", "properties": {key: {key: [1]}}}))

        assert record.properties == {key: {key: [1]}}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_does_not_have_is_never_written(number: float) -> None:
    with pytest.raises(ValueError, match="not a number that can be exported"):
        exported({"type": "entity", "name": "A", "properties": {"n": number}})


def test_an_empty_record_is_an_empty_mapping() -> None:
    assert exported({}).endswith(b"--- {}\n")
