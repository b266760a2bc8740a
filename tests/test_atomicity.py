"""A batch is stored whole or not at all: tables, full text and vectors together."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest
from conftest import write_records
from everything import FIRST, SECOND
from faults import interrupted_store, run_python, whole_batches
from hash_encoder import HashEncoder
from importing import lost, take, take_records
from snapshots import changed, content, differences, opened, rows, sound
from strategies import FIRST_CLOCK, SECOND_CLOCK

from graphmem.embed import Progress, Role
from graphmem.errors import EncoderError, StoreBusy
from graphmem.store import Store

CHANGES = [
    *SECOND,
    {"type": "entity", "name": "C++", "kind": "language", "scope": "global", "aliases": ["cpp"], "id": "cpp"},
    {"type": "memory", "id": "m2", "content": "plain no more", "scopes": ["global"], "about": ["Brand new"]},
    {"type": "memory", "content": "new", "scopes": ["repo:/c"], "tags": ["t"], "mentions": ["C++"]},
    {
        "type": "relation",
        "subject": "C++",
        "predicate": "owned by",
        "object": "Brand new",
        "stated_by": ["m2"],
    },
]


class Fault(Exception):
    """What the tests raise in the middle of things."""


@pytest.fixture
def store(store_path: Path, tmp_path: Path) -> Iterator[Store]:
    """A store with a batch in it."""
    with Store(store_path, write=True) as made:
        take_records(made, tmp_path, FIRST, name="first", encoder=HashEncoder())
        yield made


def fail_at(db: apsw.Connection, number: int) -> list[str]:
    """Has the statement of that number fail, from now on; the statements so far."""
    seen: list[str] = []

    def trace(_cursor: apsw.Cursor, sql: str, _bindings: Any) -> bool:
        if sql == "ROLLBACK":
            return True
        seen.append(sql)
        if len(seen) == number:
            raise Fault(sql)
        return True

    db.exec_trace = trace
    return seen


def test_a_fault_at_any_statement_changes_nothing(store: Store, tmp_path: Path) -> None:
    """Every statement of a run fails once: those that read, those that write, BEGIN and COMMIT."""
    path = write_records(tmp_path / "second.jsonl", CHANGES)
    with Store(":memory:", write=True) as other:
        take_records(other, tmp_path, FIRST, name="first", encoder=HashEncoder())
        take(other, path, SECOND_CLOCK, encoder=HashEncoder())
        expected = content(other.db)
    before = rows(store.db)
    failed: list[str] = []

    for number in range(1, 10_000):
        fail_at(store.db, number)
        try:
            take(store, path, SECOND_CLOCK, encoder=HashEncoder())
        except Fault as fault:
            failed.append(str(fault))
        else:
            break
        finally:
            store.db.exec_trace = None
        if "COMMIT" in failed[:-1]:
            break  # the report is made after the last commit
        assert changed(before, rows(store.db)) == {}, (number, failed[-1])

    assert failed.count("BEGIN IMMEDIATE") == 2  # once without the vectors, once with them
    assert failed.count("COMMIT") == 1
    assert any("sketch_memory" in sql and sql.startswith("INSERT") for sql in failed)
    assert any("memory_fts" in sql and sql.startswith("DELETE") for sql in failed)
    assert len(failed) > 150
    assert differences(expected, content(store.db)) == []
    assert sound(store.db) == []


def test_a_fault_in_a_later_batch_leaves_the_earlier_ones(store_path: Path, tmp_path: Path) -> None:
    path = write_records(tmp_path / "first.jsonl", FIRST)
    expected = whole_batches(tmp_path, [path], batch_size=3)
    with Store(store_path, write=True) as store:
        statements = fail_at(store.db, 0)
        take(store, path, encoder=HashEncoder(), batch_size=3)
        at = [number for number, sql in enumerate(statements, 1) if sql == "COMMIT"][2]

    with Store(tmp_path / "other.db", write=True) as store:
        fail_at(store.db, at)
        with pytest.raises(Fault):
            take(store, path, encoder=HashEncoder(), batch_size=3)
        store.db.exec_trace = None

        assert content(store.db) == expected[2]


@pytest.mark.parametrize("batch_size", [3, 10_000])
def test_an_encoder_that_fails_stores_nothing_of_its_batch(batch_size: int, tmp_path: Path) -> None:
    path = write_records(tmp_path / "first.jsonl", FIRST)
    expected = whole_batches(tmp_path, [path], batch_size=batch_size)
    whole = HashEncoder()
    with Store(":memory:", write=True) as store:
        take(store, path, encoder=whole, batch_size=batch_size)
    reached = set()

    for number in range(1, len(whole.encoded) + 1):
        with Store(":memory:", write=True) as store:
            with pytest.raises(EncoderError):
                take(store, path, encoder=HashEncoder(fails_at=number), batch_size=batch_size)
            held = content(store.db)
            assert held in expected
            assert sound(store.db) == []
            reached.add(expected.index(held))

            report = take(store, path, encoder=HashEncoder(), batch_size=batch_size)
            assert lost(report) == 0
            assert content(store.db)["entities"].keys() == expected[-1]["entities"].keys()
            assert sound(store.db) == []
    assert reached == ({0} if batch_size == 10_000 else set(range(len(expected) - 1)))


def test_a_run_in_one_batch_is_stored_whole_or_not_at_all(store_path: Path, tmp_path: Path) -> None:
    path = write_records(tmp_path / "first.jsonl", FIRST)
    with Store(store_path, write=True) as store:
        with pytest.raises(EncoderError):
            take(store, path, encoder=HashEncoder(fails_at=8), batch_size=2, atomic=True)
        assert store.db.execute("SELECT count(*) FROM batch").get == 0

        report = take(store, path, encoder=HashEncoder(), batch_size=2, atomic=True)

        assert len(report.batches) == 1


def test_one_error_under_strict_stores_nothing(store: Store, tmp_path: Path) -> None:
    before = rows(store.db)

    wrong = [*CHANGES, {"type": "entity", "name": "Thief", "id": "auth"}]
    report = take_records(
        store, tmp_path, wrong, SECOND_CLOCK, name="wrong", strict=True, encoder=HashEncoder()
    )

    assert report.findings.by_rule["id-conflict"] == 1
    assert changed(before, rows(store.db)) == {}
    assert not report.committed
    assert report.total("skipped") == len(wrong) - 1


class Interrupting(HashEncoder):
    """Stands for a person who presses Ctrl-C during the second call."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def encode(self, texts: Sequence[str], role: Role, progress: Progress | None = None) -> list[bytes]:
        self.calls += 1
        if self.calls == 2:
            raise KeyboardInterrupt
        return super().encode(texts, role, progress)


