"""How one memory or relation is shown in a note, and what of it the shown text says exactly."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

LINE: Final = "line"
TEXT: Final = "text"
FENCE: Final = "fence"
MAX_LINE: Final = 400
DEFAULT_TYPE: Final = "observation"

Item = dict[str, Any]
ShownLink = Callable[[Any, Item], "tuple[str, str] | None"]
"""From a reference and its record to the link and its target, `None` where it cannot be shown."""

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_OPENS: Final = re.compile(r"<!--|%%|\$\$")
_TYPE: Final = re.compile(r"[^\W_](?:[\w ./+-]*[\w.+])\Z")
_TAG_SIGNS: Final = frozenset("0123456789-_/")
_CONTEXT: Final = re.compile(r"[\w,.;:!?'\"&=@ -]*[\w,.;!?]\Z")
_LIKE_A_TAIL: Final = re.compile(r"(?:\A|\s)(?:#\S+|\([^()]*\)|\^[A-Za-z0-9-]+)\s*\Z|\\\Z")
_LIKE_A_BLOCK_ID: Final = re.compile(r"(?:\A|\s)\^[A-Za-z0-9-]+\s*\Z")
_STRUCTURE: Final = re.compile(
    r" {0,3}#{1,6}(?:\s|\Z)|\s*(?:=+|-+|_+)\s*\Z|\s*[-*+]\s.*\[|.*(?:`{3}|~{3})"
    r"|.*(?:\A|\s)\^[A-Za-z0-9-]+\s*\Z"
)
_STARTS_A_BLOCK: Final = re.compile(r"(?:[-*+=_|>#~]|\d+[.)])")
_ONE_WORD: Final = re.compile(r"[^\W_](?:[\w/-]*\w)?\Z")
_SOME_WORDS: Final = re.compile(r"[\w/.-]+(?: [\w/.:-]+)*\Z")
_MAX_WORD: Final = 40
_MAX_WORDS: Final = 100


@dataclass(slots=True)
class Shown:
    """An item as a note shows it: its lines, its heading, and its entry in the `gmem` block."""

    lines: list[str]
    title: str | None
    entry: dict[str, Any]
    kind: str


@dataclass(slots=True)
class Ids:
    """Block ids for the items of one note: a digest of the item's id, longer where two would meet."""

    taken: set[str] = field(default_factory=set)

    def next(self, item: Item) -> str:
        """The block id of an item."""
        key = item.get("id") or json.dumps(item, sort_keys=True)
        digest = hashlib.sha256(str(key).encode("utf-8", "surrogatepass")).hexdigest()
        for length in (8, 16, 32, 64):
            block_id = f"g-{digest[:length]}"
            if block_id not in self.taken:
                break
        else:
            block_id = f"g-{digest}-{len(self.taken)}"
        self.taken.add(block_id)
        return block_id


