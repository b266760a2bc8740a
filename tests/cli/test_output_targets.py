"""Files that a command is told to write: never the store, another database, or an input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest
from conftest import write_records

from graphmem.errors import UsageError
from graphmem.outfile import replacing
from graphmem.store import Store

if TYPE_CHECKING:
    from command_line import Run

FACT = {"type": "entity", "name": "A"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file to import, in a folder of its own."""
    (tmp_path / "notes").mkdir()
    return write_records(tmp_path / "notes" / "a.jsonl", [FACT])


@pytest.fixture
def store(run: Run, tmp_path: Path, source: Path) -> Path:
    """A store with one entity."""
    assert run("import", source, "--db", tmp_path / "s.db").status == 0
    return tmp_path / "s.db"


def _itself(store: Path) -> Path:
    return store


def _linked(store: Path) -> Path:
    link = store.with_name("link.db")
    link.symlink_to(store)
    return link


def _hard_linked(store: Path) -> Path:
    link = store.with_name("hard.db")
    link.hardlink_to(store)
    return link


def _log(store: Path) -> Path:
    return store.with_name(f"{store.name}-wal")


def _index_of_the_log(store: Path) -> Path:
    return store.with_name(f"{store.name}-shm")


COMMANDS = {
    "export": ("export", "-o", "TARGET"),
    "import --report": ("import", "SOURCE", "--report", "TARGET"),
    "import --rejects": ("import", "SOURCE", "--rejects", "TARGET"),
    "a dry run": ("import", "SOURCE", "--dry-run", "--report", "TARGET"),
    "validate": ("validate", "SOURCE", "--against", "--output", "TARGET"),
    "validate --store": ("validate", "--store", "--output", "TARGET"),
}


def _spelled(command: tuple[str, ...], source: Path, target: Path) -> list[str]:
    return [{"SOURCE": str(source), "TARGET": str(target)}.get(word, word) for word in command]


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("spelling", [_itself, _linked, _hard_linked, _log, _index_of_the_log])
def test_the_store_in_use_is_never_written_over(
    run: Run, store: Path, source: Path, name: str, spelling: Callable[[Path], Path]
) -> None:
    before = store.read_bytes()
    done = run(*_spelled(COMMANDS[name], source, spelling(store)), "--db", store)
    assert (done.status, done.out) == (2, "")
    assert "is the store in use, which would be lost [usage]" in done.err
    assert store.read_bytes() == before


def test_a_store_that_is_yet_to_be_made_is_not_written_over_either(
    run: Run, source: Path, tmp_path: Path
) -> None:
    done = run("import", source, "--db", tmp_path / "new.db", "--report", tmp_path / "new.db")
    assert done.status == 2
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("name", [*COMMANDS, "validate without a store"])
@pytest.mark.parametrize("end", ["", "-wal"])
def test_no_other_database_is_written_over(
    run: Run, store: Path, source: Path, tmp_path: Path, name: str, end: str
) -> None:
    other = tmp_path / "other.sqlite"
    apsw.Connection(str(other)).execute("CREATE TABLE t (x)")
    before = other.read_bytes()
    command = COMMANDS.get(name, ("validate", "SOURCE", "--output", "TARGET"))
    done = run(*_spelled(command, source, Path(f"{other}{end}")), "--db", store)
    assert done.status == 2
    assert "is a database, which would be lost" in done.err
    assert other.read_bytes() == before


def test_a_file_is_never_replaced_where_it_is_a_database(tmp_path: Path) -> None:
    Store(tmp_path / "x.db", write=True).close()
    with pytest.raises(UsageError, match="is a database"), replacing(tmp_path / "x.db"):
        pass


@pytest.mark.parametrize("option", ["--report", "--rejects"])
@pytest.mark.parametrize("given", ["notes/a.jsonl", "notes", "notes/*.jsonl"])
def test_no_input_of_an_import_is_written_over(
    run: Run, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, given: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(source)
    for target in (source, tmp_path / "link"):
        done = run("import", given, option, target, "--db", tmp_path / "s.db")
        assert done.status == 2
        assert f"error: {option} '{target}' is one of the inputs" in done.err
    assert source.read_text() == json.dumps(FACT) + "\n"
    assert not (tmp_path / "s.db").exists()


def test_no_input_of_a_check_is_written_over(run: Run, source: Path) -> None:
    done = run("validate", source.parent, "--output", source)
    assert done.status == 2
    assert source.read_text() == json.dumps(FACT) + "\n"


def test_the_file_for_rejected_yaml_is_no_input_either(run: Run, source: Path, tmp_path: Path) -> None:
    yaml = source.with_name("r.yaml")
    yaml.write_text("- {type: entity, name: B}\n")
    done = run("import", source.parent, "--rejects", source.with_name("r"), "--db", tmp_path / "s.db")
    assert done.status == 2
    assert yaml.read_text().startswith("- {type")


def test_a_file_in_a_folder_that_is_not_read_may_be_written(run: Run, source: Path, tmp_path: Path) -> None:
    target = source.with_name("report.txt")
    target.write_text("old")
    assert run("import", source.parent, "--report", target, "--db", tmp_path / "s.db").status == 0
    assert json.loads(target.read_text())["command"] == "import"


@pytest.mark.skipif(os.name != "posix", reason="shells of POSIX")
def test_what_standard_input_comes_from_is_not_written_over(home: Path, source: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "graphmem", "import", "-", "--db", str(tmp_path / "s.db")]
    with source.open("rb") as stream:
        done = subprocess.run(
            [*command, "--report", str(source)], stdin=stream, capture_output=True, check=False
        )
    assert done.returncode == 2
    assert source.read_text() == json.dumps(FACT) + "\n"


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_folder_that_one_may_not_enter_is_an_error_with_a_hint(
    run: Run, guarded: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (guarded / "locked").mkdir()
    (guarded / "locked").chmod(0o000)
    write_records(guarded / "a.jsonl", [FACT])
    monkeypatch.chdir(guarded)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        done = run("validate", guarded / "a.jsonl", "--output", guarded / "locked" / "x")
    finally:
        if root:
            os.seteuid(0)
    assert done.status == 2
    assert "permission denied [output-unwritable]" in done.err


def test_two_options_do_not_write_one_file(run: Run, source: Path, tmp_path: Path) -> None:
    same = tmp_path / "same"
    done = run("import", source, "--db", tmp_path / "s.db", "--report", same, "--rejects", same)
    assert done.status == 2
    assert "would both be written" in done.err


@pytest.mark.skipif(os.name != "posix", reason="devices of POSIX")
def test_a_device_may_be_written_by_both(run: Run, source: Path, tmp_path: Path) -> None:
    null = ("--report", "/dev/null", "--rejects", "/dev/null")
    assert run("import", source, "--db", tmp_path / "s.db", *null).status == 0
