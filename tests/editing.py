"""A small store that tests of acts change, and questions about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hash_encoder import HashEncoder
from importing import take_records
from strategies import Record

from graphmem.store import Store
from graphmem.store.write import TABLES

RECORDS: list[Record] = [
    {"type": "entity", "name": "AuthService", "kind": "service", "id": "auth", "aliases": ["login"],
     "description": "Signs people in.", "properties": {"tier": 1, "lang": "C++"}},
    {"type": "entity", "name": "PostgresDB", "kind": "database", "id": "pg"},
    {"type": "entity", "name": "Mercury", "kind": "planet", "id": "planet"},
    {"type": "entity", "name": "Mercury", "kind": "metal", "id": "metal"},
    {"type": "memory", "id": "m1", "content": "Tokens expire after an hour.", "about": ["AuthService"],
     "tags": ["auth", "time"], "importance": 0.5},
    {"type": "memory", "id": "m2", "content": "Sessions are kept in tables.",
     "about": ["AuthService", "PostgresDB"]},
    {"type": "relation", "id": "r1", "subject": "AuthService", "predicate": "depends_on",
     "object": "PostgresDB", "fact": "It keeps sessions there.", "weight": 0.5},
]  # fmt: skip


def filled(folder: Path, encoder: HashEncoder | None = None) -> Store:
    """A store in memory that holds the records, with vectors."""
    store = Store(":memory:", write=True)
    take_records(store, folder, RECORDS, encoder=encoder or HashEncoder())
    return store


def column(store: Store, table: str, id_: str, name: str) -> Any:
    """One column of an item."""
    return store.db.execute(f"SELECT {name} FROM {table} WHERE id = ?", (id_,)).get


def counts(store: Store) -> list[int]:
    """How many entities, memories and relations there are, archived ones too."""
    return [store.db.execute(f"SELECT count(*) FROM {table}").get for table in TABLES]


def batches(store: Store) -> int:
    """How many batches are in the log."""
    count: int = store.db.execute("SELECT count(*) FROM batch").get
    return count
