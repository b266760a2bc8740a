"""The doctor: it finds every kind of damage, mends what is derived, and leaves alone what is not."""

from __future__ import annotations

import os
import random
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import pytest
from command_line import Run, as_root
from damage import authority, change, config_of, errors, examined, owners, sample, trial
from faults import run_python
from hash_encoder import HashEncoder
from importing import take_records
from snapshots import changed, opened, rows, sound
from test_backup import run_limited

from graphmem.doctor import diagnose, repair
from graphmem.edit.undo import undo
from graphmem.errors import RepairRefused, StoreFull, StoreNotFound, StoreReadOnly, UndoRefused
from graphmem.store import Store
from graphmem.store.history import History
from graphmem.store.schema import migration_sql

DERIVED_DAMAGE = [
    "DELETE FROM memory_fts WHERE rowid % 3 = 0",
    "INSERT INTO entity_fts (rowid, names) VALUES (9999, 'stray')",
    "DELETE FROM memory_fts WHERE rowid = 5; INSERT INTO memory_fts (rowid, content) VALUES (5, 'other words')",
    "DELETE FROM relation_fts WHERE rowid = 5; INSERT INTO relation_fts (rowid, fact) VALUES (5, 'x')",
    "DELETE FROM name_key WHERE entity % 2 = 0",
    "INSERT INTO name_key VALUES ('stray', 1, 0, 2)",
    "INSERT INTO name_key VALUES ('stray', 1, 0, 99999)",
    "DELETE FROM memory_tag WHERE tag = 't1'",
    "INSERT INTO memory_tag VALUES ('new', 6)",
    "DELETE FROM mention",
    "DELETE FROM mention_name",
    "INSERT INTO mention VALUES (1, 1)",
    "DELETE FROM chunk WHERE kind = 1 AND item = 7",
    "UPDATE chunk SET item = 99999 WHERE kind = 1 AND item = 7",
    "UPDATE chunk SET stop = stop - 1 WHERE kind = 0 AND item = 7",
    "INSERT INTO vector (text_digest, encoder, role, vector) SELECT x'00', encoder, 0, vector FROM vector LIMIT 1",
    "UPDATE vector SET vector = zeroblob(length(vector)) WHERE pk = 3",
    "UPDATE vector SET vector = x'00000000' WHERE pk = 3",
    "DELETE FROM sketch_memory WHERE chunk % 2 = 0",
    "UPDATE sketch_memory SET bits = zeroblob(length(bits)) WHERE chunk = (SELECT max(chunk) FROM sketch_memory)",
    "DELETE FROM scope_member",
    "UPDATE change SET data = x'00'",
    "UPDATE sqlite_sequence SET seq = 1 WHERE name = 'batch'",
    "INSERT INTO memory_fts (memory_fts) VALUES ('delete-all')",
    "DELETE FROM memory_fts_data WHERE id > 10",
    "UPDATE entity_fts_data SET block = x'00' WHERE id > 10",
    "DELETE FROM memory_fts_docsize WHERE id % 2 = 0",
]
"""Damage to what is made from other things, which can therefore be made anew."""

