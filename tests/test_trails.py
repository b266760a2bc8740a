"""What the graph found comes with the way that leads there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from search_store import NOW, SmallStore

from graphmem.recall import Answer, Query, search
from graphmem.store.filters import Filters
from graphmem.store.search import Searcher
from graphmem.trails import trail

LINKS = {
    1: [(2, 1.0), (3, 2.0)],
    2: [(1, 1.0), (4, 1.0)],
    3: [(1, 1.0), (4, 1.0)],
    4: [(2, 1.0), (3, 1.0), (5, 1.0)],
}


def links(nodes: Sequence[int]) -> dict[int, list[tuple[int, float]]]:
    return {node: LINKS.get(node, []) for node in nodes}


def test_a_shortest_way_leads_from_a_beginning_to_the_node() -> None:
    assert trail(1, {4}, links) == [4, 3, 1]  # over the heavier link
    assert trail(1, {4, 2}, links) == [2, 1]
    assert trail(1, {1, 5}, links) == [5, 4, 3, 1]


def test_there_is_no_way_where_none_is_short_enough() -> None:
    assert trail(1, {5}, links, steps=2) == []
    assert trail(1, {9}, links) == []
    assert trail(7, {1}, links) == []


def ask(store: SmallStore, text: str, filters: Filters, **options: Any) -> Answer:
    return search(Searcher(store.db, filters), Query(text, filters, explain=True, **options), None)


def _store() -> SmallStore:
    store = SmallStore()
    ann, lab = store.entity("Ann", "person", id_="ann"), store.entity("Lab", "place", id_="lab")
    store.relation(ann, "works_at", lab, id_="works")
    store.memory("Ann repairs bicycles", about=[ann], memory_type="note", id_="named")
    store.memory("the roof is leaking", about=[lab], id_="far")
    return store


def test_a_memory_that_the_walk_found_says_how_it_was_reached() -> None:
    answer = ask(_store(), "what about bicycles", Filters(NOW), recipe="graph")

    found = {hit["id"]: hit["channels"] for hit in answer.hits}

    assert "lexical" not in found["far"]
    assert [step.get("name") or step["memory"] for step in found["far"]["graph"]["path"]] == [
        "named", "Ann", "Lab"
    ]  # fmt: skip
    assert found["far"]["graph"]["path"][1] == {"entity": "ann", "name": "Ann", "kind": "person"}


def test_a_way_may_lead_over_what_is_no_answer_itself() -> None:
    answer = ask(_store(), "roof", Filters(NOW, memory_types=("observation",)), recipe="near", near="Ann")

    assert [step["name"] for step in answer.hits[0]["channels"]["near"]["path"]] == ["Ann", "Lab"]


def test_entities_and_facts_say_how_near_they_are_by_the_graph() -> None:
    answer = ask(_store(), "lab works", Filters(NOW), recipe="near", near="Ann")

    (entity,), (fact,) = answer.entities, answer.facts
    assert [step["name"] for step in entity["channels"]["near"]["path"]] == ["Ann"]
    assert [step["name"] for step in fact["channels"]["near"]["path"]] == ["Ann"]


def test_without_explaining_no_way_is_looked_for() -> None:
    filters = Filters(NOW)
    answer = search(Searcher(_store().db, filters), Query("roof", filters, recipe="near", near="Ann"), None)

    assert "path" not in answer.hits[0]["channels"]["near"]
