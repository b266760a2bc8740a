"""Reading YAML: documents, lists and lists per kind; text stays text, and damage costs only its record."""

from __future__ import annotations

import io
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphmem import formats
from graphmem.findings import Finding, Severity
from graphmem.formats import Item, Source
from graphmem.reading import HEAD_SIZE, SIZE_LIMIT, Found, open_input
from graphmem.records import EntityRecord, ManifestRecord, MemoryRecord, Place, RelationRecord

FIXTURES = Path(__file__).parents[2] / "fixtures"


def read(data: bytes | str) -> list[Item]:
    stream = io.BytesIO(data.encode() if isinstance(data, str) else data)
    return list(formats.importer("yaml").read(stream, Source("in.yaml")))


def read_file(path: str) -> list[Item]:
    """The items of a fixture, through the reading layer."""
    with open_input(Found(FIXTURES / path, None, path, path)) as source:
        return list(formats.importer("yaml").read(source.stream, Source(path)))


def findings(items: list[Item]) -> list[Finding]:
    return [one for one in items if isinstance(one, Finding)]


def rules(items: list[Item]) -> list[tuple[str, int]]:
    """Rule and line of every finding."""
    return [(one.rule, one.place.line) for one in findings(items)]


def shown(items: list[Item]) -> list[str]:
    """The records in short, findings left out."""
    made: list[str] = []
    for one in items:
        if isinstance(one, EntityRecord):
            made.append(one.name)
        elif isinstance(one, MemoryRecord):
            made.append(one.content)
        elif isinstance(one, RelationRecord):
            made.append(f"{one.subject.name} {one.predicate} {one.object.name}")
        elif isinstance(one, ManifestRecord):
            made.append("manifest")
    return made


def properties(text: str) -> dict[str, Any]:
    (record,) = read(f"type: entity\nname: A\n{text}\n")
    assert isinstance(record, EntityRecord)
    return record.properties


# ---- shapes ----------------------------------------------------------------------------------------


def test_every_shape_of_document_is_read() -> None:
    items = read_file("yaml/team.yaml")

    assert findings(items) == []
    assert shown(items)[:3] == ["Payments", "ledger", "no"]
    assert shown(items)[5:] == [
        "Payments owns ledger",
        "ledger written_in Rust",
        "Payments part_of Engineering",
        "ledger replaced ledger-py",
        "ledger-py",
    ]


def test_texts_numbers_and_flags_have_their_right_values() -> None:
    items = read_file("yaml/team.yaml")

    payments, ledger, _, rounding = items[:4]
    assert isinstance(payments, EntityRecord)
    assert isinstance(ledger, EntityRecord)
    assert isinstance(rounding, MemoryRecord)
    assert payments.aliases == ["1.10", "billing team"]
    assert ledger.description is not None
    assert ledger.description.endswith("money.\n\nWritten in Rust; the old Python version is archived.\n")
    assert ledger.properties == {
        "language": "Rust",
        "version": "1.10",
        "stars": 42,
        "coverage": 0.87,
        "archived": False,
        "owner": None,
    }
    assert rounding.content == "Amounts are integers in the smallest unit.\n  Never multiply before rounding."
    assert (rounding.importance, rounding.source, rounding.position) == (0.75, "docs/rounding.md", 3)
    assert rounding.created_at is not None
    assert rounding.created_at.startswith("2026-01-15")


def test_a_mapping_with_a_list_per_kind_is_read() -> None:
    items = read_file("yaml/garden.yml")

    assert findings(items) == []
    assert shown(items) == [
        "Pear tree",
        "Compost heap",
        "Shed",
        "The pear tree carries every second year.",
        "Slugs come from the compost heap after rain.",
        "Pear tree stands_next_to Shed",
        "Compost heap feeds Pear tree",
    ]


def test_what_stands_beside_lists_of_records_is_told() -> None:
    items = read("version: {a: [1]}\n---\nentities:\n- A\nnotes:\n- x\nrelations: [[A, knows, B]]\n")

    assert shown(items) == ["A", "A knows B"]
    assert rules(items) == [("unknown-shape", 1), ("unknown-shape", 5)]


