"""Erasing for good: nothing of what was erased is left in the file, and nothing else is touched."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from damage import errors, sample
from faults import run_python
from hash_encoder import HashEncoder
from importing import take_records
from snapshots import opened, sound

from graphmem.edit.undo import undo
from graphmem.edit.update import Update, update
from graphmem.errors import LookupFailed, StoreBusy, UndoRefused
from graphmem.purge import Purged, purge
from graphmem.store import Store
from graphmem.store.changes import changes

SECRET = "the deploy password is correct-horse-battery-staple-9143"
LATER = "the deploy password was rotated to xkcd-tr0ub4dor-and-3-7720"
LONG = "".join(f"line {number} of the key: {number * 7919:020x}\n" for number in range(400))
CLOCK = "2028-01-01T00:00:00.000Z"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store in which a memory was said, indexed, embedded, and changed since."""
    path = sample(tmp_path, more=40)
    records: list[Any] = [
        {"type": "memory", "id": "leak", "content": SECRET, "title": "Deploying tokens", "about": ["Thing1"],
         "tags": ["ops"], "properties": {"hint": "stored in vault number 4711"}},
        {"type": "memory", "id": "long", "content": LONG},
        {"type": "entity", "name": "Zebediah Quartermain", "kind": "person", "description": "born in Ouagadougou"},
        {"type": "memory", "content": "Quartermain likes tea", "about": ["Zebediah Quartermain"]},
        {"type": "memory", "id": "both", "content": "they met", "about": ["Zebediah Quartermain", "Thing1"]},
        {"type": "relation", "subject": "Zebediah Quartermain", "predicate": "knows", "object": "Thing2",
         "fact": "Zebediah and Thing2 go way back", "stated_by": ["leak"]},
    ]  # fmt: skip
    with Store(path, write=True) as opened_:
        take_records(opened_, tmp_path, records, CLOCK, name="leaky", encoder=HashEncoder())
        update(opened_, "leak", Update(set={"content": LATER}), None, encoder=HashEncoder())
    return path


def ask(path: Path, sql: str, *binds: Any) -> list[tuple[Any, ...]]:
    with closing(opened(path)) as db:
        return [tuple(row) for row in db.execute(sql, binds)]


def everything(path: Path) -> bytes:
    """The bytes of a store, and of the changes that it keeps compressed."""
    data = b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))
    with closing(opened(path)) as db:
        batches: Any = db.execute("SELECT DISTINCT batch FROM change").fetchall()
        for (batch,) in batches:
            for one in changes(db, batch):
                data += repr((one.old, one.new)).encode()
    return data


def words(path: Path) -> set[str]:
    with closing(opened(path)) as db:
        found: set[str] = set()
        for table in ("memory_fts", "entity_fts", "relation_fts"):
            db.execute(f"CREATE VIRTUAL TABLE temp.{table}_v USING fts5vocab(main, {table}, row)")
            found.update(str(term) for (term,) in db.execute(f"SELECT term FROM temp.{table}_v"))
        return found


def check(path: Path, told: Purged) -> None:
    assert told.left == []
    assert errors(path) == []
    with closing(opened(path)) as db:
        assert sound(db) == []


def test_a_memory_is_gone_from_every_byte_of_the_store(store: Path) -> None:
    ((vector,), *_) = ask(
        store,
        "SELECT v.vector FROM vector AS v JOIN chunk AS c ON c.vector = v.pk JOIN memory AS m ON m.pk = c.item "
        "WHERE c.kind = 1 AND m.id = 'leak'",
    )
    before = everything(store)
    for text in (SECRET, LATER, "Deploying tokens", "vault number 4711"):
        assert text.encode() in before
    assert vector in before
    assert {"tr0ub4dor", "xkcd"} <= words(store)

    told = purge(store, ["leak"], None)

    after = everything(store)
    for text in (SECRET, LATER, "Deploying tokens", "vault number 4711", "correct-horse", "tr0ub4dor"):
        assert text.encode() not in after
    assert vector not in after
    assert not {"stapl", "tr0ub4dor", "xkcd", "9143", "7720"} & words(store)
    assert told.erased == {"entity": 0, "memory": 1, "relation": 0}
    assert told.complete
    check(store, told)


def test_a_text_that_spans_many_pages_is_gone_piece_by_piece(store: Path) -> None:
    lines = [line.encode() for line in LONG.splitlines()]
    before = everything(store)
    assert sum(line in before for line in lines) > 350

    told = purge(store, ["long"], None)

    after = everything(store)
    assert not any(line in after for line in lines)
    check(store, told)


def test_with_an_entity_go_its_relations_and_what_is_about_nothing_else(store: Path) -> None:
    told = purge(store, ["Zebediah Quartermain"], None)

    assert told.erased == {"entity": 1, "memory": 1, "relation": 1}
    assert told.unlinked == 1
    after = everything(store)
    for text in (b"Zebediah", b"Quartermain", b"zebediah", b"Ouagadougou", b"likes tea", b"go way back"):
        assert text not in after
    with closing(opened(store)) as db:
        assert db.execute("SELECT content FROM memory WHERE id = 'both'").get == "they met"
    check(store, told)


