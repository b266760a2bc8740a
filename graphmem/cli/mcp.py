"""`gmem mcp`."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from graphmem import scopes as scopes_of
from graphmem.cli._shared import configuration, here, standard_options
from graphmem.errors import UsageError

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from graphmem.config import Config
    from graphmem.mcp.service import Service


@click.command()
@click.option("--read-only", is_flag=True, help="Offer no tool that writes, and open the store for reading.")
@click.option("--scope", metavar="SCOPE", help="Write there, and read it beside global.")
@click.option(
    "--profile", type=click.Choice(["full", "memory"]), default="full", show_default=True,
    help="The tools: ours, or those of the official MCP memory server.",
)  # fmt: skip
@click.option("--http", is_flag=True, help="Serve HTTP on this machine instead of standard input and output.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="HOST",
    help="The address for --http; only 127.0.0.1, ::1 and localhost will do.",
)  # fmt: skip
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=8_765, show_default=True, metavar="N",
    help="The port for --http; 0 takes a free one.",
)  # fmt: skip
@click.option("--track-access", is_flag=True, help="Count how often memories are read.")
@standard_options
def mcp(
    read_only: bool, scope: str | None, profile: str, http: bool, host: str, port: int, track_access: bool,
    db: str | None, graph: str | None, as_json: bool,  # noqa: ARG001 - results are the protocol's
) -> None:  # fmt: skip
    """Serve the store to an MCP client.

    A client starts this command and speaks with it over standard input and output. It ends when its input
    does, or on SIGTERM. Inside a Git repository memories are written to its scope, elsewhere to global.
    The log is $GRAPHMEM_HOME/logs/mcp.log.
    """
    from graphmem.mcp import pipes, serving

    if read_only and track_access:
        raise UsageError("--read-only and --track-access do not go together", "leave one of them out")
    service = _service(configuration(db, graph), scope, read_only=read_only, track_access=track_access)
    serving.end_quietly()
    taken = None if http else pipes.take_over()
    server = _built(service, profile)
    try:
        if taken is None:
            serving.serve_http(server, host, port)
        else:
            serving.serve_pipes(server, taken)
    finally:
        service.close()
    if service.model.loading:
        # Libraries of models do not survive the end of the interpreter while they load.
        if sys.stderr is not None:
            sys.stderr.flush()
        os._exit(0)


def _built(service: Service, profile: str) -> Server[Any]:
    """The server; its library is imported now."""
    # What is imported now stays: to look through it for garbage again and again is a tenth of the start.
    gc.disable()
    try:
        if profile == "memory":
            from graphmem.mcp.memory_profile import build
        else:
            from graphmem.mcp.server import build
        return build(service)
    finally:
        gc.freeze()
        gc.enable()


def _service(config: Config, scope: str | None, *, read_only: bool, track_access: bool) -> Service:
    from graphmem.mcp import logs, model
    from graphmem.mcp.service import Service

    logs.start(config.home)
    own = scopes_of.given(scope) if scope is not None else scopes_of.default_scope(here())
    return Service(
        config.store, own, lambda: model.configured(config.home),
        encoder_name=config.embedding_model if config.embeddings else "", read_only=read_only,
        track_access=track_access,
    )  # fmt: skip
