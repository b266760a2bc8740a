"""The digest by which a record is known again, and scopes filled in and mapped."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_spool import records

from graphmem.prepare import canonical_json, prepare, text_hash
from graphmem.records import EntityRecord, MemoryRecord, Place, Record, Ref, RelationRecord

UNSAID = {"place", "digest", "input", "origins"}
"""Fields that say where a record comes from, not what it says."""

VALUES: dict[str, list[Any]] = {
    "importance": [0.0, 0.5], "weight": [0.0, 0.5], "position": [0, 1], "stub": [True], "properties": [{"a": 1}, {"a": "1"}],
    "about": [[Ref("a")], [Ref("a", "k")], [Ref("a", None, "k")], [Ref("a", None, None, "k")]],
    "mentions": [[Ref("a")], [Ref("a"), Ref("b")]], "redirects": [[Ref("a")]], "subject": [Ref("s"), Ref("s", "k")],
    "object": [Ref("o"), Ref("o", None, "k")], "aliases": [["x"], ["x", "y"], ["xy"]], "tags": [["x"], ["x", "y"]],
    "scopes": [["a:b"], ["a:b", "c:d"]], "stated_by": [["m"], ["m", "n"]], "id_aliases": [["i"], ["i", "j"]],
    "state": ["archived", "active"], "source": ["s", ""], "name": ["n2", "n3"],
}  # fmt: skip


def digest(record: Record) -> bytes:
    made = replace(record)
    prepare(made, 0, "global")
    return made.digest


def variants() -> list[Record]:
    """Records that all say something else: each field in turn, with every value of its own."""
    plain: list[Record] = [
        EntityRecord("n"), MemoryRecord("n"), RelationRecord(Ref("n"), "n", Ref("n"))
    ]  # fmt: skip
    made = list(plain)
    for record in plain:
        for field in fields(record):
            if field.name not in UNSAID:
                for value in VALUES.get(field.name, ["v", "w"]):
                    made.append(replace(record, **{field.name: value}))
    return made


def test_records_that_say_something_else_have_other_digests() -> None:
    given_ = variants()

    assert len({digest(one) for one in given_}) == len(given_)


@given(records, st.integers(0, 9))
def test_where_a_record_comes_from_is_no_part_of_its_digest(record: Record, line: int) -> None:
    elsewhere = replace(record, place=Place(line, line, line), origins=None, input=line)

    assert digest(elsewhere) == digest(record)


def test_the_order_of_keys_in_properties_does_not_count() -> None:
    one = EntityRecord("a", properties={"x": 1, "y": {"p": 1, "q": 2}})
    other = EntityRecord("a", properties={"y": {"q": 2, "p": 1}, "x": 1})

    assert digest(one) == digest(other)


def test_the_scope_of_a_run_is_that_of_records_without_one() -> None:
    entity, memory = EntityRecord("a"), MemoryRecord("c")
    scoped = EntityRecord("a", scope="repo:/b")

    records: list[Record] = [entity, memory, scoped]
    for number, record in enumerate(records):
        prepare(record, number, "repo:/a")

    assert (entity.scope, memory.scopes, scoped.scope) == ("repo:/a", ["repo:/a"], "repo:/b")
    assert [entity.input, memory.input, scoped.input] == [0, 1, 2]
    assert digest(EntityRecord("a", scope="repo:/a")) == entity.digest


def test_mapped_scopes_are_sorted_and_united() -> None:
    mapping = {"repo:/a": "repo:/z", "repo:/b": "repo:/z"}
    memory = MemoryRecord("c", scopes=["repo:/a", "repo:/b", "repo:/c"], about=[Ref("n", None, "repo:/a")])
    relation = RelationRecord(Ref("s", None, "repo:/a"), "p", Ref("o"), scope="repo:/b")
    entity = EntityRecord("e", scope="repo:/a", redirects=[Ref("old", None, "repo:/b")])

    for record in (memory, relation, entity):
        prepare(record, 0, "global", mapping)

    assert memory.scopes == ["repo:/c", "repo:/z"]
    assert memory.about[0].scope == relation.subject.scope == relation.scope == entity.scope == "repo:/z"
    assert entity.redirects[0].scope == "repo:/z"


def test_what_an_entity_need_not_say_is_dropped() -> None:
    entity = EntityRecord("a", kind="Unknown", aliases=["a", "b"])

    prepare(entity, 0, "global")

    assert (entity.kind, entity.aliases) == (None, ["b"])
    assert entity.digest == digest(EntityRecord("a", aliases=["b"]))


@pytest.mark.parametrize("field", ["name", "description"])
def test_half_a_surrogate_pair_is_refused(field: str) -> None:
    with pytest.raises(UnicodeEncodeError):
        prepare(replace(EntityRecord("a"), **{field: "\ud800"}), 0, "global")  # type: ignore[arg-type]


@given(st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=3))
def test_canonical_json_does_not_know_order(value: dict[str, Any]) -> None:
    assert canonical_json(value) == canonical_json(dict(reversed(value.items())))


def test_hashes_of_texts() -> None:
    assert len(text_hash("")) == 16
    assert text_hash("a") != text_hash("a\0")
    with pytest.raises(UnicodeEncodeError):
        text_hash("\ud800")
