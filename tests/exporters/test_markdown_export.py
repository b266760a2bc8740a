"""The markdown export: what a note shows, what its file is called, and that it imports exactly."""

from __future__ import annotations

import io
import json
import re
import tracemalloc
from collections.abc import Iterator
from typing import Any
from unicodedata import normalize
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem import formats
from graphmem.canonical import to_mapping
from graphmem.findings import Finding
from graphmem.mapping import to_record
from graphmem.names import exact
from graphmem.records import NO_PLACE, EntityRecord, ManifestRecord, MemoryRecord, RelationRecord

Mapping = dict[str, Any]
MANIFEST: Mapping = {
    "type": "manifest", "format": "graphmem", "version": 1, "tool": "graphmem 9", "filters": {"kind": "x"},
}  # fmt: skip
REMAINDER = "gmem-remainder.jsonl"


# ---- helpers ----------------------------------------------------------------------------------------


def canonical(*records: Mapping) -> list[Mapping]:
    """The records as an export hands them over: keys in order, sets sorted, entities first."""
    made = []
    for one in records:
        findings: list[Finding] = []
        record = to_record(one, NO_PLACE, "", findings)
        assert not findings
        assert record is not None
        assert not isinstance(record, ManifestRecord)
        made.append(to_mapping(record))
    return sorted(made, key=lambda one: ("entity", "memory", "relation").index(one["type"]))


def export(records: list[Mapping]) -> dict[str, str]:
    exporter = formats.exporter("markdown")
    return {one.path: b"".join(one.chunks).decode() for one in exporter.write(dict(MANIFEST), iter(records))}


def read(files: dict[str, str]) -> Iterator[formats.Item]:
    siblings = frozenset(files)
    for path, text in files.items():
        importer = formats.importer("jsonl" if path == REMAINDER else "markdown")
        yield from importer.read(io.BytesIO(text.encode()), formats.Source(path, path, siblings=siblings))


def back(files: dict[str, str]) -> list[Mapping]:
    """What an import of the files gives, as canonical mappings; there must be no finding."""
    mappings = []
    for item in read(files):
        assert not isinstance(item, Finding), item
        if isinstance(item, (EntityRecord, MemoryRecord, RelationRecord)):
            mappings.append(to_mapping(item))
    return mappings


def in_order(records: list[Mapping]) -> list[str]:
    return sorted(json.dumps(one, sort_keys=True) for one in records)


def entity(name: str, kind: str | None = "service", **more: Any) -> Mapping:
    return {"type": "entity", "id": f"e-{name}"[:100], "name": name, "kind": kind, "scope": "global", **more}


def memory(content: str, about: str | list[Any] = "Hub", **more: Any) -> Mapping:
    names = [about] if isinstance(about, str) else about
    refs = [{"name": one, "kind": "service"} if isinstance(one, str) else one for one in names]
    default = {"type": "memory", "content": content, "memory_type": "observation", "scopes": ["global"]}
    return default | {"id": f"m-{content}"[:100], "about": refs} | more


def relation(predicate: str, target: str, subject: str = "Hub", **more: Any) -> Mapping:
    return {
        "type": "relation", "id": f"r-{predicate}-{target}"[:100], "scope": "global", "predicate": predicate,
        "subject": {"name": subject, "kind": "service"}, "object": {"name": target, "kind": "service"},
        **more,
    }  # fmt: skip


def round_trip(*records: Mapping) -> dict[str, str]:
    """Export, import, compare; the files, for further looks."""
    given_ = canonical(*records)
    files = export(given_)
    assert in_order(back(files)) == in_order(given_)
    return files


def edited(records: list[Mapping], path: str, old: str, new: str) -> list[formats.Item]:
    files = export(canonical(*records))
    assert old in files[path]
    files[path] = files[path].replace(old, new)
    return list(read(files))


def memories(items: list[formats.Item]) -> dict[str, MemoryRecord]:
    return {one.content: one for one in items if isinstance(one, MemoryRecord)}


def relations(items: list[formats.Item]) -> list[RelationRecord]:
    return [one for one in items if isinstance(one, RelationRecord)]


