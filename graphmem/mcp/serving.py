"""Serving a client over the pipes of the process, or several over HTTP on this machine alone."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from graphmem.errors import UsageError
from graphmem.mcp.logs import LOG
from graphmem.mcp.pipes import Pipes, Wire
from graphmem.mcp.posted import App, screened

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

PATH: Final = "/mcp"
LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_SIGNALS: Final = ("SIGTERM", "SIGINT", "SIGHUP")
GRACE: Final = 5.0
"""How many seconds a call that is running may take after the server was told to end."""


def end_quietly() -> None:
    """Makes a signal that comes before there is a server end the process with status 0."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None:
            with suppress(ValueError):  # this is not the main thread
                signal.signal(number, lambda *_: os._exit(0))


def serve_pipes(server: Server[Any], pipes: Pipes) -> None:
    """Serves one client until its input ends or a signal says so."""
    asyncio.run(_conversation(server, pipes))


async def _conversation(server: Server[Any], pipes: Pipes) -> None:
    from mcp.server.stdio import stdio_server

    wire = Wire(pipes)
    _on_signals(wire.stop)
    lines = cast("Any", wire)  # it has what the transport uses of a file
    async with stdio_server(stdin=lines, stdout=lines) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
        _end_soon()


def _end_soon() -> None:
    """Ends the process after a while, whatever a call that nobody waits for is still doing."""
    timer = threading.Timer(GRACE, os._exit, (0,))
    timer.daemon = True
    timer.start()


def _on_signals(stop: Callable[[], None]) -> None:
    """Ends the conversation on a signal, and the process if that takes long."""
    loop = asyncio.get_running_loop()

    def ended() -> None:
        LOG.info("ended by a signal")
        _end_soon()
        stop()

    for name in _SIGNALS:
        number = getattr(signal, name, None)
        if number is None:
            continue
        try:
            loop.add_signal_handler(number, ended)
        except (NotImplementedError, RuntimeError):  # Windows
            with suppress(ValueError):
                signal.signal(number, lambda *_: loop.call_soon_threadsafe(ended))


# ---- HTTP -----------------------------------------------------------------------------------------


def serve_http(server: Server[Any], host: str, port: int) -> None:
    """Serves clients on this machine until a signal says so; the address is told on stderr.

    Only requests whose Host header names this address are answered, and where a browser tells an Origin it
    has to be the same, so that no web page can reach the server. Raises `UsageError` for an address that
    is not of this machine alone, or is taken.
    """
    import uvicorn
    from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE, TransportSecuritySettings

    listening = _listening(host, port)
    port = listening.getsockname()[1]
    names = [f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")]
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=TransportSecuritySettings(
            allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
        ),
    )
    shown = f"[{host}]" if ":" in host else host
    if sys.stderr is not None:
        print(f"listening on http://{shown}:{port}{PATH}", file=sys.stderr, flush=True)  # noqa: T201
    looking = screened(cast("App", app), DEFAULT_MAX_REQUEST_BODY_SIZE)
    config = uvicorn.Config(looking, log_config=None, access_log=False, timeout_graceful_shutdown=int(GRACE))
    # The library hands the signal that ended it on to whoever listened before; there is nothing left to do.
    signal.signal(signal.SIGTERM, lambda *_: None)
    uvicorn.Server(config).run(sockets=[listening])
    _end_soon()


def _listening(host: str, port: int) -> socket.socket:
    if host not in LOOPBACK:
        raise UsageError(
            f"'{host}' is not an address of this machine alone", f"use one of {', '.join(LOOPBACK)}"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen()
    except OSError as error:
        made.close()
        why = (error.strerror or str(error)).lower()
        raise UsageError(
            f"cannot listen on {host}:{port}: {why}", "choose another one with --port"
        ) from error
    return made
