"""What a newcomer lost in a backup, or was not told of, is kept and told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from command_line import Run

ENTITY = {"type": "entity"}


def write(path: Path, *rows: Any) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.mark.parametrize("style", ["jsonl", "yaml", "markdown"])
@pytest.mark.parametrize(
    ("fact", "later"),
    [
        (["Foo", "uses", "Bar"], [ENTITY | {"name": "Foo", "kind": kind} for kind in ("svc", "lib")]),
        (["Foo", "uses", "Bar"], [ENTITY | {"name": "FOO", "kind": "svc"}]),
        (["auth service", "uses", "Bar"], [ENTITY | {"name": "AuthService", "kind": "svc"}]),
        (["login", "uses", "Bar"], [ENTITY | {"name": "AuthService", "kind": "svc", "aliases": ["login"]}]),
    ],
)
def test_a_stub_is_the_same_stub_in_another_store(
    run: Run, tmp_path: Path, fact: list[str], later: list[Any], style: str
) -> None:
    first, second = str(tmp_path / "a.db"), str(tmp_path / "b.db")
    assert run("import", write(tmp_path / "1.jsonl", fact), "--db", first).status == 0
    assert run("import", write(tmp_path / "2.jsonl", *later), "--db", first).status == 0
    kept, again = str(tmp_path / f"kept-{style}"), str(tmp_path / f"again-{style}")
    assert run("export", "--to", style, "-o", kept, "--db", first).status == 0
    assert run("import", kept, "--db", second).status == 0
    assert run("export", "-o", f"{kept}.jsonl", "--db", first).status == 0
    assert run("export", "-o", again, "--db", second).status == 0
    assert Path(again).read_bytes() == Path(f"{kept}.jsonl").read_bytes()


OLD = {"id": "m", "updated_at": "2020-01-01"}
CASES = [
    (
        {"type": "memory", "content": "new", "id": "m", "updated_at": "2026-01-01"},
        {"type": "memory", "content": "old", **OLD},
        "'content'",
    ),
    (
        ENTITY | {"name": "E", "description": "new", "updated_at": "2026-01-01"},
        ENTITY | {"name": "E", "description": "old", "updated_at": "2020-01-01"},
        "'description'",
    ),
    (
        {"type": "relation", "subject": "A", "predicate": "p", "object": "B", "fact": "new"},
        {"type": "relation", "subject": "A", "predicate": "p", "object": "B", "fact": "old", "updated_at": "2020"
         "-01-01"},
        "'fact'",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("standing", "older", "field"), CASES)
def test_an_older_value_that_is_kept_out_is_told(
    run: Run, tmp_path: Path, standing: Any, older: Any, field: str
) -> None:
    assert run("import", write(tmp_path / "1.jsonl", standing)).status == 0
    done = run("import", write(tmp_path / "2.jsonl", older), "--json")
    assert done.status == 0
    told = [one for one in done.json["findings"] if one["rule"] == "older-kept-out"]
    assert [field in one["message"] for one in told] == [True]


@pytest.mark.parametrize(("standing", "older", "field"), CASES)
@pytest.mark.parametrize("policy", ["error", "skip"])
def test_an_older_record_that_differs_is_a_conflict(
    run: Run, tmp_path: Path, standing: Any, older: Any, field: str, policy: str
) -> None:
    assert run("import", write(tmp_path / "1.jsonl", standing)).status == 0
    done = run("import", write(tmp_path / "2.jsonl", older), "--on-conflict", policy, "--json")
    assert done.status == 1
    rule = "conflict" if policy == "error" else "conflict-skipped"
    assert [field in one["message"] for one in done.json["findings"] if one["rule"] == rule] == [True]
    again = run("import", write(tmp_path / "1.jsonl", standing), "--on-conflict", policy)
    assert again.status == 0


def test_two_notes_of_one_name_are_told_apart_or_told(run: Run, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "planet.md").write_text("---\ntype: planet\n---\n# Mercury\n\nhot\n")
    (notes / "project.md").write_text("# Mercury\n\na rewrite\n")
    done = run("import", str(notes), "--json")
    assert [one["rule"] for one in done.json["findings"]] == ["duplicate-note"]
    (notes / "project.md").write_text("---\ntype: project\n---\n# Mercury\n\na rewrite\n")
    other = run("import", str(notes), "--json", "--db", str(tmp_path / "other.db"))
    assert other.json["findings"] == []
    assert other.json["counts"]["entity"]["created"] == 2


def test_which_of_several_was_taken_is_told(run: Run, tmp_path: Path) -> None:
    rows = [ENTITY | {"name": "Mercury", "kind": kind} for kind in ("planet", "project")]
    about = {"type": "memory", "content": "hot", "about": ["Mercury"]}
    done = run("import", write(tmp_path / "1.jsonl", *rows, about), "--on-ambiguous", "newest", "--json")
    assert done.status == 0
    assert [one["rule"] for one in done.json["findings"]] == ["taken-as-newest"]


def test_what_a_source_no_longer_says_is_told_by_source(run: Run, tmp_path: Path) -> None:
    first = write(tmp_path / "1.jsonl", ENTITY | {"name": "A"}, ENTITY | {"name": "B"})
    assert run("import", first).status == 0
    write(tmp_path / "1.jsonl", ENTITY | {"name": "A"})
    done = run("import", first, "--json").json
    assert done["no_longer_in_source"] == 1
    assert [(one["rule"], one["file"]) for one in done["findings"]] == [("not-in-source", first)]
