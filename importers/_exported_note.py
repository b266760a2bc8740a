"""Notes that graphmem exported: the `gmem` block of the frontmatter, and what became of its items.

The block is text of one JSON object per line: a head, then one entry per item that the note shows. An
entry knows its item by the block id at the end of the visible text and carries a digest of that text.
Where the text is as it was exported the record is restored exactly; where it was edited the text wins.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from graphmem.findings import Finding, finding
from graphmem.names import exact, kind_key
from graphmem.records import ENTITY, FORMAT_NAME, FORMAT_VERSION, MEMORY, UNKNOWN_KIND, Place
from graphmem.records import RELATION as RELATION_TYPE

from ._frontmatter_yaml import Value
from ._markdown_blocks import FACT, RELATION, TEXT, Block

Ref: TypeAlias = dict[str, Any]

NEWER: Final = "newer-format"
LINE: Final = "line"
FENCE: Final = "fence"

_FENCED: Final = re.compile(r"(`{3,})text\n(.*)\n\1\Z", re.DOTALL)
_BULLET: Final = re.compile(r"[-*+][ \t]+")
_ESCAPED: Final = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
# What an edited item no longer knows of itself; a record without times is as new as its import.
_OUTDATED: Final = ("created_at", "updated_at", "origins")


@dataclass(slots=True)
class Entry:
    """One item of an exported note.

    It has its block id, the digest of its text, the way it is shown, what is seen of it where that is
    not in its record or not the same there, and its record without what the text itself says.
    """

    block_id: str
    digest: str
    shown: str
    seen: dict[str, Any]
    record: dict[str, Any]


@dataclass(slots=True)
class Exported:
    """The `gmem` block of a note."""

    head: dict[str, Any]
    entries: dict[str, Entry] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    sound: bool = True
    """Whether every entry is there and unchanged."""

    @property
    def entity(self) -> dict[str, Any]:
        """The entity record of the note."""
        return dict(self.head["record"])

    def link(self, target: str) -> dict[str, Any] | None:
        """What a link target stands for where it is not simply the name."""
        ref = self.head.get("links", {}).get(target)
        return dict(ref) if isinstance(ref, dict) else None


def digest_of(value: Any) -> str:
    """A short digest of a JSON value."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def read_exported(block: Value, label: str, place: Place) -> Exported | Finding:
    """The block as it stands in the frontmatter; a finding when it is not one that can be read."""
    first, *rest = block.strip("\n").split("\n") if isinstance(block, str) else [""]
    head = _loaded(first)
    if not isinstance(head, dict) or head.get("format") != FORMAT_NAME:
        head = None
    if head is None or (head.get("version") == FORMAT_VERSION and not _is_sound_head(head)):
        message = "'gmem' in the frontmatter is not a block that graphmem wrote; the note was read without it"
        return finding("bad-manifest", message, file=label, place=place)
    version = head.get("version")
    if version != FORMAT_VERSION:
        message = f"the note is of format version {version}; this graphmem reads up to {FORMAT_VERSION}"
        return finding(NEWER, message, file=label, place=place)
    exported = Exported(head)
    for line in rest:
        entry = _entry(line)
        if entry is None:
            message = "an entry of the 'gmem' block is not readable; its item was read from the text"
            exported.findings.append(finding("bad-json", message, file=label, place=place, excerpt=line))
        else:
            exported.entries[entry.block_id] = entry
    exported.sound = not exported.findings and head.get("entries") == digest_of(rest)
    return exported


def _loaded(line: str) -> Any:
    """The value of a line of JSON; `None` where it is none, or holds half of a surrogate pair.

    Numbers that JSON or a number column does not have stay text, as in JSONL.
    """
    try:
        value = json.loads(line, parse_constant=str, parse_float=_number, parse_int=_whole)
        if _ESCAPED.search(line) and _SURROGATE.search(json.dumps(value, ensure_ascii=False)):
            return None
    except (ValueError, RecursionError):
        return None
    return value