def entities(items: list[formats.Item]) -> dict[str, EntityRecord]:
    return {one.name: one for one in items if isinstance(one, EntityRecord)}


FULL_MEMORY = memory(
    "uses rotating keys",
    title="Design > Keys",
    memory_type="decision",
    importance=0.25,
    tags=["security", "two words", "ops/keys"],
    scopes=["global", "repo:/srv/x"],
    mentions=[{"name": "Vault", "kind": "service"}],
    source={"uri": "file:///n/a.md", "position": 4},
    properties={"context": "agreed in March", "n": 1.5},
    created_at="2026-01-02T03:04:05.678Z",
    updated_at="2026-02-02T03:04:05.678Z",
    valid_at="2025-12-31T00:00:00.000Z",
    origins=[
        {"uri": "file:///n/a.md", "format": "markdown", "digest": "ab" * 32, "record": "cd" * 16, "line": 7,
         "taken_at": "2026-01-02T03:04:05.678Z", "said": {"tags": ["x"]}},
    ],
)  # fmt: skip


# ---- identity ---------------------------------------------------------------------------------------


def test_every_field_of_every_kind_survives() -> None:
    files = round_trip(
        entity(
            "Hub", description="The hub.\n\nIt routes.", aliases=["hub", "Nabe: zentral", "- x"],
            properties={"team": "core", "n": 5, "f": 1.5, "yes": True, "none": None, "title": "inner",
                        "nested": {"a": [1, {"b": "c"}]}, "tags": ["a", "b c"], "date": "2024-01-15",
                        "text": "no", "list": ["x", "2"], "empty": "", "": "odd key", "deep": [[["x"]]]},
            created_at="2026-01-01T00:00:00.000Z", updated_at="2026-01-01T00:00:00.001Z",
            id_aliases=["old-1"], redirects=[{"name": "Nabe", "kind": "service", "scope": "global"}],
        ),
        entity("Vault", archived_by="person", state="archived"),
        entity("Ghost", kind="unknown", stub=True),
        FULL_MEMORY,
        memory("gone", state="archived", archived_by="sync"),
        memory("was true", invalid_at="2026-01-01T00:00:00.000Z", expired_at="2026-01-02T00:00:00.000Z"),
        memory("about nobody", []),
        memory("about two", ["Hub", "Vault"]),
        memory("about an id", [{"id": "e-Hub"}]),
        relation("depends_on", "Vault", weight=0.5, fact="Hub needs the vault.", stated_by=["m-x"],
                 properties={"context": "hard"}, valid_at="2026-01-01T00:00:00.000Z", id_aliases=["r0"]),
        relation("reads from", "Nowhere", state="archived"),
        relation("<->", "Vault"),
    )  # fmt: skip
    assert set(files) == {"Hub.md", REMAINDER}


def test_an_unedited_note_counts_as_transport() -> None:
    files = export(canonical(entity("Hub"), memory("a fact")))
    items = list(read({"Hub.md": files["Hub.md"]}))
    assert isinstance(items[0], ManifestRecord)
    assert items[0].tool == "graphmem 9"
    assert [type(one) for one in items[1:]] == [EntityRecord, MemoryRecord]


def test_crlf_line_ends_do_not_count_as_an_edit() -> None:
    given_ = canonical(entity("Hub"), memory("a fact"), memory("two\nlines"), memory("fenced\n# x"))
    files = export(given_)
    files["Hub.md"] = files["Hub.md"].replace("\n", "\r\n")
    assert in_order(back(files)) == in_order(given_)


def test_the_export_is_deterministic_with_lf_and_a_final_newline() -> None:
    given_ = canonical(entity("Hub"), entity("hub"), FULL_MEMORY, relation("uses", "hub"))
    files = export(given_)
    assert files == export(given_)
    for text in files.values():
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
        assert "\r" not in text


