"""The eight tools as clients are shown them: names, schemas, hints.

What stands here is sent at the start of every session, so it is short. Arguments are flat, and nothing is
used that some clients refuse: no choices between schemas and no references.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from graphmem.mcp.answers import BUDGET
from graphmem.recall import DEFAULT_RECIPE, RECIPES

Schema = dict[str, Any]

MAX_TEXT: Final = 100_000
MAX_NAME: Final = 512
MAX_SCOPE: Final = 1_024
MAX_QUERY: Final = 2_000
MOST_TOKENS: Final = 100_000
MOST_RECORDS: Final = 500
MOST_PLACES: Final = 2**53


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool; `writes` tells the four that change the store from those that do not."""

    name: str
    title: str
    description: str
    input: Schema
    output: Schema
    writes: bool = False
    destructive: bool = False
    idempotent: bool = True
    full_input: Schema | None = None
    """What is accepted, where that is more than what is shown."""

    @property
    def accepts(self) -> Schema:
        """The schema that arguments are checked against."""
        return self.full_input or self.input


# ---- pieces ---------------------------------------------------------------------------------------


def _text(most: int = MAX_NAME, about: str = "", *, least: int = 0) -> Schema:
    return _said({"type": "string", **({"minLength": least} if least else {}), "maxLength": most}, about)


def _choice(*words: str, default: str = "", about: str = "") -> Schema:
    return _said({"type": "string", "enum": list(words), **({"default": default} if default else {})}, about)


def _number(least: float, most: float, default: float | None = None, about: str = "") -> Schema:
    kind = "number" if most == 1 else "integer"
    given = {} if default is None else {"default": default}
    return _said({"type": kind, "minimum": least, "maximum": most, **given}, about)


def _list(items: Schema, most: int, about: str = "", *, least: int = 0) -> Schema:
    held = {"minItems": least} if least else {}
    return _said({"type": "array", "items": items, **held, "maxItems": most}, about)


def _names(most: int = 20, about: str = "") -> Schema:
    return _list(_text(), most, about)


def _flag(about: str = "") -> Schema:
    return _said({"type": "boolean"}, about)


def _said(schema: Schema, about: str) -> Schema:
    return schema | {"description": about} if about else schema


def _given(required: Sequence[str] = (), **properties: Schema) -> Schema:
    # That nothing else is allowed is not said: it would be said eight times, and is told where it matters.
    told = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **told}


def _more(schema: Schema, **properties: Schema) -> Schema:
    """A schema with properties that are taken beside those that are shown."""
    return schema | {"properties": schema["properties"] | properties}


def _told(required: Sequence[str], **kinds: str | Schema) -> Schema:
    properties = {name: kind if isinstance(kind, dict) else {"type": kind} for name, kind in kinds.items()}
    return {"type": "object", "properties": properties, "required": list(required)}


def _rows(*required: str) -> Schema:
    """A list of objects that all have these texts."""
    return {"type": "array", "items": _told(required, **dict.fromkeys(required, "string"))}


_ANY: Final[Schema] = {"type": "object"}
_NOTES: Final[Schema] = {"type": "array", "items": {"type": "string"}}
_SCOPES: Final = _list(_text(MAX_SCOPE), 20)
_LIMIT: Final = _number(1, 100, 10)
_OFFSET: Final = _number(0, 1_000_000)
_TYPE: Final = ("memory", "entity", "relation")
_TIME: Final = _text(40)
_SCOPE: Final = _text(MAX_SCOPE)
_KIND: Final = _text()
_PROPERTIES: Final[Schema] = {"type": "object", "maxProperties": 100}
_TOKENS: Final = _number(200, MOST_TOKENS, BUDGET)

# ---- reading --------------------------------------------------------------------------------------

RECALL: Final = Tool(
    "recall",
    "Recall",
    "Find memories, facts and entities about a question.",
    _given(
        ["query"],
        query=_text(MAX_QUERY, least=1),
        scopes=_SCOPES,
        kinds=_names(about="Of entities"),
        types=_names(about="Of memories"),
        tags=_names(),
        entity=_text(about="Only what involves it; for recipe near, what to rank by"),
        since=_text(40, "ISO date"),
        until=_TIME,
        recipe=_choice(*RECIPES, default=DEFAULT_RECIPE),
        around=_flag("Add the facts around them"),
        limit=_LIMIT,
        offset=_OFFSET,
        max_tokens=_TOKENS,
    ),
    _told(
        ["evidence", "found", "recipe", "memories", "facts", "entities"],
        evidence="string", found="boolean", recipe="string", memories=_rows("id", "content", "why"),
        facts=_rows("id", "subject", "predicate", "object"), entities=_rows("id", "name", "kind"),
        around=_rows("id", "predicate"), totals=_ANY, truncated="boolean", next_offset="integer",
        elsewhere=_ANY, notes=_NOTES,
    ),
)  # fmt: skip

