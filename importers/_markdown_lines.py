"""The grammar of one list item: `- [category] text #tag (context)` and `- predicate [[Target]]`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from ._markdown_inline import is_tag, wikilink_target

BULLET: Final = re.compile(r"([ \t]*)[-*+][ \t]+(?=\S)")
BLOCK_ID: Final = re.compile(r"(?:(?<=\s)|\A)\^([A-Za-z0-9-]+)[ \t]*\Z")
MAX_CATEGORY: Final = 64
MAX_TOKEN: Final = 40
MAX_QUOTED: Final = 100
MAX_WORDS: Final = 4

_CATEGORY: Final = re.compile(r"\[([^\[\]()]+)\](?:[ \t]+(\S.*)|\Z)")
_TIME: Final = re.compile(r"\d{1,2}:\d{2}")
_CONTEXT: Final = re.compile(r"(?:(?<=\s)|\A)\(([^()]+)\)[ \t]*\Z")
_LAST_TAGS: Final = re.compile(r"(?:(?<=\s)|\A)(#\S+)[ \t]*\Z")
_WIKILINK: Final = re.compile(r"\[\[([^\[\]]+)\]\]")
_COMMA: Final = re.compile(r"[ \t]*,[ \t]*(?=\[\[)")
_EMPHASIS: Final = re.compile(r"(\*\*|__|\*|_)(?=\S)(.+?)(?<=\S)\1:*\Z")
_QUOTED: Final = re.compile(r"[\"“]([^\"“”\[\]]+)[\"”]\Z")
_TOKEN: Final = re.compile(r"[^\W_](?:[\w./:-]*\w)?\Z")
_WORD: Final = re.compile(r"[^\W_](?:[\w-]*\w)?\Z")


@dataclass(slots=True)
class Tail:
    """What stands at the end of a list item, cut off its text."""

    text: str
    tags: list[str] = field(default_factory=list)
    context: str | None = None
    block_id: str | None = None


@dataclass(slots=True)
class FactLine:
    """A list fact."""

    category: str
    tail: Tail


@dataclass(slots=True)
class RelationLine:
    """A relation: predicate, "" for a bare link, and the targets as written."""

    predicate: str
    targets: list[str]
    tail: Tail


def cut_tail(text: str, masked: str) -> Tail:
    """The text without its block id and the tags and one parenthesised context at its end."""
    tail = Tail("")
    end = len(masked.rstrip())
    match = BLOCK_ID.search(text[:end])
    if match is not None:
        tail.block_id = match[1]
        end = len(masked[: match.start()].rstrip())
    while True:
        match = _LAST_TAGS.search(masked[:end])
        if match is not None:
            found = match[1].split("#")[1:]
            if all(map(is_tag, found)):
                tail.tags = [one.strip("/") for one in found] + tail.tags
                end = len(masked[: match.start()].rstrip())
                continue
        match = _CONTEXT.search(masked[:end])
        if match is None or tail.context is not None:
            break
        tail.context = text[match.start(1) : match.end(1)].strip()
        end = len(masked[: match.start()].rstrip())
    tail.text = text[:end]
    return tail


def is_category(word: str) -> bool:
    """Whether `[word]` names a category: not a task mark, time, number, callout, footnote or field."""
    word = word.strip()
    return (
        1 < len(word) <= MAX_CATEGORY
        and word[0] not in "!^"
        and "::" not in word
        and not _TIME.match(word)
        and any(sign.isalpha() for sign in word)
    )


def fact_line(text: str, masked: str) -> FactLine | None:
    """The fact that a list item states after its bullet, or `None`."""
    match = _CATEGORY.match(masked)
    if match is None or match[2] is None or not is_category(match[1]):
        return None
    start = match.start(2)
    tail = cut_tail(text[start:], masked[start:])
    if not tail.text:
        block_id = tail.block_id
        whole = text[start:]
        tail = Tail(BLOCK_ID.sub("", whole).strip() if block_id else whole.strip(), block_id=block_id)
    if not tail.text:
        return None
    return FactLine(text[match.start(1) : match.end(1)].strip(), tail)


def relation_line(text: str, masked: str) -> RelationLine | None:
    """The relation that a list item states after its bullet, or `None`."""
    first = _WIKILINK.search(masked)
    if first is None or masked[: first.start()].endswith("!"):
        return None
    predicate = predicate_of(text[: first.start()])
    if predicate is None:
        return None
    targets: list[str] = []
    link: re.Match[str] | None = first
    end = first.end()
    while link is not None:
        target = wikilink_target(text[link.start(1) : link.end(1)])
        if not target:
            return None
        targets.append(target)
        end = link.end()
        comma = _COMMA.match(masked, end)
        link = _WIKILINK.match(masked, comma.end()) if comma else None
    if not masked[end:].strip():
        return RelationLine(predicate, targets, Tail(""))
    if masked[end] not in " \t":
        return None
    tail = cut_tail(text[end:], masked[end:])
    return None if tail.text.strip() else RelationLine(predicate, targets, tail)


def predicate_of(prefix: str) -> str | None:
    """The predicate that stands before a link: "" for none, `None` when the words are prose.

    A predicate is one word, several words in quotes, or up to four words in small letters;
    emphasis around it and colons after it do not belong to it.
    """
    clean = prefix.strip()
    if not clean:
        return ""
    if "\\" in clean or len(clean) > 2 * MAX_QUOTED:
        return None
    clean = clean.rstrip(":").rstrip()
    emphasis = _EMPHASIS.match(clean)
    if emphasis is not None:
        clean = emphasis[2].rstrip(":").strip()
    quoted = _QUOTED.match(clean)
    if quoted is not None:
        words = " ".join(quoted[1].split())
        return words if 0 < len(words) <= MAX_QUOTED and any(map(str.isalpha, words)) else None
    parts = clean.split()
    if len(parts) == 1:
        sound = len(clean) <= MAX_TOKEN and _TOKEN.match(clean) and any(map(str.isalpha, clean))
        return clean if sound else None
    if len(parts) <= MAX_WORDS and clean == clean.lower() and all(_WORD.match(part) for part in parts):
        return " ".join(parts) if any(map(str.isalpha, clean)) else None
    return None
