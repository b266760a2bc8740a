"""Several processes on one store, a session of an agent, and what its predecessors could do."""

from __future__ import annotations

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_client import GMEM, HELLO, environment, lines, started, talking, tool_call

from graphmem.mcp.tools import TOOLS
from graphmem.store import Store

ROOT = Path(__file__).parents[2]


def _server(tmp_path: Path) -> Client:
    parameters = StdioServerParameters(
        command=GMEM[0], args=[*GMEM[1:], "--db", str(tmp_path / "memory.db")], env=environment(tmp_path / "home"),
        cwd=str(tmp_path),
    )  # fmt: skip
    return Client(parameters)


def test_an_agent_remembers_and_another_session_recalls_corrects_and_forgets(tmp_path: Path) -> None:
    with talking(_server(tmp_path)) as first:
        told = first.call("remember", records=[
            {"content": "The queue is drained with make drain.", "about": ["Queue"], "memory_type": "convention"},
            {"type": "entity", "name": "Queue", "kind": "component"},
        ])  # fmt: skip
        memory = told["records"][0]["id"]
        first.call("relate", subject="Queue", predicate="runs_on", object="Redis")
    with talking(_server(tmp_path)) as second:
        found = second.call("recall", query="how is the queue drained", around=True)
        assert found["memories"][0]["id"] == memory
        assert found["around"][0]["predicate"] == "runs_on"
        second.call("update", id=memory, set={"content": "The queue is drained with make empty."})
        shown = second.call("inspect", id=memory)
        assert shown["content"] == "The queue is drained with make empty."
        assert "make drain" in json.dumps(shown["history"])
        assert second.call("forget", ids=[memory])["archived"]["memory"] == 1
    with talking(_server(tmp_path)) as third:
        assert third.call("recall", query="how is the queue drained")["memories"] == []


