"""The cascade, against a reference that looks at every entity."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st
from importing import in_memory, take_records
from snapshots import content
from strategies import FAMILIES, SCOPES, SECOND_CLOCK, Record

from graphmem.commit import Choices
from graphmem.resolve import Candidate, Step, decide, newest, resolve
from graphmem.store import Store


@pytest.fixture
def store() -> Iterator[Store]:
    with in_memory() as made:
        yield made


# ---- the reference ----------------------------------------------------------------------------------


class Entity(NamedTuple):
    """An entity as the reference knows it."""

    scope: str
    name: str
    kind: str
    aliases: tuple[str, ...]


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _exact(name: str) -> str:
    return _spaced(normalize("NFC", name))


def _folded(name: str) -> str:
    return _spaced(normalize("NFKC", normalize("NFKC", name).casefold()))


def _words(name: str) -> str:
    spread = ""
    text = normalize("NFKC", name)
    for at, sign in enumerate(text):
        before, after = text[at - 1 : at], text[at + 1 : at + 2]
        if sign.isupper() and (before.islower() or (before.isupper() and after.islower())):
            spread += " "
        spread += sign
    # A name of separators alone has no words; it is compared as it is.
    return _folded(re.sub(r"[\s_\-/]", " ", spread)) or _folded(name)


def expected(entities: list[Entity], scope: str, name: str, kind: str | None, only: str | None) -> Any:
    """The entities that a reference means, or the rule of the finding that refuses it."""
    if only is not None and only not in (scope, "global"):
        return "foreign-scope"
    seen = [one for one in entities if one.scope in ((scope, "global") if only is None else (only,))]
    for form in (_exact, _folded, _words):
        # Ordered as the design says: the own scope first, then names before aliases.
        found: dict[tuple[bool, bool], set[Entity]] = {}
        for one in seen:
            if kind is not None and _folded(one.kind).replace(" ", "") != _folded(kind).replace(" ", ""):
                continue
            for spelled, alias in ((one.name, False), *((alias, True) for alias in one.aliases)):
                if form(spelled) == form(name):
                    found.setdefault((one.scope != scope, alias), set()).add(one)
        if found:
            best = found[min(found)]
            return next(iter(best))[:3] if len(best) == 1 else "ambiguous-name"
    return "dangling-reference"


names = st.one_of(
    *(st.sampled_from(family) for family in FAMILIES),
    st.text(alphabet="aAbB_- +é", min_size=1, max_size=5).filter(lambda text: bool(text.strip())),
)
declarations = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.just("entity"), "name": names, "kind": st.sampled_from(("service", "lib", "ser vice")),
            "scope": st.sampled_from(SCOPES), "aliases": st.lists(names, max_size=2),
        }
    ),
    max_size=6,
)  # fmt: skip


@given(
    stored=declarations, declared=declarations, name=names, scope=st.sampled_from(SCOPES),
    kind=st.none() | st.sampled_from(("service", "SERVICE", "lib", "band")),
    only=st.none() | st.sampled_from(SCOPES),
)  # fmt: skip
def test_references_mean_what_the_table_says(
    tmp_path: Path, stored: list[Record], declared: list[Record], name: str, scope: str, kind: str | None,
    only: str | None,
) -> None:  # fmt: skip
    ref = {
        key: value for key, value in (("name", name), ("kind", kind), ("scope", only)) if value is not None
    }
    memory = {"type": "memory", "content": "it", "about": [ref], "scopes": [scope]}
    with in_memory() as store:
        take_records(store, tmp_path, stored, name="stored")
        report = take_records(
            store,
            tmp_path,
            [memory, *declared],
            SECOND_CLOCK,
            choices=Choices(dangling="error"),
            batch_size=2,
        )
        held = content(store.db)

    entities = [
        Entity(one["scope"], one["name"], one["kind"], tuple(one["aliases"] or ()))
        for one in held["entities"].values()
    ]
    means = expected(entities, scope, _exact(name), kind, only)
    if isinstance(means, str):
        assert [found.rule for found in report.findings if found.severity == 3] == [means]
        assert held["memories"] == {}
    else:
        [memory_] = held["memories"].values()
        [(about_scope, about_name, _)] = memory_["about"]
        assert (about_scope, about_name) == means[:2]


# ---- the parts --------------------------------------------------------------------------------------


def candidate(name: str, kind: str = "", *, own: bool = True, alias: bool = False, at: str = "") -> Candidate:
    return Candidate(own, alias, "global", name, kind, kind or None, at)


def test_the_first_step_that_finds_anything_decides() -> None:
    asked: list[tuple[str, int]] = []

    def lookup(key: str, step: int) -> list[Candidate]:
        asked.append((key, step))
        return [candidate("auth_service")] if step == 3 else []

    found = resolve("AuthService", None, lookup)

    assert asked == [("AuthService", 1), ("authservice", 2), ("auth service", 3)]
    assert (found.step, found.chosen) == (Step.FULL_TEXT, candidate("auth_service"))


def test_own_scope_comes_before_name_before_alias() -> None:
    own_alias, other_name = candidate("a", alias=True), candidate("b", own=False)

    assert decide([own_alias, other_name]) == (own_alias,)
    assert decide([own_alias, candidate("c"), other_name]) == (candidate("c"),)
    assert decide([]) == ()


def test_one_entity_found_twice_is_no_ambiguity() -> None:
    declared, stored = candidate("a", "lib"), candidate("a", "lib")._replace(pk=7)

    assert decide([declared, stored]) == (stored,)
    assert decide([stored, declared]) == (stored,)


def test_the_newest_is_the_last_updated_then_the_greatest_kind_then_name() -> None:
    one, two = candidate("a", "lib", at="2026"), candidate("a", "service", at="2025")

    assert newest([one, two]) == one
    assert newest([one, two._replace(updated_at="2026")]).kind_key == "service"
    assert newest([candidate("a"), candidate("b")]).name == "b"


# ---- kinds ------------------------------------------------------------------------------------------


def entity(name: str, kind: str | None = None, **keys: Any) -> Record:
    return {"type": "entity", "name": name, **({"kind": kind} if kind else {}), **keys}


def about(content_: str, **ref: Any) -> Record:
    return {"type": "memory", "content": content_, "about": [ref]}


def links(store: Store) -> dict[str, list[tuple[str, str]]]:
    """Content to the names and kinds of what the memory is about."""
    memories = content(store.db)["memories"].values()
    return {one["content"]: [(name, kind) for _, name, kind in one["about"]] for one in memories}


def test_homonyms_of_two_kinds_never_receive_each_others_memories(store: Store, tmp_path: Path) -> None:
    """Whether declared before, in the run, or not at all; and in whatever batch."""
    take_records(store, tmp_path, [entity("Mercury", "planet"), about("red", name="Mercury", kind="planet")])

    for number, batch_size in enumerate((1, 3, 10_000)):
        records = [
            about(f"metal {number}", name="Mercury", kind="element"),
            about(f"hot {number}", name="Mercury", kind="Planet"),
            about(f"god {number}", name="Mercury", kind="god"),
            entity("Mercury", "element"),
        ]
        take_records(store, tmp_path, records, name=f"more {number}", batch_size=batch_size)

        held = links(store)
        assert held[f"metal {number}"] == [("Mercury", "element")]
        assert held[f"hot {number}"] == [("Mercury", "planet")]
        assert held[f"god {number}"] == [("Mercury", "god")]


def test_a_reference_with_a_kind_gives_it_to_what_has_none(store: Store, tmp_path: Path) -> None:
    """So that the next kind is another entity, in this run or a later one."""
    take_records(store, tmp_path, [entity("Mercury"), about("a", name="Mercury")])
    take_records(store, tmp_path, [about("b", name="Mercury", kind="planet")], SECOND_CLOCK, name="b")

    take_records(store, tmp_path, [about("c", name="Mercury", kind="god")], SECOND_CLOCK, name="c")

    assert links(store) == {
        "a": [("Mercury", "planet")], "b": [("Mercury", "planet")], "c": [("Mercury", "god")],
    }  # fmt: skip
    kept = store.db.execute(
        "SELECT entity.kind, json_extract(before, '$.kind') FROM version JOIN entity ON item = pk"
    )
    assert kept.fetchall() == [("planet", None)]


def test_a_record_without_a_kind_joins_the_only_one(store: Store, tmp_path: Path) -> None:
    records = [entity("C", "language"), entity("C", description="d"), about("a", name="C")]

    report = take_records(store, tmp_path, records)

    assert list(content(store.db)["entities"]) == ['["global", "C", "language"]']
    assert report.findings.by_rule == {}


def test_a_record_without_a_kind_is_unknown_among_several(store: Store, tmp_path: Path) -> None:
    report = take_records(store, tmp_path, [entity("C", "language"), entity("C", "note"), entity("C")])

    assert len(content(store.db)["entities"]) == 3
    assert report.findings.by_rule["kind-unknown"] == 1


def test_a_record_with_a_kind_completes_what_has_none(store: Store, tmp_path: Path) -> None:
    take_records(store, tmp_path, [entity("C", id="c"), about("a", name="C")])

    report = take_records(store, tmp_path, [entity("C", "language")], SECOND_CLOCK, name="kind")

    assert report.counts["entity"].updated == 1
    assert links(store) == {"a": [("C", "language")]}
    assert content(store.db)["entities"]['["global", "C", "language"]']["id"] == "c"


def test_an_explicit_unknown_means_the_entity_without_a_kind(store: Store, tmp_path: Path) -> None:
    take_records(store, tmp_path, [entity("C", "language"), entity("C", "note"), entity("C")])

    take_records(store, tmp_path, [about("a", name="C", kind="unknown")], SECOND_CLOCK, name="a")

    assert links(store) == {"a": [("C", "")]}


# ---- stubs and ambiguity ----------------------------------------------------------------------------


def test_a_reference_to_nothing_becomes_a_stub_that_a_declaration_completes(
    store: Store, tmp_path: Path
) -> None:
    first = take_records(store, tmp_path, [about("a", name="C"), about("b", name="C")])
    assert (first.stubs, first.findings.by_rule) == (1, {"stub-created": 1})

    second = take_records(store, tmp_path, [entity("C", "language")], SECOND_CLOCK, name="declared")

    assert second.counts["entity"].updated == 1
    assert store.db.execute("SELECT name, kind, stub FROM entity").fetchall() == [("C", "language", 0)]
    assert links(store) == {"a": [("C", "language")], "b": [("C", "language")]}


@pytest.mark.parametrize(("dangling", "rejected", "skipped"), [("skip", 0, 1), ("error", 2, 0)])
@pytest.mark.parametrize("kind", [None, "language"])
def test_references_to_nothing_can_be_left_out_or_refused(
    kind: str | None, dangling: str, rejected: int, skipped: int, store: Store, tmp_path: Path
) -> None:
    ref = {"name": "C", "kind": kind}
    records = [about("a", **ref), {"type": "relation", "subject": ref, "predicate": "is", "object": ref}]

    report = take_records(store, tmp_path, records, choices=Choices(dangling=dangling))

    assert (report.total("rejected"), report.total("skipped")) == (rejected, skipped)
    assert content(store.db)["entities"] == {}


def test_an_ambiguous_reference_is_refused_with_the_candidates(store: Store, tmp_path: Path) -> None:
    take_records(store, tmp_path, [entity("C", "language"), entity("C", "note")])

    report = take_records(store, tmp_path, [about("a", name="C")], SECOND_CLOCK, name="a")

    [found] = report.findings
    assert found.rule == "ambiguous-name"
    assert "'C' (language, global), 'C' (note, global)" in found.message
    assert report.counts["memory"].rejected == 1


def test_the_newest_is_judged_after_the_declarations_of_the_run(store: Store, tmp_path: Path) -> None:
    take_records(store, tmp_path, [entity("C", "language"), entity("C", "note")])
    records = [about("a", name="C"), entity("C", "language", description="now")]

    take_records(
        store, tmp_path, records, SECOND_CLOCK, name="a", choices=Choices(on_ambiguous="newest"), batch_size=1
    )

    assert links(store) == {"a": [("C", "language")]}


def test_a_reference_by_words_resolves_with_a_note(store: Store, tmp_path: Path) -> None:
    report = take_records(store, tmp_path, [entity("AuthService"), about("a", name="auth service")])

    assert links(store) == {"a": [("AuthService", "")]}
    assert report.findings.by_rule == {"resolved-by-words": 1}


def test_a_reference_by_id(store: Store, tmp_path: Path) -> None:
    records = [
        about("a", id="c"),
        entity("C", id="c"),
        entity("C", id="also c"),
        about("b", id="also c", name="whatever"),
        about("c", id="no such id", name="C"),
        about("d", id="no such id"),
    ]

    report = take_records(store, tmp_path, records, batch_size=1)

    assert links(store) == {"a": [("C", "")], "b": [("C", "")], "c": [("C", "")]}
    assert report.findings.by_rule == {"dangling-reference": 1}
