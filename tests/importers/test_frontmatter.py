"""Frontmatter as people and editors write it: strict YAML first, then key by key, then as written."""

from __future__ import annotations

import io
from typing import Any

import pytest

from graphmem import formats
from graphmem.findings import Finding
from graphmem.records import EntityRecord, MemoryRecord


def read(text: str | bytes, name: str = "note.md") -> list[formats.Item]:
    data = text.encode() if isinstance(text, str) else text
    return list(formats.importer("markdown").read(io.BytesIO(data), formats.Source(name, name)))


def note(front: str, body: str = "body\n") -> list[formats.Item]:
    return read(f"---\n{front}\n---\n{body}")


def entity(items: list[formats.Item]) -> EntityRecord:
    return next(one for one in items if isinstance(one, EntityRecord))


def bodies(items: list[formats.Item]) -> list[str]:
    return [one.content for one in items if isinstance(one, MemoryRecord)]


def findings(items: list[formats.Item]) -> list[tuple[str, int]]:
    return [(one.rule, one.place.line) for one in items if isinstance(one, Finding)]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1.10", "1.10"),
        ("no", "no"),
        ("2024-01-15", "2024-01-15"),
        ("true", "true"),
        ("null", "null"),
        ("~", "~"),
        ("", ""),
        ("0o17", "0o17"),
        ("12:30:45", "12:30:45"),
        ("1e3", "1e3"),
        ("'quoted: text'", "quoted: text"),
        ('"a\\tb"', "a\tb"),
        ("plain # comment", "plain"),
        ("#coffee", "#coffee"),
        ("|\n  two\n  lines", "two\nlines"),
        (">\n  folded\n  lines", "folded lines"),
        ("[a, 1.0, no]", ["a", "1.0", "no"]),
        ("\n- x\n- 007", ["x", "007"]),
        ("\n  a: 1\n  b: [x]", {"a": "1", "b": ["x"]}),
        ("[[Note]]", "[[Note]]"),
        ("[[Note|shown]]", "[[Note|shown]]"),
        ("\n- [[A]]\n- '[[B]]'", ["[[A]]", "[[B]]"]),
        ("[[[A]], [[B]]]", ["[[A]]", "[[B]]"]),
        ('[["x"]]', [["x"]]),
        ("!tagged x", "x"),
    ],
)
def test_a_value_keeps_its_text(written: str, value: Any) -> None:
    items = note(f"key: {written}")
    assert entity(items).properties == {"key": value}
    assert findings(items) == []


def test_dates_numbers_and_booleans_are_text_in_reserved_keys_too() -> None:
    items = note("title: 2024-01-15\nversion: 1.10\ndraft: true\ntags: [2024, true]")
    assert entity(items).name == "2024-01-15"
    assert entity(items).properties == {"version": "1.10", "draft": "true", "tags": ["2024", "true"]}


def test_a_colon_in_a_title_is_read_as_written_with_a_warning() -> None:
    items = note("kind: x\ntitle: Fix: the bug\ntype: task")
    assert (entity(items).name, entity(items).kind) == ("Fix: the bug", "task")
    assert findings(items) == [("frontmatter-fallback", 3)]


def test_a_key_given_twice_unites_lists_and_keeps_the_first_of_other_values() -> None:
    items = note("tags: a\nstatus: old\nlist: [x]\ntags: [b, a]\nstatus: new\nlist: y")
    assert entity(items).properties == {"tags": ["a", "b"], "status": "old", "list": ["x", "y"]}
    assert findings(items) == [("duplicate-key", 5), ("duplicate-key", 6), ("duplicate-key", 7)]
    message = next(one.message for one in items if isinstance(one, Finding))
    assert message == "'tags' is given on line 2 and again on line 5"


@pytest.mark.parametrize("title", ["", '""', "null", "~", "None", "' '"])
def test_a_title_that_says_nothing_gives_way_to_the_heading_and_then_the_file_name(title: str) -> None:
    assert entity(note(f"title: {title}", "# Heading\n\ntext")).name == "Heading"
    assert entity(note(f"title: {title}", "text")).name == "note"