CONTENTS = [
    "# a heading", "---", "---\ntitle: x\n---\n\nbody", "title\n=====", "a\n---\nb", "```\ncode\n```",
    "~~~", "````text\nx\n````", "- [fact] inner", "- uses [[X]]", "text\n- [[X]]", "  led by spaces",
    "\n\nled by lines", "ended by lines\n\n", "a\r\nb", "a\rb", "nul \x00 here", "tab\there", "bell \x07",
    "<!-- open", "50%% off", "$$ open", "`open", "``` open", "ends in #tag", "#tag", "(all)", "ends (so)",
    "block ^abc-1", "a\n^g-12345678", "back\\", "key:: value", "a\n\n\n\nb", "a\n   \nb", "    indented",
    "a\n\n    indented\n", "> quote\n> more", "| a | b |\n|---|---|\n| [[x\\|y]] | z |", "1. one\n2. two",
    "日本語のメモ、とても長い。", "é e\u0301 🧪👩\u200d💻", "a\u2028b\u2029c\x85d", "\ufeffmark",
    "{0} {name} %s [red]", "x" * 3000, "gmem: |\n  {}", "^g-00000000", "- item\n\n  more", "[[open",
    "![[embed]]", "`a` ^b", "]] [x] ()", "[a](b.md)", "\x1a", "\x1b[31m", "-", "+ [x]", "***", "___",
    "a\n***\nb", "\\# escaped", "&amp; <b>x</b>", "a  \n  b  ", "\u3000wide", "a\n\t- [b] c",
]  # fmt: skip


@pytest.mark.parametrize("content", CONTENTS)
def test_a_content_survives_whatever_it_looks_like(content: str) -> None:
    for title in (None, "A heading", ""):
        for type_ in ("observation", "fact", "[odd] (type)"):
            first = memory(content, id="1", title=title, memory_type=type_, tags=["t"])
            second = memory("the next one", id="2", title=title)
            third = memory(content + "!", id="3", title=title)
            round_trip(entity("Hub"), first, second, third, relation("uses", "Hub"))


@pytest.mark.parametrize(
    "title",
    ["# x", "x #", "a\nb", "`code", "<!--", "%%", "$$", " x ", "Relations", "Hub", "a > b", "\x00", "[[x]]"],
)
def test_a_title_survives_whatever_it_looks_like(title: str) -> None:
    round_trip(
        entity("Hub"),
        memory("one", id="1", title=title),
        memory("two", id="2", memory_type="fact", title=title),
        memory("three\nlines", id="3"),
    )


NAMES = [
    "a/b", "a\\b", "c:d", "e?", "<f>", "CON", "con", "con.txt", "LPT1", "COM¹", "..", ".", ".hidden",
    "x" * 300, "日" * 200, "A.B", "A/B", "trailing.", "C", "C#", "C++", ".NET", "Net", "Café", "CAFÉ",
    "a%2Fb", "100%", "%~x", "-dash", "~$lock", "#tag", "[x]", "a|b", "a^b", "`x`", "$x$", "%%", "<!--",
    "null", "None", "true", "2024-01-15", "1.10", "x: y", "- x", "* x", "README.md", "image.png",
    "Node.js", "🧪", "\x00", "a\x07b", "http://x.y/z", "'", '"', "gmem-remainder.jsonl", "gmem-remainder",
    "a\u200bb", "\ufeff", "# x", "x #", "ﬁ", "fi", "K", "\u212a2", "ß", "SS",
]  # fmt: skip


def test_odd_names_give_distinct_reversible_file_names_and_survive() -> None:
    unique = list(dict.fromkeys(exact(name) for name in NAMES))
    records = [entity(name) for name in unique] + [relation("uses", name, unique[0]) for name in unique]
    records += [memory("is odd", name, id=f"m{i}") for i, name in enumerate(unique)]
    files = round_trip(*records)
    stems = [path.removesuffix(".md") for path in files if path != REMAINDER]
    assert len(stems) == len(unique)
    assert len({normalize("NFKC", stem).casefold() for stem in stems}) == len(stems)
    for stem, name in zip(stems, unique, strict=True):
        if len(name) < 150:
            assert unquote(stem.split("%~")[0]) == name
        assert len(stem.encode()) <= 150
        assert not re.search(r'[\x00-\x1f<>:"/\\|?*]|^[.~-]|[. ]$', stem)
        assert stem.split(".")[0].upper() not in ("CON", "LPT1", "COM¹")


