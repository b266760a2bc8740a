"""The JSON Schemas agree with what is read, and are complete."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import graphmem
from graphmem.findings import Finding, Severity
from graphmem.mapping import to_record
from graphmem.records import NO_PLACE, EntityRecord, MemoryRecord, RelationRecord
from graphmem.schema import NAMES, schema

FILES = Path(graphmem.__file__).with_name("schemas")
VALIDATORS = {name: jsonschema.Draft202012Validator(schema(name)) for name in NAMES}

FULL_ENTITY = {
    "type": "entity",
    "name": "AuthService",
    "kind": "service",
    "scope": "repo:/home/ada/shop/.git",
    "description": "Signs people in.",
    "aliases": ["auth-svc"],
    "properties": {"owner": {"team": "identity"}},
    "id": "01JZ8M7V5QK3W2N9X4R6T8Y0AB",
    "id_aliases": ["e-17"],
    "redirects": [{"name": "Auth", "kind": "service", "scope": "global"}],
    "state": "archived",
    "archived_by": "person",
    "stub": False,
    "created_at": "2026-05-08T12:30:00.000Z",
    "updated_at": "2026-05-09T12:30:00.000Z",
    "origins": [
        {
            "uri": "file:///notes/auth.md",
            "format": "markdown",
            "digest": "sha256:ab",
            "record": "0a1b",
            "line": 3,
            "taken_at": "2026-05-08T12:30:00.000Z",
            "said": {"description": "Signs in."},
        }
    ],
}
FULL_MEMORY = {
    "type": "memory",
    "content": "Sessions live in PostgresDB.",
    "title": "Auth > Storage",
    "memory_type": "decision",
    "importance": 0.75,
    "tags": ["storage"],
    "scopes": ["global", "team:identity"],
    "about": ["AuthService", {"name": "PostgresDB", "kind": "database"}],
    "mentions": [{"id": "01JZ8M7V5QK3W2N9X4R6T8Y0AB"}],
    "source": {"uri": "notes/auth.md", "position": 3},
    "properties": {},
    "id": "m-1",
    "state": "active",
    "created_at": "2026-05-08",
    "updated_at": 1778243400,
    "valid_at": "2026-05-08T12:30:00+02:00",
    "invalid_at": None,
    "expired_at": None,
}
FULL_RELATION = {
    "type": "relation",
    "subject": "AuthService",
    "predicate": "depends_on",
    "object": {"name": "PostgresDB", "kind": "database", "scope": "global"},
    "scope": "global",
    "weight": 1,
    "fact": "AuthService depends on PostgresDB.",
    "stated_by": ["m-1", {"id": "m-2"}],
    "properties": {"since": 2024},
    "id": "r-1",
    "id_aliases": ["r-0"],
    "state": "active",
    "created_at": "2026-05-08T12:30:00.000Z",
    "updated_at": "2026-05-08T12:30:00.000Z",
    "valid_at": "2026-05-08T12:30:00.000Z",
    "invalid_at": "2027-05-08T12:30:00.000Z",
    "expired_at": "2027-05-08T12:30:00.000Z",
    "origins": [],
}
GOOD: list[Any] = [
    FULL_ENTITY,
    FULL_MEMORY,
    FULL_RELATION,
    {"type": "entity", "name": "A"},
    {"type": "entity", "name": "A", "aliases": "B", "kind": None, "colour": "red"},
    {
        "type": "memory",
        "content": "x",
        "source": "https://example.org",
        "tags": "x",
        "scopes": "global",
        "id": 7,
    },
    {"type": "memory", "content": "x", "scope": "global"},
    {"type": "memory", "content": "x", "scope": ["global", "team:a"], "scopes": ["team:b"]},
    {"type": "entity", "name": "A", "scopes": ["team:a"]},
    {"type": "entity", "name": "A", "scopes": "team:a"},
    {"type": "entity", "name": "A", "scopes": [], "scope": "team:a"},
    {"type": "relation", "subject": "A", "predicate": "is", "object": "B", "scopes": ["team:a"]},
    {"subject": "A", "predicate": "is", "object": "B", "scopes": None},
    {"type": "relation", "subject": "A", "predicate": "is", "object": "B"},
    ["AuthService", "depends_on", "PostgresDB"],
    [{"name": "A"}, "p", {"id": "x"}],
    {"subject": "A", "predicate": "p", "object": "B"},
    {"type": None, "subject": "A", "predicate": "p", "object": "B", "weight": 0},
    {"type": "manifest", "format": "graphmem", "version": 1},
    {
        "type": "manifest",
        "format": "graphmem",
        "version": 1,
        "counts": {"entity": 0},
        "digest": "x",
        "filters": {},
    },
]
BAD: list[Any] = [
    None,
    "text",
    [],
    ["a", "b"],
    ["a", "b", "c", "d"],
    ["a", "", "c"],
    {},
    {"type": "person", "name": "A"},
    {"name": "A"},
    {"type": "entity"},
    {"type": "entity", "name": " "},
    {"type": "entity", "name": "A", "scope": "Global"},
    {"type": "entity", "name": "A", "scope": "repo:x"},
    {"type": "entity", "name": "A", "aliases": [1]},
    {"type": "entity", "name": "A", "state": "deleted"},
    {"type": "entity", "name": "A", "stub": "yes"},
    {"type": "entity", "name": "A", "id": ""},
    {"type": "entity", "name": "A", "id": "x" * 129},
    {"type": "entity", "name": "A", "created_at": True},
    {"type": "memory"},
    {"type": "memory", "content": 1},
    {"type": "memory", "content": ""},
    {"type": "memory", "content": " \n\t"},
    {"type": "memory", "content": "x", "scope": "everywhere"},
    {"type": "entity", "name": "A", "scopes": ["team:a", "team:b"]},
    {"subject": "A", "predicate": "p", "object": "B", "scopes": ["team:a", "team:b"]},
    {"type": "memory", "content": "x", "importance": 1.5},
    {"type": "memory", "content": "x", "about": [{"kind": "service"}]},
    {"type": "memory", "content": "x", "about": [{"name": "A", "colour": "red"}]},
    {"type": "memory", "content": "x", "source": {"position": 1}},
    {"type": "memory", "content": "x", "source": {"uri": "a", "position": -1}},
    {"type": "relation", "subject": "A", "predicate": "p"},
    {"type": "relation", "subject": "A", "predicate": None, "object": "B"},
    {"type": "relation", "subject": {"name": None}, "predicate": "p", "object": "B"},
    {"type": "manifest", "format": "other", "version": 1},
    {"type": "manifest", "format": "graphmem", "version": 2},
]


def read(value: Any) -> bool:
    findings: list[Finding] = []
    record = to_record(value, NO_PLACE, "f", findings)
    return record is not None and not any(one.severity is Severity.ERROR for one in findings)


def accepts(name: str, value: Any) -> bool:
    return bool(VALIDATORS[name].is_valid(value))


@pytest.mark.parametrize("name", NAMES)
def test_each_schema_is_a_valid_schema_that_needs_no_other_file(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))
    assert ".schema.json" not in json.dumps(schema(name))


def test_the_package_has_a_file_for_each_name() -> None:
    shipped = {path.name.removesuffix(".schema.json") for path in FILES.iterdir()}
    assert shipped == {*NAMES, "common"}


def test_another_name_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        schema("common")


@pytest.mark.parametrize("value", GOOD, ids=json.dumps)
def test_what_is_read_is_valid(value: Any) -> None:
    assert read(value)
    assert accepts("record", value)


@pytest.mark.parametrize("value", BAD, ids=json.dumps)
def test_what_is_rejected_is_invalid(value: Any) -> None:
    assert not read(value)
    assert not accepts("record", value)


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_in_the_schemas_are_valid_and_are_read(name: str) -> None:
    for value in schema(name).get("examples", []):
        assert accepts(name, value)
        assert accepts("record", value)
        assert read(value)


def test_each_kind_accepts_its_own_records_only() -> None:
    kinds = {
        "entity": FULL_ENTITY,
        "memory": FULL_MEMORY,
        "relation": FULL_RELATION,
        "triple": ["a", "b", "c"],
    }
    accepted = {(name, kind) for name in kinds for kind, value in kinds.items() if accepts(name, value)}
    assert accepted == {(name, name) for name in kinds}


@pytest.mark.parametrize(
    ("name", "record"), [("entity", EntityRecord), ("memory", MemoryRecord), ("relation", RelationRecord)]
)
def test_a_schema_names_every_field_of_its_record_and_no_other(name: str, record: type) -> None:
    # 'position' is a key of 'source'; the others tell where a record was read and are no part of it.
    expected = {field.name for field in fields(record)} - {"position", "place", "digest", "input"} | {"type"}
    # One scope or several, each kind of record takes the other spelling too.
    expected |= {"scope", "scopes"}
    assert set(schema(name)["properties"]) == expected


def undescribed(shape: Any, definitions: dict[str, Any], path: str) -> Iterator[str]:
    """The keys below a schema that neither describe themselves nor refer to a described definition."""
    for keyword, inner in shape.items() if isinstance(shape, dict) else ():
        if keyword in ("properties", "$defs"):
            for key, one in inner.items():
                target = definitions.get(one.get("$ref", "").removeprefix("#/$defs/"), {})
                # A key whose type alone is narrowed is described where it is declared.
                if keyword == "properties" and not {*one, *target} & {"description"} and set(one) != {"type"}:
                    yield f"{path}/{key}"
                yield from undescribed(one, definitions, f"{path}/{key}")
        elif keyword in ("anyOf", "allOf", "prefixItems"):
            for index, one in enumerate(inner):
                yield from undescribed(one, definitions, f"{path}/{index}")
        elif keyword in ("items", "then", "else"):
            yield from undescribed(inner, definitions, f"{path}/{keyword}")


@pytest.mark.parametrize("name", NAMES)
def test_every_key_is_described(name: str) -> None:
    shape = schema(name)
    assert list(undescribed(shape, shape.get("$defs", {}), name)) == []


_TEXTS = ["", " ", "A", "a b", "é", "A\u2028", "\x1c", "x" * 128, "x" * 129, "0a1b", "graphmem"]
_TEXTS += ["global", "repo:/x/.git", "repo:x", "repo:C:\\x", "team:x", "team: x"]
_TEXTS += ["active", "archived", "2026-05-08", "2026-05-08T12:30:00.000Z"]
_OTHERS: list[Any] = [None, True, False, 0, 1, -1, 0.5, 1.5, 2**63, 10**130, 1778243400]
_PART_KEYS = ["name", "kind", "scope", "id", "uri", "position", "record", "taken_at", "line", "said", "x"]
_SCALARS: st.SearchStrategy[Any] = st.sampled_from(_TEXTS) | st.sampled_from(_OTHERS)
_PARTS: st.SearchStrategy[Any] = st.dictionaries(
    st.sampled_from(_PART_KEYS), _SCALARS | st.just({}), max_size=4
)
_VALUES = _SCALARS | _PARTS | st.lists(_SCALARS | _PARTS, max_size=3)
_KEYS = sorted(
    {key for name in ("entity", "memory", "relation", "manifest") for key in schema(name)["properties"]}
)


@given(
    st.sampled_from([FULL_ENTITY, FULL_MEMORY, FULL_RELATION, GOOD[-1], GOOD[-4], {}]),
    st.dictionaries(st.sampled_from([*_KEYS, "colour"]), _VALUES, max_size=3),
    st.sets(st.sampled_from(_KEYS), max_size=3),
)
@example(FULL_ENTITY, {"scope": "team:\u2028x"}, set())
@example(FULL_ENTITY, {"type": {}}, set())
def test_whatever_is_read_without_an_error_is_valid(
    start: dict[str, Any], changes: dict[str, Any], left_out: set[str]
) -> None:
    value = {key: one for key, one in (start | changes).items() if key not in left_out}
    if read(value):
        VALIDATORS["record"].validate(value)


@given(st.lists(_VALUES, min_size=2, max_size=4))
def test_whatever_list_is_read_without_an_error_is_valid(value: list[Any]) -> None:
    if read(value):
        VALIDATORS["record"].validate(value)
