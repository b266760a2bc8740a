"""Forgetting: items are archived, with what hangs on an entity, and nothing finds them."""

from __future__ import annotations

from pathlib import Path

import pytest
from acts_machine import state, unlike, wrong
from editing import RECORDS, batches, column
from hash_encoder import HashEncoder
from importing import take_records

from graphmem.edit.forget import forget, replace_memories
from graphmem.errors import EntityNotFound, ItemNotFound, UsageError
from graphmem.store import Store
from graphmem.store.write import MEMORY


def test_with_an_entity_go_its_relations_and_the_memories_about_it_alone(store: Store) -> None:
    told = forget(store, ["AuthService"], None)

    assert told.archived == {"entity": 1, "memory": 1, "relation": 1}
    assert told.kept == 1
    states = {id_: column(store, "memory", id_, "state") for id_ in ("m1", "m2")}
    assert states == {"m1": "archived", "m2": "active"}
    assert column(store, "relation", "r1", "archived_by") == "person"
    assert wrong(store) == []


def test_forgetting_both_entities_takes_the_memory_about_both(store: Store) -> None:
    assert forget(store, ["auth", "pg"], None).archived["memory"] == 2


def test_a_rehearsal_tells_the_same_and_changes_nothing(store: Store) -> None:
    before = state(store)
    told = forget(store, ["AuthService"], None, dry_run=True)

    assert (told.archived, told.batch) == ({"entity": 1, "memory": 1, "relation": 1}, None)
    assert unlike(before, state(store)) == []


def test_forgetting_again_changes_nothing(store: Store) -> None:
    forget(store, ["m1"], None)
    told = forget(store, ["m1"], None)

    assert told.named == [{"type": "memory", "id": "m1", "status": "unchanged"}]
    assert batches(store) == 2


def test_one_that_is_not_there_keeps_all_others(store: Store) -> None:
    with pytest.raises(EntityNotFound):
        forget(store, ["m1", "nobody at all"], None)
    with pytest.raises(ItemNotFound):
        forget(store, ["AuthService"], None, only=MEMORY)

    assert column(store, "memory", "m1", "state") == "active"


def test_an_import_does_not_bring_back_what_was_forgotten(
    store: Store, tmp_path: Path, encoder: HashEncoder
) -> None:
    forget(store, ["AuthService"], None)
    before = state(store)
    report = take_records(store, tmp_path, RECORDS, encoder=encoder)

    assert not report.batches
    assert report.kept_archived == 3
    assert unlike(before, state(store)) == []


def test_the_memories_about_an_entity_are_replaced_at_once(store: Store, encoder: HashEncoder) -> None:
    told = replace_memories(
        store, "AuthService", ["m2"], ["It is fast.", "It is old."], "global", None, encoder=encoder
    )

    assert (told["before"], told["kept"], told["archived"], told["after"]) == (2, 1, 1, 3)
    assert len(told["added"]) == 2
    assert batches(store) == 2
    assert wrong(store) == []


def test_only_memories_about_the_entity_can_be_kept(store: Store) -> None:
    before = state(store)
    with pytest.raises(UsageError):
        replace_memories(store, "Mercury", ["m2"], [], "global", None, kind="metal")

    assert unlike(before, state(store)) == []


def test_what_lies_in_other_scopes_too_stays(tmp_path: Path) -> None:
    with Store(":memory:", write=True) as store:
        records = [
            {"type": "entity", "name": "G", "kind": "x"},
            {"type": "memory", "content": "seen", "about": ["G"]},
            {"type": "memory", "content": "hidden", "about": ["G"], "scopes": ["project:s"]},
            {"type": "memory", "content": "of both", "about": ["G"], "scopes": ["project:me", "project:s"]},
            {"type": "relation", "subject": "G", "predicate": "hid", "object": "H", "scope": "project:s"},
        ]
        take_records(store, tmp_path, records)
        told = forget(store, ["G"], ("project:me", "global"))

        assert told.archived == {"entity": 1, "memory": 1, "relation": 0}
        assert told.kept == 1
        active = "SELECT content FROM memory WHERE state = 'active' ORDER BY content"
        assert [content for (content,) in store.db.execute(active)] == ["hidden", "of both"]
