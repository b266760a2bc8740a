"""The markdown grammar: what becomes a record, what does not, and where each record stands."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem import formats
from graphmem.findings import Finding
from graphmem.records import EntityRecord, MemoryRecord, Place, Ref, RelationRecord

FIXTURES = Path(__file__).parents[2] / "fixtures"


def read(text: str | bytes, name: str = "note.md", siblings: tuple[str, ...] = ()) -> list[formats.Item]:
    data = text.encode() if isinstance(text, str) else text
    source = formats.Source(name or "<stdin>", name, siblings=frozenset(siblings))
    return list(formats.importer("markdown").read(io.BytesIO(data), source))


def entity(items: list[formats.Item]) -> EntityRecord:
    return next(one for one in items if isinstance(one, EntityRecord))


def memories(items: list[formats.Item]) -> list[MemoryRecord]:
    return [one for one in items if isinstance(one, MemoryRecord)]


def facts(text: str) -> list[tuple[str | None, str]]:
    return [(one.memory_type, one.content) for one in memories(read(text)) if one.memory_type]


def links(items: list[formats.Item]) -> list[tuple[str, str]]:
    return [(one.predicate, one.object.name) for one in items if isinstance(one, RelationRecord)]


def targets(text: str, name: str = "note.md", siblings: tuple[str, ...] = ()) -> list[str]:
    return [target for _, target in links(read(text, name, siblings))]


def rules(items: list[formats.Item]) -> list[str]:
    return [one.rule for one in items if isinstance(one, Finding)]


# ---- the note as an entity --------------------------------------------------------------------------


def test_the_name_is_the_title_else_the_first_heading_else_the_file_name() -> None:
    assert entity(read("---\ntitle: T\n---\n# H\n", "a/f.md")).name == "T"
    assert entity(read("text\n\n## H ##\n", "a/f.md")).name == "H"
    assert entity(read("text\n", "a/my file.md")).name == "my file"
    assert entity(read("#\n\ntext\n", "f.mdc")).name == "f"


def test_file_name_and_path_are_aliases_where_they_differ_from_the_name() -> None:
    assert entity(read("# Auth\n", "services/auth-service.md")).aliases == [
        "auth-service",
        "services/auth-service",
    ]
    assert entity(read("text\n", "auth.md")).aliases == []
    assert entity(read("# Auth\n", "auth.md")).aliases == ["auth"]


def test_of_several_notes_of_one_file_name_one_answers_to_the_bare_name() -> None:
    names = ("README.md", "a/README.md", "b/c/README.md")
    for name, aliases in zip(names, (["README"], ["a/README"], ["b/c/README"]), strict=True):
        assert entity(read("# About\n", name, names)).aliases == aliases


def test_description_type_and_permalink_are_read() -> None:
    made = entity(read("---\ndesc: short\ntype: service\npermalink: specs/auth\n---\n", "auth.md"))
    assert (made.description, made.kind) == ("short", "service")
    assert made.aliases == ["specs/auth"]
    assert made.properties == {"permalink": "specs/auth"}


def test_a_note_from_standard_input_needs_a_name() -> None:
    assert rules(read("just text\n", "")) == ["bad-name"]
    items = read("# Named\n\ntext\n", "")
    assert entity(items).name == "Named"
    assert memories(items)[0].source is None


def test_an_empty_file_is_an_entity() -> None:
    assert [type(one) for one in read("", "empty.md")] == [EntityRecord]


# ---- sections ---------------------------------------------------------------------------------------

SECTIONS = """intro

# Note

first

## Deploy

how
to

### Rollback

back

## Deploy ##

