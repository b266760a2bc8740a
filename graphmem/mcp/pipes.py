"""The two pipes of a stdio server: taken before anything can print, read by a thread, closed in order.

The library's own transport stands on these. What it does not do: a signal ends it while it waits for a
line, what was asked before the end of input is answered, and nothing printed at exit reaches the client.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable, Hashable
from threading import Thread
from typing import Any, BinaryIO, Final, NamedTuple

from graphmem.errors import UsageError

PATIENCE: Final = 60.0
"""How many seconds what was asked before the end of input may take to be answered."""


class Pipes(NamedTuple):
    """The client's ends, which nobody else has."""

    reader: BinaryIO
    writer: BinaryIO


def take_over() -> Pipes:
    """The client's ends of standard input and output.

    From now on descriptor 0 is empty and descriptor 1 is stderr, for libraries and child processes too,
    and it stays so until the process ends. Raises `UsageError` where one of them is not open.
    """
    try:
        reader, writer = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        try:
            os.dup2(2, 1)
        except OSError:  # there is no stderr
            os.dup2(nothing, 1)
        os.close(nothing)
    except OSError as error:
        raise UsageError(
            "standard input or output is not open", "start the server from an MCP client, or with --http"
        ) from error
    if sys.stderr is not None:
        sys.stdout = sys.stderr
    return Pipes(os.fdopen(reader, "rb"), os.fdopen(writer, "wb"))


class Wire:
    """The conversation with the client: which requests are open, and whether it is over.

    Make it in the running event loop.
    """

    def __init__(self, pipes: Pipes) -> None:
        self._pipes = pipes
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._open: set[Hashable] = set()
        self._settled = asyncio.Event()
        self._settled.set()
        self._stopped = False
        Thread(target=self._read, name="gmem-stdin", daemon=True).start()

    def stop(self) -> None:
        """Ends the conversation now, as if the client had gone; for the thread of the event loop."""
        self._stopped = True
        self._settled.set()
        self._lines.put_nowait(None)

    def _read(self) -> None:
        """Hands on every line and the end of them. It may wait in a read for ever, so it is a daemon."""
        put: Callable[[bytes | None], Any] = self._lines.put_nowait
        with contextlib.suppress(RuntimeError):  # the event loop has ended before the input did
            with contextlib.suppress(OSError, ValueError):
                for line in self._pipes.reader:
                    self._loop.call_soon_threadsafe(put, line)
            self._loop.call_soon_threadsafe(put, None)

    # ---- what the library reads from, line by line ----------------------------------------------------

    def __aiter__(self) -> Wire:
        """The lines of the client."""
        return self

    async def __anext__(self) -> str:
        """The next line; the end comes when all that was asked is answered, or the patience is over."""
        line = None if self._stopped else await self._lines.get()
        if line is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._settled.wait(), PATIENCE)
            raise StopAsyncIteration
        text = line.decode("utf-8", "replace")
        self._note(text, asked=True)
        return text

    # ---- what the library writes to -------------------------------------------------------------------

    async def write(self, text: str) -> int:
        """Sends one line. A client that has gone ends the conversation."""
        try:
            await asyncio.to_thread(self._send, text.encode())
        except OSError:
            self.stop()
        self._note(text, asked=False)
        return len(text)

    async def flush(self) -> None:
        """Nothing to do: a line is sent whole."""

    def _send(self, line: bytes) -> None:
        self._pipes.writer.write(line)
        self._pipes.writer.flush()

    def _note(self, text: str, *, asked: bool) -> None:
        """Keeps the set of open requests: asked and neither answered nor cancelled."""
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            return
        if not isinstance(message, dict):
            return
        key = _key(message.get("id"))
        if asked and message.get("method") == "notifications/cancelled":
            params = message.get("params")
            self._open.discard(_key(params.get("requestId")) if isinstance(params, dict) else None)
        elif asked and "method" in message and key is not None:
            self._open.add(key)
        elif not asked and "method" not in message:
            self._open.discard(key)
        if self._open and not self._stopped:
            self._settled.clear()
        else:
            self._settled.set()


def _key(id_: Any) -> Hashable:
    """The id of a request, told apart by type, since `1` is not `"1"`."""
    return (type(id_).__name__, id_) if isinstance(id_, (int, str)) else None
