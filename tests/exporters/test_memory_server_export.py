"""Writing the file of the MCP memory server, and saying what it cannot hold."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from command_line import Run
from conftest import write_records
from importing import in_memory, take, take_records
from snapshots import content, differences

from graphmem import formats
from graphmem.export import ExportReport, export
from graphmem.store import Store

FIXTURES = Path(__file__).parents[2] / "fixtures" / "memory-server"


def exported(store: Store) -> tuple[list[dict[str, Any]], ExportReport]:
    stream = io.BytesIO()
    report = export(store, "memory-server", stream)
    data = stream.getvalue()
    assert not data or data.endswith(b"\n")
    return [json.loads(line) for line in data.splitlines()], report


def in_any_order(lines: list[dict[str, Any]]) -> list[str]:
    """Lines that can be compared: an export has an order of its own, observations by time."""
    return sorted(
        str({**one, "observations": sorted(one["observations"])} if "observations" in one else one)
        for one in lines
    )


def test_a_graph_of_the_server_comes_back_as_it_was(tmp_path: Path) -> None:
    with in_memory() as one, in_memory() as two:
        take(one, FIXTURES / "memory.jsonl", format=None)
        lines, report = exported(one)
        take(two, write_records(tmp_path / "again.jsonl", lines), format=None)

        assert differences(content(one.db, places=False), content(two.db, places=False)) == []
    given = [json.loads(line) for line in (FIXTURES / "memory.jsonl").read_text("utf-8").splitlines()]
    assert in_any_order(lines) == in_any_order(given)
    assert report.lost == {}


def test_keys_stand_in_the_order_of_the_server_and_text_as_it_is(tmp_path: Path) -> None:
    with in_memory() as store:
        take_records(
            store, tmp_path, [{"type": "entity", "name": "A"}, {"type": "memory", "content": "über\n", "about": ["A"]},
                              ["A", "knows", "A"]]
        )  # fmt: skip
        stream = io.BytesIO()
        export(store, "memory-server", stream)

    assert stream.getvalue().decode() == (
        '{"type":"entity","name":"A","entityType":"unknown","observations":["über\\n"]}\n'
        '{"type":"relation","from":"A","to":"A","relationType":"knows"}\n'
    )


def test_an_empty_store_is_an_empty_file() -> None:
    with in_memory() as store:
        assert exported(store)[0] == []


def test_what_the_format_cannot_hold_is_counted_and_the_rest_is_written(tmp_path: Path) -> None:
    records = [
        {"type": "entity", "name": "A", "kind": "x", "description": "d", "aliases": ["a1"]},
        {"type": "entity", "name": "A", "kind": "y"},
        {"type": "entity", "name": "Old", "state": "archived"},
        {"type": "memory", "content": "one", "about": [{"name": "A", "kind": "x"}], "tags": ["t"]},
        {"type": "memory", "content": "both", "about": [{"name": "A", "kind": "x"}, {"name": "A", "kind": "y"}],
         "memory_type": "observation"},
        {"type": "memory", "content": "of nothing"},
        {"type": "memory", "content": "gone", "about": [{"name": "A", "kind": "y"}], "state": "archived"},
        {"type": "memory", "content": "of the old", "about": ["Old"]},
        {"type": "relation", "subject": {"name": "A", "kind": "x"}, "predicate": "r", "object": "Stub", "weight": 0.5},
        {"type": "relation", "subject": {"name": "A", "kind": "x"}, "predicate": "r", "object": "Old"},
        {"type": "relation", "subject": {"name": "A", "kind": "x"}, "predicate": "was", "object": "Stub",
         "invalid_at": "2020-01-01"},
    ]  # fmt: skip
    with in_memory() as store:
        take_records(store, tmp_path, records)
        lines, report = exported(store)

    assert [(line["entityType"], sorted(line["observations"])) for line in lines if line["type"] == "entity"] == [
        ("x", ["both", "one"]), ("y", ["both"]),
    ]  # fmt: skip
    assert [line for line in lines if line["type"] == "relation"] == [
        {"type": "relation", "from": "A", "to": "Stub", "relationType": "r"}
    ]
    assert report.lost == {
        "aliases of entity": 1,
        "archived entity": 1,
        "archived memory": 1,
        "description of entity": 1,
        "entity of the same name as another": 1,
        "memory about no entity": 1,
        "memory about several entities, written for each": 1,
        "memory of an archived entity": 1,
        "relation of an archived entity": 1,
        "relation that no longer holds": 1,
        "tags of memory": 1,
        "weight of relation": 1,
    }


def test_other_formats_lose_nothing_and_say_so() -> None:
    with in_memory() as store:
        assert export(store, "jsonl", io.BytesIO()).lost == {}
    assert not isinstance(formats.exporter("jsonl"), formats.Lossy)


def test_the_command_line_tells_what_was_lost(run: Run, tmp_path: Path) -> None:
    path = write_records(tmp_path / "in.jsonl", [{"type": "memory", "content": "of nothing"}])
    run("import", path, "--db", tmp_path / "m.db")

    done = run("export", "--to", "memory-server", "--db", tmp_path / "m.db")

    assert done.out == ""
    assert "the format cannot hold: memory about no entity (1)\n" in done.err
    told = run(
        "export", "--to", "memory-server", "--db", tmp_path / "m.db", "-o", tmp_path / "o.jsonl", "--json"
    )
    assert told.json["lost"] == {"memory about no entity": 1}
