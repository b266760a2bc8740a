"""`gmem status` as people and scripts use it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import write_records

from graphmem.store import SCHEMA_VERSION

if TYPE_CHECKING:
    from command_line import Run


@pytest.fixture
def filled(run: Run, tmp_path: Path) -> Path:
    records = [
        {"type": "entity", "name": "A"},
        {"type": "memory", "content": "one", "about": ["A", "B"]},
        {"type": "memory", "content": "two", "scopes": ["repo:/nowhere/at/all", f"repo:{tmp_path}"]},
        {"type": "memory", "content": "three", "state": "archived"},
        {"type": "relation", "subject": "A", "predicate": "p", "object": "B"},
    ]
    path = tmp_path / "kept" / "memory.db"
    done = run("import", write_records(tmp_path / "records.jsonl", records), "--db", path)
    assert done.status == 0
    return path


def test_json_has_these_keys_and_no_other(run: Run, filled: Path) -> None:
    assert run("status", "--db", filled, "--json").json == {
        "path": str(filled), "schema_version": SCHEMA_VERSION, "memories": 2, "entities": 2, "relations": 1,
        "stubs": 1, "vectors": 0, "scopes": 3, "origins": 1, "encoder": None,
    }  # fmt: skip


def test_status_reads_as_text(run: Run, filled: Path, tmp_path: Path) -> None:
    lines = run("status", "--db", filled).out.splitlines()

    assert lines[0].startswith(f"store      {filled} (")
    assert lines[1:7] == [
        "memories   2", "entities   2 (1 stub)", "relations  1", "archived   1", "origins    1",
        "vectors    none; 6 items without one ('gmem reembed')",
    ]  # fmt: skip
    assert lines[7].startswith("last batch 20")
    assert lines[9:] == [
        "scope here global",
        "  global: 1 memory, 2 entities, 1 relation",
        "  repo:/nowhere/at/all: 1 memory [not there any more]",
        f"  repo:{tmp_path}: 1 memory",
    ]


def test_many_scopes_are_cut_short(run: Run, tmp_path: Path) -> None:
    records = [{"type": "memory", "content": "x", "scopes": [f"team:{number:02}"]} for number in range(25)]
    run("import", write_records(tmp_path / "records.jsonl", records))

    out = run("status").out

    assert out.endswith("  team:19: 1 memory\n  and 5 more\n")
    assert run("status", "--json").json["scopes"] == 25


def test_a_store_that_is_not_there_is_an_error_and_never_made(run: Run, tmp_path: Path) -> None:
    done = run("status", "--db", tmp_path / "none.db", "--json")

    assert (done.status, done.json["error"]["code"]) == (2, "store-not-found")
    assert not (tmp_path / "none.db").exists()
