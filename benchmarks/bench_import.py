"""Import without embeddings against a bare `executemany` of the same rows, and its peak memory.

    python benchmarks/bench_import.py [--records 10000 100000] [--repeats 3] [--json]

The bare run inserts prebuilt tuples, read back from the imported store, into the same tables of an empty
store with the same indexes, in as many transactions as the import had batches. Both run in turn in this
process; the figure is the ratio of their best times. The same records in another file come last.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _data import write_mixed

from graphmem import lexical
from graphmem.ingest import run
from graphmem.options import ImportOptions
from graphmem.store import Store

TABLES = (
    "entity",
    "name_key",
    "memory",
    "memory_link",
    "memory_tag",
    "relation",
    "stated_by",
    "contribution",
)
FIXED = ("scope", "scope_set", "scope_member", "origin", "batch")


def import_once(store_path: Path, source: Path) -> float:
    """Seconds of wall clock that importing a file takes."""
    with Store(store_path, write=True) as store:
        began = time.perf_counter()
        report = run(store, ImportOptions([str(source)]))
        took = time.perf_counter() - began
    assert report.exit_status() == 0, report.as_dict()["counts"]
    return took


def rows_of(store_path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of an imported store, and the rows of its full-text tables made anew."""
    with Store(store_path) as store:
        db = store.db
        rows = {
            table: [tuple(row) for row in db.execute(f"SELECT * FROM {table}")] for table in (*FIXED, *TABLES)
        }
        names = dict(db.execute("SELECT pk, name FROM entity").fetchall())
        aliases = dict(db.execute("SELECT pk, aliases FROM entity WHERE aliases NOTNULL").fetchall())
        rows["entity_fts"] = [
            (pk, *lexical.entity_row(name, json.loads(aliases.get(pk, "[]")), description))
            for pk, name, description in db.execute("SELECT pk, name, description FROM entity")
        ]
        about: dict[int, list[str]] = {}
        for memory, entity in db.execute("SELECT memory, entity FROM memory_link"):
            about.setdefault(memory, []).append(names[entity])
        rows["memory_fts"] = [
            (pk, *lexical.memory_row(content, title, source, valid_at, about.get(pk, [])))
            for pk, content, title, source, valid_at in db.execute(
                "SELECT pk, content, title, source, valid_at FROM memory"
            )
        ]
        rows["relation_fts"] = [
            (pk, *lexical.relation_row(fact, names[subject], predicate, names[object_]))
            for pk, fact, subject, predicate, object_ in db.execute(
                "SELECT pk, fact, subject, predicate, object FROM relation"
            )
        ]
    return rows


def parts_of(rows: dict[str, list[tuple[Any, ...]]]) -> list[dict[str, list[tuple[Any, ...]]]]:
    """The rows of each batch of the import, so that the bare run commits what the import committed."""
    made = {table: {row[0]: row[-1] for row in rows[table]} for table in ("entity", "memory", "relation")}
    owner = {
        "entity": ("entity", 0), "name_key": ("entity", 3), "memory": ("memory", 0), "memory_link": ("memory", 0),
        "memory_tag": ("memory", 1), "relation": ("relation", 0), "stated_by": ("relation", 0),
        "entity_fts": ("entity", 0), "memory_fts": ("memory", 0), "relation_fts": ("relation", 0),
    }  # fmt: skip
    batches = sorted({row[0] for row in rows["batch"]})
    parts: dict[int, dict[str, list[tuple[Any, ...]]]] = {batch: {} for batch in batches}
    for table, (item, column) in owner.items():
        for row in rows[table]:
            parts[made[item][row[column]]].setdefault(table, []).append(row)
    for row in rows["contribution"]:
        parts[row[-1]].setdefault("contribution", []).append(row)
    for table in FIXED:
        parts[batches[0]][table] = rows[table]
    return [parts[batch] for batch in batches]


def bare_once(store_path: Path, parts: list[dict[str, list[tuple[Any, ...]]]]) -> float:
    """Seconds that inserting the rows takes, one transaction for each batch of the import."""
    columns = {
        "entity_fts": "(rowid, names, description, parts)",
        "memory_fts": "(rowid, content, title, context, parts)",
        "relation_fts": "(rowid, fact, parts)",
    }
    with Store(store_path, write=True) as store:
        began = time.perf_counter()
        for part in parts:
            with store.db:
                for table in (*FIXED, *TABLES, *columns):
                    held = part.get(table)
                    if held:
                        marks = ", ".join("?" * len(held[0]))
                        store.db.executemany(
                            f"INSERT INTO {table} {columns.get(table, '')} VALUES ({marks})", held
                        )
        return time.perf_counter() - began


def _fresh(folder: Path) -> Iterator[Path]:
    number = 0
    while True:
        number += 1
        yield folder / f"{number}.db"


def measure(records: int, repeats: int) -> dict[str, float | int]:
    """The figures for one size."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, again = folder / "records.jsonl", folder / "again.jsonl"
        write_mixed(source, records)
        again.write_bytes(source.read_bytes())
        paths = _fresh(folder)
        ours, bare, same = [], [], []
        for _ in range(repeats):
            path = next(paths)
            ours.append(import_once(path, source))
            parts = parts_of(rows_of(path))
            same.append(import_once(path, again))
            bare.append(bare_once(next(paths), parts))
            for old in folder.glob("*.db*"):
                old.unlink()
        return {
            "records": records,
            "import_per_second": round(records / min(ours)),
            "bare_per_second": round(records / min(bare)),
            "ratio": round(min(bare) / min(ours), 3),
            "again_per_second": round(records / min(same)),
        }


def peak_memory(records: int) -> float:
    """Peak resident memory in MB of a process that imports so many records."""
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "records.jsonl"
        write_mixed(source, records)
        code = "import bench_import, sys; bench_import.child(sys.argv[1])"
        done = subprocess.run(
            [sys.executable, "-c", code, str(source)],
            cwd=Path(__file__).parent, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return float(done.stdout)


def child(source: str) -> None:
    """Imports a file into a store beside it and prints the process's peak memory in MB."""
    import_once(Path(source).with_suffix(".db"), Path(source))
    status = Path("/proc/self/status")
    if status.exists():
        # Not ru_maxrss: on Linux it starts from what the parent used when it forked.
        print(int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024)
    else:
        print(
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            / (1024 * 1024 if sys.platform == "darwin" else 1024)
        )


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--memory", type=int, default=100_000, help="records of the memory measurement, 0 for none"
    )
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rows = [measure(records, asked.repeats) for records in asked.records]
    memory = peak_memory(asked.memory) if asked.memory else 0.0
    if asked.json:
        print(json.dumps({"import": rows, "memory_records": asked.memory, "peak_mb": round(memory, 1)}))
        return
    print(f"{'records':>9} {'import/s':>9} {'bare/s':>9} {'ratio':>6} {'again/s':>9}")
    for row in rows:
        print(
            f"{row['records']:>9} {row['import_per_second']:>9} {row['bare_per_second']:>9} {row['ratio']:>6} "
            f"{row['again_per_second']:>9}"
        )
    if asked.memory:
        print(f"peak memory of an import of {asked.memory} records: {memory:.0f} MB")


if __name__ == "__main__":
    main()
