"""Processes that import and are killed, and the states a store may then be in."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw
from conftest import write_records
from hash_encoder import HashEncoder
from importing import take
from snapshots import Content, content, opened, sound
from strategies import FIRST_CLOCK

from graphmem.store import Store

_TESTS = Path(__file__).parent
_PRELUDE = """
import sys
sys.path[:0] = [{tests!r}, {embed!r}]
from graphmem.ingest import run
from graphmem.options import ImportOptions
from graphmem.store import Store
from hash_encoder import HashEncoder
"""


class Process:
    """A running Python process and, once it has ended, what it printed."""

    def __init__(self, code: str) -> None:
        prelude = _PRELUDE.format(tests=str(_TESTS), embed=str(_TESTS / "embed"))
        environ = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHMEM_")}
        self._process = subprocess.Popen(
            [sys.executable, "-c", prelude + textwrap.dedent(code)], cwd=_TESTS.parent, env=environ, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.stdout = self.stderr = ""

    def wait(self) -> int:
        """The exit status."""
        self.stdout, self.stderr = self._process.communicate()
        return self._process.returncode

    def line(self) -> str:
        """The next line it prints."""
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def kill(self) -> int:
        """Ends it with SIGKILL; the exit status."""
        self._process.kill()
        return self.wait()


def run_python(code: str, *, wait: bool = True) -> Process:
    """A process that runs code in which `Store`, `ImportOptions`, `run` and `HashEncoder` are known."""
    process = Process(code)
    if wait:
        process.wait()
    return process


def whole_batches(folder: Path, paths: Sequence[Path], *, batch_size: int) -> list[Content]:
    """What a store holds before an import, and after each of its batches."""
    path = folder / "whole.db"
    states: list[Content] = []

    def note() -> None:
        with opened(path) as db:
            now = content(db)
        if not states or states[-1] != now:
            states.append(now)

    def trace(_cursor: apsw.Cursor, sql: str, _bindings: Any) -> bool:
        if sql == "BEGIN IMMEDIATE":
            note()
        return True

    with Store(path, write=True) as store:
        store.db.exec_trace = trace
        report = take(store, list(paths), encoder=HashEncoder(), batch_size=batch_size)
        note()
    assert len(states) == len(report.batches) + 1
    return states


def _records() -> list[dict[str, Any]]:
    """Records of which every batch has new texts, changes, merges and stubs."""
    records: list[dict[str, Any]] = []
    for number in range(40):
        records += [
            {"type": "entity", "name": f"thing {number % 5}", "description": f"d{number}", "aliases": [f"t{number}"]},
            {"type": "memory", "id": f"m{number % 7}", "content": f"words {number}", "about": [f"thing {number % 5}"]},
            {"type": "relation", "subject": f"thing {number % 5}", "predicate": "knows", "object": f"no {number}",
             "fact": f"it is so {number}"},
        ]  # fmt: skip
    return records


def interrupted_store(folder: Path, *, kills: int, seed: int = 1) -> list[int]:
    """Kills an import at random instants; how many batches stood each time.

    Asserts that the store opened, was sound and held a whole number of batches, and that importing again
    stored the rest.
    """
    chance = random.Random(seed)
    batch_size = 6
    path = write_records(folder / "records.jsonl", _records())
    expected = whole_batches(folder, [path], batch_size=batch_size)
    target = folder / "memory.db"
    code = f"""
    with Store({str(target)!r}, write=True) as store:
        print("begun", flush=True)
        run(store, ImportOptions([{str(path)!r}], clock={FIRST_CLOCK!r}, batch_size={batch_size}), HashEncoder())
        print("done", flush=True)
    """
    duration = _duration(code, target)
    reached: list[int] = []
    while len(reached) < kills:
        _remove(target)
        process = run_python(code, wait=False)
        assert process.line() == "begun\n"
        time.sleep(chance.uniform(0, duration))
        process.kill()
        with opened(target) as db:
            assert sound(db) == []
            held = content(db)
        assert held in expected
        reached.append(expected.index(held))
        if len(reached) % 5 == 0:
            with Store(target, write=True) as store:
                take(store, path, encoder=HashEncoder(), batch_size=batch_size)
                assert content(store.db)["memories"].keys() == expected[-1]["memories"].keys()
                assert sound(store.db) == []
    return reached


def _duration(code: str, target: Path) -> float:
    """How long the import takes here when it is left alone, in seconds."""
    process = run_python(code, wait=False)
    process.line()
    began = time.monotonic()
    process.line()
    took = time.monotonic() - began
    assert process.wait() == 0, process.stderr
    _remove(target)
    return took


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