@pytest.mark.parametrize(
    "text", ["", "\n", "---\n", "# nothing\n", "---\n---\n...\n", "[]\n", "%YAML 1.1\n---\n"]
)
def test_an_empty_document_is_nothing(text: str) -> None:
    assert read(text) == []


def test_a_manifest_is_read_as_such() -> None:
    (manifest,) = read("type: manifest\nformat: graphmem\nversion: 1\ncounts: {entity: 2}\ndigest: 0123\n")

    assert isinstance(manifest, ManifestRecord)
    assert (manifest.version, manifest.counts, manifest.digest) == (1, {"entity": 2}, "0123")


def test_each_record_has_the_place_where_it_starts() -> None:
    text = "# é\n---\ntype: entity\nname: É\n---\n- type: entity\n  name: B\n-   [a, b, c]\n"
    text += "---\nentities:\n  - D\n"

    items = read(text)

    places = [one.place for one in items if not isinstance(one, Finding)]
    assert [(place.line, place.column) for place in places] == [(3, 1), (6, 3), (8, 5), (11, 5)]
    starts = [text.encode()[place.offset :].split(b"\n")[0].decode() for place in places]
    assert starts == ["type: entity", "type: entity", "[a, b, c]", "D"]


def test_windows_line_ends_make_no_difference() -> None:
    text = "---\ntype: memory\ncontent: |\n  one\n  two\n---\n- [A, knows, B]\n- type: entity\n  name: C\n"

    items = read(text.replace("\n", "\r\n"))

    assert findings(items) == []
    assert shown(items) == shown(read(text)) == ["one\ntwo\n", "A knows B", "C"]


# ---- what a plain scalar means ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "written",
    ["1.10", "no", "yes", "2024-01-15", "0x1F", "1_000", "0o7", "true", "42", "12:30:45", "Null", ".nan"],
)
def test_in_a_text_a_plain_scalar_is_what_was_written(written: str) -> None:
    (entity,) = read(
        f"type: entity\nname: {written}\naliases: [{written}]\ndescription: {written}\nid: {written}\n"
    )
    (triple,) = read(f"[{written}, {written}, {written}]\n")

    assert isinstance(entity, EntityRecord)
    assert (entity.name, entity.aliases, entity.description, entity.id) == (
        written,
        [written],
        written,
        written,
    )
    assert isinstance(triple, RelationRecord)
    assert (triple.subject.name, triple.predicate, triple.object.name) == (written, written, written)


@pytest.mark.parametrize("nothing", ["", "~", "null"])
def test_nothing_is_nothing(nothing: str) -> None:
    (entity,) = read(f"type: entity\nname: A\nkind: {nothing}\nproperties:\n  p: {nothing}\n")

    assert isinstance(entity, EntityRecord)
    assert (entity.kind, entity.properties) == (None, {"p": None})


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("42", 42),
        ("-7", -7),
        ("0", 0),
        ("0.5", 0.5),
        ("1e-07", 1e-07),
        ("-0.0", -0.0),
        ("true", True),
        ("false", False),
        ("9223372036854775807", 2**63 - 1),
        ("1.10", "1.10"),
        ("01", "01"),
        ("-0", "-0"),
        ("+1", "+1"),
        ("1.", "1."),
        (".5", ".5"),
        ("1E5", "1E5"),
        ("1_000", "1_000"),
        ("0x1F", "0x1F"),
        ("yes", "yes"),
        ("True", "True"),
        ("NULL", "NULL"),
        ("2024-01-15", "2024-01-15"),
        ("9223372036854775808", "9223372036854775808"),
        ("1e999", "1e999"),
        (".inf", ".inf"),
        ("'42'", "42"),
        ('"true"', "true"),
        ("'null'", "null"),
        ("!!str 42", "42"),
        ("! 42", "42"),
        ("!!int 42", 42),
    ],
)
def test_in_properties_a_plain_scalar_is_the_json_value_that_is_written_alike(
    written: str, value: Any
) -> None:
    found = [properties(f"properties: {{p: {written}}}"), properties(f"p: {written}")]

    assert [repr(one) for one in found] == [repr({"p": value})] * 2


