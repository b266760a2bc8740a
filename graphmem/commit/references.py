"""References of a batch: from what a record wrote to the entity's row, with stubs for what is not there."""

from __future__ import annotations

from collections.abc import Iterable

from graphmem import lexical
from graphmem.commit.context import BatchContext, Refused
from graphmem.commit.merge import said_of_fields
from graphmem.names import kind_key
from graphmem.prepare import canonical_json
from graphmem.records import GLOBAL_SCOPE, UNKNOWN_KIND, Record, Ref
from graphmem.resolve import Resolution, Step, newest
from graphmem.store.write import ENTITY
from graphmem.ulid import mint

Identity = tuple[str, str, str]
"""Scope, exact name, comparable kind."""


class References:
    """Finds entities for identities and references; what was found is remembered for the batch."""

    def __init__(self, context: BatchContext) -> None:
        self._context = context
        self._run = context.run
        self._writer = context.writer
        self._tables = context.tables
        self._rivals = context.run.rivals.get(ENTITY, {})
        self._met: dict[tuple[str, Ref, bool], int | Refused | None] = {}
        self._identities: dict[int, Identity] = {}
        self._pks: dict[Identity, int] = {}
        self._ids: dict[int, str] = {}

    # ---- identities -------------------------------------------------------------------------------

    def find(self, identity: Identity) -> int | None:
        """The entity of an identity, following redirects and completions."""
        found = self._pks.get(identity)
        if found is not None:
            return found
        scope = self._writer.scopes.find(identity[0])
        if scope is not None:
            found = self._writer.entity(scope, identity[1], identity[2])
        if found is None and self._tables.has_completions:
            found = self._tables.completed(*identity)
            if found is not None:
                self.learn(found, identity)
        elif found is not None:
            self._pks[identity] = found
            if not self._writer.has_redirects:  # else the identity may be a former one
                self._identities[found] = identity
        return found

    def learn(self, pk: int, identity: Identity, id_: str | None = None) -> None:
        """Remembers an entity's identity, and its id."""
        self._pks[identity] = pk
        self._identities[pk] = identity
        if id_ is not None:
            self._ids[pk] = id_

    def identity(self, pk: int) -> Identity:
        """The identity of an entity."""
        known = self._identities.get(pk)
        if known is None:
            known = self._writer.identity(pk)
            self._identities[pk] = known
        return known

    def name(self, pk: int) -> str:
        """The name of an entity."""
        return self.identity(pk)[1]

    def entity_id(self, pk: int) -> str:
        """The public id of an entity."""
        known = self._ids.get(pk)
        if known is None:
            known = self._writer.entity_id(pk)
            self._ids[pk] = known
        return known

    # ---- references -------------------------------------------------------------------------------

    def meet(self, scope: str, ref: Ref, record: Record) -> int | None:
        """The entity that a record's reference means in one of its scopes.

        `None` when a dangling reference is to be left out. Raises `Refused` when the record must be.
        """
        carried = self._run.inputs[record.input].transport
        key = (scope, ref, carried)
        met = self._met.get(key, 0)
        if met == 0:
            if ref.kind is None and ref.scope is None and ref.id is None:
                sole = self._tables.sole(scope, ref.name)
                if sole is not None and not self._context.any_archived:
                    pk, identity, id_ = sole
                    self.learn(pk, identity, id_)
                    self._met[key] = pk
                    return pk
            try:
                met = self._meet(scope, ref, record)
            except Refused as why:
                met = why
            self._met[key] = met
        if isinstance(met, Refused):
            raise Refused(met.rule, met.message, skip=met.skip)
        return met

    def _meet(self, scope: str, ref: Ref, record: Record) -> int | None:
        if ref.id is not None:
            found = self._by_id(ref.id)
            if found is not None:
                if self.identity(found)[0] not in (scope, GLOBAL_SCOPE):
                    raise Refused("foreign-scope", f"'{ref.id}' is an entity of another scope")
                return found
            if not ref.name:
                raise Refused("dangling-reference", f"no entity has the id '{ref.id}'")
        if ref.scope not in (None, scope, GLOBAL_SCOPE):
            raise Refused("foreign-scope", f"'{ref.name}' is referred to in the scope '{ref.scope}'")
        if ref.kind is not None and self._run.inputs[record.input].transport:
            found = self._carried((ref.scope or scope, ref.name, kind_key(ref.kind)), ref.kind)
            if found is not None:
                return found
        resolution = self._tables.resolve(scope, ref.name, ref.kind, ref.scope)
        if resolution.candidates:
            return self._choose(ref, resolution, record)
        return self._dangling(ref.scope or scope, ref, record)

    def _carried(self, identity: Identity, kind: str) -> int | None:
        """The entity that an export means, which says exactly which; a stub is as good as any other there."""
        found = self.find(identity)
        if found is None and self._tables.declares(*identity):
            found = self._stand_for(identity, kind)
        return found

    def _by_id(self, id_: str) -> int | None:
        found = self._writer.by_id(ENTITY, id_)
        if found is None and self._run.has_ids[ENTITY]:
            identity = self._tables.declared_id(id_)
            if identity is not None:
                found = self._stand_for(identity, None)
        return found

    def _choose(self, ref: Ref, resolution: Resolution, record: Record) -> int:
        chosen = resolution.chosen
        if chosen is None:
            if self._run.choices.on_ambiguous != "newest":
                names = ", ".join(
                    f"'{one.name}' ({one.kind or UNKNOWN_KIND}, {one.scope})" for one in resolution.candidates
                )
                raise Refused("ambiguous-name", f"'{ref.name}' could be any of {names}")
            chosen = newest(
                one._replace(updated_at=self._tables.updated(one)) for one in resolution.candidates
            )
            told = f"'{chosen.name}' ({chosen.kind or UNKNOWN_KIND}, {chosen.scope})"
            message = f"'{ref.name}' could be any of {len(resolution.candidates)}; {told} was updated last"
            self._context.note("taken-as-newest", message, record)
        if resolution.step is Step.FULL_TEXT:
            self._context.note("resolved-by-words", f"'{ref.name}' was taken as '{chosen.name}'", record)
        pk = chosen.pk
        if pk is None:
            pk = self._stand_for(chosen.identity, chosen.kind)
        else:
            self.learn(pk, chosen.identity, chosen.id)
        if ref.kind is not None and self._tables.has_completions:
            self._complete(pk, chosen.identity)
        if self._context.any_archived and chosen.pk is not None:
            self._wake(pk, chosen.name, record)
        return pk

    def _wake(self, pk: int, name: str, record: Record) -> None:
        """Brings an entity back that was archived and a record refers to, where that is wanted; else says so.

        Judged from what stood before the run, so that batches do not count.
        """
        if self._writer.batch_of(ENTITY, pk) in self._run.batches:
            return
        state, by, _ = self._writer.state_before(ENTITY, pk, self._tables.first_batch)
        if state != "archived" or by == "sync":
            return
        if self._run.choices.restore_archived:
            if self._writer.is_archived(ENTITY, pk):
                self._writer.set_state(ENTITY, pk, "active", None)
        else:
            self._context.note("refers-to-archived", f"'{name}' is archived and stays so", record)

    def _dangling(self, scope: str, ref: Ref, record: Record) -> int | None:
        policy = self._run.choices.dangling
        if policy == "error":
            raise Refused("dangling-reference", f"nothing is called '{ref.name}'")
        if policy == "skip":
            return None
        key = "" if ref.kind is None else kind_key(ref.kind)
        identity = (scope, ref.name, key)
        found = self._left_over(identity) if self._context.any_archived else self.find(identity)
        if found is None:
            self._context.note("stub-created", f"nothing is called '{ref.name}'; a stub was made", record)
            found = self._make_stub(identity, ref.kind if key else None)
        return found

    def _left_over(self, identity: Identity) -> int | None:
        """The entity of an identity, or one of that name which sync has archived: it stands as a stub again."""
        found = self.find(identity)
        scope = self._writer.scopes.find(identity[0])
        if scope is None:
            return found
        pk = self._writer.archived_by_sync(scope, identity[1], found)
        if pk is None:
            return found
        kind = None if not identity[2] else identity[2]
        row = self._writer.row(ENTITY, pk)
        row |= {
            "kind": row["kind"] if row["kind_key"] == identity[2] else kind, "kind_key": identity[2],
            "description": None, "aliases": [], "properties": {}, "stub": 1, "state": "active",
            "archived_by": None,
        }  # fmt: skip
        self._writer.keep_version(ENTITY, pk)
        self._writer.update(ENTITY, row, lexical.entity_row(row["name"], (), None))
        self._writer.replace_names(pk, row["name"], ())
        self._context.renamed.append(pk)
        self._context.name(pk, row["name"])
        self._context.want_vector(ENTITY, pk, lexical.entity_text(row["name"], row["kind"], None), new=False)
        self.learn(pk, identity, row["id"])
        return pk

    def _complete(self, pk: int, identity: Identity) -> None:
        """Gives an entity of unknown kind the kind that only references give it, so that it is no namesake."""
        kind = self._tables.referred_kind(*identity)
        row = None if kind is None else self._writer.row(ENTITY, pk)
        if row is None or row["kind_key"]:
            return
        contributions = self._writer.contributions_of(ENTITY, pk)
        for _, digest, _, _, said in contributions:
            if said is None:
                # None of them has said the kind.
                plain = said_of_fields(ENTITY, row, contributions[0][3])
                self._writer.say(ENTITY, pk, digest, canonical_json(plain))
        row["kind"], row["kind_key"] = kind, identity[2]
        self._writer.keep_version(ENTITY, pk)
        self._writer.update(ENTITY, row, lexical.entity_row(row["name"], row["aliases"], row["description"]))
        text = lexical.entity_text(row["name"], kind, row["description"])
        self._context.want_vector(ENTITY, pk, text, new=False)

    # ---- stubs ------------------------------------------------------------------------------------

    def _stand_for(self, identity: Identity, kind: str | None) -> int:
        """The row of an identity; one that a later batch of the run declares gets a stub to begin with."""
        found = self.find(identity)
        if found is not None:
            return found
        return self._make_stub(identity, self._tables.spelled(*identity) or kind)

    def owns(self, identity: Identity, id_: str) -> bool:
        """Whether an id that no stored entity has falls to an identity, of all that the run gives it to."""
        rivals = self._rivals.get(id_)
        if rivals is None:
            return True
        return identity == self._tables.declared_id(id_) or rivals[0] == canonical_json(identity).encode()

    def new_id(self, identity: Identity, given: Iterable[str] = ()) -> str:
        """The id of a new entity: the smallest that the run gives it and nothing has, else a ULID."""
        if self._run.has_ids[ENTITY]:
            ids = {*given, *self._tables.entity_ids(*identity)}
            free = [
                id_ for id_ in ids if self.owns(identity, id_) and self._writer.by_id(ENTITY, id_) is None
            ]
            if free:
                return min(free)
        return mint(self._run.clock, "entity", *identity)

    def _make_stub(self, identity: Identity, kind: str | None) -> int:
        scope, name, key = identity
        clock = self._run.clock
        pk = self._writer.next_pk(ENTITY)
        row = (
            pk, self.new_id(identity), self._writer.scopes.pk(scope), name,
            kind if key else None, key, None, None, None, "active", None, 1, clock, clock, self._writer.batch,
        )  # fmt: skip
        self._writer.add(ENTITY, row, lexical.entity_row(name, (), None))
        self._writer.add_name(pk, name, alias=False)
        self._context.name(pk, name)
        self._context.want_vector(
            ENTITY, pk, lexical.entity_text(name, kind if key else None, None), new=True
        )
        self.learn(pk, identity, row[1])
        return pk