@pytest.mark.parametrize(
    ("front", "key", "value"),
    [
        ("globs: **/*.ts", "globs", "**/*.ts"),
        ("path: `C:\\Users\\x`", "path", "`C:\\Users\\x`"),
        ("note: *Italic*", "note", "*Italic*"),
        ("see:\n- [[Link]]suffix\n- plain", "see", ["[[Link]]suffix", "plain"]),
        ("made: {{date}}", "made", "{{date}}"),
        ("rule: @internal", "rule", "@internal"),
        ("globs: *.ts, *.tsx", "globs", "*.ts, *.tsx"),
        ('say: "open', "say", '"open'),
        ("a: b: c\n  more", "a", "b: c more"),
        ("list: [*.ts, 'a, b', c]", "list", ["*.ts", "a, b", "c"]),
        ("nest:\n  in: *.ts\n  ok: [1]", "nest", {"in": "*.ts", "ok": ["1"]}),
        ("note: 50% off: today", "note", "50% off: today"),
    ],
)
def test_what_is_not_yaml_is_kept_as_written_with_a_warning(front: str, key: str, value: Any) -> None:
    items = note(f"first: 1.0\n{front}\nlast: [no]")
    assert entity(items).properties == {"first": "1.0", key: value, "last": ["no"]}
    rules = {rule for rule, _ in findings(items)}
    assert rules == {"frontmatter-fallback"}


def test_a_title_in_asterisks_keeps_them() -> None:
    assert entity(note("title: *Italic*")).name == "*Italic*"


def test_a_fallback_names_the_line_column_and_offset_of_the_fault() -> None:
    items = note("ok: é\nglobs: **/*.ts")
    found = next(one for one in items if isinstance(one, Finding))
    assert found.place.line == 3
    assert found.place.column in (8, 9)  # the asterisk; libyaml points behind it
    assert found.place.offset == found.place.column + 10
    assert found.excerpt == "globs: **/*.ts"


def test_tabs_that_indent_a_list_are_read_as_spaces_with_a_warning() -> None:
    items = note("tags:\n\t- test\n\t- test 2\nkey: x")
    assert entity(items).properties == {"tags": ["test", "test 2"], "key": "x"}
    assert findings(items) == [("frontmatter-tab", 3)]


def test_a_second_block_is_united_with_the_first_whose_values_win() -> None:
    items = read("---\na: 1\ntags: [x]\n---\n\n---\na: 2\nb: 3\ntags: [y]\n---\nbody\n")
    assert entity(items).properties == {"a": "1", "tags": ["x", "y"], "b": "3"}
    assert bodies(items) == ["body"]
    assert findings(items) == [("second-frontmatter", 6)]


def test_a_thematic_break_after_the_frontmatter_is_no_second_block() -> None:
    items = read("---\na: 1\n---\n---\nJust text here.\n\n---\nmore\n")
    assert findings(items) == []
    assert "Just text here." in bodies(items)[0]


def test_a_literal_backslash_n_is_no_fence() -> None:
    items = read("---\\nstatus: x\\n---\n")
    assert entity(items).properties == {}
    assert bodies(items) == ["---\\nstatus: x\\n---"]


def test_crlf_and_mixed_line_ends_give_the_same_records() -> None:
    text = "---\ntitle: T\ntags:\n- a\n---\n# H\n\ntwo\nlines\n- [fact] x\n"
    plain = read(text)
    for variant in (text.replace("\n", "\r\n"), text.replace("---\n", "---\r\n")):
        items = read(variant)
        assert bodies(items) == bodies(plain) == ["two\nlines", "x"]
        assert entity(items).name == "T"


def test_frontmatter_that_is_never_closed_is_body_with_a_warning() -> None:
    items = read("---\ntitle: x\n\ntext\n")
    assert entity(items).name == "note"
    assert bodies(items) == ["---\ntitle: x\n\ntext"]
    assert findings(items) == [("frontmatter-unclosed", 1)]


@pytest.mark.parametrize(
    "text", ["---\nJust text.\n---\nmore\n", "---\n- a\n- b\n---\nmore\n", "---\n\ntext\n"]
)
def test_text_between_two_rules_is_body(text: str) -> None:
    items = read(text)
    assert bodies(items) == [text.rstrip("\n")]
    assert findings(items) == []


