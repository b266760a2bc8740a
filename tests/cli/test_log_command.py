"""`gmem log` and `gmem undo` as people and scripts use them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import write_records
from editing import RECORDS

if TYPE_CHECKING:
    from command_line import Run


@pytest.fixture(autouse=True)
def filled(run: Run, tmp_path: Path) -> None:
    assert run("import", write_records(tmp_path / "records.jsonl", RECORDS)).status == 0


def _last(run: Run) -> Any:
    return run("log", "--limit", "1", "--json").json["batches"][0]


def test_batches_come_newest_first_with_who_when_what(run: Run) -> None:
    run("update", "m1", "--title", "T")
    log = run("log", "--json").json

    assert [one["command"] for one in log["batches"]] == ["update", "import"]
    assert log["batches"][0]["inputs"] == ["m1"]
    assert log["batches"][1]["importer"] == "jsonl"
    assert log["batches"][1]["counts"]["created"] == {"entity": 4, "memory": 2, "relation": 1}
    text = run("log").out
    assert "created 4 entities, 2 memories, 1 relation" in text
    assert "changed 1 memory" in text


def test_pages_say_that_there_is_more(run: Run) -> None:
    run("update", "m1", "--title", "T")
    first = run("log", "--limit", "1", "--json").json

    assert (len(first["batches"]), first["total"], first["truncated"]) == (1, 2, True)
    assert run("log", "--limit", "1").out.splitlines()[-1] == "there is more: --offset 1"
    assert not run("log", "--limit", "1", "--offset", "1", "--json").json["truncated"]


def test_a_batch_shows_what_it_made(run: Run) -> None:
    batch = run("log", _last(run)["id"], "--json").json

    assert batch["totals"]["made"] == {"entity": 4, "memory": 2, "relation": 1}
    assert [one["id"] for one in batch["made"]][:2] == ["auth", "pg"]
    assert batch["made"][-1]["label"] == "AuthService depends_on PostgresDB"
    page = run("log", _last(run)["id"], "--limit", "2", "--offset", "3", "--json").json
    assert [one["id"] for one in page["made"]] == [batch["made"][3]["id"], batch["made"][4]["id"]]
    assert page["truncated"]


def test_a_batch_shows_what_it_changed_field_by_field(run: Run) -> None:
    run(
        "update",
        "m1",
        "--content",
        "New.",
        "--untag",
        "time",
        "--about",
        "pg",
        "--not-about",
        "auth",
        "--property",
        "a=1",
    )
    batch = run("log", _last(run)["id"][:22], "--json").json
    text = run("log", _last(run)["id"]).out.splitlines()

    (changed,) = batch["changed"]
    fields = {one.pop("field"): one for one in changed["fields"]}
    assert fields["content"] == {"before": "Tokens expire after an hour.", "after": "New."}
    assert fields["tags"] == {"removed": ["time"], "added": []}
    assert fields["about"] == {"removed": ["AuthService"], "added": ["PostgresDB"]}
    assert fields["properties"] == {"before": {}, "after": {"a": 1}}
    assert "~ memory m1  New." in text
    assert "    content: Tokens expire after an hour. -> New." in text
    assert "    about: - AuthService" in text


def test_a_merge_shows_what_went(run: Run) -> None:
    run("merge", "Mercury", "AuthService", "--kind", "planet")
    batch = run("log", _last(run)["id"], "--json").json

    assert batch["removed"] == [{"type": "entity", "id": "planet", "label": "Mercury"}]
    fields = {one["field"]: one for one in batch["changed"][0]["fields"]}
    assert fields["former_names"]["added"] == ["Mercury (planet, global)"]
    assert fields["former_ids"]["added"] == ["planet"]


def test_a_batch_that_was_taken_back_still_shows_what_it_did(run: Run) -> None:
    run("update", "m1", "--title", "T")
    update = _last(run)["id"]
    run("undo")
    shown = run("log", update, "--json").json
    undo = run("log", _last(run)["id"], "--json").json

    assert shown["undone_by"] == undo["id"]
    assert shown["changed"][0]["fields"] == [{"field": "title", "before": None, "after": "T"}]
    assert undo["changed"][0]["fields"] == [{"field": "title", "before": "T", "after": None}]
    assert "[taken back by" in run("log").out


def test_what_a_file_brought_is_one_command(run: Run, tmp_path: Path) -> None:
    by_path = run("log", "--origin", tmp_path / "records.jsonl", "--json").json
    by_name = run("log", "--origin", "records.jsonl", "--json").json

    assert by_path == by_name
    assert by_path["total"] == 7
    assert [(one["line"], one["id"]) for one in by_path["items"]][:2] == [(1, "auth"), (2, "pg")]
    assert by_path["items"][4]["label"] == "Tokens expire after an hour."
    assert run("log", "--origin", "nothing.jsonl").status == 2


def test_questions_that_make_no_sense_are_refused(run: Run) -> None:
    assert run("log", "nothing", "--json").json["error"]["code"] == "item-not-found"
    assert run("log", "x", "--item", "m1").status == 2
    assert run("log", "--scope", "a:b").status == 2
    assert run("log", "--item", "nobody").status == 2


def test_an_import_is_taken_back_and_brought_again(run: Run, tmp_path: Path) -> None:
    export = run("export").out
    undone = run("undo")

    assert undone.out.splitlines()[1] == "  removed: 4 entities, 2 memories, 1 relation"
    assert run("export").out.count("\n") == 1
    run("undo", undone.out.splitlines()[-1].split()[-1])
    assert run("export").out == export
    run("undo")
    assert run("import", tmp_path / "records.jsonl", "--json").json["counts"]["memory"]["created"] == 2


def test_a_batch_that_others_built_on_is_refused_and_the_flag_named(run: Run) -> None:
    first = _last(run)["id"]
    run("remember", "More.", "--about", "AuthService")
    before = run("export").out
    refused = run("undo", first, "--json")

    assert (refused.status, refused.json["error"]["code"]) == (2, "undo-refused")
    assert "--cascade" in refused.json["error"]["hint"]
    assert run("export").out == before
    rehearsed = run("undo", first, "--cascade", "--dry-run")
    assert rehearsed.out.startswith("would take back batch ")
    assert run("export").out == before
    assert len(run("undo", first, "--cascade", "--json").json["undone"]) == 2