def test_names_with_dot_and_slash_go_to_two_files() -> None:
    files = round_trip(entity("A.B"), entity("A/B"))
    assert {"A.B.md", "A%2FB.md"} < set(files)


def test_homonyms_are_told_apart_by_kind_where_that_is_enough() -> None:
    files = round_trip(
        entity("Mercury", "planet", id="1"),
        entity("mercury", "metal", id="2"),
        entity("Venus", "planet", id="3"),
        entity("Venus", "planet", id="4", scope="repo:/srv/x"),
    )
    assert {"Mercury%~planet.md", "mercury%~metal.md"} < set(files)
    assert len(files) == 5


@pytest.mark.parametrize(
    "predicate", ["uses", "depends on", "A B C", "a: b", '"x"', "12", "x" * 90, "依存する", "a]b"]
)
def test_a_predicate_survives(predicate: str) -> None:
    round_trip(entity("Hub"), relation(predicate, "Vault", fact="- not a list", properties={"context": "x"}))


# ---- generated --------------------------------------------------------------------------------------

_PIECES = st.sampled_from([
    "\n", "\n\n", "# ", "---", "```", "~~~", "- ", "[a] ", "[[X]]", "]]", "|", "#t", "(c)", " ",
    "  ", "\t", "\r\n", "\x00", "`", "$", "$$", "%%", "<!--", "-->", "\\", "::", "^g-1234abcd",
    "> ", "é", "e\u0301", "C++", "🧪", "漢字", "ß", "K", "\u2028", "\ufeff", "a", "B", "word ",
    "title: x", "=", "*", "_", '"', "'", "{", "&", "\x1a", "1. ",
])  # fmt: skip
_TEXT = st.lists(_PIECES, min_size=1, max_size=10).map("".join)
_ANY = st.one_of(_TEXT, st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12))
_CONTENT = _ANY.filter(str.strip)
_NAME = st.one_of(_ANY, st.sampled_from(["Hub", "hub", "HUB", "C", "C++", "Cafe\u0301", "Café"])).map(exact)
_NAMES = st.lists(_NAME.filter(bool), min_size=1, max_size=5, unique_by=lambda name: name)
_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), _ANY),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_ANY, inner, max_size=3),
    max_leaves=5,
)
_PROPERTIES = st.dictionaries(
    st.one_of(_ANY, st.sampled_from(["tags", "date", "context"])), _VALUES, max_size=3
)
_WORDS = st.lists(_NAME.filter(bool), max_size=3, unique=True)


@st.composite
def graphs(draw: st.DrawFn) -> list[Mapping]:
    """Some entities, memories and relations among them, with nasty names and texts."""
    names = draw(_NAMES)
    kinds = st.sampled_from(["service", "unknown", "a/b"])
    records: list[Mapping] = []
    refs: list[Mapping] = []
    for i, name in enumerate(names):
        kind = draw(kinds)
        refs.append({"name": name, "kind": kind})
        records.append({
            "type": "entity", "id": f"e{i}", "name": name, "kind": kind, "scope": "global",
            "description": draw(st.none() | _ANY), "aliases": draw(_WORDS), "properties": draw(_PROPERTIES),
            "stub": draw(st.booleans()), "state": draw(st.sampled_from(["active", "archived"])),
        })  # fmt: skip
    ref = st.sampled_from(refs)
    records += [
        {
            "type": "memory", "id": f"m{i}", "content": draw(_CONTENT), "title": draw(st.none() | _ANY),
            "memory_type": draw(st.sampled_from(["observation", "fact"]) | _NAME.filter(bool)),
            "tags": draw(_WORDS), "about": draw(st.lists(ref, max_size=2)), "scopes": ["global"],
            "properties": draw(_PROPERTIES), "source": draw(st.none() | _ANY),
        }
        for i in range(draw(st.integers(0, 4)))
    ]  # fmt: skip
    records += [
        {
            "type": "relation", "id": f"r{i}", "subject": draw(ref), "object": draw(ref), "scope": "global",
            "predicate": draw(st.sampled_from(["uses", "depends on"]) | _NAME.filter(bool)),
            "fact": draw(st.none() | _ANY), "properties": draw(_PROPERTIES),
        }
        for i in range(draw(st.integers(0, 3)))
    ]  # fmt: skip
    return canonical(*records)


