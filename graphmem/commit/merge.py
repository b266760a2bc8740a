"""Joining records to one item: what each says, what the policy lets through, what the item becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from graphmem.commit.context import BASE_ORIGIN, BatchContext, Refused
from graphmem.fold import SCALARS, SETS, Contribution, Folded, fold
from graphmem.prepare import canonical_json
from graphmem.records import KINDS, Claim, EntityRecord, MemoryRecord, Record
from graphmem.store.write import ENTITY, MEMORY, Row

Said = dict[str, Any]


class Taken(NamedTuple):
    """A contribution with its place in the store: origin number, record digest, line.

    `written` is whether what it said is (or must be) written out, `stored` whether it is in the store.
    """

    origin: int
    digest: bytes
    line: int
    taken_at: str
    said: Said
    written: bool
    stored: bool


def said_of_record(record: Record, links: Mapping[str, list[str]]) -> Said:
    """What a record says about its item; `links` holds a memory's entity ids by `about` and `mentions`."""
    if isinstance(record, EntityRecord):
        said: Said = {"kind": record.kind, "description": record.description, "aliases": record.aliases}
    elif isinstance(record, MemoryRecord):
        said = {
            "content": record.content, "title": record.title, "memory_type": record.memory_type,
            "importance": record.importance, "valid_at": record.valid_at, "invalid_at": record.invalid_at,
            "expired_at": record.expired_at, "tags": record.tags, "scopes": record.scopes, **links,
        }  # fmt: skip
        if record.source is not None:
            said["place"] = [record.source, record.position]
    else:
        said = {
            "predicate": record.predicate, "fact": record.fact, "weight": record.weight,
            "invalid_at": record.invalid_at, "expired_at": record.expired_at, "stated_by": record.stated_by,
        }  # fmt: skip
    said["properties"] = record.properties
    said["created_at"] = record.created_at
    if record.updated_at != record.created_at:
        said["updated_at"] = record.updated_at
    return _stated(said)


def is_bare_stub(record: Record, *, transport: bool) -> bool:
    """Whether a record only carries a stub along, which no origin has said anything about."""
    return transport and isinstance(record, EntityRecord) and record.stub and not record.origins


def says_nothing(record: Record, *, transport: bool) -> bool:
    """Whether a record only carries an item along of which no origin says anything: a stub, or archived so."""
    if is_bare_stub(record, transport=transport):
        return True
    return transport and not record.origins and record.state == "archived" and record.archived_by == "sync"


def _stated(said: Said) -> Said:
    return {key: value for key, value in said.items() if value is not None and value != [] and value != {}}


def said_of_fields(kind: int, fields: Mapping[str, Any], taken_at: str) -> Said:
    """What an item's only contribution said, read back from the item's own fields.

    A time that equals the run's clock was not stated.
    """
    said = {name: fields.get(name) for name in (*SCALARS[kind], *SETS[kind], "properties")}
    if kind == MEMORY and fields.get("source") is not None:
        said["place"] = [fields["source"], fields.get("position")]
    created, updated = fields["created_at"], fields["updated_at"]
    if created != taken_at:
        said["created_at"] = created
    if updated != created:
        said["updated_at"] = updated
    return _stated(said)


@dataclass(slots=True)
class Merged:
    """What an item becomes: its row with the sets as lists, the contributions, and what changed."""

    row: Row
    changed: bool
    accepted: list[Record]
    taken: list[Taken] = field(default_factory=list)
    ties: list[str] = field(default_factory=list)


