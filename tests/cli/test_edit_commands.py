"""`gmem update`, `forget`, `rename`, `alias` and `merge` as people and scripts use them."""

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


def _item(run: Run, what: str) -> Any:
    return run("show", what, "--json").json


def test_every_option_of_update_changes_its_field(run: Run) -> None:
    run("update", "m1", "--content", "New.", "--title", "T", "--type", "fact", "--importance", "1", "--source", "s",
        "--valid-at", "2026-01-01", "--invalid-at", "2027-01-01", "--expired-at", "2028-01-01", "--about", "pg", "--not-about", "auth",
        "--mentions", "metal", "--tag", "n", "--untag", "time", "--property", "a=[1]", "--property", "b=text")  # fmt: skip
    memory = _item(run, "m1")
    run("update", "Mercury", "--kind", "metal", "--description", "Shines.", "--new-kind", "element")
    entity = _item(run, "metal")
    run(
        "update",
        "r1",
        "--predicate",
        "relies on",
        "--fact",
        "It does.",
        "--weight",
        "1",
        "--without-property",
        "no",
    )
    relation = _item(run, "r1")

    assert (memory["content"], memory["title"], memory["memory_type"], memory["source"]) == (
        "New.",
        "T",
        "fact",
        "s",
    )
    assert [one["id"] for one in memory["about"]] == ["pg"]
    assert [one["id"] for one in memory["mentions"]] == ["metal"]
    assert memory["tags"] == ["auth", "n"]
    assert memory["properties"] == {"a": [1], "b": "text"}
    assert memory["expired_at"] == "2028-01-01T00:00:00.000Z"
    assert (entity["description"], entity["kind"]) == ("Shines.", "element")
    assert (relation["predicate"], relation["fact"], relation["weight"]) == ("relies on", "It does.", 1)


def test_update_says_which_fields_changed_and_when_nothing_did(run: Run) -> None:
    done = run("update", "m1", "--title", "T", "--untag", "time")
    again = run("update", "m1", "--title", "T", "--untag", "time")

    assert done.out.splitlines()[:2] == ["updated memory m1", "  changed: tags, title"]
    assert again.out.splitlines() == ["unchanged memory m1", "nothing changed"]
    assert run("log", "--json").json["total"] == 2


def test_fields_are_cleared_by_the_names_that_show_has(run: Run) -> None:
    done = run("update", "m1", "--clear", "tags", "--clear", "importance", "--json")

    assert done.json["fields"] == ["importance", "tags"]
    assert _item(run, "m1")["tags"] == []


def test_an_item_is_archived_and_brought_back_alone(run: Run) -> None:
    run("update", "auth", "--archive")
    assert (_item(run, "auth")["state"], _item(run, "m1")["state"]) == ("archived", "active")
    run("update", "auth", "--restore")
    assert _item(run, "auth")["state"] == "active"
    assert run("update", "auth", "--restore", "--archive").status == 2


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("m1",), "usage"),
        (("m1", "--fact", "x"), "usage"),
        (("m1", "--property", "=1"), "usage"),
        (("m1", "--clear", "content"), "usage"),
        (("nobody", "--title", "x"), "entity-not-found"),
        (("Mercury", "--description", "x"), "ambiguous-name"),
    ],
)
def test_what_cannot_be_is_status_2_with_a_code(run: Run, args: tuple[str, ...], code: str) -> None:
    done = run("update", *args, "--json")

    assert (done.status, done.json["error"]["code"]) == (2, code)
    assert run("log", "--json").json["total"] == 1


def test_what_it_said_before_is_in_its_history(run: Run) -> None:
    run("update", "m1", "--content", "Second.")
    run("update", "m1", "--content", "Third.")
    history = run("log", "--item", "m1", "--json").json
    text = run("log", "--item", "m1").out

    assert [one["before"] for one in history["changes"]] == [
        {"content": "Second."}, {"content": "Tokens expire after an hour."},
    ]  # fmt: skip
    assert "    content: Tokens expire after an hour." in text


def test_an_entity_is_forgotten_with_what_hangs_on_it_alone(run: Run) -> None:
    rehearsed = run("forget", "AuthService", "--dry-run")
    done = run("forget", "AuthService")

    assert rehearsed.out.splitlines()[1:] == [
        "with it: 1 memory, 1 relation", "kept: 1 memory about something else too",
        "nothing was changed (--dry-run)",
    ]  # fmt: skip
    assert done.out.splitlines()[:3] == [
        "forgotten entity auth", "with it: 1 memory, 1 relation", "kept: 1 memory about something else too",
    ]  # fmt: skip
    assert run("search", "tokens", "--json").json["hits"] == []
    assert run("forget", "auth").out.splitlines() == ["already forgotten entity auth", "nothing changed"]


def test_several_things_are_forgotten_at_once_or_none(run: Run) -> None:
    assert run("forget", "m1", "nobody").status == 2
    assert _item(run, "m1")["state"] == "active"
    done = run("forget", "m1", "r1", "--json").json
    assert [one["type"] for one in done["forgotten"]] == ["memory", "relation"]
    assert run("forget", "m1", "--as", "entity").status == 2


def test_a_renamed_entity_answers_to_both_names(run: Run) -> None:
    done = run("rename", "AuthService", "Gatekeeper")

    assert done.out.splitlines()[:2] == ["updated entity auth", "  changed: name"]
    assert (_item(run, "Gatekeeper")["id"], _item(run, "AuthService")["id"]) == ("auth", "auth")
    run("relate", "PostgresDB", "feeds", "AuthService")
    assert run("entities", "--json").json["totals"]["entities"] == 4
    taken = run("rename", "PostgresDB", "Mercury", "--json")
    assert taken.status == 0  # of another kind


def test_a_name_that_is_taken_is_refused(run: Run) -> None:
    run("remember", "--record", '{"type":"entity","name":"Door","kind":"service"}')
    refused = run("rename", "Door", "AuthService", "--json")

    assert (refused.status, refused.json["error"]["code"]) == (2, "edit-refused")
    assert "gmem merge" in refused.json["error"]["hint"]


def test_aliases_are_added_and_taken_away(run: Run) -> None:
    run("alias", "AuthService", "SSO", "door")
    assert _item(run, "SSO")["aliases"] == ["SSO", "door", "login"]
    run("alias", "AuthService", "SSO", "login", "--remove")
    assert _item(run, "auth")["aliases"] == ["door"]


def test_a_merge_prints_what_it_moved(run: Run) -> None:
    run("relate", "Mercury", "orbits", "PostgresDB", "--subject-kind", "planet")
    done = run("merge", "Mercury", "AuthService", "--kind", "planet")

    assert done.out.splitlines()[:2] == ["merged entity planet into auth", "  1 relation moved"]
    assert _item(run, "planet")["id"] == "auth"
    assert run("merge", "auth", "AuthService").status == 2


def test_a_command_that_changes_makes_no_store(run: Run, tmp_path: Path) -> None:
    for args in (("update", "x", "--title", "t"), ("forget", "x"), ("rename", "a", "b"), ("alias", "a", "b"),
                 ("merge", "a", "b"), ("undo",), ("flush",), ("scopes", "rename", "a:b", "c:d")):  # fmt: skip
        done = run(*args, "--db", tmp_path / "new.db", "--json")
        assert (done.status, done.json["error"]["code"]) == (2, "store-not-found")
    assert not (tmp_path / "new.db").exists()
