"""The nine tools of the official MCP memory server, over a store.

Names, arguments, results, texts and the words of errors are those of that server.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from graphmem import memory_graph
from graphmem.errors import GraphmemError
from graphmem.mcp.calls import internal
from graphmem.mcp.logs import LOG
from graphmem.mcp.service import Service
from graphmem.mcp.writing import ACTOR
from graphmem.memory_graph import Fields, Sight
from graphmem.store import Store

Schema = dict[str, Any]
_Does = Callable[[Service, Fields], tuple[Any, Fields]]
"""Gives what the text of a result says, and its structure."""


class Tool(NamedTuple):
    """A tool of the memory server."""

    name: str
    description: str
    input: Schema
    output: Schema
    does: _Does
    writes: bool = True
    deletes: bool = False

    @property
    def title(self) -> str:
        """The name in words."""
        return self.name.replace("_", " ").title()


# ---- schemas --------------------------------------------------------------------------------------


def _text(about: str = "") -> Schema:
    return {"type": "string", "description": about} if about else {"type": "string"}


def _texts(about: str = "") -> Schema:
    return {"type": "array", "items": _text()} | ({"description": about} if about else {})


def _object(properties: Mapping[str, Schema], *, closed: bool) -> Schema:
    told: Schema = {"type": "object", "properties": dict(properties)}
    if properties:
        told["required"] = list(properties)
    return told | ({"additionalProperties": False} if closed else {})


_ENTITY: Final = {
    "name": _text("The name of the entity"),
    "entityType": _text("The type of the entity"),
    "observations": _texts("An array of observation contents associated with the entity"),
}
_RELATION: Final = {
    "from": _text("The name of the entity where the relation starts"),
    "to": _text("The name of the entity where the relation ends"),
    "relationType": _text("The type of the relation"),
}
_ADDITION: Final = {
    "entityName": _text("The name of the entity to add the observations to"),
    "contents": _texts("An array of observation contents to add"),
}
_DELETION: Final = {
    "entityName": _text("The name of the entity containing the observations"),
    "observations": _texts("An array of observations to delete"),
}
_ADDED: Final = {"entityName": _text(), "addedObservations": _texts()}


def _list(properties: Mapping[str, Schema], *, closed: bool = False, about: str = "") -> Schema:
    told: Schema = {"type": "array", "items": _object(properties, closed=closed)}
    return told | ({"description": about} if about else {})


def _schema(*, closed: bool = False, **properties: Schema) -> Schema:
    return {"$schema": "http://json-schema.org/draft-07/schema#", **_object(properties, closed=closed)}


_GRAPH: Final = _schema(
    closed=True, entities=_list(_ENTITY, closed=True), relations=_list(_RELATION, closed=True)
)
_DONE: Final = _schema(closed=True, success={"type": "boolean"}, message=_text())


# ---- what the tools do ----------------------------------------------------------------------------


def _sight(service: Service) -> Sight:
    return Sight(service.scope, service.own_scopes, ACTOR)


def _graph(read: Callable[[Service, Store, Fields], Fields]) -> _Does:
    """A tool that shows a part of the graph; there is none while there is no store."""

    def does(service: Service, given: Fields) -> tuple[Any, Fields]:
        with service.reading() as store:
            graph: Fields = (
                {"entities": [], "relations": []} if store is None else read(service, store, given)
            )
        return graph, graph

    return does


def _adding(does: Callable[..., list[Fields]], argument: str, key: str) -> _Does:
    """A tool that stores what is under an argument and tells under a key what was new."""

    def adds(service: Service, given: Fields) -> tuple[Any, Fields]:
        made: list[Fields] = []
        if given[argument]:
            with service.writing() as store:
                made = does(store, _sight(service), given[argument], service.encoder(store))
        return made, {key: made}

    return adds


def _deleting(does: Callable[..., None], argument: str, what: str) -> _Does:
    """A tool that deletes what is under an argument; what is not there is deleted already."""
    message = f"{what} deleted successfully"

    def deletes(service: Service, given: Fields) -> tuple[Any, Fields]:
        with service.reading() as store:
            there = store is not None
        if there and given[argument]:
            with service.writing() as store:
                does(store, _sight(service), given[argument], service.encoder(store))
        return message, {"success": True, "message": message}

    return deletes


TOOLS: Final = (
    Tool(
        "create_entities",
        "Create multiple new entities in the knowledge graph",
        _schema(entities=_list(_ENTITY)),
        _schema(closed=True, entities=_list(_ENTITY, closed=True)),
        _adding(memory_graph.create_entities, "entities", "entities"),
    ),
    Tool(
        "create_relations",
        "Create multiple new relations between entities in the knowledge graph. "
        "Relations should be in active voice",
        _schema(relations=_list(_RELATION)),
        _schema(closed=True, relations=_list(_RELATION, closed=True)),
        _adding(memory_graph.create_relations, "relations", "relations"),
    ),
    Tool(
        "add_observations",
        "Add new observations to existing entities in the knowledge graph",
        _schema(observations=_list(_ADDITION)),
        _schema(closed=True, results=_list(_ADDED, closed=True)),
        _adding(memory_graph.add_observations, "observations", "results"),
    ),
    Tool(
        "delete_entities",
        "Delete multiple entities and their associated relations from the knowledge graph",
        _schema(entityNames=_texts("An array of entity names to delete")),
        _DONE,
        _deleting(memory_graph.delete_entities, "entityNames", "Entities"),
        deletes=True,
    ),
    Tool(
        "delete_observations",
        "Delete specific observations from entities in the knowledge graph",
        _schema(deletions=_list(_DELETION)),
        _DONE,
        _deleting(memory_graph.delete_observations, "deletions", "Observations"),
        deletes=True,
    ),
    Tool(
        "delete_relations",
        "Delete multiple relations from the knowledge graph",
        _schema(relations=_list(_RELATION, about="An array of relations to delete")),
        _DONE,
        _deleting(memory_graph.delete_relations, "relations", "Relations"),
        deletes=True,
    ),
    Tool(
        "read_graph",
        "Read the entire knowledge graph",
        _schema(),
        _GRAPH,
        _graph(lambda service, store, _: memory_graph.read_graph(store, _sight(service))),
        writes=False,
    ),
    Tool(
        "search_nodes",
        "Search for nodes in the knowledge graph based on a query",
        _schema(
            query=_text("The search query to match against entity names, types, and observation content")
        ),
        _GRAPH,
        _graph(
            lambda service, store, given: memory_graph.search_nodes(
                store, _sight(service), given["query"], service.model.now
            )
        ),
        writes=False,
    ),
    Tool(
        "open_nodes",
        "Open specific nodes in the knowledge graph by their names",
        _schema(names=_texts("An array of entity names to retrieve")),
        _GRAPH,
        _graph(lambda service, store, given: memory_graph.open_nodes(store, _sight(service), given["names"])),
        writes=False,
    ),
)


# ---- arguments ------------------------------------------------------------------------------------


def _kind(value: Any) -> str:
    """The type of a JSON value in the words of the memory server's errors."""
    names = ((bool, "boolean"), (str, "string"), (int, "number"), (float, "number"), (list, "array"))
    named = next((name for kind, name in names if isinstance(value, kind)), "object")
    return "null" if value is None else named


