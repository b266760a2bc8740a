"""The profile `memory`: the server with the tools and the resource of the official MCP memory server.

Its users change one line of their configuration. What is different on purpose is told in docs/mcp.md.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from graphmem import __version__
from graphmem.mcp.memory_tools import call, offered
from graphmem.mcp.service import Service

if TYPE_CHECKING:
    import mcp.types as wire
    from mcp.server.lowlevel import Server

URI: Final = "memory://knowledge-graph"
NAME: Final = "graphmem"
READERS: Final = 8
WRITERS: Final = 4
SUBSCRIBERS: Final = 1_000
"""How many clients are told of changes; over HTTP nobody says that one has gone."""

_MIME: Final = "application/json"
_WARM_AFTER: Final = 0.05
"""How many seconds after the tools were listed the model begins to load: the answer goes first."""


def build(service: Service) -> Server[Any]:
    """A server with this profile over a store; it may serve one client over pipes or several over HTTP."""
    from mcp.server.lowlevel import Server
    from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

    bus = InMemorySubscriptionBus()
    handlers = _Handlers(service, bus)
    return Server(
        NAME, version=__version__, title="graphmem",
        on_list_tools=handlers.list_tools, on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_resource_templates,
        on_read_resource=handlers.read_resource, on_subscribe_resource=handlers.subscribe,
        on_unsubscribe_resource=handlers.unsubscribe, on_subscriptions_listen=ListenHandler(bus),
    )  # fmt: skip


class _Handlers:
    """What is done for each kind of request."""

    def __init__(self, service: Service, bus: Any) -> None:
        import mcp.types as wire

        self._wire = wire
        self._service = service
        self._bus = bus
        self._writers = {tool.name for tool in offered(service) if tool.writes}
        self._reading = ThreadPoolExecutor(READERS, "gmem-read")
        self._writing = ThreadPoolExecutor(WRITERS, "gmem-write")
        # By what the client said of itself, which is one object for a connection; a session is one request's.
        self._subscribed: dict[int, Any] = {}

    async def list_tools(self, _ctx: Any, _params: Any) -> wire.ListToolsResult:
        """The tools; soon after, the model begins to load."""
        asyncio.get_running_loop().call_later(_WARM_AFTER, self._service.model.start)
        tools = [
            self._wire.Tool(
                name=one.name, title=one.title, description=one.description, input_schema=one.input,
                output_schema=one.output, execution=self._wire.ToolExecution(task_support="forbidden"),
                annotations=self._wire.ToolAnnotations(
                    read_only_hint=not one.writes, destructive_hint=one.deletes,
                    idempotent_hint=one.deletes or not one.writes, open_world_hint=False,
                ),
            )
            for one in offered(self._service)
        ]  # fmt: skip
        return self._wire.ListToolsResult(tools=tools)

    async def call_tool(self, _ctx: Any, params: wire.CallToolRequestParams) -> wire.CallToolResult:
        """What a tool gives back; who subscribed to the graph is told of a change before."""
        writes = params.name in self._writers
        pool = self._writing if writes else self._reading
        outcome = await asyncio.get_running_loop().run_in_executor(
            pool, lambda: call(self._service, params.name, params.arguments)
        )
        content = self._wire.TextContent(type="text", text=outcome.text)
        if outcome.structure is None:
            return self._wire.CallToolResult(content=[content], is_error=True)
        if writes:
            await self._tell_of_change()
        return self._wire.CallToolResult(content=[content], structured_content=outcome.structure)

    # ---- the resource -----------------------------------------------------------------------------

    async def list_resources(self, _ctx: Any, _params: Any) -> wire.ListResourcesResult:
        """The graph."""
        return self._wire.ListResourcesResult(
            resources=[
                self._wire.Resource(
                    uri=URI, name="knowledge-graph", title="Knowledge Graph",
                    description="The full knowledge graph with all entities and relations", mime_type=_MIME,
                )
            ]
        )  # fmt: skip

    async def list_resource_templates(self, _ctx: Any, _params: Any) -> wire.ListResourceTemplatesResult:
        """There are none."""
        return self._wire.ListResourceTemplatesResult(resource_templates=[])

    async def read_resource(
        self, _ctx: Any, params: wire.ReadResourceRequestParams
    ) -> wire.ReadResourceResult:
        """The graph as JSON."""
        from mcp.shared.exceptions import MCPError

        uri = str(params.uri)
        if uri != URI:
            raise MCPError(self._wire.INVALID_PARAMS, f"MCP error -32602: Resource {uri} not found")
        outcome = await asyncio.get_running_loop().run_in_executor(
            self._reading, lambda: call(self._service, "read_graph", {})
        )
        if outcome.structure is None:
            raise MCPError(self._wire.INTERNAL_ERROR, outcome.text)
        held = self._wire.TextResourceContents(uri=uri, mime_type=_MIME, text=outcome.text)
        return self._wire.ReadResourceResult(contents=[held])

    async def subscribe(self, ctx: Any, params: wire.SubscribeRequestParams) -> wire.EmptyResult:
        """From now on the client is told when the graph changes."""
        if str(params.uri) == URI:
            self._subscribed[id(ctx.session.client_params)] = ctx.session
            while len(self._subscribed) > SUBSCRIBERS:
                del self._subscribed[next(iter(self._subscribed))]
        return self._wire.EmptyResult()

    async def unsubscribe(self, ctx: Any, params: wire.UnsubscribeRequestParams) -> wire.EmptyResult:
        """The client is told no more."""
        if str(params.uri) == URI:
            self._subscribed.pop(id(ctx.session.client_params), None)
        return self._wire.EmptyResult()

    async def _tell_of_change(self) -> None:
        from mcp.server.subscriptions import ResourceUpdated

        for session in list(self._subscribed.values()):
            await session.send_resource_updated(URI)  # a client that has gone is no error
        await self._bus.publish(ResourceUpdated(uri=URI))
