"""Damaging stores on purpose, and judging what the doctor makes of it."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import apsw
from everything import fill
from hash_encoder import HashEncoder
from importing import take_records
from snapshots import opened, rows

from graphmem.config import Config
from graphmem.doctor import DoctorReport, diagnose, repair
from graphmem.errors import RepairRefused, StoreError, StoreForeign, StoreTooNew
from graphmem.store import Store
from graphmem.store.connection import load_vectors

AUTHORITY = (
    "scope", "scope_set", "origin", "contribution", "entity", "redirect", "id_alias", "memory", "memory_link",
    "relation", "stated_by", "version",
)  # fmt: skip
"""What nothing else could be made from."""


def config_of(path: Path) -> Config:
    """The configuration by which a command uses a store, without a model."""
    return Config(path.parent, path, "option", None, False, "none")


def examined(path: Path) -> DoctorReport:
    return diagnose(config_of(path))


def errors(path: Path) -> list[tuple[str, str]]:
    """Rule and message of the errors that the doctor finds."""
    return [(one.rule, one.message) for one in examined(path).findings if one.severity.word == "error"]


def sample(folder: Path, more: int = 120) -> Path:
    """A store of some hundred rows in one file, vectors included."""
    path = folder / "sample.db"
    records: list[Any] = [
        *({"type": "memory", "content": f"note {number} of AuthService", "tags": [f"t{number % 9}"],
           "about": [f"Thing{number % 7}"], "title": f"T{number % 5}"} for number in range(more)),
        *({"type": "entity", "name": f"Thing{number}", "kind": "thing", "aliases": [f"th-{number}"],
           "description": f"words {number}"} for number in range(more // 2)),
        *({"type": "relation", "subject": f"Thing{number}", "predicate": "knows", "object": f"Thing{number + 1}"}
          for number in range(more // 2)),
    ]  # fmt: skip
    with Store(path, write=True) as store:
        fill(store, folder, HashEncoder())
        take_records(store, folder, records, "2027-01-01T00:00:00.000Z", name="more", encoder=HashEncoder())
    return path


def change(path: Path, *statements: str) -> None:
    """Changes a store behind graphmem's back."""
    db = apsw.Connection(str(path))
    load_vectors(db)
    for statement in statements:
        db.execute(statement)
    db.close()


def owners(path: Path) -> dict[int, str]:
    """The table or index that each page of a file belongs to."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    found = {int(page): str(name) for page, name in db.execute("SELECT pageno, name FROM dbstat")}
    db.close()
    return found


def authority(path: Path) -> dict[str, Any]:
    """The rows that nothing else could be made from."""
    db = opened(path)
    try:
        held = rows(db)
    finally:
        db.close()
    return {name: held[name] for name in AUTHORITY}


def remove(path: Path) -> None:
    for end in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def injure(base: Path, target: Path, chance: random.Random) -> str:
    """A copy of a store with one injury; what it was."""
    remove(target)
    shutil.copyfile(base, target)
    data = bytearray(base.read_bytes())
    page = chance.randrange(1, len(data) // 4096)
    kind = chance.choice(["bytes", "bytes", "bytes", "page", "cut", "index rows"])
    where = f"{kind} of page {page + 1} ({owners(base).get(page + 1)})"
    if kind == "bytes":
        for _ in range(chance.randrange(1, 4)):
            data[page * 4096 + chance.randrange(4096)] ^= chance.randrange(1, 256)
    elif kind == "page":
        data[page * 4096 : (page + 1) * 4096] = chance.choice([b"\0", b"\xa5"]) * 4096
    elif kind == "cut":
        del data[page * 4096 + chance.randrange(4096) :]
    else:
        table = chance.choice(["memory_fts", "entity_fts", "relation_fts", "name_key", "memory_tag", "mention",
                               "mention_name", "sketch_memory", "sketch_entity", "chunk"])  # fmt: skip
        column = "rowid" if table.endswith("_fts") else "rowid" if table == "chunk" else "1"
        rowids = chance.randrange(1, 100)
        condition = (
            f"{column} = {rowids}" if column == "rowid" else f"abs(random()) % 3 = {chance.randrange(3)}"
        )
        change(target, f"DELETE FROM {table} WHERE {condition}")
        return f"rows of {table}"
    target.write_bytes(data)
    return where


def outcome(target: Path, whole: dict[str, Any]) -> str:
    """What the doctor makes of an injured store: `unnoticed`, `mended`, `refused`, or `reported`.

    Asserts that nothing is raised, that reading changes nothing, and that what was mended is what it was.
    """
    before = target.read_bytes()
    try:
        found = errors(target)
    except (StoreForeign, StoreTooNew, StoreError):
        return "refused"
    assert target.read_bytes() == before
    if not found and not [one for one in examined(target).findings if one.rule == "store-mentions"]:
        return "unnoticed"
    try:
        done = repair(target)
    except RepairRefused:
        assert target.read_bytes() == before
        return "refused"
    left = errors(target)
    if left:
        return "reported"
    assert done.batch
    now = authority(target)
    wrong = {name: (set(now[name]) ^ set(whole[name])) for name in AUTHORITY if now[name] != whole[name]}
    assert not wrong, f"repair took damage for truth: {found}: {wrong}"
    return "mended"


def trial(folder: Path, *, injuries: int, seed: int) -> Counter[str]:
    """Injures copies of a store; how often which outcome was."""
    chance = random.Random(seed)
    base = sample(folder)
    whole = authority(base)
    counts: Counter[str] = Counter()
    for number in range(injuries):
        target = folder / "injured.db"
        what = injure(base, target, chance)
        try:
            counts[outcome(target, whole)] += 1
        except BaseException as error:
            error.add_note(f"injury {number} of seed {seed}: {what}")
            raise
    return counts