AUTHORITY_DAMAGE = [
    ("UPDATE memory SET content = 'other words' WHERE pk = 6", "store-text"),
    ("UPDATE memory SET tags = '[\"other\"]' WHERE pk = 6", "store-text"),
    ("UPDATE entity SET name = 'Other' WHERE pk = 9", "store-text"),
    ("DELETE FROM memory_link WHERE memory = 6", "store-text"),
    ("UPDATE memory SET properties = '{' WHERE pk = 6", "store-value"),
    ("UPDATE contribution SET item = 99999 WHERE kind = 1 AND item = 6", "store-reference"),
    ("UPDATE memory SET batch = 99 WHERE pk = 6", "store-value"),
    ("UPDATE memory SET batch = 1 WHERE batch = 3", "store-value"),
]
"""Damage to what was said, from which nothing could be made anew."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample(tmp_path_factory.mktemp("sample"), more=60)


@pytest.fixture
def store(base: Path, store_path: Path) -> Path:
    """A store of its own, with something in every table."""
    shutil.copyfile(base, store_path)
    return store_path


def rules(path: Path) -> set[str]:
    return {one.rule for one in examined(path).findings}


def zero(path: Path, name: str) -> None:
    """Overwrites all pages of a table or index."""
    data = bytearray(path.read_bytes())
    for page, owner in owners(path).items():
        if owner == name:
            data[(page - 1) * 4096 : page * 4096] = b"\xa5" * 4096
    path.write_bytes(data)


# ---- finding ----------------------------------------------------------------------------------------


def test_a_store_as_it_should_be_has_no_errors_and_is_not_changed(store: Path) -> None:
    before = store.read_bytes()
    report = examined(store)

    assert {one.severity.word for one in report.findings} == {"note"}
    assert report.exit_status() == 0
    assert report.store["memories"] == 64
    assert report.environment["full_text"]
    assert report.environment["vectors"]
    assert store.read_bytes() == before
    assert repair(store).made == {}


def test_what_is_worth_knowing_is_a_note(store: Path, tmp_path: Path) -> None:
    (tmp_path / "gone.jsonl").write_text("")
    with Store(store, write=True) as writer:
        records = [{"type": "entity", "name": "A", "kind": kind} for kind in ("person", "place")]
        take_records(
            writer, tmp_path, [["X", "knows", "Y"], *records], "2028-01-01T00:00:00.000Z", name="gone"
        )
    (tmp_path / "gone.jsonl").unlink()

    told = {one.rule: one.message for one in examined(store).findings}

    assert {
        "store-stubs",
        "store-homonyms",
        "source-gone",
        "scope-gone",
        "store-without-vectors",
    } <= told.keys()
    assert "'A' (2 in global)" in told["store-homonyms"]
    assert "repo:/a" in told["scope-gone"]


def test_a_store_that_is_not_there_is_a_note_where_none_was_named(tmp_path: Path) -> None:
    config = config_of(tmp_path / "memory.db")

    report = diagnose(config._replace(via="home"))

    assert [one.rule for one in report.findings] == ["store-missing"]
    with pytest.raises(StoreNotFound):
        diagnose(config)


def test_a_store_of_an_earlier_schema_is_examined_and_not_brought_up_to_date(store_path: Path) -> None:
    db = apsw.Connection(str(store_path))
    db.execute(migration_sql(0))
    db.execute("PRAGMA application_id = 1735222637")
    db.execute("PRAGMA user_version = 1")
    db.close()
    before = store_path.read_bytes()

    assert rules(store_path) == {"store-older"}
    assert store_path.read_bytes() == before


def test_a_model_that_cannot_be_used_is_told(store: Path, tmp_path: Path) -> None:
    config = config_of(store)._replace(embeddings=True, embedding_model=str(tmp_path / "no model"))

    assert "encoder-missing" in {one.rule for one in diagnose(config).findings}


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_memories_that_others_can_read_are_told_with_the_command_that_helps(store: Path) -> None:
    store.parent.chmod(0o755)
    store.chmod(0o644)

    hints = [one.hint for one in examined(store).findings if one.rule == "open-permissions"]
    store.parent.chmod(0o700)

    assert hints == [f"chmod 600 '{store}'"]
    assert "open-permissions" not in rules(store)


@pytest.mark.parametrize("size", [0, 50, 2_000, 30_000])
def test_a_file_that_was_cut_is_told_as_damaged(size: int, store: Path) -> None:
    store.write_bytes(store.read_bytes()[:size])
    data = store.read_bytes()

    if not size:
        assert rules(store) == {"store-missing"}
    elif size == 50:
        assert [rule for rule, _ in errors(store)] == ["store-damage"]
    else:
        assert "store-damage" in rules(store)
    with pytest.raises(RepairRefused):
        repair(store)
    assert store.read_bytes() == data


def test_an_empty_file_beside_a_log_is_not_even_opened(store: Path) -> None:
    """SQLite would remove the log, in which there may be what is looked for."""
    log = store.with_name(f"{store.name}-wal")
    store.write_bytes(b"")
    log.write_bytes(b"frames")

    assert [rule for rule, _ in errors(store)] == ["store-damage"]
    with pytest.raises(RepairRefused):
        repair(store)
    assert log.read_bytes() == b"frames"


def test_an_older_log_is_recognised_and_nothing_is_changed(store: Path, tmp_path: Path) -> None:
    """As after a file of the store was copied back without the one that belongs to it."""
    log = store.with_name(f"{store.name}-wal")
    with Store(store, write=True) as writer:
        change(store, "UPDATE memory SET access_count = access_count + 1")
        older = log.read_bytes()
        writer.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        records = [{"type": "entity", "name": f"later {number}"} for number in range(300)]
        take_records(
            writer, tmp_path, records, "2028-01-01T00:00:00.000Z", name="later", encoder=HashEncoder()
        )
    whole = authority(store)
    log.write_bytes(older)
    store.with_name(f"{store.name}-shm").unlink(missing_ok=True)
    before = store.read_bytes()

    assert {"store-damage", "store-log"} <= rules(store)
    with pytest.raises(RepairRefused):
        repair(store)
    assert (store.read_bytes(), log.read_bytes()) == (before, older)

    log.unlink()
    store.with_name(f"{store.name}-shm").unlink(missing_ok=True)
    assert errors(store) == []
    assert authority(store) == whole


# ---- mending ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("statement", DERIVED_DAMAGE)
def test_what_is_derived_is_found_and_made_anew(statement: str, store: Path) -> None:
    whole = authority(store)
    change(store, statement)
    found = [one for one in examined(store).findings if one.severity.word != "note"]
    assert found

    done = repair(store)

    assert done.made
    assert [one.rule for one in examined(store).findings if one.severity.word != "note"] == []
    assert authority(store) == whole
    with opened(store) as db:
        entry = History(db).page(1)[0][0]
    assert (entry.command, entry.id, entry.counts) == ("repair", done.batch, {"repaired": done.made})
    assert repair(store).made == {}


@pytest.mark.parametrize(("statement", "rule"), AUTHORITY_DAMAGE)
def test_what_was_said_is_never_made_up(statement: str, rule: str, store: Path) -> None:
    change(store, statement)
    damaged = authority(store)
    assert rule in {rule for rule, _ in errors(store)}

    with suppress(RepairRefused):
        repair(store)

    assert rule in {rule for rule, _ in errors(store)}
    assert authority(store) == damaged


def test_what_can_be_mended_is_mended_beside_what_cannot(store: Path) -> None:
    change(store, "DELETE FROM memory_tag", "UPDATE memory SET content = 'other' WHERE pk = 6")

    assert repair(store).made.keys() == {"memories with their tags"}
    assert [rule for rule, _ in errors(store)] == ["store-text"]


@pytest.mark.parametrize(
    "name", ["memory_key", "sqlite_autoindex_entity_1", "relation_object", "name_key", "sketch_memory", "memory_fts_data"]
)  # fmt: skip
def test_damaged_pages_of_an_index_are_made_anew_and_the_damaged_file_is_kept(name: str, store: Path) -> None:
    before = authority(store)
    zero(store, name)
    damaged = store.read_bytes()
    assert {rule for rule, _ in errors(store)} == {"store-damage"}

    done = repair(store)

    assert errors(store) == []
    assert authority(store) == before
    assert done.kept is not None
    kept = Path(done.kept).read_bytes()
    assert kept[4096:] == damaged[4096:]
    with opened(store) as db:
        assert sound(db) == []


@pytest.mark.parametrize("name", ["memory", "entity", "contribution", "memory_link", "version"])
def test_damaged_pages_of_what_was_said_are_refused_and_the_file_stays(name: str, store: Path) -> None:
    zero(store, name)
    damaged = store.read_bytes()

    with pytest.raises(RepairRefused) as error:
        repair(store)

    assert error.value.exit_status == 5
    assert "backup" in error.value.hint
    assert store.read_bytes() == damaged


def test_a_batch_whose_changes_were_lost_cannot_be_undone_and_says_so(store: Path) -> None:
    change(store, "UPDATE change SET data = x'00'")
    repair(store)

    with Store(store, write=True) as opened_:
        batch = opened_.db.execute("SELECT id FROM batch WHERE pk = 2").get
        with pytest.raises(UndoRefused):
            undo(opened_, batch)


# ---- faults of the machine --------------------------------------------------------------------------


def test_injuries_at_random_are_mended_rightly_or_not_at_all(tmp_path: Path) -> None:
    counts = trial(tmp_path, injuries=12, seed=11)

    assert counts.total() == 12


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
@pytest.mark.parametrize("statement", ["DELETE FROM memory_fts", "DELETE FROM memory_fts_data WHERE id > 10"])
def test_a_full_disk_leaves_the_store_as_it_was(statement: str, store: Path) -> None:
    change(store, statement)
    with opened(store) as db:
        before = rows(db) if "fts_data" not in statement else {}
    code = f"""
    from graphmem.doctor import repair
    try:
        repair(Path({str(store)!r}))
    except GraphmemError as error:
        print(type(error).__name__)
    """
    done = run_limited(code, 4096)

    assert (done.stdout.strip(), done.stderr) == (StoreFull.__name__, "")
    if before:
        with opened(store) as db:
            assert changed(before, rows(db)) == {}
    assert errors(store)
    repair(store)
    assert errors(store) == []


def test_a_folder_that_cannot_be_written_is_examined_and_not_mended(
    base: Path, guarded: Path, nobody: None
) -> None:
    def prepare() -> None:
        shutil.copyfile(base, guarded / "memory.db")
        (guarded / "memory.db").chmod(0o444)
        guarded.chmod(0o555)

    as_root(prepare)
    path = guarded / "memory.db"

    assert errors(path) == []
    assert "store-read-only" in rules(path)
    with pytest.raises(StoreReadOnly):
        repair(path)


def test_a_kill_while_mending_leaves_a_store_that_can_be_mended(store: Path) -> None:
    whole = authority(store)
    chance = random.Random(5)
    code = f"""
    from pathlib import Path
    from graphmem.doctor import repair
    print("begun", flush=True)
    repair(Path({str(store)!r}))
    """
    for _ in range(3):
        change(store, "DELETE FROM memory_fts", "DELETE FROM name_key", "DELETE FROM memory_tag")
        process = run_python(code, wait=False)
        assert process.line() == "begun\n"
        time.sleep(chance.uniform(0, 0.2))
        process.kill()
        assert authority(store) == whole

    repair(store)
    assert errors(store) == []


# ---- the command ------------------------------------------------------------------------------------


def test_the_command_says_what_it_found_and_did(run: Run, store: Path) -> None:
    assert run("doctor", "--db", store).status == 0

    change(store, "DELETE FROM memory_tag")
    done = run("doctor", "--db", store)
    assert done.status == 5
    assert "rows missing [store-index]" in done.out
    assert "hint: run 'gmem doctor --repair'" in done.out

    done = run("doctor", "--db", store, "--repair")
    assert (done.status, done.err) == (0, "")
    assert "made anew: 61 memories with their tags (batch 0" in done.out


def test_the_command_speaks_json(run: Run, store: Path) -> None:
    change(store, "DELETE FROM memory_tag")

    told: Any = run("doctor", "--db", store, "--json").json
    assert (told["ok"], told["errors"], told["repaired"]) == (False, 1, None)

    told = run("doctor", "--db", store, "--json", "--repair").json
    assert told["ok"]
    assert told["repaired"]["made"].keys() == {"memories with their tags"}


def test_notes_fail_only_where_that_is_asked_for(run: Run, store: Path) -> None:
    assert run("doctor", "--db", store, "--fail-on", "note").status == 1


def test_a_repair_that_is_refused_is_one_line_and_status_5(run: Run, store: Path) -> None:
    zero(store, "memory")

    done = run("doctor", "--db", store, "--repair")

    assert done.status == 5
    assert "[repair-refused]" in done.err
    assert "Traceback" not in done.err + done.out


def test_without_any_store_the_installation_is_examined(run: Run) -> None:
    done = run("doctor")

    assert done.status == 0
    assert "no store yet" in done.out
