"""From parsed values to records, and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from test_accounting import _json, _likely, _typed

from graphmem.canonical import to_mapping
from graphmem.findings import Finding, Severity
from graphmem.mapping import guess_type, to_record
from graphmem.names import exact
from graphmem.records import (
    EntityRecord,
    ManifestRecord,
    MemoryRecord,
    Place,
    Ref,
    RelationRecord,
)

PLACE = Place(3, 1, 17)


def read(value: Any) -> tuple[Any, list[Finding]]:
    findings: list[Finding] = []
    return to_record(value, PLACE, "f", findings), findings


def read_well(value: Any) -> Any:
    record, findings = read(value)
    assert findings == []
    return record


# ---- anything ---------------------------------------------------------------------------------------


@given(_json | _likely | _typed)
def test_any_value_is_a_record_or_has_an_error_finding(value: Any) -> None:
    record, findings = read(value)

    errors = [found for found in findings if found.severity is Severity.ERROR]
    assert (record is None) == bool(errors)
    for found in findings:
        assert (found.place, found.file) == (PLACE, "f")
        assert found.message


@given(_typed)
def test_a_record_that_is_written_is_read_back(value: Any) -> None:
    record, _ = read(value)
    if record is None or isinstance(record, ManifestRecord):
        return

    again, findings = read(json.loads(json.dumps(to_mapping(record))))

    assert [found for found in findings if found.rule != "guessed-time"] == []
    assert to_mapping(again) == to_mapping(record)


# ---- shapes -----------------------------------------------------------------------------------------


def test_an_entity() -> None:
    value = {
        "type": "entity",
        "name": " Auth  Service ",
        "kind": "service",
        "aliases": ["b", "a", "b"],
        "id": 7,
    }

    assert read_well(value) == EntityRecord(
        "Auth Service", "service", aliases=["a", "b"], id="7", place=PLACE
    )


def test_a_memory() -> None:
    value = {
        "type": "memory", "content": " kept as it is \n", "about": "A", "mentions": [{"name": "B", "kind": "k"}],
        "tags": "one", "scopes": ["repo:/b", "global"], "source": {"uri": "u", "position": 2}, "importance": 1,
        "valid_at": "2024-01-01",
    }  # fmt: skip

    assert read_well(value) == MemoryRecord(
        " kept as it is \n", tags=["one"], scopes=["global", "repo:/b"], about=[Ref("A")],
        mentions=[Ref("B", "k")], source="u", position=2, importance=1.0, valid_at="2024-01-01T00:00:00.000Z",
        place=PLACE,
    )  # fmt: skip


@pytest.mark.parametrize(
    "value",
    [["A", "p", "B"], {"subject": "A", "predicate": "p", "object": "B"},
     {"type": "relation", "subject": {"name": "A"}, "predicate": " p ", "object": "B"}],
)  # fmt: skip
def test_a_triple(value: Any) -> None:
    assert read_well(value) == RelationRecord(Ref("A"), "p", Ref("B"), place=PLACE)


def test_references_are_a_set_in_order() -> None:
    value = {"type": "memory", "content": "c", "about": ["B", "A", {"name": "A"}, {"name": "A", "kind": "k"}]}

    assert read_well(value).about == [Ref("A"), Ref("A", "k"), Ref("B")]


def test_unknown_keys_are_kept() -> None:
    record, findings = read(
        {"type": "entity", "name": "a", "colour": "red", "n": None, "properties": {"n": 1}}
    )

    assert record.properties == {"n": 1, "colour": "red", "extra.n": None}
    assert [found.rule for found in findings] == ["key-collision"]


def test_absent_and_null_are_the_same() -> None:
    value = {"type": "memory", "content": "c", "title": None, "tags": None, "about": None, "created_at": None}

    assert read_well(value) == MemoryRecord("c", place=PLACE)


def test_a_name_is_normalised_and_a_content_is_not() -> None:
    record = read_well({"type": "memory", "content": "cafe\u0301", "about": ["cafe\u0301 \u3000 x"]})

    assert record.content == "cafe\u0301"
    assert record.about == [Ref(exact("café x"))]


# ---- what is wrong ----------------------------------------------------------------------------------

WRONG: list[tuple[Any, str, str]] = [
    (7, "not-a-record", "not int"),
    (None, "not-a-record", "not NoneType"),
    (["a", "b"], "not-a-record", "this list has 2"),
    ({}, "unknown-shape", "(none)"),
    ({"type": "thing", "a": 1}, "unknown-shape", "'thing'"),
    ({"type": ["entity"]}, "unknown-shape", "'type'"),
    ({"type": "entity"}, "missing-key", "'name'"),
    ({"type": "entity", "name": None}, "missing-key", "'name'"),
    ({"type": "entity", "name": " \t"}, "bad-name", "'name' is empty"),
    ({"type": "entity", "name": 5}, "bad-name", "must be text"),
    ({"type": "entity", "name": "a", "scope": "here"}, "bad-scope", "'scope'"),
    ({"type": "entity", "name": "a", "id": ""}, "bad-id", "'id'"),
    ({"type": "entity", "name": "a", "id": "x" * 129}, "bad-id", "128"),
    ({"type": "entity", "name": "a", "id": True}, "bad-id", "'id'"),
    ({"type": "entity", "name": "a", "state": "gone"}, "bad-value", "'state'"),
    ({"type": "entity", "name": "a", "properties": []}, "bad-value", "'properties'"),
    ({"type": "entity", "name": "a", "created_at": "soon"}, "bad-time", "'soon'"),
    ({"type": "memory", "content": "c", "importance": 1.1}, "bad-value", "from 0 to 1"),
    ({"type": "memory", "content": "c", "importance": float("nan")}, "bad-value", "from 0 to 1"),
    ({"type": "memory", "content": "c", "source": {"position": 1}}, "bad-value", "'uri'"),
    ({"type": "memory", "content": "c", "source": {"uri": "u", "position": -1}}, "bad-value", "from 0"),
    ({"type": "memory", "content": "c", "source": {"uri": "u", "position": 2**63}}, "bad-value", "from 0"),
    ({"type": "memory", "content": "c", "about": [{"kind": "k"}]}, "bad-value", "'name' or 'id'"),
    ({"type": "memory", "content": "c", "about": [{"name": "a", "type": "k"}]}, "bad-value", "no key 'type'"),
    ({"type": "memory", "content": "c", "tags": [""]}, "bad-value", "'tags'"),
    ({"type": "relation", "subject": "a", "predicate": "p"}, "missing-key", "'object'"),
    ({"type": "relation", "subject": "a", "predicate": " ", "object": "b"}, "bad-value", "'predicate'"),
    ({"type": "manifest", "format": "other", "version": 1}, "bad-manifest", "manifest"),
    ({"type": "manifest", "format": "graphmem", "version": 2}, "newer-format", "version 2"),
]


@pytest.mark.parametrize(("value", "rule", "said"), WRONG, ids=lambda value: str(value)[:60])
def test_one_wrong_value_is_one_finding(value: Any, rule: str, said: str) -> None:
    record, findings = read(value)

    assert record is None
    assert [found.rule for found in findings] == [rule]
    assert said in findings[0].message


def test_every_wrong_value_of_a_record_is_told() -> None:
    record, findings = read(
        {"type": "relation", "subject": {}, "weight": 7, "valid_at": [], "predicate": "p"}
    )

    assert record is None
    assert sorted(found.rule for found in findings) == ["bad-time", "bad-value", "bad-value", "missing-key"]


@pytest.mark.parametrize(
    ("value", "type_"),
    [({"type": "memory"}, "memory"), ({"subject": 1, "predicate": 2, "object": 3}, "relation"), ({"name": "a"}, None),
     ({"type": 5, "subject": 1, "predicate": 2, "object": 3}, None), ({"type": "manifest"}, "manifest")],
)  # fmt: skip
def test_the_type_of_a_mapping(value: dict[str, Any], type_: str | None) -> None:
    assert guess_type(value) == type_