def test_numbers_and_flags_of_the_schema_are_read_however_they_are_written() -> None:
    (memory,) = read("type: memory\ncontent: x\nimportance: .50\nsource: {uri: 42, position: 7}\n")
    (relation,) = read("{type: relation, subject: A, predicate: p, object: B, weight: 1}\n")
    (stub,) = read("type: entity\nname: A\nstub: True\n")

    assert isinstance(memory, MemoryRecord)
    assert (memory.importance, memory.source, memory.position) == (0.5, "42", 7)
    assert isinstance(relation, RelationRecord)
    assert relation.weight == 1.0
    assert isinstance(stub, EntityRecord)
    assert stub.stub is True


@pytest.mark.parametrize("line", ["importance: high", "importance: '0.5'", "importance: 1e999"])
def test_a_number_that_is_none_is_a_bad_value(line: str) -> None:
    assert rules(read(f"type: memory\ncontent: x\n{line}\n")) == [("bad-value", 1)]


def test_keys_are_text_whatever_they_look_like() -> None:
    assert properties("properties: {1: a, true: b, 'x y': c, ~: d}") == {
        "1": "a",
        "true": "b",
        "x y": "c",
        "~": "d",
    }


def test_anchors_and_aliases_are_followed() -> None:
    assert properties("properties:\n  a: &a [1, {b: x}]\n  c: *a\n  d: [*a]") == {
        "a": [1, {"b": "x"}],
        "c": [1, {"b": "x"}],
        "d": [[1, {"b": "x"}]],
    }


def test_a_merge_key_is_a_plain_key_and_is_told() -> None:
    items = read("type: entity\nname: A\nproperties:\n  <<: {a: b}\n  '<<<': c\n")

    assert rules(items) == [("yaml-merge-key", 4)]
    record = items[-1]
    assert isinstance(record, EntityRecord)
    assert record.properties == {"<<": {"a": "b"}, "<<<": "c"}


def test_of_a_key_given_twice_lists_are_united_and_else_the_last_value_counts() -> None:
    items = read("type: entity\nname: A\nname: B\naliases: [x]\naliases: [y, x]\n")

    record = items[-1]
    assert isinstance(record, EntityRecord)
    assert (record.name, record.aliases) == ("B", ["x", "y"])
    assert rules(items) == [("duplicate-key", 3), ("duplicate-key", 5)]


# ---- text ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", ["{}", '"{}"', "'{}'"])
def test_unicode_line_separators_do_not_end_a_line(style: str) -> None:
    text = "a\u2028b\u2029c \x85d"

    items = read("type: memory\ncontent: " + style.format(text) + "\ntitle: t\n---\n- [A, knows, B]\n")

    assert findings(items) == []
    assert shown(items) == [text, "A knows B"]
    last = items[-1]
    assert isinstance(last, RelationRecord)
    assert last.place.line == 5


def test_control_characters_come_through_and_raw_ones_are_told() -> None:
    items = read('type: memory\ncontent: "a\x00b\x7fc\\0\\x07"\n---\ntype: memory\ncontent: x\n')

    assert shown(items) == ["a\0b\x7fc\0\x07", "x"]
    assert [(one.rule, one.severity, one.place) for one in findings(items)] == [
        ("raw-control-character", Severity.WARNING, Place(2, 12, 24))
    ]


def test_characters_of_the_private_use_area_stay_what_they_are() -> None:
    text = "\ue000\ue001\x01\ue002"

    assert shown(read(f"type: memory\ncontent: '{text}'\n")) == [text]


def test_bytes_that_are_not_utf_8_cost_their_record_only() -> None:
    data = b"- type: entity\n  name: A\n- type: entity\n  name: \xc4\xe3\n- type: entity\n  name: C\n"

    items = read(data)

    assert shown(items) == ["A", "C"]
    assert [(one.rule, one.place) for one in findings(items)] == [
        ("bad-encoding", Place(4, 9, data.index(b"\xc4")))
    ]