def test_an_interrupted_run_says_how_much_stands(store_path: Path, tmp_path: Path) -> None:
    from graphmem.errors import Interrupted

    path = write_records(tmp_path / "first.jsonl", FIRST)
    expected = whole_batches(tmp_path, [path], batch_size=3)
    with Store(store_path, write=True) as store:
        with pytest.raises(Interrupted, match="1 whole batch of 3 records"):
            take(store, path, encoder=Interrupting(), batch_size=3)

        assert content(store.db) == expected[1]


# ---- other processes, the disk ----------------------------------------------------------------------


def test_a_killed_import_leaves_whole_batches(tmp_path: Path) -> None:
    reached = interrupted_store(tmp_path, kills=5)

    assert len(reached) == 5


@pytest.mark.skipif("sys.platform == 'win32'", reason="needs limits of POSIX")
def test_a_full_disk_leaves_the_store_as_it_was(store: Store, store_path: Path, tmp_path: Path) -> None:
    before = rows(store.db)
    large = [{"type": "memory", "content": f"{number} " + "x" * 2_000} for number in range(500)]
    path = write_records(tmp_path / "large.jsonl", large)
    biggest = max(one.stat().st_size for one in tmp_path.iterdir() if one.name.startswith(store_path.name))

    done = run_python(
        f"""
        import resource
        limit = {biggest} + 100_000
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        from graphmem.errors import StoreFull
        with Store({str(store_path)!r}, write=True) as store:
            try:
                run(store, ImportOptions([{str(path)!r}], clock={SECOND_CLOCK!r}), HashEncoder())
            except StoreFull as error:
                print("full:", error.message)
        """
    )

    assert done.stdout.startswith("full: "), done.stderr
    assert store_path.name in done.stdout
    with opened(store_path) as db:
        assert changed(before, rows(db)) == {}
        assert sound(db) == []
    assert take(store, path, SECOND_CLOCK, encoder=HashEncoder()).counts["memory"].created == 500


