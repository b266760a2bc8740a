"""A client that talks to a server: in memory in both eras of the protocol, and as lines to a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hash_encoder import HashEncoder
from importing import take_records
from mcp import Client
from mcp.types import CallToolResult

from graphmem.embed import Availability
from graphmem.mcp.server import build
from graphmem.mcp.service import Service
from graphmem.mcp.tools import TOOLS
from graphmem.store import Store

ERAS = ("legacy", "auto")
"""The two ways in which clients connect: by handshake, and by asking what the server speaks."""

AT = "2026-02-01T00:00:00.000Z"
RECORDS: list[Any] = [
    {"type": "entity", "name": "AuthService", "kind": "service", "id": "auth", "aliases": ["login"],
     "description": "Issues tokens."},
    {"type": "entity", "name": "PostgresDB", "kind": "database", "id": "pg"},
    {"type": "entity", "name": "Mercury", "kind": "planet", "id": "planet"},
    {"type": "entity", "name": "Mercury", "kind": "project", "id": "project"},
    {"type": "relation", "subject": "AuthService", "predicate": "depends_on", "object": "PostgresDB",
     "id": "auth-pg", "fact": "Sessions are kept in Postgres.", "weight": 0.5},
    {"type": "relation", "subject": "AuthService", "predicate": "owned_by", "object": "Mara", "id": "auth-mara"},
    {"type": "memory", "id": "tokens", "content": "Tokens expire after an hour.", "about": ["AuthService"],
     "memory_type": "decision", "tags": ["security"], "source": "notes/auth.md",
     "valid_at": "2026-01-05T00:00:00Z"},
    {"type": "memory", "id": "backup", "content": "Backups of the database run at night.",
     "about": ["PostgresDB"], "valid_at": "2026-01-10T00:00:00Z"},
    {"type": "memory", "id": "secret", "content": "Tokens of the other project never expire.",
     "scopes": ["project:other"]},
]  # fmt: skip
"""A small store: a decision, a note, a namesake, a stub, and a memory of another scope."""


def fill(path: Path, records: list[Any] | None = None, encoder: HashEncoder | None = None) -> Path:
    """A store with records, with their vectors when there is an encoder."""
    with Store(path, write=True) as store:
        take_records(store, path.parent, RECORDS if records is None else records, AT, encoder=encoder)
    return path


def serving(
    path: Path, *, scope: str = "global", encoder: HashEncoder | None = None,
    find: Callable[[], Availability] | None = None, **options: Any,
) -> Service:  # fmt: skip
    """What a server over a store works with."""
    found = Availability(encoder, "" if encoder else "embeddings are off")
    name = "hash-words" if encoder or find else ""
    return Service(path, scope, find or (lambda: found), encoder_name=name, **options)


class Conversation:
    """A connected client, asked from ordinary code."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self.portal = portal
        self.client = client

    def ask(self, method: str, *args: Any, **named: Any) -> Any:
        """The answer of one of the client's methods."""
        return self.portal.call(lambda: getattr(self.client, method)(*args, **named))

    def result(self, tool: str, **given: Any) -> CallToolResult:
        """The result of a tool as it came."""
        found = self.ask("call_tool", tool, given)
        assert isinstance(found, CallToolResult)
        return found

    def call(self, tool: str, **given: Any) -> Any:
        """The structure of a tool's answer, which fits its schema and is also its text."""
        result = self.result(tool, **given)
        assert not result.is_error, text_of(result)
        assert json.loads(text_of(result)) == result.structured_content
        schema = next(one.output for one in TOOLS if one.name == tool)
        jsonschema.validate(result.structured_content, schema)
        return result.structured_content

    def refused(self, tool: str, **given: Any) -> Any:
        """The error of a call that fails."""
        result = self.result(tool, **given)
        assert result.is_error
        assert result.structured_content is None
        error = json.loads(text_of(result))
        assert sorted(error) == ["code", "hint", "message", "suggestions"]
        return error


def text_of(result: CallToolResult) -> str:
    """The one text of a result."""
    (content,) = result.content
    return str(getattr(content, "text", None))


@contextmanager
def talking(client: Client) -> Iterator[Conversation]:
    """A client that is connected for as long."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client) as opened:
        yield Conversation(portal, opened)


@contextmanager
def connected(service: Service, era: str = "auto") -> Iterator[Conversation]:
    """A client of a server in this process."""
    with talking(Client(build(service), mode=era)) as opened:
        yield opened
    service.close()


# ---- a process ------------------------------------------------------------------------------------

GMEM = [sys.executable, "-P", "-m", "graphmem", "mcp"]


def environment(home: Path, **more: str) -> dict[str, str]:
    """The variables of a user without settings and without embeddings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHMEM_")}
    return kept | {"GRAPHMEM_HOME": str(home), "GRAPHMEM_EMBEDDINGS": "off"} | more


def request(number: int, method: str, **params: Any) -> dict[str, Any]:
    """A request as it stands on the wire."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


HELLO = [
    request(
        1,
        "initialize",
        protocolVersion="2025-11-25",
        capabilities={},
        clientInfo={"name": "test", "version": "1"},
    ),
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]
"""How a client of the handshake era begins."""


def tool_call(number: int, tool: str, **given: Any) -> dict[str, Any]:
    """A call of a tool as it stands on the wire."""
    return request(number, "tools/call", name=tool, arguments=given)


def lines(*messages: dict[str, Any]) -> bytes:
    """Messages as they are sent."""
    return b"".join(json.dumps(one).encode() + b"\n" for one in messages)


def started(
    home: Path, db: Path, *options: str, command: list[str] | None = None, env: dict[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """A server process over a store, outside any repository."""
    return subprocess.Popen(
        [*(command or GMEM), "--db", str(db), *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=environment(home, **(env or {})), cwd=db.parent,
    )  # fmt: skip
