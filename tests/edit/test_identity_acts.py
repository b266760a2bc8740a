"""Renaming, aliases and merging: the old name and id lead to the entity, in imports too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from acts_machine import exported, state, unlike, wrong
from editing import RECORDS, column, counts
from hash_encoder import HashEncoder
from importing import in_memory, take, take_records

from graphmem.edit.identity import alias, merge, rename
from graphmem.edit.remember import remember
from graphmem.errors import EditRefused, LookupFailed
from graphmem.lookup import meant
from graphmem.store import Store
from graphmem.store.lookup import Names


def _means(store: Store, name: str) -> str:
    return meant(Names(store.db, None), name)[0].id


def test_a_renamed_entity_is_found_by_both_names(store: Store, encoder: HashEncoder) -> None:
    done = rename(store, "AuthService", "Gatekeeper", None, encoder=encoder)

    assert (done.id, done.status) == ("auth", "updated")
    assert (_means(store, "Gatekeeper"), _means(store, "AuthService")) == ("auth", "auth")
    assert wrong(store) == []


def test_what_shows_the_name_is_encoded_again(store: Store, encoder: HashEncoder) -> None:
    rename(store, "AuthService", "Gatekeeper", None, encoder=encoder)

    assert len(encoder.encoded) == 3  # the entity and two memories about it; the relation has a sentence
    assert all("Gatekeeper" in text for text in encoder.encoded)


def test_a_changed_file_that_has_the_old_name_goes_to_the_renamed_entity(
    store: Store, tmp_path: Path, encoder: HashEncoder
) -> None:
    rename(store, "AuthService", "Gatekeeper", None, encoder=encoder)
    more = [RECORDS[0] | {"description": "Lets people in."}, ["AuthService", "uses", "PostgresDB"]]
    report = take_records(store, tmp_path, [*RECORDS, *more], encoder=encoder)

    assert counts(store) == [4, 2, 2]
    assert (
        report.counts["entity"].updated == 2
        or column(store, "entity", "auth", "description") == "Lets people in."
    )
    assert column(store, "entity", "auth", "name") == "Gatekeeper"
    assert wrong(store) == []


def test_a_name_of_the_same_kind_that_is_taken_is_refused(store: Store, encoder: HashEncoder) -> None:
    remember(store, [{"type": "entity", "name": "Other", "kind": "service"}], scope="global", encoder=encoder)
    before = state(store)
    with pytest.raises(EditRefused) as refused:
        rename(store, "Other", "AuthService", None, encoder=encoder)

    assert "auth" in refused.value.hint
    assert unlike(before, state(store)) == []


def test_renaming_back_leaves_both_names(store: Store, encoder: HashEncoder) -> None:
    rename(store, "AuthService", "Gatekeeper", None, encoder=encoder)
    rename(store, "auth", "AuthService", None, encoder=encoder)

    assert (_means(store, "Gatekeeper"), _means(store, "AuthService")) == ("auth", "auth")
    assert wrong(store) == []


def test_a_former_name_can_be_given_to_another(store: Store, encoder: HashEncoder) -> None:
    rename(store, "AuthService", "Gatekeeper", None, encoder=encoder)
    remember(
        store,
        [{"type": "entity", "name": "New", "kind": "service", "id": "new"}],
        scope="global",
        encoder=encoder,
    )
    rename(store, "New", "AuthService", None, encoder=encoder)

    assert _means(store, "AuthService") == "new"
    assert wrong(store) == []


def test_an_alias_resolves_until_it_is_taken_away(store: Store, encoder: HashEncoder) -> None:
    alias(store, "AuthService", ["SSO"], [], None, encoder=encoder)
    assert _means(store, "SSO") == "auth"

    alias(store, "auth", [], ["SSO", "login"], None, encoder=encoder)
    with pytest.raises(LookupFailed):
        _means(store, "login")
    assert wrong(store) == []


# ---- merging --------------------------------------------------------------------------------------

TWO: list[dict[str, Any]] = [
    {"type": "entity", "name": "Auth", "kind": "component", "id": "auth2", "description": "A door.",
     "aliases": ["entry"], "properties": {"tier": 2, "owner": "Mira"}},
    {"type": "memory", "id": "m3", "content": "Doors have locks.", "about": ["Auth"]},
    {"type": "memory", "id": "m4", "content": "Tokens expire after an hour.", "about": ["Auth"]},
    {"type": "relation", "id": "r2", "subject": "Auth", "predicate": "DEPENDS ON", "object": "PostgresDB",
     "weight": 1},
    {"type": "relation", "id": "r3", "subject": "Auth", "predicate": "part of", "object": "AuthService"},
    {"type": "relation", "id": "r4", "subject": "Auth", "predicate": "owns", "object": "Auth"},
]  # fmt: skip


@pytest.fixture
def two(store: Store, tmp_path: Path, encoder: HashEncoder) -> Store:
    take_records(store, tmp_path, TWO, name="two", encoder=encoder)
    return store


def test_merging_moves_unites_and_drops_and_counts_it(two: Store, encoder: HashEncoder) -> None:
    done = merge(two, "Auth", "AuthService", None, encoder=encoder)

    assert {key: done[key] for key in ("memories", "memories_united", "relations", "relations_united", "loops_dropped")} == {
        "memories": 1, "memories_united": 1, "relations": 1, "relations_united": 1, "loops_dropped": 1,
    }  # fmt: skip
    assert (_means(two, "Auth"), _means(two, "auth2"), _means(two, "entry")) == ("auth", "auth", "auth")
    assert column(two, "relation", "r1", "weight") == 1
    assert column(two, "memory", "m3", "state") == "active"
    assert wrong(two) == []


def test_both_descriptions_and_all_properties_are_kept(two: Store, encoder: HashEncoder) -> None:
    merge(two, "Auth", "AuthService", None, encoder=encoder)

    assert column(two, "entity", "auth", "description") == "Signs people in.\n\nA door."
    assert json.loads(column(two, "entity", "auth", "properties")) == {
        "tier": 1, "lang": "C++", "owner": "Mira", "merged": {"Auth": {"tier": 2}},
    }  # fmt: skip
    assert json.loads(column(two, "entity", "auth", "aliases")) == ["Auth", "entry", "login"]


def test_importing_the_files_again_after_a_merge_changes_nothing(
    two: Store, tmp_path: Path, encoder: HashEncoder
) -> None:
    merge(two, "Auth", "AuthService", None, encoder=encoder)
    before = state(two)
    for name, records in (("records", RECORDS), ("two", TWO)):
        assert not take_records(two, tmp_path, records, name=name, encoder=encoder).batches

    assert unlike(before, state(two)) == []


def test_a_changed_file_follows_the_merge(two: Store, tmp_path: Path, encoder: HashEncoder) -> None:
    merge(two, "Auth", "AuthService", None, encoder=encoder)
    more = [
        TWO[0] | {"properties": {"floor": 3}},
        {"type": "memory", "content": "A new one.", "about": ["Auth"]},
    ]
    take_records(two, tmp_path, more, name="two", encoder=encoder)

    assert counts(two)[0] == 4
    assert json.loads(column(two, "entity", "auth", "properties"))["floor"] == 3
    linked = two.db.execute(
        "SELECT e.id FROM memory AS m JOIN memory_link AS l ON l.memory = m.pk "
        "JOIN entity AS e ON e.pk = l.entity WHERE m.content = 'A new one.'"
    ).fetchall()
    assert linked == [("auth",)]
    assert wrong(two) == []


def test_an_export_carries_edits_renames_and_merges(two: Store, tmp_path: Path, encoder: HashEncoder) -> None:
    from graphmem.edit.forget import forget
    from graphmem.edit.update import Update, update

    update(
        two,
        "m1",
        Update(set={"title": "T"}, remove={"tags": ["auth"]}, clear=["importance"]),
        None,
        encoder=encoder,
    )
    merge(two, "Auth", "AuthService", None, encoder=encoder)
    rename(two, "PostgresDB", "Postgres", None, encoder=encoder)
    forget(two, ["metal"], None)
    path = tmp_path / "export.jsonl"
    path.write_bytes(exported(two))

    with in_memory() as other:
        take(other, path, encoder=encoder)
        assert unlike(state(two), state(other)) == []
        # And the files that said otherwise are known there too.
        for name, records in (("records", RECORDS), ("two", TWO)):
            assert not take_records(other, tmp_path, records, name=name, encoder=encoder).batches
        assert unlike(state(two), state(other)) == []


def test_an_entity_is_not_merged_with_itself_nor_across_scopes(two: Store, encoder: HashEncoder) -> None:
    remember(
        two, [{"type": "entity", "name": "Far", "scope": "project:b"}], scope="project:b", encoder=encoder
    )
    before = state(two)
    for old, new in (("auth", "AuthService"), ("auth", "Far")):
        with pytest.raises(EditRefused):
            merge(two, old, new, None, encoder=encoder)

    assert unlike(before, state(two)) == []


def test_an_entity_of_a_scope_can_be_merged_into_a_global_one(two: Store, encoder: HashEncoder) -> None:
    given = [{"type": "entity", "name": "Far", "scope": "project:b"},
             {"type": "memory", "content": "far away", "about": ["Far"], "scopes": ["project:b"]}]  # fmt: skip
    remember(two, given, scope="project:b", encoder=encoder)
    done = merge(two, "Far", "AuthService", None, encoder=encoder)

    assert done["memories"] == 1
    assert wrong(two) == []