def test_a_byte_order_mark_is_skipped() -> None:
    assert shown(read("\ufefftype: entity\nname: A\n")) == ["A"]


def test_half_of_a_surrogate_pair_costs_its_record_only() -> None:
    items = read('type: entity\nname: "\\ud83d"\n---\ntype: entity\nname: B\n')

    assert shown(items) == ["B"]
    assert [one.severity for one in findings(items)] == [Severity.ERROR]


def test_a_text_of_five_megabytes_is_read() -> None:
    items = read("type: memory\ncontent: " + "ä" * 2_500_000 + "\n---\n[A, knows, B]\n")

    assert findings(items) == []
    assert [len(text) for text in shown(items)] == [2_500_000, 9]


def test_a_document_beyond_the_limit_is_refused_and_the_next_one_read() -> None:
    items = read(
        "---\n[A, knows, B]\n---\ntype: memory\ncontent: " + "x" * SIZE_LIMIT + "\n---\n[C, knows, D]\n"
    )

    assert shown(items) == ["A knows B", "C knows D"]
    assert rules(items) == [("record-too-large", 3)]
    last = items[-1]
    assert isinstance(last, RelationRecord)
    assert last.place.line == 7


# ---- damage ----------------------------------------------------------------------------------------


def test_a_damaged_document_costs_no_other() -> None:
    items = read_file("corrupt/damaged-document.yaml")

    assert shown(items) == ["A", "D"]
    assert [(one.rule, one.place.line, one.place.column) for one in findings(items)] == [
        ("bad-yaml", 6, 7),
        ("bad-yaml", 9, 1),
    ]


def test_a_damaged_item_of_a_list_costs_no_other() -> None:
    items = read_file("corrupt/damaged-list.yaml")

    assert shown(items) == ["A", "C"]
    assert rules(items) == [("bad-yaml", 4)]


@pytest.mark.parametrize(
    "bad",
    [
        "- type: entity\n  name: 'B",
        "- {type: entity",
        "- \tx: y: z",
        "- a: b: c",
        "- [",
        '- "',
    ],
)
@pytest.mark.parametrize("at", [0, 1, 3])
def test_the_items_around_a_damaged_one_are_read_wherever_it_stands(bad: str, at: int) -> None:
    good = [f"- type: entity\n  name: G{number}\n  aliases: [x, y]" for number in range(3)]
    good.insert(at, bad)

    items = read("\n".join(good) + "\n")

    assert shown(items) == ["G0", "G1", "G2"]
    assert [one.rule for one in findings(items)] == ["bad-yaml"]


def test_a_line_between_two_items_that_belongs_to_none_costs_neither() -> None:
    items = read("- type: entity\n  name: A\n description: x\n- type: entity\n  name: B\n")

    assert shown(items) == ["A", "B"]
    assert rules(items) == [("bad-yaml", 3)]


def test_a_damaged_item_of_a_list_per_kind_costs_neither_its_list_nor_the_next() -> None:
    entities = 'entities:\n  - A\n  - name: "B\n  - C\n'
    relations = "relations:\n  - [A, p, C]\n  - [x\n  - [q, r, s]\n"

    items = read(entities + relations + "memories: [m]\n")

    assert shown(items) == ["A", "C", "A p C", "q r s", "m"]
    assert rules(items) == [("bad-yaml", 3), ("bad-yaml", 7)]


def test_after_a_hundred_faults_the_rest_of_a_document_is_given_up_and_that_is_said() -> None:
    items = read("- [A, knows, B]\n" + "- [x\n" * 200 + "- [C, knows, D]\n---\n[E, knows, F]\n")

    assert shown(items) == ["A knows B", "E knows F"]
    assert len(findings(items)) == 101
    assert "was not read" in findings(items)[-1].message


def test_aliases_that_multiply_are_refused_and_the_next_document_read() -> None:
    items = read_file("corrupt/alias-bomb.yaml")

    assert shown(items) == ["Calm"]
    assert [one.rule for one in findings(items)] == ["yaml-alias-bomb"]