def _number(text: str) -> float | str:
    return float(text) if math.isfinite(float(text)) else text


def _whole(text: str) -> int | str:
    return int(text) if len(text) < 20 and -(2**63) <= int(text) < 2**63 else text


def _has(value: dict[str, Any], key: str, type_: type) -> bool:
    return key not in value or isinstance(value[key], type_)


def _is_sound_head(head: dict[str, Any]) -> bool:
    record = head.get("record")
    if not isinstance(record, dict) or not isinstance(record.get("name"), str):
        return False
    sound = record.get("type") == ENTITY and exact(record["name"]) != "" and _has(record, "kind", str)
    return (
        sound
        and _has(record, "properties", dict)
        and _has(head, "links", dict)
        and _has(head, "hidden", list)
    )


def _entry(line: str) -> Entry | None:
    value = _loaded(line)
    if not isinstance(value, dict):
        return None
    record, seen = value.get("record"), value.get("seen", {})
    if not isinstance(record, dict) or not isinstance(seen, dict):
        return None
    sound = record.get("type") in (MEMORY, RELATION_TYPE) and _has(record, "properties", dict)
    sound = sound and _has(record, "tags", list) and _has(seen, "tags", list)
    texts = [value.get(key) for key in ("at", "digest", "as")]
    if not sound or not all(isinstance(text, str) for text in texts):
        return None
    return Entry(value["at"], value["digest"], value["as"], seen, record)


def visible_digest(values: dict[str, Value]) -> str:
    """The digest of the frontmatter that people see."""
    return digest_of({key: value for key, value in values.items() if key != "gmem"})


def block_digest(block: Block) -> str:
    """The digest of an item's visible text; for memories with the title of their section."""
    return digest_of([None if block.kind == RELATION else block.title, block.raw])


def is_unchanged(entry: Entry, block: Block) -> bool:
    """Whether an item's text is as it was exported."""
    return entry.digest == block_digest(block)


def text_of(entry: Entry, block: Block) -> str:
    """The content of a memory as its visible text says it."""
    if entry.shown == FENCE:
        fenced = _FENCED.match(block.content)
        if fenced is not None:
            return fenced[2]
    if entry.shown == LINE and block.kind == TEXT:
        return _BULLET.sub("", block.content, count=1)
    return block.content


def restored(entry: Entry, block: Block, subject: Ref) -> dict[str, Any]:
    """The record of an item whose text is as it was exported; `subject` is the note's entity."""
    record = dict(entry.record)
    if record.get("type") == MEMORY:
        record.setdefault("content", text_of(entry, block))
        record.setdefault("about", [subject])
    else:
        record.setdefault("subject", subject)
    return record


def edited_memory(entry: Entry, block: Block, subject: Ref) -> dict[str, Any]:
    """The record of a memory whose text was edited: what is seen wins, the rest stays."""
    record = restored(entry, block, subject)
    record["content"] = text_of(entry, block)
    if block.title != entry.seen.get("title"):
        record["title"] = block.title
    tags = record.get("tags", [])
    if entry.shown == LINE and block.kind == FACT:
        tags = [tag for tag in tags if tag not in entry.seen.get("tags", [])]
        record["memory_type"] = block.category
        _edit_context(record, entry, block)
    record["tags"] = [*tags, *block.tags]
    for key in _OUTDATED:
        record.pop(key, None)
    return record


def edited_relation(entry: Entry, block: Block, subject: Ref, target: Ref) -> dict[str, Any]:
    """The record of a relation whose line was edited; `target` is what its link now stands for.

    With another predicate or object it is another relation, which has no id and no times yet.
    """
    record = restored(entry, block, subject)
    _edit_context(record, entry, block)
    if block.content != entry.seen.get("fact", ""):
        record["fact"] = block.content or None
    moved = block.targets[0] != entry.seen.get("target")
    if moved:
        record["object"] = target
    if moved or block.predicate != record.get("predicate"):
        record["predicate"] = block.predicate
        for key in ("id", "id_aliases"):
            record.pop(key, None)
    for key in _OUTDATED:
        record.pop(key, None)
    return record


