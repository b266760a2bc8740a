"""Lists of words: the same items with the same scores in the same order as SQLite's own ranking."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_store import NOW, SmallStore

from graphmem.lexical import Term, expression, query_terms
from graphmem.store.filters import Filters, Kind
from graphmem.store.packed import pack
from graphmem.store.search import Searcher

pytest.importorskip("numpy")
from graphmem.store import blocks, postings

WORDS = ("car", "cars", "red", "user_name", "userName", "C++", "2026-05-08", "日本語", "Über", "uber", "don't",
         "running", "runs", "a/b", "ПРИВЕТ", "new york", "york new")  # fmt: skip
QUERIES = st.lists(st.sampled_from([*WORDS, "run*", "us*", '"new york"', '"red car"', '"car car"', "nothing"]),
                   min_size=1, max_size=5).map(" ".join)  # fmt: skip
TEXTS = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join), min_size=1, max_size=12
)


def both(
    store: SmallStore, terms: Sequence[Term], filters: Filters, kind: Kind = "memory"
) -> tuple[Any, Any]:
    """The ranking of SQLite and that of the lists."""
    plain, listed = Searcher(store.db, filters), Searcher(store.db, filters)
    listed.read_lists(terms)
    match = expression(terms)
    assert match is not None
    return tuple(one.lexical(kind, match, depth=4, also=range(40)) for one in (plain, listed))  # type: ignore[return-value]


def assert_alike(one: Any, other: Any) -> None:
    assert other.total == one.total
    assert [(row.id, row.rank) for row in other.rows] == [(row.id, row.rank) for row in one.rows]
    assert [row.score for row in other.rows] == pytest.approx([row.score for row in one.rows], rel=1e-9)


@settings(max_examples=150, deadline=None)
@given(texts=TEXTS, query=QUERIES, titled=st.booleans(), gone=st.sets(st.integers(0, 11), max_size=4))
def test_scores_and_order_are_those_of_sqlite(
    texts: list[str], query: str, titled: bool, gone: set[int]
) -> None:
    terms = query_terms(query)
    store = SmallStore()
    for number, text in enumerate(texts):
        pk = store.memory(text, title=texts[number - 1] if titled else None, source="notes/red car")
        if number in gone:
            store.db.execute("DELETE FROM memory_fts WHERE rowid = ?", (int(pk[1:]),))
            store.db.execute("DELETE FROM memory WHERE id = ?", (pk,))
    for number, text in enumerate(texts):
        store.entity(f"{text[:20]} {number}", description=text)
    pack(store.db)

    for kind in ("memory", "entity"):
        assert_alike(*both(store, terms, Filters(NOW), kind))


def test_what_the_filters_leave_out_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    store = SmallStore()
    for number in range(30):
        store.memory(
            "car " * (number % 7 + 1),
            scopes=["global" if number % 3 else "repo:/a"],
            tags=["t"] if number % 2 else (),
        )
    terms = query_terms("car")

    for filters in (
        Filters(NOW, scopes=("global",)),
        Filters(NOW, scopes=("repo:/a",), tags=("t",)),
        Filters(NOW, tags=("t",)),
    ):
        assert_alike(*both(store, terms, filters))
    monkeypatch.setattr("graphmem.store.filters.AT_ONCE", 3)  # more are hidden than are looked up
    assert_alike(*both(store, terms, Filters(NOW, scopes=("global",))))


def test_which_items_hold_a_term_and_how_many_do() -> None:
    store = SmallStore()
    for text in ("red car", "red house", "blue cars"):
        store.memory(text)
    ask = Searcher(store.db, Filters(NOW))
    terms = query_terms('cars red "red house" hou* nothing')
    ask.read_lists(terms)

    found = {term.text: ask.holding("memory", term, [1, 2, 3, 99]) for term in terms}

    assert found == {"cars": {1, 3}, "red": {1, 2}, "red house": {2}, "hou": {2}, "nothing": set()}
    assert ask.containing("memory", "unused", [2, 3, 99]) == {2, 3}
    lists = ask.lists("memory")
    assert lists is not None
    assert [lists.found(term) for term in terms] == [len(found[term.text]) for term in terms]


def test_lists_are_read_again_once_a_text_changed() -> None:
    store = SmallStore()
    store.memory("red car")
    terms = query_terms("red")
    assert both(store, terms, Filters(NOW))[1].total == 1

    store.memory("red house")

    assert both(store, terms, Filters(NOW))[1].total == 2


def test_lists_that_are_kept_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store = SmallStore()
    store.memory("red car")
    terms = query_terms("red car")
    first = both(store, terms, Filters(NOW))[1]

    def never(*_: Any) -> Any:
        raise AssertionError("read again")

    monkeypatch.setattr(postings.Postings, "_weighed", never)
    assert both(store, terms, Filters(NOW))[1] == first


def test_few_lists_are_kept_where_they_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "MOST_KEPT", 3 + postings._ENTRY)
    store = SmallStore()
    rng = random.Random(3)
    for _ in range(20):
        store.memory(" ".join(rng.sample(("red", "car", "house", "blue"), 3)))
    terms = query_terms("red car house blue")

    for _ in range(2):
        assert_alike(*both(store, terms, Filters(NOW)))
    assert blocks.lengths(store.db, 1).kept._count <= 3 + postings._ENTRY


def test_words_that_no_text_holds_are_not_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "MOST_KEPT", 320)
    store = SmallStore()
    store.memory("red car")
    for number in range(50):
        both(store, query_terms(f"nothing{number} never{number}"), Filters(NOW))

    assert len(blocks.lengths(store.db, 1).kept._held) <= 10


def test_a_query_without_an_indexed_word_finds_nothing() -> None:
    store = SmallStore()
    store.memory("red car")

    assert both(store, [Term("++")], Filters(NOW))[1] == ([], 0)