def digest_of(value: Any) -> str:
    """A short digest of a JSON value."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def heading(text: str | None) -> str | None:
    """A title as a heading can show it; `None` when nothing of it is left."""
    if text is None:
        return None
    clean = _OPENS.sub(" ", _CONTROL.sub(" ", text)).replace("`", "'")
    clean = " ".join(clean.split()).rstrip("#").strip()
    return clean if clean and not _OPENS.search(clean) else None


def _is_one_line(text: str) -> bool:
    return not ("\n" in text or "\t" in text or _CONTROL.search(text) or _OPENS.search(text))


# ---- memories ---------------------------------------------------------------------------------------


def shown_memory(item: Item, subject: Item, ids: Ids, note_tags: frozenset[str] = frozenset()) -> Shown:
    """A memory: a list fact, the text of a section, or, where that text would be read as markup, a fence.

    `note_tags`, which stand in the frontmatter, are not repeated on each fact.
    """
    content: str = item["content"]
    title = heading(item.get("title"))
    block_id = ids.next(item)
    seen: dict[str, Any] = {"title": title}
    if _fits_a_line(item, title):
        line, verbatim = _fact(item, block_id, seen, note_tags)
        return _memory(item, subject, [line], line, title, LINE, verbatim, block_id, seen)
    if _fits_as_text(content):
        lines = [*content.split("\n"), "", f"^{block_id}"]
        return _memory(item, subject, lines, content, title, TEXT, True, block_id, seen)
    visible = _CONTROL.sub(lambda match: chr(0x2400 + min(ord(match[0]), 0x21)), content)
    longest = max((len(run) for run in re.findall(r"`+", visible)), default=0)
    fence = "`" * max(3, longest + 1)
    raw = f"{fence}text\n{visible}\n{fence}"
    lines = [*raw.split("\n"), "", f"^{block_id}"]
    return _memory(item, subject, lines, raw, title, FENCE, visible == content, block_id, seen)


def _memory(
    item: Item,
    subject: Item,
    lines: list[str],
    raw: str,
    title: str | None,
    shown: str,
    verbatim: bool,
    block_id: str,
    seen: dict[str, Any],
) -> Shown:
    record = dict(item)
    if verbatim:
        del record["content"]
    if record.get("about") == [subject]:
        del record["about"]
    entry = {"at": block_id, "as": shown, "digest": digest_of([title, raw]), "seen": seen, "record": record}
    return Shown(lines, title, entry, shown)


def _fits_a_line(item: Item, title: str | None) -> bool:
    content: str = item["content"]
    type_: str = item.get("memory_type") or DEFAULT_TYPE
    if title is not None and type_ == DEFAULT_TYPE:
        return False
    sound = 1 < len(type_) <= 64 and _TYPE.match(type_) and any(map(str.isalpha, type_))
    return bool(sound and content.strip() and len(content) <= MAX_LINE and _is_one_line(content))


def _fact(item: Item, block_id: str, seen: dict[str, Any], note_tags: frozenset[str]) -> tuple[str, bool]:
    """The list item of a memory, and whether its content reads back exactly."""
    content: str = item["content"]
    parts = [f"- [{item.get('memory_type') or DEFAULT_TYPE}] {content.strip()}"]
    tags = [tag for tag in item.get("tags", []) if _is_tag(tag) and tag not in note_tags]
    parts += [f"#{tag}" for tag in tags]
    if tags:
        seen["tags"] = tags
    context = _shown_context(item)
    if context is not None:
        parts.append(f"({context})")
        seen["context"] = context
    verbatim = content == content.strip() and not _LIKE_A_TAIL.search(content)
    return " ".join([*parts, f"^{block_id}"]), verbatim


def _is_tag(tag: str) -> bool:
    """Whether `#tag` reads back as this tag."""
    signs = all(sign.isalpha() or sign in _TAG_SIGNS for sign in tag)
    return signs and any(map(str.isalpha, tag)) and tag == tag.strip("/")


def _shown_context(item: Item) -> str | None:
    context = item.get("properties", {}).get("context")
    sound = isinstance(context, str) and _CONTEXT.match(context) and context == context.strip()
    return context if sound and isinstance(context, str) else None


def _fits_as_text(content: str) -> bool:
    """Whether a content can stand as paragraphs: nothing in it is structure, its ends are not blank."""
    if not content.strip() or _CONTROL.search(content) or _OPENS.search(content):
        return False
    lines = content.split("\n")
    if content[0].isspace() or not lines[-1].strip():
        return False
    return not any(_STRUCTURE.match(line) for line in lines)


# ---- relations --------------------------------------------------------------------------------------


def shown_relation(item: Item, subject: Item, ids: Ids, link: ShownLink) -> Shown | None:
    """A relation as a list item with its sentence below; `None` where predicate or object refuse."""
    predicate = _shown_predicate(item["predicate"])
    target = link(item["object"], item)
    if predicate is None or target is None:
        return None
    block_id = ids.next(item)
    seen: dict[str, Any] = {"target": target[1]}
    parts = [f"- {predicate} {target[0]}"]
    context = _shown_context(item)
    if context is not None:
        parts.append(f"({context})")
        seen["context"] = context
    lines = [" ".join([*parts, f"^{block_id}"])]
    fact = item.get("fact")
    if isinstance(fact, str) and _fits_below(fact):
        lines.append(f"  {fact}")
        seen["fact"] = fact
    record = dict(item)
    if record["subject"] == subject:
        del record["subject"]
    digest = digest_of([None, "\n".join(lines)])
    entry = {"at": block_id, "as": LINE, "digest": digest, "seen": seen, "record": record}
    return Shown(lines, None, entry, "relation")


def _shown_predicate(predicate: str) -> str | None:
    if not any(map(str.isalpha, predicate)):
        return None
    if len(predicate) <= _MAX_WORD and _ONE_WORD.match(predicate):
        return predicate
    if len(predicate) <= _MAX_WORDS and _SOME_WORDS.match(predicate):
        return f'"{predicate}"'
    return None


def _fits_below(fact: str) -> bool:
    if not fact or fact != fact.strip() or not _is_one_line(fact) or "`" in fact:
        return False
    return not _STARTS_A_BLOCK.match(fact) and not _LIKE_A_BLOCK_ID.search(fact)