@given(graphs())
def test_export_and_import_give_the_same_records(records: list[Mapping]) -> None:
    files = export(records)
    assert in_order(back(files)) == in_order(records)
    stems = {normalize("NFKC", normalize("NFKC", path).casefold()) for path in files}
    assert len(stems) == len(files)


# ---- what people see --------------------------------------------------------------------------------


def test_a_note_reads_well() -> None:
    files = export(canonical(
        entity("AuthService", description="Issues tokens.", aliases=["auth"], properties={"team": "core"}),
        entity("Post/gres"),
        memory("keys rotate weekly", "AuthService", memory_type="decision", tags=["ops"],
               properties={"context": "since May"}),
        memory("Two lines\nof text.", "AuthService", title="Design"),
        relation("depends_on", "Post/gres", "AuthService", fact="Sessions live there."),
        relation("owned by", "Ann", "AuthService"),
    ))  # fmt: skip
    text = re.sub(r"\^g-[0-9a-f]{8}", "^ID", files["AuthService.md"])
    front, body = text.split("gmem: |\n")
    assert front == (
        "---\ntitle: AuthService\ntype: service\naliases:\n- auth\ndescription: Issues tokens.\nteam: core\n"
    )
    assert body.split("\n---\n")[1] == (
        "\n# AuthService\n\n- [decision] keys rotate weekly #ops (since May) ^ID\n\n"
        "## Design\n\nTwo lines\nof text.\n\n^ID\n\n"
        "## Relations\n\n- depends_on [[Post%2Fgres|Post/gres]] ^ID\n  Sessions live there.\n"
        '- "owned by" [[Ann]] ^ID\n'
    )


def test_content_shown_exactly_is_not_written_twice() -> None:
    text = "a sentence that occurs\nonce and only once"
    files = export(canonical(entity("Hub"), memory(text, id="m"), memory("# fenced thing", id="n")))
    assert files["Hub.md"].count("occurs") == 1
    assert files["Hub.md"].count("fenced thing") == 1


def test_what_no_longer_holds_is_not_shown_but_kept() -> None:
    old = memory("old truth", invalid_at="2026-01-01T00:00:00.000Z")
    files = round_trip(entity("Hub"), old, memory("archived", state="archived"))
    assert "old truth" not in files["Hub.md"]
    assert "archived" not in files["Hub.md"]


def test_a_stub_without_content_stays_an_unresolved_link() -> None:
    files = round_trip(entity("Hub"), entity("Ghost", "unknown", stub=True), relation("sees", "Ghost"))
    assert set(files) == {"Hub.md", REMAINDER}
    assert "[[Ghost]]" in files["Hub.md"]


def test_the_remainder_manifest_counts_its_own_records_and_names_the_filters() -> None:
    files = export(canonical(entity("Hub"), memory("a"), memory("alone", [])))
    head = json.loads(files[REMAINDER].split("\n")[0])
    assert head["counts"] == {"entity": 0, "memory": 1, "relation": 0}
    assert head["filters"] == {"kind": "x"}
    assert head["tool"] == "graphmem 9"


def test_an_export_without_records_is_a_remainder_file_with_its_manifest() -> None:
    assert list(export([])) == [REMAINDER]


# ---- edited notes -----------------------------------------------------------------------------------

EDITED = [
    entity("Hub", description="Old.", properties={"n": 5, "team": "core", "": "hidden"}, aliases=["h"],
           created_at="2026-01-01T00:00:00.000Z", updated_at="2026-01-01T00:00:00.000Z"),
    entity("A/B"),
    memory("first fact", id="m1", importance=0.5, tags=["x"], memory_type="fact",
           updated_at="2026-01-01T00:00:00.000Z", properties={"context": "then", "k": 1}),
    memory("second fact", id="m2", memory_type="fact"),
    memory("a text\nof two lines", id="m3", title="Design"),
    memory("# fenced\ntext", id="m4", title="Design"),
    relation("uses", "A/B", id="r1", weight=0.5, fact="It does."),
]  # fmt: skip


