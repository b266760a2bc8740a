"""The graph inside an answer of the MCP memory server: a dump of what a tool said, with its wrapping.

Such a dump is the graph itself, a result with `content` and `structuredContent`, one of its text
blocks, which hold the graph as JSON in a string, or the JSON-RPC message around the result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from graphmem.findings import Finding, finding
from graphmem.records import Place

from ._json_parts import Decoded, find, parts, place_within
from ._json_values import Scanner
from ._memory_server_records import Value
from ._memory_server_shapes import shape_of, type_of
from ._shapes import CONTAINERS, contained

_Locate = Callable[[int], Place]


class Answers:
    """Takes the objects of a graph out of what is around them."""

    def __init__(self, label: str, findings: list[Finding]) -> None:
        self._label = label
        self._findings = findings
        self._scanner = Scanner()

    def inside(self, value: Value) -> Iterator[Value] | None:
        """The objects of the graph in a value, each with its place; `None` when there is no graph in it."""
        said = value.said
        if not isinstance(said, dict) or shape_of(type_of(said), said) is not None:
            return None
        if not _may_hold(said):
            return None
        raw = value.raw()
        return self._inside(said, raw, lambda at: place_within(raw, value.place, at), inexact=False)

    def _inside(self, said: Any, raw: str, locate: _Locate, *, inexact: bool) -> Iterator[Value] | None:
        if isinstance(said, list):
            return self._elements(said, raw, locate, None, 0, inexact=inexact)
        if not isinstance(said, dict):
            return None
        if any(isinstance(said.get(key), list) for key in ("entities", "relations")):
            return self._graph(said, raw, locate, inexact=inexact)
        for key in ("structuredContent", "result"):
            if isinstance(said.get(key), dict):
                found = self._part(said[key], raw, locate, key, inexact=inexact)
                if found is not None:
                    return found
        if isinstance(said.get("content"), list):
            return self._blocks(said["content"], raw, locate, inexact=inexact)
        return self._text(said, raw, locate)

    def _part(
        self, said: Any, raw: str, locate: _Locate, *path: str | int, inexact: bool
    ) -> Iterator[Value] | None:
        part = find(raw, *path)
        assert part is not None
        return self._inside(
            said, raw[part.start : part.end], lambda at: locate(part.start + at), inexact=inexact
        )

    def _blocks(
        self, blocks: list[Any], raw: str, locate: _Locate, *, inexact: bool
    ) -> Iterator[Value] | None:
        found = [
            self._part(block, raw, locate, "content", number, inexact=inexact)
            for number, block in enumerate(blocks)
            if isinstance(block, dict)
        ]
        held = [one for one in found if one is not None]
        return (value for one in held for value in one) if held else None

    def _text(self, said: dict[str, Any], raw: str, locate: _Locate) -> Iterator[Value] | None:
        """The graph in a text block."""
        text, part = said.get("text"), find(raw, "text")
        if not isinstance(text, str) or part is None or not text.lstrip().startswith(("{", "[")):
            return None
        place = locate(part.start)
        start = len(text) - len(text.lstrip())
        self._scanner.odd.clear()
        try:
            held, _ = self._scanner.loose(text, start)
        except (StopIteration, json.JSONDecodeError, RecursionError):
            message = "the text of an answer is not JSON"
            self._findings.append(finding("bad-json", message, file=self._label, place=place))
            return None
        for rule, message, _ in self._scanner.odd:
            self._findings.append(finding(rule, message, file=self._label, place=place))
        characters = Decoded(raw[part.start : part.end])
        return self._inside(held, text, lambda at: locate(part.start + characters.index(at)), inexact=True)

    def _graph(self, said: dict[str, Any], raw: str, locate: _Locate, *, inexact: bool) -> Iterator[Value]:
        for part in parts(raw):
            key = part.key
            if isinstance(key, str) and key in CONTAINERS and isinstance(said[key], list):
                yield from self._elements(said[key], raw, locate, key, part.start, inexact=inexact)
            else:
                message = f"the key '{str(key)[:80]}' beside lists of records is not read"
                self._findings.append(
                    finding("unknown-shape", message, file=self._label, place=locate(part.start))
                )

    @staticmethod
    def _elements(
        listed: list[Any], raw: str, locate: _Locate, key: str | None, at: int, *, inexact: bool
    ) -> Iterator[Value]:
        for said, part in zip(listed, parts(raw, at), strict=True):
            text = raw[part.start : part.end]
            element = said if key is None else contained(key, said)
            yield Value(element, locate(part.start), lambda text=text: text, inexact=inexact)  # type: ignore[misc]


def _may_hold(said: dict[str, Any]) -> bool:
    """Whether an object can be an answer: it has lists of a graph or what answers are wrapped in."""
    if isinstance(said.get("content"), list) or (said.get("type") == "text" and "text" in said):
        return True
    return said.get("type") is None and any(
        isinstance(said.get(key), kind)
        for key, kind in (
            ("entities", list), ("relations", list), ("structuredContent", dict), ("result", dict)
        )
    )  # fmt: skip
