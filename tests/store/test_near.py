"""The nearest items: filters inside, few or many of them, and without NumPy."""

from __future__ import annotations

import random

import pytest
from search_store import NOW, SmallStore, SynonymEncoder

from graphmem.store.filters import Filters
from graphmem.store.near import FEW, NEAREST_LIMIT, comes_late
from graphmem.store.search import Searcher

pytest.importorskip("numpy")
from graphmem.store import blocks

SIZE = 1_400


@pytest.fixture(scope="module")
def store() -> SmallStore:
    """More memories than are compared by their vectors alone: most here, some there, some gone."""
    made = SmallStore(encoder=SynonymEncoder())
    rng = random.Random(8)
    words = [f"word{number}" for number in range(60)]
    with made.db:
        for number in range(SIZE):
            made.memory(
                " ".join(rng.sample(words, 5)),
                scopes=["repo:/rare" if number % 100 == 0 else "repo:/some" if number % 3 == 0 else "global"],
                tags=["seldom"] if number % 50 == 0 else (),
                state="archived" if number % 11 == 0 else "active",
            )
    return made


FILTERS = [
    Filters(NOW),
    Filters(NOW, scopes=("global",)),
    Filters(NOW, scopes=("repo:/some",)),
    Filters(NOW, scopes=("repo:/rare",)),
    Filters(NOW, tags=("seldom",)),
    Filters(NOW, state="archived"),
    Filters(NOW, state="all"),
    Filters(NOW, scopes=("repo:/nothing",)),
]


@pytest.mark.parametrize("filters", FILTERS, ids=str)
@pytest.mark.parametrize("few_hidden", [True, False])
def test_the_nearest_that_pass_are_found(
    store: SmallStore, filters: Filters, few_hidden: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not few_hidden:
        monkeypatch.setattr("graphmem.store.filters.AT_ONCE", 0)
    ask = Searcher(store.db, filters)
    assert ask.has_vectors
    found = right = 0
    for number in range(12):
        vector = SynonymEncoder().encode([f"word{number} word{number + 9}"], "query")[0]
        exact = ask.nearest("memory", vector, depth=NEAREST_LIMIT + 1)
        near = ask.nearest("memory", vector, depth=20)
        assert {row.pk for row in near} <= {row.pk for row in exact}
        assert len(near) == min(20, len(exact))
        found += len({row.pk for row in near} & {row.pk for row in exact[:20]})
        right += min(20, len(exact))

    assert found >= 0.99 * right


def test_without_numpy_the_vectors_themselves_are_compared(
    store: SmallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = Searcher(store.db, Filters(NOW))
    assert ask.has_vectors
    vector = SynonymEncoder().encode(["word1 word2"], "query")[0]
    exact = ask.nearest("memory", vector, depth=NEAREST_LIMIT + 1)
    some = [row.pk for row in exact[::40]]
    cosines = ask.cosines("memory", vector, some)

    monkeypatch.setattr(blocks, "available", lambda: False)

    assert [row.id for row in ask.nearest("memory", vector, depth=20)] == [row.id for row in exact[:20]]
    assert ask.cosines("memory", vector, some) == pytest.approx(cosines, abs=1e-6)
    assert ask.cosines("memory", vector, []) == {}


def test_few_pieces_are_compared_exactly() -> None:
    encoder = SynonymEncoder()
    made = SmallStore(encoder=encoder)
    rng = random.Random(4)
    with made.db:
        for _ in range(FEW):
            made.memory(" ".join(rng.sample([f"word{number}" for number in range(40)], 6)))
    ask = Searcher(made.db, Filters(NOW))
    assert ask.has_vectors
    vector = encoder.encode(["word1 word2"], "query")[0]

    exact = ask.nearest("memory", vector, depth=NEAREST_LIMIT + 1)

    assert [row.id for row in ask.nearest("memory", vector, depth=50)] == [row.id for row in exact[:50]]


def test_the_same_text_has_the_same_score_wherever_it_stands() -> None:
    encoder = SynonymEncoder()
    made = SmallStore(encoder=encoder)
    for number in range(700):
        made.memory("red car" if number % 7 == 0 else f"house {number}", id_=f"{number:03}")
    ask = Searcher(made.db, Filters(NOW))
    assert ask.has_vectors

    near = ask.nearest("memory", encoder.encode(["red car today"], "query")[0], depth=100)

    assert len({row.score for row in near}) == 1
    assert [row.id for row in near] == [f"{number:03}" for number in range(0, 700, 7)]


def test_more_candidates_are_looked_at_where_a_near_one_comes_late() -> None:
    rows = [(item, 1 - item / 100) for item in range(10)]
    found = dict(rows)

    assert not comes_late(rows, found, 3)
    assert comes_late([*rows, (10, 0.995)], {**found, 10: 0.995}, 3)
    assert not comes_late([*rows, (0, 0.5)], found, 3)