def test_an_edited_note_is_an_ordinary_source_whose_other_items_are_restored() -> None:
    items = edited(EDITED, "Hub.md", "first fact", "changed fact")
    hub = [one for one in items if isinstance(one, ManifestRecord)]
    assert len(hub) == 2  # the note of A/B and the remainder, not the edited note
    found = memories(items)
    assert found["second fact"].id == "m2"
    assert found["a text\nof two lines"].id == "m3"
    assert found["# fenced\ntext"].title == "Design"
    assert relations(items)[0].weight == 0.5
    assert entities(items)["Hub"].properties == {"n": 5, "team": "core", "": "hidden"}


def test_an_edited_fact_keeps_its_id_and_hidden_fields_and_forgets_its_time() -> None:
    found = memories(edited(EDITED, "Hub.md", "[fact] first fact #x (then)", "[lesson] new #y (now)"))
    new = found["new"]
    assert (new.id, new.importance, new.memory_type) == ("m1", 0.5, "lesson")
    assert (new.tags, new.properties, new.updated_at) == (["y"], {"context": "now", "k": 1}, None)


def test_an_edited_text_and_an_edited_fence_keep_their_ids() -> None:
    found = memories(edited(EDITED, "Hub.md", "of two lines", "of three\nlines"))
    assert found["a text\nof three\nlines"].id == "m3"
    found = memories(edited(EDITED, "Hub.md", "# fenced\n", "# fenced\nmore\n"))
    assert found["# fenced\nmore\ntext"].id == "m4"


def test_a_renamed_heading_is_a_new_title() -> None:
    found = memories(edited(EDITED, "Hub.md", "## Design", "## Plan"))
    assert found["a text\nof two lines"].title == "Plan"
    assert found["a text\nof two lines"].id == "m3"


def test_a_deleted_item_is_not_imported_and_an_added_one_is() -> None:
    files = export(canonical(*EDITED))
    files["Hub.md"] = re.sub(r"- \[fact\] first fact.*\n", "- [tip] by hand #new\n", files["Hub.md"])
    items = list(read(files))
    assert "first fact" not in memories(items)
    added = memories(items)["by hand"]
    assert (added.id, added.memory_type, added.tags) == (None, "tip", ["new"])
    assert (added.scopes, added.about[0].name, added.source) == (["global"], "Hub", "Hub.md")


def test_a_copied_line_is_a_new_item_without_the_id() -> None:
    files = export(canonical(*EDITED))
    line = next(one for one in files["Hub.md"].split("\n") if one.startswith("- [fact] first fact"))
    files["Hub.md"] = files["Hub.md"].replace(line, f"{line}\n{line}")
    twins = [one for one in read(files) if isinstance(one, MemoryRecord) and one.content == "first fact"]
    assert [one.id for one in twins] == ["m1", None]
    assert "block_id" not in twins[1].properties


def test_an_edited_relation_keeps_its_id_only_while_it_is_the_same_relation() -> None:
    same = relations(edited(EDITED, "Hub.md", "  It does.", "  It really does."))[0]
    assert (same.id, same.fact, same.weight) == ("r1", "It really does.", 0.5)
    other = relations(edited(EDITED, "Hub.md", "- uses", "- replaces"))[0]
    assert (other.id, other.predicate, other.object.name, other.object.kind) == (
        None,
        "replaces",
        "A/B",
        "service",
    )
    moved = relations(edited(EDITED, "Hub.md", "[[A%2FB|A/B]]", "[[Other]]"))[0]
    assert (moved.id, moved.object.name, moved.object.kind) == (None, "Other", None)


def test_links_added_by_hand_reach_encoded_names() -> None:
    items = edited(EDITED, "Hub.md", "of two lines", "of [[A%2FB|this]] and [[C]]")
    assert {one.object.name for one in relations(items) if one.predicate == "links_to"} == {"A/B", "C"}