def moved_from(exported: Exported, subject: Ref) -> Ref | None:
    """The entity that a note was when it was exported, where `subject`, which it is now, is another."""
    record = exported.entity
    former = {"name": record["name"], "kind": record.get("kind") or UNKNOWN_KIND}
    return None if _means(former, subject) else former


def moved(record: dict[str, Any], former: Ref, subject: Ref) -> dict[str, Any]:
    """The record of an item of a note that was given another title or type: it speaks of `subject`.

    A relation from another entity is another relation, which has no id. A memory is still the same one.
    """
    record = {key: value for key, value in record.items() if key not in _OUTDATED}
    if record.get("type") == MEMORY:
        about = record.get("about")
        listed = about if isinstance(about, list) else [about]
        record["about"] = [_led_to(ref, subject) if _means(ref, former) else ref for ref in listed]
    else:
        record["subject"] = _led_to(record.get("subject"), subject)
        for key in ("id", "id_aliases"):
            record.pop(key, None)
    return record


def _means(ref: Any, entity: Ref) -> bool:
    """Whether a reference is to the entity of that name and kind; no kind is any kind."""
    if isinstance(ref, str):
        return exact(ref) == exact(entity["name"])
    if not isinstance(ref, dict) or not isinstance(ref.get("name"), str):
        return False
    kind = ref.get("kind") or entity.get("kind")
    same_kind = not isinstance(kind, str) or kind_key(kind) == kind_key(entity.get("kind"))
    return exact(ref["name"]) == exact(entity["name"]) and same_kind


def _led_to(ref: Any, subject: Ref) -> Ref:
    """A reference to `subject` in the scope of another reference."""
    scope = ref.get("scope") if isinstance(ref, dict) else None
    return subject if scope is None else {**subject, "scope": scope}


def edited_entity(exported: Exported, seen: dict[str, Any]) -> dict[str, Any]:
    """The record of an entity whose frontmatter was edited: what is seen wins, the rest stays.

    `seen` is the record the visible frontmatter stands for. Values that are not text keep their type
    where their written form is unchanged. Another name or kind is another entity.
    """
    record, hidden = exported.entity, exported.head.get("hidden", [])
    kept = {key: value for key, value in record.items() if key not in _OUTDATED}
    same_kind = kind_key(seen.get("kind")) == kind_key(record.get("kind"))
    if exact(seen["name"]) != exact(record["name"]) or not same_kind:
        kept = {key: value for key, value in kept.items() if key in ("type", "scope")}
        return {**kept, **seen}
    old: dict[str, Any] = record.get("properties", {})
    properties = {key: value for key, value in old.items() if key in hidden}
    for key, value in seen.get("properties", {}).items():
        properties[key] = old[key] if key in old and as_text(old[key]) == value else value
    return {
        **kept,
        "name": record["name"],
        "description": seen.get("description"),
        "aliases": seen.get("aliases", []),
        "properties": properties,
        **{key: seen[key] for key in ("created_at", "updated_at") if key in seen},
    }


def _edit_context(record: dict[str, Any], entry: Entry, block: Block) -> None:
    if block.context == entry.seen.get("context"):
        return
    properties = {key: value for key, value in record.get("properties", {}).items() if key != "context"}
    if block.context is not None:
        properties["context"] = block.context
    record["properties"] = properties


def as_text(value: Any) -> Value:
    """A JSON value as the frontmatter shows it: every scalar as its text."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return [as_text(one) for one in value]
    if isinstance(value, dict):
        return {key: as_text(one) for key, one in value.items()}
    return json.dumps(value)
