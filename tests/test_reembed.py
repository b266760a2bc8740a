"""Making vectors for what has none, and making all anew with another encoder."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import CLOCK, write_records
from hash_encoder import HashEncoder
from snapshots import content, opened, rows, sketches_are_in_step

from graphmem.embed import Encoder, Progress, Role
from graphmem.errors import EncoderError, EncoderMismatch, Interrupted
from graphmem.findings import Severity
from graphmem.ingest import run as import_
from graphmem.options import ImportOptions
from graphmem.recall import Query, search
from graphmem.reembed import ReembedReport, reembed
from graphmem.store import Store
from graphmem.store.check import check
from graphmem.store.filters import Filters
from graphmem.store.search import Searcher

LONG = " ".join(f"word{number}" for number in range(70))
RECORDS: list[dict[str, Any]] = [
    {"type": "entity", "name": "AuthService", "kind": "service", "description": "Knows who you are."},
    {"type": "entity", "name": "Old", "state": "archived"},
    {"type": "memory", "content": "Retries three times.", "title": "Retries", "about": ["AuthService"]},
    {"type": "memory", "content": LONG, "about": ["Zed", "AuthService"], "mentions": ["Old"]},
    {"type": "memory", "content": "the same words"},
    {"type": "memory", "content": "the same words", "scopes": ["repo:/a"]},
    {"type": "memory", "content": "kept away", "state": "archived"},
    {"type": "memory", "content": "nothing but names", "about": [{"name": "Zed", "kind": "person"}]},
    {"type": "relation", "subject": "AuthService", "predicate": "dependsOn", "object": "PostgresDB"},
    {
        "type": "relation",
        "subject": "Zed",
        "predicate": "owns",
        "object": "Old",
        "fact": "Zed owns the old one.",
    },
]
NOW = "2026-06-01T00:00:00.000Z"


def small(**given: Any) -> HashEncoder:
    return HashEncoder(name="small", dimension=16, capacity=20, **given)


def large(**given: Any) -> HashEncoder:
    return HashEncoder(name="large", dimension=32, capacity=30, **given)


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return write_records(tmp_path / "records.jsonl", RECORDS)


def filled(path: Path, records: Path, encoder: Encoder | None, clock: str = CLOCK) -> Path:
    with Store(path, write=True) as store:
        import_(store, ImportOptions([str(records)], clock=clock), encoder)
    return path


def renewed(path: Path, encoder: Encoder, **given: Any) -> ReembedReport:
    with Store(path, write=True) as store:
        return reembed(store, encoder, **given)


def held(path: Path) -> dict[str, Any]:
    db = opened(path)
    found = content(db)
    db.close()
    return found


def encoder_of(path: Path) -> list[Any]:
    with Store(path) as store:
        return list(store.db.execute("SELECT name, dimension, current FROM encoder ORDER BY pk"))


def index_is_in_step(path: Path) -> bool:
    db = opened(path)
    try:
        return sketches_are_in_step(db) and db.execute("PRAGMA integrity_check").get == "ok"
    finally:
        db.close()


def nearest(path: Path, encoder: Encoder, text: str) -> list[str]:
    with Store(path) as store:
        searcher = Searcher(store.db, Filters(NOW))
        answer = search(searcher, Query(text, searcher.filters, recipe="semantic"), encoder)
    return [hit["content"] for hit in answer.hits]


class Meddler(HashEncoder):
    """A `HashEncoder` during whose k-th call something else happens."""

    def __init__(self, at: int, what: Callable[[], object], **given: Any) -> None:
        super().__init__(**given)
        self._at, self._what, self._calls = at, what, 0

    def encode(self, texts: Sequence[str], role: Role, progress: Progress | None = None) -> list[bytes]:
        self._calls += 1
        if self._calls == self._at:
            self._what()
        return super().encode(texts, role, progress)


class SprungError(Exception):
    """A trap was met."""


class Trap:
    """Raises at the n-th statement of a connection."""

    def __init__(self, number: int) -> None:
        self._left = number

    def __call__(self, cursor: object, sql: str, binds: object) -> bool:
        self._left -= 1
        if not self._left:
            raise SprungError
        return True


@pytest.fixture
def by_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of three texts, so that a small store takes several."""
    monkeypatch.setattr("graphmem.reembed.TEXTS_AT_ONCE", 3)


# ---- items without vectors ---------------------------------------------------------------------------


