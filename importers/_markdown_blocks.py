"""The body of a note as blocks: the text of each section, list facts, and relation lines."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field
from typing import Final

from graphmem.names import exact

from ._markdown_inline import Link, fields, links, tags
from ._markdown_lines import BLOCK_ID, BULLET, FactLine, RelationLine, fact_line, relation_line
from ._markdown_mask import COMMENT, Masked, mask

TEXT: Final = "text"
FACT: Final = "fact"
RELATION: Final = "relation"

_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?=[ \t]|\Z)")
_CLOSING: Final = re.compile(r"(?:(?<=[ \t])|\A)#+\Z")
_UNDERLINE: Final = re.compile(r" {0,3}(=+|-{3,})[ \t]*\Z")
_STRUCTURE: Final = re.compile(
    r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)]|#{1,6})(?:[ \t]|\Z)|>|\||`{3}|~{3})",
)
_RULE: Final = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})\Z")
EXPORTED_ID: Final = re.compile(r"g-[0-9a-f]{8,64}(?:-\d+)?\Z")
_MAX_DEPTH: Final = 40
_ONLY_COMMENT: Final = re.compile(rf"[\s{COMMENT}]*\Z")


@dataclass(slots=True)
class Block:
    """One piece of the body. `line` and `column` count from 0, `raw` is the text as it stands."""

    kind: str
    line: int
    column: int
    title: str | None
    raw: str
    content: str = ""
    category: str | None = None
    predicate: str = ""
    targets: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    context: str | None = None
    block_id: str | None = None
    links: list[Link] = field(default_factory=list)


@dataclass(slots=True)
class Field:
    """A `key:: value` field of the body."""

    key: str
    value: str
    line: int


@dataclass(slots=True)
class Body:
    """What a note's body holds, in its order."""

    blocks: list[Block] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)
    heading: str | None = None
    heading_links: list[Link] = field(default_factory=list)


def parse_body(lines: list[str], name: str | None = None, *, exported: bool = False) -> Body:
    """The blocks of a body; line numbers count from the first of `lines`.

    `name` is the note's name where the body does not decide it: a first heading of level 1 that only
    repeats the name is not part of any section's title. In an `exported` note each block id of an
    export closes the text before it as one block.
    """
    return _Parser(lines, mask(lines), name, exported=exported).run()


def _indent(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip(" "))


