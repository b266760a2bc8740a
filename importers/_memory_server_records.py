"""From the objects of the MCP memory server, and of its forks, to records.

An entity with its observations becomes one entity record and a memory about it for each observation.
Names alone identify entities there: the first type that a file gives a name is its kind, also in what
refers to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from graphmem.findings import Finding, finding
from graphmem.mapping import to_record
from graphmem.names import exact, kind_key
from graphmem.records import (
    ENTITY,
    MEMORY,
    RELATION,
    EntityRecord,
    ManifestRecord,
    MemoryRecord,
    Place,
    Record,
    Ref,
    RelationRecord,
)
from graphmem.times import parse_time

from ._json_parts import find, place_within
from ._memory_server_shapes import (
    ABOUT,
    CONTENTS,
    ENDS,
    MARKER,
    NAMES,
    OBSERVATION,
    PREDICATES,
    shape_of,
    type_of,
)

_TYPES: Final = ("entityType", "entity_type", "kind")
_CREATED: Final = ("createdAt", "created_at", "timestamp")
_UPDATED: Final = ("updatedAt", "updated_at")
_BY_ID: Final = ENDS[-1]


class Value:
    """One object of a file: its place and, asked for only when something is wrong with it, its text.

    `inexact` says that the text does not stand in the file as it is, but inside a JSON string.
    """

    def __init__(self, said: Any, place: Place, raw: Callable[[], str], *, inexact: bool = False) -> None:
        self.said = said
        self.place = place
        self.raw = raw
        self.inexact = inexact

    def place_of(self, *path: str | int) -> Place:
        """Where a part of the object stands; the object's own place where that cannot be told."""
        if self.inexact:
            return self.place
        text = self.raw()
        found = find(text, *path)
        return self.place if found is None else place_within(text, self.place, found.start)


