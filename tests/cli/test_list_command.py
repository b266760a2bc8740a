"""`gmem list` as people and scripts use it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import write_records

if TYPE_CHECKING:
    from command_line import Run

RECORDS: list[dict[str, Any]] = [
    {"type": "entity", "name": "AuthService", "kind": "service", "id": "auth"},
    {"type": "memory", "id": "m1", "content": "Retries three times.", "title": "Retries",
     "about": ["AuthService"], "valid_at": "2026-05-01", "tags": ["x"], "memory_type": "decision",
     "source": {"uri": "notes/a.md", "position": 2}},
    {"type": "memory", "id": "m2", "content": "Older\nstill", "valid_at": "2026-04-01",
     "source": "notes/a.md"},
    {"type": "memory", "id": "m3", "content": "archived", "valid_at": "2026-03-01", "state": "archived"},
    {"type": "memory", "id": "m4", "content": "theirs", "scopes": ["repo:/b"]},
]  # fmt: skip


@pytest.fixture(autouse=True)
def filled(run: Run, tmp_path: Path) -> None:
    assert run("import", write_records(tmp_path / "records.jsonl", RECORDS)).status == 0


def ids(run: Run, *args: str) -> list[str]:
    return [hit["id"] for hit in run("list", *args, "--json").json["hits"]]


def test_memories_are_listed_newest_first(run: Run) -> None:
    done = run("list", "--json")

    assert done.status == 0
    assert [hit["id"] for hit in done.json["hits"]] == ["m1", "m2"]
    assert (done.json["totals"], done.json["truncated"], done.json["elsewhere"]) == ({"hits": 2}, False, None)


def test_a_list_reads_as_text(run: Run) -> None:
    assert run("list").out == (
        "Retries · AuthService\n"
        "  Retries three times.\n"
        "  decision · 2026-05-01 · global · #x · notes/a.md:2 · m1\n"
        "\n"
        "m2\n"
        "  Older still\n"
        "  observation · 2026-04-01 · global · notes/a.md\n"
        "\n"
        "2 memories\n"
    )


@pytest.mark.parametrize(
    ("args", "found"),
    [
        (("--type", "decision"), ["m1"]),
        (("--tag", "x"), ["m1"]),
        (("--entity", "auth service"), ["m1"]),
        (("--entity", "auth"), ["m1"]),
        (("--source", "notes/a.md"), ["m1", "m2"]),
        (("--source", "notes/b.md"), []),
        (("--state", "archived"), ["m3"]),
        (("--state", "all"), ["m1", "m2", "m3"]),
        (("--since", "2026-04-01", "--until", "2026-04-01"), ["m2"]),
        (("--scope", "repo:/b"), ["m4"]),
        (("--all-scopes", "--until", "2026-12-31", "--since", "2026-05-01"), ["m4", "m1"]),
    ],
)
def test_options_leave_what_they_say(run: Run, args: tuple[str, ...], found: list[str]) -> None:
    assert sorted(ids(run, *args)) == sorted(found)


def test_pages_say_how_much_there_is(run: Run) -> None:
    first = run("list", "--limit", "1", "--json").json
    assert ([hit["id"] for hit in first["hits"]], first["totals"], first["truncated"]) == (
        ["m1"],
        {"hits": 2},
        True,
    )
    assert run("list", "--limit", "1").out.endswith("\n1-1 of 2 memories; --offset 1 shows more\n")
    assert ids(run, "--limit", "1", "--offset", "1") == ["m2"]
    assert run("list", "--offset", "5").out == "2 memories\n"


def test_an_empty_list_says_what_lies_elsewhere(run: Run) -> None:
    done = run("list", "--scope", "repo:/c")
    assert done.out == "0 memories\n3 memories in 2 other scopes (--all-scopes)\nlooked in: repo:/c\n"
    assert run("list", "--scope", "repo:/c", "--json").json["elsewhere"] == {"hits": 3, "scopes": 2}


def test_an_archived_memory_is_marked(run: Run) -> None:
    assert run("list", "--state", "archived").out.startswith("m3 (archived)\n")


def test_an_unknown_entity_is_an_error_with_suggestions(run: Run) -> None:
    done = run("list", "--entity", "AuthServise")

    assert (done.status, "did you mean: AuthService" in done.err) == (2, True)


@pytest.mark.parametrize(
    "args", [("--scope", "x"), ("--scope", "global", "--all-scopes"), ("--since", "soon"), ("--limit", "0")]
)
def test_what_makes_no_sense_is_a_usage_error(run: Run, args: tuple[str, ...]) -> None:
    done = run("list", *args)

    assert (done.status, "[usage]" in done.err) == (2, True)


def test_text_of_a_file_cannot_steer_the_terminal(run: Run, tmp_path: Path) -> None:
    run(
        "import",
        write_records(
            tmp_path / "more.jsonl", [{"type": "memory", "content": "a\x1b[2Jb", "tags": ["\x07"]}]
        ),
    )

    out = run("list").out

    assert "\x1b" not in out
    assert "\x07" not in out
    assert "a\\x1b[2Jb" in out


def test_a_store_that_is_not_there_is_an_error(run: Run, tmp_path: Path) -> None:
    done = run("list", "--db", tmp_path / "none.db", "--json")

    assert (done.status, done.json["error"]["code"]) == (2, "store-not-found")
