"""What belongs to one scope is not seen from another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from importing import in_memory, take_records
from snapshots import content
from strategies import SECOND_CLOCK

from graphmem.store import Store

A, B = "repo:/a", "repo:/b"


@pytest.fixture
def store() -> Iterator[Store]:
    with in_memory() as made:
        yield made


def about(store: Store) -> dict[str, list[tuple[str, str, str]]]:
    return {one["content"]: one["about"] for one in content(store.db)["memories"].values()}


def service(scope: str, **keys: Any) -> dict[str, Any]:
    return {"type": "entity", "name": "Auth", "kind": "service", "scope": scope, **keys}


def test_two_repositories_with_the_same_names_never_meet(store: Store, tmp_path: Path) -> None:
    records = [
        {"type": "memory", "content": f"{scope} {number}", "about": [ref], "scopes": [scope]}
        for scope in (A, B)
        for number, ref in enumerate(("Auth", "auth", {"name": "Auth", "kind": "service"}))
    ]
    relations = [
        {"type": "relation", "subject": "Auth", "predicate": "uses", "object": "AUTH", "scope": scope}
        for scope in (A, B)
    ]

    report = take_records(store, tmp_path, [*records, *relations, service(A), service(B)], batch_size=2)

    assert report.findings.by_rule == {}
    for told, entities in about(store).items():
        assert entities == [(told.split()[0], "Auth", "service")]
    for one in content(store.db)["relations"].values():
        assert one["scope"] == one["subject"][0] == one["object"][0]


def test_a_name_that_only_another_repository_has_is_not_found(store: Store, tmp_path: Path) -> None:
    take_records(store, tmp_path, [service(A, aliases=["login"])])
    memory = {"type": "memory", "content": "x", "about": ["Auth", "login"], "scopes": [B]}

    report = take_records(store, tmp_path, [memory], SECOND_CLOCK, name="b")

    assert report.stubs == 2
    assert about(store) == {"x": [(B, "Auth", ""), (B, "login", "")]}


def test_the_own_scope_comes_before_global_and_global_is_seen(store: Store, tmp_path: Path) -> None:
    take_records(store, tmp_path, [service("global"), service(A)])
    memories = [
        {"type": "memory", "content": scope, "about": ["Auth"], "scopes": [scope]}
        for scope in ("global", A, B)
    ]

    take_records(store, tmp_path, memories, SECOND_CLOCK, name="m")

    assert about(store) == {
        "global": [("global", "Auth", "service")], A: [(A, "Auth", "service")], B: [("global", "Auth", "service")],
    }  # fmt: skip


def test_a_memory_of_two_scopes_is_resolved_once_in_each(store: Store, tmp_path: Path) -> None:
    take_records(store, tmp_path, [service(A), service(B), {"type": "entity", "name": "Only A", "scope": A}])
    memory = {"type": "memory", "content": "x", "about": ["Auth", "Only A"], "scopes": [A, B]}

    take_records(store, tmp_path, [memory], SECOND_CLOCK, name="m")

    assert about(store) == {
        "x": [(A, "Auth", "service"), (A, "Only A", ""), (B, "Auth", "service"), (B, "Only A", "")]
    }


@pytest.mark.parametrize(
    "ref", [{"name": "Auth", "scope": A}, {"id": "auth-a"}, {"id": "auth-a", "name": "Auth"}]
)
def test_a_reference_into_another_repository_is_refused(
    ref: dict[str, str], store: Store, tmp_path: Path
) -> None:
    take_records(store, tmp_path, [service(A, id="auth-a"), service(B)])
    records = [
        {"type": "memory", "content": "x", "about": [ref], "scopes": [B]},
        {"type": "relation", "subject": ref, "predicate": "is", "object": "Auth", "scope": B},
    ]

    report = take_records(store, tmp_path, records, SECOND_CLOCK, name="m")

    assert report.findings.by_rule == {"foreign-scope": 2}
    assert report.counts["memory"].rejected == report.counts["relation"].rejected == 1
    assert about(store) == {}


def test_a_reference_may_choose_among_the_scopes_it_sees(store: Store, tmp_path: Path) -> None:
    take_records(store, tmp_path, [service("global"), service(A)])
    memory = {"type": "memory", "content": "x", "about": [{"name": "Auth", "scope": "global"}], "scopes": [A]}

    take_records(store, tmp_path, [memory], SECOND_CLOCK, name="m")

    assert about(store) == {"x": [("global", "Auth", "service")]}


def test_a_memory_id_of_another_scope_is_refused(store: Store, tmp_path: Path) -> None:
    take_records(store, tmp_path, [{"type": "memory", "id": "m", "content": "x", "scopes": [A]}])

    report = take_records(
        store,
        tmp_path,
        [{"type": "memory", "id": "m", "content": "y", "scopes": [B]}],
        SECOND_CLOCK,
        name="m",
    )

    assert report.findings.by_rule == {"id-scope-conflict": 1}
    assert list(about(store)) == ["x"]


def test_equal_memories_of_two_scopes_are_two(store: Store, tmp_path: Path) -> None:
    records = [{"type": "memory", "content": "x", "scopes": scopes} for scopes in ([A], [B], [A, B], [A])]

    report = take_records(store, tmp_path, records)

    assert (report.counts["memory"].created, report.counts["memory"].merged) == (3, 1)


def test_scopes_are_mapped_everywhere(store: Store, tmp_path: Path) -> None:
    records = [
        service(A),
        {"type": "memory", "content": "x", "about": [{"name": "Auth", "scope": A}], "scopes": [A, "global"]},
        {
            "type": "relation",
            "subject": "Auth",
            "predicate": "is",
            "object": {"name": "Auth", "scope": A},
            "scope": A,
        },
    ]

    report = take_records(store, tmp_path, records, map_scope={A: "repo:/moved"})

    assert report.findings.by_rule == {}
    assert A not in {name for (name,) in store.db.execute("SELECT name FROM scope")}
    assert about(store) == {"x": [("repo:/moved", "Auth", "service")]}
