"""One markdown note on its way to records. Kept apart from recognising notes, which every import does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from graphmem.findings import Finding, finding
from graphmem.formats import Item, Rejected, Source
from graphmem.mapping import to_record
from graphmem.names import exact
from graphmem.reading import SIZE_LIMIT
from graphmem.records import FORMAT_VERSION, UNKNOWN_KIND, ManifestRecord, Place

from ._exported_note import (
    NEWER,
    Exported,
    digest_of,
    edited_entity,
    edited_memory,
    edited_relation,
    is_unchanged,
    moved,
    moved_from,
    read_exported,
    restored,
    text_of,
    visible_digest,
)
from ._frontmatter import Frontmatter, read_frontmatter
from ._markdown_blocks import EXPORTED_ID, FACT, RELATION, Block, Body, parse_body
from ._markdown_inline import Link, only_links
from ._markdown_mask import mask
from ._note_entity import GMEM, NoteEntity, add_fields, entity_of, name_of
from ._note_text import NoteText, read_note
from ._vault import Vault

LINKS_TO: Final = "links_to"


def read_markdown(stream: BinaryIO, source: Source) -> Iterator[Item]:
    """The records of one note: its entity, then memories and relations in their order."""
    note = read_note(stream, source, SIZE_LIMIT)
    if isinstance(note, Finding):
        yield note
        return
    front = read_frontmatter(note, source.label)
    yield from front.findings
    refused = front.refused or _conflict(note, front, source.label)
    if refused is not None:
        yield refused
        return
    exported: Exported | None = None
    if GMEM in front.values:
        read = read_exported(front.values[GMEM], source.label, note.place(front.lines[GMEM]))
        if isinstance(read, Exported):
            exported = read
            yield from read.findings
        else:
            yield read
            if read.rule == NEWER:
                return
    yield from _Note(note, front, exported, source).items()


def _conflict(note: NoteText, front: Frontmatter, label: str) -> Finding | None:
    """The finding for unresolved conflict markers outside code, which make the whole note unusable."""
    wanted = "<<<<<<< "
    first = 0
    code = [False] * front.body_start + mask(note.lines[front.body_start :]).code
    for i, line in enumerate(note.lines):
        if code[i] or not line.startswith(wanted.strip()):
            continue
        if wanted == "<<<<<<< " and line.startswith(wanted):
            first, wanted = i, "======="
        elif wanted == "=======" and line == wanted:
            wanted = ">>>>>>> "
        elif wanted == ">>>>>>> " and line.startswith(wanted):
            message = f"a conflict starts here and ends on line {i + 1}; nothing was imported from the note"
            return finding("conflict-markers", message, file=label, place=note.place(first))
    return None


class _Note:
    """One note on its way to records."""

    def __init__(self, note: NoteText, front: Frontmatter, exported: Exported | None, source: Source) -> None:
        self.note = note
        self.front = front
        self.exported = exported
        self.source = source
        self.vault = Vault(source.name, source.siblings)
        self.entity: NoteEntity = entity_of(front.values)
        lines = note.lines[front.body_start :]
        self.body: Body = parse_body(lines, self.entity.title, exported=exported is not None)
        self.position = 0
        self.linked: set[str] = set()
        self.field_links = {
            (one.line, target) for one in self.body.fields for target in only_links(one.value)
        }

    def items(self) -> Iterator[Item]:
        """The records and findings of the note."""
        name = name_of(self.entity, self.body, self.vault.path)
        if name is None:
            message = "a note from standard input needs a title or a heading to be named by"
            yield finding("bad-name", message, file=self.source.label, place=self.note.place(0))
            return
        self.name = name
        unchanged = self._is_as_exported()
        if unchanged and self.exported is not None:
            tool = self.exported.head.get("tool")
            place = self.note.place(0)
            yield ManifestRecord(FORMAT_VERSION, tool=tool if isinstance(tool, str) else None, place=place)
        record = self._entity_record()
        self.subject = {"name": record["name"]}
        if self.exported is not None or record.get("kind") is not None:
            self.subject["kind"] = record.get("kind") or UNKNOWN_KIND
        self.former = moved_from(self.exported, self.subject) if self.exported is not None else None
        self.own_names = {exact(one) for one in (name, *record.get("aliases", []), *self.vault.aliases())}
        yield from self._made(record, self.note.place(0))
        for block in self.body.blocks:
            yield from self._block(block)
        yield from self._other_links()

    # ---- the entity --------------------------------------------------------------------------------

    def _is_as_exported(self) -> bool:
        if self.exported is None or not self.exported.sound:
            return False
        text = "\n".join(self.note.lines[self.front.body_start :]).strip("\n")
        return self._front_unchanged() and self.exported.head.get("body") == digest_of(text)

    def _front_unchanged(self) -> bool:
        return self.exported is not None and self.exported.head.get("front") == visible_digest(
            self.front.values
        )

    def _entity_record(self) -> dict[str, Any]:
        if self.exported is not None:
            if self._front_unchanged():
                return self.exported.entity
            return edited_entity(self.exported, self.entity.record(self.name))
        self.entity.aliases += self.vault.aliases()
        add_fields(self.entity, self.body)
        return self.entity.record(self.name)

    # ---- blocks ------------------------------------------------------------------------------------

    def _block(self, block: Block) -> Iterator[Item]:
        entry = self.exported.entries.pop(block.block_id or "", None) if self.exported else None
        place = self._place(block.line, block.column)
        if entry is None or (entry.record.get("type") == "relation") != (block.kind == RELATION):
            yield from self._relations(block) if block.kind == RELATION else self._memory(block)
        elif is_unchanged(entry, block):
            yield from self._kept(restored(entry, block, self.subject), place)
        elif block.kind == RELATION:
            target = self._ref(self.vault.wikilink(block.targets[0]), block.targets[0])
            yield from self._kept(edited_relation(entry, block, self.subject, target), place)
            yield from self._relations(block, skip=1)
        elif text_of(entry, block).strip():
            yield from self._kept(edited_memory(entry, block, self.subject), place)
            yield from self._links(block.links)

    def _kept(self, record: dict[str, Any], place: Place) -> Iterator[Item]:
        """An item of an export, which goes where its note goes."""
        if self.former is not None:
            record = moved(record, self.former, self.subject)
        yield from self._made(record, place)

    def _memory(self, block: Block) -> Iterator[Item]:
        """The memory of a section's text or of a list fact, and the links in it."""
        if not block.content.strip():
            yield from self._links(block.links)
            return
        properties: dict[str, Any] = {}
        if block.kind == FACT:
            properties = {"context": block.context, "block_id": self._block_id(block)}
        record = {
            "type": "memory",
            "content": block.content,
            "title": block.title,
            "memory_type": block.category,
            "tags": [*self.entity.tags, *block.tags],
            "scopes": self._scopes(),
            "about": [self.subject],
            "mentions": self._mentions(block.links),
            "valid_at": self.entity.day,
            "source": {"uri": self.source.name, "position": self.position} if self.source.name else None,
            "properties": {key: value for key, value in properties.items() if value is not None},
        }
        self.position += 1
        yield from self._made(record, self._place(block.line, block.column))
        yield from self._links(block.links)

    def _relations(self, block: Block, skip: int = 0) -> Iterator[Item]:
        """The relations of a relation line; the text indented below it is their sentence."""
        properties: dict[str, Any] = {"context": block.context, "tags": block.tags or None}
        properties["block_id"] = self._block_id(block)
        for target in block.targets[skip:]:
            named = self.vault.wikilink(target)
            if not block.predicate:
                if named in self.linked or exact(named) in self.own_names:
                    continue
                self.linked.add(named)
            record = self._relation(block.predicate or LINKS_TO, self._ref(named, target))
            record["fact"] = block.content or None
            record["properties"] = {key: value for key, value in properties.items() if value is not None}
            yield from self._made(record, self._place(block.line, block.column))
        yield from self._links(block.links)

    def _block_id(self, block: Block) -> str | None:
        """The block id a person gave; those of an export are not kept."""
        own = self.exported is not None and EXPORTED_ID.match(block.block_id or "")
        return None if own else block.block_id

    def _relation(self, predicate: str, target: dict[str, Any]) -> dict[str, Any]:
        record = {"type": "relation", "subject": self.subject, "predicate": predicate, "object": target}
        return record | {"scope": next(iter(self._scopes()), None)}

    def _scopes(self) -> list[str]:
        """The scope of what was added to an exported note by hand: that of its entity."""
        scope = self.exported.entity.get("scope") if self.exported else None
        return [scope] if isinstance(scope, str) else []

    # ---- links -------------------------------------------------------------------------------------

    def _named(self, link: Link) -> str | None:
        """What a link refers to; `None` for the note itself."""
        if not link.target:
            return None
        named = self.vault.markdown_link(link.target) if link.path else self.vault.wikilink(link.target)
        return None if not exact(named) or exact(named) in self.own_names else named

    def _ref(self, named: str, target: str) -> dict[str, Any]:
        known = self.exported.link(target) if self.exported else None
        return known or {"name": named}

    def _mentions(self, links: list[Link]) -> list[dict[str, Any]]:
        named = {self._named(link): link.target for link in links}
        return [self._ref(name, target) for name, target in named.items() if name is not None]

    def _links(self, links: list[Link]) -> Iterator[Item]:
        """One `links_to` per target and note."""
        for link in links:
            named = self._named(link)
            if named is None or (link.line, link.target) in self.field_links:
                continue
            if named not in self.linked:
                self.linked.add(named)
                record = self._relation(LINKS_TO, self._ref(named, link.target))
                yield from self._made(record, self._place(link.line, link.start))

    def _other_links(self) -> Iterator[Item]:
        """Links in headings, and properties and fields that are links, whose key is the predicate."""
        if self.exported is not None:
            return
        yield from self._links(self.body.heading_links)
        for predicate, target, key in self.entity.links:
            yield from self._link_property(predicate, target, self.note.place(self.front.lines[key]))
        stated = {block.line for block in self.body.blocks if block.kind == RELATION}
        for one in self.body.fields:
            for target in only_links(one.value) if one.line not in stated else ():
                yield from self._link_property(one.key, target, self._place(one.line, 0))

    def _link_property(self, key: str, target: str, place: Place) -> Iterator[Item]:
        named = self.vault.wikilink(target)
        if exact(named) not in self.own_names:
            yield from self._made(self._relation(key, self._ref(named, target)), place)

    # ---- records -----------------------------------------------------------------------------------

    def _place(self, line: int, column: int) -> Place:
        return self.note.place(self.front.body_start + line, column)

    def _made(self, record: dict[str, Any], place: Place) -> Iterator[Item]:
        """The record of a mapping, or the findings that reject it."""
        findings: list[Finding] = []
        made = to_record(record, place, self.source.label, findings)
        yield from findings
        if made is not None:
            yield made
        else:
            yield Rejected(place, json.dumps(record, ensure_ascii=False))
