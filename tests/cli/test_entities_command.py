"""`gmem entities` as people and scripts use it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import write_records

if TYPE_CHECKING:
    from command_line import Run

RECORDS: list[dict[str, Any]] = [
    {
        "type": "entity",
        "name": "AuthService",
        "kind": "service",
        "aliases": ["login"],
        "description": "Knows you.",
    },
    {"type": "entity", "name": "beta", "kind": "lib"},
    {"type": "memory", "content": "a", "about": ["AuthService"]},
    {"type": "relation", "subject": "AuthService", "predicate": "uses", "object": "Later"},
    {"type": "entity", "name": "Theirs", "scope": "repo:/b"},
    {"type": "entity", "name": "Gone", "state": "archived"},
]


@pytest.fixture(autouse=True)
def filled(run: Run, tmp_path: Path) -> None:
    assert run("import", write_records(tmp_path / "records.jsonl", RECORDS)).status == 0


def test_entities_read_as_text(run: Run) -> None:
    assert run("entities").out == (
        "AuthService (service) · 1 memory · 1 relation · global\n"
        "  Knows you.\n"
        "beta (lib) · global\n"
        "Later (unknown) · stub · 1 relation · global\n"
        "\n"
        "3 entities\n"
    )


@pytest.mark.parametrize(
    ("args", "names"),
    [
        (("--kind", "Lib"), ["beta"]),
        (("--match", "auth-s"), ["AuthService"]),
        (("--match", "LOG"), ["AuthService"]),
        (("--stubs",), ["Later"]),
        (("--scope", "repo:/b"), ["Theirs"]),
        (("--all-scopes", "--match", "e"), ["AuthService", "beta", "Later", "Theirs"]),
        (("--match", "zzz"), []),
    ],
)
def test_options_leave_what_they_say(run: Run, args: tuple[str, ...], names: list[str]) -> None:
    found = run("entities", *args, "--json").json

    assert [one["name"] for one in found["entities"]] == names
    assert found["totals"] == {"entities": len(names)}


def test_an_entity_has_these_keys(run: Run) -> None:
    first = run("entities", "--limit", "1", "--json").json

    (entity,) = first["entities"]
    assert set(entity) == {
        "id", "name", "kind", "scope", "description", "aliases", "properties", "stub", "state", "updated_at",
        "memories", "relations",
    }  # fmt: skip
    assert (entity["memories"], entity["relations"], first["truncated"]) == (1, 1, True)


def test_nothing_found_says_where_it_was_looked_for(run: Run) -> None:
    assert run("entities", "--match", "zzz").out == "0 entities\nlooked in: global\n"
