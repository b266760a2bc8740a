"""From a parsed value (JSON, YAML, a tool argument) to a record, with findings for what is wrong.

The shapes are those of the canonical format: mappings with a `type`, and short triples.
Every value is checked; a record with a bad value is rejected with one finding per bad value, and keys
that are not known are kept in `properties`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from graphmem.findings import Finding, finding
from graphmem.names import exact
from graphmem.records import (
    FORMAT_NAME,
    FORMAT_VERSION,
    MAX_ID_LENGTH,
    Claim,
    EntityRecord,
    ManifestRecord,
    MemoryRecord,
    Place,
    Record,
    Ref,
    RelationRecord,
)
from graphmem.scopes import is_scope
from graphmem.times import parse_time

_Check = Callable[[Any], Any]
_TIMES: Final = frozenset(("created_at", "updated_at", "valid_at", "invalid_at", "expired_at"))
STATES: Final = ("active", "archived")


class _Bad(Exception):
    """A value that cannot be used: the rule and what should have been there."""

    def __init__(self, rule: str, expected: str) -> None:
        super().__init__(expected)
        self.rule = rule
        self.expected = expected


# ---- checks of single values: return the value to store, or raise _Bad ------------------------------


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise _Bad("bad-value", "must be text")


def _content(value: Any) -> str:
    text = _text(value)
    if not text or text.isspace():
        raise _Bad("bad-value", "is empty")
    return text


def _word(value: Any) -> str:
    """Text that names something: a kind, a type, a tag, a predicate."""
    if not isinstance(value, str):
        raise _Bad("bad-value", "must be text")
    clean = exact(value)
    if not clean:
        raise _Bad("bad-value", "must not be empty")
    return clean


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise _Bad("bad-name", "must be text")
    clean = exact(value)
    if not clean:
        raise _Bad("bad-name", "is empty")
    return clean


def _id(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not 0 < len(value) <= MAX_ID_LENGTH:
        raise _Bad("bad-id", f"must be text of 1 to {MAX_ID_LENGTH} characters")
    return value


def _scope(value: Any) -> str:
    if isinstance(value, str) and is_scope(value):
        return value
    raise _Bad("bad-scope", "must be 'global', 'repo:/absolute/path' or 'kind:value'")


def _only_scope(value: Any) -> str | None:
    """The scope of something that has one, given as a list as memories have it."""
    listed = value if isinstance(value, list) else [value]
    if len(listed) > 1:
        raise _Bad("bad-value", "must be one scope: an entity or relation has only one")
    return _scope(listed[0]) if listed else None


def _unit_number(value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise _Bad("bad-value", "must be a number from 0 to 1")


def _position(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63:
        return value
    raise _Bad("bad-value", "must be a whole number from 0")


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise _Bad("bad-value", "must be true or false")


def _state(value: Any) -> str:
    if value in STATES:
        return str(value)
    raise _Bad("bad-value", "must be 'active' or 'archived'")


def _mapping(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise _Bad("bad-value", "must be an object")


def _listed(check: _Check) -> _Check:
    """A list of checked values; one bare value is a list of one."""

    def checked(value: Any) -> list[Any]:
        return [check(one) for one in (value if isinstance(value, list) else [value])]

    return checked


def _set_of(check: _Check) -> _Check:
    """A set of checked texts, sorted by code point; one bare value is a set of one."""

    def checked(value: Any) -> list[Any]:
        if isinstance(value, list):
            return sorted({check(one) for one in value})
        return [check(value)]

    return checked


def _ref(value: Any) -> Ref:
    if isinstance(value, str):
        return Ref(_name(value))
    if not isinstance(value, dict):
        raise _Bad("bad-value", "must be a name or an object with 'name' or 'id'")
    strange = value.keys() - {"name", "kind", "scope", "id"}
    if strange:
        raise _Bad("bad-value", f"a reference has no key '{min(strange, key=str)}'")
    given = {key: one for key, one in value.items() if one is not None}
    if "name" not in given and "id" not in given:
        raise _Bad("bad-value", "must be a name or an object with 'name' or 'id'")
    return Ref(
        _name(given["name"]) if "name" in given else "",
        _word(given["kind"]) if "kind" in given else None,
        _scope(given["scope"]) if "scope" in given else None,
        _id(given["id"]) if "id" in given else None,
    )


def _memory_id(value: Any) -> str:
    if isinstance(value, dict) and value.keys() == {"id"}:
        value = value["id"]
    return _id(value)


def _refs(value: Any) -> list[Ref]:
    if not isinstance(value, list):
        return [_ref(value)]
    if len(value) == 1:
        return [_ref(value[0])]
    return sorted({_ref(one) for one in value}, key=_ref_order)


def _ref_order(ref: Ref) -> tuple[str, str, str, str]:
    return (ref.name, ref.kind or "", ref.scope or "", ref.id or "")


def _known_ref(value: Any) -> Ref:
    ref = _ref(value)
    if not ref.name:
        raise _Bad("bad-value", "must be an object with 'name'")
    return ref


_SAID_SETS: Final = ("aliases", "tags", "about", "mentions", "scopes", "stated_by")
_SAID_NUMBERS: Final = ("importance", "weight")


def _said(value: Any) -> dict[str, Any]:
    """What a contribution said, as an export writes it: whatever else it holds is rejected."""
    said = _mapping(value)
    for key, one in said.items():
        if key in _SAID_SETS or key == "renamed":
            fits = isinstance(one, list) and all(isinstance(text, str) for text in one)
        elif key == "properties":
            fits = isinstance(one, dict)
        elif key == "without":
            fits = isinstance(one, dict) and all(
                isinstance(gone, list) and all(isinstance(text, str) for text in gone)
                for gone in one.values()
            )
        elif key == "place":
            fits = isinstance(one, list) and len(one) == 2 and isinstance(one[0], str)
        elif key in _SAID_NUMBERS:
            fits = isinstance(one, (int, float)) and not isinstance(one, bool)
        else:
            fits = isinstance(one, str)
        if not fits:
            raise _Bad("bad-value", f"has no usable '{key}'")
    return said


def _claim(value: Any) -> Claim:
    value = _mapping(value)
    try:
        digest = bytes.fromhex(_text(value.get("record"))).hex()
        line = value.get("line") or 0
        said = value.get("said")
        return Claim(
            uri=value.get("uri") and _text(value["uri"]),
            format=value.get("format") and _text(value["format"]),
            file_digest=value.get("digest") and _text(value["digest"]),
            record_digest=digest,
            line=_position(line),
            taken_at=parse_time(value.get("taken_at"))[0],
            said=None if said is None else _said(said),
        )
    except ValueError as error:
        raise _Bad("bad-value", "must be a list of origins as an export writes them") from error


_COMMON: Final[dict[str, _Check]] = {
    "id": _id,
    "state": _state,
    "archived_by": _word,
    "properties": _mapping,
    "origins": _listed(_claim),
}
_ENTITY: Final[dict[str, _Check]] = {
    **_COMMON,
    "name": _name,
    "kind": _word,
    "scope": _scope,
    "description": _text,
    "aliases": _set_of(_name),
    "stub": _flag,
    "id_aliases": _set_of(_id),
    "redirects": _listed(_known_ref),
}
_MEMORY: Final[dict[str, _Check]] = {
    **_COMMON,
    "content": _content,
    "title": _text,
    "memory_type": _word,
    "importance": _unit_number,
    "tags": _set_of(_word),
    "scopes": _set_of(_scope),
    "about": _refs,
    "mentions": _refs,
    "id_aliases": _set_of(_id),
}
_RELATION: Final[dict[str, _Check]] = {
    **_COMMON,
    "subject": _ref,
    "predicate": _word,
    "object": _ref,
    "scope": _scope,
    "weight": _unit_number,
    "fact": _text,
    "stated_by": _set_of(_memory_id),
    "id_aliases": _set_of(_id),
}
_ENTITY_TIMES: Final = frozenset(("created_at", "updated_at"))

# Per type: checks, time keys, keys that must be there, the record class.
_TYPES: Final[dict[str, tuple[dict[str, _Check], frozenset[str], tuple[str, ...], type[Record]]]] = {
    "entity": (_ENTITY, _ENTITY_TIMES, ("name",), EntityRecord),
    "memory": (_MEMORY, _TIMES, ("content",), MemoryRecord),
    "relation": (_RELATION, _TIMES, ("subject", "predicate", "object"), RelationRecord),
}
KEYS: Final = {
    type_: frozenset((*checks, *times, "type", *(("source",) if type_ == "memory" else ())))
    for type_, (checks, times, _, _) in _TYPES.items()
}
"""The known keys of a record of each type."""

# Keys that people do not write by hand: another key is not taken for a slip of one.
_OF_EXPORTS: Final = frozenset(("archived_by", "stub", "origins", "id_aliases", "redirects"))
_SEPARATORS: Final = re.compile(r"[-_. ]+")
_NEAR: Final = 0.82
_LONGEST_NEAR: Final = 40


def checked_value(type_: str, key: str, value: Any) -> Any:
    """One value of a record as it is stored; a time as its canonical text.

    Raises `ValueError` with what the value should have been, and `KeyError` for a key that the type has not.
    """
    checks, times, _, _ = _TYPES[type_]
    if key in times:
        try:
            return parse_time(value)[0]
        except ValueError:
            raise ValueError(f"cannot be understood: {str(value)[:60]!r}") from None
    try:
        return checks[key](value)
    except _Bad as bad:
        raise ValueError(bad.expected) from None


def _source(value: Any, fields: dict[str, Any]) -> None:
    if isinstance(value, str):
        fields["source"] = value
        return
    value = _mapping(value)
    strange = value.keys() - {"uri", "position"}
    if strange or not isinstance(value.get("uri"), str):
        raise _Bad("bad-value", "must be text or an object with 'uri' and 'position'")
    fields["source"] = value["uri"]
    if value.get("position") is not None:
        fields["position"] = _position(value["position"])


def _time(value: Any, key: str, place: Place, file: str, findings: list[Finding]) -> str:
    try:
        time, guessed = parse_time(value)
    except ValueError:
        raise _Bad("bad-time", f"cannot be understood: {str(value)[:60]!r}") from None
    if guessed:
        message = f"'{key}' was taken as {time}"
        findings.append(finding("guessed-time", message, file=file, place=place))
    return time


@lru_cache(maxsize=4096)
def _near_keys(key: str, type_: str) -> tuple[str, ...]:
    """Known keys that a key is a slip of, the likeliest first."""
    from difflib import get_close_matches

    bare = _SEPARATORS.sub("", key).casefold()
    same = [known for known in sorted(KEYS[type_]) if known.replace("_", "") == bare]
    if same:
        return tuple(same)
    likely = [known for known in sorted(KEYS[type_] - _OF_EXPORTS) if known[:1] == bare[:1]]
    return tuple(get_close_matches(key.casefold(), likely, cutoff=_NEAR))


def _near(key: Any, value: dict[str, Any], type_: str) -> str | None:
    """The known key that an unknown one was meant for, where the record does not have that one."""
    if not isinstance(key, str) or len(key) > _LONGEST_NEAR:
        return None
    return next((known for known in _near_keys(key, type_) if known not in value), None)


def _take_other_scope(given: Any, type_: str, fields: dict[str, Any]) -> None:
    """`scope` of a memory, `scopes` of anything else: the other spelling of the key it has."""
    if given is None:
        return
    if type_ == "memory":
        fields["scopes"] = sorted({*fields.get("scopes", ()), *_set_of(_scope)(given)})
        return
    scope = _only_scope(given)
    if scope is not None and fields.setdefault("scope", scope) != scope:
        raise _Bad("bad-value", f"must not be another scope than 'scope', which is '{fields['scope']}'")


def _keep_extras(
    extras: dict[str, Any],
    given: dict[str, Any],
    type_: str,
    fields: dict[str, Any],
    place: Place,
    file: str,
    findings: list[Finding],
) -> None:
    """Keeps the unknown keys of a record, `given`, among its properties."""
    properties = dict(fields.get("properties", {}))
    for key, value in extras.items():
        kept = key
        if key in properties:
            kept = f"extra.{key}"
            message = f"'{key}' is given both as a key and in 'properties'"
            findings.append(finding("key-collision", message, file=file, place=place))
        near = _near(key, given, type_)
        if near is not None:
            message = f"'{key}' was kept as a property; did you mean '{near}'?"
            findings.append(finding("unknown-key-near", message, file=file, place=place))
        properties[kept] = value
    fields["properties"] = properties


def _build(
    value: dict[str, Any], type_: str, place: Place, file: str, findings: list[Finding]
) -> Record | None:
    checks, times, needed, make = _TYPES[type_]
    fields: dict[str, Any] = {}
    extras: dict[str, Any] | None = None
    other_scope = "scope" if type_ == "memory" else "scopes"
    sound = True
    for key, given in value.items():
        try:
            check = checks.get(key)
            if check is not None:
                if given is not None:
                    fields[key] = check(given)
            elif key == "type":
                pass
            elif key in times:
                if given is not None:
                    fields[key] = _time(given, key, place, file, findings)
            elif key == "source" and type_ == "memory":
                if given is not None:
                    _source(given, fields)
            elif key != other_scope:
                extras = extras or {}
                extras[key] = given
        except _Bad as bad:
            sound = False
            findings.append(
                finding(bad.rule, f"'{key}' {bad.expected}", file=file, place=place, record_kind=type_)
            )
    if other_scope in value:
        try:
            _take_other_scope(value[other_scope], type_, fields)
        except _Bad as bad:
            sound = False
            message = f"'{other_scope}' {bad.expected}"
            findings.append(finding(bad.rule, message, file=file, place=place, record_kind=type_))
    for key in needed:
        if key not in fields and (key not in value or value[key] is None):
            sound = False
            near = next((one for one in extras or () if _near(one, value, type_) == key), None)
            message = f"{type_} without '{key}'" + ("" if near is None else f"; did you mean it by '{near}'?")
            findings.append(finding("missing-key", message, file=file, place=place, record_kind=type_))
    if not sound:
        return None
    if extras is not None:
        _keep_extras(extras, value, type_, fields, place, file, findings)
    fields["place"] = place
    return make(**fields)


# ---- the shapes that nearly all records of a large file have, read without ceremony ------------------
#
# Each gives the record that `_build` would, or `None` to have `_build` look at it. A test compares the two.

_PLAIN_ENTITY: Final = frozenset(("type", "name", "kind", "description", "aliases", "scope"))
_PLAIN_MEMORY: Final = frozenset(("type", "content", "title", "about", "memory_type"))
_PLAIN_RELATION: Final = frozenset(("type", "subject", "predicate", "object", "scope"))


def _plain_entity(value: dict[str, Any], place: Place) -> Record | None:
    if not value.keys() <= _PLAIN_ENTITY:
        return None
    name, kind, description = value.get("name"), value.get("kind"), value.get("description")
    scope, aliases = value.get("scope"), value.get("aliases")
    if type(name) is not str or not (name := exact(name)):
        return None
    if kind is not None and (type(kind) is not str or not (kind := exact(kind))):
        return None
    if description is not None and type(description) is not str:
        return None
    if scope is not None and (type(scope) is not str or not is_scope(scope)):
        return None
    if aliases is None:
        return EntityRecord(name, kind, scope, description, place=place)
    if type(aliases) is not list or len(aliases) != 1 or type(aliases[0]) is not str:
        return None
    alias = exact(aliases[0])
    return EntityRecord(name, kind, scope, description, [alias], place=place) if alias else None


def _plain_memory(value: dict[str, Any], place: Place) -> Record | None:
    if not value.keys() <= _PLAIN_MEMORY:
        return None
    content, title = value.get("content"), value.get("title")
    about, memory_type = value.get("about"), value.get("memory_type")
    if type(content) is not str or not content or content.isspace():
        return None
    if title is not None and type(title) is not str:
        return None
    if memory_type is not None and (type(memory_type) is not str or not (memory_type := exact(memory_type))):
        return None
    if about is None:
        return MemoryRecord(content, title, memory_type, place=place)
    if type(about) is not list or len(about) != 1 or type(about[0]) is not str:
        return None
    name = exact(about[0])
    return MemoryRecord(content, title, memory_type, about=[Ref(name)], place=place) if name else None


def _plain_relation(value: dict[str, Any], place: Place) -> Record | None:
    if not value.keys() <= _PLAIN_RELATION:
        return None
    subject, predicate, object_ = value.get("subject"), value.get("predicate"), value.get("object")
    scope = value.get("scope")
    if type(subject) is not str or type(predicate) is not str or type(object_) is not str:
        return None
    if scope is not None and (type(scope) is not str or not is_scope(scope)):
        return None
    subject, predicate, object_ = exact(subject), exact(predicate), exact(object_)
    if not subject or not predicate or not object_:
        return None
    return RelationRecord(Ref(subject), predicate, Ref(object_), scope, place=place)


_PLAIN: Final[dict[str | None, Callable[[dict[str, Any], Place], Record | None]]] = {
    "entity": _plain_entity,
    "memory": _plain_memory,
    "relation": _plain_relation,
    None: _plain_relation,
}


def _triple(value: list[Any], place: Place, file: str, findings: list[Finding]) -> Record | None:
    if len(value) != 3:
        message = f"a short triple has 3 parts, this list has {len(value)}"
        findings.append(finding("not-a-record", message, file=file, place=place))
        return None
    shape = {"subject": value[0], "predicate": value[1], "object": value[2]}
    return _build(shape, "relation", place, file, findings)


def _manifest(
    value: dict[str, Any], place: Place, file: str, findings: list[Finding]
) -> ManifestRecord | None:
    version = value.get("version")
    counts = value.get("counts")
    digest = value.get("digest")
    filters = value.get("filters") or {}
    if (
        value.get("format") != FORMAT_NAME
        or not isinstance(version, int)
        or not (counts is None or isinstance(counts, dict))
        or not (digest is None or isinstance(digest, str))
        or not isinstance(filters, dict)
    ):
        findings.append(
            finding("bad-manifest", "a manifest that is not one of graphmem's", file=file, place=place)
        )
        return None
    if version > FORMAT_VERSION:
        message = f"the file is of format version {version}; this graphmem reads up to {FORMAT_VERSION}"
        findings.append(finding("newer-format", message, file=file, place=place))
        return None
    tool = value.get("tool")
    return ManifestRecord(version, counts, digest, tool if isinstance(tool, str) else None, filters, place)


def guess_type(value: dict[str, Any]) -> str | None:
    """The type of a mapping: its `type`, else a relation by its keys; `None` when neither is known."""
    type_ = value.get("type")
    if type_ is None:
        return "relation" if "subject" in value and "predicate" in value and "object" in value else None
    return type_ if isinstance(type_, str) and (type_ in _TYPES or type_ == "manifest") else None


def to_record(value: Any, place: Place, file: str, findings: list[Finding]) -> Record | ManifestRecord | None:
    """The record that a parsed value stands for, or `None` when it is rejected.

    Appends to `findings` what is wrong, with `place` and `file`. `value` must not hold lone surrogates.
    """
    if type(value) is dict:
        said = value.get("type")
        plain = _PLAIN.get(said) if said is None or type(said) is str else None
        record = plain(value, place) if plain is not None else None
        if record is not None:
            return record
    if isinstance(value, list):
        return _triple(value, place, file, findings)
    if not isinstance(value, dict):
        message = f"a record is an object or a list of three, not {type(value).__name__}"
        findings.append(finding("not-a-record", message, file=file, place=place))
        return None
    type_ = guess_type(value)
    if type_ is None:
        keys = ", ".join(f"'{str(key)[:40]}'" for key in list(value)[:12])
        said = f"type {str(value['type'])[:40]!r}" if value.get("type") is not None else "no type"
        message = f"a record of {said} with the keys {keys or '(none)'}"
        findings.append(finding("unknown-shape", message, file=file, place=place))
        return None
    if type_ == "manifest":
        return _manifest(value, place, file, findings)
    return _build(value, type_, place, file, findings)
