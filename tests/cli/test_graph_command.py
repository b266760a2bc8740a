"""`gmem graph` and `gmem path` as people and scripts use them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import write_records

if TYPE_CHECKING:
    from command_line import Run

RECORDS: list[dict[str, Any]] = [
    {"type": "entity", "name": "Api", "kind": "service"},
    {"type": "entity", "name": "Mercury", "kind": "planet"},
    {"type": "entity", "name": "Mercury", "kind": "project"},
    {"type": "relation", "subject": "Api", "predicate": "uses", "object": "Db"},
    {"type": "relation", "subject": "Api", "predicate": "writes_to", "object": "Db"},
    {"type": "relation", "subject": "Db", "predicate": "runs_on", "object": 'Host "7"'},
    {
        "type": "relation",
        "subject": {"name": "Mercury", "kind": "project"},
        "predicate": "owns",
        "object": "Api",
    },
    {"type": "relation", "subject": "Secret", "predicate": "uses", "object": "Api", "scope": "repo:/other"},
    {"type": "relation", "subject": "Old", "predicate": "used", "object": "Api", "invalid_at": "2020-01-01"},
    {"type": "memory", "content": "Api answers in 20 ms", "about": ["Api"]},
]


@pytest.fixture(autouse=True)
def filled(run: Run, tmp_path: Path) -> None:
    assert run("import", write_records(tmp_path / "records.jsonl", RECORDS)).status == 0


def test_a_neighbourhood_reads_as_a_tree(run: Run) -> None:
    assert run("graph", "Api", "--depth", "2", "--memories").out == (
        "Api (service)\n"
        "    * Api answers in 20 ms\n"
        "  <-- owns -- Mercury (project)\n"
        "  -- uses --> Db\n"
        '    -- runs_on --> Host "7"\n'
        "  -- writes_to --> Db\n"
        "\n"
        "4 entities, 4 relations\n"
    )


@pytest.mark.parametrize(
    ("args", "names"),
    [
        (("--direction", "in"), {"Api", "Mercury"}),
        (("--direction", "out"), {"Api", "Db"}),
        (("--predicate", "OWNS"), {"Api", "Mercury"}),
        (("--depth", "0"), {"Api"}),
        (("--depth", "3"), {"Api", "Db", "Mercury", 'Host "7"'}),
        (("--all-scopes",), {"Api", "Db", "Mercury", "Secret"}),
    ],
)
def test_options_limit_the_walk(run: Run, args: tuple[str, ...], names: set[str]) -> None:
    result = run("graph", "Api", *args, "--json").json
    assert {one["name"] for one in result["entities"]} == names
    assert not result["truncated"]


def test_another_scope_is_walked_only_when_it_is_asked_for(run: Run) -> None:
    assert run("graph", "Secret").status == 2
    alone = run("graph", "Secret", "--scope", "repo:/other", "--json").json
    assert [one["name"] for one in alone["entities"]] == ["Secret"]
    both = run("graph", "Secret", "--scope", "repo:/other", "--scope", "global", "--json").json
    assert [(one["name"], one["scope"]) for one in both["entities"]] == [
        ("Secret", "repo:/other"),
        ("Api", "global"),
    ]


def test_homonyms_are_told_apart_by_kind(run: Run) -> None:
    found = run("graph", "Mercury", "--kind", "planet", "--json").json
    assert [one["kind"] for one in found["entities"]] == ["planet"]
    assert found["relations"] == []


def test_several_names_are_one_walk(run: Run) -> None:
    found = run("graph", 'Host "7"', "Mercury", "--kind", "project", "--json")
    assert found.status == 2
    both = run("graph", "Db", "Api", "--depth", "0", "--json").json
    assert {one["name"] for one in both["entities"]} == {"Api", "Db"}
    assert {one["predicate"] for one in both["relations"]} == {"uses", "writes_to"}


def test_drawings_keep_text_as_text(run: Run) -> None:
    flow = run("graph", "Db", "--format", "mermaid").out
    assert flow.startswith("flowchart LR\n")
    assert '"Host #34;7#34;"' in flow
    dot = run("graph", "Db", "--format", "dot").out
    assert 'label="Host \\"7\\""' in dot
    assert dot.rstrip().endswith("}")


def test_the_budget_is_honoured_and_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMEM_TRAVERSAL_NODE_BUDGET", "2")
    result = run("graph", "Api", "--depth", "3", "--json").json
    assert len(result["entities"]) == 2
    assert result["truncated"]
    assert "there is more" in run("graph", "Api").out
    monkeypatch.setenv("GRAPHMEM_TRAVERSAL_NODE_BUDGET", "none")
    assert run("graph", "Api").status == 2


def test_paths_read_as_lines(run: Run) -> None:
    line, blank, count = run("path", "Mercury", 'Host "7"', "--kind-a", "project").out.splitlines()
    assert line.startswith("Mercury (project) -- owns --> Api (service) -- ")
    assert line.endswith(' --> Db -- runs_on --> Host "7"')
    assert "uses" in line
    assert "writes_to" in line
    assert (blank, count) == ("", "1 path of 3 hops")


def test_a_path_that_is_not_there_is_an_answer(run: Run) -> None:
    done = run("path", 'Host "7"', "Api", "--direction", "out")
    assert done.status == 0
    assert done.out.startswith('no path from Host "7" to Api')
    assert run("path", "Api", 'Host "7"', "--max-hops", "1", "--json").json["length"] is None
    assert run("path", "Api", "Api", "--json").json["length"] == 0


def test_a_name_that_is_not_there_comes_with_suggestions(run: Run) -> None:
    done = run("path", "Apy", "Db")
    assert done.status == 2
    assert "Api" in done.err
