"""An act is done or not done: whichever statement fails, the store is as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from everything import FIRST
from hash_encoder import HashEncoder
from importing import take_records
from snapshots import changed, rows, sound
from test_atomicity import Fault, fail_at

from graphmem.edit.forget import forget
from graphmem.edit.identity import merge, rename
from graphmem.edit.remember import remember
from graphmem.edit.undo import undo
from graphmem.edit.update import Update, update
from graphmem.options import ImportOptions
from graphmem.store import Store
from graphmem.sync import sync

Act = Callable[[Store, Path], object]


def _remember(store: Store, _: Path) -> object:
    records = [{"type": "memory", "content": "new", "about": ["One"]}, ["One", "knows", "Nobody yet"]]
    return remember(store, records, scope="global", encoder=HashEncoder())


def _update(store: Store, _: Path) -> object:
    wanted = Update(set={"description": "changed", "kind": "thing"}, add={"aliases": ["Uno"]})
    return update(store, "One", wanted, None, encoder=HashEncoder())


def _rename(store: Store, _: Path) -> object:
    return rename(store, "One", "Number one", None, encoder=HashEncoder())


def _merge(store: Store, _: Path) -> object:
    return merge(store, "One", "Two", None, encoder=HashEncoder())


def _forget(store: Store, _: Path) -> object:
    return forget(store, ["One"], None, encoder=HashEncoder())


def _undo(store: Store, _: Path) -> object:
    return undo(store, encoder=HashEncoder())


def _sync(store: Store, folder: Path) -> object:
    return sync(store, [str(folder)], ImportOptions(), HashEncoder())


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "one.md").write_text("---\ntitle: Note\n---\nA text of [[One]].\n", encoding="utf-8")
    (folder / "two.md").write_text("---\ntitle: Gone\n---\nAnother text.\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("act", [_remember, _update, _rename, _merge, _forget, _undo, _sync])
def test_a_fault_at_any_statement_of_an_act_changes_nothing(act: Act, notes: Path, tmp_path: Path) -> None:
    with Store(tmp_path / "memory.db", write=True) as store:
        take_records(store, tmp_path, FIRST, name="first", encoder=HashEncoder())
        records = [
            {"type": "memory", "content": "of both", "about": ["One", "Two"]},
            {"type": "relation", "subject": "One", "predicate": "knows", "object": "Two"},
        ]
        remember(store, records, scope="global", encoder=HashEncoder())
        _sync(store, notes)
        (notes / "one.md").write_text("---\ntitle: Note\n---\nEdited, of [[Two]].\n", encoding="utf-8")
        (notes / "two.md").unlink()
        before = rows(store.db)
        failed: list[str] = []

        for number in range(1, 10_000):
            fail_at(store.db, number)
            try:
                act(store, notes)
            except Fault as fault:
                failed.append(str(fault))
            else:
                break
            finally:
                store.db.exec_trace = None
            if "COMMIT" in failed[:-1]:  # the batch stands; what comes after is a cache
                break
            assert changed(before, rows(store.db)) == {}, (number, failed[-1])

        assert "COMMIT" in failed
        assert len(failed) > 40
        assert changed(before, rows(store.db)) != {}
        assert sound(store.db) == []
