"""`gmem mcp --profile memory` answers as the official memory server did when it was recorded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hash_encoder import HashEncoder
from mcp import Client, MCPError
from mcp_client import ERAS, environment, serving, talking
from memory_sessions import SESSIONS, URI, call, entity, relation
from original_server import Conversation, in_process, process, recording

from graphmem.errors import EncoderError
from graphmem.mcp.memory_profile import build
from graphmem.mcp.memory_tools import TOOLS
from graphmem.mcp.memory_tools import call as call_tool
from graphmem.store import Store

EXACT = [name for name in SESSIONS if name not in ("searching", "told apart")]


@contextmanager
def ours(path: Path, **options: Any) -> Iterator[Conversation]:
    service = serving(path, **options)
    with in_process(build(service)) as conversation:
        yield conversation
    service.close()


def result(conversation: Conversation, tool: str, **arguments: Any) -> Any:
    """The structure of a result, or the text of an error."""
    (answer,) = conversation.ask(*call(tool, **arguments))
    told = answer["result"]
    return told["content"][0]["text"] if told.get("isError") else told["structuredContent"]


# ---- recorded sessions -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SESSIONS)
def test_the_recording_of_a_session_has_its_requests(name: str) -> None:
    assert [request for request, _ in recording(name)] == SESSIONS[name]


@pytest.mark.parametrize("name", EXACT)
def test_every_answer_is_that_of_the_original(name: str, store_path: Path) -> None:
    with ours(store_path) as conversation:
        for request, answers in recording(name):
            assert conversation.ask(*request) == answers, request


def test_a_search_answers_with_at_least_what_the_original_found(store_path: Path) -> None:
    searches = 0
    with ours(store_path) as conversation:
        for request, answers in recording("searching"):
            (told,) = conversation.ask(*request)
            if (request[1] or {}).get("name") != "search_nodes":
                assert [told] == answers
                continue
            found, wanted = told["result"]["structuredContent"], answers[0]["result"]["structuredContent"]
            for key in ("entities", "relations"):
                assert [one for one in wanted[key] if one not in found[key]] == []
            searches += 1
    assert searches == 7


def test_what_differs_on_purpose_is_only_that_nothing_is_kept_twice_or_empty(store_path: Path) -> None:
    told = []
    with ours(store_path) as conversation:
        for request, _ in recording("told apart"):
            told.append(conversation.ask(*request)[0]["result"]["structuredContent"])

    assert told[0] == {"entities": [entity("Twice", "thing", "one", "two", "three"), entity("Bare", "")]}
    assert told[2] == {"relations": [relation("Twice", "works_at", "Bare")]}
    assert told[3] == {"results": [{"entityName": "Bare", "addedObservations": ["new"]}]}
    assert told[4] == {
        "entities": [entity("Twice", "thing", "one", "two", "three"), entity("Bare", "unknown", "new")],
        "relations": [relation("Twice", "works_at", "Bare")],
    }


def test_a_process_with_the_profile_answers_as_recorded(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-P",
        "-m",
        "graphmem",
        "mcp",
        "--profile",
        "memory",
        "--db",
        str(tmp_path / "m.db"),
    ]
    with process(command, environment(tmp_path / "home")) as conversation:
        for request, answers in recording("told of changes"):
            assert conversation.ask(*request) == answers, request


# ---- both eras ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
def test_clients_of_both_eras_use_the_tools_and_the_resource(era: str, store_path: Path) -> None:
    service = serving(store_path)
    with talking(Client(build(service), mode=era)) as client:
        assert [tool.name for tool in client.ask("list_tools").tools] == [tool.name for tool in TOOLS]
        made = client.ask("call_tool", "create_entities", {"entities": [entity("A", "x", "one")]})
        assert made.structured_content == {"entities": [entity("A", "x", "one")]}
        read = client.ask("read_resource", URI)
        assert '"name": "A"' in read.contents[0].text
        with pytest.raises(MCPError):
            client.ask("read_resource", "memory://nothing")
    service.close()


def test_a_client_of_today_that_listens_is_told_of_changes(store_path: Path) -> None:
    service = serving(store_path)

    async def heard(client: Client) -> str:
        async with client.listen(resource_subscriptions=[URI]) as events:
            await client.call_tool("create_entities", {"entities": [entity("A", "x")]})
            async for event in events:
                return str(getattr(event, "uri", event))
        return ""

    with talking(Client(build(service), mode="auto")) as client:
        assert client.portal.call(heard, client.client) == URI
    service.close()


# ---- tools -------------------------------------------------------------------------------------------


def test_every_answer_fits_the_schema_that_was_shown(store_path: Path) -> None:
    given: dict[str, dict[str, Any]] = {
        "create_entities": {"entities": [entity("A", "x", "one")]},
        "create_relations": {"relations": [relation("A", "r", "B")]},
        "add_observations": {"observations": [{"entityName": "A", "contents": ["two"]}]},
        "read_graph": {},
        "search_nodes": {"query": "one"},
        "open_nodes": {"names": ["A"]},
        "delete_observations": {"deletions": [{"entityName": "A", "observations": ["one"]}]},
        "delete_relations": {"relations": [relation("A", "r", "B")]},
        "delete_entities": {"entityNames": ["A"]},
    }
    assert given.keys() == {tool.name for tool in TOOLS}
    with ours(store_path) as conversation:
        for name, arguments in given.items():
            schema = next(tool.output for tool in TOOLS if tool.name == name)
            jsonschema.validate(result(conversation, name, **arguments), schema)


def test_reading_and_deleting_make_no_store(store_path: Path) -> None:
    with ours(store_path) as conversation:
        assert result(conversation, "read_graph") == {"entities": [], "relations": []}
        assert result(conversation, "search_nodes", query="x") == {"entities": [], "relations": []}
        assert result(conversation, "delete_entities", entityNames=["A"])["success"]
        assert result(conversation, "create_entities", entities=[]) == {"entities": []}
        assert "not found" in result(conversation, "add_observations", observations=[
            {"entityName": "A", "contents": ["x"]},
        ])  # fmt: skip
        assert "is empty" in result(conversation, "create_entities", entities=[entity("", "x")])


def test_read_only_leaves_the_tools_that_write_out(store_path: Path) -> None:
    Store(store_path, write=True).close()
    with ours(store_path, read_only=True) as conversation:
        (listed,) = conversation.ask("tools/list", {})
        assert [one["name"] for one in listed["result"]["tools"]] == [
            "read_graph",
            "search_nodes",
            "open_nodes",
        ]
        assert result(conversation, "delete_entities", entityNames=["A"]) == (
            "MCP error -32602: Tool delete_entities not found"
        )


def test_writes_go_to_the_scope_of_the_server(store_path: Path) -> None:
    with ours(store_path, scope="repo:/a") as conversation:
        result(conversation, "create_entities", entities=[entity("A", "x", "one")])
    with ours(store_path) as conversation:
        assert result(conversation, "read_graph")["entities"] == []
    with Store(store_path) as store:
        assert store.db.execute("SELECT command, actor FROM batch").fetchall() == [("create_entities", "mcp")]


def test_what_is_written_has_its_vectors_and_is_found_by_meaning(store_path: Path) -> None:
    with ours(store_path, encoder=HashEncoder()) as conversation:
        result(
            conversation,
            "create_entities",
            entities=[entity("Pump", "machine", "The red valve leaks at night")],
        )
        with Store(store_path) as store:
            assert store.db.execute("SELECT count(DISTINCT kind) FROM chunk").get == 2
        found = result(conversation, "search_nodes", query="leaks at night the valve")
        assert [one["name"] for one in found["entities"]] == ["Pump"]


def test_servers_that_write_at_once_lose_nothing(store_path: Path) -> None:
    services = [serving(store_path) for _ in range(2)]
    call_tool(services[0], "create_entities", {"entities": [entity("A", "x")]})

    def observe(number: int) -> bool:
        given = {"observations": [{"entityName": "A", "contents": [f"observation {number}"]}]}
        return call_tool(services[number % 2], "add_observations", given).structure is not None

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(observe, range(40)))
    graph = call_tool(services[0], "read_graph", {}).structure
    assert graph is not None
    assert sorted(graph["entities"][0]["observations"]) == sorted(f"observation {n}" for n in range(40))
    for service in services:
        service.close()


def test_a_model_that_cannot_be_loaded_stores_nothing_and_says_why(store_path: Path) -> None:
    def broken() -> Any:
        raise EncoderError("the model is gone", "fetch it")

    with ours(store_path, find=broken) as conversation:
        told = result(conversation, "create_entities", entities=[entity("A", "x")])
        assert told == "the model is gone (fetch it)"
        assert result(conversation, "read_graph")["entities"] == []


def test_any_text_is_a_legal_argument(store_path: Path) -> None:
    with ours(store_path) as conversation:
        nul = entity("A\0b", "x", "nul \0 in it")
        assert result(conversation, "create_entities", entities=[nul]) == {"entities": [nul]}
        assert result(conversation, "open_nodes", names=["A\0b", "\0"])["entities"] == [nul]
        assert result(conversation, "search_nodes", query="\0")["entities"] == [nul]
        half = "\ud800"
        reads: dict[str, Any] = {"open_nodes": {"names": [half]}, "search_nodes": {"query": half}}
        for tool, arguments in reads.items():
            assert result(conversation, tool, **arguments) == {"entities": [], "relations": []}
        deletes: dict[str, Any] = {
            "delete_entities": {"entityNames": ["A\0b", half]},
            "delete_observations": {"deletions": [{"entityName": half, "observations": [half]}]},
            "delete_relations": {"relations": [relation(half, half, half)]},
        }
        for tool, arguments in deletes.items():
            assert result(conversation, tool, **arguments)["success"]
        assert "surrogate" in result(conversation, "create_entities", entities=[entity("B", "x", half)])
        assert "surrogate" in result(conversation, "create_relations", relations=[relation(half, "r", "B")])
        assert result(conversation, "read_graph")["entities"] == []