def test_dots_close_a_block_and_an_empty_block_is_one() -> None:
    assert bodies(read("---\na: 1\n...\nbody\n")) == ["body"]
    assert bodies(read("---\n---\nbody\n")) == ["body"]
    assert bodies(read("---  \n# only a comment\n---\nbody\n")) == ["body"]


@pytest.mark.parametrize(
    ("written", "tags"),
    [
        ('["#coffee", "coffee"]', ["coffee"]),
        ("a, b c, d", ["a", "b c", "d"]),
        ("a b", ["a", "b"]),
        ("#x", ["x"]),
        ("##x", ["x"]),
        ("\n- nested/tag\n- two words", ["nested/tag", "two words"]),
        ("[]", []),
        ("", []),
    ],
)
def test_tags_are_a_list_or_a_text_and_lose_their_sign(written: str, tags: list[str]) -> None:
    items = note(f"tags: {written}")
    assert entity(items).properties.get("tags", []) == tags
    memory = next(one for one in items if isinstance(one, MemoryRecord))
    assert memory.tags == sorted(tags)


def test_aliases_are_a_list_or_a_text_with_commas() -> None:
    assert set(entity(note("aliases: A, B b\ntitle: T")).aliases) == {"A", "B b", "note"}
    assert set(entity(note("alias: [x, 'y, z']\ntitle: T")).aliases) == {"x", "y, z", "note"}


def test_times_of_the_note_are_the_times_of_its_entity() -> None:
    made = entity(note("created: 2026-05-01\nmodified: 2026-05-02T10:00:00+02:00"))
    assert made.created_at == "2026-05-01T00:00:00.000Z"
    assert made.updated_at == "2026-05-02T08:00:00.000Z"
    assert made.properties == {}


def test_a_time_that_cannot_be_understood_stays_a_property() -> None:
    made = entity(note("created: last week\nupdated: 2026-05-02"))
    assert made.created_at is None
    assert made.properties == {"created": "last week"}


def test_only_a_date_gives_the_memories_a_time() -> None:
    items = note("date: 2026-05-08\ncreated: 2026-01-01", "text\n\n- [fact] x\n")
    assert [one.valid_at for one in items if isinstance(one, MemoryRecord)] == [
        "2026-05-08T00:00:00.000Z"
    ] * 2
    assert entity(items).properties == {"date": "2026-05-08"}
    items = note("created: 2026-01-01")
    assert [one.valid_at for one in items if isinstance(one, MemoryRecord)] == [None]


def test_keys_are_recognised_in_any_case() -> None:
    made = entity(note("Title: T\nTYPE: service\nDescription: d\nOther: x"))
    assert (made.name, made.kind, made.description) == ("T", "service", "d")
    assert made.properties == {"Other": "x"}


def test_a_type_that_is_a_list_stays_a_property() -> None:
    made = entity(note("type: [a, b]"))
    assert (made.kind, made.properties) == (None, {"type": ["a", "b"]})


def test_aliases_that_expand_beyond_reason_cost_the_note() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "\n".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)
    )
    items = note(bomb)
    assert [rule for rule, _ in findings(items)] == ["yaml-alias-bomb"]
    assert len(items) == 1


def test_a_list_that_holds_itself_costs_the_note() -> None:
    assert [rule for rule, _ in findings(note("a: &a [*a]"))] == ["yaml-alias-bomb"]


def test_a_few_aliases_are_fine() -> None:
    assert entity(note("a: &x [1, 2]\nb: *x")).properties == {"a": ["1", "2"], "b": ["1", "2"]}


def test_deep_nesting_is_kept_as_written() -> None:
    deep = "[" * 5_000 + "]" * 5_000
    items = note(f"a: {deep}\nb: 1")
    assert entity(items).properties["b"] == "1"
    assert [rule for rule, _ in findings(items)] == ["frontmatter-fallback"]


def test_control_characters_cost_only_their_key_its_yaml() -> None:
    items = note("a: x\x00y\nb: [1]")
    assert entity(items).properties == {"a": "x\x00y", "b": ["1"]}


def test_half_a_surrogate_pair_in_an_escape_is_kept_as_written() -> None:
    assert entity(note('a: "\\ud800"')).properties == {"a": "\\ud800"}


def test_a_note_that_is_only_frontmatter_is_an_entity_without_memories() -> None:
    items = read("---\ntitle: T\n---")
    assert [type(one) for one in items] == [EntityRecord]