def test_aliases_of_a_long_text_count_by_its_length() -> None:
    long = "x" * 1_000_000

    items = read(f"type: entity\nname: A\nproperties:\n  a: &a {long}\n  b: [{', '.join(['*a'] * 50)}]\n")

    assert [one.rule for one in findings(items)] == ["yaml-alias-bomb"]


def test_tags_that_would_build_something_are_refused() -> None:
    items = read_file("corrupt/python-tag.yaml")

    (problem,) = findings(items)
    assert shown(items) == ["Calm"]
    assert (problem.rule, problem.place.line) == ("bad-yaml", 2)
    assert "!!python/object/apply:os.system" in problem.message


@pytest.mark.parametrize("line", ["a: *nothing", "a: &a [*a]", "[a, b]: c", "{a: b}: c", "a: !mine x"])
def test_what_yaml_allows_and_json_cannot_hold_costs_its_record_only(line: str) -> None:
    items = read(f"type: entity\nname: A\nproperties:\n  {line}\n---\ntype: entity\nname: B\n")

    assert shown(items) == ["B"]
    assert rules(items) == [("bad-yaml", 4)]


@pytest.mark.parametrize("depth", [97, 98, 99, 900])
def test_nesting_beyond_a_hundred_levels_costs_its_record_only(depth: int) -> None:
    items = read(
        "- [A, knows, B]\n- {type: entity, name: A, properties: {p: "
        + "[" * depth
        + "]" * depth
        + "}}\n- [C, p, D]\n"
    )

    sound = depth <= 98
    assert shown(items) == (["A knows B", "A", "C p D"] if sound else ["A knows B", "C p D"])
    assert rules(items) == ([] if sound else [("too-deep", 2)])


def test_nesting_through_aliases_is_bounded_too() -> None:
    levels = "".join(f"  k{i}: &k{i} [*k{i - 1}]\n" for i in range(1, 120))

    items = read(f"type: entity\nname: A\nproperties:\n  k0: &k0 [x]\n{levels}")

    assert [one.rule for one in findings(items)] == ["too-deep"]


def test_brackets_that_never_close_are_no_crash() -> None:
    items = read(
        "---\n[A, knows, B]\n---\n" + "[" * 50_000 + "\n---\n" + "{a: " * 50_000 + "\n---\n[C, knows, D]\n"
    )

    assert shown(items) == ["A knows B", "C knows D"]
    assert {one.severity for one in findings(items)} == {Severity.ERROR}


def test_nothing_of_a_file_with_conflict_markers_is_read() -> None:
    items = read_file("corrupt/conflict.yaml")

    assert shown(items) == []
    assert [(one.rule, one.severity, one.place) for one in findings(items)] == [
        ("conflict-markers", Severity.ERROR, Place(3, 1, 21))
    ]


def test_a_marker_inside_an_indented_text_is_text() -> None:
    assert shown(read("type: memory\ncontent: |\n  <<<<<<< HEAD\n  ---\n  >>>>>>> x\n")) == [
        "<<<<<<< HEAD\n---\n>>>>>>> x\n"
    ]


def test_random_damage_is_never_a_crash_and_never_silent() -> None:
    chance = random.Random(7)
    text = "".join(
        f"- type: entity\n  name: E{i}\n  properties:\n    t: |\n      x\n    l: ['a', {{b: c}}]\n"
        for i in range(8)
    )
    for _ in range(150):
        at = chance.randrange(len(text))
        cut = text[: at + 1] + "".join(chance.choices("{}[]\"',:\n\t-#&*!|>%@`\x00", k=3)) + text[at + 1 :]
        items = read(cut)
        lost = {f"E{i}" for i in range(8)} - set(shown(items))
        for one in findings(items):
            before = cut.encode()[: one.place.offset].decode()
            assert one.place.line == before.count("\n") + 1
            assert one.place.column == len(before) - before.rfind("\n")
        assert len(lost) <= 1 or findings(items)


