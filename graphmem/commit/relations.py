"""Relations of a batch: ends resolved in the relation's scope, records joined by natural key."""

from __future__ import annotations

import json
from typing import NamedTuple

from graphmem import lexical
from graphmem.commit.context import FOR_GOOD, BatchContext, Refused
from graphmem.commit.merge import Merger, said_of_record, says_nothing
from graphmem.commit.references import References
from graphmem.commit.states import settle_state
from graphmem.names import predicate_key
from graphmem.prepare import canonical_json
from graphmem.records import GLOBAL_SCOPE, Ref, RelationRecord
from graphmem.store.write import RELATION, Row, encoded, json_or_none
from graphmem.ulid import mint


class _Key(NamedTuple):
    """The natural key of a relation, resolved."""

    scope: str
    subject: int
    predicate: str
    object: int
    valid_at: str | None


class Relations:
    """Stores the relation records of a batch."""

    def __init__(self, context: BatchContext, references: References, merger: Merger) -> None:
        self._context = context
        self._run = context.run
        self._writer = context.writer
        self._references = references
        self._merger = merger
        self._with_ids = context.run.has_ids[RELATION]
        self._rivals = context.run.rivals.get(RELATION, {})

    def store(self, records: list[RelationRecord]) -> None:
        """Stores the records."""
        groups: dict[_Key, list[RelationRecord]] = {}
        for record in records:
            try:
                key = self._key(record)
            except Refused as why:
                self._context.refuse(RELATION, record, why)
                continue
            groups.setdefault(key, []).append(record)
        for key, group in groups.items():
            self._relation(key, group)

    def _key(self, record: RelationRecord) -> _Key:
        scope = record.scope or GLOBAL_SCOPE
        subject = self._end(scope, record.subject, record)
        object_ = self._end(scope, record.object, record)
        return _Key(scope, subject, predicate_key(record.predicate), object_, record.valid_at)

    def _end(self, scope: str, ref: Ref, record: RelationRecord) -> int:
        found = self._references.meet(scope, ref, record)
        if found is None:
            raise Refused("relation-left-out", f"nothing is called '{ref.name}'", skip=True)
        return found

    def _relation(self, key: _Key, group: list[RelationRecord]) -> None:
        found = self._writer.scopes.find(key.scope)
        pk = None
        if found is not None:
            pk = self._writer.relation(key.subject, key.predicate, key.object, found, key.valid_at)
        if self._with_ids:
            group = [one for one in group if self._id_fits(key, pk, one)]
            if not group:
                return
        scope = self._writer.scopes.pk(key.scope)
        if pk is None and len(group) == 1 and not group[0].origins:
            self._make(key, scope, group[0])
            return
        old = None
        if pk is not None:
            old = self._writer.row(RELATION, pk)
            old["stated_by"] = self._writer.stated_by(pk)
        self._merge(key, scope, pk, old, group)

    # ---- ids --------------------------------------------------------------------------------------

    def _id_fits(self, key: _Key, pk: int | None, record: RelationRecord) -> bool:
        """Whether the record's id leads nowhere else; a record whose id does is rejected."""
        id_ = record.id
        if id_ is None:
            return True
        owner = self._writer.by_id(RELATION, id_)
        fits = self._owns(key, id_, record) if owner is None else owner == pk
        if not fits:
            why = Refused("id-conflict", f"the id '{id_}' belongs to another relation")
            self._context.refuse(RELATION, record, why)
        return fits

    def _owns(self, key: _Key, id_: str, record: RelationRecord) -> bool:
        """Whether an id that no stored relation has falls to this one, of all that the run gives it to."""
        for rival in self._rivals.get(id_, ()):
            scope, subject, predicate, object_, valid_at = json.loads(rival)
            try:
                ends = (self._end(scope, Ref(*end), record) for end in (subject, object_))
                return key == _Key(scope, next(ends), predicate, next(ends), valid_at)
            except Refused:
                continue
        return True

    def _minted(self, key: _Key) -> str:
        subject, object_ = self._references.entity_id(key.subject), self._references.entity_id(key.object)
        return mint(
            self._run.clock, "relation", key.scope, subject, key.predicate, object_, key.valid_at or ""
        )

    def _new_id(self, key: _Key, group: list[RelationRecord]) -> str:
        if self._with_ids:
            free = [one.id for one in group if one.id and self._writer.by_id(RELATION, one.id) is None]
            if free:
                return min(free)
        return self._minted(key)

    def _settle_id(self, key: _Key, row: Row, accepted: list[RelationRecord]) -> None:
        """Gives a relation that the run made the smallest of the ids that all its batches give it."""
        pk, minted = row["pk"], self._minted(key)
        given = {one.id for one in accepted if one.id and self._writer.by_id(RELATION, one.id) in (None, pk)}
        best = min(given | {row["id"]} - {minted}, default=minted)
        if best != row["id"]:
            self._writer.replace_id(RELATION, pk, best, keep=row["id"] != minted)
            row["id"] = best

    def _alias_ids(self, key: _Key, pk: int, id_: str, accepted: list[RelationRecord]) -> bool:
        """Keeps further ids as aliases; whether there were new ones."""
        given = {alias for one in accepted for alias in (*one.id_aliases, one.id) if alias not in (None, id_)}
        new = False
        for alias in sorted(filter(None, given)):
            if self._owns(key, alias, accepted[0]) and self._writer.by_id(RELATION, alias) is None:
                self._writer.add_id_alias(RELATION, alias, pk)
                new = True
        return new

    # ---- making and changing ----------------------------------------------------------------------

    def _names(self, key: _Key) -> tuple[str, str]:
        return self._references.name(key.subject), self._references.name(key.object)

    def _make(self, key: _Key, scope: int, one: RelationRecord) -> None:
        """A new relation of one ordinary record: the common case, kept short."""
        writer = self._writer
        pk = writer.next_pk(RELATION)
        created = one.created_at or self._run.clock
        archived_by = one.archived_by or "person" if one.state == "archived" else None
        row = (
            pk, self._new_id(key, [one]), scope, key.subject, one.predicate, key.predicate, key.object,
            one.valid_at, one.fact, one.weight, json_or_none(one.properties), one.state or "active", archived_by,
            created, one.updated_at or created, one.invalid_at, one.expired_at, writer.batch,
        )  # fmt: skip
        subject, object_ = self._names(key)
        writer.add(RELATION, row, lexical.relation_row(one.fact, subject, one.predicate, object_))
        for memory in one.stated_by:
            writer.add_stated_by(pk, memory)
        if self._context.encoder is not None:
            said = lexical.relation_text(one.fact, subject, one.predicate, object_)
            self._context.want_vector(RELATION, pk, said, new=True)
        if one.id_aliases:
            self._alias_ids(key, pk, row[1], [one])
        told = None
        if self._run.clock in (one.created_at, one.updated_at):
            told = canonical_json(said_of_record(one, {}))
        if not says_nothing(one, transport=self._run.inputs[one.input].transport):
            self._context.contribute(RELATION, pk, one, told)
        self._context.count_made(RELATION, 1)

    def _blank(self, key: _Key, scope: int, group: list[RelationRecord]) -> Row:
        return {
            "pk": 0, "id": self._new_id(key, group), "scope": scope, "subject": key.subject,
            "predicate": group[0].predicate, "predicate_key": key.predicate, "object": key.object,
            "valid_at": key.valid_at, "fact": None, "weight": None, "properties": {}, "state": "active",
            "archived_by": None, "created_at": "", "updated_at": "", "invalid_at": None, "expired_at": None,
            "batch": self._writer.batch, "stated_by": [],
        }  # fmt: skip

    def _merge(
        self, key: _Key, scope: int, pk: int | None, old: Row | None, group: list[RelationRecord]
    ) -> None:
        base = old or self._blank(key, scope, group)
        merged = self._merger.merge(RELATION, base, old, [(one, {}) for one in group])
        accepted = [one for one in merged.accepted if isinstance(one, RelationRecord)]
        if not accepted:
            return
        row = merged.row
        settle_state(self._context, RELATION, row, old, accepted)
        changed = merged.changed or (old is not None and row["state"] != old["state"])
        subject, object_ = self._names(key)
        text = lexical.relation_row(row["fact"], subject, row["predicate"], object_)
        said = lexical.relation_text(row["fact"], subject, row["predicate"], object_)
        if pk is None:
            pk = row["pk"] = self._writer.next_pk(RELATION)
            self._writer.add(RELATION, encoded(RELATION, row), text)
            self._context.count_made(RELATION, len(accepted))
            self._context.want_vector(RELATION, pk, said, new=True)
            self._alias_ids(key, pk, row["id"], accepted)
        else:
            if self._with_ids and old is not None and old["batch"] in self._run.batches:
                self._settle_id(key, row, accepted)
            further = self._alias_ids(key, pk, row["id"], accepted)
            if (changed or further) and old is not None:
                self._writer.keep_version(RELATION, pk)
                self._writer.update(RELATION, row, text)
                if said != lexical.relation_text(old["fact"], subject, old["predicate"], object_):
                    self._context.want_vector(RELATION, pk, said, new=False)
            self._context.touch(RELATION, pk, len(accepted), changed=FOR_GOOD if further else changed)
        for memory in row["stated_by"] if old is None else sorted({*row["stated_by"]} - {*old["stated_by"]}):
            self._writer.add_stated_by(pk, memory)
        self._merger.write(RELATION, pk, merged)
        for one in accepted:
            self._context.see(one)
        if merged.ties:
            fields = ", ".join(f"'{name}'" for name in merged.ties)
            message = f"'{subject} {row['predicate']} {object_}': several values for {fields}"
            self._context.note("tied-values", message, accepted[0])
