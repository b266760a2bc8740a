"""Making a record ready for the run: scopes filled in and mapped, and the digest of what it says.

Two records with one digest say the same thing in the same scope, whatever their format, key order or
place; that is how an import knows a record again.
"""

from __future__ import annotations

import json
import marshal
import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from graphmem.names import kind_key
from graphmem.records import EntityRecord, MemoryRecord, Record, Ref, RelationRecord
from graphmem.scopes import map_scope

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False).encode


# What a lone surrogate looks like in marshal's UTF-8; a length may look like it, so a hit is checked.
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no white space, the form in which properties and sets are stored."""
    return _encode(value)


def text_hash(text: str) -> bytes:
    """The 16-byte digest of a text. Raises `UnicodeEncodeError` for lone surrogates."""
    return blake2b(text.encode(), digest_size=16).digest()


def _mapped_ref(ref: Ref, mapping: Mapping[str, str]) -> Ref:
    return ref._replace(scope=map_scope(ref.scope, mapping)) if ref.scope is not None else ref


def _map_scopes(record: Record, mapping: Mapping[str, str]) -> None:
    if isinstance(record, MemoryRecord):
        record.scopes = sorted({map_scope(scope, mapping) for scope in record.scopes})
        record.about = [_mapped_ref(ref, mapping) for ref in record.about]
        record.mentions = [_mapped_ref(ref, mapping) for ref in record.mentions]
        return
    if record.scope is not None:
        record.scope = map_scope(record.scope, mapping)
    if isinstance(record, RelationRecord):
        record.subject = _mapped_ref(record.subject, mapping)
        record.object = _mapped_ref(record.object, mapping)
    else:
        record.redirects = [_mapped_ref(ref, mapping) for ref in record.redirects]


def _digest(record: Record) -> bytes:
    r = record
    properties = _encode(r.properties) if r.properties else None
    said: tuple[Any, ...]
    if isinstance(r, MemoryRecord):
        said = (
            "m", r.content, r.title, r.memory_type, r.importance, r.position, r.tags, r.scopes,
            [tuple(ref) for ref in r.about], [tuple(ref) for ref in r.mentions], r.source, properties, r.id,
            r.state, r.archived_by, r.created_at, r.updated_at, r.valid_at, r.invalid_at, r.expired_at,
            *r.id_aliases,
        )  # fmt: skip
    elif isinstance(r, RelationRecord):
        said = (
            "r", tuple(r.subject), r.predicate, tuple(r.object), r.scope, r.weight, r.fact, r.stated_by,
            properties, r.id, r.state, r.archived_by, r.created_at, r.updated_at, r.valid_at, r.invalid_at,
            r.expired_at, r.id_aliases,
        )  # fmt: skip
    else:
        said = (
            "e", r.name, r.kind, r.scope, r.description, r.aliases, properties, r.id, r.state, r.archived_by,
            r.stub, r.created_at, r.updated_at, r.id_aliases, [tuple(ref) for ref in r.redirects],
        )  # fmt: skip
    # Version 0 of marshal writes equal values as equal bytes: no back references, nothing of interning.
    data = marshal.dumps(said, 0)
    if _SURROGATE.search(data):
        canonical_json(said).encode()
    return blake2b(data, digest_size=16).digest()


def prepare(record: Record, number: int, scope: str, mapping: Mapping[str, str] | None = None) -> None:
    """Fills in the record's scope, `input` and `digest`; `mapping` renames scopes.

    Raises `UnicodeEncodeError` when a text holds a lone surrogate and `ValueError` for NaN in properties.
    """
    if mapping:
        _map_scopes(record, mapping)
    if isinstance(record, MemoryRecord):
        if not record.scopes:
            record.scopes = [scope]
    elif record.scope is None:
        record.scope = scope
    if isinstance(record, EntityRecord):
        if record.aliases:
            record.aliases = [alias for alias in record.aliases if alias != record.name]
        if record.kind is not None and not kind_key(record.kind):
            record.kind = None
    record.digest = _digest(record)
    record.input = number
