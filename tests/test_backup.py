"""Backups: whole, checked, private; and restoring them, which loses nothing of what was there."""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from everything import fill
from faults import run_python
from hash_encoder import HashEncoder
from importing import take_records
from snapshots import changed, content, opened, rows, sound
from strategies import SECOND_CLOCK

from graphmem import packing
from graphmem.backup import Backup, backup, restore
from graphmem.errors import (
    BackupDamaged,
    BackupUnusable,
    OutputUnwritable,
    StoreBusy,
    StoreDamaged,
    StoreForeign,
    StoreFull,
    StoreNotFound,
    StoreTooNew,
    UsageError,
)
from graphmem.store import Store
from graphmem.store.schema import migration_sql

TESTS = Path(__file__).parent


@pytest.fixture
def store(store_path: Path, tmp_path: Path) -> Path:
    """A store in which every table has rows, vectors included."""
    with Store(store_path, write=True) as made:
        fill(made, tmp_path, HashEncoder())
    return store_path


@pytest.fixture
def made(store: Path, tmp_path: Path) -> Backup:
    return backup(store, tmp_path / "backup.db.zst")


def held(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    db = opened(path)
    found = rows(db)
    db.close()
    return found


def add(path: Path, folder: Path, name: str = "more") -> None:
    """One more batch."""
    with Store(path, write=True) as store:
        take_records(
            store, folder, [{"type": "memory", "content": f"{name} to know"}], SECOND_CLOCK, name=name,
            encoder=HashEncoder(),
        )  # fmt: skip


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)


def plain_copy(file: Path, target: Path) -> Path:
    with file.open("rb") as stream:
        packing.read_label(stream)
        target.write_bytes(b"".join(packing.unpack(stream)))
    return target