again
"""


def test_each_section_is_one_memory_with_its_heading_path() -> None:
    items = read(SECTIONS, "ops/note.md")
    assert [(one.title, one.content) for one in memories(items)] == [
        (None, "intro"),
        (None, "first"),
        ("Deploy", "how\nto"),
        ("Deploy > Rollback", "back"),
        ("Deploy", "again"),
    ]
    assert [one.position for one in memories(items)] == [0, 1, 2, 3, 4]
    assert {one.source for one in memories(items)} == {"ops/note.md"}
    assert {one.about[0] for one in memories(items)} == {Ref("Note")}


def test_a_first_heading_that_is_not_the_name_stays_in_the_path() -> None:
    items = read("---\ntitle: T\n---\n# Overview\n\ntext\n\n## Part\n\nmore\n")
    assert [one.title for one in memories(items)] == ["Overview", "Overview > Part"]


def test_underlined_headings_are_headings() -> None:
    items = read("Name\n====\n\ntext\n\nPart\n----\n\nmore\n\na\nb\n---\n")
    assert entity(items).name == "Name"
    assert [(one.title, one.content) for one in memories(items)] == [
        (None, "text"),
        ("Part", "more\n\na\nb\n---"),
    ]


def test_text_is_kept_as_written() -> None:
    text = "a  \n\n\n\tb [[x]] **c** <br> {0} %s\n\n| t |\n|---|\n> q\n\n1. one\n   two"
    assert memories(read(text))[0].content == text


def test_a_section_of_comments_alone_is_no_memory() -> None:
    items = read("# A\n\n%% note\nto self %%\n\n## B\n\n<!-- x -->\n\n## C\n\ntext <!-- y -->\n")
    assert [one.content for one in memories(items)] == ["text <!-- y -->"]


@pytest.mark.parametrize(
    "line", ["#tag not a heading", "####### seven", "    # code", "\\# escaped", "> # quoted"]
)
def test_what_is_no_heading(line: str) -> None:
    items = read(f"text\n\n{line}\n")
    assert entity(items).name == "note"
    assert len(memories(items)) == 1


# ---- list facts -------------------------------------------------------------------------------------


def test_a_list_fact_has_category_text_tags_and_context() -> None:
    made = memories(read("- [decision] Use JWT for #auth tokens #sec#ops (since May) ^d1\n"))[0]
    assert (made.memory_type, made.content) == ("decision", "Use JWT for #auth tokens")
    assert made.tags == ["auth", "ops", "sec"]
    assert made.properties == {"context": "since May", "block_id": "d1"}


@pytest.mark.parametrize("bullet", ["-", "*", "+"])
def test_every_bullet_can_carry_a_fact(bullet: str) -> None:
    assert facts(f"{bullet} [tech note] x\n") == [("tech note", "x")]


def test_lines_below_a_fact_belong_to_it_and_nested_facts_stand_alone() -> None:
    text = "- [plan] Move\n  to Postgres\n  - because of ops\n  - [risk] Locks\n    held long\n\nrest\n"
    assert facts(text) == [("plan", "Move\nto Postgres\n- because of ops"), ("risk", "Locks\nheld long")]
    assert facts("- [plan] wrapped\nby an editor\n- [b2] x\n") == [
        ("plan", "wrapped\nby an editor"),
        ("b2", "x"),
    ]


def test_facts_leave_the_text_of_their_section() -> None:
    items = read("before\n- [fact] x\n- plain\n\n- [fact] y\nafter\n\nend\n")
    assert [(one.memory_type, one.content, one.position) for one in memories(items)] == [
        (None, "before\n\n- plain\n\nend", 0),
        ("fact", "x", 1),
        ("fact", "y\nafter", 2),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "- [ ] task", "- [x] done", "- [X] done", "- [-] dropped", "- [/] half", "- [>] moved", "- [?] open",
        "- [] empty", "- [12:30] stand-up", "- [24:33.098 - 24:41.260] spoken", "- [1] footnote",
        "- [2024-01-15] a date", "- [link](target.md)", "- [ref][target]", "- [ref]: target", "- [^1] note",
        "- [!note] callout", "- [[Note]] x y", "> - [fact] quoted", "> [!note]\n> - [fact] quoted",
        "[fact] no bullet",
        "1. [fact] numbered", "- text [fact] later", "-[fact] no space", "- [fact]no space", "- [fact]",
        "`- [fact] code`", "```\n- [fact] fenced\n```", "    - [fact] indented code", "- [a(b)] parentheses",
        "<!--\n- [fact] hidden\n-->", "%%\n- [fact] hidden\n%%", "- [due:: today] field",
        f"- [{'x' * 65}] long",
    ],
)  # fmt: skip
def test_what_is_no_fact(line: str) -> None:
    assert facts(f"intro\n\n{line}\n") == []


# ---- relation lines ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("- depends_on [[X]]", ("depends_on", "X")),
        ("* relates-to [[X|shown]]", ("relates-to", "X")),
        ('- "is part of" [[X]]', ("is part of", "X")),
        ("- “is part of” [[X]]", ("is part of", "X")),
        ("- is part of [[X]]", ("is part of", "X")),
        ("- owner: [[X]]", ("owner", "X")),
        ("- **Owner**: [[X]]", ("Owner", "X")),
        ("- **Owner:** [[X]]", ("Owner", "X")),
        ("- 依存する [[X]]", ("依存する", "X")),
        ("- [[X]]", ("links_to", "X")),
        ("- uses [[X#Heading]] (context) #tag ^id", ("uses", "X")),
    ],
)
def test_a_relation_line_has_a_predicate_and_is_no_memory(line: str, expected: tuple[str, str]) -> None:
    items = read(f"{line}\n")
    assert links(items) == [expected]
    assert memories(items) == []


def test_a_relation_line_keeps_context_tags_and_the_sentence_below() -> None:
    items = read("- uses [[X]] (hard) #core\n  Since the outage.\n  It stayed.\n")
    made = next(one for one in items if isinstance(one, RelationRecord))
    assert made.properties == {"context": "hard", "tags": ["core"]}
    assert made.fact == "Since the outage.\nIt stayed."
    assert made.subject == Ref("note")


def test_several_targets_are_several_relations() -> None:
    assert links(read("- uses [[A]], [[B|b]],[[C]]\n")) == [("uses", "A"), ("uses", "B"), ("uses", "C")]


@pytest.mark.parametrize(
    "line",
    [
        "- We have discussed for a long time whether to keep [[X]]",
        "- " + "long prose " * 23 + "[[X]]",
        "- Talked to [[X]]",
        "- uses [[X]] for caching",
        "- [[X]] - what it is",
        "- [ ] ask [[X]]",
        "- 12:30 [[X]]",
        "- ![[X]]",
        "- yes, [[X]]",
        "> - uses [[X]]",
        "uses [[X]]",
        "1. uses [[X]]",
    ],
)
def test_prose_before_or_after_a_link_is_text_with_a_link(line: str) -> None:
    items = read(f"{line}\n")
    assert links(items) == [("links_to", "X")]
    assert memories(items)[0].content == line.rstrip()
    assert memories(items)[0].mentions == [Ref("X")]


# ---- links ------------------------------------------------------------------------------------------


def test_a_link_counts_once_per_target_and_note() -> None:
    items = read("[[X]] and [[X#a]] and [[X|b]]\n\n## H [[Y]]\n\n[[X]]\n- [[X]]\n- uses [[X]]\n")
    assert links(items) == [("links_to", "X"), ("uses", "X"), ("links_to", "Y")]
    assert [one.mentions for one in memories(items)] == [[Ref("X")], [Ref("X")]]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("[[dreaming|display text]]", ["dreaming"]),
        ("| a | [[b\\|c]] |", ["b"]),
        ("[[N#Heading#Sub]]", ["N"]),
        ("[[N#^block]]", ["N"]),
        ("[[N.md]] [[M.MD#x]]", ["N", "M"]),
        ("![[N#part]]", ["N"]),
        ("[[C#]] [[F#]]", ["C#", "F#"]),
        ("[[Node.js]] [[v1.2]]", ["Node.js", "v1.2"]),
        ("[[ N ]]", ["N"]),
        ("[t](N.md)", ["N"]),
        ("[t](My%20Note.md#part)", ["My Note"]),
        ("[t](<My Note.md>)", ["My Note"]),
        ('[t](N.md "title")', ["N"]),
        ("[t](N%20(1).md)", ["N (1)"]),
        ("![t](N.md)", ["N"]),
        ("> [[N]]", ["N"]),
        ("**[[N]]**", ["N"]),
        ("[[日本語]]", ["日本語"]),
        ("a#b [[N]] #tag", ["N"]),
        ("costs $5, [[N]] costs $6", ["N"]),
        ("50% off [[N]]", ["N"]),
        ("50%% off [[N]]", ["N"]),
        ("`open [[N]]", ["N"]),
        ("\\`a [[N]] b`", ["N"]),
    ],
)
def test_what_is_a_link(written: str, expected: list[str]) -> None:
    assert targets(f"text {written} text\n") == expected


@pytest.mark.parametrize(
    "written",
    [
        "`[[X]]`", "``a ` [[X]]``", "`over\n[[X]] lines`", "```\n[[X]]\n```", "~~~\n[[X]]\n~~~",
        "````\n```\n[[X]]\n````", "```toml\n[[outputs.influxdb]]", "~~~~\n~~~\n[[X]]", "    [[X]]", "\t[[X]]",
        "- a\n\n      [[X]]", "> ```\n> [[X]]\n> ```", "- ```\n  [[X]]\n  ```", "<!-- [[X]] -->",
        "<!--\n[[X]]\n\n[[X]]\n-->", "<!-- open\n\n[[X]]", "%% [[X]] %%", "%%\n[[X]]\n%%", "$[[X]]$",
        "$$\n[[X]]\n$$", "[[https://x.y/z]]", "[[mailto:a@b]]", "![[pic.png]]", "![[a.pdf#page=2]]",
        "[[b.canvas]]",
        "![t](pic.png)", "[t](https://x.y/z.md)", "[t](file.txt)", "[[]]", "[[#Heading]]", "[[#^id]]",
        "[[note]]",
        "\\[[X]]", "[[a\nb]]", "[X]", "[[X]", "[t](mailto:x.md)", "[t](//host/x.md)",
    ],
)  # fmt: skip
def test_what_is_no_link(written: str) -> None:
    assert targets(f"intro\n\n{written}\n") == []


def test_text_goes_on_after_code() -> None:
    assert targets("```\n[[A]]\n```\n[[B]] `[[C]]` [[D]]\n\n> ```\n> [[E]]\n[[F]]\n") == ["B", "D", "F"]


def test_paths_are_relative_to_the_note_and_lead_to_the_path_alias() -> None:
    assert targets("[[./b]] [[../x/c]] [[/top]] [[x/d.md]]\n", "a/note.md") == ["a/b", "x/c", "top", "x/d"]
    assert targets("[t](b.md) [t](../x/c.md) [t](/top.md) [t](../../out.md)\n", "a/note.md") == [
        "a/b",
        "x/c",
        "top",
        "out",
    ]


def test_among_notes_of_one_file_name_root_then_own_folder_then_shortest_path_is_meant() -> None:
    notes = (
        "todo.md",
        "a/todo.md",
        "another-todo.md",
        "a/note.md",
        "b/Setup.md",
        "b/c/Setup.md",
        "c/Setup.md",
    )
    assert targets("[[todo]] [[Setup]] [[c/setup]]\n", "a/note.md", notes) == ["todo", "b/Setup", "c/Setup"]
    assert targets("[[Setup]]\n", "b/c/x.md", notes) == ["b/c/Setup"]
    assert targets("[t](todo.md) [t](b/Setup.md) [t](note.md)\n", "a/x.md", notes) == [
        "a/todo",
        "b/Setup",
        "a/note",
    ]


def test_a_link_in_another_unicode_form_leads_to_the_same_name() -> None:
    composed, decomposed = "Caf\u00e9", "Cafe\u0301"
    assert entity(read("text\n", f"{decomposed}.md")).name == composed
    assert targets(f"[[{decomposed}]]\n") == [composed]
    assert targets(f"[[x/{decomposed}]]\n", "n.md", (f"a/x/{composed}.md", "n.md")) == [f"a/x/{composed}"]


def test_a_property_or_field_that_is_a_link_is_a_relation_of_that_name() -> None:
    items = read(
        '---\nowner: [[Ann]]\nuses: ["[[A]]", "[[B|b]]", plain]\nsee: text [[C]]\n---\nLead:: [[Bo]]\n'
    )
    assert sorted(links(items)) == [("lead", "Bo"), ("owner", "Ann"), ("uses", "A"), ("uses", "B")]
    assert entity(items).properties["owner"] == "[[Ann]]"


# ---- tags and fields --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#one and #two/three", ["one", "two/three"]),
        ("#a#b", ["a", "b"]),
        ("#2024 #v2 #12/3", ["12/3", "v2"]),
        ("#dash-ed_x, #dot. (#no)", ["dash-ed_x", "dot"]),
        ("#日本語 #佐々木 #été #🚀", ["été", "佐々木", "日本語", "🚀"]),
        ("issue#12 a#b C# x", []),
        ("http://x.y/#frag [[N#head]] [t](a.md#x)", []),
        ("`#code` <!-- #no --> %% #no %% \\#no", []),
        ("```\n#code\n```", []),
        ("# heading", []),
    ],
)
def test_inline_tags(text: str, expected: list[str]) -> None:
    made = memories(read(f"text\n{text}\n\nmore\n"))
    assert sorted({tag for one in made for tag in one.tags}) == sorted(expected)


def test_a_tag_in_a_heading_counts_for_its_section() -> None:
    made = memories(read("# N\n\n## Plan #later\n\ntext\n- [fact] x\n\n## Other\n\ntext 2\n"))
    assert [one.tags for one in made] == [["later"], ["later"], []]


def test_tags_of_the_frontmatter_are_on_every_memory() -> None:
    made = memories(read("---\ntags: [team]\n---\ntext #x\n- [fact] y\n"))
    assert [one.tags for one in made] == [["team", "x"], ["team"]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Key:: value", {"key": "value"}),
        ("**Review Date**:: 2026-05-08", {"review-date": "2026-05-08"}),
        ("- Status:: open", {"status": "open"}),
        ("text [due:: today] and (who:: [[Bo]])", {"due": "today", "who": "[[Bo]]"}),
        ("Key:: a\n\nKey:: b", {"key": ["a", "b"]}),
        ("std::vector is fast", {}),
        ("`Key:: value`", {}),
        ("```\nKey:: value\n```", {}),
        ("Key::", {}),
        ("call a::b and c", {}),
        ("this is a rather long sentence:: no", {}),
        ("<!-- Key:: value -->", {}),
    ],
)
def test_fields(text: str, expected: dict[str, Any]) -> None:
    assert entity(read(f"intro\n\n{text}\n")).properties == expected


def test_a_field_joins_the_property_of_the_frontmatter() -> None:
    items = read("---\nstatus: open\n---\nStatus:: done\n")
    assert entity(items).properties == {"status": ["open", "done"]}


# ---- places and damage ------------------------------------------------------------------------------


def test_every_record_has_its_line_column_and_byte_offset() -> None:
    text = "---\ntitle: é\n---\r\n# é\n\n  ü [[X]]\n\n- a\n  - [fact] ö\n- uses [[Y]]\n"
    items = read(text)
    at = {
        type(one).__name__ + str(i): one.place for i, one in enumerate(items) if not isinstance(one, Finding)
    }
    assert list(at.values()) == [
        Place(1, 1, 0),
        Place(6, 3, 27),
        Place(6, 5, 30),
        Place(9, 3, 43),
        Place(10, 1, 55),
    ]
    data = text.encode()
    assert data[30:35] == b"[[X]]"
    assert data[43:50] == b"- [fact"
    assert data[55:61] == b"- uses"


PIECES = st.sampled_from([
    "\n", "\n\n", "\r\n", "---\n", "key: ", "# ", "- ", "[fact] ", "[[X]]", "[t](x.md)", "`", "```\n",
    "~~~\n", "%%", "<!--", "-->", "$", "$$", "> ", "    ", "\t", "#tag", " (c)", "word ", "uses ", "::", "\\",
    "|", "é", "漢", "🧪", "\x00", "===\n", "^id", ",", "*", '"', "[", "]", "(", ")", "gmem: |\n  {}\n",
])  # fmt: skip


@given(st.lists(PIECES, max_size=40).map("".join))
def test_any_text_is_read_and_every_place_is_exact(text: str) -> None:
    data = text.encode()
    lines = data.split(b"\n")
    starts = [sum(len(line) + 1 for line in lines[:i]) for i in range(len(lines))]
    for item in read(data):
        if isinstance(item, formats.Rejected):
            continue
        line, column, offset = item.place
        before = data[starts[line - 1] : offset].decode()
        assert len(before) == column - 1
        if isinstance(item, MemoryRecord) and item.memory_type is None:
            assert data[offset:].decode().startswith(item.content.split("\n")[0].lstrip())


def test_bytes_that_are_not_utf8_cost_the_note_and_are_located() -> None:
    items = read("# Notiz\n\nGrüße\n".encode() + "文件".encode("gbk"))
    assert rules(items) == ["bad-encoding"]
    assert len(items) == 1
    place = items[0].place
    assert (place.line, place.column, place.offset) == (4, 1, 17)


def test_conflict_markers_cost_the_whole_note() -> None:
    items = read("# N\n\na\n<<<<<<< ours\nx\n=======\ny\n>>>>>>> theirs\n")
    assert rules(items) == ["conflict-markers"]
    assert items[0].place.line == 4
    assert len(items) == 1
    front = read("---\n<<<<<<< ours\ntitle: a\n=======\ntitle: b\n>>>>>>> theirs\n---\ntext\n")
    assert rules(front)[-1] == "conflict-markers"
    assert not any(isinstance(one, EntityRecord) for one in front)


def test_conflict_markers_in_code_are_text() -> None:
    items = read("```\n<<<<<<< ours\n=======\n>>>>>>> theirs\n```\n")
    assert rules(items) == []
    assert len(memories(items)) == 1


def test_nul_and_unicode_line_ends_are_kept() -> None:
    text = "a\x00b\u2028c\u2029d\x85e\rf"
    assert memories(read(text + "\n"))[0].content == text


def test_hostile_input_takes_no_excessive_time() -> None:
    started = time.process_time()
    for text in (
        "[" * 50_000, "[[" * 25_000, "`" * 20_000 + "a" + "`" * 19_999, "$" * 50_000, "%%" * 25_001,
        "<!--" * 12_000, "- [" * 15_000, "#" * 50_000, "# " + " " * 50_000 + "x", "* " * 25_000, "(" * 50_000,
        "\n".join(" " * (i % 300) + "- [fact] x" for i in range(3_000)), "a:: " * 12_000, "> " * 25_000,
        "\n".join("`" * (i % 90 + 1) for i in range(3_000)), "- a [[b" * 7_000, "![](" * 12_000,
        "\\" * 50_001,
        "---\n" + "a: " * 10_000 + "\n---\n", "---\n" + " " * 50_000 + "x\n---\n",
        "- " + "**" * 25_000 + " [[x]]",
    ):  # fmt: skip
        read(text + "\n")
    assert time.process_time() - started < 10


# ---- recognising notes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("# Title\n", "a.md"),
        ("plain", "a.MARKDOWN"),
        ("---\ntitle: x\n---\n", "a.md"),
        ("---\nglobs: **/*.ts\n---\n", "rule.mdc"),
        ("[[Link]] first\n", "a.md"),
        ("[text](x)\n", "a.md"),
        ("", "empty.md"),
        ("---\ntitle: x\n---\n\n# Heading\n\nSome prose here.\n", ""),
        ("---\ntitle: x\n---\nSome prose here.\n", "CLAUDE"),
        ("caf\xe9", "latin.md"),
    ],
)
def test_notes_are_recognised(head: str, name: str) -> None:
    encoding = "latin-1" if name == "latin.md" else "utf-8"
    assert formats.importer("markdown").sniff(head.encode(encoding), name) is not None


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("# Title\n", "a.txt"),
        ('{"type":"entity","name":"A"}\n', "a.md"),
        ('[{"type":"entity"}]', "a.md"),
        ('["A","b","C"]\n', "a.md"),
        ("---\ntype: entity\nname: A\n---\ntype: entity\nname: B\n", ""),
        ("---\ntype: entity\nname: A\n---\n# a comment\ntype: entity\n", ""),
        ("---\ntype: entity\nname: A\n---\n- [a, b, c]\n", ""),
        ("---\na: 1\n---\n# Heading\n", "x.yaml"),
        ("---\n- a\n---\ntext\n", ""),
        ("\x00\x01\x02\x03binary", "a.md"),
        ("plain", ""),
    ],
)
def test_other_input_is_not_claimed(head: str, name: str) -> None:
    assert formats.importer("markdown").sniff(head.encode(), name) is None


# ---- agents' files ----------------------------------------------------------------------------------


def test_instruction_files_are_plain_notes() -> None:
    text = "# CLAUDE.md\n\nIntro.\n\n## Build\n\nRun `make`.\n\n## Style\n\n- Use tabs\n"
    items = read(text, "CLAUDE.md")
    assert entity(items).name == "CLAUDE.md"
    assert [one.title for one in memories(items)] == [None, "Build", "Style"]


def test_cursor_rules_are_notes_although_their_frontmatter_is_no_yaml() -> None:
    items = read(
        "---\ndescription: TS rules\nglobs: **/*.ts\nalwaysApply: false\n---\n- Be strict\n", "ts.mdc"
    )
    made = entity(items)
    assert (made.name, made.description) == ("ts", "TS rules")
    assert made.properties == {"globs": "**/*.ts", "alwaysApply": "false"}
    assert rules(items) == ["frontmatter-fallback"]


# ---- fixtures ---------------------------------------------------------------------------------------

NOTES: dict[str, tuple[str | None, list[str], int, list[str]]] = {
    "bad-yaml.md": ("*Italic*", ["frontmatter-fallback"] * 3, 1, []),
    "callouts.md": ("Callouts", [], 2, []),
    "code-traps.md": ("Code traps", [], 1, ["Real link"]),
    "colon-title.md": ("Fix: the bug", ["frontmatter-fallback"], 1, []),
    "conflict.md": (None, ["conflict-markers"], 0, []),
    "cursor-rule.mdc": ("cursor-rule", ["frontmatter-fallback"], 1, []),
    "duplicate-keys.md": ("duplicate-keys", ["duplicate-key"] * 2, 1, []),
    "gbk.md": (None, ["bad-encoding"], 0, []),
    "hash-tags.md": ("hash-tags", [], 1, []),
    "literal-newline.md": ("literal-newline", [], 1, []),
    "long-prose.md": ("Long prose", [], 1, ["Target"]),
    "no-title.md": ("A heading", [], 1, []),
    "tables.md": ("Tables", [], 1, ["Ann", "Topic"]),
    "tabs.md": ("tabs", ["frontmatter-tab"], 1, []),
    "two-blocks.md": ("First", ["second-frontmatter"], 1, []),
    "unclosed.md": ("unclosed", ["frontmatter-unclosed"], 1, []),
}
"""Per odd note: its name, the findings, the number of memories, the targets of its links."""


def test_every_odd_note_is_listed() -> None:
    assert sorted(path.name for path in (FIXTURES / "notes").iterdir()) == sorted(NOTES)


@pytest.mark.parametrize("name", NOTES)
def test_an_odd_note_gives_what_is_listed(name: str) -> None:
    data = (FIXTURES / "notes" / name).read_bytes()
    assert formats.importer("markdown").sniff(data, name) is not None
    items = read(data, name)
    entities = [one.name for one in items if isinstance(one, EntityRecord)]
    found = (next(iter(entities), None), rules(items), len(memories(items)), [to for _, to in links(items)])
    assert found == NOTES[name]


def test_the_fixture_vault_has_no_findings_and_no_link_to_nothing() -> None:
    root = FIXTURES / "vault"
    names = tuple(path.relative_to(root).as_posix() for path in sorted(root.rglob("*.md")))
    assert len(names) >= 40
    items = [one for name in names for one in read((root / name).read_bytes(), name, names)]
    assert rules(items) == []
    known = {alias for one in items if isinstance(one, EntityRecord) for alias in (one.name, *one.aliases)}
    assert {to for _, to in links(items)} <= known
    assert len(memories(items)) > 150
