"""What is posted over HTTP, looked at on its way to the library: its refusals are told in our words.

The library decides whether a request is answered at all, by its address, its origin and its headers. Only
what it says of a body that is no message is replaced, also where it takes a request for a notification.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from graphmem.mcp.incoming import PARSE_ERROR, Refused, parsed, readable

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Receive, Send], Awaitable[None]]

_BAD_REQUEST: Final = 400


def screened(app: App, most: int) -> App:
    """The application behind a look at what is posted; bodies over `most` bytes are its own to refuse."""

    async def screening(scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            posted = _Posted(receive, send, most)
            receive, send = posted.receive, posted.send
        await app(scope, receive, send)

    return screening


class _Posted:
    """One request with its answer."""

    def __init__(self, receive: Receive, send: Send, most: int) -> None:
        self._receive = receive
        self._send = send
        self._most = most
        self._read = False
        self._refused: bytes | None = None
        self._replacing = False

    async def receive(self) -> Message:
        """The whole body at first, as the library can read it; then what else comes."""
        if self._read:
            return await self._receive()
        self._read = True
        body = bytearray()
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                return message
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if not more or len(body) > self._most:
                break
        sent = bytes(body) if more else self._looked_at(bytes(body))
        return {"type": "http.request", "body": sent, "more_body": more}

    def _looked_at(self, body: bytes) -> bytes:
        try:
            try:
                text = body.decode()
            except UnicodeDecodeError:
                raise Refused(PARSE_ERROR, "this is not UTF-8") from None
            return readable(parsed(text), text).encode()
        except Refused as refused:
            self._refused = json.dumps(refused.answer(), ensure_ascii=False).encode()
            return body

    async def send(self, message: Message) -> None:
        """Sends the answer, with our words where the body was refused."""
        if message["type"] == "http.response.start" and message["status"] <= _BAD_REQUEST and self._refused:
            self._replacing = True
            own = {b"content-length": str(len(self._refused)).encode(), b"content-type": b"application/json"}
            kept = [(name, value) for name, value in message["headers"] if name.lower() not in own]
            await self._send({**message, "status": _BAD_REQUEST, "headers": [*kept, *own.items()]})
        elif not self._replacing:
            await self._send(message)
        elif not message.get("more_body", False):
            await self._send({"type": "http.response.body", "body": self._refused})
