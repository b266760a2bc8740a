"""Records as mappings of the canonical format: the way back from `graphmem.mapping`."""

from __future__ import annotations

from typing import Any, Final

from graphmem.records import Claim, EntityRecord, MemoryRecord, Record, Ref


def ref_mapping(ref: Ref) -> Any:
    """A reference as it is written: a bare name, or a mapping of what it gives."""
    if ref.kind is None and ref.scope is None and ref.id is None:
        return ref.name
    given = {"name": ref.name or None, "kind": ref.kind, "scope": ref.scope, "id": ref.id}
    return {key: value for key, value in given.items() if value is not None}


def claim_mapping(claim: Claim) -> dict[str, Any]:
    """An entry of `origins` as it is written."""
    given = {
        "uri": claim.uri,
        "format": claim.format,
        "digest": claim.file_digest,
        "record": claim.record_digest,
        "line": claim.line or None,
        "taken_at": claim.taken_at,
        "said": claim.said,
    }
    return {key: value for key, value in given.items() if value is not None}


_ORDER: Final[dict[str, tuple[str, ...]]] = {
    "entity": ("id", "name", "kind", "scope", "description", "aliases", "properties", "state", "archived_by",
               "stub", "created_at", "updated_at", "id_aliases", "redirects", "origins"),
    "memory": ("id", "content", "title", "memory_type", "importance", "tags", "scopes", "about", "mentions",
               "source", "properties", "state", "archived_by", "created_at", "updated_at", "valid_at",
               "invalid_at", "expired_at", "id_aliases", "origins"),
    "relation": ("id", "subject", "predicate", "object", "scope", "weight", "fact", "stated_by", "properties",
                 "state", "archived_by", "created_at", "updated_at", "valid_at", "invalid_at", "expired_at",
                 "id_aliases", "origins"),
}  # fmt: skip
"""The keys of a written record after `type`, in order."""


def ordered(type_: str, fields: dict[str, Any]) -> dict[str, Any]:
    """The canonical mapping of a record: `type` first, keys in order, nothing that is absent or empty."""
    mapping: dict[str, Any] = {"type": type_}
    for key in _ORDER[type_]:
        value = fields.get(key)
        if value is not None and value is not False and value != [] and value != {}:
            mapping[key] = value
    return mapping


def to_mapping(record: Record) -> dict[str, Any]:
    """The canonical mapping that `to_record` reads back as this record."""
    if isinstance(record, MemoryRecord):
        type_ = "memory"
        source: Any = record.source
        if record.position is not None:
            source = {"uri": record.source, "position": record.position}
        fields = {name: getattr(record, name) for name in _ORDER["memory"] if name != "source"}
        fields["source"] = source
        fields["about"] = [ref_mapping(ref) for ref in record.about]
        fields["mentions"] = [ref_mapping(ref) for ref in record.mentions]
    elif isinstance(record, EntityRecord):
        type_ = "entity"
        fields = {name: getattr(record, name) for name in _ORDER["entity"]}
        fields["redirects"] = [ref_mapping(ref) for ref in record.redirects]
    else:
        type_ = "relation"
        fields = {name: getattr(record, name) for name in _ORDER["relation"]}
        fields["subject"] = ref_mapping(record.subject)
        fields["object"] = ref_mapping(record.object)
    if fields.get("origins"):
        fields["origins"] = [claim_mapping(claim) for claim in fields["origins"]]
    return ordered(type_, fields)
