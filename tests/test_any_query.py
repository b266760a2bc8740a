"""Any text is a query: it finds what it says, by every recipe, and the answer keeps its promises."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_store import NOW, SmallStore, SynonymEncoder

from graphmem.recall import RECIPES, Answer, Query, Recipe, search
from graphmem.store.filters import Filters
from graphmem.store.search import Searcher

EVERYWHERE = Filters(NOW)
BY_WORDS: tuple[Recipe, ...] = tuple(name for name in RECIPES if name != "semantic")  # type: ignore[misc]
ALL: tuple[Recipe, ...] = (*BY_WORDS, "semantic")

# Of each pair only the second is what is asked for; the first shares what a careless reader would see.
FOUND = [
    ("C++", "Vitamin C is in lemons", "the parser is written in C++ now"),
    ("C#", "the note C is high", "the plugin is written in C# now"),
    (".NET", "the net is torn", "the client runs on .NET six"),
    ("don't", "we do deploy on Mondays", "we don't deploy on Fridays"),
    ("don’t", "we do deploy on Mondays", "we don't deploy on Fridays"),
    ("pre-edit", "edit it, then run the pre check", "the pre-edit hook runs twice"),
    ("GB/s", "the disk holds 10 GB", "the disk reads 10 GB/s"),
    ("2026-05-08", "on 2026-05-09 it was quiet", "on 2026-05-08 the sync broke"),
    ("2026-05-08", "05 of 2026 and 08", "on 2026-05-08 the sync broke"),
    ("OC-41252", "OC-41253 is another crash", "see OC-41252 for the crash"),
    ("NEAR", "the far end of the street", "it is near the bridge"),
    ("AND", "the gate is open", "an and gate has two inputs"),
    ("NOT", "the gate is open", "it is not so"),
    ("test*", "the tent is wet", "testing takes an hour"),
    ("user_na*", "the user is new", "user_name must be unique"),
    ('"blue car"', "the car is blue", "a blue car stood there"),
    ('lights "blue car"', "the car is blue", "a blue car stood there"),
    ('"unclosed quote', "nothing of that kind", "an unclosed quote is closed at the end"),
    ("getUserById", "the house by the sea", "get the user by its id"),
    ("user by id", "the house in the sea", "getUserById is slow"),
    ("src/app/main.py:42", "the app is in the store", "it fails in src/app/main.py:42"),
    ("v2.10.3", "v2.10.4 is out", "v2.10.3 was withdrawn"),
    ("-flag ^start col:umn (group) +plus", "nothing of that kind", "flag start column group plus"),
    ("検索", "東京都は広い", "全文検索は速い"),
    ("猫", "犬である", "これは黒猫である"),
    ("検索は速いですか", "東京都は広い", "全文検索は速い"),
    ("ПРИВЕТ", "до свидания", "привет мир"),
    ("STRASSE", "the street is long", "die Straße ist lang"),
    ("cafe", "a tea house", "un café noir"),
    ("שלום", "להתראות", "שלום עולם"),
    ("كتاب", "قلم", "كِتاب جديد"),
    ("हिन्दी", "अंग्रेज़ी", "हिन्दी भाषा"),
    ("launch 🚀", "the ship is in port", "launch day"),
    ("\u202elaunch\u202c", "the ship is in port", "launch day"),
    ("launch\x00", "the ship is in port", "launch day"),
    ("launch \ud800", "the ship is in port", "launch day"),
    ("launch " * 1500, "the ship is in port", "launch day"),
    (" ".join(f"word{n}" for n in range(1500)), "the ship is in port", "word7 and word3"),
]  # fmt: skip


def ask(store: SmallStore, text: str, recipe: Recipe, **options: Any) -> Answer:
    near = "Anchor" if recipe == "near" else None
    query = Query(text, EVERYWHERE, recipe=recipe, near=near, **options)
    return search(Searcher(store.db, EVERYWHERE), query, store.encoder)


def store_of(*texts: str, encoder: SynonymEncoder | None = None) -> SmallStore:
    """A store of texts about one entity, so that every recipe has something to do."""
    store = SmallStore(encoder=encoder)
    anchor = store.entity("Anchor", id_="anchor")
    for number, text in enumerate(texts):
        store.memory(text, about=[anchor], id_=f"m{number}")
    return store


@pytest.mark.parametrize("recipe", BY_WORDS)
@pytest.mark.parametrize(("query", "other", "right"), FOUND)
def test_a_query_finds_the_memory_that_says_it(recipe: Recipe, query: str, other: str, right: str) -> None:
    hits = ask(store_of(other, "quite another thing", right), query, recipe).hits

    assert hits[0]["content"] == right


@pytest.mark.parametrize("recipe", BY_WORDS)
@pytest.mark.parametrize(("query", "other", "right"), FOUND)
def test_with_vectors_its_words_rank_it_first_too(recipe: Recipe, query: str, other: str, right: str) -> None:
    store = store_of(other, "quite another thing", right, encoder=SynonymEncoder())

    by_words = [hit for hit in ask(store, query, recipe).hits if "lexical" in hit["channels"]]

    assert min(by_words, key=lambda hit: hit["channels"]["lexical"]["rank"])["content"] == right


@pytest.mark.parametrize(
    ("query", "other", "right"),
    [one for one in FOUND if one[2] in ("it is near the bridge", "привет мир", "launch day")],
)
def test_a_query_finds_by_meaning_alone_what_it_says(query: str, other: str, right: str) -> None:
    store = store_of(other, "quite another thing", right, encoder=SynonymEncoder())

    assert ask(store, query, "semantic").hits[0]["content"] == right


@pytest.mark.parametrize("recipe", ALL)
@pytest.mark.parametrize(
    "query", ["", " ", '"', '""', "*", "...", "+ - ( ) ^ :", "🚀", "\x00", "\ud800", "\u200b"]
)
def test_a_query_without_a_word_finds_nothing_and_says_so(recipe: Recipe, query: str) -> None:
    store = store_of("launch day 🚀", encoder=SynonymEncoder())

    answer = ask(store, query, recipe)

    assert answer.empty
    assert not answer.relevant
    assert answer.notes == ["the query has no word that can be searched for"]


def test_stop_words_count_where_there_is_nothing_else() -> None:
    store = store_of("to be or not to be", "quite another thing")

    assert [hit["id"] for hit in ask(store, "to be or not to be", "lexical").hits] == ["m0"]
    assert [hit["id"] for hit in ask(store, "what is the thing", "lexical").hits] == ["m1"]


def test_a_phrase_and_a_prefix_find_nothing_else() -> None:
    store = store_of("the car is blue", "a blue car", "testing", "attest", "the test")

    assert [hit["id"] for hit in ask(store, '"blue car"', "lexical").hits] == ["m1"]
    assert {hit["id"] for hit in ask(store, "test*", "lexical").hits} == {"m2", "m4"}


# ---- what holds for every text ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def library() -> Iterator[SmallStore]:
    store = SmallStore(encoder=SynonymEncoder())
    anchor, other = store.entity("Anchor", id_="anchor"), store.entity("Other", "thing", id_="other")
    store.relation(anchor, "holds", other, fact="the anchor holds the other")
    for number in range(25):
        about = [anchor] if number % 2 else [other]
        store.memory(f"text {number} 猫 C++ a-b {'x' * number}", about=about, source="s", position=number)
    yield store
    store.db.close()


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=40) | st.text(
    alphabet="aBx9\"'*+#.-_/ :(){}^~猫のé\u0301\u202e\ud800", max_size=30
)


@settings(max_examples=150, deadline=None)
@given(text=ANY_TEXT, recipe=st.sampled_from(ALL), explain=st.booleans(), limit=st.integers(1, 30))
def test_any_text_has_an_answer_that_keeps_its_promises(
    library: SmallStore, text: str, recipe: Recipe, explain: bool, limit: int
) -> None:
    before = library.db.total_changes()

    answer = ask(library, text, recipe, explain=explain, limit=limit)

    assert json.loads(json.dumps(answer.as_dict()))["totals"] == answer.totals
    scores = [hit["score"] for hit in answer.hits]
    assert scores == sorted(scores, reverse=True)
    for key in ("hits", "entities", "facts"):
        shown = getattr(answer, key)
        assert len(shown) == min(limit, answer.totals[key])
        assert all(0 <= one["relevance"] <= 1 for one in shown)
    lists = (answer.hits, answer.entities, answer.facts)
    assert answer.truncated is any(total > limit for total in answer.totals.values())
    assert answer.best_relevance >= max((one["relevance"] for each in lists for one in each[:10]), default=0)
    assert library.db.total_changes() == before


@pytest.mark.parametrize("recipe", ALL)
def test_pages_are_disjoint_and_add_up_for_every_recipe(library: SmallStore, recipe: Recipe) -> None:
    whole = ask(library, "text 猫 anchor", recipe, limit=100)
    pages: list[str] = []
    for offset in range(0, 30, 6):
        page = ask(library, "text 猫 anchor", recipe, limit=6, offset=offset)
        pages += [hit["id"] for hit in page.hits]
        assert (page.totals, page.relevant, page.best_relevance) == (
            whole.totals, whole.relevant, whole.best_relevance
        )  # fmt: skip
        assert page.truncated is (offset + 6 < max(whole.totals.values()))

    assert pages == [hit["id"] for hit in whole.hits]
    assert len(set(pages)) == whole.totals["hits"] == 25
    assert not whole.truncated