INSPECT: Final = Tool(
    "inspect",
    "Inspect",
    "Show all of one memory, entity or relation, or list them.",
    _given(
        id=_text(about="Or an entity's name; without it, a list"),
        type=_choice(*_TYPE),
        kind=_KIND,
        match=_text(about="In names of listed entities"),
        scope=_SCOPE,
        limit=_number(1, 100, 20),
        offset=_OFFSET,
        max_tokens=_TOKENS,
    ),
    _told(
        ["evidence"],
        evidence="string", type="string", id="string", name="string", content="string",
        items={"type": "array", "items": _told(["id"], id="string")}, total="integer", memories=_ANY,
        relations=_ANY, history=_ANY, truncated="boolean", next_offset="integer", notes=_NOTES,
    ),
)  # fmt: skip

_GRAPH_INPUT: Final = _given(
    ["entities"],
    entities=_list(_text(), 20, "Names or ids", least=1),
    to=_text(about="Paths lead here from the first entity"),
    kind=_KIND,
    depth=_number(0, 10, about="Hops: 1, for paths 10"),
    direction=_choice("both", "out", "in", default="both"),
    predicates=_names(),
    memories=_flag("Add their newest memories"),
    scope=_SCOPE,
    limit=_number(1, 500, 100, "Entities or paths"),
)
GRAPH: Final = Tool(
    "graph",
    "Graph",
    "Show what is around entities, or the shortest paths to another.",
    _GRAPH_INPUT,
    _told(
        ["evidence", "truncated"],
        evidence="string", entities=_rows("id", "name", "kind"),
        relations=_rows("id", "subject", "predicate", "object"), memories=_rows("id", "entity", "content"),
        length="integer", paths={"type": "array", "items": {"type": "array", "items": _ANY}}, totals=_ANY,
        truncated="boolean", notes=_NOTES,
    ),
    full_input=_more(_GRAPH_INPUT, max_tokens=_TOKENS),
)  # fmt: skip

STATS: Final = Tool(
    "stats",
    "Stats",
    "Count what is stored, with the most connected entities and health hints.",
    _given(scope=_SCOPE),
    _told(
        ["memories", "entities", "relations", "hints"],
        memories="integer", entities="integer", relations="integer", kinds=_ANY, memory_types=_ANY,
        predicates=_ANY, scopes={"type": "array", "items": _ANY},
        connected=_rows("id", "name", "kind"), hints=_NOTES,
    ),
)  # fmt: skip

# ---- writing --------------------------------------------------------------------------------------

_SHARE: Final = _number(0, 1)

# What is accepted and not shown: see `graphmem.mcp.arguments` on `also`, `number` and `triple`.
_REF: Final = _text() | {"also": _given(id=_text(128), name=_text(), kind=_KIND, scope=_SCOPE)}
_REFS: Final = _list(_REF, 20)
_RARE: Final = {
    **dict.fromkeys(("created_at", "updated_at", "valid_at", "invalid_at", "expired_at"), _TIME | {"number": True}),
    "id": _text(128) | {"number": True}, "title": _text(), "mentions": _REFS, "scope": _SCOPE,
    "scopes": _SCOPES, "importance": _SHARE, "state": _choice("active", "archived"), "stated_by": _names(),
    "stub": _flag(), "about": _REFS, "subject": _REF, "object": _REF,
    "source": _text(MAX_QUERY) | {"also": _given(["uri"], uri=_text(MAX_QUERY), position=_number(0, MOST_PLACES))},
}  # fmt: skip
_RECORD: Final = _given(
    type=_choice(*_TYPE, default="memory"),
    content=_text(MAX_TEXT, "Of a memory"),
    memory_type=_text(),
    tags=_names(),
    about=_names(about="Names or ids"),
    source=_text(MAX_QUERY),
    name=_text(about="Of an entity"),
    kind=_KIND,
    description=_text(MAX_TEXT),
    aliases=_names(),
    subject=_text(about="Of a relation"),
    predicate=_text(),
    object=_text(),
    fact=_text(MAX_TEXT),
    weight=_SHARE,
    valid_at=_TIME,
    properties=_PROPERTIES,
)
_FULL_RECORD: Final = _more(_RECORD, **_RARE) | {"triple": True}

