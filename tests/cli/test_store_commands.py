"""`gmem flush`, `scopes` and `graphs` as people and scripts use them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest
from conftest import write_records
from editing import RECORDS

from graphmem.store import Store

if TYPE_CHECKING:
    from command_line import Run

SECRET = "hunter2-is-my-password"


def test_without_yes_flush_says_what_would_go_and_changes_nothing(run: Run, tmp_path: Path) -> None:
    run("import", write_records(tmp_path / "records.jsonl", RECORDS))
    before = run("export").out
    done = run("flush")

    assert done.status == 2
    assert "2 memories, 4 entities, 1 relation" in done.out
    assert "--yes" in done.out
    assert run("export").out == before


def test_after_flush_no_text_is_in_any_file_of_the_store(run: Run, home: Path) -> None:
    run("remember", SECRET, "--about", f"about {SECRET}", "--scope", f"team:{SECRET}")
    run("update", "about hunter2", "--description", SECRET, "--all-scopes")
    run("forget", f"about {SECRET}", "--all-scopes")
    run("undo")
    done = run("flush", "--yes", "--json")

    assert (done.status, done.json["flushed"]) == (0, True)
    files = [one.read_bytes() for one in (home / ".graphmem").glob("memory.db*")]
    assert files
    assert not [one for one in files if b"hunter2" in one.lower()]
    assert run("log", "--json").json["total"] == 0
    assert run("validate", "--store").status == 0


def test_a_flushed_store_is_used_on_with_new_numbers(run: Run, tmp_path: Path, home: Path) -> None:
    records = write_records(tmp_path / "records.jsonl", RECORDS)
    run("import", records)
    run("flush", "--yes")
    assert run("import", records, "--json").json["counts"]["entity"]["created"] == 4

    with Store(home / ".graphmem" / "memory.db") as store:
        assert store.db.execute("SELECT min(pk) FROM entity").get == 5
        assert store.db.execute("SELECT pk FROM batch").get == 2


def test_a_process_that_had_the_store_open_goes_on_after_a_flush(
    run: Run, home: Path, tmp_path: Path
) -> None:
    from graphmem.edit.remember import remember

    run("remember", "x", "--scope", "team:a")
    with Store(home / ".graphmem" / "memory.db", write=True) as store:
        remember(store, [{"type": "memory", "content": "one"}], scope="team:b")
        run("flush", "--yes")
        run("remember", "y", "--scope", "team:c")
        remember(store, [{"type": "memory", "content": "two", "about": ["E"]}], scope="team:b")

    assert [one["name"] for one in run("scopes", "--json").json["scopes"]] == ["team:b", "team:c"]
    assert run("validate", "--store").status == 0


def test_flush_gives_up_while_another_process_writes(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("remember", "x")
    monkeypatch.setenv("GRAPHMEM_BUSY_TIMEOUT", "50")
    with Store(home / ".graphmem" / "memory.db", write=True) as other, other.transaction():
        assert run("flush", "--yes").status == 4
    assert run("list", "--json").json["totals"]["hits"] == 1


def test_flush_gives_up_while_another_process_reads_what_is_to_go(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("remember", "x")
    monkeypatch.setenv("GRAPHMEM_BUSY_TIMEOUT", "50")
    with Store(home / ".graphmem" / "memory.db") as other, other.reading():
        other.db.execute("SELECT * FROM memory").fetchall()
        assert run("flush", "--yes").status == 4


def test_scopes_are_listed_and_renamed(run: Run) -> None:
    run("remember", "x", "--scope", "team:a", "--about", "E")
    done = run("scopes", "rename", "team:a", "repo:/nowhere/at/all")

    assert done.out.splitlines()[:2] == ["1 entity moved", "1 memory moved"]
    assert run("scopes").out.splitlines() == [
        "repo:/nowhere/at/all: 1 memory, 1 entity, 0 relations [not there any more]", "1 scope",
    ]  # fmt: skip
    run("undo")
    assert [one["name"] for one in run("scopes", "--json").json["scopes"]] == ["team:a"]


def test_namesakes_stop_a_rename_unless_they_are_to_be_united(run: Run) -> None:
    for scope in ("team:a", "team:b"):
        run("remember", "x", "--scope", scope, "--about", "E")
    refused = run("scopes", "rename", "team:a", "team:b", "--json")
    done = run("scopes", "rename", "team:a", "team:b", "--unite")

    assert (refused.status, refused.json["error"]["code"]) == (2, "edit-refused")
    assert done.out.splitlines()[:2] == [
        "1 entity united with one that was there", "1 memory united with one that was there",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "args",
    [("list", "x"), ("rename",), ("rename", "global", "a:b"), ("rename", "a:b", "a:c"), ("drop", "a:b")],
)
def test_scopes_refuses_what_makes_no_sense(run: Run, args: tuple[str, ...]) -> None:
    run("remember", "x")

    assert run("scopes", *args).status == 2


def test_graphs_are_made_listed_and_deleted(run: Run, home: Path) -> None:
    assert run("graphs", "create", "work").status == 0
    run("remember", "x", "--graph", "work")
    listed = run("graphs", "--graph", "work", "--json").json["graphs"]
    asked = run("graphs", "delete", "work")
    there = (home / ".graphmem" / "work.db").exists()
    done = run("graphs", "delete", "work", "--yes")

    assert [(one["name"], one["memories"], one["current"]) for one in listed] == [("work", 1, True)]
    assert (asked.status, there) == (2, True)
    assert "work: 1 memory" in asked.out
    assert done.status == 0
    assert list((home / ".graphmem").glob("work*")) == []


def test_a_graph_that_is_there_is_not_made_again(run: Run) -> None:
    run("graphs", "create", "work")

    assert run("graphs", "create", "work").status == 2
    assert run("graphs", "create", "no/name").status == 2
    assert run("graphs", "create").status == 2


def test_a_graph_in_use_is_not_deleted(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("remember", "x", "--graph", "work")
    monkeypatch.setenv("GRAPHMEM_BUSY_TIMEOUT", "50")
    with Store(home / ".graphmem" / "work.db", write=True) as other:
        other.db.execute("SELECT 1 FROM memory").fetchall()
        assert run("graphs", "delete", "work", "--yes").status == 4
    assert run("list", "--graph", "work", "--json").json["totals"]["hits"] == 1


def test_another_programs_database_is_no_graph(run: Run, home: Path) -> None:
    run("remember", "x")
    foreign = home / ".graphmem" / "other.db"
    with apsw.Connection(str(foreign)) as db:
        db.execute("CREATE TABLE t (x)")

    assert [one["name"] for one in run("graphs", "--json").json["graphs"]] == ["memory"]
    assert run("graphs", "delete", "other", "--yes").status == 2
    assert foreign.exists()
