"""Entities of a batch: declarations grouped by what they come to, made or merged."""

from __future__ import annotations

from graphmem import lexical
from graphmem.commit.context import FOR_GOOD, BatchContext, Refused
from graphmem.commit.merge import Merger, changes, said_of_record, says_nothing
from graphmem.commit.references import Identity, References
from graphmem.commit.states import settle_state
from graphmem.names import kind_key
from graphmem.prepare import canonical_json
from graphmem.records import GLOBAL_SCOPE, EntityRecord
from graphmem.store.write import ENTITY, Row, encoded, json_or_none


class Entities:
    """Stores the entity records of a batch."""

    def __init__(self, context: BatchContext, references: References, merger: Merger) -> None:
        self._context = context
        self._run = context.run
        self._writer = context.writer
        self._tables = context.tables
        self._references = references
        self._merger = merger
        self._rivals = context.run.rivals.get(ENTITY, {})
        self._with_ids = context.run.has_ids[ENTITY]
        self._made: list[tuple[int, Identity, EntityRecord]] = []

    def store(self, records: list[EntityRecord]) -> None:
        """Stores the records; references of the batch find them afterwards."""
        groups: dict[Identity, list[EntityRecord]] = {}
        for record in records:
            groups.setdefault(self._declared(record), []).append(record)
        for identity, group in groups.items():
            self._entity(identity, group)
        self._writer.flush_entities()
        for pk, identity, record in self._made:
            if self._writer.shares_words(identity[1], pk):
                self._note_near(identity, record)

    def _declared(self, record: EntityRecord) -> Identity:
        scope = record.scope or GLOBAL_SCOPE
        key = kind_key(record.kind)
        if not self._tables.has_finals or self._run.inputs[record.input].transport:
            return scope, record.name, key
        name, final, several = self._tables.final(scope, record.name, key)
        if several:
            self._context.note(
                "kind-unknown", f"'{record.name}' has no kind, and several kinds have the name", record
            )
        if name != record.name:
            record.aliases = sorted({*record.aliases, record.name} - {name})
        return scope, name, final

    def _entity(self, identity: Identity, group: list[EntityRecord]) -> None:
        pk = self._references.find(identity)
        if self._with_ids:
            group = [one for one in group if self._id_fits(identity, pk, one)]
            if not group:
                return
        first = group[0]
        if pk is None and len(group) == 1 and not first.origins and not first.redirects:
            self._make(identity, first)
            return
        old = None if pk is None else self._writer.row(ENTITY, pk)
        base = old or self._blank(identity, group)
        merged = self._merger.merge(ENTITY, base, old, [(one, {}) for one in group])
        accepted = [one for one in merged.accepted if isinstance(one, EntityRecord)]
        if not accepted:
            return
        row = merged.row
        self._settle(identity, row, old, accepted)
        changed = old is None or bool(changes(row, old))
        if pk is None:
            pk = row["pk"] = self._writer.next_pk(ENTITY)
            self._insert(row, identity)
            self._context.count_made(ENTITY, len(accepted))
            self._made.append((pk, identity, accepted[0]))
        else:
            further = self._alias_ids(pk, identity, row["id"], accepted)
            if changed or further:
                self._change(pk, row, old or row)
            declared = any(one.stored for one in merged.taken)
            if old is not None and old["stub"] and not declared and old["batch"] in self._run.batches:
                self._context.count_made(ENTITY, len(accepted))
                self._made.append((pk, identity, accepted[0]))
            else:
                self._context.touch(ENTITY, pk, len(accepted), changed=FOR_GOOD if further else changed)
        self._merger.write(ENTITY, pk, merged)
        if old is None:
            self._alias_ids(pk, identity, row["id"], accepted)
        self._after(pk, identity, accepted, merged.ties)

    def _after(self, pk: int, identity: Identity, accepted: list[EntityRecord], ties: list[str]) -> None:
        for one in accepted:
            self._context.see(one)
            for ref in one.redirects:
                scope = self._writer.scopes.pk(ref.scope or identity[0])
                key = kind_key(ref.kind)
                self._writer.add_redirect(scope, ref.name, ref.kind if key else None, key, pk)
        if ties:
            fields = ", ".join(f"'{name}'" for name in ties)
            self._context.note("tied-values", f"'{identity[1]}': several values for {fields}", accepted[0])

    # ---- ids --------------------------------------------------------------------------------------

    def _id_fits(self, identity: Identity, pk: int | None, record: EntityRecord) -> bool:
        """Whether the record's id leads nowhere else; a record whose id does is rejected."""
        id_ = record.id
        if id_ is None:
            return True
        owner = self._writer.by_id(ENTITY, id_)
        fits = self._references.owns(identity, id_) if owner is None else owner == pk
        if not fits:
            why = Refused("id-conflict", f"the id '{id_}' belongs to another entity than '{record.name}'")
            self._context.refuse(ENTITY, record, why)
        return fits

    def _new_id(self, identity: Identity, group: list[EntityRecord]) -> str:
        return self._references.new_id(identity, [one.id for one in group if one.id is not None])

    def _alias_ids(self, pk: int, identity: Identity, id_: str, accepted: list[EntityRecord]) -> bool:
        """Keeps further ids as aliases; whether there were new ones."""
        given = {alias for one in accepted for alias in (*one.id_aliases, one.id) if alias not in (None, id_)}
        new = False
        for alias in sorted(filter(None, given)):
            if self._references.owns(identity, alias) and self._writer.by_id(ENTITY, alias) is None:
                self._writer.add_id_alias(ENTITY, alias, pk)
                new = True
        return new

    # ---- making and changing ----------------------------------------------------------------------

    def _kind(self, identity: Identity, *given: str | None) -> str | None:
        """The spelling of the identity's kind: as given, else as the run declares it elsewhere."""
        if not identity[2]:
            return None
        fitting = [kind for kind in given if kind is not None and kind_key(kind) == identity[2]]
        if fitting:
            return max(fitting)
        return self._tables.spelled(*identity) or identity[2]

    def _make(self, identity: Identity, one: EntityRecord) -> None:
        """A new entity of one ordinary record: the common case, kept short."""
        scope, name, key = identity
        writer = self._writer
        pk = writer.next_pk(ENTITY)
        created = one.created_at or self._run.clock
        kind = self._kind(identity, one.kind) if key else None
        archived_by = one.archived_by or "person" if one.state == "archived" else None
        row = (
            pk, self._new_id(identity, [one]), writer.scopes.pk(scope), name, kind, key, one.description,
            json_or_none(one.aliases), json_or_none(one.properties), one.state or "active", archived_by,
            int(one.stub), created, one.updated_at or created, writer.batch,
        )  # fmt: skip
        writer.add(ENTITY, row, lexical.entity_row(name, one.aliases, one.description))
        writer.add_name(pk, name, alias=False)
        for alias in one.aliases:
            writer.add_name(pk, alias, alias=True)
        self._context.name(pk, name, *one.aliases)
        self._context.want_vector(ENTITY, pk, lexical.entity_text(name, kind, one.description), new=True)
        self._references.learn(pk, identity, row[1])
        if self._with_ids:
            self._alias_ids(pk, identity, row[1], [one])
        # The kind may come from elsewhere, and a stated time that is the run's own does not show as stated.
        unlike = kind != one.kind or self._run.clock in (one.created_at, one.updated_at)
        said = canonical_json(said_of_record(one, {})) if unlike else None
        if not says_nothing(one, transport=self._run.inputs[one.input].transport):
            self._context.contribute(ENTITY, pk, one, said)
        self._context.count_made(ENTITY, 1)
        self._made.append((pk, identity, one))

    def _blank(self, identity: Identity, group: list[EntityRecord]) -> Row:
        scope, name, key = identity
        return {
            "pk": 0, "id": self._new_id(identity, group), "scope": self._writer.scopes.pk(scope), "name": name,
            "kind": None, "kind_key": key, "description": None, "aliases": [], "properties": {},
            "state": "active", "archived_by": None, "stub": 0, "created_at": "", "updated_at": "",
            "batch": self._writer.batch,
        }  # fmt: skip

    def _settle(self, identity: Identity, row: Row, old: Row | None, accepted: list[EntityRecord]) -> None:
        """Decides the fields that no fold decides: kind, stub, state."""
        # A kind that only others give is left to them.
        if old is not None and not old["kind_key"] and any(one.kind for one in accepted):
            row["kind_key"] = identity[2]
        if row["kind_key"]:
            given = [row["kind"], *([] if row["kind"] else [one.kind for one in accepted])]
            row["kind"] = self._kind((identity[0], row["name"], row["kind_key"]), *given)
        else:
            row["kind"] = None
        row["stub"] = int(all(one.stub for one in accepted) and (old is None or bool(old["stub"])))
        settle_state(self._context, ENTITY, row, old, accepted)

    def _insert(self, row: Row, identity: Identity) -> None:
        text = lexical.entity_row(row["name"], row["aliases"], row["description"])
        self._writer.add(ENTITY, encoded(ENTITY, row), text)
        self._writer.add_name(row["pk"], row["name"], alias=False)
        for alias in row["aliases"]:
            self._writer.add_name(row["pk"], alias, alias=True)
        self._context.name(row["pk"], row["name"], *row["aliases"])
        said = lexical.entity_text(row["name"], row["kind"], row["description"])
        self._context.want_vector(ENTITY, row["pk"], said, new=True)
        self._references.learn(row["pk"], identity, row["id"])

    def _change(self, pk: int, row: Row, old: Row) -> None:
        writer = self._writer
        writer.keep_version(ENTITY, pk)
        writer.update(ENTITY, row, lexical.entity_row(row["name"], row["aliases"], row["description"]))
        if row["aliases"] != old["aliases"]:
            writer.replace_names(pk, row["name"], row["aliases"])
            self._context.renamed.append(pk)
            self._context.name(pk, row["name"], *row["aliases"])
        said = lexical.entity_text(row["name"], row["kind"], row["description"])
        if said != lexical.entity_text(old["name"], old["kind"], old["description"]):
            self._context.want_vector(ENTITY, pk, said, new=False)

    def _note_near(self, identity: Identity, record: EntityRecord) -> None:
        scope, name, _ = identity
        near = self._tables.near(scope, name)
        if near and (scope, near[0]) not in self._run.near_noted:
            self._run.near_noted.update((scope, one) for one in (name, *near))
            names = ", ".join(f"'{one}'" for one in sorted({name, *near}))
            self._context.note("near-names", f"{names} are different entities", record)
