"""The recipe `near`: what is closer to one entity comes first, and nothing is lost for being far."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from search_store import NOW, SmallStore, SynonymEncoder

from graphmem.errors import EntityNotFound, UsageError
from graphmem.recall import Answer, Query, search
from graphmem.store.filters import Filters
from graphmem.store.neighbourhood import HUB
from graphmem.store.search import Searcher

EVERYWHERE = Filters(NOW)


def ask(
    store: SmallStore, text: str, near: str | None, filters: Filters = EVERYWHERE, **options: Any
) -> Answer:
    query = Query(text, filters, recipe="near", near=near, **options)
    return search(Searcher(store.db, filters), query, store.encoder)


def distances(rows: list[dict[str, Any]]) -> dict[str, int | None]:
    return {row["id"]: row["channels"].get("near", {}).get("rank") for row in rows}


@pytest.fixture
def store() -> SmallStore:
    return SmallStore(encoder=SynonymEncoder())


@pytest.fixture
def chain(store: SmallStore) -> SmallStore:
    """Four entities in a row, each with a memory about it that says the same."""
    names = ["Ann", "Bob", "Cid", "Dan"]
    entities = [store.entity(name, id_=name) for name in names]
    for near, far in pairwise(entities):
        store.relation(near, "knows", far, id_=f"{near}-{far}")
    for name, entity in reversed(list(zip(names, entities, strict=True))):
        store.memory("the red car", about=[entity], id_=f"of {name}")
    store.memory("the red car", id_="of nobody")
    return store


def test_memories_come_by_their_distance_from_the_entity(chain: SmallStore) -> None:
    answer = ask(chain, "red car", "Ann")

    assert [hit["id"] for hit in answer.hits[:3]] == ["of Ann", "of Bob", "of Cid"]
    assert distances(answer.hits) == {
        "of Ann": 1,
        "of Bob": 2,
        "of Cid": 3,
        "of Dan": None,
        "of nobody": None,
    }
    assert answer.recipe == "near"


def test_the_distance_is_that_from_the_entity_named(chain: SmallStore) -> None:
    assert [hit["id"] for hit in ask(chain, "red car", "Cid").hits[:2]] == ["of Cid", "of Bob"]


def test_facts_and_entities_come_by_distance_too(chain: SmallStore) -> None:
    answer = ask(chain, "knows", "Dan")

    assert (answer.facts[0]["subject"], answer.facts[0]["object"]) == ("Cid", "Dan")
    assert ask(chain, "Ann Bob Cid Dan", "Cid").entities[0]["id"] == "Cid"


def test_an_entity_is_named_by_its_id_or_its_name(chain: SmallStore) -> None:
    chain.entity("Mercury", "planet", id_="planet")
    chain.entity("Mercury", "metal", id_="metal")

    assert ask(chain, "red car", " ann ").hits[0]["id"] == "of Ann"
    assert any("could also be" in note for note in ask(chain, "red car", "Mercury").notes)
    assert ask(chain, "red car", "metal").notes == []
    with pytest.raises(EntityNotFound):
        ask(chain, "red car", "Nobody")


def test_a_better_answer_is_not_lost_for_being_a_step_farther(chain: SmallStore) -> None:
    one = chain.db.execute("SELECT pk FROM entity WHERE id = 'Bob'").get
    chain.memory("the blue bicycle with the broken bell", about=[int(one)], id_="bicycle")
    chain.memory("a thing about some bell", about=[int(one) - 1], id_="bell")

    assert ask(chain, "blue bicycle broken bell", "Ann").hits[0]["id"] == "bicycle"


def test_an_entity_that_very_many_memories_hold_is_near_to_them(store: SmallStore) -> None:
    hub = store.entity("Hub", id_="hub")
    for number in range(HUB + 50):
        store.memory("the red car", about=[hub], id_=f"m{number:03}")
    store.memory("the red car", id_="a stranger")

    answer = ask(store, "red car", "hub", limit=3)

    assert [hit["id"] for hit in answer.hits] == ["m000", "m001", "m002"]
    assert answer.hits[0]["channels"]["near"]["rank"] == 1


def test_what_another_scope_holds_brings_nothing_nearer(store: SmallStore) -> None:
    here = Filters(NOW, scopes=("repo:/a",))
    ann = store.entity("Ann", scope="repo:/a", id_="Ann")
    bob = store.entity("Bob", scope="repo:/a", id_="Bob")
    hidden = store.entity("Hid", scope="repo:/b", id_="Hid")
    store.relation(ann, "knows", bob, "repo:/b")
    store.relation(ann, "knows", hidden, "repo:/b")
    store.memory("the red car", ["repo:/b"], about=[ann, bob])
    store.memory("the red car", ["repo:/a"], about=[bob], id_="of Bob")

    (hit,) = ask(store, "red car", "Ann", here).hits

    assert (hit["id"], hit["channels"].get("near")) == ("of Bob", None)
    with pytest.raises(EntityNotFound):
        ask(store, "red car", "Hid", here)


def test_pages_add_up_beyond_what_is_ordered_anew(store: SmallStore) -> None:
    ann = store.entity("Ann", id_="Ann")
    for number in range(300):
        store.memory(f"red car {number}", about=[ann] if number % 3 == 0 else [], id_=f"{number:03}")

    whole = ask(store, "red car", "Ann", limit=400)
    pages = [
        hit["id"]
        for at in range(0, 300, 50)
        for hit in ask(store, "red car", "Ann", limit=50, offset=at).hits
    ]

    assert pages == [hit["id"] for hit in whole.hits]
    assert len(set(pages)) == 300
    scores = [hit["score"] for hit in whole.hits]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(("recipe", "near"), [("near", None), ("hybrid", "Ann")])
def test_the_recipe_and_its_entity_go_together(chain: SmallStore, recipe: Any, near: str | None) -> None:
    query = Query("red car", EVERYWHERE, recipe=recipe, near=near)

    with pytest.raises(UsageError):
        search(Searcher(chain.db, EVERYWHERE), query, chain.encoder)
