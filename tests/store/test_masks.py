"""Masks: what they say of each item is what the filters say, at any time and after any change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from search_store import NOW, SmallStore

from graphmem.store.connection import connect
from graphmem.store.filters import Filtered, Filters, Kind
from graphmem.store.warm import remembered

KINDS: tuple[Kind, ...] = ("entity", "memory", "relation")
TIMES = [
    "2026-01-01T00:00:00.000Z",
    "2026-06-01T00:00:00.000Z",
    "2026-06-02T00:00:00.000Z",
    "2027-01-01T00:00:00.000Z",
]


@pytest.fixture
def store() -> SmallStore:
    """Items of three scopes; some are archived, some end at one of the times."""
    made = SmallStore()
    ends = [None, *TIMES]
    for number in range(60):
        scope = ("global", "repo:/a", "repo:/b")[number % 3]
        made.memory(
            f"memory {number}", scopes=[scope] if number % 4 else ["global", "repo:/b"],
            state="archived" if number % 11 == 0 else "active",
            invalid_at=ends[number % 5], expired_at=ends[number % 7 % 5],
        )  # fmt: skip
    entities = [made.entity(f"e{number}", scope=("global", "repo:/a")[number % 2]) for number in range(6)]
    for number, one in enumerate(entities[1:]):
        made.relation(
            entities[0], f"p{number}", one, scope=("global", "repo:/a")[number % 2], invalid_at=ends[number]
        )
    return made


def passing(ask: Filtered, kind: Kind) -> set[int]:
    rows: Any = ask.ask("SELECT i.pk FROM {table} AS i WHERE {condition}", kind)
    return {pk for (pk,) in rows}


def masked(ask: Filtered, kind: Kind) -> set[int]:
    mask = ask.mask(kind)
    assert mask is not None
    there: Any = ask.db.execute(f"SELECT pk FROM {kind}").fetchall()
    return {pk for (pk,) in there if mask[pk]}


@pytest.mark.parametrize("scopes", [None, ("global",), ("repo:/a", "global"), ("repo:/b",), ("nowhere",)])
def test_a_mask_says_what_the_filters_say_at_any_time(
    store: SmallStore, scopes: tuple[str, ...] | None
) -> None:
    for _ in range(2):  # also what was remembered
        for now in ["2025-12-31T23:59:59.999Z", *TIMES, "2026-06-01T12:00:00.000Z"]:
            ask = Filtered(store.db, Filters(now, scopes))
            for kind in KINDS:
                assert masked(ask, kind) == passing(ask, kind)


def test_a_mask_follows_changes_of_this_and_of_other_connections(tmp_path: Path) -> None:
    writer = SmallStore(tmp_path / "s.db")
    writer.memory("one")
    reader = Filtered(connect(tmp_path / "s.db", write=False), Filters(NOW, ("global",)))
    own = Filtered(writer.db, Filters(NOW, ("global",)))

    for number in range(2, 5):
        writer.memory("another")
        for ask in (reader, own):
            with ask.snapshot():
                assert len(masked(ask, "memory")) == number
    writer.db.execute("UPDATE memory SET state = 'archived' WHERE pk = 1")
    for ask in (reader, own):
        with ask.snapshot():
            assert masked(ask, "memory") == {2, 3, 4}


def test_nothing_is_remembered_of_what_may_be_taken_back(store: SmallStore) -> None:
    before = masked(Filtered(store.db, Filters(NOW)), "memory")
    store.db.execute("BEGIN IMMEDIATE")
    store.db.execute("UPDATE memory SET state = 'archived'")
    assert masked(Filtered(store.db, Filters(NOW)), "memory") == set()
    store.db.execute("ROLLBACK")

    assert masked(Filtered(store.db, Filters(NOW)), "memory") == before


def test_masks_are_not_made_again_while_nothing_changes(
    store: SmallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Filtered(store.db, Filters(NOW, ("global",))).mask("memory")
    monkeypatch.setattr(Filtered, "_masked", lambda *_: pytest.fail("made again"))

    assert Filtered(store.db, Filters(NOW, ("global",))).mask("memory") is first


def test_only_so_many_masks_are_remembered(store: SmallStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphmem.store.filters._MOST_MASKS", 3)
    for scopes in (None, ("global",), ("repo:/a",), ("repo:/b",), ("global", "repo:/a")):
        assert Filtered(store.db, Filters(NOW, scopes)).mask("memory") is not None

    assert len(remembered(store.db)["masks"]) <= 3


@pytest.mark.parametrize(
    "filters", [Filters(NOW, tags=("t",)), Filters(NOW, state="all"), Filters(NOW, since=NOW)]
)
def test_other_filters_have_no_mask(store: SmallStore, filters: Filters) -> None:
    assert Filtered(store.db, filters).mask("memory") is None


def test_with_very_many_ends_nothing_is_remembered(
    store: SmallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmem.store.filters._MOST_ENDS", 2)

    assert Filtered(store.db, Filters(NOW)).mask("memory") is None
