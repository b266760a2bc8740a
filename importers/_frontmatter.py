"""The metadata block at the top of a note: strict YAML first, then key by key, then line by line."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field
from typing import Any, Final

from graphmem.findings import Finding, finding

from ._frontmatter_yaml import Blank, Entry, NotYamlError, TooLargeError, Value, read_mapping
from ._note_text import NoteText

_FENCE: Final = re.compile(r"---[ \t]*\Z")
_END: Final = re.compile(r"(?:---|\.\.\.)[ \t]*\Z")
_PLAIN_KEY: Final = r"""(?:[^\s#\-:'"\[\]{}>|*&!%@`,?]|-[^\s:])[^:]*"""
_KEY: Final = re.compile(rf"""("[^"]*"[ \t]*|'[^']*'[ \t]*|{_PLAIN_KEY}):(?:[ \t]+|\Z)""")
_ITEM: Final = re.compile(r"[ \t]*-(?:[ \t]+|\Z)")
_BLOCK_TEXT: Final = re.compile(r"([|>])[+-]?\d?[ \t]*\Z")
_TAG_AS_COMMENT: Final = re.compile(r"#+\w")
_LISTS: Final = frozenset(("tags", "tag", "aliases", "alias"))


@dataclass(slots=True)
class Frontmatter:
    """What the block says, where the body starts, and what was wrong.

    `refused` is the finding that makes the whole note unusable.
    """

    values: dict[str, Value] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    body_start: int = 0
    findings: list[Finding] = field(default_factory=list)
    refused: Finding | None = None


@dataclass(slots=True)
class _Block:
    """The lines of one block, without its fences: [start, end) of the note's lines."""

    note: NoteText
    label: str
    start: int
    end: int
    findings: list[Finding] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        return self.note.lines[self.start : self.end]

    def report(self, rule: str, message: str, line: int, column: int = 0) -> None:
        """Add a finding; `line` counts from the start of the block."""
        at = min(self.start + line, len(self.note.lines) - 1)
        place = self.note.place(at, column)
        self.findings.append(
            finding(rule, message, file=self.label, place=place, excerpt=self.note.lines[at])
        )


def find_block(lines: list[str], at: int = 0) -> tuple[int, int] | None:
    """The range of a block's inner lines when a fence stands at line `at` and is closed, else `None`."""
    if at >= len(lines) or not _FENCE.match(lines[at]):
        return None
    for i in range(at + 1, len(lines)):
        if _END.match(lines[i]):
            return at + 1, i
    return None


def looks_like_metadata(lines: list[str]) -> bool:
    """Whether lines are keys with values, lists and comments, and start with a key."""
    inner = [line for line in lines if line.strip() and not line.startswith("#")]
    if not inner or not _KEY.match(inner[0]):
        return False
    return all(_KEY.match(line) or _ITEM.match(line) or line[0] in " \t" for line in inner)


def read_frontmatter(note: NoteText, label: str) -> Frontmatter:
    """The frontmatter of a note; empty, with the body at line 0, when it has none."""
    front = Frontmatter()
    found = find_block(note.lines)
    if found is None:
        if _FENCE.match(note.lines[0]) and len(note.lines) > 1 and _KEY.match(note.lines[1]):
            message = "the frontmatter that starts here is never closed"
            front.findings.append(finding("frontmatter-unclosed", message, file=label, place=note.place(0)))
        return front
    block = _Block(note, label, *found)
    entries = _guarded(front, block)
    if entries is None:
        return front
    front.body_start = block.end + 1
    front.findings += block.findings
    _take(front, entries, block)
    if front.refused is None:
        _second_block(front, note, label)
    return front


def _guarded(front: Frontmatter, block: _Block) -> list[Entry] | None:
    """The entries of a block; sets `front.refused` when aliases would expand it beyond reason."""
    try:
        return _entries(block)
    except TooLargeError as error:
        message = "the frontmatter's aliases expand to an unreasonable size; the note was not imported"
        place = block.note.place(block.start + error.line)
        front.refused = finding("yaml-alias-bomb", message, file=block.label, place=place)
        return None


def _entries(block: _Block) -> list[Entry] | None:
    """The entries of a block, or `None` when it is not metadata at all but text between two rules."""
    lines = block.lines
    try:
        entries = read_mapping("\n".join(lines))
    except NotYamlError:
        if not any(_KEY.match(line) for line in lines):
            return None
        return _by_key(lines, block, 0)
    if entries is not None:
        _tags_written_as_comments(entries, lines)
    return entries


def _tags_written_as_comments(entries: list[Entry], lines: list[str]) -> None:
    """`tags: #coffee` is a comment to YAML; the writer meant the value."""
    for entry in entries:
        if isinstance(entry.value, Blank) and entry.line < len(lines):
            match = _KEY.match(lines[entry.line])
            rest = lines[entry.line][match.end() :] if match else ""
            if _TAG_AS_COMMENT.match(rest):
                entry.value = rest.strip()


def _by_key(lines: list[str], block: _Block, offset: int) -> list[Entry]:
    """Each top-level key with its lines read on its own, so that a fault stays where it is."""
    starts = [i for i, line in enumerate(lines) if _KEY.match(line)]
    if any(line.strip() and not line.lstrip().startswith("#") for line in lines[: starts[0]]):
        block.report("frontmatter-fallback", "text before the first key was left out", offset)
    entries: list[Entry] = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        entries += _one_key(lines[start:end], block, offset + start)
    return entries


def _one_key(lines: list[str], block: _Block, offset: int) -> list[Entry]:
    """The entry of one key: as YAML, as YAML with its tabs made spaces, or as written."""
    detabbed = [_without_tabs(line) for line in lines]
    problem: NotYamlError | None = None
    for attempt in [lines] if detabbed == lines else [lines, detabbed]:
        try:
            read = read_mapping("\n".join(attempt))
        except NotYamlError as error:
            problem = problem or error
            continue
        if read is None:
            break
        if attempt is not lines:
            tab = next(i for i, line in enumerate(lines) if line != detabbed[i])
            block.report("frontmatter-tab", "a tab indents this line; it was read as spaces", offset + tab)
        _tags_written_as_comments(read, attempt)
        return [Entry(one.key, one.value, one.line + offset) for one in read]
    key, value = _as_written(detabbed, block, offset)
    why = problem.problem if problem else "not a key with a value"
    at = offset + min(problem.line, len(lines) - 1) if problem else offset
    message = f"'{key[:80]}' is not YAML ({why}); its value was read as written"
    block.report("frontmatter-fallback", message, at, problem.column if problem else 0)
    return [Entry(key, value, offset)]


def _without_tabs(line: str) -> str:
    rest = line.lstrip(" \t")
    return line[: len(line) - len(rest)].replace("\t", "  ") + rest


def _as_written(lines: list[str], block: _Block, offset: int) -> tuple[str, Value]:
    """A key and its value where YAML gives up: text, a list of texts, or a nested mapping."""
    match = _KEY.match(lines[0])
    assert match is not None
    key = _unquoted(match[1])
    rest = lines[0][match.end() :].strip()
    more = lines[1:]
    while more and not more[-1].strip():
        more = more[:-1]
    style = _BLOCK_TEXT.match(rest)
    if style is not None:
        text = textwrap.dedent("\n".join(more))
        return key, text if style[1] == "|" else " ".join(text.split())
    if not rest and more:
        return key, _nested(more, block, offset + 1)
    if rest.startswith("[") and rest.endswith("]") and not rest.startswith("[["):
        return key, [_unquoted(item) for item in _items(rest[1:-1])]
    return key, _unquoted(" ".join([rest, *(line.strip() for line in more if line.strip())]))


def _nested(lines: list[str], block: _Block, offset: int) -> Value:
    """The lines below a key without a value of its own."""
    first = next(line for line in lines if line.strip())
    if _ITEM.match(first):
        items: list[Any] = []
        for line in lines:
            match = _ITEM.match(line)
            if match is not None:
                items.append(line[match.end() :].strip())
            elif line.strip():
                items[-1] = f"{items[-1]} {line.strip()}".strip()
        return [_unquoted(item) for item in items]
    inner = textwrap.dedent("\n".join(lines)).split("\n")
    if _KEY.match(inner[0]):
        return {entry.key: entry.value for entry in reversed(_by_key(inner, block, offset))}
    return " ".join(line.strip() for line in lines if line.strip())


def _items(text: str) -> list[str]:
    """The parts of a bracketed list, cut at commas outside quotes and links."""
    parts = re.findall(r"""(?:"[^"]*"|'[^']*'|\[\[.*?\]\]|[^,])+""", text)
    return [part.strip() for part in parts if part.strip()]


def _unquoted(text: str) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'" and text[0] not in text[1:-1]:
        return text[1:-1]
    return text


def _take(front: Frontmatter, entries: list[Entry], block: _Block) -> None:
    """Put entries into the frontmatter; of a key given twice, lists are united and else the first wins."""
    for entry in entries:
        line = block.start + entry.line
        if entry.key not in front.values:
            front.values[entry.key] = entry.value
            front.lines[entry.key] = line
            continue
        message = (
            f"'{entry.key[:80]}' is given on line {front.lines[entry.key] + 1} and again on line {line + 1}"
        )
        front.values[entry.key] = _united(entry.key, front.values[entry.key], entry.value)
        place = block.note.place(line)
        front.findings.append(finding("duplicate-key", message, file=block.label, place=place))


def _united(key: str, first: Value, second: Value) -> Value:
    if not (isinstance(first, list) or isinstance(second, list) or key.lower() in _LISTS):
        return first if not isinstance(first, Blank) else second
    united: list[Any] = []
    for value in (first, second):
        for item in value if isinstance(value, list) else [value]:
            if item not in united and not isinstance(item, Blank):
                united.append(item)
    return united


def _second_block(front: Frontmatter, note: NoteText, label: str) -> None:
    """Unite a second block, which some tools prepend at every rewrite, with the first."""
    at = front.body_start
    while at < len(note.lines) and not note.lines[at].strip():
        at += 1
    found = find_block(note.lines, at)
    if found is None:
        return
    block = _Block(note, label, *found)
    if not looks_like_metadata(block.lines):
        return
    entries = _guarded(front, block)
    if not entries:
        return
    front.body_start = block.end + 1
    front.findings += block.findings
    message = "a second frontmatter block starts here"
    front.findings.append(finding("second-frontmatter", message, file=label, place=note.place(at)))
    for entry in entries:
        if entry.key in front.values:
            front.values[entry.key] = _united(entry.key, front.values[entry.key], entry.value)
        else:
            front.values[entry.key] = entry.value
            front.lines[entry.key] = block.start + entry.line
