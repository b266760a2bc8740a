"""Conversations in raw messages: with the official memory server, with ours, and those that were recorded."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import anyio
from anyio.from_thread import start_blocking_portal
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter
from memory_sessions import Request

PACKAGE: Final = "@modelcontextprotocol/server-memory"
VARIABLE: Final = "MEMORY_SERVER"
"""Names the folder in which `npm install @modelcontextprotocol/server-memory` was run."""
PROTOCOL: Final = "2025-11-25"
TRANSCRIPTS: Final = Path(__file__).parents[2] / "fixtures" / "memory-server" / "transcripts"

Message = dict[str, Any]


def entry() -> Path | str:
    """The official server's script, or why it cannot be run."""
    if shutil.which("node") is None:
        return "there is no node here"
    folder = os.environ.get(VARIABLE)
    if not folder:
        return f"{VARIABLE} does not name a folder with the npm package {PACKAGE}"
    script = Path(folder) / "node_modules" / PACKAGE / "dist" / "index.js"
    return script if script.is_file() else f"there is no {PACKAGE} in {folder}"


class Conversation:
    """A client's side of a conversation in JSON messages."""

    def __init__(self, send: Callable[[Message], None], receive: Callable[[], Message]) -> None:
        self._send = send
        self._receive = receive
        self._number = 0
        client = {"name": "tests", "version": "1"}
        (self.hello,) = self.ask(
            "initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}
        )
        send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: dict[str, Any] | None) -> list[Message]:
        """What comes until a request is answered, and the answer, without numbers.

        That a result is no error goes without saying.
        """
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method}
        self._send(request if params is None else request | {"params": params})
        came: list[Message] = []
        while True:
            message = self._receive()
            came.append({key: value for key, value in message.items() if key not in ("jsonrpc", "id")})
            if message.get("id") == self._number:
                if came[-1].get("result", {}).get("isError") is False:
                    del came[-1]["result"]["isError"]
                return came


@contextmanager
def process(command: list[str], env: dict[str, str]) -> Iterator[Conversation]:
    """With a server in a process of its own, which ends with the block."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ | env,
    ) as running:  # fmt: skip
        into, out = running.stdin, running.stdout
        assert into is not None
        assert out is not None

        def send(message: Message) -> None:
            into.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")
            into.flush()

        def receive() -> Message:
            line = out.readline()
            assert line, "the server has ended"
            message: Message = json.loads(line)
            return message

        try:
            yield Conversation(send, receive)
        finally:
            into.close()
            try:
                running.wait(10)
            except subprocess.TimeoutExpired:
                running.kill()


def original(script: Path, file: Path) -> AbstractContextManager[Conversation]:
    """With the official server over a memory file, which need not be there yet."""
    return process(["node", str(script)], {"MEMORY_FILE_PATH": str(file)})


@contextmanager
def in_process(server: Any) -> Iterator[Conversation]:
    """With a server of ours in this process."""

    @asynccontextmanager
    async def running() -> AsyncIterator[Any]:
        async with (
            create_client_server_memory_streams() as (ours, theirs),
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(server.run, *theirs, server.create_initialization_options())
            yield ours
            tasks.cancel_scope.cancel()

    with start_blocking_portal() as portal, portal.wrap_async_context_manager(running()) as (out, into):

        def send(message: Message) -> None:
            portal.call(into.send, SessionMessage(jsonrpc_message_adapter.validate_python(message)))

        def receive() -> Message:
            came = portal.call(out.receive)
            told: Message = came.message.model_dump(by_alias=True, exclude_none=True)
            return told

        yield Conversation(send, receive)


# ---- recordings -----------------------------------------------------------------------------------


def recording(name: str) -> list[tuple[Request, list[Message]]]:
    """The requests of a recorded session, each with what came for it."""
    steps: list[tuple[Request, list[Message]]] = []
    text = (TRANSCRIPTS / f"{name.replace(' ', '-')}.jsonl").read_text(encoding="utf-8")
    for line in text.rstrip("\n").split("\n"):
        message = json.loads(line)
        if "request" in message:
            steps.append(((message["request"]["method"], message["request"]["params"]), []))
        else:
            steps[-1][1].append(message["answer"])
    return steps


def record(name: str, steps: list[tuple[Request, list[Message]]]) -> None:
    """Writes what came for the requests of a session."""
    lines: list[Message] = []
    for (method, params), answers in steps:
        lines.append({"request": {"method": method, "params": params}})
        lines += [{"answer": answer} for answer in answers]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (TRANSCRIPTS / f"{name.replace(' ', '-')}.jsonl").write_text(text, encoding="utf-8")
