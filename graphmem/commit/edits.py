"""What a person's act changes in items, inside its transaction.

An edit is a contribution like any other, of an origin of its own: what it says is newer than what files
said, and what it takes away is said too. So an item stays a function of its contributions, and a file
that is read again changes nothing back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from graphmem.commit.context import BatchContext, Input
from graphmem.commit.known import Known
from graphmem.commit.memories import Memories
from graphmem.commit.merge import Merged, Merger, Said, Taken, changes, said_of_fields
from graphmem.commit.references import References
from graphmem.errors import EditRefused
from graphmem.findings import Finding, Severity
from graphmem.mapping import to_record
from graphmem.names import kind_key, predicate_key
from graphmem.prepare import canonical_json, prepare
from graphmem.records import GLOBAL_SCOPE, UNKNOWN_KIND, MemoryRecord, Place
from graphmem.store.edit import Editor
from graphmem.store.write import ABOUT, ENTITY, MEMORY, MENTION, RELATION, Row
from graphmem.ulid import memory_key

EDIT_URI: Final = "edit:"
"""The origin of what people change in the store itself."""

REMEMBER_URI: Final = "remember:"
"""The origin of what is remembered in words and not in a file."""


@dataclass(slots=True)
class MergeCounts:
    """What came of merging one entity into another."""

    memories: int = 0
    memories_united: int = 0
    relations: int = 0
    relations_united: int = 0
    loops_dropped: int = 0


@dataclass(slots=True)
class Edits:
    """Changes to items; `touched` are those whose indexes must follow."""

    context: BatchContext
    touched: set[tuple[int, int]] = field(default_factory=set)
    _origin: int = 0

    @property
    def clock(self) -> str:
        """The time of the act."""
        return self.context.run.clock

    @property
    def editor(self) -> Editor:
        """The statements of acts."""
        return Editor(self.context.writer.db, self.context.writer.scopes)

    # ---- rows -------------------------------------------------------------------------------------

    def row(self, kind: int, pk: int) -> Row:
        """An item's row with its sets: ids of entities, names of scopes, ids of memories."""
        writer = self.context.writer
        row = writer.row(kind, pk)
        if kind == MEMORY:
            row["about"] = self._ids(writer.links(pk, ABOUT))
            row["mentions"] = self._ids(writer.links(pk, MENTION))
            row["scopes"] = writer.scopes.set_names(row["scope_set"])
        elif kind == RELATION:
            row["stated_by"] = writer.stated_by(pk)
        return row

    def _ids(self, pks: list[int]) -> list[str]:
        return sorted(self.context.writer.entity_id(pk) for pk in pks)

    def _pks(self, ids: list[str]) -> list[int]:
        found = (self.context.writer.by_id(ENTITY, id_) for id_ in ids)
        return sorted({pk for pk in found if pk is not None})

    def keep(self, kind: int, pk: int) -> None:
        """Keeps an item as it is before it is changed, and notes that its indexes must follow."""
        self.context.writer.keep_version(kind, pk)
        self.context.writer.dirty = True
        self.touched.add((kind, pk))

    # ---- one item ---------------------------------------------------------------------------------

    def change(self, kind: int, pk: int, said: Said, *, always: bool = False) -> bool:
        """Says something about an item by hand, with what goes under `without`; whether that changed it.

        What changes nothing is not kept, unless it is `always` to be.
        """
        merger = Merger(self.context)
        old = self.row(kind, pk)
        held = merger.held(kind, old)
        if any(not one.digest for one in held):  # nothing is on record: what it is counts as said now
            said = said_of_fields(kind, old, "") | said
            held = []
        elif not held and not old.get("stub"):  # sync has archived it: it stands again as it was
            said = said_of_fields(kind, old, "") | said
        digest = blake2b(
            canonical_json([self.clock, kind, old["id"], said]).encode(), digest_size=16
        ).digest()
        new = Taken(self._edit_origin(), digest, 0, self.clock, said, True, False)
        row, _ = merger.folded(kind, old, old, [*held, new])
        if kind == ENTITY:
            row["kind"] = said.get("kind", old["kind"])
            row["kind_key"] = kind_key(row["kind"])
            row["stub"] = 0
        changed = changes(row, old)
        if not always and not changed - {"updated_at", "stub"} and "renamed" not in said:
            return False
        if kind == MEMORY:
            self._check_links(row)
        self.keep(kind, pk)
        self.write(kind, row)
        merger.write(kind, pk, Merged(row, True, [], [*held, new]))
        self.context.writer.flush()
        return True

    def _check_links(self, row: Row) -> None:
        """Raises `EditRefused` when a memory would be linked to an entity that none of its scopes sees."""
        writer = self.context.writer
        seen = {*row["scopes"], GLOBAL_SCOPE}
        for pk in self._pks([*row["about"], *row["mentions"]]):
            scope, name, _ = writer.identity(pk)
            if scope not in seen:
                raise EditRefused(
                    f"'{name}' is of the scope '{scope}', which the memory is not in",
                    "give the memory that scope too, or take the entity away from it",
                )

    def write(self, kind: int, row: Row) -> None:
        """Replaces an item's row with its links; indexes follow for what is in `touched`."""
        if kind == MEMORY:
            row["scope_set"] = self.context.writer.scopes.set_pk(tuple(row["scopes"]))
            row["key"] = memory_key(row["content"], row["about"], row["scopes"])
            self.editor.set_links(row["pk"], self._pks(row["about"]), self._pks(row["mentions"]))
        elif kind == RELATION:
            row["predicate_key"] = predicate_key(row["predicate"])
            self.editor.set_stated_by(row["pk"], row["stated_by"])
        self.editor.put(kind, row)

    def _edit_origin(self) -> int:
        if not self._origin:
            self._origin = self.context.writer.keep_origin(EDIT_URI, None, None, self.clock)
        return self._origin

    def add_memories(self, values: list[dict[str, Any]]) -> list[str]:
        """Stores new memories of mappings as in the record format; their ids, one for each.

        Raises `EditRefused` when one cannot be stored.
        """
        context, run = self.context, self.context.run
        run.inputs.append(Input("record", REMEMBER_URI))
        records: list[MemoryRecord] = []
        for number, value in enumerate(values, start=1):
            found: list[Finding] = []
            record = to_record({"type": "memory", **value}, Place(number, 1), "record", found)
            if not isinstance(record, MemoryRecord):
                raise EditRefused("; ".join(one.message for one in found) or "not a memory")
            prepare(record, len(run.inputs) - 1, GLOBAL_SCOPE)
            records.append(record)
        run.tables.settle(fold_case=False, stubs=True)
        fresh = Known(context).recognise(list(records))
        Memories(context, References(context), Merger(context)).store(
            [one for one in fresh if isinstance(one, MemoryRecord)]
        )
        context.writer.flush()
        errors = [one for one in run.report.findings if one.severity is Severity.ERROR]
        if errors:
            raise EditRefused("; ".join(one.message for one in errors))
        ids: list[str] = []
        for record in records:
            for _, kind, pk, *_ in context.writer.contributions(record.digest):
                if kind == MEMORY:
                    self.set_state(MEMORY, pk, "active")
                    ids.append(context.writer.row(MEMORY, pk)["id"])
                    break
        return ids

    def set_state(self, kind: int, pk: int, state: str) -> bool:
        """Archives an item as a person does, or brings it back; whether it was otherwise."""
        row = self.context.writer.row(kind, pk)
        if row["state"] == state:
            return False
        self.keep(kind, pk)
        self.context.writer.set_state(kind, pk, state, "person" if state == "archived" else None)
        return True

    # ---- identities -------------------------------------------------------------------------------

    def reidentify(self, pk: int, name: str, kind: str | None) -> bool:
        """Gives an entity another name or kind; the old ones lead to it from now on.

        Raises `EditRefused` when another entity has them.
        """
        old = self.row(ENTITY, pk)
        key = kind_key(kind)
        if (name, kind) == (old["name"], old["kind"]):
            return False
        other = self.editor.same_entity(old["scope"], name, key)
        if other not in (None, pk):
            raise EditRefused(
                f"there is another entity '{name}' of kind '{kind or UNKNOWN_KIND}'",
                f"'gmem merge' unites the two; its id is {self.context.writer.entity_id(other or 0)}",
            )
        self.keep(ENTITY, pk)
        gone = self.editor.drop_redirect(old["scope"], name, key)
        if gone is not None:
            self.touched.add((ENTITY, gone))
        before = {column: old[column] for column in ("name", "kind", "kind_key", "scope")}
        row = old | {"name": name, "kind": kind if key else None, "kind_key": key}
        self.editor.put(ENTITY, row)
        if (name, key) != (before["name"], before["kind_key"]):
            self.editor.redirect(before["scope"], before["name"], before["kind"], before["kind_key"], pk)
        said: Said = {"renamed": [before["name"], name]}
        if key:
            said["kind"] = kind
        self.change(ENTITY, pk, said)
        return True

    def repredicate(self, pk: int, predicate: str) -> tuple[int, bool]:
        """Gives a relation another predicate; the relation, and whether it was united with another."""
        row = self.row(RELATION, pk)
        moved = row | {"predicate": predicate, "predicate_key": predicate_key(predicate)}
        twin = self.editor.twin(moved)
        if twin is not None:
            self.unite(RELATION, pk, twin)
            return twin, True
        self.change(RELATION, pk, {"predicate": predicate})
        return pk, False

    # ---- merging ----------------------------------------------------------------------------------

    def merge(self, old: int, new: int, *, scopes: bool = True) -> MergeCounts:
        """Unites an entity with another, which stays; the name and ids of the old one lead there.

        What both say is kept: descriptions one after the other, values of properties that differ under
        `merged` by the name of the old one. Raises `EditRefused` for entities that cannot be united, by
        their scopes only where these are to be looked at.
        """
        one, other = self.row(ENTITY, old), self.row(ENTITY, new)
        if scopes:
            self._check_merge(one, other)
        counts = MergeCounts()
        self.keep(ENTITY, new)
        self._hand_over(ENTITY, old, new)
        self.change(ENTITY, new, _united(one, other), always=True)
        self.absorb(old, new, counts)
        self.editor.redirect(one["scope"], one["name"], one["kind"], one["kind_key"], new)
        return counts

    def absorb(self, old: int, new: int, counts: MergeCounts) -> None:
        """Moves what refers to an entity, and its former names and ids, to another; the first one goes."""
        for pk in self.editor.relations_of(old):
            self._redirect_relation(pk, old, new, counts)
        for pk in self.editor.memories_linked(old):
            self._redirect_memory(pk, old, new, counts)
        self.editor.move_names(old, new)
        self.editor.remove(ENTITY, old)
        self.touched.add((ENTITY, old))

    def _check_merge(self, one: Row, other: Row) -> None:
        if one["pk"] == other["pk"]:
            raise EditRefused(f"'{one['name']}' cannot be merged with itself", "name two entities")
        scopes = self.context.writer.scopes
        if one["scope"] != other["scope"] and scopes.name(other["scope"]) != GLOBAL_SCOPE:
            raise EditRefused(
                f"'{one['name']}' is in the scope '{scopes.name(one['scope'])}', where "
                f"'{other['name']}' of '{scopes.name(other['scope'])}' is not seen",
                "merge entities of one scope, or one into an entity of the scope 'global'",
            )

    def _hand_over(self, kind: int, old: int, new: int) -> None:
        """Gives the contributions of an item to another, with what they said written out."""
        merger = Merger(self.context)
        for one in merger.held(kind, self.row(kind, old)):
            if one.digest and not one.written:
                self.editor.write_said(kind, old, one.digest, canonical_json(one.said))
        for one in merger.held(kind, self.row(kind, new)):
            if one.digest and not one.written:
                self.editor.write_said(kind, new, one.digest, canonical_json(one.said))
        self.editor.move_contributions(kind, old, new)

    def _redirect_relation(self, pk: int, old: int, new: int, counts: MergeCounts) -> None:
        row = self.row(RELATION, pk)
        ends = (row["subject"], row["object"])
        moved = row | {end: new if row[end] == old else row[end] for end in ("subject", "object")}
        loop = moved["subject"] == moved["object"] and ends[0] != ends[1]
        if loop:
            # It is archived and not removed, so that the record that said it is known again.
            moved |= {"state": "archived", "archived_by": "person"}
        twin = self.editor.twin(moved)
        if twin is not None:
            self.unite(RELATION, pk, twin, revive=not loop)
        else:
            self.keep(RELATION, pk)
            self.editor.put(RELATION, moved)
        if loop:
            counts.loops_dropped += 1
        elif twin is not None:
            counts.relations_united += 1
        else:
            counts.relations += 1

    def _redirect_memory(self, pk: int, old: int, new: int, counts: MergeCounts) -> None:
        row = self.row(MEMORY, pk)
        gone, there = self.context.writer.entity_id(old), self.context.writer.entity_id(new)
        for links in ("about", "mentions"):
            row[links] = sorted({there if id_ == gone else id_ for id_ in row[links]})
        self.keep(MEMORY, pk)
        self.write(MEMORY, row)
        twin = self.editor.memories_of_key(row["key"], pk)
        if twin is not None and self.row(MEMORY, twin)["state"] == row["state"]:
            self.unite(MEMORY, pk, twin)
            counts.memories_united += 1
        else:
            counts.memories += 1

    def unite(self, kind: int, old: int, new: int, *, revive: bool = True) -> None:
        """Makes two relations or memories of one natural key one item: the second, with what both say.

        It is active when one of them is, unless only the second may decide that.
        """
        self.keep(kind, new)
        gone, there = self.row(kind, old), self.row(kind, new)
        if revive and gone["state"] == "active":
            there |= {"state": "active", "archived_by": None}
        if kind == RELATION:
            self._say_predicate(old, there)
        self._hand_over(kind, old, new)
        merger = Merger(self.context)
        held = merger.held(kind, there)
        row = merger.folded(kind, there, there, held)[0] if held else dict(there)
        row["created_at"] = min(gone["created_at"], there["created_at"])
        self.write(kind, row)
        if kind == MEMORY:
            self.touched.update((RELATION, one) for one in self.editor.restate(gone["id"], there["id"]))
        self.editor.move_ids(kind, old, new)
        self.editor.remove(kind, old)
        self.touched.add((kind, old))

    def _say_predicate(self, old: int, there: Row) -> None:
        """Lets what was said of a relation speak of the predicate of the one that it is united with."""
        for one in Merger(self.context).held(RELATION, self.row(RELATION, old)):
            said = one.said.get("predicate")
            if one.digest and said is not None and predicate_key(said) != there["predicate_key"]:
                said = one.said | {"predicate": there["predicate"]}
                self.editor.rewrite_said(RELATION, old, one.digest, canonical_json(said))


def _united(one: Row, other: Row) -> Said:
    """What an entity says once another was merged into it."""
    said: Said = {"aliases": sorted({*one["aliases"], *other["aliases"], one["name"]} - {other["name"]})}
    if other["kind_key"]:
        said["kind"] = other["kind"]  # however the other has spelled it
    texts = [text for text in (other["description"], one["description"]) if text]
    if len(texts) == 2 and texts[1] in texts[0]:
        texts.pop()
    if texts:
        said["description"] = "\n\n".join(texts)
    properties: dict[str, Any] = one["properties"] | other["properties"]
    lost = {
        key: value
        for key, value in one["properties"].items()
        if key in other["properties"] and other["properties"][key] != value
    }
    if lost:
        merged = properties.get("merged")
        properties["merged"] = {**(merged if isinstance(merged, dict) else {}), one["name"]: lost}
    if properties:
        said["properties"] = properties
    return said