class Merger:
    """Merges groups of records into items under the run's conflict policy."""

    def __init__(self, context: BatchContext) -> None:
        self._context = context
        self._run = context.run
        self._writer = context.writer
        self._policy = context.run.choices.on_conflict

    def merge(
        self, kind: int, base: Row, old: Row | None, group: Sequence[tuple[Record, Mapping[str, list[str]]]]
    ) -> Merged:
        """The item of a group of records; `old` is its present row, `base` the row to start from.

        Rows carry the sets (`aliases`, `tags`, `about` …) as sorted lists. Counts the records that the
        policy keeps out. With nothing accepted the outcome is unchanged.
        """
        held = self.held(kind, old)
        stood = old is not None and old["batch"] not in self._run.batches
        # Policies are for what was said before; of what was a stub until this run, nothing was.
        standing = stood and any(one.taken_at != self._run.clock for one in held)
        accepted: list[Record] = []
        taken = list(held)
        known = {(one.origin, one.digest) for one in held}
        for record, links in group:
            new = self._taken(kind, record, links, known, standing=standing)
            if standing and old is not None:
                try:
                    new = self._allowed(kind, base, old, held, new, record)
                except Refused as why:
                    self._context.refuse(kind, record, why)
                    continue
            accepted.append(record)
            replaced = {(one.origin, one.digest) for one in new}
            taken = [one for one in taken if (one.origin, one.digest) not in replaced] + new
            known |= replaced
        if not accepted:
            return Merged(dict(base), False, accepted, held)
        if not taken:
            row = dict(base) if stood else self._bare(base, accepted)
            return Merged(row, old is None or row != old, accepted, held)
        row, folded = self.folded(kind, base, old, taken)
        for record in accepted:
            if record.origins and record.created_at:
                # An item that is carried over may have been a stub before any of its origins was read.
                row["created_at"] = min(row["created_at"], record.created_at)
        changed = old is None or bool(changes(row, old))
        if standing:
            self._note_kept_out(kind, base, row, old, accepted, taken)
        # Spellings of one kind or predicate are not values that differ.
        ties = [name for name in folded.ties if name not in ("kind", "predicate")]
        return Merged(row, changed, accepted, taken, ties)

    def _note_kept_out(
        self, kind: int, base: Row, row: Row, old: Row | None, accepted: list[Record], taken: list[Taken]
    ) -> None:
        """Says which values were not taken because the item had newer ones before the run.

        Each record is judged beside what stood then, so that it does not matter which batch it is in.
        """
        before = [one for one in taken if one.taken_at != self._run.clock]
        fields: set[str] = set()
        for one in taken:
            if one.stored or not _kept_out(kind, one.said, row):
                continue
            alone, _ = self.folded(kind, base, old, [*before, one])
            fields.update(_kept_out(kind, one.said, alone))
        if fields:
            told = ", ".join(f"'{name}'" for name in sorted(fields))
            self._context.note(
                "older-kept-out", f"{KINDS[kind]} '{row['id']}' has newer values for {told}", accepted[0]
            )

    def write(self, kind: int, item: int, merged: Merged) -> None:
        """Writes the contributions.

        While all contributions of an item have one digest, what they said is the item's own fields, unless
        these say more: a kind that came from elsewhere, the age of a stub.
        """
        self._context.support(kind, item, merged.accepted)
        taken = [one for one in merged.taken if one.digest]
        single = len({one.digest for one in taken}) == 1 and not any(one.written for one in merged.taken)
        if single:
            first = min(one.taken_at for one in taken)
            plain = said_of_fields(kind, merged.row, first)
            single = all(one.said == plain for one in taken)
        for one in taken:
            if not one.stored:
                said = None if single else canonical_json(one.said)
                self._writer.add_contribution(
                    one.origin, one.digest, kind, item, one.line, one.taken_at, said
                )
            elif not single and not one.written:
                self._writer.say(kind, item, one.digest, canonical_json(one.said))

    def _bare(self, base: Row, stubs: Sequence[Record]) -> Row:
        """The row of an entity of which a transport file says no more than that it is a stub."""
        created = min(one.created_at or self._run.clock for one in stubs)
        updated = max(one.updated_at or one.created_at or self._run.clock for one in stubs)
        return base | {"created_at": created, "updated_at": updated}

    # ---- what is there, what comes ----------------------------------------------------------------

    def held(self, kind: int, old: Row | None) -> list[Taken]:
        """The contributions that a present item has; its row carries the sets as lists."""
        if old is None:
            return []
        rows = self._writer.contributions_of(kind, old["pk"])
        if not rows:
            if old.get("stub") or old["archived_by"] == "sync" or (kind, old["pk"]) in self._run.replaced:
                return []
            said = said_of_fields(kind, old, "")
            return [Taken(0, b"", 0, old["created_at"], said, True, True)]
        first = rows[0][3]
        return [
            Taken(origin, digest, line, taken_at,
                  said_of_fields(kind, old, first) if said is None else _decoded(said), said is not None, True)
            for origin, digest, line, taken_at, said in rows
        ]  # fmt: skip

    def _taken(
        self, kind: int, record: Record, links: Mapping[str, list[str]], known: set[tuple[int, bytes]],
        *, standing: bool,
    ) -> list[Taken]:  # fmt: skip
        """The contributions a record brings: itself, or those a transport file says it had."""
        source = self._run.inputs[record.input]
        if is_bare_stub(record, transport=source.transport):
            return []
        if says_nothing(record, transport=source.transport):
            said = said_of_record(record, links)
            return [] if known else [Taken(0, b"", 0, self._run.clock, said, True, False)]
        if source.transport and record.origins:
            claims = [self._claimed(kind, record, claim, links) for claim in record.origins]
            held = [one for one in claims if (one.origin, one.digest) in known]
            # What an origin says is one item's here, even where the exported store had it otherwise.
            free = [
                one for one in claims if one not in held and not self._writer.is_taken(one.origin, one.digest)
            ]
            if free or held or known:
                return free
        said = said_of_record(record, links)
        if standing and self._policy == "overwrite":
            said["updated_at"] = self._run.clock
        elif (source.origin or self._writer.origin(source.origin_uri), record.digest) in known:
            return []
        return [
            Taken(
                self._context.origin(source),
                record.digest,
                record.place[0],
                self._run.clock,
                said,
                False,
                False,
            )
        ]

    def _claimed(self, kind: int, record: Record, claim: Claim, links: Mapping[str, list[str]]) -> Taken:
        origin = self._writer.keep_origin(
            claim.uri or BASE_ORIGIN, claim.format, claim.file_digest, claim.taken_at if claim.uri else None
        )
        if claim.said is None:
            first = min(one.taken_at for one in record.origins or ())
            fields = said_of_record(record, links)
            if isinstance(record, MemoryRecord):
                fields |= {"source": record.source, "position": record.position}
            fields.setdefault("created_at", first)
            fields.setdefault("updated_at", fields["created_at"])
            said = said_of_fields(kind, fields, first)
        else:
            said = dict(claim.said)
        digest = bytes.fromhex(claim.record_digest)
        return Taken(origin, digest, claim.line, claim.taken_at, said, claim.said is not None, False)

    # ---- policy -----------------------------------------------------------------------------------

    def _allowed(
        self, kind: int, base: Row, old: Row, held: list[Taken], new: list[Taken], record: Record
    ) -> list[Taken]:
        """The contributions of a record that the policy lets through to an item that stood before the run."""
        if self._policy in ("merge", "overwrite"):
            return new
        if self._policy == "newer":
            known = record.updated_at or record.created_at or self._run.clock
            _, _, updated_at = self._writer.state_before(kind, old["pk"], self._context.tables.first_batch)
            if known <= updated_at and new:
                raise Refused("older-kept-out", f"{KINDS[kind]} is not newer than the stored one", skip=True)
            return [one._replace(said=one.said | {"updated_at": known}) for one in new]
        row, _ = self.folded(kind, base, old, [*held, *new]) if new else (old, None)
        fields = changes(row, old) - {"updated_at"}
        fields.update(name for one in new for name in _kept_out(kind, one.said, old))
        if not fields:
            return new
        differing = ", ".join(f"'{key}'" for key in sorted(fields))
        if self._policy == "skip":
            raise Refused(
                "conflict-skipped", f"{KINDS[kind]} differs from the stored one in {differing}", skip=True
            )
        raise Refused("conflict", f"{KINDS[kind]} differs from the stored one in {differing}")

    # ---- the fold ---------------------------------------------------------------------------------

    def folded(self, kind: int, base: Row, old: Row | None, taken: list[Taken]) -> tuple[Row, Folded]:
        """The row that contributions make of an item, started from `base`."""
        folded = fold(kind, [Contribution(one.taken_at, one.said) for one in taken])
        row = dict(base)
        for name in SCALARS[kind]:
            if name == "place":
                row["source"], row["position"] = folded.fields.get("place") or (None, None)
            elif name in folded.fields:
                row[name] = folded.fields[name]
            elif name not in ("kind", "content", "predicate", "valid_at"):
                row[name] = None
        if kind == MEMORY:
            row["valid_at"] = folded.fields.get("valid_at")
        for name in (*SETS[kind], "properties"):
            row[name] = folded.fields[name]
        if kind == MEMORY:
            row["about"], row["mentions"] = self._present(row["about"]), self._present(row["mentions"])
        if kind == ENTITY:
            row["aliases"] = [alias for alias in row["aliases"] if alias != row["name"]]
        row["created_at"], row["updated_at"] = folded.created_at, folded.updated_at
        if old is not None and old["batch"] not in self._run.batches:
            # A stub is older than all that was said about it.
            row["created_at"] = min(old["created_at"], folded.created_at)
        return row, folded

    def _present(self, ids: Sequence[str]) -> list[str]:
        """The present ids of entities of which contributions may know a former or foreign one."""
        found = {self._writer.by_id(ENTITY, id_) for id_ in ids} - {None}
        return sorted(self._writer.entity_id(pk) for pk in found if pk is not None)


def changes(row: Row, old: Row) -> set[str]:
    """The columns in which two rows of an item differ."""
    differing = {key for key in old if row[key] != old[key]}
    # To Python, 1 and true are equal.
    if canonical_json(row["properties"]) != canonical_json(old["properties"]):
        differing.add("properties")
    return differing


def _kept_out(kind: int, said: Said, row: Row) -> list[str]:
    """The fields in which an item does not hold what is said of it; spellings of a kind do not count."""
    fields: list[str] = []
    for name in SCALARS[kind]:
        if name in ("kind", "predicate") or name not in said:
            continue
        held = [row["source"], row["position"]] if name == "place" else row[name]
        if said[name] != held:
            fields.append("source" if name == "place" else name)
    properties = said.get("properties", {})
    if any(row["properties"].get(key) != value for key, value in properties.items()):
        fields.append("properties")
    return fields


def _decoded(said: str) -> Said:
    import json

    decoded: Said = json.loads(said)
    return decoded