def left_behind(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


# ---- writing ----------------------------------------------------------------------------------------


def test_a_backup_brings_every_row_of_every_table_back(store: Path, made: Backup, tmp_path: Path) -> None:
    restore(Path(made.file), tmp_path / "other.db")

    assert changed(held(store), held(tmp_path / "other.db")) == {}
    with opened(tmp_path / "other.db") as db:
        assert sound(db) == []


def test_a_backup_says_what_it_holds_and_is_for_its_owner_alone(made: Backup, tmp_path: Path) -> None:
    with Path(made.file).open("rb") as stream:
        label = packing.read_label(stream)

    assert label is not None
    assert label["counts"] == made.counts
    assert made.counts["memories"] == 4
    assert made.size == Path(made.file).stat().st_size < made.store_size
    if os.name == "posix":
        assert stat.S_IMODE(Path(made.file).stat().st_mode) == 0o600
    assert left_behind(tmp_path) == []


def test_a_backup_holds_what_is_only_in_the_log_yet(store: Path, tmp_path: Path) -> None:
    with Store(store, write=True) as writer:
        take_records(
            writer, tmp_path, [{"type": "memory", "content": "in the log"}], SECOND_CLOCK, name="log"
        )
        made = backup(store, tmp_path / "b")
        assert Path(f"{store}-wal").stat().st_size

    copy = plain_copy(Path(made.file), tmp_path / "plain.db")
    assert b"in the log" in copy.read_bytes()


def test_without_a_name_the_file_is_named_by_store_and_time_and_none_is_replaced(
    store: Path, tmp_path: Path
) -> None:
    names = {backup(store).file for _ in range(3)}

    assert len(names) == 3
    assert all(Path(name).parent == store.parent and Path(name).name.startswith("memory-2") for name in names)
    (tmp_path / "kept").mkdir()
    assert Path(backup(store, tmp_path / "kept").file).parent == tmp_path / "kept"


def test_a_store_of_an_earlier_schema_is_backed_up_as_it_is_and_restored_as_of_today(
    store_path: Path, tmp_path: Path
) -> None:
    db = apsw.Connection(str(store_path))
    db.execute(migration_sql(0))
    db.execute("PRAGMA application_id = 1735222637")
    db.execute("PRAGMA user_version = 1")
    db.close()
    before = store_path.read_bytes()

    made = backup(store_path, tmp_path / "old.zst")
    restore(tmp_path / "old.zst", tmp_path / "new.db")

    assert made.schema_version == 1
    assert store_path.read_bytes() == before
    Store(tmp_path / "new.db").close()


def test_a_backup_made_while_others_write_holds_a_whole_number_of_batches(
    store_path: Path, tmp_path: Path
) -> None:
    Store(store_path, write=True).close()
    ended = threading.Event()

    def write() -> None:
        for number in range(40):
            add(store_path, tmp_path, f"n{number}")
        ended.set()

    thread = threading.Thread(target=write)
    thread.start()
    counts = []
    while not ended.is_set():
        made = backup(store_path, tmp_path / "busy.zst")
        assert made.counts["memories"] == made.counts["batches"]
        counts.append(made.counts["batches"])
    thread.join()

    assert counts == sorted(counts)
    assert len(counts) > 1


def test_a_damaged_store_is_not_backed_up_and_the_older_backup_stays(store: Path, made: Backup) -> None:
    before = Path(made.file).read_bytes()
    with Store(store) as opened_:
        page: Any = opened_.db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'memory'").get
    data = bytearray(store.read_bytes())
    data[(page - 1) * 4096 : page * 4096] = b"\xa5" * 4096
    store.write_bytes(data)

    with pytest.raises(StoreDamaged) as error:
        backup(store, Path(made.file))

    assert error.value.exit_status == 5
    assert Path(made.file).read_bytes() == before


def test_a_backup_is_not_written_over_a_store_or_where_no_store_is(store: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        backup(store, store)
    Store(tmp_path / "other.db", write=True).close()
    with pytest.raises(UsageError):
        backup(store, tmp_path / "other.db")
    with pytest.raises(StoreNotFound):
        backup(tmp_path / "nowhere.db")


# ---- restoring --------------------------------------------------------------------------------------


def test_what_the_store_held_before_is_kept_and_can_be_restored(
    store: Path, made: Backup, tmp_path: Path
) -> None:
    before = held(store)
    add(store, tmp_path)
    later = held(store)

    done = restore(Path(made.file), store)
    assert changed(before, held(store)) == {}

    assert done.kept is not None
    restore(Path(done.kept), store)
    assert changed(later, held(store)) == {}


def test_who_has_the_store_open_sees_what_was_restored(store: Path, made: Backup, tmp_path: Path) -> None:
    with Store(store) as reader, Store(store, write=True) as writer:
        add(store, tmp_path)
        assert reader.db.execute("SELECT count(*) FROM memory").get == 5
        restore(Path(made.file), store)

        assert reader.db.execute("SELECT count(*) FROM memory").get == 4
        take_records(writer, tmp_path, [{"type": "memory", "content": "after"}], SECOND_CLOCK, name="after")
        assert reader.db.execute("SELECT count(*) FROM memory").get == 5
    with opened(store) as db:
        assert sound(db) == []


def test_a_dry_run_checks_the_backup_and_changes_nothing(store: Path, made: Backup, tmp_path: Path) -> None:
    add(store, tmp_path)
    before = store.read_bytes(), sorted(path.name for path in tmp_path.iterdir())

    done = restore(Path(made.file), store, dry_run=True)

    assert done.backup.counts == made.counts
    assert (store.read_bytes(), sorted(path.name for path in tmp_path.iterdir())) == before


def test_a_plain_store_is_restored_with_what_is_in_its_log(store: Path, tmp_path: Path) -> None:
    with Store(store, write=True) as writer:
        take_records(
            writer, tmp_path, [{"type": "memory", "content": "in the log"}], SECOND_CLOCK, name="log"
        )
        restore(store, tmp_path / "other.db")

    assert changed(held(store), held(tmp_path / "other.db")) == {}


@pytest.mark.parametrize("share", [0, 0.001, 0.3, 0.5, 0.7, 0.999])
def test_a_backup_with_one_wrong_byte_replaces_nothing(
    share: float, store: Path, made: Backup, tmp_path: Path
) -> None:
    file = Path(made.file)
    flip(file, int(file.stat().st_size * share))
    before = held(store)

    with pytest.raises((BackupDamaged, BackupUnusable)) as error:
        restore(file, store)

    assert error.value.exit_status == (5 if share else 2)
    assert changed(before, held(store)) == {}
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("share", [0.02, 0.5, 0.99])
def test_a_backup_that_was_cut_replaces_nothing(share: float, store: Path, made: Backup) -> None:
    file = Path(made.file)
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * share)])
    before = held(store)

    with pytest.raises(BackupDamaged):
        restore(file, store)

    assert changed(before, held(store)) == {}


