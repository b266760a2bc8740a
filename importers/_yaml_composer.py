"""From the events of a YAML text to records: nodes with what is odd in them, one record at a time."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from ._json_values import MAX_DEPTH, is_too_deep, united
from ._shapes import CONTAINERS, contained
from ._yaml_scalars import Plain, resolved

MAX_EXPANSION: Final = 100_000
"""How many nodes the aliases of one record may stand for; sixteen characters count as one node."""

_LOADER: Final = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_TAG_PREFIX: Final = "tag:yaml.org,2002:"
_PLAIN_TAGS: Final = frozenset(
    f"{_TAG_PREFIX}{name}" for name in ("null", "bool", "int", "float", "seq", "map")
)
_TEXT_TAGS: Final = frozenset(("!", f"{_TAG_PREFIX}str"))
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

Odd = tuple[str, str, int]
"""Rule, message and index of something odd."""


@dataclass(slots=True)
class Composed:
    """One value that should be a record, where it stands in the text, and what is odd in it.

    `sound` is false where the value cannot be a record; `odd` says why.
    """

    value: Any
    start: int
    end: int
    odd: list[Odd] = field(default_factory=list)
    sound: bool = True


class Composer:
    """The records of one text of one or several documents.

    A document is one record, a list of records, or a mapping with lists under `entities`, `memories`
    and `relations`. `done` is the index behind the last whole record, `list_column` and `list_key`
    tell of the block list that is being read; they serve to go on after a fault.
    """

    def __init__(self, text: str, list_key: str | None = None) -> None:
        self.done = 0
        self.list_column: int | None = None
        self.list_key = list_key
        self._text = text
        self._ahead: deque[Event] = deque()
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._odd: list[Odd] = []
        self._sound = True
        self._size = 0
        self._expanded = 0
        self._end = 0

    def records(self) -> Iterator[Composed]:
        """Every record in its order. Raises `yaml.YAMLError` where the text is not YAML."""
        self._loader = _LOADER(self._text)
        try:
            while (event := self._next()) is not None:
                if isinstance(event, DocumentStartEvent):
                    self._anchors.clear()
                elif isinstance(event, NodeEvent):
                    yield from self._document(event)
        finally:
            self._loader.dispose()

    # ---- events ------------------------------------------------------------------------------------

    def _next(self) -> Event | None:
        return self._ahead.popleft() if self._ahead else self._loader.get_event()

    def _node_or_end(self) -> Event:
        event = self._next()
        if event is None:
            raise yaml.YAMLError("the text ends inside a node")
        return event

    def _peek(self, number: int) -> Event | None:
        """The event after the next `number` ones, which stay to be taken."""
        while len(self._ahead) <= number:
            event = self._loader.get_event()
            if event is None:
                return None
            self._ahead.append(event)
        return self._ahead[number]

    # ---- documents ---------------------------------------------------------------------------------

    def _document(self, event: NodeEvent) -> Iterator[Composed]:
        if isinstance(event, SequenceStartEvent):
            self._begin_list(event, self.list_key)
            if self.list_key is None and isinstance(self._peek(0), ScalarEvent):
                yield self._record(event, None)
            else:
                yield from self._list(self.list_key)
        elif isinstance(event, MappingStartEvent) and self._opens_lists():
            yield from self._container()
        elif not (isinstance(event, ScalarEvent) and not event.style and not event.value):
            yield self._record(event, None)

    def _opens_lists(self) -> bool:
        key, value = self._peek(0), self._peek(1)
        return (
            isinstance(key, ScalarEvent) and key.value in CONTAINERS and isinstance(value, SequenceStartEvent)
        )

    def _container(self) -> Iterator[Composed]:
        while isinstance(event := self._node_or_end(), NodeEvent):
            listed = self._peek(0)
            if (
                isinstance(event, ScalarEvent)
                and event.value in CONTAINERS
                and isinstance(listed, SequenceStartEvent)
            ):
                self._next()
                self._begin_list(listed, event.value)
                yield from self._list(event.value)
            else:
                yield self._beside_lists(event)

    def _beside_lists(self, event: NodeEvent) -> Composed:
        composed = self._record(event, None)
        message = f"the key '{str(composed.value)[:80]}' beside lists of records is not read"
        self._record(self._node_or_end(), None)
        return Composed(None, composed.start, self._end, [("unknown-shape", message, composed.start)], False)

    def _begin_list(self, start: SequenceStartEvent, key: str | None) -> None:
        if not start.flow_style:
            self.list_column, self.list_key, self.done = _column(start), key, _starts(start)

    def _list(self, key: str | None) -> Iterator[Composed]:
        while not isinstance(event := self._node_or_end(), SequenceEndEvent):
            composed = self._record(event, key)
            self.done = composed.end
            yield composed
        self.list_column = None

    def _record(self, event: Event, key: str | None) -> Composed:
        self._odd, self._sound, self._size, self._expanded = [], True, 0, 0
        start = _starts(event)
        value = self._node(event, 0)
        if self._expanded and self._sound and is_too_deep(value):
            self._refuse("too-deep", "the record is nested too deep", event)
        if self._sound:
            value = resolved(value)
            value = value if key is None else contained(key, value)
        return Composed(value, start, self._end, self._odd, self._sound)

    # ---- nodes -------------------------------------------------------------------------------------

    def _node(self, event: Event, depth: int) -> Any:
        """The value of a node, plain scalars as `Plain`; an alias shares the value of its anchor."""
        if isinstance(event, AliasEvent):
            return self._alias(event)
        before = self._size
        value: Any = None
        if isinstance(event, ScalarEvent):
            value = self._scalar(event)
        elif isinstance(event, CollectionStartEvent):
            if event.tag is not None and event.tag not in _PLAIN_TAGS and event.tag != "!":
                self._refuse_tag(event)
            if depth >= MAX_DEPTH:
                self._pass_over()
                self._refuse("too-deep", "the record is nested too deep", event)
            elif isinstance(event, SequenceStartEvent):
                value = self._sequence(depth + 1)
            else:
                value = self._mapping(depth + 1)
        self._size += 1
        anchor = getattr(event, "anchor", None)
        if anchor is not None:
            self._anchors[anchor] = (value, self._size - before)
        return value

    def _scalar(self, event: ScalarEvent) -> str:
        value: str = event.value
        self._end = _ends(event)
        self._size += len(value) >> 4
        if not value.isascii() and _SURROGATE.search(value):
            self._refuse("lone-surrogate", "half of a character in an escape", event)
        if event.tag in _TEXT_TAGS:
            return value
        if event.tag is not None and event.tag not in _PLAIN_TAGS:
            self._refuse_tag(event)
        return value if event.style and event.tag is None else Plain(value)

    def _sequence(self, depth: int) -> list[Any]:
        made: list[Any] = []
        while not isinstance(event := self._node_or_end(), SequenceEndEvent):
            made.append(self._node(event, depth))
        self._end = _ends(event)
        return made

    def _mapping(self, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        while not isinstance(event := self._node_or_end(), MappingEndEvent):
            key = self._key(event, depth)
            value = self._node(self._node_or_end(), depth)
            if key in made:
                message = f"the key '{key[:80]}' is given more than once"
                self._odd.append(("duplicate-key", message, _starts(event)))
                value = united(made[key], value)
            made[key] = value
        self._end = _ends(event)
        return made

    def _key(self, event: Event, depth: int) -> str:
        key = self._node(event, depth)
        if not isinstance(key, str):
            self._refuse("bad-yaml", "a key must be text", event)
            return ""
        if type(key) is Plain and key == "<<":
            self._odd.append(("yaml-merge-key", "the merge key '<<' is not applied", _starts(event)))
        return str(key)

    def _alias(self, event: AliasEvent) -> Any:
        self._end = _ends(event)
        name = event.anchor
        if name not in self._anchors:
            self._refuse("bad-yaml", f"the alias '*{name}' refers to nothing before it", event)
            return None
        value, size = self._anchors[name]
        self._size += size
        self._expanded += size
        if self._expanded <= MAX_EXPANSION:
            return value
        self._refuse("yaml-alias-bomb", f"aliases that stand for more than {MAX_EXPANSION:,} values", event)
        return None

    def _pass_over(self) -> None:
        depth = 1
        while depth:
            event = self._node_or_end()
            depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        self._end = _ends(event)

    def _refuse_tag(self, event: ScalarEvent | CollectionStartEvent) -> None:
        tag = str(event.tag).replace(_TAG_PREFIX, "!!")
        self._refuse("bad-yaml", f"the tag '{tag[:80]}' is not read", event)

    def _refuse(self, rule: str, message: str, event: Event) -> None:
        """Note why the record cannot be used; the first reason is enough."""
        if self._sound:
            self._odd.append((rule, message, _starts(event)))
        self._sound = False


def _starts(event: Event) -> int:
    assert event.start_mark is not None
    return event.start_mark.index


def _ends(event: Event) -> int:
    assert event.end_mark is not None
    return event.end_mark.index


def _column(event: Event) -> int:
    assert event.start_mark is not None
    return event.start_mark.column
