"""Following a folder: the first sync, one with nothing to do, and one with a hundredth of the files changed.

    python benchmarks/bench_sync.py [--files 10000] [--repeats 3] [--json]

Beside them, in the same run: a bare walk that looks at each file's size and time, and the import of the same
folder into an empty store. No vectors are made, so that the figure is that of following and not of encoding.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from graphmem.ingest import run
from graphmem.options import ImportOptions
from graphmem.store import Store
from graphmem.sync import SyncReport, sync

_OLD = (10**18, 10**18)


def write_notes(folder: Path, count: int) -> list[Path]:
    """A vault of small notes that link to each other, 200 in a folder, all of them old."""
    chance = random.Random(1)
    notes: list[Path] = []
    for number in range(count):
        note = folder / f"part {number // 200}" / f"note {number}.md"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(
            f"---\ntitle: Note {number}\ntype: note\n---\n## Why\n"
            f"Text {number} about [[Note {chance.randrange(count)}]].\n\n## What\n- [fact] value {number}\n"
            f"- depends_on [[Note {chance.randrange(count)}]]\n",
            encoding="utf-8",
        )
        os.utime(note, ns=_OLD)
        notes.append(note)
    return notes


def seconds(action: Callable[[], object]) -> float:
    """How long an action takes."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def bare_walk(folder: Path) -> int:
    """Looks at the size and time of every file."""
    count = 0
    for where, _, names in os.walk(folder):
        for name in names:
            os.stat(f"{where}/{name}")  # noqa: PTH116 - as bare as it can be
            count += 1
    return count


def measure(files: int, repeats: int) -> dict[str, float]:
    """Medians in seconds, and ratios."""
    with tempfile.TemporaryDirectory(prefix="gmem-bench-") as name:
        folder = Path(name)
        notes = write_notes(folder / "notes", files)

        def follow(store: Store) -> SyncReport:
            return sync(store, [str(folder / "notes")], ImportOptions())

        with Store(folder / "imported.db", write=True) as store:
            plain = seconds(lambda: run(store, ImportOptions([str(folder / "notes")])))
        with Store(folder / "memory.db", write=True) as store:
            first = seconds(lambda: follow(store))
            idle = statistics.median(seconds(lambda: follow(store)) for _ in range(repeats))
            walk = statistics.median(seconds(lambda: bare_walk(folder / "notes")) for _ in range(repeats))
            some: list[float] = []
            chance = random.Random(2)
            for number in range(repeats):
                for note in chance.sample(notes, max(files // 100, 1)):
                    note.write_text(f"{note.read_text(encoding='utf-8')}\nMore {number}.\n", encoding="utf-8")
                    os.utime(note, ns=_OLD)
                some.append(seconds(lambda: follow(store)))
    return {
        "files": files, "import": plain, "first": first, "first / import": first / plain, "nothing to do": idle,
        "bare walk": walk, "nothing to do / bare walk": idle / walk, "1 % changed": statistics.median(some),
    }  # fmt: skip


def main() -> None:
    """Runs the benchmark and prints it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.files, options.repeats)
    if options.json:
        json.dump(found, sys.stdout)
        return
    for name, value in found.items():
        print(f"{name:<26} {value:>10,.3f}" if isinstance(value, float) else f"{name:<26} {value:>10,}")


if __name__ == "__main__":
    main()