def test_a_backup_that_does_not_hold_what_its_label_says_is_damaged(made: Backup, tmp_path: Path) -> None:
    with Path(made.file).open("rb") as stream:
        label = packing.read_label(stream) or {}
    plain = plain_copy(Path(made.file), tmp_path / "plain.db")
    label["counts"]["memories"] += 1
    with plain.open("rb") as source, (tmp_path / "wrong").open("wb") as target:
        packing.pack(source, target, label)

    with pytest.raises(BackupDamaged):
        restore(tmp_path / "wrong", tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def test_what_is_no_backup_is_said_to_be_none(tmp_path: Path, store: Path) -> None:
    (tmp_path / "text").write_text("not a backup")
    (tmp_path / "empty").write_bytes(b"")
    with (tmp_path / "packed").open("wb") as target, (tmp_path / "text").open("rb") as source:
        packing.pack(source, target, {"format": "graphmem-backup", "version": 1})
    with (tmp_path / "newer").open("wb") as target, (tmp_path / "text").open("rb") as source:
        packing.pack(source, target, {"format": "graphmem-backup", "version": 2})

    for name in ("text", "empty", "newer", "nowhere"):
        with pytest.raises(BackupUnusable):
            restore(tmp_path / name, store)
    with pytest.raises(BackupDamaged):
        restore(tmp_path / "packed", store)


def test_a_foreign_database_and_a_newer_store_are_refused(tmp_path: Path, store: Path) -> None:
    foreign = apsw.Connection(str(tmp_path / "foreign.db"))
    foreign.execute("CREATE TABLE t (x)")
    foreign.close()
    shutil.copyfile(store, tmp_path / "newer.db")
    newer = apsw.Connection(str(tmp_path / "newer.db"))
    newer.execute("PRAGMA user_version = 99")
    newer.close()

    with pytest.raises(StoreForeign):
        restore(tmp_path / "foreign.db", store)
    with pytest.raises(StoreForeign):
        restore(store, tmp_path / "foreign.db")
    with pytest.raises(StoreTooNew):
        restore(tmp_path / "newer.db", store)


@pytest.mark.parametrize("harm", ["header", "page", "cut"])
def test_a_damaged_store_is_moved_aside_as_it_is(harm: str, store: Path, made: Backup) -> None:
    before = held(store)
    data = bytearray(store.read_bytes())
    if harm == "header":
        data[:16] = b"\0" * 16
    elif harm == "page":
        data[4096 : 4096 * 40] = b"\xa5" * (4096 * 39)
    else:
        del data[5000:]
    store.write_bytes(data)

    if harm == "header":
        with pytest.raises(StoreForeign):  # by its looks it never was a store
            restore(Path(made.file), store)
        return
    done = restore(Path(made.file), store)

    assert changed(before, held(store)) == {}
    assert [Path(path).read_bytes() for path in done.aside[:1]] == [bytes(data)]


def test_a_log_without_its_store_is_moved_aside_and_not_read_into_the_new_one(
    store: Path, made: Backup, tmp_path: Path
) -> None:
    with Store(store, write=True) as writer:
        take_records(
            writer, tmp_path, [{"type": "memory", "content": "in the log"}], SECOND_CLOCK, name="log"
        )
        log = Path(f"{store}-wal").read_bytes()
    for path in (store, Path(f"{store}-shm")):
        path.unlink(missing_ok=True)
    Path(f"{store}-wal").write_bytes(log)

    done = restore(Path(made.file), store)

    assert [Path(path).read_bytes() for path in done.aside] == [log]
    assert len(held(store)["memory"]) == 4


def test_while_others_write_a_restore_waits_and_then_gives_up(
    store: Path, made: Backup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHMEM_BUSY_TIMEOUT", "50")
    before = held(store)
    with Store(store, write=True) as writer, writer.transaction(), pytest.raises(StoreBusy) as error:
        restore(Path(made.file), store)

    assert error.value.exit_status == 4
    assert changed(before, held(store)) == {}


def test_what_others_write_while_the_old_store_is_kept_is_kept_too(
    store: Path, made: Backup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process commits between the copy of the old store and the lock: the copy is made again."""
    import graphmem.backup as module

    times = 0
    original: Callable[..., Backup] = module.backup

    def slow(*args: Any) -> Backup:
        nonlocal times
        done = original(*args)
        times += 1
        if times < 3:
            add(store, tmp_path, f"late{times}")
        return done

    monkeypatch.setattr(module, "backup", slow)
    done = restore(Path(made.file), store)

    assert times == 3
    kept = plain_copy(Path(done.kept or ""), tmp_path / "kept.db")
    assert len(held(kept)["memory"]) == 6


# ---- faults of the machine --------------------------------------------------------------------------


def run_limited(code: str, limit: int) -> subprocess.CompletedProcess[str]:
    """Runs code in a process that can write no file beyond a size."""
    prelude = f"""
    import sys, resource
    sys.path[:0] = [{str(TESTS)!r}, {str(TESTS / "embed")!r}]
    from pathlib import Path
    from graphmem.errors import GraphmemError
    resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
    """
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(prelude) + textwrap.dedent(code)], text=True, capture_output=True,
        check=False, cwd=TESTS.parent,
    )  # fmt: skip


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
@pytest.mark.parametrize("limit", [0, 5_000, 100_000])
def test_a_full_disk_leaves_the_store_and_the_older_backup(
    limit: int, store: Path, made: Backup, tmp_path: Path
) -> None:
    add(store, tmp_path)
    before, file = held(store), Path(made.file).read_bytes()
    code = """
    from graphmem.backup import backup, restore
    for action in (lambda: backup(Path({store!r}), Path({file!r})), lambda: restore(Path({file!r}), Path({store!r}))):
        try:
            action()
        except GraphmemError as error:
            print(type(error).__name__)
    """
    done = run_limited(code.format(store=str(store), file=made.file), limit)

    assert (done.returncode, done.stderr) == (0, "")
    assert set(done.stdout.split()) <= {"StoreFull", "OutputUnwritable", "StoreError"}
    assert len(done.stdout.split()) == 2
    assert changed(before, held(store)) == {}
    assert Path(made.file).read_bytes() == file
    assert left_behind(tmp_path) == []


def test_a_folder_that_cannot_be_written_is_told(guarded: Path, store: Path, nobody: None) -> None:
    from command_line import as_root

    def prepare() -> None:
        shutil.copyfile(store, guarded / "memory.db")
        (guarded / "memory.db").chmod(0o644)
        shutil.copyfile(store, guarded / "copy.db")
        (guarded / "copy.db").chmod(0o644)
        guarded.chmod(0o555)

    as_root(prepare)
    before = (guarded / "memory.db").read_bytes()

    with pytest.raises((OutputUnwritable, StoreFull)):
        backup(guarded / "memory.db")
    with pytest.raises((OutputUnwritable, StoreFull)):
        restore(guarded / "copy.db", guarded / "memory.db")
    assert (guarded / "memory.db").read_bytes() == before


def killed_in_between(folder: Path, store: Path, *, kills: int, seed: int) -> list[int]:
    """Kills backups and restores at random instants; which of the two states the store was in each time."""
    chance = random.Random(seed)
    with opened(store) as db:
        states = [content(db)]
    first = folder / "first.zst"
    backup(store, first)
    add(store, folder)
    with opened(store) as db:
        states.append(content(db))
    second = folder / "second.zst"
    backup(store, second)
    code = f"""
    from pathlib import Path
    from graphmem.backup import backup, restore
    store, target = Path({str(store)!r}), Path({str(folder / "again.zst")!r})
    print("begun", flush=True)
    while True:
        backup(store, target)
        for file in ({str(first)!r}, {str(second)!r}):
            kept = restore(Path(file), store).kept
            Path(kept).unlink()
    """
    reached = []
    for _ in range(kills):
        process = run_python(code, wait=False)
        assert process.line() == "begun\n"
        time.sleep(chance.uniform(0, 0.3))
        process.kill()
        with opened(store) as db:
            assert sound(db) == []
            reached.append(states.index(content(db)))
        again = folder / "again.zst"
        if again.exists():
            restore(again, folder / "other.db", dry_run=True)
    return reached


def test_a_kill_leaves_the_old_store_or_the_new_one(store: Path, tmp_path: Path) -> None:
    assert len(killed_in_between(tmp_path, store, kills=4, seed=3)) == 4


def test_what_killed_processes_left_behind_goes_with_a_later_backup(store: Path, tmp_path: Path) -> None:
    old, fresh = tmp_path / ".gmem-backup-old", tmp_path / ".gmem-backup-fresh"
    for folder in (old, fresh):
        folder.mkdir()
        (folder / "memory.db").write_bytes(b"x")
    os.utime(old, (0, 0))

    backup(store, tmp_path / "b")

    assert left_behind(tmp_path) == [fresh.name]


# ---- the files themselves ---------------------------------------------------------------------------


def test_a_packed_file_is_read_back_whatever_it_holds(tmp_path: Path) -> None:
    for data in (b"", b"x", os.urandom(3_000_000), b"\0" * 5_000_000):
        (tmp_path / "in").write_bytes(data)
        with (tmp_path / "in").open("rb") as source, (tmp_path / "out").open("wb") as target:
            packing.pack(source, target, {"é": 1})
        with (tmp_path / "out").open("rb") as stream:
            assert packing.read_label(stream) == {"é": 1}
            assert b"".join(packing.unpack(stream)) == data


def test_the_outcome_is_json(made: Backup, tmp_path: Path) -> None:
    done = restore(Path(made.file), tmp_path / "new.db")

    assert json.loads(json.dumps(done.as_dict()))["backup"]["counts"] == made.counts
