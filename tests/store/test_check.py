"""Checking a store: a sound one has no errors, and every kind of damage is found and named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest
from conftest import write_records
from hash_encoder import HashEncoder

from graphmem.errors import StoreDamaged
from graphmem.findings import Severity
from graphmem.ingest import run
from graphmem.options import ImportOptions
from graphmem.store import Store
from graphmem.store.check import StoreReport, check
from graphmem.store.connection import load_vectors

RECORDS: list[Any] = [
    {"type": "entity", "name": "AuthService", "kind": "service", "aliases": ["auth", "Auth-Dienst"]},
    {"type": "entity", "name": "PostgresDB", "kind": "database"},
    {"type": "memory", "content": "Auth is slow", "about": ["AuthService"], "tags": ["perf", "todo"]},
    {"type": "memory", "content": "a shared one", "scopes": ["team:a", "team:b"]},
    ["AuthService", "depends_on", "PostgresDB"],
    ["AuthService", "owned_by", "nobody yet"],
]
OTHER_ENCODER = """
UPDATE encoder SET current = 0;
INSERT INTO encoder (name, revision, digest, dimension) VALUES ('n', '', 'd', 8)
"""


@pytest.fixture
def store(store_path: Path, tmp_path: Path) -> Path:
    """A store with something in every table, vectors included."""
    options = ImportOptions([str(write_records(tmp_path / "in.jsonl", RECORDS))])
    with Store(store_path, write=True) as opened:
        run(opened, options, HashEncoder())
    return store_path


def checked(path: Path) -> StoreReport:
    with Store(path) as opened:
        return check(opened)


def problems(path: Path) -> list[tuple[str, str]]:
    """Rule and message of what is worse than a note."""
    return [(one.rule, one.message) for one in checked(path).findings if one.severity is not Severity.NOTE]


def damage(path: Path, *statements: str) -> None:
    """Changes the store behind graphmem's back."""
    db = apsw.Connection(str(path))
    load_vectors(db)
    for statement in statements:
        db.execute(statement)
    db.close()


def test_a_store_as_an_import_leaves_it_is_sound(store: Path) -> None:
    report = checked(store)
    assert problems(store) == []
    assert [(one.rule, one.message) for one in report.findings] == [("store-stubs", "1 entity is a stub")]
    assert report.numbers == {
        "entities": 3, "memories": 2, "relations": 2, "stubs": 1, "vectors": 7, "origins": 1, "batches": 1,
    }  # fmt: skip


def test_an_empty_store_is_sound(store_path: Path) -> None:
    Store(store_path, write=True).close()
    assert checked(store_path).findings == []


def test_a_store_without_vectors_is_sound(store_path: Path, tmp_path: Path) -> None:
    options = ImportOptions([str(write_records(tmp_path / "in.jsonl", RECORDS))])
    with Store(store_path, write=True) as opened:
        run(opened, options)
    assert [one.rule for one in checked(store_path).findings] == ["store-stubs"]


def test_items_that_were_stored_without_vectors_are_a_note(store: Path, tmp_path: Path) -> None:
    more = write_records(tmp_path / "more.jsonl", [{"type": "entity", "name": "Later"}])
    with Store(store, write=True) as opened:
        run(opened, ImportOptions([str(more)]))
    notes = [one for one in checked(store).findings if one.rule == "store-without-vectors"]
    assert [one.message for one in notes] == ["items without a vector: 1 of kind entity"]


@pytest.mark.parametrize(
    ("statement", "rule", "message"),
    [
        ("DELETE FROM entity_fts WHERE rowid = 1", "store-index", "the full text of 'entity' has 1 row missing"),
        (
            "INSERT INTO memory_fts (rowid, content) VALUES (99, 'x')",
            "store-index",
            "the full text of 'memory' has 1 row too many",
        ),
        ("DELETE FROM memory_tag WHERE tag = 'todo'", "store-index", "the table of tags has 1 row missing"),
        ("INSERT INTO memory_tag VALUES ('new', 1)", "store-index", "the table of tags has 1 row too many"),
        (
            "DELETE FROM name_key WHERE alias = 1 AND key = 'auth'",
            "store-index",
            "1 entity whose names are not those they are found by",
        ),
        (
            "INSERT INTO name_key VALUES ('stray', 1, 0, 2)",
            "store-index",
            "1 entity whose names are not those they are found by",
        ),
        (
            "UPDATE entity SET aliases = '[\"other\"]' WHERE pk = 1",
            "store-index",
            "1 entity whose names are not those they are found by",
        ),
        (
            "DELETE FROM memory_link; INSERT INTO memory_link VALUES (1, 77, 0)",
            "store-reference",
            "1 row of 'memory_link' without their 'entity'",
        ),
        ("UPDATE contribution SET item = 77 WHERE kind = 1", "store-reference",
         "2 rows of 'contribution' without their memory"),
        ("INSERT INTO id_alias VALUES (7, 'x', 1)", "store-reference", "1 row of 'id_alias' of no kind of item"),
        ("UPDATE entity SET kind_key = 'x' WHERE pk = 1", "store-value", "the kind 'service' is filed under 'x'"),
        (
            "UPDATE relation SET predicate_key = 'x' WHERE pk = 1",
            "store-value",
            "the predicate 'depends_on' is filed under 'x'",
        ),
        ("UPDATE memory SET properties = '{' WHERE pk = 1", "store-value",
         "1 row of 'memory' whose 'properties' is not JSON"),
        ("UPDATE entity SET aliases = '[' WHERE pk = 1", "store-value",
         "1 row of 'entity' whose 'aliases' is not JSON"),
        (
            "DELETE FROM scope_member WHERE scope IN (SELECT pk FROM scope WHERE name = 'team:b')",
            "store-value",
            'the set of scopes ["team:a","team:b"] has other members',
        ),
        (
            "UPDATE vector SET vector = x'00000000' WHERE pk = 1",
            "store-vector",
            "1 row of 'vector' of another length than their encoder makes",
        ),
        ("DELETE FROM sketch_entity WHERE chunk = 1", "store-vector", "the index 'sketch_entity' has 1 row missing"),
        (
            "DELETE FROM chunk WHERE pk = (SELECT max(pk) FROM chunk WHERE kind = 2)",
            "store-vector",
            "the index 'sketch_relation' has 1 row too many",
        ),
        (OTHER_ENCODER, "store-vector", "7 rows of 'chunk' with the vector of an earlier encoder"),
    ],
)  # fmt: skip
def test_what_is_out_of_step_is_found(store: Path, statement: str, rule: str, message: str) -> None:
    damage(store, statement)
    assert (rule, message) in problems(store)


def test_a_damaged_page_is_found(store: Path) -> None:
    with Store(store) as opened:
        page: Any = opened.db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'memory_key'").get
        size: Any = opened.db.pragma("page_size")
    content = bytearray(store.read_bytes())
    content[(page - 1) * size + 8 : page * size] = b"\xa5" * (size - 8)
    store.write_bytes(content)
    with Store(store) as opened:
        try:
            rules = {one.rule for one in check(opened).findings if one.severity is Severity.ERROR}
        except StoreDamaged:
            rules = {"store-damage"}
    assert rules == {"store-damage"}


def test_damage_inside_a_full_text_table_is_found(store: Path) -> None:
    damage(store, "DELETE FROM memory_fts_data WHERE id > 10")
    assert {rule for rule, _ in problems(store)} == {"store-damage"}


def test_a_check_changes_nothing(store: Path) -> None:
    before = store.read_bytes()
    checked(store)
    assert store.read_bytes() == before