def _checked(schema: Schema, value: Any, at: str, wrong: list[str]) -> Any:
    """The value without what the schema does not name; what does not fit goes to `wrong`."""
    kind = schema["type"]
    if _kind(value) != kind:
        _refuse(kind, _kind(value), at, wrong)
    elif kind == "array":
        return [_checked(schema["items"], one, f"{at}[{n}]", wrong) for n, one in enumerate(value)]
    elif kind == "object":
        found = {}
        for name, one in schema["properties"].items():
            inner = f"{at}.{name}" if at else name
            if name in value:
                found[name] = _checked(one, value[name], inner, wrong)
            else:
                _refuse(one["type"], "undefined", inner, wrong)
        return found
    return value


def _refuse(expected: str, received: str, at: str, wrong: list[str]) -> None:
    wrong.append(f"Invalid input: expected {expected}, received {received} at {at}")


# ---- calls ----------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """What a call gives back; a failure has no structure."""

    text: str
    structure: Fields | None


def offered(service: Service) -> tuple[Tool, ...]:
    """The tools of a server."""
    return tuple(tool for tool in TOOLS if not (tool.writes and service.read_only))


def call(service: Service, name: str, given: Any) -> Outcome:
    """Runs a tool; nothing is raised."""
    tool = next((one for one in offered(service) if one.name == name), None)
    if tool is None:
        return _failed(f"MCP error -32602: Tool {name} not found")
    wrong: list[str] = []
    checked = _checked(tool.input, {} if given is None else given, "", wrong)
    if wrong:
        told = "\n".join(wrong)
        return _failed(f"MCP error -32602: Input validation error: Invalid arguments for tool {name}: {told}")
    try:
        said, structure = tool.does(service, checked)
    except GraphmemError as error:
        LOG.info("%s: %s", name, error.code)
        return _failed(error.message + (f" ({error.hint})" if error.hint else ""))
    except Exception as error:
        LOG.exception("%s: internal error", name)
        return _failed(internal(error).message)
    return Outcome(said if isinstance(said, str) else told_as_json(said), structure)


def _failed(text: str) -> Outcome:
    return Outcome(text, None)


def told_as_json(value: Any) -> str:
    """A value as the memory server writes it."""
    return json.dumps(value, ensure_ascii=False, indent=2)