class Graph:
    """Makes records of the objects of one file, and remembers what the file has said of names and ids."""

    def __init__(self, label: str, findings: list[Finding]) -> None:
        self._label = label
        self._findings = findings
        self._kinds: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self.waiting: list[Value] = []
        """Relations that name their ends by ids which were not seen yet; give them once more at the end."""

    def records(self, value: Value, *, last: bool = False) -> Iterator[Record | ManifestRecord] | None:
        """The records of an object, or `None` when it is rejected and the findings say why.

        `last` takes an id that was not seen for a name.
        """
        said = value.said
        shape = shape_of(type_of(said), said) if isinstance(said, dict) else None
        if shape is None:
            record = to_record(said, value.place, self._label, self._findings)
            return None if record is None else iter((record,))
        if shape == MARKER:
            return iter(())
        if shape == RELATION:
            return self._relation(value, last)
        return self._entity(value) if shape == ENTITY else self._observation(value)

    # ---- entities and their observations ---------------------------------------------------------------

    def _entity(self, value: Value) -> Iterator[Record] | None:
        said = value.said
        name_key = _first(said, NAMES)
        name = self._name(value, name_key, ENTITY)
        if name is None:
            return None
        used = {"type", "_type", "observations", "description", "aliases", "properties"}
        used.add(name_key or "name")
        record = EntityRecord(name, place=value.place)
        properties = self._properties(said)
        record.kind = self._kind(value, used, properties)
        self._settle_kind(value, record, properties)
        self._take_described(value, record, properties)
        self._take_times(value, record, used, properties)
        self._keep_rest(value, used, properties)
        record.properties = properties
        if "id" in properties:
            self._names.setdefault(str(properties["id"]), name)
        if said.get("observations") is None:
            self._tell("incomplete-record", f"the entity '{name}' has no 'observations'", value.place)
        return self._with_observations(value, record)

    def _with_observations(self, value: Value, record: EntityRecord) -> Iterator[Record]:
        yield record
        given = value.said.get("observations")
        if given is not None:
            yield from self._observations(value, self._about(record.name), "observations")

    def _kind(self, value: Value, used: set[str], properties: dict[str, Any]) -> str | None:
        key = _first(value.said, _TYPES)
        if key is None:
            self._tell("incomplete-record", f"{_named(value)} has no 'entityType'", value.place)
            return None
        given = value.said[key]
        used.add(key)
        if isinstance(given, (dict, list, bool)):
            properties[key] = given
            self._tell("value-kept-aside", f"'{key}' should be text", value.place_of(key))
            return None
        kind = exact(self._text(value, given, f"'{key}'", key))
        if not kind:
            self._tell("incomplete-record", f"{_named(value)} has an empty '{key}'", value.place_of(key))
        return kind or None

    def _settle_kind(self, value: Value, record: EntityRecord, properties: dict[str, Any]) -> None:
        """Lets the first type stand that the file gives a name: it has one entity of each name."""
        kind = record.kind
        if not kind_key(kind):
            record.kind = self._kinds.get(record.name, kind)
            return
        assert kind is not None
        first = self._kinds.setdefault(record.name, kind)
        if kind_key(first) != kind_key(kind):
            message = f"'{record.name}' is a '{first}' above and a '{kind}' here; it stays a '{first}'"
            self._tell("several-types", message, value.place)
            properties["entityType"] = kind
            record.kind = first

    def _take_described(self, value: Value, record: EntityRecord, properties: dict[str, Any]) -> None:
        """Takes a description and aliases, which some forks have, where they are what those words mean."""
        said = value.said
        description, aliases = said.get("description"), said.get("aliases")
        if isinstance(description, str):
            record.description = description
        elif description is not None:
            properties["description"] = description
        names = aliases if isinstance(aliases, list) else [aliases]
        if all(isinstance(one, str) and exact(one) for one in names):
            record.aliases = sorted({exact(one) for one in names})
        elif aliases is not None:
            properties["aliases"] = aliases

    def _observation(self, value: Value) -> Iterator[Record] | None:
        """The memories of a line that is an observation of its own."""
        said = value.said
        about_key, content_key = _first(said, ABOUT), _first(said, CONTENTS)
        name = self._name(value, about_key, MEMORY, "entityName")
        if content_key is None:
            self._error("missing-key", "observation without 'content'", MEMORY, value)
        if name is None or content_key is None:
            return None
        return self._observations(value, self._about(name), content_key, {"type", "_type", about_key or ""})

    def _observations(
        self, value: Value, about: Ref, key: str, used: set[str] | None = None
    ) -> Iterator[MemoryRecord]:
        """The memories of the observations under a key; with `used`, of an object that is nothing else."""
        given = value.said[key]
        listed = isinstance(given, list)
        for number, one in enumerate(given if listed else [given]):
            path = (key, number) if listed else (key,)
            record = self._memory(value, one, about, path)
            if record is not None:
                if used is not None:
                    taken = {*used, key}
                    self._take_times(value, record, taken, record.properties)
                    self._keep_rest(value, taken, record.properties)
                yield record

    def _memory(self, value: Value, said: Any, about: Ref, path: Sequence[str | int]) -> MemoryRecord | None:
        properties: dict[str, Any] = {}
        text = said
        if isinstance(said, dict):
            key = _first(said, CONTENTS)
            if key is not None:
                text = said[key]
                properties = {other: one for other, one in said.items() if other != key}
        what = f"observation {path[-1] + 1} of '{about.name}'" if len(path) > 1 else f"'{path[0]}'"  # type: ignore[operator]
        if text is None or (isinstance(text, str) and (not text or text.isspace())):
            self._tell("empty-observation", f"{what} is empty", value.place_of(*path))
            return None
        record = MemoryRecord(self._text(value, text, what, *path), about=[about], place=value.place)
        if properties:
            part = Value(properties, value.place, value.raw, inexact=value.inexact)
            used: set[str] = set()
            self._take_times(part, record, used, record.properties, path)
            self._keep_rest(part, used, record.properties)
        return record

    # ---- relations -------------------------------------------------------------------------------------

    def _relation(self, value: Value, last: bool) -> Iterator[Record] | None:
        said = value.said
        pair = next((pair for pair in ENDS if any(said.get(end) is not None for end in pair)), ENDS[0])
        predicate_key = _first(said, PREDICATES)
        if not last and pair == _BY_ID and any(str(said.get(end)) not in self._names for end in pair):
            text = value.raw()
            self.waiting.append(Value(said, value.place, lambda: text, inexact=value.inexact))
            return iter(())
        ends = [self._end(value, end) for end in pair]
        predicate = None
        if predicate_key is None:
            self._error("missing-key", f"relation without '{PREDICATES[0]}'", RELATION, value)
        else:
            predicate = self._word(value, predicate_key, RELATION)
        subject, object_ = ends
        if subject is None or object_ is None or predicate is None:
            return None
        record = RelationRecord(subject, predicate, object_, place=value.place)
        properties = self._properties(said)
        used = {"type", "_type", "properties", predicate_key or "", *pair}
        self._take_times(value, record, used, properties)
        self._keep_rest(value, used, properties)
        record.properties = properties
        return iter((record,))

    def _end(self, value: Value, key: str) -> Ref | None:
        given = value.said.get(key)
        if key in _BY_ID and not isinstance(given, (dict, list)) and str(given) in self._names:
            return self._about(self._names[str(given)])
        name = self._name(value, key if given is not None else None, RELATION, key)
        return None if name is None else self._about(name)

    # ---- values ----------------------------------------------------------------------------------------

    def _about(self, name: str) -> Ref:
        """A reference to the entity that the file means by a name."""
        return Ref(name, self._kinds.get(name))

    def _name(self, value: Value, key: str | None, kind: str, wanted: str = "name") -> str | None:
        if key is None:
            what = OBSERVATION if kind == MEMORY else kind
            self._error("missing-key", f"{what} without '{wanted}'", kind, value)
            return None
        return self._word(value, key, kind, rule="bad-name")

    def _word(self, value: Value, key: str, kind: str, rule: str = "bad-value") -> str | None:
        """A value that names something, as text; `None` and an error where it names nothing."""
        given = value.said[key]
        if isinstance(given, (dict, list, bool)):
            self._error(rule, f"'{key}' must be text", kind, value)
            return None
        clean = exact(self._text(value, given, f"'{key}'", key))
        if not clean:
            self._error(rule, f"'{key}' is empty", kind, value)
            return None
        return clean

    def _text(self, value: Value, given: Any, what: str, *path: str | int) -> str:
        """A value as text; what is not text is told and taken as JSON writes it."""
        if isinstance(given, str):
            return given
        text = json.dumps(given, ensure_ascii=False)
        self._tell(
            "taken-as-text", f"{what} is no text; it was taken as '{text[:60]}'", value.place_of(*path)
        )
        return text

    @staticmethod
    def _properties(said: dict[str, Any]) -> dict[str, Any]:
        given = said.get("properties")
        if isinstance(given, dict):
            return dict(given)
        return {} if given is None else {"properties": given}

    def _take_times(
        self, value: Value, record: Record, used: set[str], properties: dict[str, Any],
        path: Sequence[str | int] = (),
    ) -> None:  # fmt: skip
        """Takes the times of an object; one that cannot be understood is kept as it stands."""
        for field, keys in (("created_at", _CREATED), ("updated_at", _UPDATED)):
            key = _first(value.said, keys)
            if key is None:
                continue
            used.add(key)
            given = value.said[key]
            try:
                time, guessed = parse_time(given)
            except ValueError:
                properties[key] = given
                message = f"'{key}' is no time: {str(given)[:60]!r}"
                self._tell("value-kept-aside", message, value.place_of(*path, key))
                continue
            setattr(record, field, time)
            if guessed:
                self._tell("guessed-time", f"'{key}' was taken as {time}", value.place_of(*path, key))

    # ---- findings --------------------------------------------------------------------------------------

    def _tell(self, rule: str, message: str, place: Place) -> None:
        self._findings.append(finding(rule, message, file=self._label, place=place))

    def _error(self, rule: str, message: str, kind: str, value: Value) -> None:
        # All errors of a record have its own place, by which it is counted once.
        self._findings.append(finding(rule, message, file=self._label, place=value.place, record_kind=kind))

    def _keep_rest(self, value: Value, used: set[str], properties: dict[str, Any]) -> None:
        """Keeps what has no place in a record among its properties."""
        for key, one in value.said.items():
            if key in used:
                continue
            kept = key
            if key in properties:
                kept = f"extra.{key}"
                self._tell(
                    "key-collision", f"'{key}' is given both as a key and in 'properties'", value.place
                )
            properties[kept] = one


def _first(said: dict[str, Any], keys: Sequence[str]) -> str | None:
    """The first of some keys that an object has a value for."""
    return next((key for key in keys if said.get(key) is not None), None)


def _named(value: Value) -> str:
    said = value.said
    return f"the entity '{str(said[_first(said, NAMES) or 'name'])[:80]}'"
