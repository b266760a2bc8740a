"""Memories of a batch: references resolved per scope, records joined by id or by natural key."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from graphmem import lexical
from graphmem.commit.context import FOR_GOOD, MEMORY_SCOPES, BatchContext, Refused, natural_key
from graphmem.commit.merge import Merger, said_of_record, says_nothing
from graphmem.commit.references import References
from graphmem.commit.states import settle_state
from graphmem.prepare import canonical_json
from graphmem.records import MemoryRecord, Record, Ref
from graphmem.store.write import ABOUT, ENTITY, MEMORY, MENTION, Row, encoded, json_or_none
from graphmem.ulid import from_seed, memory_key

Target = int | str
"""Where a record goes: a stored memory's row number, or the id of a new memory."""


class _Linked(NamedTuple):
    """A record with the entities it is about and mentions, and its natural key."""

    record: MemoryRecord
    about: list[int]
    mentions: list[int]
    key: bytes


class Memories:
    """Stores the memory records of a batch."""

    def __init__(self, context: BatchContext, references: References, merger: Merger) -> None:
        self._context = context
        self._run = context.run
        self._writer = context.writer
        self._tables = context.tables
        self._references = references
        self._merger = merger
        self._with_ids = context.run.has_ids[MEMORY]
        self._scope_sets: dict[str, list[set[str]]] = {
            id_: [set(json.loads(key)) for key in keys]
            for id_, keys in context.run.rivals.get(MEMORY_SCOPES, {}).items()
        }

    def store(self, records: list[MemoryRecord]) -> None:
        """Stores the records."""
        groups: dict[Target, list[_Linked]] = {}
        for record in records:
            try:
                linked = self._link(record)
                target = self._target(linked)
            except Refused as why:
                self._context.refuse(MEMORY, record, why)
                continue
            groups.setdefault(target, []).append(linked)
        # Merging finds entities by id, the stubs of these references too.
        self._writer.flush_entities()
        for target, group in groups.items():
            if isinstance(target, int):
                self._merge(target, group)
            elif len(group) == 1 and not (group[0].record.origins or group[0].record.id_aliases):
                self._make(target, group[0])
            else:
                self._merge(None, group, target)

    # ---- links and targets ------------------------------------------------------------------------

    def _link(self, record: MemoryRecord) -> _Linked:
        scopes = record.scopes
        about = self._meet(record, record.about) if record.about else []
        mentions = self._meet(record, record.mentions) if record.mentions else []
        ids = [self._references.entity_id(pk) for pk in about]
        return _Linked(record, about, mentions, memory_key(record.content, ids, scopes))

    def _meet(self, record: MemoryRecord, refs: list[Ref]) -> list[int]:
        """The entities that references mean, once per scope of the memory."""
        if len(record.scopes) == 1 and len(refs) == 1:
            found = self._meet_one(record, record.scopes[0], refs[0])
            return [] if found is None else [found]
        met: set[int] = set()
        for ref in refs:
            scopes = [scope for scope in record.scopes if ref.scope in (None, scope)]
            for scope in scopes or record.scopes[:1]:
                found = self._meet_one(record, scope, ref)
                if found is not None:
                    met.add(found)
        return sorted(met)

    def _meet_one(self, record: MemoryRecord, scope: str, ref: Ref) -> int | None:
        found = self._references.meet(scope, ref, record)
        if found is None:
            self._context.note(
                "skipped-reference", f"nothing is called '{ref.name}'; it was left out", record
            )
        return found

    def _target(self, linked: _Linked) -> Target:
        record = linked.record
        if self._run.targets and record.digest in self._run.targets:
            target = self._run.targets[record.digest]
            if self._is_free(linked.key, target):
                return target
            # There is such a memory; the one that the text was edited from goes its own way.
            self._run.replaced.discard((MEMORY, target))
            self._run.left.add((MEMORY, target))
        if record.id is not None:
            return self._by_id(record.id, record)
        if self._run.had_memories:
            found = self._writer.memories_by_key(linked.key)
            if found or self._tables.rekeyed:
                pk = self._tables.memory_by_key(linked.key, found, self._run.batches)
                if pk is not None:
                    return pk
        if self._with_ids:
            for id_ in self._tables.ids_by_key(MEMORY, natural_key(record)):
                with suppress(Refused):
                    return self._by_id(id_, record)
        minted = self._minted(linked)
        made = self._writer.by_id(MEMORY, minted) if self._run.later else None
        return minted if made is None else made

    def _is_free(self, key: bytes, target: int) -> bool:
        """Whether no other memory of before the run has a natural key."""
        return all(
            pk == target or batch in self._run.batches for pk, batch in self._writer.memories_by_key(key)
        )

    def _by_id(self, id_: str, record: MemoryRecord) -> Target:
        stored = self._writer.by_id(MEMORY, id_)
        given = self._scope_sets.get(id_)
        if stored is None:
            if given is None:
                return id_
            start = given[0]
        else:
            start = set(self._writer.scopes.set_names(self._writer.row(MEMORY, stored)["scope_set"]))
        if not _joined(start, given or [set(record.scopes)]) & set(record.scopes):
            raise Refused("id-scope-conflict", f"the id '{id_}' is that of a memory of other scopes")
        return id_ if stored is None else stored

    def _minted(self, linked: _Linked) -> str:
        return from_seed(self._run.clock, linked.key)

    # ---- making -----------------------------------------------------------------------------------

    def _make(self, target: str, linked: _Linked) -> None:
        """A new memory of one ordinary record: the common case, kept short."""
        one = linked.record
        writer = self._writer
        pk = writer.next_pk(MEMORY)
        created = one.created_at or self._run.clock
        archived_by = one.archived_by or "person" if one.state == "archived" else None
        row = (
            pk, target, linked.key, one.content, one.title,
            one.memory_type, one.importance, json_or_none(one.tags), writer.scopes.set_pk(tuple(one.scopes)),
            one.source, one.position, json_or_none(one.properties), one.state or "active", archived_by, created,
            one.updated_at or created, one.valid_at, one.invalid_at, one.expired_at, writer.batch,
        )  # fmt: skip
        names = sorted(self._references.name(pk) for pk in linked.about)
        writer.add(MEMORY, row, lexical.memory_row(one.content, one.title, one.source, one.valid_at, names))
        for entity in linked.about:
            writer.add_link(pk, entity, ABOUT)
        for entity in linked.mentions:
            writer.add_link(pk, entity, MENTION)
        for tag in one.tags:
            writer.add_tag(pk, tag)
        self._context.text(pk, one.title, one.content)
        if self._context.encoder is not None:
            self._context.want_vector(
                MEMORY, pk, lexical.memory_text(one.content, one.title, names), new=True
            )
        said = None
        if self._run.clock in (one.created_at, one.updated_at):
            said = canonical_json(said_of_record(one, self._links(linked)))
        if not says_nothing(one, transport=self._run.inputs[one.input].transport):
            self._context.contribute(MEMORY, pk, one, said)
        self._context.count_made(MEMORY, 1)

    # ---- merging ----------------------------------------------------------------------------------

    def _ids(self, pks: Iterable[int]) -> list[str]:
        return sorted(self._references.entity_id(pk) for pk in pks)

    def _links(self, linked: _Linked) -> dict[str, list[str]]:
        return {"about": self._ids(linked.about), "mentions": self._ids(linked.mentions)}

    def _pks(self, ids: Iterable[str]) -> list[int]:
        found = (self._writer.by_id(ENTITY, id_) for id_ in ids)
        return sorted({pk for pk in found if pk is not None})

    def _old(self, pk: int) -> Row:
        row = self._writer.row(MEMORY, pk)
        row["about"] = self._ids(self._writer.links(pk, ABOUT))
        row["mentions"] = self._ids(self._writer.links(pk, MENTION))
        row["scopes"] = self._writer.scopes.set_names(row["scope_set"])
        return row

    def _blank(self, target: str, linked: _Linked) -> Row:
        return {
            "pk": 0, "id": target, "key": b"",
            "content": linked.record.content, "title": None, "memory_type": None, "importance": None, "tags": [],
            "scope_set": 0, "source": None, "position": None, "properties": {}, "state": "active",
            "archived_by": None, "created_at": "", "updated_at": "", "valid_at": None, "invalid_at": None,
            "expired_at": None, "batch": self._writer.batch, "about": [], "mentions": [], "scopes": [],
        }  # fmt: skip

    def _merge(self, pk: int | None, group: list[_Linked], target: str = "") -> None:
        old = None if pk is None else self._old(pk)
        base = old or self._blank(target, group[0])
        merged = self._merger.merge(MEMORY, base, old, [(one.record, self._links(one)) for one in group])
        if not merged.accepted:
            return
        row = merged.row
        accepted = merged.accepted
        settle_state(self._context, MEMORY, row, old, accepted)
        changed = merged.changed or (old is not None and row["state"] != old["state"])
        about, mentions = self._pks(row["about"]), self._pks(row["mentions"])
        row["scope_set"] = self._writer.scopes.set_pk(tuple(row["scopes"]))
        row["key"] = memory_key(row["content"], row["about"], row["scopes"])
        if pk is None:
            pk = row["pk"] = self._writer.next_pk(MEMORY)
            self._writer.add(MEMORY, encoded(MEMORY, row), self._text(row, about))
            self._context.count_made(MEMORY, len(accepted))
            self._write_links(pk, row, about, mentions)
            self._context.text(pk, row["title"], row["content"])
            self._context.want_vector(MEMORY, pk, self._said(row, about), new=True)
        else:
            if changed and old is not None:
                self._change(pk, row, old, about, mentions)
            further = self._alias_ids(pk, row["id"], accepted)
            self._context.touch(MEMORY, pk, len(accepted), changed=FOR_GOOD if further else changed)
        self._merger.write(MEMORY, pk, merged)
        if old is None:
            self._alias_ids(pk, row["id"], accepted)
        for one in accepted:
            self._context.see(one)
        if merged.ties:
            fields = ", ".join(f"'{name}'" for name in merged.ties)
            self._context.note(
                "tied-values", f"memory '{row['id']}': several values for {fields}", accepted[0]
            )

    def _alias_ids(self, pk: int, id_: str, accepted: Iterable[Record]) -> bool:
        """Keeps further ids as aliases, but for those of another memory; whether there were new ones."""
        given = {alias for one in accepted if isinstance(one, MemoryRecord) for alias in one.id_aliases}
        new = [alias for alias in sorted(given - {id_}) if self._writer.by_id(MEMORY, alias) is None]
        for alias in new:
            self._writer.add_id_alias(MEMORY, alias, pk)
        return bool(new)

    def _text(self, row: Row, about: list[int]) -> tuple[str, ...]:
        names = sorted(self._references.name(pk) for pk in about)
        return lexical.memory_row(row["content"], row["title"], row["source"], row["valid_at"], names)

    def _said(self, row: Row, about: list[int]) -> str:
        """The text that is embedded."""
        names = sorted(self._references.name(pk) for pk in about)
        return lexical.memory_text(row["content"], row["title"], names)

    def _write_links(self, pk: int, row: Row, about: list[int], mentions: list[int]) -> None:
        for entity in about:
            self._writer.add_link(pk, entity, ABOUT)
        for entity in mentions:
            self._writer.add_link(pk, entity, MENTION)
        for tag in row["tags"]:
            self._writer.add_tag(pk, tag)

    def _change(self, pk: int, row: Row, old: Row, about: list[int], mentions: list[int]) -> None:
        writer = self._writer
        writer.keep_version(MEMORY, pk)
        if row["key"] != old["key"] and old["batch"] not in self._run.batches:
            self._tables.keep_key(pk, old["key"])
        writer.update(MEMORY, row, self._text(row, about))
        writer.clear_links(pk)
        self._write_links(pk, row, about, mentions)
        if (row["content"], row["title"]) != (old["content"], old["title"]):
            self._context.rewritten.append(pk)
            self._context.text(pk, row["title"], row["content"])
        said = self._said(row, about)
        if said != self._said(old, self._pks(old["about"])):
            self._context.want_vector(MEMORY, pk, said, new=False)


def _joined(start: set[str], sets: Iterable[set[str]]) -> set[str]:
    """The scopes of a memory after all sets of scopes that overlap with it, one by one or through another."""
    joined = set(start)
    waiting = list(sets)
    while touching := [one for one in waiting if one & joined]:
        joined.update(*touching)
        waiting = [one for one in waiting if not one & joined]
    return joined