def test_edited_frontmatter_wins_and_typed_values_stay_typed() -> None:
    hub = entities(edited(EDITED, "Hub.md", "description: Old.\n", "description: New.\nextra: 1.10\n"))["Hub"]
    assert hub.description == "New."
    assert hub.properties == {"n": 5, "team": "core", "": "hidden", "extra": "1.10"}
    assert (hub.id, hub.created_at, hub.updated_at) == ("e-Hub", None, None)
    hub = entities(edited(EDITED, "Hub.md", "team: core\n", "team: edge\n"))["Hub"]
    assert hub.properties == {"n": 5, "team": "edge", "": "hidden"}
    assert hub.aliases == ["h"]


def test_a_renamed_note_is_another_entity() -> None:
    items = edited(EDITED, "Hub.md", "title: Hub", "title: Node")
    assert entities(items)["Node"].id is None
    assert memories(items)["first fact"].about[0].name == "Node"


MOVED = [
    entity("AuthService", id="e1"),
    entity("Key"),
    memory("keys rotate", "AuthService", id="m1", memory_type="fact", updated_at="2026-01-01T00:00:00.000Z"),
    memory("with others", [{"name": "Key", "kind": "service"}, {"name": "AuthService", "kind": "service"}],
           id="m2"),
    relation("uses", "Key", "AuthService", id="r1", weight=0.5, id_aliases=["r0"],
             created_at="2026-01-01T00:00:00.000Z", updated_at="2026-01-01T00:00:00.000Z"),
    relation("knows", "Key", id="r2") | {
        "subject": {"name": "AuthService", "kind": "service", "scope": "global"}
    },
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "subject"),
    [
        ("type: service", "type: daemon", ("AuthService", "daemon")),
        ("title: AuthService", "title: Login", ("Login", "service")),
        ("type: service\n", "", ("AuthService", "unknown")),
    ],
)
def test_the_relations_of_a_retitled_or_retyped_note_are_new_ones_of_its_new_entity(
    old: str, new: str, subject: tuple[str, str]
) -> None:
    found = {one.predicate: one for one in relations(edited(MOVED, "AuthService.md", old, new))}
    assert {(one.subject.name, one.subject.kind) for one in found.values()} == {subject}
    assert {one.id for one in found.values()} == {None}
    uses = found["uses"]
    assert (uses.weight, uses.id_aliases, uses.created_at, uses.updated_at) == (0.5, [], None, None)
    assert found["knows"].subject.scope == "global"


def test_the_memories_of_a_retyped_note_keep_their_ids_and_are_about_its_new_entity() -> None:
    found = memories(edited(MOVED, "AuthService.md", "type: service", "type: daemon"))
    assert (found["keys rotate"].id, found["keys rotate"].updated_at) == ("m1", None)
    assert [(ref.name, ref.kind) for ref in found["keys rotate"].about] == [("AuthService", "daemon")]
    assert {ref.name: ref.kind for ref in found["with others"].about} == {
        "AuthService": "daemon",
        "Key": "service",
    }


def test_an_edited_relation_line_of_a_retitled_note_is_another_relation_too() -> None:
    files = export(canonical(*MOVED))
    files["AuthService.md"] = files["AuthService.md"].replace("title: AuthService", "title: Login")
    files["AuthService.md"] = files["AuthService.md"].replace("- uses [[Key]]", "- uses [[Key]] (now)")
    uses = next(one for one in relations(list(read(files))) if one.predicate == "uses")
    assert (uses.id, uses.subject.name, uses.properties) == (None, "Login", {"context": "now"})


def test_a_kind_that_differs_in_case_alone_moves_nothing() -> None:
    found = relations(edited(MOVED, "AuthService.md", "type: service", "type: Service"))
    assert sorted(str(one.id) for one in found) == ["r1", "r2"]


def test_a_fence_that_was_emptied_is_no_memory() -> None:
    items = edited(EDITED, "Hub.md", "# fenced\ntext\n", "\n")
    assert not [one for one in items if isinstance(one, Finding)]
    assert "m4" not in {one.id for one in memories(items).values()}


def test_a_damaged_entry_costs_its_hidden_fields_and_says_so() -> None:
    items = edited(EDITED, "Hub.md", '{"at":"g-', '{"at" "g-')
    assert {one.rule for one in items if isinstance(one, Finding)} == {"bad-json"}
    assert memories(items)["first fact"].id is None
    assert entities(items)["Hub"].id == "e-Hub"