def test_vectors_made_later_are_those_that_an_import_makes(tmp_path: Path, records: Path) -> None:
    later = filled(tmp_path / "later.db", records, None)
    at_once = filled(tmp_path / "at-once.db", records, small())

    report = renewed(later, small())

    assert held(later) == held(at_once)
    assert index_is_in_step(later)
    assert report.items == {"entity": 4, "memory": 6, "relation": 2}
    assert report.replaced is None
    assert report.encoder["name"] == "small"


def test_equal_texts_are_encoded_once_and_stored_ones_not_again(tmp_path: Path, records: Path) -> None:
    path = filled(tmp_path / "memory.db", records, small())
    more = write_records(tmp_path / "more.jsonl", [
        {"type": "memory", "content": "the same words", "scopes": ["repo:/b"]},
        {"type": "memory", "content": "new words", "scopes": ["repo:/b", "repo:/c"]},
        {"type": "memory", "content": "new words", "scopes": ["repo:/b"]},
    ])  # fmt: skip
    filled(path, more, None, "2026-03-02T00:00:00.000Z")
    encoder = small()

    report = renewed(path, encoder)

    assert encoder.encoded == ["new words"]
    assert (report.encoded, report.items["memory"]) == (1, 3)


def test_where_nothing_is_missing_nothing_changes(tmp_path: Path, records: Path) -> None:
    path = filled(tmp_path / "memory.db", records, small())
    before = rows(opened(path))
    encoder = small()

    report = renewed(path, encoder)

    assert rows(opened(path)) == before
    assert (encoder.encoded, report.batch) == ([], None)


