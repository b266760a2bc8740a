"""Taking batches back: exactly what stood before, where nothing later was built on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from acts_machine import State, state, unlike, wrong
from editing import RECORDS, batches, filled
from hash_encoder import HashEncoder
from importing import in_memory, take_records

from graphmem.commit import Choices
from graphmem.edit.forget import forget
from graphmem.edit.identity import alias, merge, rename
from graphmem.edit.remember import remember
from graphmem.edit.scopes import rename_scope
from graphmem.edit.undo import undo
from graphmem.edit.update import Update, update
from graphmem.errors import UndoRefused
from graphmem.store import Store

ENCODER = HashEncoder()
MEMORY: dict[str, Any] = {"type": "memory", "content": "A further one.", "about": ["AuthService"], "id": "m9"}
ACTS: dict[str, Callable[[Store, Path], Any]] = {
    "import": lambda store, folder: take_records(
        store, folder, [MEMORY, {"type": "entity", "name": "AuthService", "kind": "service", "aliases": ["x"]}],
        name="more", encoder=ENCODER,
    ),
    "import of a changed file": lambda store, folder: take_records(
        store, folder, [RECORDS[0] | {"description": "Another.", "aliases": ["door"]}, *RECORDS[2:]], encoder=ENCODER
    ),
    "import in small batches": lambda store, folder: take_records(
        store, folder, [{"type": "entity", "name": f"e{n}"} for n in range(5)], name="more", encoder=ENCODER,
        batch_size=2,
    ),
    "remember": lambda store, _: remember(store, [MEMORY, ["AuthService", "uses", "X"]], scope="global", encoder=ENCODER),
    "completion of a stub": lambda store, _: remember(
        store, [{"type": "entity", "name": "PostgresDB", "kind": "database", "aliases": ["pg"]}], scope="global",
        encoder=ENCODER,
    ),
    "update": lambda store, _: update(
        store, "m1", Update(set={"content": "Other."}, clear=["tags"], add={"about": ["pg"]}), None, encoder=ENCODER
    ),
    "forget": lambda store, _: forget(store, ["auth"], None, encoder=ENCODER),
    "rename": lambda store, _: rename(store, "AuthService", "Gate", None, encoder=ENCODER),
    "alias": lambda store, _: alias(store, "AuthService", ["door"], ["login"], None, encoder=ENCODER),
    "merge": lambda store, _: merge(store, "PostgresDB", "AuthService", None, encoder=ENCODER),
    "renamed scope": lambda store, _: rename_scope(store, "project:a", "project:b", unite=True, encoder=ENCODER),
}  # fmt: skip


@pytest.fixture
def scoped(tmp_path: Path) -> Store:
    store = filled(tmp_path, ENCODER)
    for scope in ("project:a", "project:b"):
        given = [{"type": "entity", "name": "Queue", "scope": scope, "description": scope},
                 {"type": "memory", "content": "queues", "about": ["Queue"], "scopes": [scope]},
                 {"type": "memory", "content": "both", "scopes": ["project:a", "project:b"]},
                 {"type": "relation", "subject": "Queue", "predicate": "feeds", "object": "AuthService", "scope": scope}]  # fmt: skip
        remember(store, given, scope=scope, encoder=ENCODER)
    return store


@pytest.mark.parametrize("name", ACTS)
def test_an_act_is_taken_back_and_done_again_exactly(scoped: Store, tmp_path: Path, name: str) -> None:
    before = state(scoped)
    ACTS[name](scoped, tmp_path)
    after = state(scoped)
    assert unlike(before, after) != []
    assert wrong(scoped) == []

    first = undo(scoped, encoder=ENCODER)
    assert unlike(before, state(scoped)) == []
    assert wrong(scoped) == []

    again = undo(scoped, first.batch, encoder=ENCODER)
    assert unlike(after, state(scoped)) == []
    assert wrong(scoped) == []

    undo(scoped, again.batch, encoder=ENCODER)
    assert unlike(before, state(scoped)) == []


def test_all_acts_in_a_row_are_taken_back_one_by_one(scoped: Store, tmp_path: Path) -> None:
    states: list[State] = []
    for name in ("import", "update", "alias", "merge", "renamed scope", "rename", "forget"):
        states.append(state(scoped))
        ACTS[name](scoped, tmp_path)
    for before in reversed(states):
        undo(scoped, encoder=ENCODER)
        assert unlike(before, state(scoped)) == []
        assert wrong(scoped) == []


def test_an_undone_import_can_be_imported_again_and_gets_new_row_numbers(tmp_path: Path) -> None:
    with in_memory() as store:
        take_records(store, tmp_path, RECORDS, encoder=ENCODER)
        first = [
            store.db.execute(f"SELECT max(pk) FROM {table}").get for table in ("entity", "memory", "relation")
        ]
        undo(store, encoder=ENCODER)
        assert store.db.execute("SELECT count(*) FROM origin").get == 0
        report = take_records(store, tmp_path, RECORDS, encoder=ENCODER)

        assert report.counts["entity"].created == 4
        lowest = [
            store.db.execute(f"SELECT min(pk) FROM {table}").get for table in ("entity", "memory", "relation")
        ]
        assert all(low > high for low, high in zip(lowest, first, strict=True))
        assert wrong(store) == []


def test_a_batch_that_later_ones_were_built_on_is_refused_and_nothing_changes(
    store: Store, tmp_path: Path
) -> None:
    update(store, "m1", Update(set={"title": "T"}), None, encoder=ENCODER)
    remember(store, [MEMORY], scope="global", encoder=ENCODER)
    first = str(store.db.execute("SELECT id FROM batch ORDER BY pk LIMIT 1").get)
    before = state(store)
    with pytest.raises(UndoRefused) as refused:
        undo(store, first, encoder=ENCODER)

    assert "'update'" in refused.value.message
    assert "'remember'" in refused.value.message
    assert "--cascade" in refused.value.hint
    assert unlike(before, state(store)) == []


def test_a_cascade_takes_back_what_was_built_on_it_and_can_be_taken_back(store: Store) -> None:
    update(store, "m1", Update(set={"title": "T"}), None, encoder=ENCODER)
    remember(store, [MEMORY], scope="global", encoder=ENCODER)
    remember(store, [{"type": "memory", "content": "of nothing here"}], scope="global", encoder=ENCODER)
    first = str(store.db.execute("SELECT id FROM batch ORDER BY pk LIMIT 1").get)
    before = state(store)
    done = undo(store, first, cascade=True, encoder=ENCODER)

    assert len(done.batches) == 3
    assert store.db.execute("SELECT content FROM memory").fetchall() == [("of nothing here",)]
    assert wrong(store) == []
    undo(store, done.batch, encoder=ENCODER)
    assert unlike(before, state(store)) == []


def test_an_earlier_batch_that_nothing_was_built_on_is_taken_back_alone(store: Store) -> None:
    remember(store, [MEMORY], scope="global", encoder=ENCODER)
    batch = str(store.db.execute("SELECT id FROM batch ORDER BY pk DESC LIMIT 1").get)
    update(store, "m1", Update(set={"title": "T"}), None, encoder=ENCODER)
    done = undo(store, batch[:20], encoder=ENCODER)

    assert (done.batches, done.removed["memory"]) == ([batch], 1)
    assert wrong(store) == []


def test_the_batches_of_one_command_are_taken_back_together(store: Store, tmp_path: Path) -> None:
    before = state(store)
    report = ACTS["import in small batches"](store, tmp_path)
    assert len(report.batches) == 3
    done = undo(store, encoder=ENCODER)

    assert len(done.batches) == 3
    assert unlike(before, state(store)) == []


def test_without_a_name_the_last_command_that_stands_is_taken_back(store: Store) -> None:
    update(store, "m1", Update(set={"title": "T"}), None, encoder=ENCODER)
    update(store, "m1", Update(set={"title": "U"}), None, encoder=ENCODER)
    undo(store, encoder=ENCODER)
    undo(store, encoder=ENCODER)

    assert store.db.execute("SELECT title FROM memory WHERE id = 'm1'").get is None


def test_what_was_taken_back_is_not_taken_back_again(store: Store) -> None:
    done = update(store, "m1", Update(set={"title": "T"}), None, encoder=ENCODER)
    undone = undo(store, done.batch, encoder=ENCODER)
    with pytest.raises(UndoRefused) as refused:
        undo(store, done.batch, encoder=ENCODER)
    assert str(undone.batch) in refused.value.hint


@pytest.mark.parametrize("text", ["nothing", "01", ""])
def test_a_name_of_no_batch_is_refused(store: Store, text: str) -> None:
    with pytest.raises(UndoRefused):
        undo(store, text, encoder=ENCODER)


def test_an_empty_store_has_nothing_to_take_back() -> None:
    with in_memory() as store, pytest.raises(UndoRefused):
        undo(store)


def test_a_rehearsal_tells_the_same_and_changes_nothing(store: Store) -> None:
    remember(store, [MEMORY], scope="global", encoder=ENCODER)
    before = state(store)
    told = undo(store, dry_run=True)

    assert (told.removed["memory"], told.batch) == (1, None)
    assert batches(store) == 2
    assert unlike(before, state(store)) == []


def test_counters_of_access_do_not_stand_in_the_way(store: Store) -> None:
    remember(store, [MEMORY], scope="global", encoder=ENCODER)
    update(store, "m9", Update(set={"title": "T"}), None, encoder=ENCODER)
    store.db.execute("UPDATE memory SET access_count = 7, last_accessed_at = '2026-01-01T00:00:00.000Z'")
    undo(store, encoder=ENCODER)

    assert store.db.execute("SELECT title, access_count FROM memory WHERE id = 'm9'").fetchone() == (None, 7)
    undo(store, encoder=ENCODER)
    assert store.db.execute("SELECT 1 FROM memory WHERE id = 'm9'").get is None


def test_an_import_without_history_cannot_be_taken_back_where_it_changed_something(
    store: Store, tmp_path: Path
) -> None:
    take_records(
        store, tmp_path, [RECORDS[0] | {"description": "Other."}], name="more", encoder=ENCODER, history=False
    )
    with pytest.raises(UndoRefused) as refused:
        undo(store, encoder=ENCODER)
    assert "not kept" in refused.value.message


def test_a_former_name_that_another_has_now_is_theirs_to_give_back(store: Store) -> None:
    done = rename(store, "AuthService", "Gate", None, encoder=ENCODER)
    remember(store, [{"type": "entity", "name": "New", "kind": "service"}], scope="global", encoder=ENCODER)
    taken = rename(store, "New", "AuthService", None, encoder=ENCODER)
    before = state(store)
    with pytest.raises(UndoRefused) as refused:
        undo(store, done.batch, encoder=ENCODER)
    assert str(taken.batch) in refused.value.message
    assert unlike(before, state(store)) == []

    undone = undo(store, done.batch, cascade=True, encoder=ENCODER)
    assert undone.batches == [taken.batch, done.batch]
    assert store.db.execute("SELECT name FROM entity WHERE kind = 'service' ORDER BY name").fetchall() == [
        ("AuthService",), ("New",),
    ]  # fmt: skip
    assert wrong(store) == []


def test_an_older_relation_that_named_a_memory_before_it_came_does_not_hold_it(store: Store) -> None:
    stated = {
        "type": "relation",
        "subject": "AuthService",
        "predicate": "uses",
        "object": "Vault",
        "stated_by": ["m9"],
    }
    remember(store, [stated], scope="global", encoder=ENCODER)
    before = state(store)
    remember(store, [MEMORY], scope="global", encoder=ENCODER)
    undo(store, encoder=ENCODER)

    assert unlike(before, state(store)) == []
    assert wrong(store) == []


def test_a_record_that_goes_to_another_item_is_taken_back_exactly(tmp_path: Path) -> None:
    """After a scope was renamed, a record overwrites with what it said of the item in the old scope."""
    with in_memory() as store:
        old = {"type": "memory", "content": "old", "about": ["A"], "scopes": ["global", "project:a"]}
        take_records(store, tmp_path, [old], name="u")
        rename_scope(store, "project:a", "project:b")
        before = state(store)
        take_records(
            store, tmp_path, [{"type": "memory", "content": "new"}, old], name="u",
            choices=Choices(on_conflict="overwrite"),
        )  # fmt: skip
        undo(store)
        assert unlike(before, state(store)) == []
