"""Names are found in text as words of their own, and the index is the same whatever came first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphmem.ingest import run as import_
from graphmem.mentions import contains, find, head, plain
from graphmem.options import ImportOptions
from graphmem.store import MEMORY_PATH, Store

if TYPE_CHECKING:
    from command_line import Run


@pytest.mark.parametrize(
    ("text", "name", "named"),
    [
        ("The AuthService fails", "AuthService", True),
        ("AuthServices fail", "AuthService", False),
        ("an authservice", "AuthService", False),
        ("I use C++ daily", "C++", True),
        ("I use C++ daily", "C", False),
        ("C# and F#", "C", False),
        (".NET is here", ".NET", True),
        (".NET is here", "NET", False),
        ("Mara\n  Lindqvist's desk", "Mara Lindqvist", True),
        ("pre-edit hook", "edit", True),
        ("Cafe\u0301 au lait", "Café", True),
        ("New York Times", "New York", True),
        ("x", "x", True),
    ],
)
def test_a_name_is_found_as_words_of_its_own(text: str, name: str, named: bool) -> None:
    assert contains(plain(text), name) is named


def test_all_names_in_a_text_are_found_by_their_heads() -> None:
    names = [("New York", 1), ("New York Times", 2), ("Go", 3), ("C++", 4), ("York", 5), ("Boston", 6)]
    filed: dict[str, list[tuple[str, int]]] = {}
    for name, entity in names:
        filed.setdefault(head(name) or "", []).append((name, entity))
    found = find(plain("Go and C++ in the New York Times"), lambda one: filed.get(one, []))
    assert found == {("New York", 1), ("New York Times", 2), ("Go", 3), ("C++", 4), ("York", 5)}


def test_names_that_say_nothing_are_not_looked_for() -> None:
    assert head("x") is None
    assert head("++") is None
    assert head("🦊🦊") is None


words = st.sampled_from(
    ["Auth", "Service", "AuthService", "C++", "New", "York", "api", ".NET", "é", "x_y", "42"]
)
names = st.lists(words, min_size=1, max_size=3).map(" ".join)
records = st.lists(
    st.one_of(
        st.builds(
            lambda name, aliases: {"type": "entity", "name": name, "aliases": aliases},
            names,
            st.lists(names, max_size=2),
        ),
        st.builds(
            lambda content, title: {"type": "memory", "content": content, "title": title},
            st.lists(words, max_size=8).map(" ".join),
            st.one_of(st.none(), names),
        ),
        st.builds(lambda a, b: [a, "joins", b], names, names),
    ),
    max_size=12,
)


def state(store: Store) -> tuple[set[Any], set[Any]]:
    mentions = store.db.execute(
        "SELECT m.content, m.title, e.name, e.kind_key FROM mention AS x JOIN memory AS m ON m.pk = x.memory "
        "JOIN entity AS e ON e.pk = x.entity"
    ).fetchall()
    filed = store.db.execute(
        "SELECT n.head, n.name, e.name FROM mention_name AS n JOIN entity AS e ON e.pk = n.entity"
    ).fetchall()
    return set(mentions), set(filed)


def imported(store: Store, folder: Path, number: int, part: list[Any], batch_size: int) -> None:
    source = folder / f"{number}.jsonl"
    source.write_text("\n".join(json.dumps(one) for one in part))
    if part:
        import_(store, ImportOptions([str(source)], batch_size=batch_size))


@settings(max_examples=60)
@given(records, st.integers(0, 12), st.sampled_from([1, 2, 1000]), st.randoms(use_true_random=False))
def test_the_index_kept_in_step_is_the_index_made_anew(
    tmp_path_factory: pytest.TempPathFactory, given_records: list[Any], cut: int, batch_size: int, random: Any
) -> None:
    folder = tmp_path_factory.mktemp("mentions")
    with Store(MEMORY_PATH, write=True) as store, Store(MEMORY_PATH, write=True) as other:
        imported(store, folder, 1, given_records[:cut], batch_size)
        imported(store, folder, 2, given_records[cut:], batch_size)
        kept = state(store)
        with store.transaction():
            store.find_mentions_anew()
        assert state(store) == kept
        shuffled = list(given_records)
        random.shuffle(shuffled)
        imported(other, folder, 3, shuffled, batch_size)
        assert state(other)[0] == kept[0]


def test_a_changed_memory_names_what_it_says_now(tmp_path: Path) -> None:
    with Store(MEMORY_PATH, write=True) as store:
        imported(
            store, tmp_path, 1, [{"type": "entity", "name": "Redis"}, {"type": "entity", "name": "Kafka"}], 9
        )
        imported(store, tmp_path, 2, [{"type": "memory", "id": "m", "content": "Redis is slow"}], 9)
        assert {row[2] for row in state(store)[0]} == {"Redis"}
        imported(store, tmp_path, 3, [{"type": "memory", "id": "m", "content": "Kafka is slow"}], 9)
        assert {row[2] for row in state(store)[0]} == {"Kafka"}
        imported(store, tmp_path, 4, [{"type": "entity", "name": "Bus", "aliases": ["slow"]}], 9)
        assert {row[2] for row in state(store)[0]} == {"Kafka", "Bus"}


def test_mentions_can_be_left_out_and_made_later(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "records.jsonl"
    source.write_text('{"type":"entity","name":"Redis"}\n{"type":"memory","content":"Redis is slow"}\n')
    assert run("import", str(source), "--no-mentions").status == 0
    assert run("reindex", "--json").json == {"names": 1, "mentions": 1}
    assert run("reindex").out == "1 mention of 1 name\n"


MULTI_HOP = [
    {"type": "memory", "content": "The lantern protocol was written by Ada Quill"},
    {"type": "entity", "name": "Ada Quill", "kind": "person"},
    {"type": "memory", "content": "Ada Quill grew up in Port Ellen"},
    *({"type": "memory", "content": f"Filler {n}: people grew up in towns and cities"} for n in range(30)),
]


def test_the_graph_recipe_reaches_what_only_a_name_joins(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "records.jsonl"
    source.write_text("\n".join(json.dumps(one) for one in MULTI_HOP))
    assert run("import", str(source)).status == 0
    found = run("search", "lantern protocol", "--recipe", "graph", "--json").json
    contents = [hit["content"] for hit in found["hits"][:2]]
    assert contents == ["The lantern protocol was written by Ada Quill", "Ada Quill grew up in Port Ellen"]
    assert found["hits"][1]["channels"]["graph"]["rank"] == 2
    flat = run("search", "lantern protocol", "--recipe", "hybrid", "--json").json
    assert [hit["content"] for hit in flat["hits"]] == ["The lantern protocol was written by Ada Quill"]


def test_the_walk_does_not_cross_into_another_scope(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "records.jsonl"
    rows = [
        {"type": "memory", "content": "The lantern protocol was written by Ada Quill", "scopes": ["repo:/a"]},
        {"type": "entity", "name": "Ada Quill", "scope": "repo:/a"},
        {"type": "memory", "content": "Ada Quill grew up in Port Ellen", "scopes": ["repo:/b"]},
        {"type": "entity", "name": "Ada Quill", "scope": "repo:/b"},
    ]
    source.write_text("\n".join(json.dumps(one) for one in rows))
    assert run("import", str(source)).status == 0
    found = run("search", "lantern protocol", "--recipe", "graph", "--scope", "repo:/a", "--json").json
    assert [hit["content"] for hit in found["hits"]] == ["The lantern protocol was written by Ada Quill"]