def test_everything_else_stays_as_it_is(store: Path) -> None:
    def others() -> dict[str, Any]:
        with closing(opened(store)) as db:
            return {
                "memories": db.execute("SELECT * FROM memory WHERE id <> 'leak' ORDER BY pk").fetchall(),
                "entities": db.execute("SELECT * FROM entity ORDER BY pk").fetchall(),
                "relations": db.execute("SELECT * FROM relation ORDER BY pk").fetchall(),
                "links": db.execute(
                    "SELECT l.* FROM memory_link AS l JOIN memory AS m ON m.pk = l.memory WHERE m.id <> 'leak'"
                ).fetchall(),
                "words": db.execute("SELECT rowid FROM memory_fts WHERE memory_fts MATCH 'note' ORDER BY rowid").fetchall(),
            }  # fmt: skip

    before = others()
    purge(store, ["leak"], None)

    assert others() == before


def test_batches_that_held_it_cannot_be_undone_and_the_others_can(store: Path, tmp_path: Path) -> None:
    with Store(store, write=True) as opened_:
        take_records(
            opened_,
            tmp_path,
            [{"type": "memory", "content": "harmless"}],
            CLOCK,
            name="ok",
            encoder=HashEncoder(),
        )
        harmless = opened_.db.execute("SELECT id FROM batch ORDER BY pk DESC LIMIT 1").get

    told = purge(store, ["leak"], None)

    with Store(store, write=True) as opened_:
        assert len(told.not_undoable) == 2
        for batch in (*told.not_undoable, told.batch):
            with pytest.raises(UndoRefused):
                undo(opened_, batch)
        undo(opened_, harmless, encoder=HashEncoder())
    assert SECRET.encode() not in everything(store)
    assert errors(store) == []


def test_what_else_holds_the_text_is_told(store: Path, tmp_path: Path) -> None:
    records = [{"type": "memory", "id": "copy", "content": f"as he said: {LATER}!"}]
    with Store(store, write=True) as opened_:
        take_records(opened_, tmp_path, records, CLOCK, name="copy", encoder=HashEncoder())

    told = purge(store, ["leak"], None)

    assert told.also_in == [{"type": "memory", "id": "copy"}]
    assert not told.complete
    assert told.left == []
    assert purge(store, ["copy"], None).complete
    assert b"tr0ub4dor" not in everything(store)


def test_a_dry_run_says_what_would_go_and_changes_nothing(store: Path) -> None:
    before = store.read_bytes()

    told = purge(store, ["Zebediah Quartermain"], None, dry_run=True)

    assert told.erased == {"entity": 1, "memory": 1, "relation": 1}
    assert told.batch is None
    assert store.read_bytes() == before


def test_all_is_erased_or_nothing(store: Path) -> None:
    with pytest.raises(LookupFailed):
        purge(store, ["leak", "no such thing"], None)

    assert SECRET.encode() in everything(store)
    with Store(store, write=True) as opened_:
        assert opened_.db.pragma("journal_mode") == "wal"


def test_while_others_have_the_store_open_nothing_is_erased(store: Path) -> None:
    with Store(store) as reader:
        assert reader.db.execute("SELECT count(*) FROM memory").get
        with pytest.raises(StoreBusy) as error:
            purge(store, ["leak"], None)

    assert error.value.exit_status == 4
    assert SECRET.encode() in everything(store)


def test_the_log_names_what_was_erased_by_its_id_alone(store: Path) -> None:
    told = purge(store, ["Zebediah Quartermain", "leak"], None, actor="me")

    inputs, counts, actor = ask(store, "SELECT inputs, counts, actor FROM batch WHERE id = ?", told.batch)[0]
    assert json.loads(inputs) == [one["id"] for one in told.named]
    assert json.loads(counts)["erased"] == {"entity": 1, "memory": 2, "relation": 1}
    assert actor == "me"


def test_the_numbers_of_erased_items_are_not_given_again(store: Path, tmp_path: Path) -> None:
    last, id_ = ask(store, "SELECT max(pk), id FROM memory")[0]
    purge(store, [str(id_)], None)
    with Store(store, write=True) as opened_:
        take_records(
            opened_, tmp_path, [{"type": "memory", "id": "new", "content": "new"}], CLOCK, name="new"
        )
        assert opened_.db.execute("SELECT pk FROM memory WHERE id = 'new'").get > last


def test_a_kill_leaves_it_whole_or_gone(store: Path) -> None:
    chance = random.Random(2)
    code = f"""
    from pathlib import Path
    from graphmem.purge import purge
    print("begun", flush=True)
    purge(Path({str(store)!r}), ["leak"], None)
    """
    process = run_python(code, wait=False)
    assert process.line() == "begun\n"
    time.sleep(chance.uniform(0, 0.1))
    process.kill()

    with Store(store, write=True) as opened_:
        there = opened_.db.execute("SELECT count(*) FROM memory WHERE id = 'leak'").get
    assert errors(store) == []
    if there:
        assert purge(store, ["leak"], None).complete
    assert SECRET.encode() not in everything(store)


def test_a_plain_sqlite_shell_finds_nothing_either(store: Path) -> None:
    """Another library reads the file too: it is not one of ours that hides something."""
    purge(store, ["leak"], None)
    code = (
        "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); "
        "print(db.execute('PRAGMA integrity_check(3)').fetchall(), db.execute('PRAGMA freelist_count').fetchone())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(store)], capture_output=True, text=True, check=True
    )

    assert done.stdout.endswith("(0,)\n")
    assert apsw.Connection(str(store)).execute("PRAGMA integrity_check").get == "ok"