REMEMBER: Final = Tool(
    "remember",
    "Remember",
    "Store memories, entities and relations together; nothing is stored twice.",
    _given(["records"], records=_list(_RECORD, MOST_RECORDS, least=1), scope=_SCOPE),
    _told(
        ["counts", "records"],
        counts=_ANY, stubs="integer",
        records={"type": "array", "items": _told(["status"], status="string", type="string", id="string")},
        notes=_NOTES,
    ),
    writes=True, full_input=_given(["records"], records=_list(_FULL_RECORD, MOST_RECORDS, least=1), scope=_SCOPE),
)  # fmt: skip

_RELATE_INPUT: Final = _given(
    ["subject", "predicate", "object"],
    subject=_text(about="Name or id"),
    subject_kind=_KIND,
    predicate=_text(),
    object=_text(),
    object_kind=_KIND,
    fact=_text(MAX_TEXT, "As a sentence"),
    weight=_SHARE,
    valid_at=_TIME,
    scope=_SCOPE,
)
RELATE: Final = Tool(
    "relate",
    "Relate",
    "Store a relation between two entities, made where they are missing.",
    _RELATE_INPUT,
    _told(["status", "id"], status="string", id="string", notes=_NOTES),
    writes=True, full_input=_more(_RELATE_INPUT, subject=_REF, object=_REF),
)  # fmt: skip

SETTABLE: Final = _given(
    content=_text(MAX_TEXT), title=_text(), memory_type=_text(), importance=_SHARE, tags=_names(100),
    scopes=_SCOPES, about=_names(100), mentions=_names(100), source=_text(MAX_QUERY), valid_at=_TIME,
    invalid_at=_TIME, expired_at=_TIME, name=_text(), kind=_KIND, description=_text(MAX_TEXT),
    aliases=_names(100), predicate=_text(), fact=_text(MAX_TEXT), weight=_SHARE, stated_by=_names(100),
    properties=_PROPERTIES, state=_choice("active", "archived"),
)  # fmt: skip
"""What `set` of `update` may hold; which of it an item has is the core's to say."""

UPDATE: Final = Tool(
    "update",
    "Update",
    "Change an item, merge an entity into another, or replace its memories.",
    _given(
        ["id"],
        id=_text(about="Or an entity's name"),
        kind=_KIND,
        set={
            "type": "object", "maxProperties": len(SETTABLE["properties"]),
            "description": "content, title, memory_type, importance, tags, about, source, valid_at, invalid_at, "
            "state; name, kind, description, aliases; predicate, fact, weight; properties",
        },
        clear=_names(about="Fields to empty"),
        merge_into=_text(about="The entity that stays"),
        keep=_list(_text(), 500, "Memories that stay"),
        memories=_list(_text(MAX_TEXT), 100, "New ones"),
    ),
    _told(
        ["id", "status"],
        id="string", type="string", status="string", fields=_NOTES, counts=_ANY, added=_NOTES, notes=_NOTES,
    ),
    writes=True, destructive=True,
)  # fmt: skip

FORGET: Final = Tool(
    "forget",
    "Forget",
    "Archive memories, relations, or entities with what hangs on them.",
    _given(
        ["ids"],
        ids=_list(_text(), 100, "Or names of entities", least=1),
        type=_choice(*_TYPE),
        kind=_KIND,
        dry_run=_flag("Only tell"),
    ),
    _told(
        ["forgotten", "archived"],
        forgotten={"type": "array", "items": _told(["id", "status"], id="string", status="string")},
        archived=_ANY, kept_memories="integer", dry_run="boolean",
    ),
    writes=True, destructive=True,
)  # fmt: skip

READING: Final = (RECALL, INSPECT, GRAPH, STATS)
WRITING: Final = (REMEMBER, RELATE, UPDATE, FORGET)
TOOLS: Final = READING + WRITING
