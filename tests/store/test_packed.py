"""Packed figures: they are what their rows say after any change, and are only read again where they changed."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

import pytest
from search_store import NOW, SmallStore, SynonymEncoder

from graphmem.store import Store, packed
from graphmem.store.filters import Filters
from graphmem.store.packed import LENGTHS, measured, out_of_step, pack, sketched, stamps, unpack
from graphmem.store.search import Searcher
from graphmem.store.vectors import detach
from graphmem.store.write import MEMORY

pytest.importorskip("numpy")
from graphmem.store import blocks


@pytest.fixture
def store() -> SmallStore:
    """Items of two ranges of lengths, packed."""
    made = SmallStore(encoder=SynonymEncoder())
    made.memory("red car")
    made.memory("blue house", title="Home")
    made._next = LENGTHS
    made.memory("far away")
    made.relation(made.entity("Ann"), "owns", made.entity("Car"))
    pack(made.db)
    return made


def test_lengths_are_the_words_of_the_full_text(store: SmallStore) -> None:
    found = blocks.lengths(store.db, MEMORY)

    assert found.texts == 3
    assert len(found.words) == 2 * LENGTHS
    sizes: Any = store.db.execute("SELECT id, sz FROM memory_fts_docsize ORDER BY id").fetchall()
    assert {pk: int(found.words[pk]) for pk, _ in sizes} == {pk: sum(size) for pk, size in sizes}
    assert found.mean == pytest.approx(sum(sum(size) for _, size in sizes) / 3)


def test_long_texts_are_counted_beyond_one_byte(store: SmallStore) -> None:
    store.memory("word " * 70_000)

    assert int(blocks.lengths(store.db, MEMORY).words.max()) == 70_000


def test_what_is_not_packed_is_read_from_the_rows(store: SmallStore) -> None:
    before = blocks.lengths(store.db, MEMORY)
    store.memory("one two three")

    after = blocks.lengths(store.db, MEMORY)

    assert store.db.execute("SELECT count(*) FROM packed WHERE body IS NULL").get > 0
    assert after.texts == before.texts + 1
    assert out_of_step(store.db) == 0
    pack(store.db)
    assert store.db.execute("SELECT count(*) FROM packed WHERE body IS NULL").get == 0
    assert (blocks.lengths(store.db, MEMORY).words == after.words).all()
    assert out_of_step(store.db) == 0


def test_only_ranges_that_changed_get_another_stamp(store: SmallStore) -> None:
    before = stamps(store.db, measured(MEMORY))
    unpack(store.db, measured(MEMORY), [1])
    pack(store.db)

    after = stamps(store.db, measured(MEMORY))

    assert sorted(after.values()) == sorted(before.values()) == [0, 1]
    assert len(before.keys() & after.keys()) == 1


def test_a_range_without_rows_is_dropped(store: SmallStore) -> None:
    items: Any = store.db.execute("SELECT pk FROM memory").fetchall()
    for (item,) in items:
        detach(store.db, MEMORY, item)
    pack(store.db)

    assert stamps(store.db, sketched(MEMORY)) == {}
    assert out_of_step(store.db) == 0


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE packed SET body = x'00'",
        "UPDATE packed SET head = x'0000'",
        "UPDATE packed SET body = NULL, head = NULL",
        "UPDATE packed SET body = CAST(body || x'00' AS BLOB)",
    ],
)
def test_damaged_figures_are_read_from_the_rows(store: SmallStore, damage: str) -> None:
    ask = Searcher(store.db, Filters(NOW))
    assert ask.has_vectors
    vector = SynonymEncoder().encode(["red car"], "query")[0]
    before = ask.nearest("memory", vector, depth=3)
    words = blocks.lengths(store.db, MEMORY).words
    blocks._KEPT.clear()

    store.db.execute(damage)

    assert ask.nearest("memory", vector, depth=3) == before
    assert (blocks.lengths(store.db, MEMORY).words == words).all()


@pytest.mark.parametrize(
    "damage", ["UPDATE packed SET body = zeroblob(length(body))", "DELETE FROM packed WHERE what = 1"]
)
def test_wrong_figures_are_counted(store: SmallStore, damage: str) -> None:
    store.db.execute(damage)

    assert out_of_step(store.db) > 0


def test_a_transaction_packs_and_one_that_is_taken_back_does_not(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db", write=True) as store:
        with store.transaction():
            store.db.execute("INSERT INTO memory_fts (rowid, content) VALUES (5, 'a b')")
            unpack(store.db, measured(MEMORY), [5])
        before = stamps(store.db, measured(MEMORY))
        assert packed.read(store.db, next(iter(before))).body[20:24] == array("I", [3]).tobytes()

        store.db.execute("BEGIN")
        unpack(store.db, measured(MEMORY), [5, 5000])
        pack(store.db)
        store.db.execute("ROLLBACK")

        assert stamps(store.db, measured(MEMORY)) == before


def test_more_sketches_than_are_kept_are_read_in_parts(
    store: SmallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = Searcher(store.db, Filters(NOW))
    assert ask.has_vectors
    vector = SynonymEncoder().encode(["red car"], "query")[0]
    kept = ask.nearest("memory", vector, depth=3)
    blocks._KEPT.clear()
    monkeypatch.setattr(blocks, "MOST_KEPT", 0)

    assert ask.nearest("memory", vector, depth=3) == kept
    assert sketched(MEMORY) not in blocks._KEPT.get(store.db, {})


def test_after_a_change_only_its_ranges_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = SmallStore(encoder=SynonymEncoder())
    for number in range(800):
        made.memory(f"car {number}")
    pack(made.db)
    ask = Searcher(made.db, Filters(NOW))
    assert ask.has_vectors
    vector = SynonymEncoder().encode(["car 7"], "query")[0]
    ask.nearest("memory", vector, depth=3)
    read: list[int] = []

    def noted(db: Any, stamp: int) -> packed.Block:
        read.append(stamp)
        return packed.read(db, stamp)

    monkeypatch.setattr(blocks, "read", noted)

    made.memory("car 7 again")
    pack(made.db)
    found = ask.nearest("memory", vector, depth=3)

    assert len(read) == 1
    blocks._KEPT.clear()
    assert ask.nearest("memory", vector, depth=3) == found


def test_vectors_that_are_kept_say_the_same_after_any_change(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = SynonymEncoder()
    made = SmallStore(encoder=encoder)
    for number in range(700):
        made.memory(f"car {number}", pieces=[f"car {number}", f"house {number % 9}"][: 1 + number % 2])
    kept, fresh = (Searcher(made.db, Filters(NOW)) for _ in range(2))
    assert kept.has_vectors
    assert fresh.has_vectors
    vector = encoder.encode(["car 7 house 3"], "query")[0]
    some = [1, 7, 8, 700, 699, 9999]

    def answers(ask: Searcher) -> tuple[Any, Any]:
        return ask.nearest("memory", vector, depth=30), ask.cosines("memory", vector, some)

    for change in range(6):
        for _ in range(12):
            answers(kept)
        assert blocks.vectors(made.db, MEMORY, 64) is not None
        one = answers(kept)
        held = blocks._KEPT.pop(made.db)
        with monkeypatch.context() as patch:
            patch.setattr(blocks, "MOST_VECTORS", 0)
            other = answers(fresh)
        blocks._KEPT[made.db] = held
        assert one[0] == other[0]
        assert one[1] == other[1]
        if change % 2:
            detach(made.db, MEMORY, 8 + change)
        else:
            made.memory(f"car 7 house 3 again {change}")


def test_one_question_alone_does_not_read_all_vectors(store: SmallStore) -> None:
    ask = Searcher(store.db, Filters(NOW))
    assert ask.has_vectors
    ask.nearest("memory", SynonymEncoder().encode(["red car"], "query")[0], depth=3)

    assert blocks.vectors(store.db, MEMORY, 64) is None


def test_vectors_that_are_not_all_there_are_not_kept(store: SmallStore) -> None:
    ask = Searcher(store.db, Filters(NOW))
    assert ask.has_vectors
    vector = SynonymEncoder().encode(["red car"], "query")[0]
    for _ in range(12):
        ask.nearest("memory", vector, depth=3)
    store.db.execute("PRAGMA foreign_keys = OFF")
    store.db.execute("DELETE FROM vector WHERE pk = (SELECT min(vector) FROM chunk WHERE kind = 1)")
    blocks._KEPT.clear()
    for _ in range(12):
        list(blocks.sketches(store.db, MEMORY, 24))

    assert blocks.vectors(store.db, MEMORY, 64) is None


def test_the_last_used_arrays_are_kept_up_to_a_number_of_values() -> None:
    kept = blocks.Kept()
    for key in "abc":
        kept.put(key, key.upper(), 4, 10)
    assert kept.get("a") is None
    assert kept.get("b") == "B"
    kept.put("d", "D", 4, 10)

    assert [kept.get(key) for key in "abcd"] == [None, "B", None, "D"]
    kept.put("b", "BB", 2, 10)
    kept.put("e", "E", 4, 10)
    assert [kept.get(key) for key in "bde"] == ["BB", "D", "E"]
