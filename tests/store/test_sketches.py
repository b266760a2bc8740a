"""The index of vectors: sketches follow their items, find what the vectors would, and replace older layouts."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import apsw
import pytest
from search_store import DIMENSION, NOW, SmallStore, SynonymEncoder
from snapshots import sketches_are_in_step

from graphmem.store.connection import SCHEMA_VERSION, connect, load_vectors
from graphmem.store.filters import Filters
from graphmem.store.near import NEAREST_LIMIT
from graphmem.store.schema import migration_sql
from graphmem.store.search import Searcher
from graphmem.store.sketches import INDEXES, Sketcher
from graphmem.store.vectors import detach

PAST, FUTURE = "2026-01-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z"


@pytest.fixture
def store() -> SmallStore:
    """A store with one item of each kind, each with its sketch."""
    made = SmallStore(encoder=SynonymEncoder())
    ann, bob = made.entity("Ann"), made.entity("Bob", scope="topic:x")
    made.memory("red car", ["global", "topic:x"], pieces=["red", "car"], invalid_at=FUTURE)
    made.relation(ann, "knows", bob)
    made.memory("old car", state="archived", expired_at=PAST)
    return made


def test_every_piece_of_every_item_has_its_sketch(store: SmallStore) -> None:
    assert sketches_are_in_step(store.db)
    assert [store.db.execute(f"SELECT count(*) FROM {index}").get for index in INDEXES] == [2, 3, 1]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entity SET scope = (SELECT max(pk) FROM scope)",
        "UPDATE entity SET state = 'archived'",
        "UPDATE memory SET scope_set = (SELECT max(pk) FROM scope_set)",
        "UPDATE memory SET state = 'active'",
        "UPDATE memory SET state = 'archived', invalid_at = NULL",
        f"UPDATE memory SET invalid_at = '{PAST}'",
        f"UPDATE memory SET invalid_at = '{FUTURE}', expired_at = '{PAST}'",
        f"UPDATE relation SET expired_at = '{FUTURE}', scope = 2",
    ],
)
def test_sketches_follow_their_items(store: SmallStore, change: str) -> None:
    store.db.execute(change)

    assert sketches_are_in_step(store.db)


def test_a_sketch_goes_with_its_piece(store: SmallStore) -> None:
    item: Any = store.db.execute("SELECT pk FROM memory WHERE content = 'red car'").get

    detach(store.db, 1, item)

    assert sketches_are_in_step(store.db)
    assert store.db.execute("SELECT count(*) FROM sketch_memory").get == 1


@pytest.mark.parametrize("dimension", [8, 10, 300, 384])
def test_a_sketch_says_between_which_bounds_each_value_lies(dimension: int) -> None:
    db = apsw.Connection(":memory:")
    assert load_vectors(db)
    rng = random.Random(dimension)
    values = [rng.gauss(0, 1 / dimension**0.5) for _ in range(dimension)]
    import struct

    bits = Sketcher(db, dimension).of(struct.pack(f"<{dimension}f", *values))

    whole = dimension + -dimension % 8
    assert len(bits) == 3 * whole // 8
    for part, bound in enumerate((0.8, 0.0, -0.8)):
        for place, value in enumerate(values):
            at = part * whole + place
            assert bool(bits[at // 8] >> at % 8 & 1) == (value > bound / dimension**0.5)


def test_sketches_find_what_the_vectors_would() -> None:
    encoder = SynonymEncoder()
    store = SmallStore(encoder=encoder)
    rng = random.Random(5)
    words = [f"word{number}" for number in range(40)]
    with store.db:
        for _ in range(1500):
            store.memory(" ".join(rng.sample(words, 6)))
    ask = Searcher(store.db, Filters(NOW))
    assert ask.has_vectors

    shared = 0
    for number in range(20):
        vector = encoder.encode([f"word{number} word{number + 1}"], "query")[0]
        exact = ask.nearest("memory", vector, depth=NEAREST_LIMIT + 1)
        found = ask.nearest("memory", vector, depth=50)
        scores = {row.id: row.score for row in exact}
        assert {row.id: row.score for row in found} == pytest.approx(
            {row.id: scores[row.id] for row in found}
        )
        shared += len({row.id for row in exact[:50]} & {row.id for row in found})

    assert len(exact) == 1500
    assert shared >= 0.99 * 50 * 20


def test_the_index_of_an_older_store_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    made = SmallStore(path, SynonymEncoder())
    made.memory("red car")
    made.entity("Ann")
    _make_older(made.db)
    made.db.close()

    connect(path, write=True).close()

    db = connect(path, write=False)
    load_vectors(db)
    assert sketches_are_in_step(db)
    assert db.execute("SELECT count(*) FROM sketch_memory").get == 1
    assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'vec!_%' ESCAPE '!'").get == 0
    assert db.pragma("user_version") == SCHEMA_VERSION


def _make_older(db: apsw.Connection) -> None:
    """Takes the store back to the layout with vec0 tables."""
    db.execute("DROP TABLE packed")
    for index in INDEXES:
        db.execute(f"DROP TABLE {index}; DROP TRIGGER {index}_follows")
    for name in (
        "relation_object",
        "relation_ended",
        "entity_ended",
        "memory_ended",
        "memory_scope",
        "relation_scope",
    ):
        db.execute(f"DROP INDEX {name}")
    db.execute("CREATE INDEX relation_object ON relation (object)")
    for kind, table in enumerate(("vec_entity", "vec_memory", "vec_relation")):
        db.execute(
            f"CREATE VIRTUAL TABLE {table} USING vec0(embedding float[{DIMENSION}] distance_metric=cosine)"
        )
        db.execute(
            f"INSERT INTO {table} (rowid, embedding) SELECT c.pk, v.vector FROM chunk AS c "
            "JOIN vector AS v ON v.pk = c.vector WHERE c.kind = ?",
            (kind,),
        )
    assert "sketch_memory" in migration_sql(3)
    db.execute("PRAGMA user_version = 3")
