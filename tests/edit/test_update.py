"""Changing items in place: what is said by hand holds, and what was said before is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from acts_machine import state, unlike, wrong
from editing import batches, column
from hash_encoder import HashEncoder

from graphmem.edit.update import Update, update
from graphmem.errors import AmbiguousName, EditRefused, EntityNotFound, UsageError
from graphmem.store import Store


def test_a_changed_text_gets_another_vector_and_full_text(store: Store, encoder: HashEncoder) -> None:
    done = update(store, "m1", Update(set={"content": "Tokens live for a day."}), None, encoder=encoder)

    assert (done.status, done.fields) == ("updated", ("content",))
    assert encoder.encoded == ["AuthService: Tokens live for a day."]
    assert store.db.execute("SELECT count(*) FROM memory_fts WHERE memory_fts MATCH 'expire'").get == 0
    assert store.db.execute("SELECT count(*) FROM memory_fts WHERE memory_fts MATCH 'day'").get == 1
    assert wrong(store) == []


def test_sets_gain_and_lose_members(store: Store, encoder: HashEncoder) -> None:
    wanted = Update(add={"tags": ["new"], "about": ["PostgresDB"]}, remove={"tags": ["time"]})
    done = update(store, "m1", wanted, None, encoder=encoder)

    assert done.fields == ("about", "tags")
    assert json.loads(column(store, "memory", "m1", "tags")) == ["auth", "new"]
    assert wrong(store) == []


def test_properties_are_set_and_taken_away_key_by_key(store: Store, encoder: HashEncoder) -> None:
    update(
        store, "auth", Update(properties={"port": 5432}, without_properties=["tier"]), None, encoder=encoder
    )

    assert json.loads(column(store, "entity", "auth", "properties")) == {"lang": "C++", "port": 5432}
    assert wrong(store) == []


def test_a_cleared_field_is_unknown(store: Store, encoder: HashEncoder) -> None:
    update(store, "auth", Update(clear=["description"]), None, encoder=encoder)

    assert column(store, "entity", "auth", "description") is None
    assert wrong(store) == []


@pytest.mark.parametrize(
    ("id_", "wanted"),
    [
        ("m1", Update(set={"content": "Tokens expire after an hour."})),
        ("m1", Update(add={"tags": ["auth"]}, remove={"tags": ["never there"]})),
        ("auth", Update(set={"description": "Signs people in."}, without_properties=["never there"])),
        ("r1", Update(set={"weight": 0.5}, clear=["stated_by"])),
        ("auth", Update(set={"state": "active"})),
    ],
)
def test_what_is_so_already_writes_no_batch(
    store: Store, encoder: HashEncoder, id_: str, wanted: Update
) -> None:
    before = state(store)
    done = update(store, id_, wanted, None, encoder=encoder)

    assert (done.status, done.batch, done.fields) == ("unchanged", None, ())
    assert batches(store) == 1
    assert unlike(before, state(store)) == []


@pytest.mark.parametrize(
    ("id_", "wanted", "word"),
    [
        ("m1", Update(), "nothing to change"),
        ("m1", Update(set={"fact": "x"}), "'fact'"),
        ("m1", Update(set={"importance": 7}), "'importance'"),
        ("m1", Update(set={"valid_at": "soon"}), "'valid_at'"),
        ("m1", Update(clear=["content"]), "cannot be cleared"),
        ("m1", Update(add={"title": ["x"]}), "no set"),
        ("m1", Update(remove={"scopes": ["global"]}), "at least one scope"),
        ("auth", Update(set={"name": " "}), "'name'"),
        ("auth", Update(set={"state": "asleep"}), "'state'"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    store: Store, id_: str, wanted: Update, word: str
) -> None:
    before = state(store)
    with pytest.raises(UsageError) as refused:
        update(store, id_, wanted, None)

    assert word in refused.value.message
    assert unlike(before, state(store)) == []


def test_a_memory_is_not_linked_to_what_its_scopes_do_not_see(store: Store) -> None:
    theirs: Any = {"type": "entity", "name": "Theirs", "scope": "project:b", "id": "theirs"}
    from graphmem.edit.remember import remember

    remember(store, [theirs], scope="project:b")
    with pytest.raises(EditRefused) as refused:
        update(store, "m1", Update(add={"about": ["theirs"]}), None)

    assert "project:b" in refused.value.message


def test_a_name_that_several_have_is_never_picked_from(store: Store) -> None:
    with pytest.raises(AmbiguousName) as refused:
        update(store, "Mercury", Update(set={"description": "x"}), None)

    assert "planet" in refused.value.hint
    assert "metal" in refused.value.hint
    assert update(store, "Mercury", Update(set={"description": "x"}), None, kind="metal").id == "metal"


def test_what_is_in_another_scope_is_not_there(store: Store) -> None:
    with pytest.raises(EntityNotFound):
        update(store, "m1", Update(set={"title": "x"}), ("project:b",))


def test_another_predicate_that_is_there_already_unites_two_relations(
    store: Store, encoder: HashEncoder
) -> None:
    from graphmem.edit.remember import remember

    remember(store, [{"type": "relation", "subject": "AuthService", "predicate": "uses", "object": "PostgresDB",
                      "id": "r2", "weight": 1}], scope="global", encoder=encoder)  # fmt: skip
    done = update(store, "r2", Update(set={"predicate": "DEPENDS ON"}), None, encoder=encoder)

    assert (done.status, done.id) == ("united", "r1")
    assert column(store, "relation", "r1", "weight") == 1
    assert column(store, "relation", "r1", "predicate_key") == "dependson"
    assert update(store, "r2", Update(set={"fact": "by its old id"}), None, encoder=encoder).id == "r1"
    assert wrong(store) == []


def test_a_change_is_kept_with_who_made_it(store: Store, encoder: HashEncoder) -> None:
    update(store, "m1", Update(set={"title": "Tokens"}), None, encoder=encoder, actor="mira")

    assert store.db.execute("SELECT command, actor FROM batch ORDER BY pk DESC LIMIT 1").fetchone() == (
        "update", "mira",
    )  # fmt: skip
    kept = json.loads(store.db.execute("SELECT before FROM version").get)
    assert kept["title"] is None
