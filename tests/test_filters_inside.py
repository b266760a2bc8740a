"""What a filter leaves out never takes a place: 200 better rows of another kind stand above 3 right ones."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from search_store import NOW, SmallStore, SynonymEncoder

from graphmem.recall import Query, Recipe, search
from graphmem.store.filters import Filters, Kind
from graphmem.store.mentions import Mentions
from graphmem.store.search import Searcher

BETTER = 200
RIGHT = {"right1", "right2", "right3"}
EARLY, LATE = "2026-01-01T00:00:00.000Z", "2026-05-01T00:00:00.000Z"
BEFORE, AFTER = "2026-02-01T00:00:00.000Z", "2026-04-01T00:00:00.000Z"

# What is filtered by, what the right memories are, what the better ones are. 'kin' stands for an entity.
MEMORIES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "scopes": ({"scopes": ("global",)}, {"scopes": ["global"]}, {"scopes": ["topic:other"]}),
    "kinds": ({"kinds": ("person",)}, {"about": ["kin"]}, {"about": ["tool"]}),
    "memory_types": ({"memory_types": ("decision",)}, {"memory_type": "decision"}, {}),
    "tags": ({"tags": ("wanted", "x")}, {"tags": ["wanted"]}, {"tags": ["other"]}),
    "since": ({"since": AFTER}, {"valid_at": LATE}, {"valid_at": EARLY}),
    "until": ({"until": BEFORE}, {"created_at": EARLY}, {"valid_at": LATE, "created_at": EARLY}),
    "entity": ({"entity": "kin"}, {"about": ["kin"]}, {"about": ["tool"]}),
    "source": ({"source": "a.md"}, {"source": "a.md"}, {"source": "b.md"}),
    "holding": ({}, {}, {"invalid_at": EARLY}),
    "expired": ({}, {"expired_at": "2027-01-01T00:00:00.000Z"}, {"expired_at": EARLY}),
    "active": ({"state": "active"}, {}, {"state": "archived"}),
    "archived": ({"state": "archived"}, {"state": "archived"}, {}),
    "several": (
        {"tags": ("wanted",), "since": AFTER, "scopes": ("global",), "kinds": ("person",)},
        {"tags": ["wanted"], "valid_at": LATE, "about": ["kin"]},
        {"tags": ["wanted"], "valid_at": EARLY, "about": ["kin"]},
    ),
}
SOURCED = {"lexical": "lexical", "semantic": "semantic", "hybrid": "lexical"}


def with_entities(store: SmallStore) -> dict[str, int]:
    return {"kin": store.entity("Kin", "person", id_="kin"), "tool": store.entity("Tool", "tool", id_="tool")}


def with_numbers(fields: dict[str, Any], entities: dict[str, int]) -> dict[str, Any]:
    return fields | ({"about": [entities[name] for name in fields["about"]]} if "about" in fields else {})


def asked(store: SmallStore, text: str, recipe: Recipe, filters: Filters) -> list[dict[str, Any]]:
    ask = Searcher(store.db, filters)
    query = Query(text, filters, limit=BETTER + 50, recipe=recipe)
    return search(ask, query, store.encoder).hits


@pytest.mark.parametrize("name", MEMORIES)
@pytest.mark.parametrize("recipe", SOURCED)
def test_words_and_meaning_find_the_right_memories_below_better_ones(name: str, recipe: Recipe) -> None:
    wanted, right, better = MEMORIES[name]
    store = SmallStore(encoder=SynonymEncoder())
    entities = with_entities(store)
    with store.db:
        for number in range(BETTER):
            store.memory("car car", id_=f"better{number}", **with_numbers(better, entities))
        for id_ in sorted(RIGHT):
            store.memory(
                "a car and much else besides, here and there", id_=id_, **with_numbers(right, entities)
            )

    hits = asked(store, "car", recipe, Filters(NOW, **wanted))
    everything = asked(store, "car", recipe, Filters(NOW, state="all"))

    assert {hit["id"] for hit in hits} == RIGHT
    assert all(SOURCED[recipe] in hit["channels"] for hit in hits)
    assert {hit["id"] for hit in everything[-3:]} == RIGHT
    assert len(everything) == BETTER + 3


# Only what holds is walked through, so that the graph never leads to what was archived.
@pytest.mark.parametrize("name", [name for name in MEMORIES if name != "archived"])
def test_the_graph_finds_the_right_memories_below_better_ones(name: str) -> None:
    """No memory has a word of the query or a vector: all belong to entities that the query names."""
    wanted, right, better = MEMORIES[name]
    store = SmallStore()
    entities = with_entities(store)
    names = [f"Place{number}" for number in range(4)]
    places = [store.entity(name, "place") for name in names]
    Mentions(store.db).add_names(zip(places, names, strict=True))
    with store.db:
        for number in range(BETTER):
            fields = with_numbers(better, entities)
            store.memory("better", id_=f"better{number}", **fields)
            store.db.execute(
                "INSERT INTO memory_link SELECT max(pk), ?, 0 FROM memory", (places[number % len(places)],)
            )
        for id_ in sorted(RIGHT):
            store.memory("right", id_=id_, **with_numbers(right, entities), mentions=places[:1])

    hits = asked(store, " ".join(names), "graph", Filters(NOW, **wanted))

    assert {hit["id"] for hit in hits} == RIGHT
    assert all("graph" in hit["channels"] for hit in hits)


OTHERS: list[tuple[Kind, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ("entity", {"scopes": ("global",)}, {}, {"scope": "topic:other"}),
    ("entity", {"kinds": ("person",)}, {"kind": "person"}, {"kind": "tool"}),
    ("entity", {}, {}, {"state": "archived"}),
    ("relation", {"scopes": ("global",)}, {}, {"scope": "topic:other"}),
    ("relation", {"kinds": ("person",)}, {"ends": "kin"}, {}),
    ("relation", {"entity": "kin"}, {"ends": "kin"}, {}),
    ("relation", {"since": AFTER}, {"valid_at": LATE}, {"valid_at": EARLY}),
    ("relation", {"until": BEFORE}, {"valid_at": EARLY}, {"valid_at": LATE}),
    ("relation", {}, {}, {"invalid_at": EARLY}),
    ("relation", {"state": "archived"}, {"state": "archived"}, {}),
]


@pytest.mark.parametrize(("kind", "wanted", "right", "better"), OTHERS)
@pytest.mark.parametrize("channel", ["lexical", "semantic"])
def test_entities_and_facts_are_found_below_better_ones(
    kind: Kind,
    wanted: dict[str, Any],
    right: dict[str, Any],
    better: dict[str, Any],
    channel: Literal["lexical", "semantic"],
) -> None:
    store = SmallStore(encoder=SynonymEncoder())
    entities = with_entities(store)
    with store.db:
        for number in range(BETTER):
            add(store, kind, f"car {number}", f"better{number}", better, entities)
        for id_ in sorted(RIGHT):
            add(store, kind, f"car {id_} besides", id_, right, entities)
    assert store.encoder is not None
    vector = store.encoder.encode(["car"], "query")[0]
    ask = Searcher(store.db, Filters(NOW, **wanted))
    assert ask.has_vectors

    rows = (
        ask.lexical(kind, '"car"', depth=3).rows
        if channel == "lexical"
        else ask.nearest(kind, vector, depth=3)
    )

    assert {row.id for row in rows} == RIGHT


def add(
    store: SmallStore, kind: Kind, text: str, id_: str, fields: dict[str, Any], entities: dict[str, int]
) -> None:
    if kind == "entity":
        store.entity(text, id_=id_, **fields)
        return
    given = {name: value for name, value in fields.items() if name != "ends"}
    one = entities[fields.get("ends", "tool")]
    store.relation(one, f"has {id_}", entities["tool"], fact=text, id_=id_, **given)
