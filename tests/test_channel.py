"""The graph channel: mass and score decide together, and nothing hidden carries mass."""

from __future__ import annotations

from typing import Any

import pytest
from search_store import NOW, SmallStore, SynonymEncoder

from graphmem.channel import by_mass
from graphmem.fusion import Scored
from graphmem.recall import Answer, Query, search
from graphmem.store import warm
from graphmem.store.filters import Filters
from graphmem.store.neighbourhood import HUB, Neighbourhood, entity_node, memory_node
from graphmem.store.search import Ranked, Searcher

EVERYWHERE = Filters(NOW)
HERE = Filters(NOW, scopes=("repo:/a",))


def ask(store: SmallStore, text: str, filters: Filters = EVERYWHERE, **options: Any) -> Answer:
    query = Query(text, filters, recipe="graph", **options)
    return search(Searcher(store.db, filters), query, store.encoder)


@pytest.fixture(autouse=True, params=["few hidden", "many hidden"])
def looked_up(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is hidden is told one by one where it is little, and else by masks."""
    if request.param == "many hidden":
        monkeypatch.setattr("graphmem.store.filters.AT_ONCE", -1)


@pytest.fixture
def store() -> SmallStore:
    return SmallStore()


def test_mass_decides_where_scores_are_alike_and_scores_where_masses_are() -> None:
    order = [Scored(1, "a", 0.9), Scored(2, "b", 0.2), Scored(3, "c", 0.1)]
    reached = [Ranked(3, "c", 0.3, 1), Ranked(4, "d", 0.1, 2), Ranked(1, "a", 0.09, 3)]

    found = by_mass(order, reached)

    assert [one.id for one in found] == ["c", "a", "d", "b"]
    assert all(0 <= one.score <= 1 for one in found)


def test_what_the_walk_does_not_reach_keeps_its_order() -> None:
    order = [Scored(pk, f"{pk}", 1 - pk / 10) for pk in range(5)]

    assert [one.pk for one in by_mass(order, [])] == [0, 1, 2, 3, 4]


def test_an_entity_leads_to_a_memory_that_shares_no_word(store: SmallStore) -> None:
    ada = store.entity("Ada", id_="Ada")
    store.memory("The lantern protocol is written.", about=[ada], id_="first")
    store.memory("She grew up by the sea.", about=[ada], id_="second")
    store.memory("Nobody else is from there.", id_="stranger")

    answer = ask(store, "lantern protocol", explain=True)

    assert [hit["id"] for hit in answer.hits] == ["first", "second"]
    assert answer.totals["hits"] == 2
    assert answer.hits[1]["channels"]["graph"]["path"] == [
        {"memory": "first"},
        {"entity": "Ada", "name": "Ada", "kind": "unknown"},
    ]


def test_nothing_of_another_scope_carries_mass(store: SmallStore) -> None:
    ada = store.entity("Ada", scope="repo:/a")
    bob = store.entity("Bob", scope="repo:/a")
    store.memory("The lantern protocol is written.", ["repo:/a"], about=[ada], id_="first")
    store.memory("He grew up by the sea.", ["repo:/a"], about=[bob], id_="second")
    store.relation(ada, "knows", bob, "repo:/b")
    store.memory("They met long ago.", ["repo:/b"], about=[ada, bob], id_="hidden")

    assert [hit["id"] for hit in ask(store, "lantern protocol", HERE).hits] == ["first"]
    assert {hit["id"] for hit in ask(store, "lantern protocol").hits} == {"first", "second", "hidden"}


def test_what_is_hidden_makes_nothing_a_hub(store: SmallStore) -> None:
    ada = store.entity("Ada", scope="global")
    here = Filters(NOW, scopes=("repo:/a", "global"))
    store.memory("The lantern protocol is written.", ["repo:/a"], about=[ada], id_="first")
    store.memory("She grew up by the sea.", ["repo:/a"], about=[ada], id_="second")
    before = ask(store, "lantern protocol", here).hits
    for number in range(HUB + 1):
        store.memory(f"Something else, number {number}.", ["repo:/b"], about=[ada])

    after = ask(store, "lantern protocol", here).hits

    assert [hit["id"] for hit in after] == [hit["id"] for hit in before] == ["first", "second"]
    assert [hit["channels"]["graph"] for hit in after] == [hit["channels"]["graph"] for hit in before]


def test_what_very_many_memories_hold_leads_nowhere(store: SmallStore) -> None:
    hub = store.entity("Hub")
    store.memory("The lantern protocol is written.", about=[hub], id_="first")
    for number in range(HUB + 1):
        store.memory(f"Something else, number {number}.", about=[hub])

    assert [hit["id"] for hit in ask(store, "lantern protocol").hits] == ["first"]


def test_the_filters_leave_what_is_reached_out_of_the_answer_and_not_out_of_the_way(
    store: SmallStore,
) -> None:
    ada = store.entity("Ada")
    store.memory("The lantern protocol is written.", about=[ada], memory_type="note", id_="first")
    store.memory("The lantern is lit.", about=[ada], memory_type="decision", id_="second")

    answer = ask(store, "lantern protocol", Filters(NOW, memory_types=("decision",)))

    assert [hit["id"] for hit in answer.hits] == ["second"]


def test_sizes_are_about_as_many_as_the_links(store: SmallStore) -> None:
    ada, bob = store.entity("Ada"), store.entity("Bob")
    store.relation(ada, "knows", bob)
    for number in range(7):
        store.memory(f"m {number}", about=[ada])
    near = Neighbourhood(Searcher(store.db, EVERYWHERE))
    nodes = [entity_node(ada), entity_node(bob), memory_node(10)]

    sizes = near.sizes(nodes)

    links = near.links(nodes)
    assert [sizes[node] for node in nodes[:2]] == [len(links[node]) for node in nodes[:2]] == [8, 1]
    assert sizes[memory_node(10)] > 0


def test_by_ranks_alone_the_walk_works_too() -> None:
    store = SmallStore(encoder=SynonymEncoder())
    ada = store.entity("Ada")
    store.memory("The lantern protocol is written.", about=[ada], id_="first")
    store.memory("She grew up by the sea.", about=[ada], id_="second")

    assert ask(store, "lantern protocol", fusion="rrf").hits[0]["id"] == "first"


def test_links_do_not_depend_on_what_else_was_asked_for(store: SmallStore) -> None:
    hub, *sides = [store.entity(f"e{number}") for number in range(HUB * 3)]
    for number, side in enumerate(sides):
        memory = store.memory(f"Text {number}.")
        relation = store.relation(hub, "knows", side)
        pk = store.db.execute("SELECT pk FROM relation WHERE id = ?", (relation,)).get
        store.db.execute("INSERT INTO stated_by VALUES (?, ?)", (pk, memory))
    nodes = [entity_node(one) for one in (hub, *sides[:8])]

    together = Neighbourhood(Searcher(store.db, EVERYWHERE)).links(nodes)
    for node in nodes:
        warm._KEPT.clear()
        alone = Neighbourhood(Searcher(store.db, EVERYWHERE)).links([node])
        assert sorted(alone[node]) == sorted(together[node])
