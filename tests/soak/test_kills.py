"""A thousand kills at random instants of everything that writes: whole batches, a sound store, every time."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import apsw
import pytest
from hash_encoder import HashEncoder
from snapshots import opened, sound
from sync_worlds import World, said

from graphmem.edit.forget import forget
from graphmem.edit.identity import merge
from graphmem.edit.remember import remember
from graphmem.edit.undo import undo
from graphmem.edit.update import Update, update
from graphmem.errors import GraphmemError, UndoRefused
from graphmem.findings import Severity
from graphmem.ingest import run
from graphmem.options import ImportOptions
from graphmem.reembed import reembed
from graphmem.store import Store
from graphmem.store.check import check
from graphmem.sync import sync

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a process that was forked"),
]

KILLS: Final = 1_000
_BATCH: Final = 40


class _Bench:
    """A store, a folder beside it, and acts on both that are sometimes killed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.path = folder / "memory.db"
        self.copy = folder / "copy.db"
        self.notes = folder / "notes"
        self.notes.mkdir()
        self.world = World(self.notes, seed)
        self.count = 0
        with Store(self.path, write=True):
            pass

    def act(self) -> tuple[str, Callable[[Store], object]]:
        """The next act, by name, ready to be done to a store; it is the same each time it is done."""
        name = self.chance.choice(("import", "sync", "undo", "reembed", "remember", "edit"))
        return name, getattr(self, f"_{name}")()

    def _import(self) -> Callable[[Store], object]:
        self.count += 1
        lines = [
            f'{{"type":"memory","content":"run {self.count} number {number}","about":["thing {number % 7}"]}}\n'
            for number in range(3 * _BATCH)
        ]
        source = self.path.parent / f"records-{self.count}.jsonl"
        source.write_text("".join(lines), encoding="utf-8")
        options = ImportOptions([str(source)], batch_size=_BATCH)
        return lambda store: run(store, options, _encoder(store))

    def _sync(self) -> Callable[[Store], object]:
        for _ in range(3):
            self.world.change()
        return lambda store: sync(
            store, [str(self.notes)], ImportOptions(), _encoder(store), max_delete=10_000
        )

    def _undo(self) -> Callable[[Store], object]:
        def act(store: Store) -> object:
            try:
                return undo(store, encoder=_encoder(store))
            except UndoRefused:
                return None

        return act

    def _reembed(self) -> Callable[[Store], object]:
        self.count += 1
        other = f"model {self.count % 2}"
        return lambda store: reembed(store, HashEncoder(name=other))

    def _remember(self) -> Callable[[Store], object]:
        self.count += 1
        records: list[Any] = [
            {"type": "memory", "content": f"remembered {self.count}", "about": [f"thing {self.count % 7}"]},
            [f"thing {self.count % 7}", "belongs to", f"thing {self.count % 5}"],
        ]
        return lambda store: remember(store, records, scope="global", encoder=_encoder(store))

    def _edit(self) -> Callable[[Store], object]:
        self.count += 1
        what, name = self.count % 3, f"thing {self.count % 7}"

        def act(store: Store) -> object:
            try:
                if what == 0:
                    return update(store, name, Update(set={"description": f"as of {self.count}"}), None,
                                  encoder=_encoder(store))  # fmt: skip
                if what == 1:
                    return forget(store, [name], None, encoder=_encoder(store))
                return merge(store, name, "thing 0", None, encoder=_encoder(store))
            except GraphmemError:  # there is no such thing yet
                return None

        return act

    # ---- one act, killed or not -----------------------------------------------------------------

    def rehearse(self, act: Callable[[Store], object]) -> tuple[set[str], float]:
        """The states that the act may leave, told by what the store says, and how long it takes."""
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.copy}{suffix}").unlink(missing_ok=True)
        source, target = opened(self.path), apsw.Connection(str(self.copy))
        with target.backup("main", source, "main") as done:
            done.step()
        target.close()
        source.close()
        with Store(self.copy, write=True) as store:
            states = {_state(store)}
            began = time.perf_counter()
            act(store)
            took = time.perf_counter() - began
            states.add(_state(store))
        return states, took

    def kill(self, act: Callable[[Store], object], after: float) -> bool:
        """Does the act in a process of its own and kills that; whether it was still at work."""
        pid = os.fork()
        if pid == 0:
            try:
                with Store(self.path, write=True) as store:
                    act(store)
            finally:
                sys.stdout.flush()
                os._exit(0)
        time.sleep(after)
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        return os.WIFSIGNALED(status)


def _encoder(store: Store) -> HashEncoder:
    held = store.encoder()
    return HashEncoder(name="model 0" if held is None else held.name)


def _wrong(store: Store) -> list[str]:
    found = check(store).findings
    return [f"{one.rule}: {one.message}" for one in found if one.severity is not Severity.NOTE]


def _state(store: Store) -> str:
    return "\n".join(said(store))


def _whole(store: Store) -> list[str]:
    """Batches of which not all items are there, though none was taken back since."""
    import json

    wrong: list[str] = []
    rows: Any = store.db.execute("SELECT pk, counts FROM batch WHERE undone_by IS NULL").fetchall()
    removed: Any = store.db.execute("SELECT count(*) FROM batch WHERE command IN ('undo', 'merge')").get
    for batch, counts in rows:
        items = json.loads(counts).get("items")
        held = [
            store.db.execute(f"SELECT count(*) FROM {table} WHERE batch = ?", (batch,)).get
            for table in ("entity", "memory", "relation")
        ]
        if items is not None and held != items and not removed:
            wrong.append(f"batch {batch} made {items} and has {held}")
    numbers = "SELECT batch FROM entity UNION SELECT batch FROM memory UNION SELECT batch FROM relation"
    for (number,) in store.db.execute(
        f"{numbers} UNION SELECT batch FROM contribution UNION SELECT batch FROM change "
        "EXCEPT SELECT pk FROM batch"
    ):
        wrong.append(f"rows of batch {number}, which is not there")
    return wrong


@pytest.mark.parametrize("seed", range(4))
def test_a_thousand_kills_of_everything_that_writes(tmp_path: Path, seed: int) -> None:
    bench = _Bench(tmp_path, seed)
    chance = random.Random(seed)
    killed: Counter[str] = Counter()
    while killed.total() < KILLS // 4:
        name, act = bench.act()
        states, took = bench.rehearse(act)
        if not bench.kill(act, chance.uniform(0, took * 1.2)):
            continue
        killed[name] += 1
        with Store(bench.path, write=True) as store:
            assert _wrong(store) == []
            assert _whole(store) == []
            # An import has several batches, and a change of the encoder several steps.
            assert name in ("import", "reembed") or _state(store) in states
        db = opened(bench.path)
        # Vectors of another encoder wait for the rest of theirs.
        assert [one for one in sound(db) if not one.startswith("vector without use")] == []
        db.close()
        if chance.random() < 0.3:  # what was killed is done again, and goes through
            with Store(bench.path, write=True) as store:
                act(store)
                assert _wrong(store) == []
        with Store(bench.path, write=True) as store:
            store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert min(killed.values()) > 5
    assert len(killed) == 6
