"""Whether the start of a YAML text shows records of ours, found by its lines alone, without a parser."""

from __future__ import annotations

import re
from typing import Final

from graphmem.reading import HEAD_SIZE

from ._shapes import CONTAINERS, is_canonical, is_start_of_record

_KEY: Final = re.compile(r"""( *(?:- +)*)(?:"(\w+)"|'(\w+)'|([A-Za-z_]\w*))[ \t]*:(?:[ \t]+(.*))?$""")
_FLOW_KEY: Final = re.compile(r"""[{,]\s*["']?([A-Za-z_]\w*)["']?\s*:\s*["']?([\w-]*)""")
_TRIPLE: Final = re.compile(r"(?:- +)?\[[^\[\]{},]+,[^\[\]{},]+,[^\[\]{},]+\]\s*$")
_MARKER: Final = re.compile(r"(?:---|\.\.\.)(?: |$)")
_MOST_LINES: Final = 400


def recognised(head: bytes, named: bool) -> str | None:
    """Why the text is ours, or `None`.

    In a file whose name says that it is YAML (`named`) lists of three are taken for triples, text that
    could be JSON is judged too, a later document may show what a damaged first one does not, and of a
    first record that is longer than what is looked at the keys seen so far decide.
    """
    text = head.decode("utf-8", "replace").lstrip("\ufeff")
    if not named and text.lstrip()[:1] in ("{", "[") and '"' in text[:200]:
        return None  # JSON, which has its own reader
    documents = _documents(text)
    for document in documents:
        why = _document(document, named)
        if why is not None or not named:
            return why
    if len(documents) > 1 or (len(head) < HEAD_SIZE and text.count("\n") < _MOST_LINES):
        return None
    type_, keys = _first_keys(documents[0])
    return "YAML mappings with the keys of records" if not type_ and is_start_of_record(keys) else None


def _documents(text: str) -> list[list[str]]:
    """The lines of each document that say something; at least one document."""
    found: list[list[str]] = [[]]
    for line in text.split("\n")[:_MOST_LINES]:
        line = line.rstrip()
        if _MARKER.match(line):
            if found[-1]:
                found.append([])
            line = line[4:]
        if line and not line.lstrip().startswith("#") and not (line.startswith("%") and not found[-1]):
            found[-1].append(line)
    return found


def _document(lines: list[str], named: bool) -> str | None:
    if not lines:
        return None
    start = lines[0].lstrip()
    if _TRIPLE.match(start):
        return "YAML lists of subject, predicate and object" if named else None
    if start.removeprefix("- ").lstrip().startswith("{"):
        flow = " ".join(lines).partition("}")[0]
        pairs = dict(_FLOW_KEY.findall(flow))
        return _judged(pairs.get("type"), list(pairs))
    type_, keys = _first_keys(lines)
    if keys and keys[0] in CONTAINERS and len(lines) > 1:
        key = keys[0]
        inner = lines[1].lstrip()
        inner_type, inner_keys = _first_keys(lines[1:])
        if inner.startswith("- [") and _TRIPLE.match(inner):
            return f"a YAML list of {key}"
        return f"a YAML list of {key}" if is_canonical(inner_type or CONTAINERS[key], inner_keys) else None
    return _judged(type_, keys)


def _first_keys(lines: list[str]) -> tuple[str | None, list[str]]:
    """The `type` and the keys of the first block mapping that starts on the first line."""
    type_: str | None = None
    keys: list[str] = []
    column = -1
    for line in lines:
        match = _KEY.match(line)
        left = len(match[1]) if match else len(line) - len(line.lstrip(" "))
        if column < 0:
            if match is None:
                break
            column = left
        elif left < column or (match is not None and left == column and "-" in match[1]):
            break
        if match is not None and left == column:
            key = match[2] or match[3] or match[4]
            keys.append(key)
            if key == "type":
                type_ = (match[5] or "").split(" #")[0].strip().strip("\"'")
    return type_, keys


def _judged(type_: str | None, keys: list[str]) -> str | None:
    if not keys or not is_canonical(type_ or None, keys):
        return None
    return f"YAML mappings of type '{type_}'" if type_ else "YAML mappings with subject, predicate and object"
