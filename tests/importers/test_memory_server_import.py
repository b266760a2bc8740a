"""Reading the files of the MCP memory server: every variant, the right records, nothing lost."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import write_records
from hypothesis import given
from hypothesis import strategies as st
from importing import in_memory, only, take, take_records, unaccounted
from snapshots import content, differences, sound

from graphmem import formats
from graphmem.errors import UnknownFormat
from graphmem.findings import Finding, Severity
from graphmem.formats import Item, Rejected, Source
from graphmem.ingest import run as run_import
from graphmem.options import ImportOptions
from graphmem.reading import Found, open_input
from graphmem.records import EntityRecord, MemoryRecord, Place, Ref, RelationRecord
from graphmem.rejects import Rejects

FIXTURES = Path(__file__).parents[2] / "fixtures" / "memory-server"


def read(data: bytes | str | list[Any]) -> list[Item]:
    if isinstance(data, list):
        data = "\n".join(one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in data)
    stream = io.BytesIO(data.encode() if isinstance(data, str) else data)
    return list(formats.importer("memory-server").read(stream, Source("in.jsonl")))


def read_file(name: str) -> list[Item]:
    """The items of a fixture, through the reading layer."""
    with open_input(Found(FIXTURES / name, None, name, name), None) as source:
        return [
            *formats.importer("memory-server").read(source.stream, Source(name)),
            *source.findings,
        ]


def entity(name: str, type_: str = "thing", *observations: Any, **keys: Any) -> dict[str, Any]:
    return {"type": "entity", "name": name, "entityType": type_, "observations": list(observations), **keys}


def relation(subject: str, predicate: str, object_: str, **keys: Any) -> dict[str, Any]:
    return {"type": "relation", "from": subject, "to": object_, "relationType": predicate, **keys}


def shown(items: list[Item]) -> list[str]:
    """The records in short, findings left out."""
    return list(_shown(items))


def _shown(items: list[Item]) -> Iterator[str]:
    for one in items:
        if isinstance(one, EntityRecord):
            yield f"{one.name} ({one.kind})"
        elif isinstance(one, MemoryRecord):
            yield f"{one.about[0].name}: {one.content}"
        elif isinstance(one, RelationRecord):
            yield f"{one.subject.name} {one.predicate} {one.object.name}"


def said(items: list[Item]) -> list[tuple[str, int, int]]:
    """Rule, line and column of every finding."""
    return [(one.rule, one.place.line, one.place.column) for one in items if isinstance(one, Finding)]


def only_record(items: list[Item]) -> Any:
    (record,) = items
    return record


LIGHTHOUSE = [
    "Ines Duarte (person)",
    "Ines Duarte: Runs the harbour lighthouse",
    "Ines Duarte: Speaks Portuguese and some German",
    "Ines Duarte: Prefers reports before 9 am",
    "Farol (project)",
    "Farol: Rewrite of the lamp controller firmware",
    "Farol: Uses Zephyr RTOS 3.7",
    "Farol: The watchdog resets after 8 s",
    "lamp-controller (component)",
    "lamp-controller: Draws 12 W at full beam",
    "Harbour Office (organization)",
    "Ines Duarte maintains Farol",
    "Farol controls lamp-controller",
    "Ines Duarte reports_to Harbour Office",
    "Farol documented_in Wiki",
]


# ---- what the server writes and answers --------------------------------------------------------------


@pytest.mark.parametrize("name", ["memory.jsonl", "read-graph.json", "answer.json"])
def test_a_graph_is_the_same_records_from_its_file_its_dump_and_a_pasted_answer(name: str) -> None:
    items = read_file(name)

    assert shown(items) == LIGHTHOUSE
    assert said(items) == []


def test_records_of_one_line_share_its_place() -> None:
    items = read_file("memory.jsonl")
    line = (FIXTURES / "memory.jsonl").read_bytes().index(b"\n") + 1

    assert {one.place for one in items[4:8] if not isinstance(one, (Finding, Rejected))} == {
        Place(2, 1, line)
    }


def test_references_carry_the_kind_that_the_file_gives_the_name() -> None:
    items = read_file("memory.jsonl")

    assert isinstance(items[1], MemoryRecord)
    assert items[1].about == [Ref("Ines Duarte", "person")]
    last = items[-1]
    assert isinstance(last, RelationRecord)
    assert (last.subject, last.object) == (Ref("Farol", "project"), Ref("Wiki"))


def test_a_json_array_is_read_record_by_record_with_its_places() -> None:
    items = read_file("array.json")

    assert shown(items) == [*LIGHTHOUSE[:8], LIGHTHOUSE[11]]
    last = items[-1]
    assert isinstance(last, RelationRecord)
    assert (last.place.line, last.place.column) == (22, 3)


@pytest.mark.parametrize("name", ["read-graph.json", "answer.json"])
def test_a_record_inside_a_document_has_the_place_where_its_text_starts(name: str) -> None:
    data = (FIXTURES / name).read_bytes()
    last = read_file(name)[-1]

    assert isinstance(last, RelationRecord)
    assert data[last.place.offset :].startswith(b"{")
    assert b"documented_in" in data[last.place.offset : last.place.offset + 100]
    line = data.split(b"\n")[last.place.line - 1].decode()
    assert line[last.place.column - 1] == "{"


@pytest.mark.parametrize("wrapped", ["structured", "message", "array", "relations first", "with a version"])
def test_answers_are_read_in_whatever_they_are_wrapped(wrapped: str) -> None:
    graph = {
        "entities": [entity("A", "x", 'one \U0001f5fc "quoted"\n')],
        "relations": [relation("A", "r", "A")],
    }
    result = {"content": [{"type": "text", "text": "see below"}], "structuredContent": graph}
    shapes: dict[str, Any] = {
        "structured": result,
        "message": {"jsonrpc": "2.0", "id": 1, "result": result},
        "array": [{"type": "text", "text": json.dumps(graph, ensure_ascii=False)}],
        "relations first": dict(reversed(graph.items())),
        "with a version": {"version": 1, **graph},
    }
    text = json.dumps(shapes[wrapped])

    assert formats.pick(text.encode(), "dump.txt")[0].name == "memory-server"
    items = read(text)
    assert sorted(shown(items)) == ["A (x)", "A r A", 'A: one \U0001f5fc "quoted"\n']
    assert [rule for rule, *_ in said(items)] == (["unknown-shape"] if wrapped == "with a version" else [])


def test_text_of_an_answer_that_is_not_json_is_told() -> None:
    assert said(read([{"content": [{"type": "text", "text": '{"entities": [{"name"'}]}]))[0][0] == "bad-json"


# ---- older versions, forks, hand-made files ----------------------------------------------------------


def test_lines_are_read_also_where_the_file_is_called_json() -> None:
    items = read_file("memory.json")

    assert formats.pick((FIXTURES / "memory.json").read_bytes(), "memory.json")[0].name == "memory-server"
    assert shown(items) == [*LIGHTHOUSE[:2], *LIGHTHOUSE[4:6], LIGHTHOUSE[11]]
    first = items[0]
    assert isinstance(first, EntityRecord)
    assert (first.created_at, first.properties) == ("2024-12-01T08:00:00.000Z", {"version": 3})


def test_the_variants_of_forks_are_read() -> None:
    items = read_file("forks.jsonl")

    assert shown(items) == [
        "Tide gauge (sensor)",
        "Tide gauge: Reads every 6 minutes",
        "Tide gauge owned_by Harbour Office",
        "Buoy 7 (buoy)",
        "Buoy 7: Lost its lamp in a storm",
        "Buoy 7: Lamp replaced",
        "Buoy 7 lit_by Farol",
        "North mole faces South mole",
        "North mole (zone)",
        "South mole (zone)",
        "Slipway (zone)",
        "Crane (machine)",
        "Crane: Lifts 4 t",
        "Crane: Inspected in June",
        "Slipway beside Crane",
        "North mole longer than South mole",
    ]
    assert said(items) == [("incomplete-record", 10, 1), ("unknown-shape", 13, 1)]


def test_an_observation_that_is_an_object_keeps_its_time_and_its_other_keys() -> None:
    buoy = read(
        [entity("B", "buoy", {"text": "Lamp out", "timestamp": "2025-02-01T10:00:00Z", "version": 1})]
    )[1]

    assert isinstance(buoy, MemoryRecord)
    assert (buoy.content, buoy.created_at, buoy.properties) == (
        "Lamp out", "2025-02-01T10:00:00.000Z", {"version": 1},
    )  # fmt: skip


def test_keys_that_the_server_does_not_have_become_properties() -> None:
    record = read(
        [
            entity(
                "A",
                "x",
                id=7,
                scope="odd",
                state="open",
                description="what",
                aliases=["B"],
                properties={"k": 1},
                k=2,
            )
        ]
    )

    assert [rule for rule, *_ in said(record)] == ["key-collision"]
    made = record[1]
    assert isinstance(made, EntityRecord)
    assert (made.description, made.aliases, made.scope, made.state, made.id) == (
        "what",
        ["B"],
        None,
        None,
        None,
    )
    assert made.properties == {"k": 1, "extra.k": 2, "id": 7, "scope": "odd", "state": "open"}


def test_a_relation_keeps_its_times_and_other_keys() -> None:
    one = only_record(read([relation("A", "r", "B", createdAt=1735689600, createdBy="ines")])[1:])

    assert (one.created_at, one.properties) == ("2025-01-01T00:00:00.000Z", {"createdBy": "ines"})


def test_a_marker_line_is_nothing() -> None:
    assert read([{"type": "_aim", "source": "mcp-knowledge-graph"}]) == []


def test_ends_given_by_id_mean_the_entity_of_that_id_wherever_it_stands() -> None:
    first = {"type": "relation", "from_id": "1", "to_id": 2, "relation_type": "r"}
    items = read([first, entity("A", id="1"), {"type": "relation", "from_id": 2, "to_id": 3, "relationType": "s"},
                  entity("B", id=2)])  # fmt: skip

    assert shown(items) == ["A (thing)", "B (thing)", "A r B", "B s 3"]
    assert said(items) == [("taken-as-text", 3, 45)]


# ---- what is wrong in a file -------------------------------------------------------------------------


def test_everything_that_is_wrong_is_told_at_its_place_and_the_rest_is_read() -> None:
    items = read_file("dirty.jsonl")

    assert shown(items) == [
        "Radio (device)", "Radio: 7", "Radio: true", "Radio: On channel 12", 'Radio: {"level": 3}',
        "Foghorn (None)", "42 (None)", "42: Bought second hand", "Radio (device)", "Radio: Louder at night",
        "Radio near Foghorn", "A (thing)", "A: one", "B (thing)", "B: two",
    ]  # fmt: skip
    assert said(items) == [
        ("taken-as-text", 1, 71), ("taken-as-text", 1, 73), ("empty-observation", 1, 78),
        ("empty-observation", 1, 83), ("taken-as-text", 1, 104), ("incomplete-record", 2, 1),
        ("incomplete-record", 2, 1), ("taken-as-text", 3, 25), ("value-kept-aside", 3, 41),
        ("missing-key", 4, 1), ("missing-key", 5, 1), ("several-types", 6, 1), ("value-kept-aside", 7, 84),
        ("bad-json", 8, 56), ("two-records-on-a-line", 10, 73), ("bad-json", 11, 70),
    ]  # fmt: skip


def test_what_is_rejected_comes_with_its_own_text_and_nothing_else() -> None:
    lines = (FIXTURES / "dirty.jsonl").read_text("utf-8").split("\n")

    assert [one.raw for one in read_file("dirty.jsonl") if isinstance(one, Rejected)] == [
        lines[3], lines[4], lines[7], lines[10],
    ]  # fmt: skip


def test_a_rejected_element_of_a_document_comes_alone() -> None:
    graph: dict[str, list[Any]] = {"entities": [{"name": "A", "entityType": "x", "observations": []}, {"entityType": "x"}],
             "relations": [{"from": "A", "relationType": "r"}]}  # fmt: skip
    for text in (
        json.dumps(graph, indent=1),
        json.dumps({"content": [{"type": "text", "text": json.dumps(graph)}]}),
    ):
        rejected = [one for one in read(text) if isinstance(one, Rejected)]
        assert [json.loads(one.raw) for one in rejected] == [graph["entities"][1], graph["relations"][0]]
        assert len({one.place for one in rejected}) == 2


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ({"type": "entity", "entityType": "x"}, "entity"),
        ({"type": "entity", "name": " ", "entityType": "x"}, "entity"),
        ({"type": "entity", "name": ["A"], "entityType": "x"}, "entity"),
        ({"type": "relation"}, "relation"),
        ({"type": "relation", "from": "A", "to": "", "relationType": True}, "relation"),
        ({"type": "observation", "content": "whose?"}, "memory"),
        ({"type": "observation", "entityName": "A"}, "memory"),
    ],
)
def test_a_line_that_cannot_be_used_is_one_rejected_record_of_its_kind(
    line: dict[str, Any], kind: str, tmp_path: Path
) -> None:
    path = write_records(tmp_path / "memory.jsonl", [line, entity("A")])
    with in_memory() as store:
        report = take(store, path, format="memory-server")

    assert report.counts[kind].rejected == 1
    assert unaccounted(report) == []
    assert report.counts["entity"].created == 1


def test_types_that_differ_for_one_name_make_one_entity_and_keep_the_other_type() -> None:
    items = read(
        [entity("A", "Person"), entity("A", "person"), entity("A", "unknown"), entity("A", "robot", "x")]
    )

    assert [one.kind for one in items if isinstance(one, EntityRecord)] == [
        "Person",
        "person",
        "Person",
        "Person",
    ]
    assert said(items) == [("several-types", 4, 1)]
    robot = items[-2]
    assert isinstance(robot, EntityRecord)
    assert robot.properties == {"entityType": "robot"}


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\n\n  \n"])
def test_line_ends_blank_lines_and_a_byte_order_mark_make_no_difference(ending: str, tmp_path: Path) -> None:
    lines = (FIXTURES / "memory.jsonl").read_text("utf-8").split("\n")
    path = tmp_path / "memory.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + ending.join(lines).encode())
    with in_memory() as one, in_memory() as two:
        take(one, FIXTURES / "memory.jsonl", format=None)
        take(two, path, format=None)
        assert differences(content(one.db, places=False), content(two.db, places=False)) == []


# ---- into the store ----------------------------------------------------------------------------------


def test_a_graph_imports_with_every_count_right_and_again_without_a_change() -> None:
    with in_memory() as store:
        report = take(store, FIXTURES / "memory.jsonl", format=None)
        assert sound(store.db) == []
        again = take(store, FIXTURES / "memory.jsonl", "2026-03-02T00:00:00.000Z", format=None)

    assert (report.counts["entity"], report.counts["memory"], report.counts["relation"]) == (
        only(created=4), only(created=7), only(created=4),
    )  # fmt: skip
    assert (report.stubs, report.exit_status()) == (1, 0)
    assert (again.batches, again.total("unchanged")) == ([], 15)


def test_a_file_appended_to_itself_is_united(tmp_path: Path) -> None:
    with in_memory() as store:
        report = take(store, FIXTURES / "appended.jsonl", format=None)

    assert unaccounted(report) == []
    assert report.counts["entity"] == only(created=4, merged=2)
    assert report.counts["memory"] == only(created=8, merged=2)
    assert report.counts["relation"] == only(created=4, merged=1)


def test_two_entities_of_one_name_in_one_file_share_their_observations(tmp_path: Path) -> None:
    with in_memory() as store:
        report = take_records(
            store, tmp_path, [entity("A", "x", "one", "two"), entity("A", "x", "two", "three")], format=None
        )
        held = store.db.execute("SELECT content FROM memory ORDER BY pk").fetchall()

    assert report.counts["entity"] == only(created=1, merged=1)
    assert report.counts["memory"] == only(created=3, merged=1)
    assert held == [("one",), ("two",), ("three",)]


def test_an_older_file_after_a_newer_one_takes_nothing_away() -> None:
    with in_memory() as store:
        take(store, [FIXTURES / "memory.jsonl", FIXTURES / "memory.json"], format=None)
        assert store.db.execute("SELECT count(*) FROM entity WHERE stub = 0").get == 4
        assert store.db.execute("SELECT count(*) FROM memory").get == 7
        assert store.db.execute("SELECT count(*) FROM relation").get == 4


def test_the_same_graph_in_the_canonical_format_is_the_same_items(tmp_path: Path) -> None:
    canonical: list[Any] = []
    for one in read_file("memory.jsonl"):
        if isinstance(one, EntityRecord):
            canonical.append({"type": "entity", "name": one.name, "kind": one.kind})
        elif isinstance(one, MemoryRecord):
            canonical.append({"type": "memory", "content": one.content, "about": [one.about[0].name]})
        elif isinstance(one, RelationRecord):
            canonical.append([one.subject.name, one.predicate, one.object.name])
    with in_memory() as store, in_memory() as other:
        take(store, FIXTURES / "memory.jsonl", format=None)
        report = take_records(store, tmp_path, canonical, format=None)
        take_records(other, tmp_path, canonical, format=None)
        assert report.total("unchanged") == len(canonical)
        ids = "SELECT id FROM entity UNION SELECT id FROM memory UNION SELECT id FROM relation ORDER BY 1"
        assert store.db.execute(ids).fetchall() == other.db.execute(ids).fetchall()


def test_a_namesake_of_another_kind_in_the_store_takes_nothing_of_the_file(tmp_path: Path) -> None:
    with in_memory() as store:
        take_records(store, tmp_path, [{"type": "entity", "name": "Farol", "kind": "village"}])
        report = take(store, FIXTURES / "memory.jsonl", "2026-03-02T00:00:00.000Z", format=None)

        assert report.total("rejected") == 0
        about = "SELECT e.kind, count(*) FROM memory_link JOIN entity AS e ON e.pk = entity WHERE e.name = 'Farol' GROUP BY 1"
        assert store.db.execute(about).fetchall() == [("project", 3)]


@pytest.mark.parametrize(("dangling", "stored", "status"), [("stub", 2, 0), ("skip", 1, 1), ("error", 1, 1)])
def test_dangling_ends_are_stubs_skipped_or_errors(
    dangling: str, stored: int, status: int, tmp_path: Path
) -> None:
    from graphmem.commit import Choices

    path = write_records(
        tmp_path / "m.jsonl", [entity("A"), relation("A", "r", "A"), relation("A", "s", "Gone")]
    )
    with in_memory() as store:
        report = take(store, path, format=None, choices=Choices(dangling=dangling))
        assert store.db.execute("SELECT count(*) FROM relation").get == stored
    assert (report.exit_status(), unaccounted(report)) == (status, [])


def test_rejects_can_be_repaired_and_imported_again(tmp_path: Path) -> None:
    from graphmem.commit import Choices

    path = write_records(
        tmp_path / "memory.jsonl",
        [{"type": "entity", "entityType": "x", "observations": ["one"]}, entity("A", "x", "two"),
         relation("A", "r", "Gone"), {"type": "relation", "from": "A", "to": "A"}],
    )  # fmt: skip
    with in_memory() as store:
        options = ImportOptions([str(path)], choices=Choices(dangling="error"))
        with Rejects() as kept:
            report = run_import(store, options, rejects=kept)
            kept.write(tmp_path / "rejects.jsonl")
        assert report.total("rejected") == 3
        text = (tmp_path / "rejects.jsonl").read_text("utf-8")
        assert len(text.splitlines()) == 3
        text = text.replace('"entityType": "x"', '"entityType": "x", "name": "B"')
        text = text.replace('"to": "A"', '"to": "A", "relationType": "s"')
        (tmp_path / "rejects.jsonl").write_text(text, "utf-8")
        again = take(store, tmp_path / "rejects.jsonl", "2026-03-02T00:00:00.000Z", format=None)

        assert (again.total("rejected"), unaccounted(again)) == (0, [])
        assert store.db.execute("SELECT count(*) FROM relation").get == 2
        assert store.db.execute("SELECT content FROM memory ORDER BY content").fetchall() == [
            ("one",),
            ("two",),
        ]


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "memory.jsonl.gz"
    path.write_bytes(gzip.compress((FIXTURES / "memory.jsonl").read_bytes()))
    with in_memory() as store:
        assert take(store, path, format=None).total("created") == 15


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
_VALUE = st.none() | st.booleans() | st.integers(-5, 5) | _TEXT | st.lists(_TEXT, max_size=2)
_KEY = st.sampled_from(
    ["type", "name", "entityType", "observations", "from", "to", "relationType", "from_id", "to_id", "id",
     "entityName", "content", "createdAt", "properties", "description", "aliases", "note", "source", "target"]
)  # fmt: skip
_OBJECT = st.dictionaries(_KEY, _VALUE | st.dictionaries(_KEY, _VALUE, max_size=2), max_size=5).flatmap(
    lambda made: st.sampled_from(
        [made, {**made, "type": "entity"}, {**made, "type": "relation"}, {**made, "type": "observation"}]
    )
)


@given(st.lists(_OBJECT, max_size=6), st.booleans())
def test_whatever_the_objects_hold_each_is_read_or_rejected_and_counted(
    objects: list[dict[str, Any]], document: bool
) -> None:
    items = read(json.dumps({"entities": objects}, indent=1) if document else [*objects])

    rejected = [one for one in items if isinstance(one, Rejected)]
    errors = {one.place for one in items if isinstance(one, Finding) and one.severity is Severity.ERROR}
    assert {one.place for one in rejected} == errors
    assert len(rejected) == len(errors)
    read_places = {one.place for one in items if not isinstance(one, (Finding, Rejected))}
    assert not read_places & errors


# ---- recognising -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.json*")), ids=lambda path: path.name)
def test_every_fixture_is_recognised_by_its_content(path: Path) -> None:
    importer, why = formats.pick(path.read_bytes(), "no-suffix")

    assert importer.name == "memory-server"
    assert "MCP memory server" in why


def test_a_line_further_down_shows_it_where_the_first_is_damaged_or_canonical() -> None:
    for first in ('{"type":"entity","na', '{"type":"entity","name":"A","kind":"x"}'):
        head = f"{first}\n{json.dumps(entity('B'))}\n".encode()
        assert formats.pick(head, "rejects.jsonl")[0].name == "memory-server"


def test_records_of_the_canonical_format_are_read_beside_those_of_the_server() -> None:
    items = read([{"type": "entity", "name": "A", "kind": "x"}, entity("B"), ["A", "knows", "B"],
                  {"type": "memory", "content": "c", "about": ["A"]}])  # fmt: skip

    assert shown(items) == ["A (x)", "B (thing)", "A knows B", "A: c"]
    assert said(items) == []


def test_an_empty_graph_is_recognised_and_has_nothing() -> None:
    head = b'{\n  "entities": [],\n  "relations": []\n}'

    assert formats.pick(head, "x")[0].name == "memory-server"
    assert read(head) == []


@pytest.mark.parametrize(
    "head",
    [
        b'{"type":"manifest","format":"graphmem","version":1}\n{"type":"entity","name":"A","observations":["x"]}',
        b'{"type":"entity","name":"A","description":"has an entityType and observations"}\n',
        b'{"entities":[{"name":"A","kind":"x"}],"relations":[["A","knows","B"]]}',
        b'["A","entityType","B"]\n',
    ],
)
def test_what_is_canonical_stays_with_its_own_format(head: bytes) -> None:
    assert formats.pick(head, "memory.jsonl")[0].name == "jsonl"


@pytest.mark.parametrize(
    "head",
    [b'{"players":[],"score":3}', b'{"observations_total":4}', b'{"content":[{"type":"text","text":"hi"}]}'],
)
def test_other_json_called_memory_json_is_not_taken_for_a_graph(head: bytes) -> None:
    with pytest.raises(UnknownFormat):
        formats.pick(head, "memory.json")
