"""A store in which every field is set and every rule of identity has been used."""

from __future__ import annotations

from pathlib import Path

from importing import take_records
from strategies import FIRST_CLOCK, SECOND_CLOCK, Record

from graphmem.embed import Encoder
from graphmem.store import Store

SERVICE = {"name": "Auth Service", "kind": "service"}
CREATED, UPDATED = "2025-01-01T00:00:00.000Z", "2025-02-01T00:00:00.000Z"

FIRST: list[Record] = [
    {"type": "entity", **SERVICE, "scope": "repo:/a", "id": "auth", "description": "signs people in",
     "aliases": ["login", "auth"], "properties": {"lang": "C++", "n": 1.5, "deep": {"a": [1, None, "é"]}},
     "created_at": CREATED, "updated_at": UPDATED},
    {"type": "entity", "name": "Auth Service", "kind": "library", "scope": "repo:/a", "state": "archived",
     "archived_by": "sync"},
    {"type": "entity", "name": "C++", "scope": "global"},
    {"type": "entity", "name": "Auth Service", "scope": "repo:/b", "id": "auth-b"},
    {"type": "entity", "name": "你好 😀", "kind": "greeting", "scope": "global", "aliases": ["a\u0000b"]},
    {"type": "memory", "id": "m1", "content": "a\u0000b\r\n\u2028 second\u0085line", "title": "T > U",
     "memory_type": "decision", "importance": 0.5, "tags": ["y", "x"], "scopes": ["global", "repo:/a"],
     "about": [SERVICE, "C++"], "mentions": ["Nobody yet", "你好 😀"],
     "source": {"uri": "notes.md", "position": 3}, "properties": {"k": "v"}, "created_at": CREATED,
     "updated_at": UPDATED, "valid_at": "2024-01-01", "invalid_at": "2025-01-01", "expired_at": "2025-06-01",
     "state": "archived"},
    {"type": "memory", "content": "plain", "scopes": ["global"]},
    {"type": "memory", "content": "plain", "scopes": ["global"], "id": "m2", "source": "s"},
    {"type": "memory", "content": ".", "scopes": ["repo:/b"], "about": ["Auth Service"], "importance": 1},
    {"type": "relation", "subject": SERVICE, "predicate": "depends on", "object": "C++", "scope": "repo:/a",
     "id": "r1", "weight": 0.25, "fact": "it is written in it", "stated_by": ["m1", "missing"],
     "properties": {"p": [1]}, "created_at": CREATED, "valid_at": "2024-01-01T00:00:00Z",
     "invalid_at": "2025-01-01T00:00:00Z", "expired_at": "2025-03-01T00:00:00Z"},
    {"type": "relation", "subject": SERVICE, "predicate": "depends on", "object": "C++", "scope": "repo:/a"},
    {"type": "relation", "subject": "Nobody yet", "predicate": "KNOWS", "object": "Also nobody",
     "scope": "global", "state": "archived"},
]  # fmt: skip
SECOND: list[Record] = [
    {"type": "entity", "name": "Auth Service", "kind": "Service", "scope": "repo:/a", "id": "auth2",
     "description": "signs in", "aliases": ["sso"], "updated_at": "2025-03-01T00:00:00Z"},
    {"type": "memory", "id": "m1", "content": "a\u0000b changed", "scopes": ["repo:/a"], "tags": ["z"]},
    {"type": "relation", "subject": SERVICE, "predicate": "DEPENDS_ON", "object": "C++", "scope": "repo:/a",
     "id": "r2", "valid_at": "2024-01-01T00:00:00Z", "weight": 1},
    {"type": "entity", "name": "Nobody yet", "kind": "person", "description": "came later"},
    {"type": "memory", "content": "plain", "scopes": ["global"]},
    {"type": "memory", "content": "about what has no kind", "scopes": ["global"],
     "about": [{"name": "Also nobody", "kind": "person"}]},
]  # fmt: skip


def fill(store: Store, folder: Path, encoder: Encoder | None = None) -> None:
    """Imports two files, and makes what only other commands than import make."""
    take_records(store, folder, FIRST, FIRST_CLOCK, name="first", encoder=encoder)
    take_records(store, folder, SECOND, SECOND_CLOCK, name="second", encoder=encoder)
    auth = store.db.execute("SELECT pk FROM entity WHERE id = 'auth'").get
    with store.transaction():
        writer = store.writer()
        writer.add_redirect(store.scopes.pk("repo:/a"), "Old Auth", "svc", "svc", auth)
        writer.add_redirect(store.scopes.pk("global"), "Very Old Auth", None, "", auth)
        writer.add_id_alias(1, "m1 as it was", store.db.execute("SELECT pk FROM memory WHERE id = 'm1'").get)
        writer.flush()