def test_a_line_taken_out_of_a_note_costs_at_most_its_own_item() -> None:
    files = export(canonical(*EDITED))
    front, _, body = files["Hub.md"].partition("\n---\n")
    lines = body.split("\n")
    ids = {"m1", "m2", "m3", "m4", "r1"}
    for i in range(len(lines)):
        if lines[i].startswith("```"):
            continue  # without it the rest of the note is code, as in any markdown
        kept = "\n".join(lines[:i] + lines[i + 1 :])
        items = list(read({"Hub.md": f"{front}\n---\n{kept}"}))
        found = {one.id for one in items if isinstance(one, (MemoryRecord, RelationRecord))}
        assert len(ids - found) <= 1, lines[i]
        assert not [one for one in items if isinstance(one, Finding)]


def test_a_block_that_an_editor_wrote_in_another_style_is_still_the_block() -> None:
    given_ = canonical(*EDITED)
    files = export(given_)
    before, _, rest = files["Hub.md"].partition("gmem: |\n")
    block, _, body = rest.partition("\n---\n")
    lines = "\n".join(line.removeprefix("  ") for line in block.split("\n"))
    files["Hub.md"] = f"{before}gmem: {json.dumps(lines)}\n---\n{body}"
    assert in_order(back(files)) == in_order(given_)


def test_a_gmem_key_of_somebody_else_is_reported_and_the_note_read() -> None:
    importer = formats.importer("markdown")
    items = list(importer.read(io.BytesIO(b"---\ngmem: hello\n---\ntext\n"), formats.Source("n.md", "n.md")))
    assert [one.rule for one in items if isinstance(one, Finding)] == ["bad-manifest"]
    assert "text" in memories(items)


def test_a_note_of_a_newer_format_is_refused() -> None:
    items = edited(EDITED, "Hub.md", '"format":"graphmem","version":1', '"format":"graphmem","version":2')
    assert [one.rule for one in items if isinstance(one, Finding)] == ["newer-format"]
    assert "Hub" not in entities(items)


HEAD_AND_ENTRIES = [
    '"record":{"type":"entity"', '"links":{', '"hidden":[""]', '"properties":{"n":5', '"name":"Hub"',
    '"format":"graphmem"', '"version":1', '"tags":["x"]', '"as":"line"', '"seen":{', '"at":"g-',
    '"record":{"type":"memory"', '"type":"relation"', '"about":', '"id":"m1"', '"importance":0.5',
    '"weight":0.5', '"title":"Design"',
]  # fmt: skip
WRONG = ["1", "null", "[]", "{}", '"x"', "NaN", "1e999", '"\\ud800"', "9" * 400, "[" * 3_000]


@pytest.mark.parametrize("old", HEAD_AND_ENTRIES)
@pytest.mark.parametrize("value", WRONG, ids=range(len(WRONG)))
def test_no_gmem_block_takes_the_run_down(old: str, value: str) -> None:
    files = export(canonical(*EDITED))
    key = old.partition(":")[0]
    front, _, body = files["Hub.md"].partition("\n---\n")
    for one in (front.replace(old, f"{key}:{value}"), front.replace(old, f"{key}:{value},{old}")):
        for text in (
            body,
            body.replace("first", "1st").replace("It does", "It did").replace("two lines", "2"),
        ):
            assert list(read({"Hub.md": f"{one}\n---\n{text}"}))


# ---- size -------------------------------------------------------------------------------------------


def test_a_large_export_stays_in_bounded_memory() -> None:
    def records() -> Iterator[Mapping]:
        for i in range(2_000):
            yield entity(f"Entity {i}")
        for i in range(8_000):
            yield memory(f"{i} " + "words and words " * 60, f"Entity {i % 2_000}", id=f"m{i}")

    tracemalloc.start()
    written = 0
    for one in formats.exporter("markdown").write(dict(MANIFEST), records()):
        written += sum(map(len, one.chunks))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert written > 8_000_000
    assert peak < 15_000_000
