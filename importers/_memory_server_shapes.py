"""Which objects are those of the MCP memory server, of its forks, and of dumps of its answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from graphmem.json_head import JsonHead, json_head
from graphmem.records import ENTITY, RELATION

OBSERVATION: Final = "observation"
MARKER: Final = "_aim"
"""The type of a first line that only says which tool wrote the file."""

ENTITY_KEYS: Final = ("entityType", "entity_type", "observations")
PREDICATES: Final = ("relationType", "relation_type")
ENDS: Final = (("from", "to"), ("source", "target"), ("fromZone", "toZone"), ("from_id", "to_id"))
NAMES: Final = ("name", "entityName", "id")

_ENDS: Final = frozenset(end for pair in ENDS for end in pair)
ABOUT: Final = ("entityName", "entity", "name")
CONTENTS: Final = ("content", "contents", "observation", "text")
_OURS_ENTITY: Final = frozenset(
    ("kind", "description", "aliases", "scope", "properties", "stub", "redirects")
)
_OURS_RELATION: Final = frozenset(("subject", "predicate", "object"))
# What a text must hold somewhere to be looked at line by line.
_MARKS: Final = (b"entityType", b"relationType", b"entity_type", b"relation_type", b"observation", b"_aim")
_ENVELOPE: Final = frozenset(("content", "structuredContent", "result", "text"))


def type_of(value: Mapping[str, Any]) -> Any:
    """The type that an object says it has, if any."""
    said = value.get("type")
    return said if said is not None else value.get("_type")


def shape_of(type_: Any, keys: Collection[str]) -> str | None:
    """What an object of that type and those keys is to the memory server; `None` when it is none of its."""
    if type_ == ENTITY:
        theirs = any(key in keys for key in (*ENTITY_KEYS, "entityName"))
        return ENTITY if theirs or _OURS_ENTITY.isdisjoint(keys) else None
    if type_ == RELATION:
        return RELATION if _OURS_RELATION.isdisjoint(keys) else None
    if type_ in (OBSERVATION, MARKER):
        return str(type_)
    if type_ is not None:
        return None
    if any(key in keys for key in PREDICATES) and not _ENDS.isdisjoint(keys):
        return RELATION
    if any(key in keys for key in ENTITY_KEYS):
        return ENTITY
    if "entityName" in keys and any(key in keys for key in CONTENTS):
        return OBSERVATION
    return None


def recognised(head: bytes, *, lines: bool) -> str | None:
    """Why a text that starts with `head` is of the memory server.

    One record in the server's own shape is enough, in any of the lines where `lines` says that they count;
    records of the canonical format may stand beside it. A text that starts with a manifest is an export.
    """
    seen = json_head(head)
    if seen is not None and seen.type == "manifest":
        return None
    if not any(mark in head for mark in _MARKS):
        return _empty(head, seen)
    why = _why(head, seen)
    if why is None and lines:
        for line in head.split(b"\n")[1:]:
            if any(mark in line for mark in _MARKS):
                why = _why(line, json_head(line))
                if why is not None:
                    break
    return why


def _why(text: bytes, seen: JsonHead | None) -> str | None:
    if seen is None or not seen.keys:
        return None
    if what := _certain(seen):
        return f"{what} of the MCP memory server" + (" in a JSON array" if seen.listed else "")
    lists = () if seen.type is not None else [key for key in ("entities", "relations") if key in seen.keys]
    for key in lists:
        inner = json_head(text.partition(b'"%s"' % key.encode())[2].lstrip(b" \t\r\n:"))
        if inner is not None and _certain(inner):
            return "a JSON object with the graph of the MCP memory server"
    if not lists and not _ENVELOPE.isdisjoint(seen.keys) and (b"entities" in text or b"relations" in text):
        return "an answer of the MCP memory server"
    return None


def _certain(seen: JsonHead) -> str | None:
    """What an object is when its keys leave no doubt."""
    shape = shape_of(seen.type, seen.keys)
    if shape == ENTITY:
        return "an entity" if any(key in seen.keys for key in (*ENTITY_KEYS, "entityName")) else None
    if shape == RELATION:
        return "a relation" if any(key in seen.keys for key in PREDICATES) else None
    if shape == OBSERVATION:
        return "an observation" if "entityName" in seen.keys else None
    return "the marker line" if shape == MARKER else None


def _empty(head: bytes, seen: JsonHead | None) -> str | None:
    """A graph with nothing in it, as the server answers when it has no file."""
    if seen is None or seen.listed or seen.cut or sorted(seen.keys) != ["entities", "relations"]:
        return None
    bare = b"".join(head.split())
    return "an empty graph of the MCP memory server" if bare.count(b"[]") == 2 and len(bare) == 30 else None
