"""Acts beside other writers: what is encoded outside the lock is judged anew under it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from acts_machine import wrong
from editing import RECORDS, column
from hash_encoder import HashEncoder
from importing import take_records

from graphmem.edit.forget import forget
from graphmem.edit.identity import merge, rename
from graphmem.edit.remember import remember
from graphmem.edit.undo import undo
from graphmem.edit.update import Update, update
from graphmem.embed import Progress, Role
from graphmem.errors import UndoRefused
from graphmem.store import Store


class Interrupting(HashEncoder):
    """An encoder during whose first work another process writes."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__()
        self._meanwhile: Callable[[], object] | None = meanwhile

    def encode(self, texts: Sequence[str], role: Role, progress: Progress | None = None) -> list[bytes]:
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return super().encode(texts, role, progress)


def _file(tmp_path: Path) -> Path:
    path = tmp_path / "shared.db"
    with Store(path, write=True) as store:
        take_records(store, tmp_path, RECORDS, encoder=HashEncoder())
    return path


def _elsewhere(path: Path, act: Callable[[Store], object]) -> Callable[[], None]:
    def done() -> None:
        with Store(path, write=True) as other:
            act(other)

    return done


def test_a_change_lands_on_what_another_process_left(tmp_path: Path) -> None:
    path = _file(tmp_path)
    other = _elsewhere(
        path, lambda store: update(store, "m1", Update(set={"title": "Theirs"}), None, encoder=HashEncoder())
    )
    with Store(path, write=True) as store:
        update(store, "m1", Update(set={"content": "Ours."}), None, encoder=Interrupting(other))

        assert column(store, "memory", "m1", "title") == "Theirs"
        assert column(store, "memory", "m1", "content") == "Ours."
        assert store.db.execute("SELECT count(*) FROM version WHERE kind = 1").get == 2
        assert wrong(store) == []


def test_an_entity_that_was_merged_meanwhile_is_still_found(tmp_path: Path) -> None:
    path = _file(tmp_path)
    other = _elsewhere(path, lambda store: merge(store, "pg", "auth", None, encoder=HashEncoder()))
    with Store(path, write=True) as store:
        done = rename(store, "pg", "One", None, encoder=Interrupting(other))

        assert (done.id, column(store, "entity", "auth", "name")) == ("auth", "One")
        assert wrong(store) == []


def test_two_processes_remember_the_same_at_once_and_it_is_there_once(tmp_path: Path) -> None:
    path = _file(tmp_path)
    said = [{"type": "memory", "content": "Said twice.", "about": ["AuthService"]}]
    other = _elsewhere(path, lambda store: remember(store, said, scope="global", encoder=HashEncoder()))
    with Store(path, write=True) as store:
        report, told = remember(store, said, scope="global", encoder=Interrupting(other))

        assert told[0].status == "unchanged"
        assert report.batches == []
        assert store.db.execute("SELECT count(*) FROM memory WHERE content = 'Said twice.'").get == 1
        assert wrong(store) == []


def test_undo_notices_what_another_process_built_on_it_meanwhile(tmp_path: Path) -> None:
    path = _file(tmp_path)
    with Store(path, write=True) as store:
        done = update(
            store, "m1", Update(set={"content": "Ours."}), None
        )  # the vector is missing from now on
        other = _elsewhere(
            path,
            lambda held: update(held, "m1", Update(set={"content": "Theirs."}), None, encoder=HashEncoder()),
        )
        with pytest.raises(UndoRefused) as refused:
            undo(store, done.batch, encoder=Interrupting(other))
        assert "built on" in refused.value.message
        assert column(store, "memory", "m1", "content") == "Theirs."


def test_a_store_that_is_forgotten_without_an_encoder_keeps_its_vectors(tmp_path: Path) -> None:
    path = _file(tmp_path)
    with Store(path, write=True) as store:
        before = store.db.execute("SELECT count(*) FROM chunk").get
        forget(store, ["auth"], None)

        assert store.db.execute("SELECT count(*) FROM chunk").get == before