def test_servers_and_commands_write_at_the_same_time_and_nothing_is_lost(tmp_path: Path) -> None:
    db, many = tmp_path / "memory.db", 30
    env = environment(tmp_path / "home")

    def serve(name: str) -> None:
        server = started(tmp_path / "home", db)
        calls = [
            tool_call(n, "remember", records=[{"content": f"{name} wrote {n}"}]) for n in range(2, many + 2)
        ]
        out, _ = server.communicate(lines(*HELLO, *calls), timeout=120)
        answers = [json.loads(line) for line in out.splitlines()]
        assert len(answers) == many + 1
        assert not any(one["result"].get("isError") for one in answers)

    def command(name: str) -> None:
        for number in range(2):
            file = tmp_path / f"{name}-{number}.jsonl"
            records = [{"type": "memory", "content": f"{name} wrote {number}-{n}"} for n in range(many // 2)]
            file.write_text("".join(json.dumps(one) + "\n" for one in records))
            subprocess.run(
                [*GMEM[:-1], "import", str(file), "--db", str(db)], env=env, check=True, capture_output=True
            )

    with ThreadPoolExecutor(4) as threads:
        running = [threads.submit(serve, "one"), threads.submit(serve, "two"), threads.submit(command, "three"),
                   threads.submit(command, "four")]  # fmt: skip
        for each in running:
            each.result()
    with Store(db) as store:
        contents = [text for (text,) in store.db.execute("SELECT content FROM memory")]
        assert len(contents) == len(set(contents)) == 4 * many
        assert (
            store.db.execute("SELECT count(*) FROM memory_fts WHERE memory_fts MATCH 'wrote'").get == 4 * many
        )


def _mapping() -> list[tuple[str, str]]:
    page = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8").partition("<!-- mapping -->")[2]
    rows = re.findall(r"^\| (graph-mem|Graphmem) `(\w+)` \| (.+) \|$", page, re.MULTILINE)
    return [(f"{product} {tool}", told) for product, tool, told in rows]


PREDECESSORS = {
    "graph-mem": [
        "add_entities", "add_relationships", "add_observations", "update_entity", "update_relationship",
        "update_observation", "delete_entities", "delete_relationships", "delete_observations", "merge_entities",
        "get_entity", "list_entities", "list_relationships", "search_nodes", "search_observations",
        "find_connections", "get_subgraph", "find_paths", "read_graph", "graph_health", "audit_graph",
        "compact_observations", "suggest_connections", "open_dashboard", "list_graphs", "create_graph",
        "switch_graph", "delete_graph",
    ],
    "Graphmem": ["remember", "recall", "update", "inspect", "forget", "relate", "graph", "stats"],
}  # fmt: skip


def test_the_page_says_where_every_tool_of_the_predecessors_went() -> None:
    assert [name for name, _ in _mapping()] == [
        f"{product} {tool}" for product, tools in PREDECESSORS.items() for tool in tools
    ]


def test_the_page_names_no_tool_or_argument_that_is_not_there() -> None:
    arguments = {name for tool in TOOLS for name in tool.input["properties"]}
    records = {"content", "about", "source"}
    for name, told in _mapping():
        for word in re.findall(r"`(\w+)`", told):
            known = {tool.name for tool in TOOLS} | arguments | records | {"hints"}
            assert word in known, name


WORLD: list[dict[str, Any]] = [
    {"type": "entity", "name": "A", "kind": "service", "description": "first", "properties": {"p": 1}},
    {"type": "entity", "name": "B", "kind": "service"},
    {"type": "entity", "name": "C", "kind": "database"},
    {"type": "relation", "subject": "A", "predicate": "calls", "object": "B", "weight": 0.5},
    {"type": "relation", "subject": "B", "predicate": "uses", "object": "C"},
    {"content": "A is slow.", "about": ["A"], "source": "log"},
    {"content": "B is fast.", "about": ["B"]},
]


def test_what_the_predecessors_could_do_can_be_done(tmp_path: Path) -> None:
    """One walk through the table of docs/mcp.md, tool by tool."""
    with talking(_server(tmp_path)) as client:
        rows = client.call("remember", records=WORLD)[
            "records"
        ]  # add_entities, _relationships, _observations
        a, b, _, calls, uses, slow, fast = (row["id"] for row in rows)
        client.call("update", id="A", set={"description": "changed", "properties": {"q": 2}})  # update_entity
        client.call("update", id=calls, set={"weight": 1, "predicate": "asks"})  # update_relationship
        client.call("update", id=slow, set={"content": "A was slow."})  # update_observation
        shown = client.call("inspect", id="A")  # get_entity
        assert (shown["description"], shown["properties"]) == ("changed", {"p": 1, "q": 2})
        assert shown["memories"]["items"][0]["content"] == "A was slow."
        assert shown["relations"]["items"][0]["predicate"] == "asks"
        listed = client.call("inspect", type="entity", kind="service")  # list_entities
        assert [row["id"] for row in listed["items"]] == [a, b]
        assert client.call("inspect", type="relation")["total"] == 2  # list_relationships
        assert (
            client.call("recall", query="slow", kinds=["service"])["memories"][0]["id"] == slow
        )  # search_nodes
        found = client.call("recall", query="fast slow", entity="B")  # search_observations
        assert [row["id"] for row in found["memories"]] == [fast]
        around = client.call("graph", entities=["A"], depth=2, direction="out")  # find_connections
        assert [row["name"] for row in around["entities"]] == ["A", "B", "C"]
        assert len(client.call("graph", entities=["A", "C"])["relations"]) == 2  # get_subgraph
        assert client.call("graph", entities=["A"], to="C")["length"] == 2  # find_paths
        counted = client.call("stats")  # read_graph, graph_health, audit_graph
        assert (counted["entities"], counted["connected"][0]["name"]) == (3, "B")
        assert "2 entities have no description; update adds one" in counted["hints"]
        client.call("update", id="A", keep=[], memories=["A is fine."])  # compact_observations
        client.call("forget", ids=[uses])  # delete_relationships
        client.call("forget", ids=[fast])  # delete_observations
        assert client.call("update", id="B", merge_into="A")["status"] == "merged"  # merge_entities
        assert client.call("inspect", id="B")["id"] == a
        client.call("forget", ids=["C"])  # delete_entities
        assert client.call("stats")["entities"] == 1


@pytest.mark.parametrize("tool", [tool.name for tool in TOOLS])
def test_the_page_describes_every_tool_and_its_arguments(tool: str) -> None:
    page = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")

    assert f"| `{tool}` |" in page
