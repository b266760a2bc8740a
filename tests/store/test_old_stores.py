"""Stores made by earlier versions are opened by this one: `fixtures/stores/` keeps one of each schema."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from acts_machine import exported, wrong
from hash_encoder import HashEncoder
from importing import take

from graphmem.edit.undo import undo
from graphmem.edit.update import Update, update
from graphmem.errors import StoreNotFound, UndoRefused
from graphmem.store import SCHEMA_VERSION, Store

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
OLD = sorted((FIXTURES / "stores").glob("schema-*.db.gz"))


@pytest.fixture(params=OLD, ids=lambda path: path.name)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "old.db"
    path.write_bytes(gzip.decompress(request.param.read_bytes()))
    return path


def test_there_is_a_store_of_the_first_schema_that_was_in_use() -> None:
    assert [path.name for path in OLD][:1] == ["schema-2.db.gz"]


def test_an_old_store_is_brought_up_to_date_by_the_first_write_and_sound(old: Path) -> None:
    with pytest.raises(StoreNotFound) as refused:
        Store(old)
    assert "older" in refused.value.message
    with Store(old, write=True) as store:
        assert store.db.pragma("user_version") == SCHEMA_VERSION
        assert wrong(store) == []
        assert exported(store).count(b"\n") > 5


def test_what_was_imported_then_is_known_now(old: Path, tmp_path: Path) -> None:
    with Store(old, write=True) as store:
        before = exported(store)
        origins = store.db.execute("SELECT count(*) FROM contribution").get
        take(store, FIXTURES / "jsonl" / "services.jsonl", encoder=HashEncoder())

        # It is another place, and what it says is known.
        assert store.db.execute("SELECT count(*) FROM contribution").get > origins
        assert store.db.execute("SELECT count(*) FROM version").get == 1  # of before
        assert exported(store).count(b"\n") == before.count(b"\n")


def test_what_an_old_batch_changed_is_not_taken_back_by_halves(old: Path) -> None:
    encoder = HashEncoder()
    with Store(old, write=True) as store:
        before = exported(store)
        ids = store.db.execute("SELECT id FROM batch ORDER BY pk").fetchall()
        first, second = (str(id_) for (id_,) in ids)
        with pytest.raises(UndoRefused) as refused:
            undo(store, second, encoder=encoder)
        assert "not kept" in refused.value.message
        with pytest.raises(UndoRefused) as refused:
            undo(store, first, encoder=encoder)
        assert "built on" in refused.value.message
        assert exported(store) == before


def test_new_acts_on_an_old_store_are_taken_back(old: Path) -> None:
    encoder = HashEncoder()
    with Store(old, write=True) as store:
        before = exported(store)
        id_ = str(store.db.execute("SELECT id FROM memory LIMIT 1").get)
        update(store, id_, Update(set={"title": "now"}), None, encoder=encoder)
        undo(store, encoder=encoder)
        assert exported(store) == before
        assert wrong(store) == []