def test_a_writer_waits_for_another(
    store: Store, store_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHMEM_BUSY_TIMEOUT", "10000")
    waited: list[float] = []

    def write() -> None:
        with Store(store_path, write=True) as other:
            began = time.monotonic()
            take_records(other, tmp_path, CHANGES, SECOND_CLOCK, name="second")
            waited.append(time.monotonic() - began)

    thread = threading.Thread(target=write)
    with store.transaction():
        thread.start()
        time.sleep(0.3)
    thread.join()

    assert waited
    assert waited[0] >= 0.2
    assert store.db.execute("SELECT count(*) FROM batch").get == 2


def test_a_writer_gives_up_after_the_wait_limit(
    store: Store, store_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHMEM_BUSY_TIMEOUT", "20")
    before = rows(store.db)
    with Store(store_path, write=True) as other, store.transaction(), pytest.raises(StoreBusy):
        take_records(other, tmp_path, CHANGES, SECOND_CLOCK, name="second")

    assert changed(before, rows(store.db)) == {}


def test_readers_are_not_blocked_and_see_whole_batches(
    store: Store, store_path: Path, tmp_path: Path
) -> None:
    before = rows(store.db)
    with opened(store_path) as reader, store.transaction():
        store.scopes.pk("repo:/unseen")

        assert changed(before, rows(reader)) == {}


def test_two_processes_that_import_at_once_lose_nothing(store_path: Path, tmp_path: Path) -> None:
    paths = []
    for process in range(2):
        records: list[dict[str, Any]] = []
        for number in range(60):
            records += [
                {
                    "type": "entity",
                    "name": f"shared {number % 7}",
                    "kind": "thing",
                    "aliases": [f"a{number}"],
                },
                {"type": "memory", "content": f"{process}/{number}", "about": [f"shared {number % 7}"]},
                {
                    "type": "relation",
                    "subject": f"shared {number % 7}",
                    "predicate": "meets",
                    "object": f"o{number}",
                },
            ]
        paths.append(write_records(tmp_path / f"{process}.jsonl", records))
    with Store(tmp_path / "expected.db", write=True) as store:
        take(store, paths, encoder=HashEncoder(), batch_size=9)
        expected = content(store.db)
    Store(store_path, write=True).close()

    running = [
        run_python(
            f"""
            with Store({str(store_path)!r}, write=True) as store:
                options = ImportOptions([{str(path)!r}], clock={FIRST_CLOCK!r}, batch_size=9)
                report = run(store, options, HashEncoder())
            assert report.total("rejected") == 0
            """,
            wait=False,
        )
        for path in paths
    ]
    for one in running:
        assert one.wait() == 0, one.stderr

    with opened(store_path) as db:
        held = content(db)
        assert sound(db) == []
    for kind in ("entities", "relations"):
        assert held[kind].keys() == expected[kind].keys()
    told = {one["content"]: one["about"] for one in expected["memories"].values()}
    assert {one["content"]: one["about"] for one in held["memories"].values()} == told
    for key, one in expected["entities"].items():
        assert held["entities"][key]["aliases"] == one["aliases"]
    assert held["vectors"] == expected["vectors"]
