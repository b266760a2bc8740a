"""Renaming a scope: everything moves, keeps its ids, and files that said it are still known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from acts_machine import exported, state, unlike, wrong
from hash_encoder import HashEncoder
from importing import in_memory, take, take_records

from graphmem.edit.identity import rename
from graphmem.edit.remember import remember
from graphmem.edit.scopes import rename_scope
from graphmem.edit.undo import undo
from graphmem.edit.update import Update, update
from graphmem.errors import EditRefused, UndoRefused, UsageError
from graphmem.lookup import meant
from graphmem.store import Store
from graphmem.store.lookup import Names

OLD, NEW = "repo:/old/place", "repo:/new/place"
ENCODER = HashEncoder()


def _records(scope: str) -> list[Any]:
    return [
        {"type": "entity", "name": "Queue", "kind": "service", "scope": scope, "description": scope},
        {"type": "memory", "content": "It is long.", "about": ["Queue"], "scopes": [scope]},
        {"type": "memory", "content": "Both know.", "scopes": [scope, "global"], "tags": ["x"]},
        {"type": "relation", "subject": "Queue", "predicate": "feeds", "object": "Press", "scope": scope},
    ]


@pytest.fixture
def moved(tmp_path: Path) -> Store:
    store = in_memory()
    take_records(store, tmp_path, _records(OLD), encoder=ENCODER)
    return store


def _scopes(store: Store) -> set[str]:
    return {
        scope
        for (key,) in store.db.execute(
            "SELECT s.key FROM memory AS m JOIN scope_set AS s ON s.pk = m.scope_set"
        )
        for scope in json.loads(key)
    } | {
        name
        for (name,) in store.db.execute("SELECT s.name FROM entity AS e JOIN scope AS s ON s.pk = e.scope")
    }


def test_everything_is_in_the_new_scope_with_the_same_ids(moved: Store) -> None:
    before = {
        table: moved.db.execute(f"SELECT id FROM {table} ORDER BY id").fetchall()
        for table in ("entity", "memory", "relation")
    }
    done = rename_scope(moved, OLD, NEW, encoder=ENCODER)

    assert done.moved == {"entity": 2, "memory": 2, "relation": 1}
    assert _scopes(moved) == {NEW, "global"}
    for table, ids in before.items():
        assert moved.db.execute(f"SELECT id FROM {table} ORDER BY id").fetchall() == ids
    assert meant(Names(moved.db, (NEW,)), "Queue")[0].candidate.scope == NEW
    assert wrong(moved) == []


def test_the_file_that_said_it_is_known_and_the_memory_too(moved: Store, tmp_path: Path) -> None:
    rename_scope(moved, OLD, NEW, encoder=ENCODER)
    before = state(moved)

    assert not take_records(moved, tmp_path, _records(OLD), encoder=ENCODER).batches
    assert unlike(before, state(moved)) == []
    remember(
        moved, [{"type": "memory", "content": "It is long.", "about": ["Queue"]}], scope=NEW, encoder=ENCODER
    )
    assert moved.db.execute("SELECT count(*) FROM memory").get == 2


def test_what_was_said_in_several_versions_moves_too(moved: Store) -> None:
    memory = str(moved.db.execute("SELECT id FROM memory WHERE content = 'Both know.'").get)
    update(moved, memory, Update(set={"title": "T"}), None, encoder=ENCODER)
    rename_scope(moved, OLD, NEW, encoder=ENCODER)
    update(moved, memory, Update(set={"title": "U"}), None, encoder=ENCODER)

    assert _scopes(moved) == {NEW, "global"}
    assert wrong(moved) == []


def test_former_names_move_along(moved: Store) -> None:
    rename(moved, "Queue", "Line", (OLD,), encoder=ENCODER)
    rename_scope(moved, OLD, NEW, encoder=ENCODER)

    assert meant(Names(moved.db, (NEW,)), "Queue", "service")[0].candidate.name == "Line"
    assert wrong(moved) == []


def test_an_export_carries_it(moved: Store, tmp_path: Path) -> None:
    rename_scope(moved, OLD, NEW, encoder=ENCODER)
    path = tmp_path / "export.jsonl"
    path.write_bytes(exported(moved))
    with in_memory() as other:
        take(other, path, encoder=ENCODER)
        assert unlike(state(moved), state(other)) == []


def test_namesakes_are_refused_and_named_or_united(moved: Store, tmp_path: Path) -> None:
    take_records(moved, tmp_path, _records(NEW), name="new", encoder=ENCODER)
    before = state(moved)
    with pytest.raises(EditRefused) as refused:
        rename_scope(moved, OLD, NEW, encoder=ENCODER)
    assert "'Queue'" in refused.value.message
    assert unlike(before, state(moved)) == []

    done = rename_scope(moved, OLD, NEW, unite=True, encoder=ENCODER)
    assert done.united["entity"] == 2
    assert moved.db.execute("SELECT count(*) FROM entity").get == 2
    assert moved.db.execute("SELECT count(*) FROM relation").get == 1
    assert sorted(moved.db.execute("SELECT content FROM memory")) == [("Both know.",), ("It is long.",)]
    assert wrong(moved) == []
    undo(moved, encoder=ENCODER)
    assert unlike(before, state(moved)) == []


def test_a_rename_that_later_writes_built_on_is_not_taken_back_alone(moved: Store) -> None:
    done = rename_scope(moved, OLD, NEW, encoder=ENCODER)
    remember(moved, [{"type": "memory", "content": "More.", "about": ["Queue"]}], scope=NEW, encoder=ENCODER)
    update(moved, "Queue", Update(set={"description": "other"}), (NEW,), encoder=ENCODER)
    before = state(moved)
    with pytest.raises(UndoRefused):
        undo(moved, done.batch, encoder=ENCODER)
    assert unlike(before, state(moved)) == []


@pytest.mark.parametrize(
    ("old", "new"), [("global", NEW), (OLD, OLD), ("repo:/nobody", NEW), (OLD, "no scope")]
)
def test_what_cannot_be_renamed_is_refused(moved: Store, old: str, new: str) -> None:
    before = state(moved)
    with pytest.raises(UsageError):
        rename_scope(moved, old, new)
    assert unlike(before, state(moved)) == []


def test_a_rehearsal_changes_nothing(moved: Store) -> None:
    before = state(moved)
    assert rename_scope(moved, OLD, NEW, dry_run=True).moved["memory"] == 2
    assert unlike(before, state(moved)) == []
