"""Pages of memories and entities, one item in full, and the numbers of a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import CLOCK, write_records
from hash_encoder import HashEncoder
from search_store import SmallStore
from snapshots import rows

from graphmem.findings import Severity
from graphmem.ingest import run as import_
from graphmem.lookup import look_up
from graphmem.options import ImportOptions
from graphmem.store import Store
from graphmem.store.check import check
from graphmem.store.filters import Filters
from graphmem.store.lookup import Names
from graphmem.store.read import ItemRef, Reader
from graphmem.store.status import read_status

NOW = "2026-06-01T00:00:00.000Z"
HERE = ("repo:/a", "global")


@pytest.fixture
def store() -> SmallStore:
    return SmallStore()


def reader(store: SmallStore, **filters: Any) -> Reader:
    return Reader(store.db, Filters(NOW, **{"scopes": HERE, **filters}))


def listed(store: SmallStore, limit: int = 50, offset: int = 0, **filters: Any) -> list[str]:
    return [hit["id"] for hit in reader(store, **filters).memories(limit, offset).items]


# ---- memories ----------------------------------------------------------------------------------------


def test_memories_come_newest_first_by_when_they_became_true(store: SmallStore) -> None:
    store.memory("a", id_="old", created_at="2026-05-01T00:00:00.000Z")
    store.memory("b", id_="new", created_at="2026-05-03T00:00:00.000Z")
    store.memory("c", id_="told", created_at="2026-05-09T00:00:00.000Z", valid_at="2026-05-02T00:00:00.000Z")
    store.memory("d", id_="second", source="s", position=2, created_at="2026-04-01T00:00:00.000Z")
    store.memory("e", id_="first", source="s", position=1, created_at="2026-04-01T00:00:00.000Z")

    assert listed(store) == ["new", "told", "old", "first", "second"]


def test_memories_of_a_source_come_in_its_order(store: SmallStore) -> None:
    store.memory("a", id_="none", source="s", created_at="2026-05-09T00:00:00.000Z")
    store.memory("b", id_="ten", source="s", position=10)
    store.memory("c", id_="nine", source="s", position=9, valid_at="2026-05-09T00:00:00.000Z")
    store.memory("d", id_="other", source="t", position=1)

    assert listed(store, source="s") == ["nine", "ten", "none"]


def test_pages_are_disjoint_and_add_up(store: SmallStore) -> None:
    for number in range(7):
        store.memory("all at one instant", id_=f"m{number}")

    pages = [reader(store).memories(3, offset) for offset in (0, 3, 6, 9)]

    assert [hit["id"] for page in pages for hit in page.items] == [f"m{number}" for number in range(7)]
    assert [(page.total, page.truncated) for page in pages] == [(7, True), (7, True), (7, False), (7, False)]


def test_filters_leave_what_they_say(store: SmallStore) -> None:
    auth = store.entity("AuthService", id_="auth")
    store.memory("a", id_="typed", memory_type="decision", created_at="2026-05-01T00:00:00.000Z")
    store.memory("b", id_="tagged", tags=["x", "y"], created_at="2026-05-02T00:00:00.000Z")
    store.memory("c", id_="about", about=[auth], created_at="2026-05-03T00:00:00.000Z")
    store.memory("d", id_="mentions", mentions=[auth], created_at="2026-05-04T00:00:00.000Z")

    assert listed(store, memory_types=("decision",)) == ["typed"]
    assert listed(store, memory_types=("observation",)) == ["mentions", "about", "tagged"]
    assert listed(store, tags=("y", "z")) == ["tagged"]
    assert listed(store, entity="auth") == ["mentions", "about"]
    assert listed(store, since="2026-05-02T00:00:00.000Z", until="2026-05-03T00:00:00.000Z") == [
        "about",
        "tagged",
    ]


def test_what_is_archived_or_over_is_listed_on_request(store: SmallStore) -> None:
    store.memory("a", id_="active")
    store.memory("b", id_="over", invalid_at="2026-05-01T00:00:00.000Z")
    store.memory("c", id_="archived", state="archived")

    assert listed(store) == ["active"]
    assert listed(store, state="archived") == ["archived"]
    assert listed(store, state="all") == ["active", "archived", "over"]


def test_other_scopes_are_neither_listed_nor_named(store: SmallStore) -> None:
    theirs = store.entity("Shared", scope="repo:/b", id_="theirs")
    ours = store.entity("Shared", scope="repo:/a", id_="ours")
    store.memory("both", ["repo:/a", "repo:/b"], about=[ours, theirs], id_="both")
    store.memory("theirs", ["repo:/b"], about=[theirs], id_="hidden")

    page = reader(store).memories(10)

    assert [(hit["id"], hit["scopes"], hit["about"]) for hit in page.items] == [
        ("both", ["repo:/a"], ["Shared"])
    ]
    assert reader(store).elsewhere("memory") == (1, 1)
    assert reader(store).by_id("hidden") == []
    assert reader(store).by_id("theirs") == []
    (ref,) = reader(store).by_id("both")
    assert [one["id"] for one in reader(store).item(ref, 10)["about"]] == ["ours"]


def test_a_hit_has_the_keys_of_a_search_without_its_figures(store: SmallStore) -> None:
    store.memory("a")

    (hit,) = reader(store).memories(1).items

    assert set(hit) == {
        "id", "content", "title", "memory_type", "scopes", "tags", "about", "about_refs", "source", "valid_at",
        "created_at", "properties", "state",
    }  # fmt: skip


# ---- entities ----------------------------------------------------------------------------------------


def test_entities_come_by_name_with_what_is_visible_of_them_counted(store: SmallStore) -> None:
    beta, alpha = store.entity("beta", "lib"), store.entity("Alpha", "service")
    far = store.entity("far", scope="repo:/b")
    store.entity("gone", state="archived")
    store.memory("a", about=[alpha], mentions=[alpha])
    store.memory("b", ["repo:/b"], about=[alpha])
    store.memory("c", about=[alpha], state="archived")
    store.relation(alpha, "uses", beta)
    store.relation(beta, "knows", beta)
    store.relation(far, "uses", alpha, "repo:/b")

    page = reader(store).entities(10)

    assert [(one["name"], one["memories"], one["relations"]) for one in page.items] == [
        ("Alpha", 1, 1), ("beta", 0, 2),
    ]  # fmt: skip
    assert page.total == 2


@pytest.mark.parametrize(
    ("match", "found"),
    [("auth", ["AuthService"]), ("AUTH SERV", ["AuthService"]), ("th-ser", ["AuthService"]),
     ("login", ["AuthService"]),
     ("+", ["C++"]), ("c", ["AuthService", "C++"]), ("%", []), ("", ["AuthService", "C++"]), ("zzz", [])],
)  # fmt: skip
def test_entities_are_found_by_a_part_of_a_name_or_alias(
    store: SmallStore, match: str, found: list[str]
) -> None:
    store.entity("AuthService", aliases=["Login"])
    store.entity("C++")

    page = reader(store).entities(10, match=match)

    assert [one["name"] for one in page.items] == found
    assert page.total == len(found)


def test_entities_of_a_kind_and_stubs_are_listed_alone(store: SmallStore) -> None:
    store.entity("A", "Data Base")
    stub = store.entity("B")
    store.db.execute("UPDATE entity SET stub = 1 WHERE pk = ?", (stub,))

    assert [one["name"] for one in reader(store, kinds=("database",)).entities(10).items] == ["A"]
    assert [one["name"] for one in reader(store, kinds=("unknown",)).entities(10).items] == ["B"]
    (only,) = reader(store).entities(10, stubs=True).items
    assert (only["name"], only["stub"]) == ("B", True)


# ---- one item ----------------------------------------------------------------------------------------

FULL: list[dict[str, Any]] = [
    {"type": "entity", "name": "AuthService", "kind": "service", "scope": "global", "description": "d",
     "id": "e1", "aliases": ["auth"], "properties": {"p": 1}, "created_at": "2026-01-01T00:00:00.000Z"},
    {"type": "entity", "name": "AuthService", "kind": "service", "scope": "global", "id": "e1-too"},
    {"type": "memory", "id": "m1", "content": "c", "title": "t", "memory_type": "decision", "importance": 0.5,
     "tags": ["x"], "scopes": ["global"], "about": ["AuthService"], "mentions": ["Later"],
     "source": {"uri": "s", "position": 3}, "properties": {"q": [1]}, "valid_at": "2026-01-02T00:00:00.000Z",
     "invalid_at": "2027-01-01T00:00:00.000Z", "expired_at": "2027-01-02T00:00:00.000Z"},
    {"type": "relation", "id": "r1", "subject": "AuthService", "predicate": "depends_on", "object": "Later",
     "weight": 0.25, "fact": "f", "stated_by": ["m1", "not here yet"], "properties": {"r": None}},
]  # fmt: skip


@pytest.fixture
def full(tmp_path: Path) -> Store:
    path = tmp_path / "full.db"
    first, second = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    write_records(first, FULL)
    write_records(second, [{"type": "memory", "id": "m1", "content": "c", "title": "t2"}])
    with Store(path, write=True) as store:
        import_(store, ImportOptions([str(first)], clock=CLOCK), HashEncoder())
        import_(store, ImportOptions([str(second)], clock="2026-03-02T00:00:00.000Z"), HashEncoder())
    return Store(path)


def shown(store: Store, id_: str, limit: int = 10) -> dict[str, Any]:
    reader = Reader(store.db, Filters(NOW, HERE))
    (ref,) = reader.by_id(id_)
    return reader.item(ref, limit)


def test_a_memory_is_shown_with_all_its_fields_and_where_it_came_from(full: Store) -> None:
    item = shown(full, "m1")

    relations, origins, batch = item.pop("relations"), item.pop("origins"), item.pop("batch")
    later = item["mentions"][0].pop("id")
    assert item == {
        "type": "memory", "id": "m1", "content": "c", "title": "t2", "memory_type": "decision",
        "importance": 0.5, "tags": ["x"], "scopes": ["global"],
        "about": [{"id": "e1", "name": "AuthService", "kind": "service", "scope": "global"}],
        "mentions": [{"name": "Later", "kind": "unknown", "scope": "global"}],
        "source": {"uri": "s", "position": 3}, "properties": {"q": [1]}, "state": "active",
        "archived_by": None, "created_at": CLOCK, "updated_at": "2026-03-02T00:00:00.000Z",
        "last_accessed_at": None,
        "access_count": 0, "valid_at": "2026-01-02T00:00:00.000Z", "invalid_at": "2027-01-01T00:00:00.000Z",
        "expired_at": "2027-01-02T00:00:00.000Z", "id_aliases": [], "versions": 1, "vectors": 1,
    }  # fmt: skip
    assert shown(full, later)["stub"] is True
    assert [one["id"] for one in relations["items"]] == ["r1"]
    assert [(one["uri"].rpartition("/")[2], one["format"], one["line"]) for one in origins["items"]] == [
        ("one.jsonl", "jsonl", 3), ("two.jsonl", "jsonl", 1),
    ]  # fmt: skip
    assert (batch["at"], batch["command"]) == (CLOCK, "import")
    assert origins["items"][0]["batch"] == batch["id"] != origins["items"][1]["batch"]


def test_an_entity_is_shown_with_its_memories_and_relations(full: Store) -> None:
    item = shown(full, "e1")

    assert [one["id"] for one in item.pop("memories")["items"]] == ["m1"]
    assert [one["id"] for one in item.pop("relations")["items"]] == ["r1"]
    assert item.pop("origins")["total"] == 2
    assert item.pop("batch")["command"] == "import"
    assert item == {
        "type": "entity", "id": "e1", "name": "AuthService", "kind": "service", "scope": "global",
        "description": "d", "aliases": ["auth"], "properties": {"p": 1}, "state": "active",
        "archived_by": None,
        "stub": False, "created_at": "2026-01-01T00:00:00.000Z", "updated_at": item["updated_at"],
        "redirects": [], "id_aliases": ["e1-too"], "versions": 0, "vectors": 1,
    }  # fmt: skip


def test_a_relation_is_shown_with_its_ends_and_what_states_it(full: Store) -> None:
    item = shown(full, "r1")

    assert (item["subject"]["id"], item["predicate"], item["object"]["name"]) == ("e1", "depends_on", "Later")
    assert item["stated_by"] == {"total": 2, "truncated": False, "items": ["m1", "not here yet"]}
    assert (item["fact"], item["weight"], item["properties"]) == ("f", 0.25, {"r": None})
    assert item["origins"]["items"][0]["line"] == 4


def test_a_former_id_leads_to_the_item(full: Store) -> None:
    assert shown(full, "e1-too")["id"] == "e1"
    found = Names(full.db, HERE).by_id("e1-too")
    assert found is not None
    assert found.id == "e1"


def test_an_entity_that_comes_with_former_names_is_found_by_them(tmp_path: Path) -> None:
    record = {"type": "entity", "name": "New", "kind": "service", "scope": "global", "id": "new",
              "redirects": [{"name": "Old", "kind": "team", "scope": "global"}]}  # fmt: skip
    manifest = {"type": "manifest", "format": "graphmem", "version": 1}
    path = write_records(tmp_path / "export.jsonl", [manifest, record])
    with Store(tmp_path / "memory.db", write=True) as store:
        import_(store, ImportOptions([str(path)], clock=CLOCK))
        assert shown(store, "new")["redirects"] == [{"name": "Old", "kind": "team", "scope": "global"}]
        assert look_up(Names(store.db, HERE), "old").found.id == "new"
        assert [one for one in check(store).findings if one.severity is Severity.ERROR] == []


def test_long_lists_of_an_item_are_pages(store: SmallStore) -> None:
    pk = store.entity("Busy", id_="busy")
    for number in range(5):
        store.memory("m", about=[pk], id_=f"m{number}")
        store.relation(pk, f"p{number}", pk, id_=f"r{number}")

    item = reader(store).item(ItemRef("entity", pk, "busy"), 2, 4)

    assert [one["id"] for one in item["memories"]["items"]] == ["m4"]
    assert [one["id"] for one in item["relations"]["items"]] == ["r4"]
    assert item["memories"]["total"] == item["relations"]["total"] == 5
    assert reader(store).item(ItemRef("entity", pk, "busy"), 2)["memories"]["truncated"] is True


def test_memories_that_state_a_relation_elsewhere_are_not_told(store: SmallStore) -> None:
    pk = store.entity("A")
    store.relation(pk, "is", pk, id_="r")
    store.memory("x", ["repo:/b"], id_="hidden")
    store.memory("y", id_="open")
    for memory in ("hidden", "open", "to come"):
        store.db.execute("INSERT INTO stated_by SELECT pk, ? FROM relation", (memory,))

    (ref,) = reader(store).by_id("r")

    assert reader(store).item(ref, 10)["stated_by"]["items"] == ["open", "to come"]
    assert reader(store).item(ref, 10)["stated_by"]["total"] == 2


def test_archived_items_are_shown_by_id(store: SmallStore) -> None:
    store.memory("a", id_="m", state="archived")

    (ref,) = reader(store).by_id("m")

    assert reader(store).item(ref, 10)["state"] == "archived"


# ---- status ------------------------------------------------------------------------------------------


def test_an_empty_store_holds_nothing(store: SmallStore) -> None:
    status = read_status(store.db)

    assert (status.memories, status.entities, status.relations, status.stubs, status.vectors) == (0,) * 5
    assert (status.scopes, status.origins, status.encoder, status.last) == ([], 0, None, None)


def test_archived_things_and_their_vectors_are_not_counted(tmp_path: Path) -> None:
    records = write_records(tmp_path / "r.jsonl", [
        {"type": "memory", "content": "one"},
        {"type": "memory", "content": "one", "scopes": ["repo:/b", "repo:/c"]},
        {"type": "memory", "content": "one", "scopes": ["repo:/d"], "state": "archived"},
        {"type": "memory", "content": "two", "state": "archived"},
        {"type": "entity", "name": "E", "state": "archived"},
        {"type": "relation", "subject": "A", "predicate": "p", "object": "B"},
    ])  # fmt: skip
    with Store(tmp_path / "memory.db", write=True) as store:
        import_(store, ImportOptions([str(records)], clock=CLOCK), HashEncoder())

    with Store(tmp_path / "memory.db") as store:
        status = read_status(store.db)

    assert (status.memories, status.entities, status.stubs, status.relations, status.archived) == (
        2,
        2,
        2,
        1,
        3,
    )
    assert (status.vectors, status.without_vectors, status.origins) == (4, 0, 1)
    assert [tuple(scope) for scope in status.scopes] == [
        ("global", 1, 2, 1), ("repo:/b", 1, 0, 0), ("repo:/c", 1, 0, 0),
    ]  # fmt: skip
    assert status.encoder is not None
    assert status.encoder.name == "hash-words"
    assert status.last is not None
    assert (status.last.at, status.last.command, status.last.inputs) == (CLOCK, "import", [str(records)])


def test_reading_changes_nothing(full: Store) -> None:
    before = rows(full.db)

    shown(full, "m1")
    shown(full, "e1")
    Reader(full.db, Filters(NOW)).memories(10)
    Reader(full.db, Filters(NOW)).entities(10, match="a")
    read_status(full.db)

    assert rows(full.db) == before
    full.close()
