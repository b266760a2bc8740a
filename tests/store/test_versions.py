"""What an item said before is told change by change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from importing import take_records

from graphmem.store import Store
from graphmem.store.filters import Filters
from graphmem.store.read import Reader
from graphmem.store.versions import Versions

NOW = "2026-06-01T00:00:00.000Z"


def _history(store: Store, id_: str, scopes: tuple[str, ...] | None = None, **page: int) -> Any:
    filters = Filters(NOW, scopes)
    (ref,) = Reader(store.db, filters).by_id(id_)
    return Versions(store.db, filters).page(ref, page.get("limit", 20), page.get("offset", 0))


def _changed(folder: Path) -> Store:
    store = Store(folder / "memory.db", write=True)
    for number, record in enumerate((
        {"content": "first", "tags": ["a"], "about": ["A"]},
        {"content": "second", "tags": ["a"], "about": ["A"]},
        {"content": "third", "tags": ["b"], "about": ["A", "B"]},
    )):  # fmt: skip
        given = {"type": "memory", "id": "m", "scopes": ["global", "project:x"]} | record
        take_records(store, folder, [given], f"2026-0{number + 3}-01T00:00:00.000Z", name=str(number))
    return store


def test_every_change_tells_what_was_different_before(tmp_path: Path) -> None:
    with _changed(tmp_path) as store:
        page = _history(store, "m")

    assert page.total == 2
    assert [(one["at"][:7], one["command"]) for one in page.items] == [
        ("2026-05", "import"),
        ("2026-04", "import"),
    ]
    assert page.items[0]["before"]["content"] == "second"
    assert page.items[1]["before"] == {"content": "first"}


def test_the_history_is_paged(tmp_path: Path) -> None:
    with _changed(tmp_path) as store:
        first, second = _history(store, "m", limit=1), _history(store, "m", limit=1, offset=1)

    assert first.truncated
    assert not second.truncated
    assert second.items[0]["before"] == {"content": "first"}


def test_an_item_that_was_never_changed_has_no_history(tmp_path: Path) -> None:
    with _changed(tmp_path) as store:
        take_records(store, tmp_path, [{"type": "entity", "name": "E", "id": "e"}], name="e")

        assert (_history(store, "e").items, _history(store, "e").total) == ([], 0)


def test_what_a_memory_was_about_is_told_where_it_is_visible(tmp_path: Path) -> None:
    with Store(tmp_path / "memory.db", write=True) as store:
        memory = {"type": "memory", "id": "m", "content": "text", "scopes": ["global", "project:x"]}
        take_records(
            store, tmp_path, [memory | {"about": [{"name": "Hidden", "scope": "project:x"}]}], name="1"
        )
        store.db.execute("DELETE FROM memory_link WHERE role = 0")
        (ref,) = Reader(store.db, Filters(NOW)).by_id("m")
        store.db.execute(
            "INSERT INTO version SELECT 1, 1, pk, json_object('content', content, 'about', json_array(1)) FROM memory"
        )
        told = Versions(store.db, Filters(NOW)).page(ref, 5).items[0]["before"]["about"]
        hidden = Versions(store.db, Filters(NOW, ("global",))).page(ref, 5).items[0]["before"]["about"]

    assert (told, hidden) == (["Hidden"], [])
