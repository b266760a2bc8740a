"""`gmem resolve` as people and scripts use it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import write_records

if TYPE_CHECKING:
    from command_line import Run

RECORDS: list[dict[str, Any]] = [
    {"type": "entity", "name": "AuthService", "kind": "service", "id": "auth", "aliases": ["login"]},
    {
        "type": "entity",
        "name": "Mercury",
        "kind": "planet",
        "id": "planet",
        "updated_at": "2026-01-01T00:00:00Z",
    },
    {
        "type": "entity",
        "name": "Mercury",
        "kind": "metal",
        "id": "metal",
        "updated_at": "2026-02-01T00:00:00Z",
    },
    {"type": "entity", "name": "Ours", "scope": "repo:/a", "id": "ours"},
    {"type": "entity", "name": "Theirs", "scope": "repo:/b", "id": "theirs"},
    {"type": "entity", "name": "Billing Service of the bank", "id": "billing"},
]


@pytest.fixture(autouse=True)
def filled(run: Run, tmp_path: Path) -> None:
    assert run("import", write_records(tmp_path / "records.jsonl", RECORDS)).status == 0


@pytest.mark.parametrize(
    ("name", "step", "id_"),
    [
        ("AuthService", "exact", "auth"),
        ("login", "exact", "auth"),
        ("AUTHSERVICE", "case-insensitive", "auth"),
        ("auth service", "full text", "auth"),
        ("bank billing", "full text", "billing"),
    ],
)
def test_the_step_that_decided_is_part_of_the_answer(run: Run, name: str, step: str, id_: str) -> None:
    done = run("resolve", name, "--json")

    assert done.status == 0
    assert (done.json["step"], done.json["entity"]["id"], done.json["ambiguous"]) == (step, id_, False)
    assert "steps" not in done.json


def test_an_answer_reads_as_text(run: Run) -> None:
    assert run("resolve", "login").out == (
        "AuthService (service, global) · auth\n  by exact: the same name\n"
    )


def test_an_ambiguous_name_means_the_newest_and_lists_the_others(run: Run) -> None:
    done = run("resolve", "mercury", "--json")

    assert done.status == 0
    assert done.json["entity"]["id"] == "metal"
    assert [one["id"] for one in done.json["others"]] == ["planet"]
    assert "could also be Mercury (planet, global) · planet\n" in run("resolve", "mercury").out
    assert run("resolve", "mercury", "--kind", "Planet", "--json").json["entity"]["id"] == "planet"


def test_nothing_found_is_an_error_with_suggestions(run: Run) -> None:
    done = run("resolve", "authservise")

    assert (done.status, done.out) == (2, "")
    assert done.err == (
        "error: no entity is called 'authservise' here [entity-not-found]\n"
        "  did you mean: AuthService\n"
        "  hint: 'gmem entities --match TEXT' lists entities\n"
    )
    shape = run("resolve", "authservise", "--json").json
    assert (shape["error"]["code"], shape["error"]["suggestions"]) == ("entity-not-found", ["AuthService"])
    assert list(shape) == ["ok", "error"]


def test_explaining_shows_what_each_step_looked_for_and_found(run: Run) -> None:
    assert run("resolve", "Auth Service", "--explain").out == (
        "exact: the same name: 'Auth Service'\n"
        "    nothing\n"
        "case-insensitive: the same name but for case: 'auth service'\n"
        "    nothing\n"
        "full text: the same words: 'auth service'\n"
        " -> AuthService (service, global)\n"
        "AuthService (service, global) · auth\n"
    )


def test_explaining_a_failure_shows_the_steps_too(run: Run) -> None:
    done = run("resolve", "servise", "--explain")
    assert done.status == 2
    assert done.out.endswith("suggestion: the closest names: 'servise'\n    nothing\n")

    told = run("resolve", "servise", "--explain", "--json").json
    assert [step["step"] for step in told["steps"]] == [
        "exact", "case-insensitive", "full text", "full text", "suggestion",
    ]  # fmt: skip
    assert told["error"]["code"] == "entity-not-found"


def test_only_the_own_scope_and_global_are_seen(run: Run) -> None:
    assert run("resolve", "ours").status == 2
    assert run("resolve", "ours", "--scope", "repo:/a").status == 0
    assert run("resolve", "login", "--scope", "repo:/a").status == 0
    elsewhere = run("resolve", "theirs", "--scope", "repo:/a", "--json")
    assert (elsewhere.status, elsewhere.json["error"]["suggestions"]) == (2, [])


def test_inside_a_repository_its_scope_is_the_default(run: Run, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    for folder in ("objects", "refs"):
        (repository / ".git" / folder).mkdir(parents=True)
    (repository / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    os.chdir(repository)
    run("import", write_records(tmp_path / "more.jsonl", [{"type": "entity", "name": "Here"}]))

    assert run("resolve", "here", "--json").json["entity"]["scope"].startswith("repo:")
    os.chdir(tmp_path)
    assert run("resolve", "here").status == 2


@pytest.mark.parametrize("name", ["", "  "])
def test_an_empty_name_is_a_usage_error(run: Run, name: str) -> None:
    assert "[usage]" in run("resolve", name).err


def test_a_store_that_is_not_there_is_an_error_and_stays_so(run: Run, tmp_path: Path) -> None:
    done = run("resolve", "x", "--db", tmp_path / "none.db")

    assert (done.status, "[store-not-found]" in done.err) == (2, True)
    assert not (tmp_path / "none.db").exists()
