"""YAML as people write it in frontmatter: mappings, lists and text, every scalar kept as written.

Built on the event stream rather than on PyYAML's constructors, because `1.10`, `no` and `2024-01-15`
must stay text, because duplicate keys must be seen, and because nesting and aliases must be bounded
before anything is built.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

Value: TypeAlias = "str | list[Any] | dict[str, Any]"

MAX_DEPTH: Final = 64
MAX_ALIASED_VALUES: Final = 10_000
MAX_ALIASED_TEXT: Final = 1_000_000

_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_NULL_WORDS: Final = frozenset(("", "~", "null", "Null", "NULL"))


class Plain(str):
    """A scalar written without quotes."""

    __slots__ = ()


class Blank(Plain):
    """A scalar that YAML takes for null, with the text that was written."""

    __slots__ = ()


class FlowList(list[Any]):
    """A list written in brackets."""

    __slots__ = ()


class NotYamlError(Exception):
    """The text is not YAML that can be read here; line and column count from 0."""

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line
        self.column = column


class TooLargeError(Exception):
    """Aliases would expand the text beyond all reason; the line counts from 0."""

    def __init__(self, line: int) -> None:
        super().__init__("aliases expand beyond the limit")
        self.line = line


@dataclass(slots=True)
class Entry:
    """One key of the outermost mapping, with its value and the line it stands on, from 0."""

    key: str
    value: Value
    line: int


@dataclass(slots=True)
class _Open:
    """A list or mapping that is being read."""

    value: list[Any] | dict[str, Any]
    anchor: str | None
    key: str | None = None
    key_line: int = 0
    values: int = 1
    text: int = 0


@dataclass(slots=True)
class _Reader:
    """The state of reading one document."""

    stack: list[_Open] = field(default_factory=list)
    anchors: dict[str, tuple[Value, int, int] | None] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    root: Value | None = None
    aliased_values: int = 0
    aliased_text: int = 0

    def put(self, value: Value, line: int, column: int, values: int = 1, text: int = 0) -> None:
        """Put a finished value into the innermost open container."""
        if not self.stack:
            self.root = value
            return
        top = self.stack[-1]
        top.values += values
        top.text += text
        if isinstance(top.value, list):
            top.value.append(value)
        elif top.key is None:
            if not isinstance(value, str):
                raise NotYamlError("a key that is not text", line, column)
            top.key, top.key_line = str(value), line
        else:
            if len(self.stack) == 1:
                self.entries.append(Entry(top.key, value, top.key_line))
            else:
                top.value.setdefault(top.key, value)
            top.key = None

    def open(self, event: Any, value: list[Any] | dict[str, Any]) -> None:
        """Open a container."""
        if len(self.stack) >= MAX_DEPTH:
            raise NotYamlError("nested too deeply", event.start_mark.line, event.start_mark.column)
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        self.stack.append(_Open(value, event.anchor))

    def close(self, event: Any) -> None:
        """Close the innermost container and hand it to the one around it."""
        done = self.stack.pop()
        value: Value = _bracketed_link(done.value)
        if done.anchor is not None:
            self.anchors[done.anchor] = (value, done.values, done.text)
        self.put(value, event.start_mark.line, event.start_mark.column, done.values, done.text)

    def scalar(self, event: Any) -> None:
        """Take one scalar as text."""
        text: str = event.value
        if not text.isascii() and _SURROGATE.search(text):
            mark = event.start_mark
            raise NotYamlError("half of a surrogate pair", mark.line, mark.column)
        if event.style in (None, ""):
            text = Blank(text) if text in _NULL_WORDS else Plain(text)
        if event.anchor is not None:
            self.anchors[event.anchor] = (text, 1, len(text))
        self.put(text, event.start_mark.line, event.start_mark.column, 1, len(text))

    def alias(self, event: Any) -> None:
        """Put the value of an anchor again, within bounds."""
        mark = event.start_mark
        if event.anchor not in self.anchors:
            raise NotYamlError(f"found undefined alias '{event.anchor}'", mark.line, mark.column)
        known = self.anchors[event.anchor]
        if known is None:
            raise TooLargeError(mark.line)
        value, values, text = known
        self.aliased_values += values
        self.aliased_text += text
        if self.aliased_values > MAX_ALIASED_VALUES or self.aliased_text > MAX_ALIASED_TEXT:
            raise TooLargeError(mark.line)
        self.put(value, mark.line, mark.column, values, text)


def _bracketed_link(value: list[Any] | dict[str, Any]) -> Value:
    """`[[Note]]` without quotes is a list in a list to YAML; people mean the link."""
    if isinstance(value, FlowList) and len(value) == 1:
        inner = value[0]
        if isinstance(inner, FlowList) and len(inner) == 1 and isinstance(inner[0], Plain):
            return f"[[{inner[0]}]]"
    return value


def _at(mark: Any) -> tuple[int, int]:
    return (0, 0) if mark is None else (mark.line, mark.column)


def read_mapping(text: str) -> list[Entry] | None:
    """The entries of the mapping that a text stands for, in order, duplicates included.

    `None` when the text is one scalar or list; the empty list when it holds nothing.
    Raises `NotYamlError` and `TooLargeError`.
    """
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    reader = _Reader()
    documents = 0
    try:
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.ScalarEvent):
                reader.scalar(event)
            elif isinstance(event, yaml.MappingStartEvent):
                reader.open(event, {})
            elif isinstance(event, yaml.SequenceStartEvent):
                reader.open(event, FlowList() if event.flow_style else [])
            elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                reader.close(event)
            elif isinstance(event, yaml.AliasEvent):
                reader.alias(event)
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise NotYamlError("a second document", *_at(event.start_mark))
    except yaml.MarkedYAMLError as error:
        problem = str(error.problem or error.context or "not YAML")
        raise NotYamlError(problem, *_at(error.problem_mark or error.context_mark)) from error
    except yaml.YAMLError as error:
        raise NotYamlError("a character that YAML does not allow") from error
    if reader.root is None or isinstance(reader.root, Blank):
        return []
    return reader.entries if isinstance(reader.root, dict) else None
