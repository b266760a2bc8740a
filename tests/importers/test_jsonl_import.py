"""Reading JSON Lines and whole-file JSON: the right records, and findings at the right places."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem import formats
from graphmem.errors import UnknownFormat
from graphmem.findings import Finding, Severity
from graphmem.formats import Item, Source
from graphmem.json_head import described, json_head
from graphmem.reading import HEAD_SIZE, SIZE_LIMIT, Found, open_input
from graphmem.records import EntityRecord, ManifestRecord, MemoryRecord, Place, RelationRecord

FIXTURES = Path(__file__).parents[2] / "fixtures"


def read(data: bytes | str, encoding: str | None = None) -> list[Item]:
    stream = io.BytesIO(data.encode() if isinstance(data, str) else data)
    return list(formats.importer("jsonl").read(stream, Source("in.jsonl", encoding=encoding)))


def read_file(path: str, encoding: str | None = None) -> list[Item]:
    """The items of a fixture, through the reading layer."""
    with open_input(Found(FIXTURES / path, None, path, path), encoding) as source:
        items = list(formats.importer("jsonl").read(source.stream, Source(path, encoding=encoding)))
        return [*items, *source.findings]


def findings(items: list[Item]) -> list[Finding]:
    return [one for one in items if isinstance(one, Finding)]


def said(items: list[Item]) -> list[tuple[str, Place]]:
    """Rule and place of every finding."""
    return [(one.rule, one.place) for one in findings(items)]


def shown(items: list[Item]) -> list[str]:
    """The records in short, findings left out."""
    return list(_shown(items))


def _shown(items: list[Item]) -> Iterator[str]:
    for one in items:
        if isinstance(one, EntityRecord):
            yield one.name
        elif isinstance(one, MemoryRecord):
            yield one.content
        elif isinstance(one, RelationRecord):
            yield f"{one.subject.name} {one.predicate} {one.object.name}"
        elif isinstance(one, ManifestRecord):
            yield "manifest"


def entity(name: str, **keys: Any) -> str:
    return json.dumps({"type": "entity", "name": name, **keys})


# ---- ordinary input ------------------------------------------------------------------------------


def test_every_kind_of_line_is_read_with_its_place() -> None:
    items = read_file("jsonl/services.jsonl")

    assert findings(items) == []
    assert len(items) == 15
    assert shown(items)[:2] == ["AuthService", "PostgresDB"]
    assert shown(items)[-2:] == ["billing-worker runs_on worker-2", "worker-2 located_in Falkenstein"]
    database = items[1]
    assert isinstance(database, EntityRecord)
    assert database.properties == {"version": "16.4", "replicas": 2, "managed": True}
    first_line = (FIXTURES / "jsonl/services.jsonl").read_bytes().index(b"\n") + 1
    assert database.place == Place(2, 1, first_line)


def test_a_manifest_is_read_as_such() -> None:
    line = '{"type":"manifest","format":"graphmem","version":1,"counts":{"entity":1}}\n'

    manifest, _ = read(line + entity("A"))

    assert isinstance(manifest, ManifestRecord)
    assert manifest.counts == {"entity": 1}


def test_blank_lines_and_a_missing_last_line_end_are_nothing() -> None:
    assert shown(read("\n  \r\n" + entity("A") + "\n\n\t\n" + entity("B"))) == ["A", "B"]
    assert read("") == []
    assert read("\n\n") == []


def test_an_indented_line_has_the_place_of_its_record() -> None:
    (first, second) = read(entity("A") + "\n  " + entity("B") + "\n")

    assert isinstance(first, EntityRecord)
    assert isinstance(second, EntityRecord)
    assert second.place == Place(2, 3, len(entity("A")) + 3)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_line_ends_make_no_difference_to_the_records(ending: str) -> None:
    items = read(ending.join([entity("A"), '["A","knows","B"]', entity("B", description="one\ntwo"), ""]))

    assert findings(items) == []
    assert shown(items) == ["A", "A knows B", "B"]


def test_mixed_line_ends_and_a_byte_order_mark_are_read() -> None:
    items = read_file("corrupt/bom-crlf.jsonl")

    assert findings(items) == []
    assert shown(items) == ["A", "one\ntwo"]


@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text()
            | st.floats(allow_nan=False, allow_infinity=False),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
            max_leaves=8,
        ),
        max_size=4,
    ),
    st.booleans(),
    st.sampled_from([None, 1]),
)  # fmt: skip
def test_any_json_value_comes_through_as_it_is(
    properties: dict[str, Any], ascii_: bool, indent: int | None
) -> None:
    record = {"type": "entity", "name": "A", "properties": properties}
    text = json.dumps(record, ensure_ascii=ascii_, indent=indent)

    (item,) = read(f"{text}\n".encode("utf-8", "strict"))

    assert isinstance(item, EntityRecord)
    assert repr(item.properties) == repr(properties)


# ---- text ----------------------------------------------------------------------------------------


def test_unicode_line_separators_do_not_cut_a_line() -> None:
    items = read_file("corrupt/line-separators.jsonl")

    assert findings(items) == []
    assert shown(items) == ["a\u2028b\u2029c\u0085d", "A"]


def test_a_line_that_is_not_utf_8_is_refused_with_the_place_of_the_byte() -> None:
    items = read_file("corrupt/gbk.jsonl")

    (problem,) = findings(items)
    data = (FIXTURES / "corrupt/gbk.jsonl").read_bytes()
    assert shown(items) == ["A", "C"]
    assert problem.rule == "bad-encoding"
    assert problem.place == Place(2, 26, data.index("北".encode("gbk")))
    assert "0xB1" in problem.message
    assert "--encoding" in problem.hint


def test_the_same_line_is_read_when_its_encoding_is_named() -> None:
    items = read_file("corrupt/gbk.jsonl", "gbk")

    assert findings(items) == []
    assert shown(items) == ["A", "北京", "C"]


def test_what_the_named_encoding_cannot_decode_costs_its_line_only(tmp_path: Path) -> None:
    lines = [entity("A").encode(), entity("B").encode().replace(b"B", b"B\x81"), entity("C").encode()]
    (tmp_path / "in").write_bytes(b"\n".join(lines))

    items = read_file(str(tmp_path / "in"), "cp1252")

    assert shown(items) == ["A", "C"]
    assert [(one.rule, one.place.line) for one in findings(items)] == [("bad-encoding", 2)]
    assert "cp1252" in findings(items)[0].message


def test_utf_16_with_a_byte_order_mark_is_read() -> None:
    items = read_file("corrupt/utf-16le.jsonl")

    assert findings(items) == []
    assert shown(items) == ["Zoë", "Łódź", "Zoë lives_in Łódź"]


def test_half_of_a_surrogate_pair_costs_its_record_only() -> None:
    items = read_file("corrupt/lone-surrogate.jsonl")

    assert shown(items) == ["whole 😀"]
    assert said(items) == [("lone-surrogate", Place(1, 34, 33))]


@pytest.mark.parametrize(
    ("escapes", "sound"),
    [
        (r"\ud83d\ude00", True),
        (r"\uD83D\uDE00", True),
        (r"\\ud83d", True),
        (r"\ud7ff", True),
        (r"\ud83d", False),
        (r"\uDE00", False),
        (r"\ud83d\ud83d\ude00", False),
        (r"\ud83d\\ude00", False),
        (r"\ud83d \ude00", False),
    ],
)
def test_only_whole_pairs_of_surrogates_are_text(escapes: str, sound: bool) -> None:
    items = read('{"type":"memory","content":"' + escapes + '"}')

    assert [one.rule for one in findings(items)] == ([] if sound else ["lone-surrogate"])
    assert len(shown(items)) == sound


def test_nul_is_kept_escaped_or_raw_and_raw_is_told() -> None:
    items = read_file("corrupt/control-characters.jsonl")

    assert shown(items) == ["nul \0 escaped \0"]
    assert said(items) == [("raw-control-character", Place(1, 33, 32))]
    assert findings(items)[0].severity is Severity.WARNING


def test_a_raw_tab_in_a_text_is_kept() -> None:
    items = read('{"type":"memory","content":"a\tb"}')

    assert shown(items) == ["a\tb"]
    assert [one.rule for one in findings(items)] == ["raw-control-character"]


def test_a_line_of_five_megabytes_is_read() -> None:
    items = read(
        f"{entity('A')}\n" + json.dumps({"type": "memory", "content": "ä" * 2_500_000}) + f"\n{entity('B')}"
    )

    assert findings(items) == []
    assert [len(text) for text in shown(items)] == [1, 2_500_000, 1]


def test_a_damaged_line_of_five_megabytes_has_a_short_excerpt() -> None:
    items = read(f"{entity('A')}\n" + '{"type":"memory","content":' + "x" * 5_000_000 + f"\n{entity('B')}")

    (problem,) = findings(items)
    assert shown(items) == ["A", "B"]
    assert (problem.rule, problem.place) == ("bad-json", Place(2, 28, len(entity("A")) + 28))
    assert 0 < len(problem.excerpt) <= 200


def test_a_line_beyond_the_limit_is_refused_and_the_next_one_read() -> None:
    huge = entity("A") + "\n" + entity("x" * SIZE_LIMIT) + "\n" + entity("B") + "\n"

    items = read(huge)

    assert shown(items) == ["A", "B"]
    assert said(items) == [("record-too-large", Place(2, 1, len(entity("A")) + 1))]
    last = items[-1]
    assert isinstance(last, EntityRecord)
    assert last.place == Place(3, 1, huge.rindex("{"))


# ---- what JSON does not allow --------------------------------------------------------------------


def test_an_object_cut_in_half_costs_itself_only() -> None:
    items = read_file("corrupt/cut-in-half.jsonl")

    data = (FIXTURES / "corrupt/cut-in-half.jsonl").read_bytes()
    (problem,) = findings(items)
    assert shown(items) == ["A", "C", "A knows C"]
    assert problem.rule == "bad-json"
    assert problem.place == Place(2, 25, data.index(b'"B\n'))
    assert problem.message == "a string that is not closed"
    assert '"name":"B' in problem.excerpt


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ('{"type":"entity"', 17),
        ('{"type":"entity",', 18),
        ('{"type":"entity","name":', 25),
        ('{"type":"entity","name":}', 25),
        ('{"type":"entity","na', 18),
        ("not json", 1),
        ("}", 1),
        ('["a","b"', 9),
        ("{'type':'entity'}", 2),
        ('{"type":"entity","name":"é"] ', 28),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_damaged_line_is_reported_at_its_fault_wherever_it_stands(
    line: str, column: int, first: bool
) -> None:
    good = entity("A") + "\n"
    text = f"{line}\n{good}" if first else f"{good}{line}\n{good}"

    items = read(text)

    (problem,) = findings(items)
    start = 0 if first else len(good)
    assert shown(items) == ["A"] if first else ["A", "A"]
    assert problem.rule == "bad-json"
    assert problem.place == Place(1 if first else 2, column, start + len(line[: column - 1].encode()))


def test_each_malformed_line_is_one_error() -> None:
    items = read_file("corrupt/ten-lines-three-bad.jsonl")

    assert shown(items) == ["A", "B", "C", "D", "E", "F", "G"]
    assert [(one.rule, one.place.line) for one in findings(items)] == [
        ("bad-json", 2),
        ("bad-json", 4),
        ("bad-json", 7),
    ]


def test_two_objects_on_one_line_are_both_read() -> None:
    items = read_file("corrupt/two-on-a-line.jsonl")

    (problem,) = findings(items)
    assert shown(items) == ["A", "B", "C"]
    assert (problem.rule, problem.severity) == ("two-records-on-a-line", Severity.WARNING)
    assert problem.place == Place(1, 32, 31)
    second = items[2]
    assert isinstance(second, EntityRecord)
    assert second.place == problem.place


def test_what_follows_a_whole_object_on_its_line_is_an_error_of_its_own() -> None:
    items = read(entity("A") + "}\n" + entity("B") + ",\n" + entity("C") + "\n")

    assert shown(items) == ["A", "B", "C"]
    assert [
        (one.rule, one.place.line, one.place.column) for one in findings(items) if one.rule == "bad-json"
    ] == [
        ("bad-json", 1, len(entity("A")) + 1),
        ("bad-json", 2, len(entity("B")) + 1),
    ]


def test_numbers_that_json_or_sqlite_do_not_have_are_kept_as_text() -> None:
    items = read_file("corrupt/odd-numbers.jsonl")

    record = items[-1]
    assert isinstance(record, EntityRecord)
    assert record.properties == {
        "nan": "NaN",
        "inf": "-Infinity",
        "int": "123456789012345678901234567890",
        "exp": "1e999",
    }
    assert [one.rule for one in findings(items)] == ["not-finite", "not-finite", "huge-number", "huge-number"]


def test_an_integer_of_ten_thousand_digits_is_kept_as_text() -> None:
    digits = "9" * 10_000

    problem, record = read('{"type":"entity","name":"A","properties":{"n":' + digits + "}}")

    assert isinstance(problem, Finding)
    assert isinstance(record, EntityRecord)
    assert record.properties == {"n": digits}
    assert len(problem.message) < 200


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 10**18, -(10**17), 0])
def test_integers_of_64_bits_are_numbers(number: int) -> None:
    (record,) = read('{"type":"entity","name":"A","properties":{"n":' + str(number) + "}}")

    assert isinstance(record, EntityRecord)
    assert record.properties == {"n": number}


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**19])
def test_integers_beyond_64_bits_are_text(number: int) -> None:
    record = read('{"type":"entity","name":"A","properties":{"n":' + str(number) + "}}")[-1]

    assert isinstance(record, EntityRecord)
    assert record.properties == {"n": str(number)}


def test_of_a_key_given_twice_lists_are_united_and_else_the_last_value_counts() -> None:
    items = read_file("corrupt/duplicate-keys.jsonl")

    record = items[-1]
    assert isinstance(record, EntityRecord)
    assert (record.name, record.aliases) == ("B", ["x", "y"])
    assert [(one.rule, one.message) for one in findings(items)] == [
        ("duplicate-key", "the key 'aliases' is given more than once"),
        ("duplicate-key", "the key 'name' is given more than once"),
    ]


def test_a_key_given_twice_deep_inside_is_told_too() -> None:
    items = read('{"type":"entity","name":"A","properties":{"p":[{"k":1,"k":2}]}}')

    assert [one.rule for one in findings(items)] == ["duplicate-key"]


@pytest.mark.parametrize("depth", [97, 98, 99, 5_000, 100_000])
def test_nesting_beyond_a_hundred_levels_costs_its_record_only(depth: int) -> None:
    deep = '{"type":"entity","name":"B","properties":{"deep":' + "[" * depth + "]" * depth + "}}"

    items = read(f"{entity('A')}\n{deep}\n{entity('C')}\n")

    sound = depth <= 98
    assert shown(items) == (["A", "B", "C"] if sound else ["A", "C"])
    assert [(one.rule, one.place.line) for one in findings(items)] == ([] if sound else [("too-deep", 2)])


def test_brackets_that_never_close_are_no_crash() -> None:
    for opening in ("[", '{"a":', '[{"a":'):
        items = read(f"{entity('A')}\n{opening * 50_000}\n{entity('B')}\n{opening * 50_000}")

        assert shown(items) == ["A", "B"]
        assert {one.rule for one in findings(items)} <= {"too-deep", "bad-json", "truncated-input"}
        assert {one.place.line for one in findings(items)} == {2, 4}


def test_nothing_between_conflict_markers_is_read() -> None:
    items = read_file("corrupt/conflict.jsonl")

    assert shown(items) == ["A", "C"]
    assert said(items) == [("conflict-markers", Place(2, 1, len(entity("A")) + 1))]
    assert findings(items)[0].severity is Severity.ERROR


def test_a_conflict_that_never_ends_takes_the_rest_with_it() -> None:
    items = read(
        f"{entity('A')}\n<<<<<<< ours\n{entity('B')}\n||||||| base\n{entity('C')}\n=======\n{entity('D')}\n"
    )

    assert shown(items) == ["A"]
    assert [one.rule for one in findings(items)] == ["conflict-markers"]


def test_a_value_that_is_no_record_costs_itself_only() -> None:
    items = read(f'{entity("A")}\n3\n"x"\nnull\n{{}}\n[]\n["a","b"]\n{entity("B")}\n')

    assert shown(items) == ["A", "B"]
    assert [one.place.line for one in findings(items)] == [2, 3, 4, 5, 6, 7]


def test_keys_of_another_tool_are_named() -> None:
    items = read_file("corrupt/unknown-shape.json")

    (problem,) = findings(items)
    assert problem.rule == "unknown-shape"
    assert "'players', 'score'" in problem.message


# ---- a whole file --------------------------------------------------------------------------------


def test_a_pretty_printed_array_is_read_like_its_lines() -> None:
    items = read_file("jsonl/array.json")

    lines = "\n".join(json.dumps(one) for one in json.loads((FIXTURES / "jsonl/array.json").read_bytes()))
    assert findings(items) == []
    assert shown(items) == shown(read(lines))
    lexer = items[1]
    assert isinstance(lexer, EntityRecord)
    assert lexer.aliases == ["scanner"]
    assert lexer.place == Place(
        7,
        3,
        (FIXTURES / "jsonl/array.json").read_bytes().index(b'{\n    "type": "entity",\n    "name": "Lexer"'),
    )


@pytest.mark.parametrize("indent", [None, 0, 1, 4, "\t"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_an_array_is_read_however_it_is_printed(indent: int | str | None, ending: str) -> None:
    records = [json.loads(entity(name, properties={"x": [{"y": ["]"]}]})) for name in "ABC"] + [
        ["A", "knows", "B"]
    ]

    items = read(json.dumps(records, indent=indent).replace("\n", ending) + ending)

    assert findings(items) == []
    assert shown(items) == ["A", "B", "C", "A knows B"]


def test_objects_printed_over_several_lines_one_after_the_other_are_read() -> None:
    items = read(
        "\n".join(json.dumps(json.loads(entity(name)), indent=2) for name in "AB") + "\n" + entity("C")
    )

    assert findings(items) == []
    assert shown(items) == ["A", "B", "C"]


def test_an_object_with_a_list_per_kind_is_read() -> None:
    items = read_file("jsonl/lists.json")

    assert findings(items) == []
    assert shown(items)[:2] == ["Kitchen", "Boiler"]
    assert shown(items)[3:] == ["Boiler stands_in Kitchen", "Boiler heats House"]
    assert isinstance(items[2], MemoryRecord)


def test_lists_per_kind_on_one_line_are_read_and_what_stands_beside_them_is_told() -> None:
    items = read('{"entities":["A",{"name":"B"}],"version":{"a":[1]},"relations":[["A","knows","B"]]}\n')

    assert shown(items) == ["A", "B", "A knows B"]
    assert said(items) == [("unknown-shape", Place(1, 32, 31))]


def test_a_damaged_element_of_an_array_costs_itself_only() -> None:
    items = read_file("corrupt/damaged-array.json")

    assert shown(items) == ["A", "C"]
    assert [(one.rule, one.place.line, one.place.column) for one in findings(items)] == [("bad-json", 3, 34)]


def test_bad_bytes_in_an_array_cost_their_element_only() -> None:
    items = read(
        b'[{"type":"entity","name":"A"},{"type":"entity","name":"\xc4\xe3"},{"type":"entity","name":"C"}]'
    )

    assert shown(items) == ["A", "C"]
    assert said(items) == [("bad-encoding", Place(1, 56, 55))]


def test_the_rest_of_an_array_on_one_line_is_lost_with_a_damaged_element_and_that_is_said() -> None:
    items = read('[{"type":"entity","name":"A"},{"type":},{"type":"entity","name":"C"}]\n' + entity("D"))

    (problem,) = findings(items)
    assert shown(items) == ["A", "D"]
    assert problem.place == Place(1, 39, 38)


def test_an_array_that_is_cut_keeps_its_whole_elements() -> None:
    items = read_file("corrupt/truncated-array.json")

    assert shown(items) == ["A"]
    assert [(one.rule, one.place.line, one.place.column) for one in findings(items)] == [
        ("truncated-input", 3, 22)
    ]


def test_an_array_without_its_end_is_told() -> None:
    items = read('[\n{"type":"entity","name":"A"},\n')

    assert shown(items) == ["A"]
    assert [one.rule for one in findings(items)] == ["truncated-input"]


def test_a_conflict_in_an_array_costs_what_stands_between_its_markers() -> None:
    lines = ["[", f"  {entity('A')},", "<<<<<<< HEAD", f"  {entity('B')},", "=======", f"  {entity('C')},",
             ">>>>>>> other", f"  {entity('D')}", "]"]  # fmt: skip

    items = read("\n".join(lines))

    assert shown(items) == ["A", "D"]
    assert [(one.rule, one.place.line) for one in findings(items)] == [("conflict-markers", 3)]


def test_an_array_is_read_in_bounded_memory() -> None:
    class Endless(io.RawIOBase):
        """An array of records that counts how much of it was asked for."""

        def __init__(self) -> None:
            self.given = 0
            self.rest = b"[\n"

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            while len(self.rest) < len(buffer):
                self.rest += f"  {entity('A')},\n".encode()
            size = len(buffer)
            buffer[:size] = self.rest[:size]
            self.rest = self.rest[size:]
            self.given += size
            return size

    raw = Endless()
    items = formats.importer("jsonl").read(io.BufferedReader(raw, 4096), Source("f"))

    for _ in range(50_000):
        assert isinstance(next(items), EntityRecord)

    assert raw.given < 50_000 * len(f"  {entity('A')},\n") + 2_000_000


def test_compressed_input_that_is_cut_gives_its_whole_lines() -> None:
    items = read_file("corrupt/truncated.jsonl.gz")

    assert len(shown(items)) > 1000
    assert {one.rule for one in findings(items)} == {"bad-json", "truncated-input"}


# ---- recognising ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        entity("A"),
        '{"type":"manifest","format":"graphmem","version":1}\n',
        '["A","knows","B"]',
        '{"subject":"A","predicate":"knows","object":"B"}',
        '[\n  {\n    "type": "memory",\n    "content": "x"',
        '{"entities":[{"name":"A"}]}',
        '{"relations": [["A","knows","B"]]}',
        '  \n\n{"type":"relation","subject":{"name":"A","kind":"x"}',
        '{"type":"entity","name":"cut in ha',
    ],
)
def test_canonical_json_is_recognised_under_any_name(text: str) -> None:
    assert formats.importer("jsonl").sniff(text.encode(), "anything") is not None


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"entity","name":"A","entityType":"person","observations":["x"]}',
        '{"type":"relation","from":"A","to":"B","relationType":"knows"}',
        '{"entities":[{"name":"A","entityType":"person"}],"relations":[]}',
        '{"players":[{"hp":3}],"score":12}',
        '[{"id":1},{"id":2}]',
        "[1,2,3]",
        '{"memories":[{"content":"x","content_hash":"y"}]}',
        "# a note\n",
        "type: entity\nname: A\n",
        "",
        "   \n",
        "{",
    ],
)
def test_the_json_of_others_is_not_claimed(text: str) -> None:
    assert formats.importer("jsonl").sniff(text.encode(), "memory.jsonl") is None


def test_a_damaged_first_line_does_not_hide_a_file_of_that_name() -> None:
    head = f"garbage\n{entity('A')}\n".encode()

    assert formats.importer("jsonl").sniff(head, "x.jsonl") is not None
    assert formats.importer("jsonl").sniff(head, "x.jsonl.gz") is not None
    assert formats.importer("jsonl").sniff(head, "note.md") is None


def test_what_is_not_recognised_is_described_by_its_keys() -> None:
    assert described(b'{"players":[{"hp":3}],"type":"save"}') == (
        "a JSON object of type 'save' with the keys 'players', 'type'"
    )
    assert described(b"# note") is None


LONG: Final = "x y" * 70_000


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({"content": LONG, "type": "memory"}, "anything"),
        ({"about": ["A"], "content": LONG, "tags": ["x"], "type": "memory"}, "x.json"),
        ({"description": LONG, "name": "A", "type": "entity"}, "-"),
        ({"aliases": [LONG], "name": "A", "type": "entity"}, "-"),
        ({"fact": LONG, "object": "A", "predicate": "knows", "subject": "B"}, "-"),
        ([{"content": LONG, "type": "memory"}], "x.json"),
        ({"author": "me", "content": LONG, "type": "memory"}, "x.jsonl"),
        ({"author": "me", "content": LONG, "type": "memory"}, "x.NDJSON.gz"),
        ({LONG: 1, "content": "x", "type": "memory"}, "x.jsonl"),
    ],
)
def test_a_first_record_whose_type_is_beyond_what_is_looked_at_is_recognised(value: Any, name: str) -> None:
    head = json.dumps(value).encode()[:HEAD_SIZE]

    assert formats.pick(head, name)[0].name == "jsonl"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({"content_hash": "y", "content": LONG}, "x.jsonl"),
        ({"type": "FeatureCollection", "content": LONG}, "x.jsonl"),
        ({"players": LONG}, "x.json"),
        ({"players": LONG}, "anything"),
        ([{"id": 1}] * 10_000, "x.jsonl"),
        ([{"id": 1}, LONG], "x.jsonl"),
    ],
)
def test_a_long_first_line_that_shows_the_json_of_others_is_not_claimed(value: Any, name: str) -> None:
    head = json.dumps(value).encode()[:HEAD_SIZE]

    assert formats.importer("jsonl").sniff(head, name) is None


@pytest.mark.parametrize(
    "garbage", ["garbage " * 25_000, "{garbage " * 25_000, "{garbage, " * 20_000 + ",", "[" * 200_000]
)
def test_a_long_line_of_garbage_at_the_start_costs_no_other_line(garbage: str) -> None:
    text = f"{garbage}\n{entity('A')}\n".encode()

    importer, _ = formats.pick(text[:HEAD_SIZE], "x.jsonl")
    items = list(importer.read(io.BytesIO(text), Source("x.jsonl")))

    assert shown(items) == ["A"]
    assert [one.place.line for one in findings(items)] == [1]
    assert {one.rule for one in findings(items)} <= {"bad-json", "too-deep"}
    assert formats.importer("jsonl").sniff(text[:HEAD_SIZE], "x.txt") is None


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":[' * 50_000, '[{"a":' * 50_000, "[ \n" * 50_000])
@pytest.mark.parametrize("name", ["x.json", "x.jsonl", "x.yaml", "x.md", "-"])
def test_absurd_nesting_is_a_finding_of_its_file_whatever_its_name(text: str, name: str) -> None:
    data = text.encode()
    try:
        importer, _ = formats.pick(data[:HEAD_SIZE], name)
    except UnknownFormat as error:
        rules, told = ["unknown-format"], error.message
    else:
        items = list(importer.read(io.BytesIO(data), Source(name, name)))
        rules, told = [one.rule for one in findings(items)], ""

    assert "failed" not in told
    # In a note brackets are text.
    assert rules in (["unknown-format"], ["too-deep"], *([[]] if name == "x.md" else []))


def test_the_first_element_of_lists_in_lists_is_shown_as_far_as_records_stand() -> None:
    triple = json_head('[[["A","knows","B"]]]')
    assert triple is not None
    assert (triple.strings, triple.listed) == (3, True)
    record = json_head(b'\xef\xbb\xbf [ [{"type":"entity"')
    assert record is not None
    assert (record.type, record.listed, record.cut) == ("entity", True, True)
    assert described(b"[" * 5000 + b'{"type":"entity"}') == "JSON without keys"
