"""`gmem remember` and `gmem relate` as people and scripts use them."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import write_records

if TYPE_CHECKING:
    from command_line import Run


def test_texts_are_memories_of_one_batch_in_a_store_that_is_made_now(run: Run) -> None:
    done = run(
        "remember", "Tokens expire.", "Keys rotate.", "--about", "AuthService", "--tag", "auth", "--type", "decision",
        "--title", "T", "--importance", "0.5", "--valid-at", "2026-05-08", "--source", "talk", "--json",
    )  # fmt: skip

    assert done.status == 0
    assert [one["status"] for one in done.json["records"]] == ["created", "created"]
    assert done.json["stubs"] == 1
    shown = run("show", done.json["records"][0]["id"], "--json").json
    assert (shown["memory_type"], shown["tags"], shown["title"]) == ("decision", ["auth"], "T")
    assert (shown["valid_at"], shown["source"], shown["importance"]) == (
        "2026-05-08T00:00:00.000Z",
        "talk",
        0.5,
    )
    assert shown["about"][0]["name"] == "AuthService"
    assert run("log", "--json").json["total"] == 1


def test_what_became_of_each_is_told_with_ids_and_stubs(run: Run) -> None:
    first = run("remember", "Tokens expire.", "--about", "AuthService")
    again = run("remember", "Tokens expire.", "--about", "AuthService")
    more = run("remember", "Tokens expire.", "--about", "AuthService", "--tag", "auth")

    assert first.out.splitlines()[0].startswith("created memory ")
    assert "a stub was made" in first.out.splitlines()[1]
    assert again.out.splitlines()[0].startswith("already there memory ")
    assert again.out.splitlines()[-1] == "nothing changed"
    assert more.out.splitlines()[0].startswith("merged memory ")


def test_standard_input_is_a_text(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("two\nlines\n"))
    made = run("remember", "-", "--json").json["records"][0]

    assert run("show", made["id"], "--json").json["content"] == "two\nlines"


def test_records_of_any_kind_come_along(run: Run) -> None:
    records = [
        '{"type":"entity","name":"Vault","kind":"service"}',
        '["AuthService","uses","Vault"]',
        '{"type":"memory"}',
    ]
    done = run("remember", "A text.", *[part for one in records for part in ("--record", one)], "--json")

    assert done.status == 1
    assert [one["status"] for one in done.json["records"]] == ["created", "created", "created", "rejected"]
    assert [one["type"] for one in done.json["records"][:3]] == ["memory", "entity", "relation"]


def test_a_name_that_could_be_several_is_refused_with_the_candidates(run: Run, tmp_path: Path) -> None:
    run("import", write_records(tmp_path / "r.jsonl", [
        {"type": "entity", "name": "Mercury", "kind": kind, "id": kind} for kind in ("planet", "metal")]))  # fmt: skip
    refused = run("remember", "It is hot.", "--about", "Mercury")
    by_id = run("remember", "It is hot.", "--about", "metal", "--json")

    assert refused.status == 1
    assert "planet" in refused.out
    assert "metal" in refused.out
    assert run("show", by_id.json["records"][0]["id"], "--json").json["about"][0]["kind"] == "metal"


def test_several_scopes_are_those_of_the_memory(run: Run) -> None:
    made = run("remember", "Shared.", "--scope", "team:a", "--scope", "team:b", "--json").json["records"][0]

    assert run("show", made["id"], "--all-scopes", "--json").json["scopes"] == ["team:a", "team:b"]


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("a", "b", "--id", "x"),
        ("a", "--record", "{"),
        ("a", "--scope", "nothing"),
        ("a", "--importance", "much"),
    ],
)
def test_wrong_usage_is_told_and_makes_no_store(run: Run, home: Path, args: tuple[str, ...]) -> None:
    assert run("remember", *args).status == 2
    assert not (home / ".graphmem").exists()


def test_an_own_id_is_updated_when_it_is_said_again(run: Run) -> None:
    run("remember", "One.", "--id", "mine")
    done = run("remember", "Two.", "--id", "mine", "--json")

    assert done.json["records"][0]["status"] == "merged"
    assert run("show", "mine", "--json").json["content"] == "Two."


def test_a_relation_is_made_and_then_known(run: Run) -> None:
    args = (
        "relate",
        "AuthService",
        "depends_on",
        "PostgresDB",
        "--fact",
        "It keeps sessions there.",
        "--weight",
        "0.5",
    )
    first, again = run(*args, "--json").json, run(*args)

    assert first["records"][0]["status"] == "created"
    assert first["stubs"] == 2
    assert again.out.startswith("already there relation ")
    shown = run("show", first["records"][0]["id"], "--json").json
    assert (shown["fact"], shown["weight"]) == ("It keeps sessions there.", 0.5)


def test_kinds_say_which_ends_are_meant(run: Run) -> None:
    run("relate", "Mercury", "orbits", "Sun", "--subject-kind", "planet", "--object-kind", "star")

    found = run("entities", "--json").json["entities"]
    assert [(one["name"], one["kind"]) for one in found] == [("Mercury", "planet"), ("Sun", "star")]


def test_existing_refuses_what_is_not_there_and_suggests(run: Run) -> None:
    nothing = run("relate", "a", "b", "c", "--existing")
    run("relate", "AuthService", "uses", "PostgresDB")
    refused = run("relate", "AuthServise", "uses", "PostgresDB", "--existing", "--json")
    by_words = run("relate", "auth service", "owns", "postgres db", "--existing", "--json")

    assert nothing.status == 2
    assert refused.status == 2
    assert refused.json["error"]["code"] == "entity-not-found"
    assert refused.json["error"]["suggestions"] == ["AuthService"]
    assert by_words.json["stubs"] == 0
    assert run("entities", "--json").json["totals"]["entities"] == 2


def test_who_asked_is_in_the_log(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMEM_ACTOR", "mira")
    run("remember", "x")

    entry = run("log", "--json").json["batches"][0]
    assert (entry["actor"], entry["command"]) == ("mira", "remember")


def test_a_store_without_vectors_stays_so_and_no_model_is_loaded(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("remember", "x")
    monkeypatch.setenv("GRAPHMEM_EMBEDDINGS", "on")
    monkeypatch.setenv("GRAPHMEM_EMBEDDING_MODEL", "./there/is/no/such/model")
    done = run("remember", "y")

    assert done.status == 0
    assert json.loads(run("status", "--json").out)["vectors"] == 0
