"""`gmem show` as people and scripts use it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import write_records

if TYPE_CHECKING:
    from command_line import Run

RECORDS: list[dict[str, Any]] = [
    {"type": "entity", "name": "AuthService", "kind": "service", "id": "auth", "aliases": ["login"],
     "description": "Knows who you are.", "properties": {"tier": 1}},
    {"type": "entity", "name": "Mercury", "kind": "planet", "id": "planet"},
    {"type": "entity", "name": "Mercury", "kind": "metal", "id": "metal"},
    {"type": "memory", "id": "m1", "content": "Retries\n three times.", "title": "Retries",
     "about": ["AuthService"], "importance": 0, "source": {"uri": "notes/a.md", "position": 2}},
    {"type": "memory", "id": "both", "content": "a memory"},
    {"type": "entity", "id": "both", "name": "Both"},
    {"type": "relation", "id": "r1", "subject": "AuthService", "predicate": "uses", "object": "Both",
     "fact": "It does.", "stated_by": ["m1"]},
    {"type": "memory", "id": "theirs", "content": "x", "scopes": ["repo:/b"]},
]  # fmt: skip


@pytest.fixture(autouse=True)
def filled(run: Run, tmp_path: Path) -> None:
    assert run("import", write_records(tmp_path / "records.jsonl", RECORDS)).status == 0


def test_a_memory_reads_as_text(run: Run) -> None:
    lines = run("show", "m1").out.splitlines()

    assert lines[0] == "memory m1"
    assert "title            Retries" in lines
    assert "importance       0.0" in lines
    assert "about            AuthService (service, global)" in lines
    assert "source           notes/a.md:2" in lines
    assert lines[lines.index("Retries") :][:2] == ["Retries", " three times."]
    assert "relations (1)" in lines
    assert "  r1  AuthService uses Both: It does." in lines
    assert not [line for line in lines if line.startswith(("access count", "state"))]


def test_an_entity_is_found_by_id_and_by_name(run: Run) -> None:
    for what in ("auth", "AuthService", "auth service", "LOGIN"):
        item = run("show", what, "--json").json
        assert (item["type"], item["id"]) == ("entity", "auth")
    assert item["memories"]["items"][0]["id"] == "m1"
    assert item["relations"]["total"] == 1
    lines = run("show", "auth").out.splitlines()
    assert lines[:5] == [
        "entity auth", "name             AuthService", "kind             service", "scope            global",
        "description      Knows who you are.",
    ]  # fmt: skip
    assert 'properties       {"tier": 1}' in lines
    assert "  m1  Retries: Retries three times." in lines


def test_a_relation_reads_as_text(run: Run) -> None:
    lines = run("show", "r1").out.splitlines()

    assert lines[:4] == [
        "relation r1", "subject          AuthService (service, global)",
        "object           Both (unknown, global)", "predicate        uses",
    ]  # fmt: skip
    assert lines[lines.index("stated by (1)") + 1] == "  m1"


def test_where_an_item_came_from_is_shown(run: Run) -> None:
    (origin,) = run("show", "m1", "--json").json["origins"]["items"]

    assert origin["uri"].endswith("/records.jsonl")
    assert (origin["line"], origin["format"]) == (4, "jsonl")
    assert f"  {origin['uri']}:4 taken at" in run("show", "m1").out


def test_an_ambiguous_name_shows_the_newest_and_tells_of_the_others(run: Run) -> None:
    done = run("show", "mercury", "--json")

    assert (done.status, done.json["id"]) == (0, "planet")
    assert (
        "'mercury' was taken as Mercury (planet, global); it could also be Mercury (metal, global)"
        in done.err
    )
    assert run("show", "mercury", "--kind", "metal", "--json").json["id"] == "metal"


def test_one_id_of_two_items_is_told(run: Run) -> None:
    done = run("show", "both", "--json")

    assert (done.json["type"], done.err) == ("memory", "note: 'both' is also the id of an entity (--as)\n")
    assert run("show", "both", "--as", "entity", "--json").json["name"] == "Both"


def test_lists_are_paged(run: Run, tmp_path: Path) -> None:
    more = [
        {"type": "memory", "id": f"n{number}", "content": f"n{number}", "about": ["Both"]}
        for number in range(5)
    ]
    run("import", write_records(tmp_path / "more.jsonl", more))

    item = run("show", "Both", "--limit", "2", "--offset", "2", "--json").json

    assert [one["id"] for one in item["memories"]["items"]] == ["n2", "n3"]
    assert (item["memories"]["total"], item["memories"]["truncated"]) == (5, True)
    assert "memories (2 of 5)" in run("show", "Both", "--limit", "2").out


@pytest.mark.parametrize(
    ("args", "code"),
    [(("nothing",), "entity-not-found"), (("nothing", "--as", "memory"), "item-not-found"),
     (("r1", "--as", "memory"), "item-not-found"), (("mercury", "--kind", "god"), "entity-not-found"),
     (("theirs",), "entity-not-found"), (("\udcff",), "entity-not-found")],
)  # fmt: skip
def test_what_is_not_there_is_an_error(run: Run, args: tuple[str, ...], code: str) -> None:
    done = run("show", *args, "--json")

    assert (done.status, done.json["error"]["code"]) == (2, code)


def test_another_scope_is_shown_on_request(run: Run) -> None:
    assert "--all-scopes" in run("show", "theirs").err
    assert run("show", "theirs", "--all-scopes", "--json").json["scopes"] == ["repo:/b"]
    assert run("show", "theirs", "--scope", "repo:/b", "--json").json["id"] == "theirs"
