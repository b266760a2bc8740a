"""The questions that recall asks of the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest
from search_store import NOW, SmallStore, SynonymEncoder

from graphmem.errors import StoreDamaged
from graphmem.lexical import Term
from graphmem.store.connection import connect
from graphmem.store.filters import Filters
from graphmem.store.near import NEAREST_LIMIT
from graphmem.store.search import Searcher


def searcher(store: SmallStore, filters: Filters | None = None) -> Searcher:
    return Searcher(store.db, filters or Filters(NOW))


def test_the_lexical_ranking_counts_everything_and_ranks_what_was_asked_for() -> None:
    store = SmallStore()
    for number in range(20):
        store.memory("car " * (number + 1) + "x " * 20, id_=f"{number:02}")
    all_rows = searcher(store).lexical("memory", '"car"', depth=20).rows
    weak = all_rows[-1]

    found = searcher(store).lexical("memory", '"car"', depth=3, also=[weak.pk, 999])

    assert found.total == 20
    assert found.rows == [*all_rows[:3], weak._replace(rank=0)]
    assert [row.rank for row in found.rows] == [1, 2, 3, 0]
    assert [row.score for row in all_rows] == sorted((row.score for row in all_rows), reverse=True)


def test_no_match_is_an_empty_ranking() -> None:
    assert searcher(SmallStore()).lexical("memory", '"car"', depth=3) == ([], 0)


def test_the_index_of_vectors_and_the_vectors_say_the_same() -> None:
    encoder = SynonymEncoder()
    store = SmallStore(encoder=encoder)
    for number in range(30):
        store.memory(f"car number {number}", pieces=[f"car {number}", f"house {number}"], id_=f"{number:02}")
    query = encoder.encode(["car 7"], "query")[0]
    ask = searcher(store)
    assert ask.has_vectors

    near = ask.nearest("memory", query, depth=5)
    beyond = ask.nearest("memory", query, depth=NEAREST_LIMIT)
    cosines = ask.cosines("memory", query, [row.pk for row in beyond])

    assert near == beyond[:5]
    assert (near[0].id, near[0].rank) == ("07", 1)
    assert near[0].score == pytest.approx(1.0, abs=1e-5)
    assert [row.score for row in beyond] == [cosines[row.pk] for row in beyond]
    assert (len(beyond), ask.with_vectors("memory", query), ask.with_vectors("entity", query)) == (30, 30, 0)


def test_a_store_without_vectors_has_none_to_search() -> None:
    ask = searcher(SmallStore())

    assert not ask.has_vectors
    assert ask.encoder() is None


def test_rarity_falls_with_frequency_also_beyond_the_sample() -> None:
    store = SmallStore()
    with store.db:
        for number in range(2400):
            store.memory("all " + ("half " if number % 2 else "") + ("few " if number % 600 == 0 else ""))
    ask = searcher(store)

    rarities = [ask.rarity("memory", Term(word)) for word in ("none", "few", "half", "all")]

    assert rarities == sorted(rarities, reverse=True)
    assert rarities[2] == pytest.approx(1.1, abs=0.02)
    assert rarities[3] == pytest.approx(0.69, abs=0.02)


def test_which_of_some_items_contain_a_word() -> None:
    store = SmallStore()
    for text in ("red car", "red house", "blue car"):
        store.memory(text)

    assert searcher(store).holding("memory", Term("car"), [1, 2, 99]) == {1}
    assert searcher(store).holding("memory", Term("cars"), [1, 2, 3]) == {1, 3}


def test_a_snapshot_does_not_see_what_is_written_meanwhile(tmp_path: Path) -> None:
    store = SmallStore(tmp_path / "s.db")
    store.memory("red car")
    reader = Searcher(connect(tmp_path / "s.db", write=False), Filters(NOW))

    with reader.snapshot():
        before = reader.lexical("memory", '"car"', depth=5).total
        store.memory("blue car")
        with reader.snapshot():
            assert reader.lexical("memory", '"car"', depth=5).total == before == 1
    assert reader.lexical("memory", '"car"', depth=5).total == 2


def test_a_search_on_a_damaged_store_says_so(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = SmallStore(path)
    for number in range(1500):
        store.memory(f"red car {number} " + "filler " * 50)
    store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.db.close()
    size = path.stat().st_size
    with path.open("r+b") as stream:
        stream.seek(size // 2)
        stream.write(b"\xa5" * (size - size // 2))
    reader = Searcher(connect(path, write=False), Filters(NOW))

    with pytest.raises(StoreDamaged), reader.snapshot():
        reader.memories([row.pk for row in reader.lexical("memory", '"car"', depth=1500).rows])


def test_every_filter_stands_inside_the_query() -> None:
    store = SmallStore()
    one = store.entity("Ann", id_="ann")
    store.memory("red car", tags=["t"], about=[one])
    filters = Filters(
        NOW,
        scopes=("global",),
        kinds=("unknown",),
        memory_types=("observation",),
        tags=("t",),
        since="2020-01-01T00:00:00.000Z",
        until="2030-01-01T00:00:00.000Z",
        entity="ann",
    )
    ask = searcher(store, filters)

    assert [row.id for row in ask.lexical("memory", '"car"', depth=5).rows] == ["m0002"]
    for other in (
        Filters(NOW, scopes=("topic:x",)),
        Filters(NOW, kinds=("person",)),
        Filters(NOW, memory_types=("note",)),
        Filters(NOW, tags=("u",)),
        Filters(NOW, since="2027-01-01T00:00:00.000Z"),
        Filters(NOW, until="2025-01-01T00:00:00.000Z"),
        Filters(NOW, entity="bob"),
    ):
        assert searcher(store, other).lexical("memory", '"car"', depth=5).total == 0


def test_items_are_only_told_with_what_is_visible_of_them() -> None:
    store = SmallStore()
    shown, hidden = store.entity("Ann", scope="global"), store.entity("Bob", scope="topic:x")
    archived = store.entity("Cat", scope="global", state="archived")
    store.memory("red car", ["global", "topic:x"], about=[hidden, shown, archived])

    visible = searcher(store, Filters(NOW, scopes=("global",))).memories([4])[4]

    assert (visible["scopes"], visible["about"]) == (["global"], ["Ann"])


def test_the_connection_may_be_read_only(tmp_path: Path) -> None:
    SmallStore(tmp_path / "s.db", SynonymEncoder()).memory("red car")
    db = connect(tmp_path / "s.db", write=False)

    assert Searcher(db, Filters(NOW)).has_vectors
    with pytest.raises(apsw.ReadOnlyError):
        db.execute("DELETE FROM memory")


def test_what_is_left_out_is_not_counted_however_many_items_match() -> None:
    store = SmallStore()
    with store.db:
        for number in range(1600):
            store.memory(f"car {number}", ["global"] if number % 100 else ["topic:x"])
        store.memory("car gone", state="archived")
        store.memory("car over", invalid_at="2026-01-01T00:00:00.000Z")
        store.memory("car then", invalid_at="2027-01-01T00:00:00.000Z")
        store.memory("house gone", state="archived")

    def total(**filters: Any) -> int:
        return searcher(store, Filters(NOW, **filters)).lexical("memory", '"car"', depth=5).total

    assert total() == 1601
    assert total(scopes=("global",)) == 1585
    assert total(scopes=("topic:x",)) == 16
    assert total(scopes=("topic:none",)) == 0
    assert total(state="archived") == 1
    assert total(state="all") == 1603
    assert total(tags=("t",)) == 0
