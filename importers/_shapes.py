"""Which objects are records of the canonical format, and lists of records under a key per kind."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from graphmem.mapping import KEYS
from graphmem.records import ENTITY, MEMORY, RELATION

CONTAINERS: Final = {"entities": ENTITY, "memories": MEMORY, "relations": RELATION}
"""The keys of an object that holds lists of records, and the type of what is in each list."""
MANIFEST: Final = "manifest"

_TRIPLE: Final = frozenset(("subject", "predicate", "object"))
_SHORT: Final = {ENTITY: "name", MEMORY: "content"}
# Keys that other tools use in objects that look like ours: such objects are theirs.
_FOREIGN: Final = {
    ENTITY: frozenset(("entityType", "entity_type", "entityName", "observations")),
    MEMORY: frozenset(("content_hash", "hash", "user_id", "app_id", "document", "embedding")),
    RELATION: frozenset(
        ("from", "to", "relationType", "relation_type", "source", "target", "from_id", "to_id", "fromZone")
    ),
    MANIFEST: frozenset[str](),
}  # fmt: skip

_THEIRS: Final = frozenset[str]().union(*_FOREIGN.values()).difference(*KEYS.values())


def is_canonical(type_: str | None, keys: Collection[str]) -> bool:
    """Whether an object of that `type` (`None` where it has none) and those keys is a record of ours."""
    if type_ is None:
        return _TRIPLE.issubset(keys)
    foreign = _FOREIGN.get(type_)
    return foreign is not None and foreign.isdisjoint(keys)


def is_foreign(type_: str | None, keys: Collection[str]) -> bool:
    """Whether a `type` or keys tell that an object is no record of ours, whatever else it holds."""
    return not _THEIRS.isdisjoint(keys) if type_ is None else not is_canonical(type_, keys)


def is_start_of_record(keys: Collection[str]) -> bool:
    """Whether an object that starts with these keys, and whose `type` is not seen yet, can be a record."""
    return bool(keys) and any(known.issuperset(keys) for known in KEYS.values())


def contained(key: str, value: Any) -> Any:
    """An element of the list under a key of `CONTAINERS`, as a record.

    Its type is that of the list unless it says its own; a bare text is the name of an entity or the
    content of a memory.
    """
    type_ = CONTAINERS[key]
    if isinstance(value, dict):
        return value if value.get("type") is not None else {**value, "type": type_}
    if isinstance(value, str) and type_ in _SHORT:
        return {"type": type_, _SHORT[type_]: value}
    return value
