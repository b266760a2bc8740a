"""Carrying rows over from a damaged file: what does not fit together is left out where texts decide, else told."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import apsw
import pytest
from everything import fill
from hash_encoder import HashEncoder

from graphmem.errors import StoreDamaged
from graphmem.store import Store
from graphmem.store.carry import carry_over
from graphmem.store.physical import Physical


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A store with an item of every sort, as a file of its own."""
    path = tmp_path / "whole.db"
    with Store(path, write=True) as store:
        fill(store, tmp_path, HashEncoder())
    old = tmp_path / "old.db"
    shutil.copyfile(path, old)
    return old


def twice(path: Path, table: str, shift: int) -> None:
    """Gives a table its last row a second time, under another number, which its own rules would refuse."""
    db: Any = apsw.Connection(str(path))
    columns = [name for _, name, *_ in db.execute(f"PRAGMA table_info({table})") if name != "pk"]
    named = ", ".join(f'"{name}"' for name in columns)
    db.execute(f"CREATE TABLE copied AS SELECT * FROM {table}")
    triggers = db.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ?", (table,)
    ).fetchall()
    for (trigger,) in triggers:
        db.execute(f"DROP TRIGGER {trigger}")
    db.execute("PRAGMA foreign_keys = OFF")
    db.execute(f"DROP TABLE {table}; CREATE TABLE {table} (pk INTEGER PRIMARY KEY, {named})")
    db.execute(f"INSERT INTO {table} (pk, {named}) SELECT pk, {named} FROM copied ORDER BY pk")
    db.execute(
        f"INSERT INTO {table} (pk, {named}) SELECT pk + ?, {named} FROM copied ORDER BY pk DESC LIMIT 1",
        (shift,),
    )
    db.execute("DROP TABLE copied")
    db.close()


def test_a_piece_that_is_there_twice_is_carried_once(damaged: Path, tmp_path: Path) -> None:
    db: Any = apsw.Connection(str(damaged))
    whole = db.execute("SELECT * FROM chunk ORDER BY pk").fetchall()
    db.close()
    twice(damaged, "chunk", 1000)

    with Store(tmp_path / "new.db", write=True) as new:
        carry_over(new, damaged, Physical(tables={"chunk"}))

        assert len(whole) > 3
        assert new.db.execute("SELECT * FROM chunk ORDER BY pk").fetchall() == whole


def test_a_memory_that_is_there_twice_is_told_and_nothing_is_carried(damaged: Path, tmp_path: Path) -> None:
    twice(damaged, "memory", 1000)

    with Store(tmp_path / "new.db", write=True) as new:
        with pytest.raises(StoreDamaged, match="rows of 'memory' do not fit together"):
            carry_over(new, damaged, Physical(tables={"memory"}))

        assert new.is_empty()
