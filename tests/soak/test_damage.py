"""The proofs of backup, doctor and purge again, longer: run by `make soak`."""

from __future__ import annotations

from pathlib import Path

import pytest
from damage import trial
from everything import fill
from hash_encoder import HashEncoder
from test_backup import killed_in_between

from graphmem.store import Store

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(4))
def test_hundreds_of_injuries_are_mended_rightly_or_not_at_all(seed: int, tmp_path: Path) -> None:
    counts = trial(tmp_path, injuries=400, seed=seed)

    assert counts.total() == 400
    assert counts["mended"] > 50
    assert counts["refused"] > 50


def test_a_hundred_kills_leave_the_old_store_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Store(path, write=True) as store:
        fill(store, tmp_path, HashEncoder())

    reached = killed_in_between(tmp_path, path, kills=100, seed=8)

    assert set(reached) == {0, 1}
