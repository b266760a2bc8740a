"""The text of what an importer rejects, from which a file of rejects is made."""

from __future__ import annotations

import io
import json

import pytest

from graphmem import formats, reading
from graphmem.findings import Finding, Severity
from graphmem.formats import Rejected, Source


def rejected(data: bytes | str, name: str = "jsonl") -> list[Rejected]:
    stream = io.BytesIO(data.encode() if isinstance(data, str) else data)
    items = list(formats.importer(name).read(stream, Source(f"in.{name}")))
    errors = [one for one in items if isinstance(one, Finding) and one.severity is Severity.ERROR]
    found = [one for one in items if isinstance(one, Rejected)]
    assert bool(errors) == bool(found)
    return found


GOOD = '{"type":"entity","name":"A"}\n'


@pytest.mark.parametrize(
    "line",
    [
        '{"type":"entity","name":"B","created_at":"never"}',
        '{"type":"entity","name":"B',
        '{"type":"entity","name":"\\ud83d"}',
        '["A","knows"]',
        "not JSON at all",
        '{"type":"spaceship","name":"B"}',
        '{"type":"entity","name":"B","properties":' + "[" * 120 + "]" * 120 + "}",
    ],
)
def test_a_line_that_is_rejected_comes_as_it_stood(line: str) -> None:
    assert [one.raw for one in rejected(f"{GOOD}{line}\n{GOOD}")] == [line]


def test_bytes_that_are_not_utf_8_come_back_as_they_were() -> None:
    line = '{"type":"entity","name":"北"}'.encode("gbk")
    (one,) = rejected(GOOD.encode() + line + b"\n" + GOOD.encode())
    assert one.raw.encode("utf-8", "surrogateescape") == line


def test_of_two_objects_on_a_line_only_the_bad_one_is_rejected() -> None:
    (one,) = rejected('{"type":"entity","name":"A"} {"type":"entity"}\n')
    assert one.raw == '{"type":"entity"}'


def test_a_damaged_element_of_an_array_is_rejected_alone() -> None:
    lines = ['{"type":"entity","name":"A"}', '{"type":"entity" "name":"B"}', '{"type":"entity","name":"C"}']
    text = "[\n  " + ",\n  ".join(lines) + "\n]\n"
    (one,) = rejected(text)
    assert (one.raw, one.place.line) == ('{"type":"entity" "name":"B"}', 3)


def test_an_element_that_is_understood_and_rejected_keeps_its_text() -> None:
    text = '[\n  {"type":"entity","name":"A"},\n  {"type":"entity",\n   "nome":"B"}\n]\n'
    (one,) = rejected(text)
    assert one.raw == '{"type":"entity",\n   "nome":"B"}'


def test_a_damaged_record_longer_than_the_window_is_kept_whole() -> None:
    padding = "x" * 700_000
    text = f'[\n  {{"type":"entity" "name":"{padding}"}},\n  {{"type":"entity","name":"C"}}\n]\n'
    (one,) = rejected(text)
    assert one.raw == f'{{"type":"entity" "name":"{padding}"}}'


def test_a_damaged_record_beyond_what_is_read_at_once_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    formats.importer("jsonl")
    monkeypatch.setattr(sys.modules["graphmem.importers._window"], "SIZE_LIMIT", 500_000)
    text = f'[\n  {{"type":"entity" "name":"{"x" * 900_000}"}},\n  {{"type":"entity","name":"C"}}\n]\n'
    stream = io.BytesIO(text.encode())
    items = list(formats.importer("jsonl").read(stream, Source("in.json")))
    assert [type(one).__name__ for one in items] == ["Finding", "EntityRecord"]
    assert reading.SIZE_LIMIT > 500_000


def test_what_stands_between_conflict_markers_is_not_a_record() -> None:
    stream = io.BytesIO(f"{GOOD}<<<<<<< ours\n{GOOD}=======\n{GOOD}>>>>>>> theirs\n".encode())
    items = list(formats.importer("jsonl").read(stream, Source("in.jsonl")))
    assert not [one for one in items if isinstance(one, Rejected)]


# ---- YAML ----------------------------------------------------------------------------------------------


def test_yaml_that_is_understood_and_rejected_comes_as_json() -> None:
    (one,) = rejected("type: entity\nname: A\ncreated_at: never\n", "yaml")
    assert (one.syntax, json.loads(one.raw)) == (
        "jsonl",
        {"type": "entity", "name": "A", "created_at": "never"},
    )


def test_a_damaged_yaml_document_comes_as_it_stood() -> None:
    (one,) = rejected(
        'type: entity\nname: A\n---\ntype: entity\nname: "B\n---\ntype: entity\nname: C\n', "yaml"
    )
    assert (one.syntax, one.raw) == ("yaml", '---\ntype: entity\nname: "B\n')


def test_a_damaged_item_of_a_list_of_entities_keeps_the_key_of_the_list() -> None:
    text = "entities:\n  - name: A\n  - name: B\n    aliases: [x\n  - name: C\nmemories:\n  - content: D\n"
    (one,) = rejected(text, "yaml")
    repaired = one.raw.replace("[x", "[x]")
    (record,) = formats.importer("yaml").read(io.BytesIO(repaired.encode()), Source("again.yaml"))
    assert (getattr(record, "name", ""), getattr(record, "aliases", [])) == ("B", ["x"])


def test_a_yaml_record_that_cannot_be_used_is_a_document_of_its_own() -> None:
    text = "entities:\n  - name: A\n  - name: !!python/name:os.system ''\n    description: b\n  - name: C\n"
    (one,) = rejected(text, "yaml")
    repaired = one.raw.replace("!!python/name:os.system ''", "B")
    (record,) = formats.importer("yaml").read(io.BytesIO(repaired.encode()), Source("again.yaml"))
    assert (getattr(record, "name", ""), getattr(record, "description", "")) == ("B", "b")
