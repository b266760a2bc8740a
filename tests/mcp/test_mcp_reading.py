"""The reading tools: what they find, how they page, and what they never show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hash_encoder import HashEncoder
from mcp_client import ERAS, Conversation, connected, fill, serving, text_of

from graphmem.budget import tokens
from graphmem.mcp.answers import EVIDENCE


@pytest.fixture(params=ERAS)
def client(request: pytest.FixtureRequest, store_path: Path) -> Iterator[Conversation]:
    """A client of the small store, in both eras of the protocol."""
    encoder = HashEncoder()
    service = serving(fill(store_path, encoder=encoder), encoder=encoder)
    service.model.wait()
    with connected(service, request.param) as opened:
        yield opened


# ---- recall ---------------------------------------------------------------------------------------


def test_recall_finds_a_memory_and_says_why_and_where_it_is_from(client: Conversation) -> None:
    told = client.call("recall", query="when do tokens expire")
    first = told["memories"][0]

    assert (told["evidence"], told["found"]) == (EVIDENCE, True)
    assert (first["id"], first["type"], first["source"]) == ("tokens", "decision", "notes/auth.md")
    assert first["about"] == [{"id": "auth", "name": "AuthService", "kind": "service"}]
    assert "words" in first["why"]
    assert "meaning" in first["why"]


def test_recall_finds_facts_and_entities_by_themselves(client: Conversation) -> None:
    told = client.call("recall", query="AuthService depends on PostgresDB")

    assert told["facts"][0]["id"] == "auth-pg"
    assert "pg" in {one["id"] for one in told["entities"]}


def test_recall_adds_the_facts_around_when_asked(client: Conversation) -> None:
    told = client.call("recall", query="tokens expire", types=["decision"], around=True)

    assert [one["id"] for one in told["around"]] == ["auth-mara", "auth-pg"]
    assert told["around"][1]["object_id"] == "pg"


def test_recall_says_when_nothing_is_relevant(client: Conversation) -> None:
    told = client.call("recall", query="zebra migration xylophone", recipe="lexical")

    assert told["found"] is False
    assert told["memories"] == []
    assert "nothing stored here is about this" in told["notes"]


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        ({"tags": ["security"]}, ["tokens"]),
        ({"types": ["observation"]}, ["backup"]),
        ({"kinds": ["database"]}, ["backup"]),
        ({"entity": "pg"}, ["backup"]),
        ({"entity": "postgres db"}, ["backup"]),
        ({"since": "2026-01-06"}, ["backup"]),
        ({"until": "2026-01-05"}, ["tokens"]),
        ({"scopes": ["project:other"]}, ["secret"]),
        ({"scopes": ["*"]}, ["backup", "secret", "tokens"]),
        ({}, ["backup", "tokens"]),
    ],
)
def test_recall_filters(client: Conversation, given: dict[str, object], ids: list[str]) -> None:
    told = client.call("recall", query="tokens expire backups database", **given)

    assert sorted(one["id"] for one in told["memories"]) == ids


def test_recall_pages(client: Conversation) -> None:
    first = client.call("recall", query="tokens expire backups database", limit=1)
    second = client.call(
        "recall", query="tokens expire backups database", limit=1, offset=first["next_offset"]
    )

    assert first["truncated"] is True
    assert "next_offset" not in second
    assert {first["memories"][0]["id"], second["memories"][0]["id"]} == {"tokens", "backup"}


def test_recall_ranks_by_nearness_to_an_entity(client: Conversation) -> None:
    told = client.call("recall", query="run", recipe="near", entity="PostgresDB")

    assert told["recipe"] == "near"
    assert told["memories"][0]["id"] == "backup"


def test_recall_tells_what_other_scopes_hold_and_nothing_of_it(store_path: Path) -> None:
    with connected(serving(fill(store_path), scope="project:empty")) as client:
        told = client.call("recall", query="other never", recipe="lexical", scopes=["project:empty"])

    assert told["memories"] == []
    assert told["elsewhere"]["memories"] == 1
    assert "never" not in json.dumps(told)


def test_the_scope_of_the_server_and_global_are_seen(store_path: Path) -> None:
    with connected(serving(fill(store_path), scope="project:other")) as client:
        told = client.call("recall", query="tokens expire", recipe="lexical")

    assert sorted(one["id"] for one in told["memories"]) == ["secret", "tokens"]


def test_a_name_that_could_mean_several_is_told_with_the_others(client: Conversation) -> None:
    told = client.call("recall", query="tokens", entity="Mercury")

    assert "could also be Mercury" in told["notes"][0]


@pytest.mark.parametrize("query", ['"', "C++", "don't", "東京", "AND OR NOT", "\x00", "*", "a" * 2_000])
def test_any_text_is_a_query(client: Conversation, query: str) -> None:
    assert "memories" in client.call("recall", query=query)


# ---- inspect --------------------------------------------------------------------------------------


def test_inspect_shows_a_memory(client: Conversation) -> None:
    told = client.call("inspect", id="tokens")

    assert (told["type"], told["content"]) == ("memory", "Tokens expire after an hour.")
    assert told["about"][0]["id"] == "auth"
    assert told["origins"]["total"] == 1
    assert "vectors" not in told


def test_inspect_shows_an_entity_with_its_memories_and_relations(client: Conversation) -> None:
    told = client.call("inspect", id="auth service")

    assert (told["id"], told["aliases"]) == ("auth", ["login"])
    assert [one["id"] for one in told["memories"]["items"]] == ["tokens"]
    assert sorted(one["id"] for one in told["relations"]["items"]) == ["auth-mara", "auth-pg"]


def test_inspect_shows_a_relation(client: Conversation) -> None:
    told = client.call("inspect", id="auth-pg", type="relation")

    assert (told["subject"]["id"], told["predicate"], told["object"]["id"]) == ("auth", "depends_on", "pg")
    assert told["weight"] == 0.5


def test_the_kind_tells_namesakes_apart(client: Conversation) -> None:
    assert client.call("inspect", id="Mercury", kind="planet")["id"] == "planet"
    assert client.call("inspect", id="Mercury", kind="project")["id"] == "project"


def test_inspect_pages_through_every_list(client: Conversation) -> None:
    told = client.call("inspect", id="auth", limit=1)
    further = client.call("inspect", id="auth", limit=1, offset=told["relations"]["next_offset"])

    assert told["truncated"] is True
    assert told["relations"]["total"] == 2
    assert further["relations"]["items"][0]["id"] != told["relations"]["items"][0]["id"]


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        ({"type": "memory"}, ["backup", "tokens"]),
        ({"type": "entity", "kind": "service"}, ["auth"]),
        ({"match": "postgres"}, ["pg"]),
        ({"type": "relation"}, ["auth-mara", "auth-pg"]),
    ],
)
def test_inspect_lists_without_an_id(client: Conversation, given: dict[str, object], ids: list[str]) -> None:
    told = client.call("inspect", **given)

    assert sorted(one["id"] for one in told["items"]) == ids
    assert told["total"] == len(ids)


def test_an_unknown_name_comes_with_suggestions(client: Conversation) -> None:
    error = client.refused("inspect", id="authservise")

    assert error["code"] == "entity-not-found"
    assert error["suggestions"][0] == "AuthService"


def test_an_item_of_another_scope_is_not_found(client: Conversation) -> None:
    assert client.refused("inspect", id="secret")["code"] == "entity-not-found"
    assert client.refused("inspect", id="secret", type="memory")["code"] == "item-not-found"


# ---- graph and stats ------------------------------------------------------------------------------


def test_graph_shows_what_is_around(client: Conversation) -> None:
    told = client.call("graph", entities=["AuthService"], memories=True)

    assert [one["name"] for one in told["entities"]] == ["AuthService", "Mara", "PostgresDB"]
    assert sorted(one["id"] for one in told["relations"]) == ["auth-mara", "auth-pg"]
    assert {one["id"] for one in told["memories"]} == {"tokens", "backup"}
    assert told["truncated"] is False


def test_graph_follows_one_direction_and_one_predicate(client: Conversation) -> None:
    assert client.call("graph", entities=["pg"], direction="out")["relations"] == []
    told = client.call("graph", entities=["auth"], predicates=["DEPENDS ON"])

    assert [one["id"] for one in told["relations"]] == ["auth-pg"]


def test_graph_finds_the_paths_between_two(client: Conversation) -> None:
    told = client.call("graph", entities=["Mara"], to="PostgresDB")

    assert told["length"] == 2
    assert [(step["from"], step["to"]) for step in told["paths"][0]] == [
        ("Mara", "AuthService"), ("AuthService", "PostgresDB"),
    ]  # fmt: skip


def test_graph_says_when_there_is_no_path(client: Conversation) -> None:
    told = client.call("graph", entities=["planet"], to="PostgresDB")

    assert told["paths"] == []
    assert told["why_none"]


def test_graph_stops_at_its_limit_and_says_so(client: Conversation) -> None:
    told = client.call("graph", entities=["AuthService"], limit=2)

    assert len(told["entities"]) == 2
    assert told["truncated"] is True


def test_stats_count_what_is_visible(client: Conversation) -> None:
    told = client.call("stats")

    assert (told["memories"], told["entities"], told["relations"]) == (2, 5, 2)
    assert told["kinds"] == {"database": 1, "planet": 1, "project": 1, "service": 1, "unknown": 1}
    assert told["predicates"] == {"depends_on": 1, "owned_by": 1}
    assert told["connected"][0] == {"id": "auth", "name": "AuthService", "kind": "service", "relations": 2}
    assert any(hint.startswith("1 entities are only referred to") for hint in told["hints"])
    assert any("1 other scopes" in hint for hint in told["hints"])


@pytest.mark.parametrize(
    ("tool", "given"),
    [("recall", {"query": "tokens"}), ("inspect", {"id": "tokens"}), ("graph", {"entities": ["auth"]})],
)
def test_no_answer_holds_a_vector(client: Conversation, tool: str, given: dict[str, object]) -> None:
    assert '"vector' not in text_of(client.result(tool, **given))


# ---- sizes ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of long memories and a crowded entity."""
    path = tmp_path_factory.mktemp("large") / "large.db"
    memories = [
        {
            "type": "memory",
            "content": f"{number} tokens " + "and a long story about it " * 200,
            "about": ["Hub"],
        }
        for number in range(60)
    ]
    relations = [
        {"subject": "Hub", "predicate": "links_to", "object": f"Leaf number {n}"} for n in range(600)
    ]
    entity = {
        "type": "entity",
        "name": "Hub",
        "properties": {"long": "x" * 90_000},
        "description": "y" * 90_000,
    }
    return fill(path, [entity, *memories, *relations])


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("recall", {"query": "tokens", "limit": 100, "around": True}),
        ("inspect", {"id": "Hub", "limit": 100}),
        ("inspect", {"limit": 100}),
        ("inspect", {"type": "relation", "limit": 100}),
        ("graph", {"entities": ["Hub"], "limit": 500, "memories": True}),
        ("stats", {}),
    ],
)
def test_an_answer_stays_under_ten_thousand_tokens_and_says_so(
    large: Path, tool: str, given: dict[str, object]
) -> None:
    with connected(serving(large)) as client:
        result = client.result(tool, **given)

    assert not result.is_error
    assert tokens(text_of(result)) < 10_000
    if tool != "stats":
        assert json.loads(text_of(result))["truncated"] is True


def test_more_tokens_show_more(large: Path) -> None:
    with connected(serving(large)) as client:
        short = client.call("recall", query="tokens", max_tokens=1_000)
        long = client.call("recall", query="tokens", max_tokens=50_000)

    assert len(json.dumps(short)) < len(json.dumps(long))
    assert all(one.get("cut") for one in short["memories"])
    assert not any(one.get("cut") for one in long["memories"])
