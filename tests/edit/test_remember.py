"""Remembering: records of a person or an agent go the line of an import, as one batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from acts_machine import state, unlike, wrong
from editing import batches, column, counts
from hash_encoder import HashEncoder
from importing import take_records

from graphmem.edit.forget import forget
from graphmem.edit.references import referring
from graphmem.edit.remember import remember
from graphmem.errors import EncoderError, EntityNotFound
from graphmem.store import Store

SAID: dict[str, Any] = {"type": "memory", "content": "Keys rotate weekly.", "about": ["AuthService"]}


def test_a_memory_an_entity_and_a_relation_are_one_batch_with_vectors(
    store: Store, encoder: HashEncoder
) -> None:
    given: list[Any] = [
        SAID,
        {"type": "entity", "name": "Vault", "kind": "service"},
        ["AuthService", "uses", "Vault"],
    ]
    report, told = remember(store, given, scope="global", encoder=encoder)

    assert [one.status for one in told] == ["created"] * 3
    assert [one.type for one in told] == ["memory", "entity", "relation"]
    assert len(report.batches) == 1
    assert counts(store) == [5, 3, 2]
    assert wrong(store) == []


def test_what_is_known_is_told_with_its_id_and_writes_no_batch(store: Store, encoder: HashEncoder) -> None:
    _, first = remember(store, [SAID], scope="global", encoder=encoder)
    before = state(store)
    _, again = remember(store, [SAID], scope="global", encoder=encoder)

    assert (again[0].status, again[0].id) == ("unchanged", first[0].id)
    assert unlike(before, state(store)) == []
    assert batches(store) == 2


def test_what_says_more_of_a_memory_is_merged_into_it(store: Store, encoder: HashEncoder) -> None:
    _, first = remember(store, [SAID], scope="global", encoder=encoder)
    _, more = remember(store, [SAID | {"tags": ["keys"]}], scope="global", encoder=encoder)

    assert (more[0].status, more[0].id) == ("merged", first[0].id)
    assert column(store, "memory", str(first[0].id), "tags") == '["keys"]'
    assert wrong(store) == []


def test_good_records_are_stored_beside_one_that_is_refused(store: Store, encoder: HashEncoder) -> None:
    _, told = remember(
        store, [{"type": "memory"}, SAID, SAID | {"about": ["Mercury"]}], scope="global", encoder=encoder
    )

    assert [one.status for one in told] == ["rejected", "created", "rejected"]
    assert "missing-key" in told[0].problems[0]
    assert "ambiguous-name" in told[2].problems[0]
    assert "planet" in told[2].problems[0]


def test_a_strict_call_with_one_bad_record_stores_nothing(store: Store, encoder: HashEncoder) -> None:
    before = state(store)
    _, told = remember(store, [SAID, {"type": "memory"}], scope="global", encoder=encoder, strict=True)

    assert told[1].status == "rejected"
    assert unlike(before, state(store)) == []


def test_what_was_forgotten_comes_back_when_it_is_said_again(store: Store, encoder: HashEncoder) -> None:
    _, told = remember(store, [SAID], scope="global", encoder=encoder)
    id_ = str(told[0].id)
    forget(store, [id_], None)
    remember(store, [SAID], scope="global", encoder=encoder)

    assert column(store, "memory", id_, "state") == "active"
    assert wrong(store) == []


def test_an_encoder_that_fails_stores_nothing(store: Store) -> None:
    before = state(store)
    with pytest.raises(EncoderError):
        remember(store, [SAID], scope="global", encoder=HashEncoder(fails_at=1))

    assert unlike(before, state(store)) == []


def test_a_store_is_made_only_when_there_is_something_to_store(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    _, told = remember(lambda: Store(path, write=True), [{"type": "memory"}], scope="global")

    assert told[0].status == "rejected"
    assert not path.exists()


def test_a_text_that_is_the_id_of_an_entity_refers_by_it(store: Store) -> None:
    assert referring(store, "auth", "global") == {"id": "auth"}
    assert referring(store, "AuthService", "global") == "AuthService"
    assert referring(store, "Mercury", "global", "metal") == {"name": "Mercury", "kind": "metal"}
    assert referring(store, "auth service", "global", existing=True) == {"id": "auth"}
    with pytest.raises(EntityNotFound) as refused:
        referring(store, "AuthServise", "global", existing=True)
    assert refused.value.suggestions == ("AuthService",)


def test_a_forgotten_entity_that_is_spoken_of_again_comes_back(store: Store) -> None:
    forget(store, ["AuthService"], None)
    remember(store, [["AuthService", "likes", "Tea"]], scope="global")

    assert column(store, "entity", "auth", "state") == "active"


def test_an_import_that_refers_to_a_forgotten_entity_says_so(store: Store, tmp_path: Path) -> None:
    forget(store, ["AuthService"], None)
    report = take_records(store, tmp_path, [["AuthService", "likes", "Tea"]], name="tea")

    assert report.findings.by_rule["refers-to-archived"] == 1
    assert column(store, "entity", "auth", "state") == "archived"
