"""How runs end that the machine, the store or an option stops: with a line that helps, and what is stored."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import write_records

from graphmem.cli._import_report import left_out
from graphmem.outcome import ImportReport
from graphmem.store import Store

if TYPE_CHECKING:
    from command_line import Run

posix = pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")


def entities(count: int, first: int = 0, size: int = 10) -> list[dict[str, Any]]:
    return [
        {"type": "entity", "name": f"E {i}", "description": f"{i} " + "x" * size}
        for i in range(first, first + count)
    ]


# ---- the store -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_an_import_into_a_damaged_store_says_that_it_is_damaged(run: Run, tmp_path: Path, seed: int) -> None:
    store, path = tmp_path / "s.db", write_records(tmp_path / "a.jsonl", entities(400))
    assert run("import", path, "--db", store).status == 0
    data = bytearray(store.read_bytes())
    start = 9_000 + 4_096 * seed
    data[start:60_000] = random.Random(seed).randbytes(60_000 - start)
    store.write_bytes(data)
    more = write_records(tmp_path / "b.jsonl", entities(400, first=200, size=20))
    done = run("import", more, "--db", store, "--report", tmp_path / "report.json")
    assert done.status == 5, done.err
    assert "[store-damaged]" in done.err
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["counts"]["entity"]["read"] > 0


@posix
@pytest.mark.parametrize(
    "command",
    [
        ("import", "a.jsonl"),
        ("search", "x"),
        ("status",),
        ("reembed",),
        ("reindex",),
        ("validate", "--store"),
    ],
)
def test_a_store_in_a_folder_that_one_may_not_enter_is_an_error_with_a_hint(
    run: Run, guarded: Path, nobody: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
) -> None:  # fmt: skip
    monkeypatch.setenv("GRAPHMEM_HOME", str(guarded / "home"))
    monkeypatch.chdir(guarded)
    words = [str(guarded / word) if word.endswith(".jsonl") else word for word in command]
    for db in (guarded / "locked" / "s.db", guarded / "locked" / "deeper" / "s.db"):
        done = run(*words, "--db", db)
        assert done.status == 2
        assert "cannot be reached: permission denied [store]" in done.err
        assert "hint: check the permissions" in done.err


@pytest.fixture
def guarded(guarded: Path) -> Path:
    """The guarded folder with a file to import and a folder that nobody may enter."""
    path = write_records(guarded / "a.jsonl", entities(1))
    path.chmod(0o644)
    (guarded / "locked").mkdir()
    (guarded / "locked").chmod(0o000)
    return guarded


@pytest.mark.parametrize("value", ["abc", "-1", "1.5", "²", "99999999999"])
def test_a_wait_limit_that_is_no_number_is_a_usage_error(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("GRAPHMEM_BUSY_TIMEOUT", value)
    path = write_records(tmp_path / "a.jsonl", entities(1))
    done = run("import", path, "--db", tmp_path / "s.db")
    assert done.status == 2
    assert f"GRAPHMEM_BUSY_TIMEOUT is '{value}' [usage]" in done.err
    assert not (tmp_path / "s.db").exists()


# ---- the disk ------------------------------------------------------------------------------------------


def limited(blocks: int, *args: str | Path) -> subprocess.CompletedProcess[bytes]:
    """Python with arguments, which may write no file of more than so many KiB."""
    command = ["bash", "-c", f'ulimit -f {blocks}; exec "$@"', "bash", sys.executable]
    return subprocess.run([*command, *map(str, args)], capture_output=True, check=False, timeout=120)


@posix
def test_no_room_for_rejected_records_is_told_with_the_folder(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    path = tmp_path / "a.jsonl"
    path.write_text(('{"type":"entity","nome":"' + "x" * 1_000 + '"}\n') * 2_500)
    done = limited(700, "-m", "graphmem", "import", path, "--db", tmp_path / "s.db")
    assert done.returncode == 2, done.stderr
    assert f"error: cannot write a temporary file in '{tmp_path}'".encode() in done.stderr
    assert b"set TMPDIR" in done.stderr


SPOOL = """
from graphmem.errors import OutputUnwritable
from graphmem.records import EntityRecord
from graphmem.spool import Spool
spool = Spool()
try:
    for _ in range(4):
        spool.push([EntityRecord(name="E", description="x" * 20)] * 25_000)
except OutputUnwritable as error:
    print(error.message)