# ---- with the pure parser, and recognising ---------------------------------------------------------


def test_the_parser_in_python_gives_the_same() -> None:
    script = (
        "import io, sys, yaml\n"
        "if hasattr(yaml, 'CBaseLoader'): del yaml.CBaseLoader\n"
        "from graphmem import formats\n"
        "for path in sys.argv[1:]:\n"
        "    with open(path, 'rb') as file:\n"
        "        for item in formats.importer('yaml').read(file, formats.Source('f')):\n"
        "            print(getattr(item, 'rule', None) or item)\n"
    )
    paths = [FIXTURES / "yaml/team.yaml", FIXTURES / "yaml/garden.yml", FIXTURES / "corrupt/alias-bomb.yaml",
             FIXTURES / "corrupt/damaged-list.yaml", FIXTURES / "corrupt/damaged-document.yaml"]  # fmt: skip

    run = subprocess.run([sys.executable, "-c", script, *map(str, paths)], capture_output=True, check=True)

    expected = [
        item.rule if isinstance(item, Finding) else str(item)
        for path in paths
        for item in read(path.read_bytes())
    ]
    assert run.stdout.decode().splitlines() == expected


@pytest.mark.parametrize(
    "text",
    [
        "type: entity\nname: A\n",
        "# ours\n%YAML 1.2\n---\nname: A\ntype: 'memory'  # kind\ncontent: x\n",
        "- type: relation\n  subject: A\n",
        "--- {type: entity, name: A}\n",
        "subject: A\npredicate: b\nobject: C\n",
        "entities:\n  - name: A\n",
        "relations:\n- [A, b, C]\n",
        "type: manifest\nformat: graphmem\n",
    ],
)
def test_canonical_yaml_is_recognised_under_any_name(text: str) -> None:
    assert formats.importer("yaml").sniff(text.encode(), "anything") is not None


@pytest.mark.parametrize(
    "text",
    [
        "version: '3'\nservices:\n  web:\n    type: entity\n",
        "type: person\nname: A\n",
        "type: entity\nname: A\nobservations: [x]\n",
        "- name: A\n  hosts: all\n",
        "entities:\n  - name: A\n    entityType: person\n",
        "# a note\n\ntext: more text\n",
        "just text\n",
        "",
        "---\n",
        '{"type":"entity","name":"A"}',
        '[["A","b","C"]]',
    ],
)
def test_other_text_is_not_claimed(text: str) -> None:
    assert formats.importer("yaml").sniff(text.encode(), "anything") is None


@pytest.mark.parametrize(
    "text",
    [
        "content: |\n" + "  a line of text\n" * 600 + "tags: [x]\ntype: memory\n",
        "- content: " + "x" * 70_000 + "\n  type: memory\n",
        "---\ndescription: " + "x " * 40_000 + "\nname: A\ntype: entity\n",
    ],
)
def test_a_record_whose_type_is_beyond_what_is_looked_at_is_recognised_by_name(text: str) -> None:
    head = text.encode()[:HEAD_SIZE]
    assert formats.pick(head, "x.yaml")[0].name == "yaml"
    assert formats.importer("yaml").sniff(head, "x.txt") is None
    other = head.replace(b"content:", b"players:").replace(b"description:", b"score:")
    assert formats.importer("yaml").sniff(other, "x.yaml") is None
    assert formats.importer("yaml").sniff(b"content: short\n", "x.yaml") is None
    assert formats.importer("yaml").sniff(b"players: 2\n---\n" + head, "x.yaml") is None


def test_a_yaml_name_lets_lists_of_three_json_and_a_damaged_start_be_recognised() -> None:
    sniff = formats.importer("yaml").sniff

    assert sniff(b"- [A, knows, B]\n", "t.yaml") is not None
    assert sniff(b"- [A, knows, B]\n", "t.md") is None
    assert sniff(b'{"type": "entity", "name": "A"}', "t.yml") is not None
    assert sniff(b"<<<<<<< HEAD\n---\ntype: entity\nname: A\n", "t.yaml.gz") is not None
