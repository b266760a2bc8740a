"""Relevance can be compared between queries, and says when nothing is about one."""

from __future__ import annotations

from typing import Any

import pytest
from search_store import NOW, SmallStore, SynonymEncoder

from graphmem.recall import Answer, Query, Recipe, search
from graphmem.relevance import HARDLY_RELEVANT, VERDICT_DEPTH, relevance
from graphmem.store.filters import Filters
from graphmem.store.search import Searcher

EVERYWHERE = Filters(NOW)


def ask(store: SmallStore, text: str, **options: Any) -> Answer:
    return search(Searcher(store.db, EVERYWHERE), Query(text, EVERYWHERE, **options), store.encoder)


@pytest.fixture
def store() -> SmallStore:
    return SmallStore(encoder=SynonymEncoder())


# ---- the figure -------------------------------------------------------------------------------------


def test_relevance_grows_with_both_figures_and_stays_between_0_and_1() -> None:
    steps = [n / 10 for n in range(11)]
    for one in steps:
        assert [relevance(x, one) for x in steps] == sorted(relevance(x, one) for x in steps)
        assert [relevance(one, x) for x in steps] == sorted(relevance(one, x) for x in steps)
        assert 0 < relevance(one, None) < 1
        assert 0 < relevance(None, one) < 1
    assert relevance(None, None) == 0
    assert relevance(0.1, 0.0) < HARDLY_RELEVANT < 0.9 < relevance(0.6, 1.0)


def test_one_figure_alone_decides_too() -> None:
    assert relevance(0.2, None) < HARDLY_RELEVANT < relevance(0.5, None)
    assert relevance(None, 0.1) < HARDLY_RELEVANT < relevance(None, 0.5)


def test_facts_are_judged_more_strictly_than_memories_and_names_more_than_facts() -> None:
    for cosine, coverage in ((0.4, 0.3), (0.4, None), (None, 0.3)):
        of_entity, of_fact, of_memory = (
            relevance(cosine, coverage, kind) for kind in ("entity", "relation", "memory")
        )
        assert of_entity < of_fact < of_memory


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    store = SmallStore()
    for number in range(50):
        store.memory("common words here", id_=f"c{number:02}")
    store.memory("rare words here", id_="rare")

    answer = ask(store, "common rare", limit=60)
    by_id = {hit["id"]: hit["relevance"] for hit in answer.hits}

    assert by_id["rare"] > by_id["c00"]


# ---- the verdict on an answer -----------------------------------------------------------------------


def test_an_answer_says_when_nothing_is_about_the_query(store: SmallStore) -> None:
    store.memory("quite another thing")

    nothing, something = ask(store, "zebra crossing"), ask(store, "another thing")

    assert (nothing.relevant, nothing.as_dict()["relevant"]) == (False, False)
    assert len(nothing.hits) == 1
    assert nothing.best_relevance == nothing.hits[0]["relevance"] < HARDLY_RELEVANT
    assert (something.relevant, something.as_dict()["relevant"]) == (True, True)
    assert something.notes == nothing.notes == []


def test_by_words_alone_one_common_word_of_many_is_nothing_relevant() -> None:
    store = SmallStore()
    for number in range(20):
        store.memory(f"service number {number}")

    assert not ask(store, "zebra crossing accident report service").relevant
    assert ask(store, "service number").relevant


def test_an_empty_answer_has_nothing_relevant() -> None:
    assert (ask(SmallStore(), "car").relevant, ask(SmallStore(), "car").best_relevance) == (False, 0.0)


def test_a_fact_or_a_name_is_enough_to_be_relevant() -> None:
    store = SmallStore()
    auth, db = store.entity("AuthService"), store.entity("Postgres")
    store.relation(auth, "depends_on", db)

    assert ask(store, "what does AuthService depend on").relevant
    assert ask(store, "Postgres").relevant


@pytest.mark.parametrize("recipe", ["hybrid", "lexical", "semantic", "graph"])
def test_the_verdict_is_the_same_on_every_page_and_for_every_limit(store: SmallStore, recipe: Recipe) -> None:
    for number in range(3 * VERDICT_DEPTH):
        store.memory(f"the red car number {number}" if number < 3 else f"another red thing {number}")

    whole = ask(store, "red car number", recipe=recipe, limit=100)

    for options in ({"limit": 1}, {"limit": 3, "offset": 2}, {"offset": 9, "limit": 3}, {"offset": 20},
                    {"offset": 500}, {"min_score": 0.999}, {"min_score": 0.5, "limit": 1}):  # fmt: skip
        part = ask(store, "red car number", recipe=recipe, **options)
        assert (part.relevant, part.best_relevance) == (whole.relevant, whole.best_relevance), options
    assert [hit["id"] for hit in ask(store, "red car number", recipe=recipe, limit=4, offset=8).hits] == [
        hit["id"] for hit in whole.hits[8:12]
    ]


def test_where_nothing_relevant_is_here_it_says_what_has_the_words_elsewhere(store: SmallStore) -> None:
    store.memory("quite another thing", ["repo:/a"])
    store.memory("a zebra", ["repo:/b"])
    store.memory("a crossing", ["repo:/c"])
    store.memory("another thing elsewhere", ["repo:/c"])
    here = Filters(NOW, scopes=("repo:/a",))

    def answer(text: str, filters: Filters = here) -> Answer:
        return search(Searcher(store.db, filters), Query(text, filters), store.encoder)

    assert answer("zebra crossing").elsewhere == {"hits": 2, "entities": 0, "facts": 0, "scopes": 2}
    assert answer("another thing").elsewhere is None
    assert answer("unheard of").elsewhere is None
    assert answer("zebra crossing", Filters(NOW)).elsewhere is None


def test_the_same_memory_here_is_not_elsewhere(store: SmallStore) -> None:
    store.memory("quite another thing", ["repo:/a", "repo:/b"])
    here = Filters(NOW, scopes=("repo:/a",))

    answer = search(Searcher(store.db, here), Query("zebra thing crossing", here), store.encoder)

    assert answer.elsewhere is None


def test_explaining_tells_the_figures_that_relevance_was_judged_by(store: SmallStore) -> None:
    store.memory("the red car")
    answer = ask(store, "red bicycle", explain=True)
    (hit,) = answer.hits

    assert 0 < hit["judged"]["coverage"] < 1
    assert relevance(hit["judged"]["cosine"], hit["judged"]["coverage"]) == pytest.approx(
        hit["relevance"], abs=1e-4
    )
    assert ask(store, "red", recipe="lexical", explain=True).hits[0]["judged"]["cosine"] is None
    assert "judged" not in ask(store, "red bicycle").hits[0]
