"""Keys that are nearly right, the two spellings of a scope, and memories without a text."""

from __future__ import annotations

from typing import Any

import pytest

from graphmem.findings import Finding
from graphmem.mapping import KEYS, to_record
from graphmem.records import EntityRecord, MemoryRecord, Place, RelationRecord

PLACE = Place(4, 1, 90)
TRIPLE = {"type": "relation", "subject": "A", "predicate": "knows", "object": "B"}


def read(value: dict[str, Any]) -> tuple[Any, list[tuple[str, str]]]:
    """The record of a value, and the rule and message of each finding."""
    findings: list[Finding] = []
    record = to_record(value, PLACE, "f.jsonl", findings)
    assert all((one.file, one.place) == ("f.jsonl", PLACE) for one in findings)
    return record, [(one.rule, one.message) for one in findings]


# ---- scopes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "scopes"),
    [
        ({"scope": "team:a"}, ["team:a"]),
        ({"scope": ["team:b", "team:a"]}, ["team:a", "team:b"]),
        ({"scope": "team:b", "scopes": ["team:a"]}, ["team:a", "team:b"]),
        ({"scope": None, "scopes": ["team:a"]}, ["team:a"]),
        ({"scope": None}, []),
    ],
)
def test_the_scope_of_a_memory_is_one_of_its_scopes(given: dict[str, Any], scopes: list[str]) -> None:
    record, found = read({"type": "memory", "content": "x", **given})
    assert found == []
    assert isinstance(record, MemoryRecord)
    assert (record.scopes, record.properties) == (scopes, {})


@pytest.mark.parametrize("start", [{"type": "entity", "name": "A"}, TRIPLE, {**TRIPLE, "type": None}])
@pytest.mark.parametrize(
    ("given", "scope"),
    [
        ({"scopes": ["team:a"]}, "team:a"),
        ({"scopes": "team:a"}, "team:a"),
        ({"scopes": ["team:a"], "scope": "team:a"}, "team:a"),
        ({"scopes": [], "scope": "team:a"}, "team:a"),
        ({"scopes": None}, None),
    ],
)
def test_the_only_one_of_the_scopes_of_an_entity_or_relation_is_its_scope(
    start: dict[str, Any], given: dict[str, Any], scope: str | None
) -> None:
    record, found = read({**start, **given})
    assert found == []
    assert isinstance(record, (EntityRecord, RelationRecord))
    assert (record.scope, record.properties) == (scope, {})


@pytest.mark.parametrize("start", [{"type": "entity", "name": "A"}, TRIPLE])
def test_an_entity_or_relation_with_two_scopes_is_rejected(start: dict[str, Any]) -> None:
    record, found = read({**start, "scopes": ["team:a", "team:b"]})
    assert record is None
    assert found == [("bad-value", "'scopes' must be one scope: an entity or relation has only one")]
    for given in ({"scopes": ["team:a"], "scope": "team:b"}, {"scope": "team:b", "scopes": ["team:a"]}):
        record, found = read({**start, **given})
        assert record is None
        message = "'scopes' must not be another scope than 'scope', which is 'team:b'"
        assert found == [("bad-value", message)]


def test_the_other_spelling_is_checked_as_any_scope() -> None:
    assert read({"type": "memory", "content": "x", "scope": "everywhere"})[1][0][0] == "bad-scope"
    assert read({"type": "entity", "name": "A", "scopes": ["everywhere"]})[1][0][0] == "bad-scope"


# ---- keys that are nearly right ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "key", "known"),
    [
        ("entity", "Kind", "kind"),
        ("entity", "alias", "aliases"),
        ("entity", "descripton", "description"),
        ("entity", "createdAt", "created_at"),
        ("entity", "id-aliases", "id_aliases"),
        ("memory", "tag", "tags"),
        ("memory", "memory type", "memory_type"),
        ("memory", "Sources", "source"),
        ("relation", "valid_ad", "valid_at"),
    ],
)
def test_a_key_that_is_nearly_one_is_kept_and_told(type_: str, key: str, known: str) -> None:
    start = {"entity": {"name": "A"}, "memory": {"content": "x"}, "relation": TRIPLE}[type_]
    record, found = read({"type": type_, **start, key: "x"})
    assert record.properties == {key: "x"}
    assert found == [("unknown-key-near", f"'{key}' was kept as a property; did you mean '{known}'?")]


@pytest.mark.parametrize(
    ("type_", "key"),
    [
        ("entity", "colour"), ("entity", "status"), ("entity", "version"), ("entity", "archived"),
        ("entity", "surname"), ("memory", "context"), ("memory", "author"), ("memory", "k" * 5000),
        ("memory", ""), ("relation", "height"), ("relation", "subject_id"), ("relation", "since"),
    ],
)  # fmt: skip
def test_a_key_of_its_own_is_kept_without_a_word(type_: str, key: str) -> None:
    start = {"entity": {"name": "A"}, "memory": {"content": "x"}, "relation": TRIPLE}[type_]
    record, found = read({"type": type_, **start, key: "x"})
    assert record.properties == {key: "x"}
    assert found == []


def test_a_key_beside_the_known_one_it_looks_like_is_kept_without_a_word() -> None:
    record, found = read(
        {"type": "entity", "name": "A", "kind": "x", "Kind": "y", "aliases": [], "alias": "z"}
    )
    assert (record.kind, record.properties, found) == ("x", {"Kind": "y", "alias": "z"}, [])


def test_what_stands_in_properties_is_not_judged() -> None:
    assert read({"type": "entity", "name": "A", "properties": {"alias": "x", "Kind": "y"}})[1] == []


def test_a_missing_key_names_the_one_that_may_be_meant_for_it() -> None:
    record, found = read({"type": "memory", "contents": "x"})
    assert record is None
    assert found == [("missing-key", "memory without 'content'; did you mean it by 'contents'?")]


@pytest.mark.parametrize("type_", sorted(KEYS))
def test_no_known_key_is_kept_as_a_property(type_: str) -> None:
    start = {"entity": {"name": "A"}, "memory": {"content": "x"}, "relation": TRIPLE}[type_]
    record, found = read({**dict.fromkeys(KEYS[type_]), **start, "type": type_})
    assert (record.properties, found) == ({}, [])


# ---- memories without a text ------------------------------------------------------------------------


@pytest.mark.parametrize("content", ["", " ", "\n\t\r\n", "\u3000"])
@pytest.mark.parametrize("more", [{}, {"id": "m1", "tags": ["x"]}])
def test_a_memory_of_white_space_is_rejected(content: str, more: dict[str, Any]) -> None:
    record, found = read({"type": "memory", "content": content, **more})
    assert record is None
    assert found == [("bad-value", "'content' is empty")]


def test_the_white_space_around_a_content_is_kept() -> None:
    record, found = read({"type": "memory", "content": " x\n"})
    assert (record.content, found) == (" x\n", [])
