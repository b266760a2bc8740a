"""One call of a tool: arguments checked, the tool run, its answer or its failure as text and structure."""

from __future__ import annotations

import time
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from graphmem.errors import GraphmemError, LookupFailed, StoreReadOnly, UsageError
from graphmem.mcp.answers import Fields, packed
from graphmem.mcp.arguments import checked
from graphmem.mcp.counting import stats
from graphmem.mcp.inspecting import inspect
from graphmem.mcp.logs import LOG
from graphmem.mcp.recalling import recall
from graphmem.mcp.service import Service
from graphmem.mcp.tools import TOOLS, Tool
from graphmem.mcp.walking import graph
from graphmem.mcp.writing import ACTOR, forget_, relate, remember_, update_

_READS: Final[dict[str, Callable[[Service, Fields], Fields]]] = {
    "recall": recall, "inspect": inspect, "graph": graph, "stats": stats,
}  # fmt: skip
_WRITES: Final[dict[str, Callable[[Service, Fields, str], Fields]]] = {
    "remember": remember_, "relate": relate, "update": update_, "forget": forget_,
}  # fmt: skip


class Outcome(NamedTuple):
    """What a call gives back; a failure has no structure, since it does not fit the tool's output schema."""

    text: str
    structure: Fields | None

    @property
    def failed(self) -> bool:
        """Whether the call failed."""
        return self.structure is None


def offered(service: Service) -> tuple[Tool, ...]:
    """The tools of a server."""
    return tuple(tool for tool in TOOLS if not (tool.writes and service.read_only))


def call(service: Service, name: str, given: Any, actor: str = ACTOR) -> Outcome:
    """Runs a tool; nothing is raised. `actor` is who the log of the store says has asked."""
    began = time.monotonic()
    try:
        tool = _tool(service, name)
        arguments = checked(tool.accepts, given)
        reads = _READS.get(name)
        structure = reads(service, arguments) if reads else _WRITES[name](service, arguments, actor)
        outcome = Outcome(packed(structure), structure)
        LOG.debug("%s: done in %.0f ms", name, 1000 * (time.monotonic() - began))
    except GraphmemError as error:
        LOG.info("%s: %s", name if name in (_READS | _WRITES) else "unknown tool", error.code)
        outcome = failed(error)
    except Exception as error:
        LOG.exception("%s: internal error", name)
        outcome = failed(internal(error))
    return outcome


def internal(error: Exception) -> GraphmemError:
    """What is told of a fault of graphmem itself."""
    told = GraphmemError(f"internal error: {type(error).__name__}", "the details are in the server's log")
    told.code = "internal"
    return told


def failed(error: GraphmemError) -> Outcome:
    """A failure, complete in its text."""
    return Outcome(packed(as_fields(error)), None)


def as_fields(error: GraphmemError) -> Fields:
    """The code, message, hint and suggestions of an error; a hint at a command is one at a tool."""
    hint = error.hint
    if isinstance(error, LookupFailed) and "'gmem " in hint:
        hint = "'recall' finds items and tells their ids; 'inspect' without an id lists them"
    return {
        "code": error.code, "message": error.message, "hint": hint,
        "suggestions": list(error.suggestions),
    }  # fmt: skip


def _tool(service: Service, name: str) -> Tool:
    tools = {tool.name: tool for tool in offered(service)}
    if name in tools:
        return tools[name]
    if name in _WRITES:
        raise StoreReadOnly(f"'{name}' writes, and this server only reads", "start it without --read-only")
    close = tuple(get_close_matches(name, tools, 1, 0.5))
    raise UsageError(f"there is no tool '{name[:80]}'", f"there are {', '.join(tools)}", close)
