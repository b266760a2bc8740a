"""The two pipes of a stdio server: taken before anything can print, read by a thread, closed in order.

The library's own transport stands on these. What it does not do: a signal ends it while it waits for a
line, what was asked before the end of input is answered, what is no message is answered as such, lists of messages
are answered by a list, and nothing printed at exit reaches the client.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections import deque
from collections.abc import Callable, Hashable
from threading import Thread
from typing import Any, BinaryIO, Final, NamedTuple

from graphmem.errors import UsageError
from graphmem.mcp.incoming import BATCHING, Batch, Refused, key, parsed, readable

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
        self._ready: deque[tuple[str, dict[str, Any]]] = deque()
        self._batches: list[Batch] = []
        self._batching = False
        self._open: set[Hashable] = set()
        self._settled = asyncio.Event()
        self._settled.set()
        self._stopped = False
        self._one_by_one = asyncio.Lock()
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
        """The next message; the end comes when all that was asked is answered, or the patience is over."""
        while not self._stopped:
            if self._ready:
                text, message = self._ready.popleft()
                await self._asked(message)
                return text
            line = await self._lines.get()
            if line is None:
                break
            if not line.isspace():
                await self._take(line.decode("utf-8", "replace"))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._settled.wait(), PATIENCE)
        raise StopAsyncIteration

    async def _take(self, text: str) -> None:
        """Makes ready what a line says, or answers it where it is no message."""
        try:
            value = parsed(text)
            if self._batching and isinstance(value, list) and value:
                await self._take_batch(Batch(value))
            else:
                self._ready.append((readable(value, text), value))
        except Refused as refused:
            if refused.told:
                await self._put(f"{json.dumps(refused.answer(), ensure_ascii=False)}\n")

    async def _take_batch(self, batch: Batch) -> None:
        self._ready += batch.lines
        self._batches.append(batch)
        await self._put_done(batch)

    async def _asked(self, message: dict[str, Any]) -> None:
        """Keeps in mind what is asked, until it is answered or cancelled."""
        method, params = message.get("method"), message.get("params") or {}
        if method == "notifications/cancelled":
            cancelled = key(params.get("requestId"))
            await self._answered(cancelled, None)
            self._closed(cancelled)
        elif method is not None and "id" in message:
            self._open.add(key(message["id"]))
            self._settled.clear()
        if method == "initialize" and isinstance(params.get("protocolVersion"), str):
            self._batching = params["protocolVersion"] in BATCHING

    # ---- what the library writes to -------------------------------------------------------------------

    async def write(self, text: str) -> int:
        """Sends one message, or keeps it for the answer to a batch."""
        message = json.loads(text)
        answers = None if "method" in message else key(message.get("id"))
        if answers is None or not await self._answered(answers, message):
            await self._put(text)
        self._closed(answers)
        return len(text)

    async def flush(self) -> None:
        """Nothing to do: a line is sent whole."""

    async def _answered(self, id_: Hashable, answer: dict[str, Any] | None) -> bool:
        """Gives an answer to the batch that waits for it, and sends a batch with its last; whether one does."""
        for batch in self._batches:
            if batch.takes(id_, answer):
                await self._put_done(batch)
                return True
        return False

    async def _put_done(self, batch: Batch) -> None:
        """Sends the answers of a batch, once they are all there."""
        if batch.done:
            self._batches.remove(batch)
            await self._put(batch.text())

    def _closed(self, id_: Hashable) -> None:
        """A request is no longer open."""
        self._open.discard(id_)
        if not self._open:
            self._settled.set()

    async def _put(self, text: str) -> None:
        """Sends text, whole lines. A client that has gone ends the conversation."""
        try:
            async with self._one_by_one:
                await asyncio.to_thread(self._send, text.encode())
        except OSError:
            self.stop()

    def _send(self, line: bytes) -> None:
        self._pipes.writer.write(line)
        self._pipes.writer.flush()
