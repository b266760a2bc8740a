"""Places: a memory is found by what stands around it too, and whoever holds all words comes first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from search_store import NOW, SmallStore, SynonymEncoder

from graphmem.places import LEAD, said
from graphmem.recall import Answer, Query, Recipe, search
from graphmem.store.filters import Filters
from graphmem.store.search import Searcher

EVERYWHERE = Filters(NOW)
MANY: tuple[Recipe, ...] = ("hybrid", "graph")


def ask(store: SmallStore, text: str, filters: Filters = EVERYWHERE, **options: Any) -> Answer:
    return search(Searcher(store.db, filters), Query(text, filters, **options), store.encoder)


def ids(answer: Answer) -> list[str]:
    return [hit["id"] for hit in answer.hits]


@pytest.fixture(params=[None, SynonymEncoder], ids=["by words", "by words and meaning"])
def store(request: pytest.FixtureRequest) -> SmallStore:
    return SmallStore(encoder=request.param and request.param())


def conversation(store: SmallStore, source: str, texts: list[str], **fields: Any) -> None:
    for position, text in enumerate(texts):
        store.memory(text, source=source, position=position, id_=f"{source}{position}", **fields)


# ---- how much a text says ---------------------------------------------------------------------------


def test_a_long_text_says_more_than_a_short_one_and_none_all() -> None:
    texts = [
        "",
        "Yes.",
        "Yes, on Friday.",
        "Yes, on Friday, at the harbour, with the two dogs.",
        "word " * 500,
    ]

    figures = [said(text) for text in texts]

    assert figures == sorted(figures)
    assert figures[0] == 0 < figures[1]
    assert figures[-1] < 1


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("How are you?", ""),
        ("I am fine. And you? Good.", "I am fine. Good."),
        ("A boat.\n“What is it?”", "A boat."),
        ("元気ですか？元気です。", "元気です。"),
        ("See https://example.org/a?b=c today", "See https://example.org/a?b=c today"),
    ],
)
def test_questions_say_nothing(text: str, stated: str) -> None:
    assert said(text) == pytest.approx(said(stated), abs=0.02)


# ---- what stands around -----------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", MANY)
def test_the_surroundings_hold_the_other_words(store: SmallStore, recipe: Recipe) -> None:
    conversation(store, "right", ["We were at the harbour all day long.", "The boat there is painted green."])
    conversation(store, "wrong", ["We were at the office all day long.", "The boat there is painted green."])

    found = ids(ask(store, "boat harbour", recipe=recipe))

    assert found.index("right1") < found.index("wrong1")


def test_what_has_no_word_of_the_query_is_found_beside_what_has(store: SmallStore) -> None:
    conversation(store, "talk", ["Whose zebra is that?", "It belongs to my uncle, who keeps several."])
    for number in range(300):
        store.memory(f"something else {number}")

    answer = ask(store, "zebra", limit=2)

    assert set(ids(answer)) == {"talk0", "talk1"}
    assert all(hit["channels"]["place"]["rank"] in (1, 2) for hit in answer.hits)


@pytest.mark.parametrize("recipe", ["lexical", "semantic"])
def test_single_channels_do_not_read_places(recipe: Recipe) -> None:
    store = SmallStore(encoder=SynonymEncoder())
    conversation(store, "talk", ["Whose zebra is that?", "It belongs to my uncle."])

    answer = ask(store, "zebra", recipe=recipe)

    assert all(set(hit["channels"]) == {recipe} for hit in answer.hits)


def test_another_scope_lends_nothing_to_its_neighbour(store: SmallStore) -> None:
    here = Filters(NOW, scopes=("repo:/a",))
    store.memory("The boat is green.", ["repo:/a"], source="x", position=1, id_="beside")
    store.memory("The boat is green.", ["repo:/a"], source="y", position=1, id_="alone")
    before = ask(store, "boat harbour", here)
    store.memory("We saw the harbour.", ["repo:/b"], source="x", position=0, id_="hidden")

    after = ask(store, "boat harbour", here)

    assert ids(after) == ids(before) == ["alone", "beside"]
    assert after.hits[0]["score"] == after.hits[1]["score"]


def test_what_the_filters_leave_out_is_context_and_never_an_answer(store: SmallStore) -> None:
    store.memory("We saw the harbour.", source="x", position=0, memory_type="note", id_="context")
    store.memory("The boat is green.", source="x", position=1, memory_type="decision", id_="beside")
    store.memory("The boat is green.", source="y", position=1, memory_type="decision", id_="alone")

    answer = ask(store, "boat harbour", replace(EVERYWHERE, memory_types=("decision",)))

    assert ids(answer) == ["beside", "alone"]
    assert answer.totals["hits"] == 2


def test_what_no_longer_holds_is_no_context(store: SmallStore) -> None:
    store.memory("We saw the harbour.", source="x", position=0, state="archived")
    store.memory("The boat is green.", source="x", position=1, id_="beside")
    store.memory("The boat is green.", source="y", position=1, id_="alone")

    answer = ask(store, "boat harbour")

    assert answer.hits[0]["score"] == answer.hits[1]["score"]


# ---- order, pages, totals ---------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", MANY)
def test_pages_of_what_was_read_in_places_add_up(store: SmallStore, recipe: Recipe) -> None:
    for number in range(LEAD):
        words = ["zebra", "crossing", "zebra crossing"][number % 3]
        conversation(
            store, f"talk{number:02}-", [f"Nothing {number}.", f"The {words} {number}.", "Indeed so."]
        )

    whole = ask(store, "zebra crossing", recipe=recipe, limit=200)
    pages: list[str] = []
    for offset in range(0, 100, 7):
        page = ask(store, "zebra crossing", recipe=recipe, limit=7, offset=offset)
        pages += ids(page)
        assert page.totals == whole.totals

    assert pages == ids(whole)
    assert len(set(pages)) == len(pages) == whole.totals["hits"] == 3 * LEAD
    scores = [hit["score"] for hit in whole.hits]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("recipe", MANY)
def test_the_order_does_not_depend_on_the_order_of_storing(recipe: Recipe) -> None:
    texts = [
        ("a", 0, "The harbour."),
        ("a", 1, "A boat, green."),
        ("b", 0, "A boat, green."),
        ("b", 1, "Yes."),
    ]
    orders = []
    for stored in (texts, texts[::-1]):
        store = SmallStore(encoder=SynonymEncoder())
        for source, position, text in stored:
            store.memory(text, source=source, position=position, id_=f"{source}{position}")
        answer = ask(store, "boat harbour", recipe=recipe)
        orders.append([(hit["id"], hit["score"]) for hit in answer.hits])

    assert orders[0] == orders[1]


# ---- many weak ones and one that is right -----------------------------------------------------------


@pytest.mark.parametrize("recipe", ["lexical", "hybrid", "graph"])
@pytest.mark.parametrize("fusion", ["sum", "rrf"])
@pytest.mark.parametrize("right", ["Rotate the signing key quarterly.", "rotate signing key quarterly"])
def test_many_weak_observations_never_outrank_one_exact_hit(
    store: SmallStore, recipe: Recipe, fusion: Any, right: str
) -> None:
    about = store.entity("key", "thing")
    weak = [
        "The key to the shed hangs behind the door, where it has been hanging for as long as anyone knows.",
        "They rotate the tyres of the lorry every year, and nobody has complained about it so far.",
        "She is signing books at the market on Saturday, together with two friends from her own village.",
        "He pays quarterly for the allotment, which is more than he would like to spend on vegetables.",
    ]
    for number in range(200):
        store.memory(
            f"{weak[number % 4]} No. {number}",
            about=[about],
            source="log",
            position=number,
            id_=f"w{number:03}",
        )
    store.memory(right, id_="right")

    answer = ask(store, "rotate signing key quarterly", recipe=recipe, fusion=fusion)

    assert ids(answer)[0] == "right"


@pytest.mark.parametrize("recipe", ["lexical", "hybrid", "graph"])
def test_a_quoted_phrase_comes_before_its_scattered_words(store: SmallStore, recipe: Recipe) -> None:
    for number in range(200):
        store.memory(f"A key for signing, and signing without a key, number {number}.", id_=f"w{number:03}")
    store.memory("The signing key.", id_="right")

    assert ids(ask(store, '"signing key"', recipe=recipe))[0] == "right"
