"""`gmem sync` as people run it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from command_line import Run


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "one.md").write_text("---\ntitle: One\n---\nThe first text.\n", encoding="utf-8")
    (folder / "two.md").write_text("---\ntitle: Two\n---\nThe second text.\n", encoding="utf-8")
    return folder


def test_the_counts_of_files_and_of_what_they_say_are_told(run: Run, notes: Path, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    done = run("sync", notes, "--db", store, "--no-embeddings")
    assert done.status == 0
    assert "files: 2 added, 0 modified, 0 renamed, 0 removed, 0 unchanged\n" in done.out
    (notes / "two.md").unlink()
    done = run("sync", notes, "--db", store, "--no-embeddings", "--json")
    assert done.status == 0
    assert done.json["files"]["removed"] == 1
    assert done.json["archived"] == {"entity": 1, "memory": 1, "relation": 0}
    again = run("sync", notes, "--db", store, "--no-embeddings")
    assert again.out.startswith("files: 0 added, 0 modified, 0 renamed, 0 removed, 1 unchanged\n")
    assert "nothing new for" in again.out


def test_what_was_archived_is_not_found_any_more(run: Run, notes: Path, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    run("sync", notes, "--db", store, "--no-embeddings")
    (notes / "two.md").unlink()
    run("sync", notes, "--db", store, "--no-embeddings")
    found = run("search", "second", "--db", store, "--recipe", "lexical", "--json").json
    assert found["hits"] == []
    shown = run("list", "--db", store, "--json").json
    assert [one["content"] for one in shown["hits"]] == ["The first text."]


def test_a_dry_run_tells_and_changes_nothing(run: Run, notes: Path, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    run("sync", notes, "--db", store, "--no-embeddings")
    (notes / "two.md").unlink()
    before = store.read_bytes()
    done = run("sync", notes, "--db", store, "--dry-run")
    assert "1 removed" in done.out
    assert "dry run: nothing was stored" in done.out
    assert store.read_bytes() == before
    assert run("sync", notes, "--db", store, "--no-embeddings", "--json").json["files"]["removed"] == 1


def test_a_refusal_names_the_option_and_has_a_code(run: Run, notes: Path, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    run("sync", notes, "--db", store, "--no-embeddings")
    for note in notes.glob("*.md"):
        note.unlink()
    done = run("sync", notes, "--db", store)
    assert done.status == 2
    assert "[sync-refused]" in done.err
    assert "--max-delete 4" in done.err
    assert run("sync", notes, "--db", store, "--max-delete", 4).status == 0


def test_errors_of_a_file_are_told_every_time(run: Run, notes: Path, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    (notes / "bad.jsonl").write_text('{"type":"memory","content":"x"}\n{"type":\n', encoding="utf-8")
    for _ in range(2):
        done = run("sync", notes, "--db", store, "--no-embeddings")
        assert done.status == 1
        assert "bad.jsonl:2" in done.err
        assert "1 with errors" in done.out


def test_a_file_that_is_ignored_from_now_on_is_one_that_is_gone(
    run: Run, notes: Path, tmp_path: Path
) -> None:
    store = tmp_path / "s.db"
    run("sync", notes, "--db", store, "--no-embeddings")
    (notes / ".gmemignore").write_text("two.md\n", encoding="utf-8")
    done = run("sync", notes, "--db", store, "--no-embeddings", "--json")
    assert done.json["files"]["removed"] == 1


def test_a_file_is_no_folder(run: Run, notes: Path, tmp_path: Path) -> None:
    done = run("sync", notes / "one.md", "--db", tmp_path / "s.db")
    assert done.status == 2
    assert "'gmem import' reads files" in done.err


@pytest.mark.skipif(os.name != "posix", reason="sends a signal as POSIX does")
def test_watching_follows_until_it_is_interrupted(notes: Path, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    command = [
        sys.executable, "-m", "graphmem", "sync", str(notes), "--db", str(store), "--no-embeddings",
        "--watch", "--interval", "0.1", "--json",
    ]  # fmt: skip
    # What starts the tests may ignore interrupts, which a child inherits.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as watching:  # fmt: skip
        assert watching.stdout is not None
        decoder = json.JSONDecoder()
        first, text = _next(watching, decoder, "")
        assert first["files"]["added"] == 2
        (notes / "three.md").write_text("---\ntitle: Three\n---\nThe third text.\n", encoding="utf-8")
        second, _ = _next(watching, decoder, text)
        assert second["files"]["added"] == 1
        watching.send_signal(signal.SIGINT)
        assert watching.wait(timeout=30) == 130


def _next(
    process: subprocess.Popen[str], decoder: json.JSONDecoder, text: str
) -> tuple[dict[str, dict[str, int]], str]:
    """The next JSON value that a process prints, and what comes after it."""
    assert process.stdout is not None
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            value, end = decoder.raw_decode(text.lstrip())
        except ValueError:
            text += process.stdout.readline()
        else:
            return value, text.lstrip()[end:]
    raise AssertionError("nothing was printed in time")