def test_an_empty_store_stays_without_an_encoder(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"

    report = renewed(path, small())

    assert report.batch is None
    assert encoder_of(path) == []


@pytest.mark.usefixtures("by_few")
def test_a_run_that_failed_is_continued(tmp_path: Path, records: Path) -> None:
    path = filled(tmp_path / "memory.db", records, None)
    whole = held(filled(tmp_path / "whole.db", records, small()))
    distinct = len(renewed_texts(tmp_path, records))

    for fails_at in (1, 2, 4, 8, 4):
        before = vectors_of(path, "small")
        with pytest.raises(EncoderError):
            renewed(path, small(fails_at=fails_at))
        assert before <= vectors_of(path, "small") < before + fails_at
    stored = vectors_of(path, "small")
    rest = small()
    renewed(path, rest)

    assert held(path) == whole
    assert len(rest.encoded) == distinct - stored


def vectors_of(path: Path, name: str) -> int:
    with Store(path) as store:
        sql = "SELECT count(*) FROM vector AS v JOIN encoder AS e ON e.pk = v.encoder WHERE e.name = ?"
        return int(store.db.execute(sql, (name,)).get)


def renewed_texts(tmp_path: Path, records: Path) -> list[str]:
    encoder = small()
    filled(tmp_path / "counted.db", records, encoder)
    return encoder.encoded


@pytest.mark.usefixtures("by_few")
def test_no_item_has_only_some_of_its_vectors(tmp_path: Path, records: Path) -> None:
    whole = held(filled(tmp_path / "whole.db", records, small()))
    assert max(len(one["chunks"]) for one in whole["memories"].values()) > 3
    for fails_at in range(1, len(renewed_texts(tmp_path, records)) + 1):
        path = filled(tmp_path / f"{fails_at}.db", records, None)
        with pytest.raises(EncoderError):
            renewed(path, small(fails_at=fails_at))
        now = held(path)
        for kind in ("entities", "memories", "relations"):
            for key, full in whole[kind].items():
                assert now[kind][key]["chunks"] in ([], full["chunks"])
        with Store(path) as store:
            unused = "SELECT count(*) FROM vector WHERE pk NOT IN (SELECT vector FROM chunk)"
            assert store.db.execute(unused).get == 0


def test_what_an_import_brings_meanwhile_gets_its_vectors_too(tmp_path: Path, records: Path) -> None:
    path = filled(tmp_path / "memory.db", records, None)
    more = write_records(tmp_path / "more.jsonl", [{"type": "memory", "content": "brought meanwhile"}])
    encoder = Meddler(
        1,
        lambda: filled(path, more, None, "2026-03-02T00:00:00.000Z"),
        name="small",
        dimension=16,
        capacity=20,
    )

    report = renewed(path, encoder)

    assert report.items["memory"] == 7
    assert nearest(path, small(), "brought meanwhile")[0] == "brought meanwhile"


def test_a_text_that_changed_meanwhile_gets_the_vector_of_what_it_says_now(tmp_path: Path) -> None:
    first = write_records(tmp_path / "1.jsonl", [{"type": "memory", "id": "m", "content": "first words"}])
    second = write_records(
        tmp_path / "2.jsonl", [{"type": "memory", "id": "m", "content": "second thoughts"}]
    )
    path = filled(tmp_path / "memory.db", first, None)
    encoder = Meddler(
        1,
        lambda: filled(path, second, None, "2026-03-02T00:00:00.000Z"),
        name="small",
        dimension=16,
        capacity=20,
    )

    renewed(path, encoder)

    assert encoder.encoded == ["first words", "second thoughts"]
    (memory,) = held(path)["memories"].values()
    assert memory["chunks"][0][4] == small().encode(["second thoughts"], "document")[0]
    with Store(path) as store:
        assert store.db.execute("SELECT count(*) FROM vector").get == 1


# ---- another encoder ---------------------------------------------------------------------------------


def test_another_encoder_makes_everything_anew(tmp_path: Path, records: Path) -> None:
    path = filled(tmp_path / "memory.db", records, small())
    at_once = filled(tmp_path / "at-once.db", records, large())

    report = renewed(path, large())

    assert held(path) == held(at_once)
    assert index_is_in_step(path)
    assert encoder_of(path) == [("large", 32, 1)]
    assert report.replaced is not None
    assert (report.replaced["name"], report.encoder["name"]) == ("small", "large")
    assert report.items == {"entity": 4, "memory": 6, "relation": 2}


def test_the_same_weights_under_another_name_are_no_other_encoder(tmp_path: Path, records: Path) -> None:
    path = filled(tmp_path / "memory.db", records, small())
    before = rows(opened(path))
    moved = small()
    moved.info = type(moved.info)("elsewhere/small", "abc", moved.info.digest, moved.info.dimension)

    report = renewed(path, moved)

    assert rows(opened(path)) == before
    assert report.encoder["name"] == "small"


@pytest.mark.usefixtures("by_few")
def test_search_answers_by_the_old_encoder_until_the_last_vector_is_there(
    tmp_path: Path, records: Path
) -> None:
    path = filled(tmp_path / "memory.db", records, small())
    before = held(path)
    for fails_at in (4, 6, 4):
        with pytest.raises(EncoderError):
            renewed(path, large(fails_at=fails_at))

        now = held(path)
        assert [one for one in now.pop("vectors") if one[1] == "small"] == before["vectors"]
        assert now == {name: before[name] for name in now}
        assert index_is_in_step(path)
        assert nearest(path, small(), "Retries three times.")[0] == "Retries three times."
        with Store(path) as store:
            assert [one.message for one in check(store).findings if one.severity is Severity.ERROR] == []
        with Store(path) as store:
            encoder = store.encoder()
            assert encoder is not None
            assert encoder.name == "small"


@pytest.mark.usefixtures("by_few")
def test_a_change_that_failed_is_continued_with_the_vectors_made_so_far(
    tmp_path: Path, records: Path
) -> None:
    path = filled(tmp_path / "memory.db", records, small())
    whole = filled(tmp_path / "whole.db", records, large())
    counted = large()
    filled(tmp_path / "counted.db", records, counted)

    with pytest.raises(EncoderError):
        renewed(path, large(fails_at=8))
    stored = vectors_of(path, "large")
    rest = large()
    renewed(path, rest)

    assert held(path) == held(whole)
    assert len(rest.encoded) == len(counted.encoded) - stored < len(counted.encoded)
    assert encoder_of(path) == [("large", 32, 1)]


def test_what_an_import_brings_during_a_change_is_not_lost(tmp_path: Path, records: Path) -> None:
    path = filled(tmp_path / "memory.db", records, small())
    more = write_records(tmp_path / "more.jsonl", [{"type": "memory", "content": "brought meanwhile"}])
    encoder = Meddler(
        1,
        lambda: filled(path, more, small(), "2026-03-02T00:00:00.000Z"),
        name="large",
        dimension=32,
        capacity=30,
    )

    report = renewed(path, encoder)

    assert report.items["memory"] == 7
    assert index_is_in_step(path)
    assert nearest(path, large(), "brought meanwhile")[0] == "brought meanwhile"
    assert vectors_of(path, "small") == 0


def test_an_import_by_the_new_encoder_waits_for_the_change(tmp_path: Path, records: Path) -> None:
    path = filled(tmp_path / "memory.db", records, small())
    with pytest.raises(EncoderMismatch, match="not of large") as raised:
        filled(path, records, large(), "2026-03-02T00:00:00.000Z")
    assert "gmem reembed" in raised.value.hint

    renewed(path, large())

    more = write_records(tmp_path / "more.jsonl", [{"type": "memory", "content": "after that"}])
    filled(path, more, large(), "2026-07-01T00:00:00.000Z")
    assert nearest(path, large(), "after that")[0] == "after that"


def test_of_two_runs_at_once_one_changes_over(tmp_path: Path, records: Path) -> None:
    path = filled(tmp_path / "memory.db", records, small())
    encoder = Meddler(1, lambda: renewed(path, large()), name="large", dimension=32, capacity=30)

    report = renewed(path, encoder)

    assert report.replaced is None
    assert report.batch is None
    assert encoder_of(path) == [("large", 32, 1)]
    assert held(path) == held(filled(tmp_path / "whole.db", records, large()))


@pytest.mark.usefixtures("by_few")
def test_what_is_left_of_a_change_that_was_given_up_is_dropped(tmp_path: Path, records: Path) -> None:
    path = filled(tmp_path / "memory.db", records, small())
    before = held(path)
    with pytest.raises(EncoderError):
        renewed(path, large(fails_at=8))

    renewed(path, small())

    assert held(path) == before
    assert encoder_of(path) == [("small", 16, 1)]


def test_the_same_weights_with_another_dimension_are_refused(tmp_path: Path, records: Path) -> None:
    path = filled(tmp_path / "memory.db", records, small())
    cut = small()
    cut.info = type(cut.info)(cut.info.name, cut.info.revision, cut.info.digest, 8)

    with pytest.raises(EncoderError, match="has 8 dimensions now, and had 16 before"):
        renewed(path, cut)

    assert index_is_in_step(path)


def test_whatever_statement_of_a_change_fails_the_store_is_as_before(tmp_path: Path) -> None:
    few = write_records(tmp_path / "few.jsonl", [RECORDS[0], RECORDS[2], RECORDS[8]])
    path = filled(tmp_path / "memory.db", few, small())
    after = held(filled(tmp_path / "after.db", few, large()))
    before = held(path)

    number, done = 0, False
    while not done:
        number += 1
        with Store(path, write=True) as store:
            store.db.exec_trace = Trap(number)
            try:
                reembed(store, large())
                done = True
            except SprungError:
                store.db.exec_trace = None
        if not done:
            now = held(path)
            assert [one for one in now.pop("vectors") if one[1] == "small"] == before["vectors"]
            assert now == {name: before[name] for name in now}

    assert number > 50
    assert held(path) == after


# ---- the run itself ----------------------------------------------------------------------------------


def test_a_run_is_one_batch(tmp_path: Path, records: Path) -> None:
    path = filled(tmp_path / "memory.db", records, None)

    report = renewed(path, small(), clock=CLOCK)

    with Store(path) as store:
        batches: list[Any] = store.db.execute(
            "SELECT id, at, command, counts FROM batch ORDER BY pk"
        ).fetchall()
    assert len(batches) == 2
    id_, at, command, counts = batches[1]
    assert (id_, command) == (report.batch, "reembed")
    assert at == "2026-03-01T00:00:00.001Z"
    assert json.loads(counts) == {"encoder": "small", "vectors": {"entity": 4, "memory": 6, "relation": 2}}


@pytest.mark.parametrize("before", [None, small()])
def test_being_interrupted_says_how_to_go_on(tmp_path: Path, records: Path, before: Encoder | None) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    path = filled(tmp_path / "memory.db", records, before)

    with pytest.raises(Interrupted, match="0 of the texts that were encoded are stored"):
        renewed(path, Meddler(1, interrupt, name="large", dimension=32, capacity=30))

    assert renewed(path, large()).batch is not None


@pytest.mark.usefixtures("by_few")
@pytest.mark.parametrize("before", [None, small()])
def test_progress_ends_with_everything(tmp_path: Path, records: Path, before: Encoder | None) -> None:
    told: list[tuple[str, int, int | None]] = []
    path = filled(tmp_path / "memory.db", records, before)

    renewed(path, large(), progress=lambda *each: told.append(each))

    encoding = [one for one in told if one[0] == "encode"]
    assert encoding[0] == ("encode", 0, 12)
    assert encoding[-1] == ("encode", 12, 12)
    assert encoding == sorted(encoding)
