"""Recall: the right items in a stable order, whatever else the store holds, with their reasons."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from search_store import NOW, SmallStore, SynonymEncoder

from graphmem.embed import Availability
from graphmem.errors import EncoderError, EncoderMismatch, EntityNotFound
from graphmem.fusion import Fusion
from graphmem.recall import (
    Answer,
    Query,
    Recipe,
    find_entity,
    meaning,
    search,
)
from graphmem.store.filters import Filters
from graphmem.store.search import Searcher

RECIPES: tuple[Recipe, ...] = ("lexical", "semantic", "hybrid", "graph")
EVERYWHERE = Filters(NOW)
HERE = ("repo:/a", "global")


def ask(store: SmallStore, text: str, filters: Filters = EVERYWHERE, **options: Any) -> Answer:
    query = Query(text, filters, **options)
    return search(Searcher(store.db, filters), query, store.encoder)


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return [row["id"] for row in rows]


@pytest.fixture
def store() -> SmallStore:
    return SmallStore(encoder=SynonymEncoder())


@pytest.fixture
def wordy() -> SmallStore:
    """A store without vectors."""
    return SmallStore()


# ---- what is found ----------------------------------------------------------------------------------


def test_a_hit_has_exactly_the_published_keys(store: SmallStore) -> None:
    person = store.entity("Ann", "person")
    store.memory(
        "Ann starts the car.", title="Morning", tags=["b", "a"], about=[person], source="day.md", position=3,
        valid_at="2026-05-08T00:00:00.000Z", properties={"k": [1]}, id_="m",
    )  # fmt: skip

    (hit,) = ask(store, "car").hits

    assert {key: hit[key] for key in hit if key not in ("score", "relevance", "channels")} == {
        "id": "m",
        "content": "Ann starts the car.",
        "title": "Morning",
        "memory_type": "observation",
        "scopes": ["global"],
        "tags": ["a", "b"],
        "about": ["Ann"],
        "about_refs": [{"id": "e0001", "name": "Ann", "kind": "person", "scope": "global"}],
        "source": {"uri": "day.md", "position": 3},
        "valid_at": "2026-05-08T00:00:00.000Z",
        "created_at": NOW,
        "properties": {"k": [1]},
    }
    assert hit["score"] == pytest.approx(1.0)
    assert 0 < hit["relevance"] < 1
    assert set(hit["channels"]) == {"lexical", "semantic", "place", "graph"}
    assert hit["channels"]["lexical"]["rank"] == 1


def test_meaning_finds_what_words_do_not(store: SmallStore) -> None:
    store.memory("the automobile is red", id_="car")
    store.memory("nothing of that kind", id_="other")

    assert ids(ask(store, "car", recipe="lexical").hits) == []
    assert ids(ask(store, "car", recipe="semantic").hits)[0] == "car"
    assert ids(ask(store, "car").hits)[0] == "car"


def test_words_find_what_has_no_vector(store: SmallStore) -> None:
    encoder, store.encoder = store.encoder, None
    store.memory("kept without a vector", id_="m")
    store.encoder = encoder

    assert ids(ask(store, "vector").hits) == ["m"]
    assert ask(store, "vector", recipe="semantic").hits == []


def test_title_date_source_and_entities_are_searched(wordy: SmallStore) -> None:
    person = wordy.entity("Melanie")
    wordy.memory(
        "text", title="Sunrise", source="logs/harbour.md", valid_at="2023-05-08T00:00:00.000Z",
        about=[person], id_="m",
    )  # fmt: skip

    for query in ("sunrise", "harbour", "melanie", "8 May 2023", "2023-05-08", "in May"):
        assert ids(ask(wordy, query).hits) == ["m"], query


def test_the_import_clock_is_not_searched(wordy: SmallStore) -> None:
    wordy.memory("text", created_at="2024-02-03T00:00:00.000Z")

    assert ask(wordy, "2024-02-03").hits == []


def test_a_store_of_triples_alone_answers(store: SmallStore) -> None:
    auth, db = store.entity("AuthService", "service"), store.entity("PostgresDB")
    store.relation(auth, "depends_on", db, id_="r")

    for recipe in RECIPES:
        answer = ask(store, "what does the auth service depend on", recipe=recipe)

        assert answer.facts[0]["id"] == "r", recipe
        assert (answer.facts[0]["subject"], answer.facts[0]["object"]) == ("AuthService", "PostgresDB")
        assert answer.totals["facts"] == 1
        assert answer.elsewhere is None
    assert ask(store, "authservice").entities[0]["name"] == "AuthService"
    assert ask(store, "authservice").entities[0]["kind"] == "service"
    assert ask(store, "postgresdb").entities[0]["kind"] == "unknown"


def test_an_entity_is_found_by_alias_and_description(wordy: SmallStore) -> None:
    wordy.entity("Ann", "person", aliases=["Annie"], description="Repairs bicycles.", id_="e")

    assert ids(ask(wordy, "annie").entities) == ["e"]
    assert ids(ask(wordy, "bicycle").entities) == ["e"]


def test_of_the_pieces_of_a_memory_the_nearest_counts(store: SmallStore) -> None:
    store.memory("long", pieces=["nothing of that kind", "the red car", "some other words"], id_="long")
    store.memory("short", pieces=["the red house"], id_="short")

    answer = ask(store, "the red car", recipe="semantic")

    assert ids(answer.hits) == ["long", "short"]
    assert answer.hits[0]["channels"]["semantic"]["score"] == pytest.approx(1.0, abs=1e-4)
    assert answer.totals["hits"] == 2


# ---- what no longer holds ---------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", RECIPES)
def test_what_is_archived_or_over_is_not_found(store: SmallStore, recipe: Recipe) -> None:
    past, future = "2026-01-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z"
    one, two = store.entity("One"), store.entity("Two")
    store.entity("Gone", state="archived", description="red car")
    store.memory("red car", id_="now")
    store.memory("red car", id_="until later", invalid_at=future, expired_at=future)
    store.memory("red car", state="archived")
    store.memory("red car", invalid_at=past)
    store.memory("red car", expired_at=past)
    store.relation(one, "likes", two, fact="red car", id_="now")
    store.relation(one, "liked", two, fact="red car", invalid_at=past)
    store.relation(one, "saw", two, fact="red car", expired_at=past)
    store.relation(one, "had", two, fact="red car", state="archived")

    answer = ask(store, "red car", recipe=recipe)

    assert sorted(ids(answer.hits)) == ["now", "until later"]
    assert ids(answer.facts) == ["now"]
    assert "Gone" not in [entity["name"] for entity in answer.entities]


# ---- filters are inside the channels ----------------------------------------------------------------


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize(
    ("better", "right", "filters"),
    [
        ({"scopes": ["repo:/b"]}, {"scopes": ["repo:/a"]}, Filters(NOW, scopes=("repo:/a",))),
        ({"memory_type": "note"}, {"memory_type": "decision"}, Filters(NOW, memory_types=("decision",))),
        ({"memory_type": "note"}, {}, Filters(NOW, memory_types=("observation",))),
        ({"tags": ["axb"]}, {"tags": ["a_b", "c"]}, Filters(NOW, tags=("a_b",))),
        ({"about": ["house"]}, {"about": ["person"]}, Filters(NOW, kinds=("Person",))),
        ({"about": ["house"]}, {"mentions": ["person"]}, Filters(NOW, entity="person")),
        ({"valid_at": "2020-01-01T00:00:00.000Z"}, {"valid_at": "2022-01-01T00:00:00.000Z"},
         Filters(NOW, since="2021-01-01T00:00:00.000Z")),
        ({"valid_at": "2022-01-01T00:00:00.000Z"}, {"created_at": "2020-01-01T00:00:00.000Z"},
         Filters(NOW, until="2020-01-01T00:00:00.000Z")),
        ({"state": "archived"}, {}, Filters(NOW)),
    ],
)  # fmt: skip
def test_better_ranked_rows_that_are_filtered_out_take_no_place(
    store: SmallStore, recipe: Recipe, better: dict[str, Any], right: dict[str, Any], filters: Filters
) -> None:
    entities = {kind: store.entity(kind.title(), kind, id_=kind) for kind in ("house", "person")}

    def fill(fields: dict[str, Any]) -> dict[str, Any]:
        return {
            key: [entities[name] for name in value] if key in ("about", "mentions") else value
            for key, value in fields.items()
        }

    for _ in range(210):
        store.memory("red car", **fill(better))
    for number in range(3):
        store.memory(
            f"a car that is not very red at all, number {number}", id_=f"right{number}", **fill(right)
        )

    answer = ask(store, "red car", filters, recipe=recipe, limit=5)

    assert sorted(ids(answer.hits)) == ["right0", "right1", "right2"]
    assert answer.totals["hits"] == 3
    assert not answer.truncated


@pytest.mark.parametrize("recipe", RECIPES)
def test_better_ranked_entities_and_facts_that_are_filtered_out_take_no_place(
    store: SmallStore, recipe: Recipe
) -> None:
    for scope, kind, count, text in (
        ("repo:/b", "person", 205, "red car"),
        ("repo:/a", "house", 205, "red car"),
        ("repo:/a", "person", 2, "a car that is not very red"),
    ):
        for number in range(count):
            name = f"{text} {kind} {number}" if count == 2 else f"{kind} {number}"
            one = store.entity(name, kind, scope, description=text)
            store.relation(one, "has", one, scope, fact=text)

    answer = ask(store, "red car", Filters(NOW, scopes=HERE, kinds=("person",)), recipe=recipe)

    assert [entity["scope"] for entity in answer.entities] == ["repo:/a"] * 2
    assert {entity["kind"] for entity in answer.entities} == {"person"}
    assert [fact["scope"] for fact in answer.facts] == ["repo:/a"] * 2
    assert (answer.totals["entities"], answer.totals["facts"]) == (2, 2)


def test_tags_are_compared_as_they_are(wordy: SmallStore) -> None:
    for tag in ("100%", "a_b", "axb", "A_B", "1000"):
        wordy.memory("red car", tags=[tag], id_=tag)

    for tag in ("100%", "a_b", "axb"):
        assert ids(ask(wordy, "car", Filters(NOW, tags=(tag,))).hits) == [tag]
    assert ids(ask(wordy, "car", Filters(NOW, tags=("axb", "a_b"))).hits) == ["a_b", "axb"]
    assert ask(wordy, "car", Filters(NOW, tags=("%",))).hits == []


def test_types_and_tags_leave_memories_only(wordy: SmallStore) -> None:
    one = wordy.entity("red car")
    wordy.relation(one, "is", one)
    wordy.memory("red car", tags=["t"], memory_type="note")

    for filters in (Filters(NOW, tags=("t",)), Filters(NOW, memory_types=("note",))):
        assert ask(wordy, "red car", filters).totals == {"hits": 1, "entities": 0, "facts": 0}


def test_the_entity_filter_leaves_what_involves_it(wordy: SmallStore) -> None:
    one, two, three = (wordy.entity(name, id_=name) for name in ("car one", "car two", "car three"))
    wordy.relation(one, "near", two, id_="1-2")
    wordy.relation(two, "near", three, id_="2-3")
    wordy.relation(three, "near", one, id_="3-1")

    answer = ask(wordy, "car", Filters(NOW, entity="car one"))

    assert sorted(ids(answer.facts)) == ["1-2", "3-1"]
    assert ids(answer.entities) == ["car one"]


# ---- isolation --------------------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", RECIPES)
def test_two_repositories_with_the_same_names_never_see_each_other(store: SmallStore, recipe: Recipe) -> None:
    for scope in ("repo:/a", "repo:/b"):
        auth, db = store.entity("AuthService", "service", scope), store.entity("DB", None, scope)
        store.relation(auth, "uses", db, scope, id_=f"fact {scope}")
        store.memory("AuthService is slow", [scope], about=[auth], id_=f"memory {scope}")

    answer = ask(store, "AuthService", Filters(NOW, scopes=HERE), recipe=recipe)

    assert ids(answer.hits) == ["memory repo:/a"]
    assert ids(answer.facts) == ["fact repo:/a"]
    assert {entity["scope"] for entity in answer.entities} == {"repo:/a"}


def test_a_memory_of_two_scopes_shows_only_what_is_visible_of_it(wordy: SmallStore) -> None:
    mine = wordy.entity("Auth", "mine", "repo:/a")
    other = wordy.entity("Secret", "other", "repo:/b")
    wordy.memory("red car", ["repo:/a", "repo:/b"], about=[mine, other])

    (hit,) = ask(wordy, "car", Filters(NOW, scopes=HERE)).hits

    assert (hit["scopes"], hit["about"]) == (["repo:/a"], ["Auth"])
    assert ask(wordy, "car", Filters(NOW, scopes=HERE, kinds=("other",))).hits == []
    assert ask(wordy, "car", Filters(NOW, scopes=HERE, entity=f"e{other:04}")).hits != []
    (everything,) = ask(wordy, "car").hits
    assert (everything["scopes"], everything["about"]) == (["repo:/a", "repo:/b"], ["Auth", "Secret"])


def test_an_empty_answer_says_how_much_lies_elsewhere(store: SmallStore) -> None:
    for scope in ("repo:/b", "repo:/c", "repo:/c", "repo:/d"):
        store.memory("red car", [scope])
    store.memory("red car", ["repo:/d", "repo:/e"], tags=["t"])
    store.entity("car", scope="repo:/b")

    here = Filters(NOW, scopes=HERE)

    assert ask(store, "car", here).elsewhere == {"hits": 5, "entities": 1, "facts": 0, "scopes": 4}
    assert ask(store, "house", here, recipe="lexical").elsewhere is None
    assert ask(store, "car", replace(here, tags=("t",))).elsewhere == {
        "hits": 1,
        "entities": 0,
        "facts": 0,
        "scopes": 2,
    }
    assert ask(store, "car", Filters(NOW, scopes=("repo:/b",))).elsewhere is None


def test_a_scope_that_the_store_does_not_know_is_empty(wordy: SmallStore) -> None:
    wordy.memory("red car")

    answer = ask(wordy, "car", Filters(NOW, scopes=("project:x",)))

    assert answer.empty
    assert answer.elsewhere == {"hits": 1, "entities": 0, "facts": 0, "scopes": 1}


# ---- order and pages --------------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", RECIPES)
def test_pages_are_disjoint_and_add_up_to_the_total(store: SmallStore, recipe: Recipe) -> None:
    for number in range(450):
        store.memory(f"red {'car ' * (number % 5)} number {number % 17} {'filler ' * (number % 7)}")

    whole = ask(store, "red car seventeen", recipe=recipe, limit=1000)
    pages: list[str] = []
    for offset in range(0, 460, 45):
        page = ask(store, "red car seventeen", recipe=recipe, limit=45, offset=offset)
        pages += ids(page.hits)
        assert page.totals == whole.totals
        assert page.truncated is (offset + 45 < whole.totals["hits"])

    assert pages == ids(whole.hits)
    assert len(set(pages)) == len(pages) == whole.totals["hits"] == 450
    scores = [hit["score"] for hit in whole.hits]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("recipe", RECIPES)
def test_equal_hits_come_in_the_order_of_their_ids(store: SmallStore, recipe: Recipe) -> None:
    for id_ in ("c", "a", "d", "b"):
        store.memory("red car", id_=id_)

    assert ids(ask(store, "car", recipe=recipe).hits) == ["a", "b", "c", "d"]
    assert ids(ask(store, "car", recipe=recipe, limit=2).hits) == ["a", "b"]
    assert ids(ask(store, "car", recipe=recipe, limit=2, offset=2).hits) == ["c", "d"]


@pytest.mark.parametrize("recipe", RECIPES)
def test_order_and_pages_do_not_depend_on_the_order_of_storing(recipe: Recipe) -> None:
    names = [f"{number:03}" for number in range(260)]
    orders = []
    for stored in (names, names[::-1]):
        store = SmallStore(encoder=SynonymEncoder())
        for name in stored:
            store.memory("red car", id_=name)
        orders.append([*ids(ask(store, "car", recipe=recipe, limit=130).hits),
                       *ids(ask(store, "car", recipe=recipe, limit=130, offset=130).hits)])  # fmt: skip

    assert orders == [names, names]


def test_the_meaning_of_more_than_the_index_gives_at_once_is_paged_too(store: SmallStore) -> None:
    for number in range(60):
        store.memory("m", pieces=[f"word{number} {piece}" for piece in range(80)], id_=f"{number:02}")

    first = ask(store, "word7", recipe="semantic", limit=50)
    second = ask(store, "word7", recipe="semantic", limit=50, offset=50)

    assert len({*ids(first.hits), *ids(second.hits)}) == 60
    assert first.totals["hits"] == second.totals["hits"] == 60


# ---- reasons ----------------------------------------------------------------------------------------


def test_one_searcher_answers_one_query_after_another_from_the_store_as_it_is(store: SmallStore) -> None:
    ask_again = Searcher(store.db, Filters(NOW, scopes=("global",)))
    encoder = SynonymEncoder()
    assert search(ask_again, Query("zebra", ask_again.filters), encoder).totals["hits"] == 0

    for text in ("A zebra.", "A second zebra."):
        store.memory(text)
        for query in ("zebra", "second"):
            alone = search(Searcher(store.db, ask_again.filters), Query(query, ask_again.filters), encoder)
            assert search(ask_again, Query(query, ask_again.filters), encoder).as_dict() == alone.as_dict()


def test_one_searcher_answers_with_and_without_meaning_within_one_transaction(store: SmallStore) -> None:
    store.memory("A zebra.")
    searcher = Searcher(store.db, EVERYWHERE)
    with searcher.snapshot():
        for text, encoder in (("zebra", store.encoder), ("lion zebra", None), ("zebra two", store.encoder)):
            assert search(searcher, Query(text, EVERYWHERE), encoder).totals["hits"] == 1


@pytest.mark.parametrize("recipe", ["hybrid", "graph"])
def test_vectors_that_another_model_made_meanwhile_are_not_compared(
    store: SmallStore, recipe: Recipe
) -> None:
    store.memory("A zebra.")
    other = SynonymEncoder("other")

    answer = search(Searcher(store.db, EVERYWHERE), Query("zebra", EVERYWHERE, recipe=recipe), other)

    alone = search(Searcher(store.db, EVERYWHERE), Query("zebra", EVERYWHERE, recipe=recipe), None)
    assert answer.hits == alone.hits
    assert answer.recipe == alone.recipe
    assert "another model" in answer.notes[0]
    with pytest.raises(EncoderMismatch):
        search(Searcher(store.db, EVERYWHERE), Query("zebra", EVERYWHERE, recipe="semantic"), other)


@pytest.mark.parametrize("recipe", ["lexical", "semantic", "hybrid", "graph", "near"])
def test_what_is_hidden_twice_does_not_let_other_scopes_through(
    store: SmallStore, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmem.store.filters.AT_ONCE", 6)
    ann = store.entity("Ann")
    store.memory("A zebra of my own.", about=[ann], id_="mine")
    for number in range(20):
        store.memory(f"A zebra {number}.", scopes=["repo:/b"], state="archived" if number < 5 else "active")
    near: dict[str, Any] = {"near": "Ann"} if recipe == "near" else {}

    for encoder in (store.encoder, None):
        query = Query("zebra", Filters(NOW, ("global",)), recipe=recipe, limit=50, **near)
        answer = search(Searcher(store.db, query.filters), query, encoder)
        if encoder is not None or recipe != "semantic":
            assert ids(answer.hits) == ["mine"]
            assert answer.totals["hits"] == 1


@pytest.fixture(scope="module")
def many() -> SmallStore:
    """More memories than are in the pool, linked to each other, in a long source."""
    made = SmallStore(encoder=SynonymEncoder())
    rng = random.Random(2)
    words = [f"word{number}" for number in range(50)]
    people = [made.entity(f"Person {number}") for number in range(30)]
    with made.db:
        for number in range(900):
            made.memory(
                " ".join(rng.sample(words, 5)), about=rng.sample(people, 2), source=f"s{number // 20}",
                position=number % 20,
            )  # fmt: skip
    return made


@pytest.mark.parametrize("fusion", ["sum", "rrf"])
@pytest.mark.parametrize("recipe", ["lexical", "semantic", "hybrid", "graph", "near"])
def test_pages_are_what_one_long_page_is(many: SmallStore, recipe: Recipe, fusion: Fusion) -> None:
    near: dict[str, Any] = {"near": "Person 3"} if recipe == "near" else {}
    for text in ("word1 word2 word3", "word7 Person 4", "word9"):
        whole = ask(many, text, recipe=recipe, fusion=fusion, limit=240, **near)
        pages = [
            ask(many, text, recipe=recipe, fusion=fusion, limit=24, offset=at, **near)
            for at in range(0, 240, 24)
        ]

        assert [one for page in pages for one in ids(page.hits)] == ids(whole.hits)
        assert {page.totals["hits"] for page in pages} == {whole.totals["hits"]}


def test_explaining_tells_rank_score_and_words(store: SmallStore) -> None:
    store.memory("the red car", id_="both")
    store.memory("the automobile", id_="meaning")

    answer = ask(store, "red cars begin", explain=True)

    lexical = answer.hits[0]["channels"]["lexical"]
    assert (lexical["rank"], lexical["words"]) == (1, ["red", "cars"])
    assert lexical["score"] > 0
    assert answer.hits[1]["channels"]["semantic"]["rank"] == 2
    assert "lexical" not in answer.hits[1]["channels"]


def test_relevance_does_not_depend_on_the_page_or_the_recipe(store: SmallStore) -> None:
    for number in range(12):
        store.memory(f"red car number {number}")

    whole = {hit["id"]: hit["relevance"] for hit in ask(store, "red car", limit=12).hits}

    for recipe in ("hybrid", "semantic"):
        later = ask(store, "red car", limit=5, offset=5, recipe=recipe).hits
        assert all(hit["relevance"] == pytest.approx(whole[hit["id"]], abs=1e-3) for hit in later)


def test_a_least_relevance_leaves_out_the_rest_and_counts_what_is_left(store: SmallStore) -> None:
    for number in range(5):
        store.memory(f"the red car number {number}", id_=f"right{number}")
        store.memory(f"quite another thing about red tape {number}", id_=f"wrong{number}")

    answer = ask(store, "the red car", min_score=0.6, limit=3)
    rest = ask(store, "the red car", min_score=0.6, limit=3, offset=3)

    assert answer.totals["hits"] == rest.totals["hits"] == 5
    assert sorted(ids(answer.hits) + ids(rest.hits)) == [f"right{number}" for number in range(5)]
    assert (answer.truncated, rest.truncated) == (True, False)


# ---- reading ----------------------------------------------------------------------------------------


def test_a_search_changes_nothing(store: SmallStore) -> None:
    store.memory("red car")
    before = store.db.total_changes()

    ask(store, "red car", explain=True)

    assert store.db.total_changes() == before


# ---- with and without an encoder --------------------------------------------------------------------


class FailingEncoder(SynonymEncoder):
    """An encoder whose model breaks."""

    def _encode_one(self, text: str) -> bytes:
        raise EncoderError("the model is broken")


def test_a_failing_encoder_leaves_the_words_and_says_so(store: SmallStore) -> None:
    store.memory("red car", id_="m")
    store.encoder = FailingEncoder()

    answer = ask(store, "red car", recipe="hybrid")

    assert (ids(answer.hits), answer.recipe) == (["m"], "lexical")
    assert answer.notes == ["searched by words only: the model is broken"]
    with pytest.raises(EncoderError):
        ask(store, "red car", recipe="semantic")


def test_the_encoder_is_not_loaded_where_it_cannot_be_used(wordy: SmallStore, store: SmallStore) -> None:
    def load() -> Availability:
        raise AssertionError("loaded")

    found = meaning(Searcher(wordy.db, EVERYWHERE), "hybrid", load)

    assert found.encoder is None
    assert "no vectors" in found.why_not
    assert meaning(Searcher(store.db, EVERYWHERE), "lexical", load) == (None, "")


def test_the_encoder_of_the_store_is_used(store: SmallStore) -> None:
    encoder = SynonymEncoder()
    found = meaning(Searcher(store.db, EVERYWHERE), "hybrid", lambda: Availability(encoder))  # type: ignore[arg-type]

    assert found == (encoder, "")


def test_a_missing_encoder_is_explained(store: SmallStore) -> None:
    found = meaning(
        Searcher(store.db, EVERYWHERE), "hybrid", lambda: Availability(None, "no extra", "add it")
    )

    assert found == (None, "no extra; add it")


def test_another_encoder_is_an_error_for_meaning_alone_and_a_note_for_both(store: SmallStore) -> None:
    other = Availability(SynonymEncoder("another"))  # type: ignore[arg-type]
    searcher = Searcher(store.db, EVERYWHERE)

    assert "gmem reembed" in meaning(searcher, "hybrid", lambda: other).why_not
    with pytest.raises(EncoderMismatch):
        meaning(searcher, "semantic", lambda: other)


# ---- names ------------------------------------------------------------------------------------------


def test_a_name_means_the_visible_entity(wordy: SmallStore) -> None:
    wordy.entity("AuthService", scope="repo:/b", id_="hidden")
    wordy.entity("AuthService", scope="global", id_="shared")
    wordy.entity("AuthService", scope="repo:/a", id_="own", aliases=["auth"])
    searcher = Searcher(wordy.db, Filters(NOW, scopes=HERE))

    for name in ("AuthService", " authservice ", "auth service", "auth"):
        assert find_entity(searcher, name) == ("own", ())
    with pytest.raises(EntityNotFound):
        find_entity(Searcher(wordy.db, Filters(NOW, scopes=("repo:/c",))), "AuthService")


def test_several_entities_of_a_name_are_listed(wordy: SmallStore) -> None:
    wordy.entity("Mercury", "planet", id_="planet")
    wordy.entity("Mercury", "metal", id_="metal")

    named = find_entity(Searcher(wordy.db, EVERYWHERE), "Mercury")

    assert named == ("planet", ("Mercury (metal, global)",))
    assert find_entity(Searcher(wordy.db, EVERYWHERE), "Mercury", "metal") == ("metal", ())


def test_an_unknown_name_comes_with_suggestions(wordy: SmallStore) -> None:
    wordy.entity("Auth Service of the bank")

    with pytest.raises(EntityNotFound) as raised:
        find_entity(Searcher(wordy.db, EVERYWHERE), "Auth Service of teh bnak")

    assert raised.value.suggestions == ("Auth Service of the bank",)
