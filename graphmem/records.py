"""What a file may say: entity, memory and relation records, and the references in them.

Records are plain slotted dataclasses because an import makes a million of them; they are filled by
`graphmem.mapping` or by an importer and not changed after the run has prepared them.
An absent value is `None` or an empty container: unknown stays unknown.
`digest` (of what the record says) and `input` (the number of its input in the run) are filled by
`graphmem.prepare`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

GLOBAL_SCOPE: Final = "global"
UNKNOWN_KIND: Final = "unknown"
DEFAULT_MEMORY_TYPE: Final = "observation"
FORMAT_NAME: Final = "graphmem"
FORMAT_VERSION: Final = 1
MAX_ID_LENGTH: Final = 128

ENTITY: Final = "entity"
MEMORY: Final = "memory"
RELATION: Final = "relation"
KINDS: Final = (ENTITY, MEMORY, RELATION)


class Place(NamedTuple):
    """Where in its input a record or finding stands.

    `line` and `column` count from 1, `offset` is the byte offset from 0 in the decompressed input;
    0, 0, -1 mean that the place is not known.
    """

    line: int = 0
    column: int = 0
    offset: int = -1


NO_PLACE: Final = Place()


class Ref(NamedTuple):
    """A reference as written: a name with optional kind and scope, or an id."""

    name: str = ""
    kind: str | None = None
    scope: str | None = None
    id: str | None = None


@dataclass(slots=True)
class Claim:
    """One entry of the `origins` key: what a transported item was taken from, and what that said.

    `said` is `None` where it equals the fields of the item itself (its only contribution).
    """

    uri: str | None
    format: str | None
    file_digest: str | None
    record_digest: str
    line: int
    taken_at: str
    said: dict[str, Any] | None = None


@dataclass(slots=True)
class EntityRecord:
    """A declaration of an entity."""

    name: str
    kind: str | None = None
    scope: str | None = None
    description: str | None = None
    aliases: list[str] = field(default_factory=list)
    properties: dict[str, Any] = field(default_factory=dict)
    id: str | None = None
    state: str | None = None
    archived_by: str | None = None
    stub: bool = False
    created_at: str | None = None
    updated_at: str | None = None
    id_aliases: list[str] = field(default_factory=list)
    redirects: list[Ref] = field(default_factory=list)
    origins: list[Claim] | None = None
    place: Place = NO_PLACE
    digest: bytes = b""
    input: int = 0


@dataclass(slots=True)
class MemoryRecord:
    """One remembered text."""

    content: str
    title: str | None = None
    memory_type: str | None = None
    importance: float | None = None
    tags: list[str] = field(default_factory=list)
    scopes: list[str] = field(default_factory=list)
    about: list[Ref] = field(default_factory=list)
    mentions: list[Ref] = field(default_factory=list)
    source: str | None = None
    position: int | None = None
    properties: dict[str, Any] = field(default_factory=dict)
    id: str | None = None
    state: str | None = None
    archived_by: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    valid_at: str | None = None
    invalid_at: str | None = None
    expired_at: str | None = None
    id_aliases: list[str] = field(default_factory=list)
    origins: list[Claim] | None = None
    place: Place = NO_PLACE
    digest: bytes = b""
    input: int = 0


@dataclass(slots=True)
class RelationRecord:
    """A stored, typed, directed link between two entities."""

    subject: Ref
    predicate: str
    object: Ref
    scope: str | None = None
    weight: float | None = None
    fact: str | None = None
    stated_by: list[str] = field(default_factory=list)
    properties: dict[str, Any] = field(default_factory=dict)
    id: str | None = None
    state: str | None = None
    archived_by: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    valid_at: str | None = None
    invalid_at: str | None = None
    expired_at: str | None = None
    id_aliases: list[str] = field(default_factory=list)
    origins: list[Claim] | None = None
    place: Place = NO_PLACE
    digest: bytes = b""
    input: int = 0


@dataclass(slots=True)
class ManifestRecord:
    """The first line of an export: what the file holds and how it was made."""

    version: int
    counts: dict[str, int] | None = None
    digest: str | None = None
    tool: str | None = None
    filters: dict[str, Any] = field(default_factory=dict)
    place: Place = NO_PLACE


Record: TypeAlias = EntityRecord | MemoryRecord | RelationRecord


def kind_of(record: Record) -> str:
    """The kind of a record: `entity`, `memory` or `relation`."""
    if isinstance(record, EntityRecord):
        return ENTITY
    if isinstance(record, MemoryRecord):
        return MEMORY
    return RELATION