class _Parser:
    def __init__(self, lines: list[str], masked: Masked, name: str | None, *, exported: bool) -> None:
        self.lines = lines
        self.name = name
        self.masked = masked.lines
        self.code = masked.code
        self.exported = exported
        self.body = Body()
        self._path: list[tuple[int, str]] = []
        self._tags: list[str] = []
        self._chunks: list[list[int]] = [[]]
        self._depth = 0

    def run(self) -> Body:
        """Read all lines."""
        i = 0
        while i < len(self.lines):
            i = self._step(i)
        self._flush()
        self.body.blocks.sort(key=lambda block: block.line)
        return self.body

    def _step(self, i: int) -> int:
        """Read what starts at line i and return the line after it."""
        if self.code[i]:
            self._chunks[-1].append(i)
            return i + 1
        after = self._heading(i)
        if after is not None:
            return after
        item = self._item(i)
        if item is not None:
            return self._list_item(i, item)
        self._field(i)
        self._chunks[-1].append(i)
        own = self._own_id(i)
        if own is not None:
            self._flush(own)
        return i + 1

    # ---- headings ----------------------------------------------------------------------------------

    def _heading(self, i: int) -> int | None:
        """Take a heading that starts at line i; the line after it, or `None`."""
        match = _HEADING.match(self.masked[i])
        if match is not None:
            text = self.lines[i][match.end() :].strip(" \t")
            self._open(i, len(match[1]), _CLOSING.sub("", text).rstrip(" \t"))
            return i + 1
        if self._is_underlined(i):
            level = 1 if "=" in self.masked[i + 1] else 2
            self._open(i, level, self.lines[i].strip())
            return i + 2
        return None

    def _is_underlined(self, i: int) -> bool:
        """Whether a one-line paragraph and the line of `=` or `-` below it are a heading."""
        if i + 1 >= len(self.lines) or not _UNDERLINE.match(self.masked[i + 1]) or self.code[i + 1]:
            return False
        line = self.masked[i]
        if not line.strip() or _STRUCTURE.match(line) or _RULE.match(line) or _indent(line) > 3:
            return False
        return i == 0 or not self.lines[i - 1].strip() or bool(_HEADING.match(self.masked[i - 1]))

    def _open(self, i: int, level: int, text: str) -> None:
        self._flush()
        path_text = text
        if self.body.heading is None:
            self.body.heading = text
            if level == 1 and self.name in (None, exact(text)):
                path_text = ""
        while self._path and self._path[-1][0] >= level:
            self._path.pop()
        self._path.append((level, path_text))
        self._tags = list(tags(self.masked[i].lstrip().lstrip("#")))
        self.body.heading_links += links(self.lines[i], self.masked[i], i)

    def _title(self) -> str | None:
        return " > ".join(text for _, text in self._path if text) or None

    # ---- list items --------------------------------------------------------------------------------

    def _item(self, i: int) -> FactLine | RelationLine | None:
        """The fact or relation of the list item at line i."""
        match = BULLET.match(self.masked[i])
        if match is None or self.code[i]:
            return None
        text, masked = self.lines[i][match.end() :], self.masked[i][match.end() :]
        return fact_line(text, masked) or relation_line(text, masked)

    def _list_item(self, i: int, item: FactLine | RelationLine) -> int:
        if self.exported:
            self._flush()
        elif self._chunks[-1]:
            self._chunks.append([])
        self._field(i)
        below, after = self._below(i)
        bullet = BULLET.match(self.lines[i])
        tail = item.tail
        rest = textwrap.dedent("\n".join(self.lines[j] for j in below))
        block = Block(
            FACT if isinstance(item, FactLine) else RELATION,
            i,
            len(bullet[1]) if bullet else 0,
            self._title(),
            "\n".join(self.lines[j] for j in (i, *below)),
            tags=[*tail.tags, *self._tags],
            context=tail.context,
            block_id=tail.block_id,
        )
        if isinstance(item, FactLine):
            block.category = item.category
            block.content = f"{tail.text}\n{rest}" if below else tail.text
            self._inline(block, (i, *below))
        else:
            block.predicate, block.targets, block.content = item.predicate, item.targets, rest
            self._inline(block, below)
        self.body.blocks.append(block)
        return after

    def _below(self, i: int) -> tuple[list[int], int]:
        """The lines that belong to the item at line i, and the line after them.

        Those are the lines indented more than its bullet and the unindented rest of its paragraph;
        facts and relations among them stand for themselves.
        """
        own: list[int] = []
        indent = _indent(self.lines[i])
        j = i + 1
        in_paragraph = True
        while j < len(self.lines):
            if not self.lines[j].strip():
                following = next((k for k in range(j, len(self.lines)) if self.lines[k].strip()), None)
                if following is None or _indent(self.lines[following]) <= indent:
                    break
                own += range(j, following)
                j, in_paragraph = following, False
            elif _indent(self.lines[j]) <= indent:
                if not in_paragraph or not self._is_plain(j):
                    break
                own.append(j)
                j += 1
            else:
                item = self._item(j) if self._depth < _MAX_DEPTH else None
                if item is not None:
                    self._depth += 1
                    j, in_paragraph = self._list_item(j, item), False
                    self._depth -= 1
                    continue
                self._field(j)
                own.append(j)
                j += 1
        while own and not self.lines[own[-1]].strip():
            own.pop()
        return own, j

    def _is_plain(self, j: int) -> bool:
        line = self.masked[j]
        if self.code[j] or _STRUCTURE.match(line) or _RULE.match(line) or self._is_underlined(j):
            return False
        if next(fields(self.lines[j], line), None) is not None:
            return False
        return self._own_id(j) is None

    # ---- text --------------------------------------------------------------------------------------

    def _own_id(self, i: int) -> str | None:
        if not self.exported:
            return None
        match = BLOCK_ID.search(self.lines[i])
        return match[1] if match and EXPORTED_ID.match(match[1]) else None

    def _field(self, i: int) -> None:
        for key, value in fields(self.lines[i], self.masked[i]):
            self.body.fields.append(Field(key, value, i))

    def _inline(self, block: Block, lines: tuple[int, ...] | list[int]) -> None:
        """Add the tags and links of some lines to a block."""
        for j in lines:
            if self.code[j]:
                continue
            block.tags += tags(self.masked[j])
            block.links += links(self.lines[j], self.masked[j], j)
        block.tags = list(dict.fromkeys(block.tags))

    def _flush(self, block_id: str | None = None) -> None:
        """Close the text of the section so far as one block, unless there is none but comments."""
        chunks = [chunk for chunk in map(self._trimmed, self._chunks) if chunk]
        self._chunks = [[]]
        held = [j for chunk in chunks for j in chunk]
        if all(_ONLY_COMMENT.match(self.masked[j]) for j in held):
            return
        texts = ["\n".join(self.lines[j] for j in chunk) for chunk in chunks]
        if block_id is not None:
            texts[-1] = BLOCK_ID.sub("", texts[-1]).rstrip(" \t").rstrip("\n")
        content = "\n\n".join(text for text in texts if text.strip())
        if not content and block_id is None:
            return
        first = held[0]
        column = len(self.lines[first]) - len(self.lines[first].lstrip())
        block = Block(TEXT, first, column, self._title(), content, content, block_id=block_id)
        block.tags = list(self._tags)
        self._inline(block, held)
        self.body.blocks.append(block)

    def _trimmed(self, chunk: list[int]) -> list[int]:
        start, end = 0, len(chunk)
        while start < end and not self.lines[chunk[start]].strip():
            start += 1
        while end > start and not self.lines[chunk[end - 1]].strip():
            end -= 1
        return chunk[start:end]