spool.close()
"""


@posix
def test_no_room_for_batches_put_aside_is_told_with_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = limited(100, "-c", SPOOL)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(f"cannot write a temporary file in '{tmp_path}': file too large".encode())


@posix
def test_a_full_disk_in_mid_run_tells_which_batches_are_stored(home: Path, tmp_path: Path) -> None:
    path = write_records(tmp_path / "a.jsonl", entities(2_500, size=100))
    store = tmp_path / "s.db"
    done = limited(1_100, "-m", "graphmem", "import", path, "--batch-size", "500", "--db", store)
    assert done.returncode == 2
    with Store(store) as opened:
        batches = opened.db.execute("SELECT count(*) FROM batch").get
        stored = opened.db.execute("SELECT count(*) FROM entity").get
    assert 0 < batches < 5
    plural = (
        "1 whole batch of 500 records is"
        if batches == 1
        else f"{batches} whole batches of {stored:,} records are"
    )
    assert f"; {plural} stored [store-full]".encode() in done.stderr
    assert b"run the same command again to store the rest" in done.stderr


# ---- options that end a run, or do nothing -------------------------------------------------------------


def test_giving_up_is_told_with_what_is_stored(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"type":"entity","name":"A"}\n' + "bad\n" * 3)
    done = run("import", path, "--db", tmp_path / "s.db", "--max-errors", "1")
    assert "error: gave up at more than 1 error (--max-errors): nothing was stored\n" in done.err
    done = run("validate", path, "--max-errors", "1")
    assert "gave up at more than 1 error (--max-errors): what comes after was not checked\n" in done.err
    assert "gave up" not in run("import", path, "--db", tmp_path / "s.db", "--max-errors", "3").err


def test_giving_up_while_storing_tells_of_the_batches_before(run: Run, tmp_path: Path) -> None:
    good = write_records(tmp_path / "a.jsonl", entities(4))
    bad = write_records(tmp_path / "b.jsonl", [["E 1", "knows", f"nobody {i}"] for i in range(4)])
    done = run(
        "import", good, bad, "--db", tmp_path / "s.db", "--batch-size", "4", "--dangling", "error",
        "--max-errors", "0",
    )  # fmt: skip
    assert "(--max-errors): 1 whole batch of 4 records is stored, and nothing after\n" in done.err


def test_a_mapped_scope_that_no_record_has_is_noted(run: Run, tmp_path: Path) -> None:
    path = write_records(
        tmp_path / "a.jsonl", [{"type": "entity", "name": "A", "scope": "repo:/old/x"}, *entities(1)]
    )
    args = ("import", path, "--db", tmp_path / "s.db", "--map-scope")
    done = run(*args, "repo:/old=repo:/new", "--map-scope", "team:a=team:b")
    assert done.err.count("--map-scope: no record names the scope") == 1
    assert "no record names the scope 'team:a'" in done.err


# ---- what was given ------------------------------------------------------------------------------------


@posix
def test_a_named_file_that_cannot_be_read_is_counted_and_alone_is_status_2(
    run: Run, guarded: Path, nobody: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHMEM_HOME", str(guarded / "home"))
    monkeypatch.chdir(guarded)
    # The folder can be named but not entered, so it stands for any input that is there and unreadable.
    done = run("import", guarded / "locked", "--dry-run")
    assert done.status == 2
    assert "nothing of what was given could be read [input-unreadable]" in done.err
    assert "1 file or folder could not be read" in done.out
    done = run("import", guarded / "locked", guarded / "a.jsonl", "--dry-run")
    assert done.status == 1
    assert "1 file or folder could not be read" in done.out


def test_an_empty_file_is_not_said_to_need_a_format(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"")
    done = run("import", tmp_path / "a.json", "--db", tmp_path / "s.db")
    assert done.status == 3
    assert "--from" not in done.err
    (tmp_path / "b.json").write_text('{"players": 1}')
    assert "'gmem schema' prints the shapes" in run("import", tmp_path / "b.json").err


def test_a_check_tells_of_files_left_out_and_the_list_of_an_export_is_none(run: Run, tmp_path: Path) -> None:
    path = write_records(tmp_path / "a.jsonl", entities(1))
    run("import", path, "--db", tmp_path / "s.db")
    run("export", "--db", tmp_path / "s.db", "--to", "markdown", "-o", tmp_path / "notes")
    assert (tmp_path / "notes" / ".gmem-export").exists()
    assert "left out" not in run("validate", tmp_path / "notes").out
    assert "left out" not in run("import", tmp_path / "notes", "--dry-run").out
    (tmp_path / "notes" / "cat.jpeg").write_bytes(b"\xff")
    assert (
        "1 file left out: ignored, or of no format that is read\n" in run("validate", tmp_path / "notes").out
    )
    assert run("validate", tmp_path / "notes", "--json").json["other_files"] == 1


def test_no_line_tells_of_files_left_out_where_there_are_none() -> None:
    assert list(left_out(ImportReport("import"))) == []


def test_help_is_a_command_too(run: Run) -> None:
    assert run("help") == run("--help")
    assert run("help", "search") == run("search", "--help")
    assert run("help", "serach").status == 2


def test_one_of_a_thing_is_counted_in_the_singular(run: Run, tmp_path: Path) -> None:
    path = write_records(tmp_path / "a.jsonl", entities(1))
    run("import", path, "--db", tmp_path / "s.db")
    assert "; 1 item without one" in run("status", "--db", tmp_path / "s.db").out
    assert "1 entity, 0 memories, " in run("validate", "--store", "--db", tmp_path / "s.db").out
    assert ", 1 origin, 1 batch\n" in run("validate", "--store", "--db", tmp_path / "s.db").out
