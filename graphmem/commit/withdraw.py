"""What files no longer say: edited memories keep their identity, and support that is gone is withdrawn.

An item is a function of its contributions. When some of them go, its fields are made of those that are
left; without any it is archived, and support that comes back wakes it. An entity that something else still
refers to stays, as the stub that such a reference would have made.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from graphmem.commit.context import BatchContext, Input
from graphmem.commit.derive import refresh
from graphmem.commit.edits import EDIT_URI, Edits, MergeCounts
from graphmem.commit.merge import Merger, Taken, changes, said_of_fields
from graphmem.errors import SyncRefused
from graphmem.names import kind_key
from graphmem.prepare import canonical_json
from graphmem.records import KINDS, EntityRecord, MemoryRecord, Record
from graphmem.store.follow import Following
from graphmem.store.write import ENTITY, MEMORY, Row, Writer

Item = tuple[int, int]


@dataclass(slots=True)
class Withdrawn:
    """What came of it: items archived by kind, items that lost something, entities that became stubs."""

    archived: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    changed: int = 0
    stubs: int = 0


class Matching:
    """Finds, for the records of a file that was edited, the memories whose text they are now."""

    def __init__(self, context: BatchContext) -> None:
        self._context = context
        self._following = Following(context.writer.db)

    def match(self, number: int, source: Input, records: Sequence[Record], *, renamed: bool) -> None:
        """Prepares the run for the records of one whole file, before they are stored."""
        if not source.origin or source.broken:
            return
        gone = self._context.tables.said_no_more(source.origin, number)
        if not gone:
            return
        self._memories(source, gone, [one for one in records if type(one) is MemoryRecord])
        self._entities(source, gone, [one for one in records if type(one) is EntityRecord], renamed=renamed)

    def _is_sole(self, source: Input, kind: int, item: int, digest: bytes) -> bool:
        """Whether only this file speaks of an item, and nobody in the run says the same elsewhere.

        A person may have edited it too, but not its text.
        """
        by_hand = self._context.writer.origin(EDIT_URI)
        said = self._context.writer.contributions_of(kind, item)
        files = [origin for origin, *_ in said if origin != by_hand]
        edits = [json.loads(words or "{}") for origin, _, _, _, words in said if origin == by_hand]
        return (
            files == [source.origin]
            and not any("content" in one for one in edits)
            and not self._context.tables.is_said(digest)
        )

    def _memories(
        self, source: Input, gone: Sequence[tuple[bytes, int, int, int]], records: list[MemoryRecord]
    ) -> None:
        """Equal text finds its memory by itself; what is left over is paired in order, by heading."""
        writer = self._context.writer
        rows = {item: writer.row(MEMORY, item) for _, kind, item, _ in gone if kind == MEMORY}
        held = {row["content"] for row in rows.values()}
        said = {one.content for one in records}
        waiting: dict[str | None, list[MemoryRecord]] = defaultdict(list)
        for one in sorted(records, key=lambda one: one.place):
            known = bool(writer.contributions(one.digest))  # it goes where others say the same
            if not known and one.content not in held and one.id is None:
                waiting[one.title].append(one)
        for digest, kind, item, _ in gone:
            if kind != MEMORY or rows[item]["content"] in said or rows[item]["state"] != "active":
                continue
            fresh = waiting.get(rows[item]["title"])
            if fresh and self._is_sole(source, kind, item, digest):
                record = fresh.pop(0)
                for same in [one for one in records if _key(one) == _key(record)]:
                    self._context.run.targets[same.digest] = item
                for waiters in waiting.values():
                    waiters[:] = [one for one in waiters if _key(one) != _key(record)]
                self._context.run.replaced.add((MEMORY, item))
                writer.keep_version(MEMORY, item)
                self._following.withdraw(source.origin, [digest])

    def _entities(
        self, source: Input, gone: Sequence[tuple[bytes, int, int, int]], records: list[EntityRecord], *,
        renamed: bool,
    ) -> None:  # fmt: skip
        """An entity whose kind was edited stays itself; so does a note that is named by its moved file."""
        writer = self._context.writer
        fresh = [one for one in records if not writer.is_taken(source.origin, one.digest)]
        old = [
            (digest, writer.row(ENTITY, item))
            for digest, kind, item, _ in gone
            if kind == ENTITY and self._is_sole(source, ENTITY, item, digest)
        ]
        for digest, row in old:
            alike = [
                one for one in fresh
                if one.name == row["name"] and writer.scopes.find(one.scope or "") == row["scope"]
            ]  # fmt: skip
            if not alike and renamed and len(old) == len(fresh) == 1:
                alike = fresh
            if len(alike) == 1:
                self._become(source, digest, row, alike[0])

    def _become(self, source: Input, digest: bytes, row: Row, record: EntityRecord) -> None:
        """Gives an entity the name and kind that its only source gives it now, if nobody else has them."""
        writer, tables = self._context.writer, self._context.tables
        scope, key = record.scope or "", kind_key(record.kind)
        identity = (record.name, key)
        if (
            not key and record.name == row["name"]
        ):  # it joins what the name has, and the kind goes with what said it
            return
        if identity == (row["name"], row["kind_key"]) or writer.scopes.find(scope) != row["scope"]:
            return
        edits = Edits(self._context)
        taken = edits.editor.same_entity(row["scope"], *identity)
        if tables.declares(scope, row["name"], row["kind_key"]):
            return
        if taken is not None:
            if writer.row(ENTITY, taken)["archived_by"] != "sync":
                return
            # One that had the name before; what is archived with it stays with the name.
            edits.absorb(taken, row["pk"], MergeCounts())
        writer.keep_version(ENTITY, row["pk"])
        edits.editor.put(ENTITY, row | {"name": record.name, "kind": record.kind, "kind_key": key})
        self._following.withdraw(source.origin, [digest])
        self._context.run.replaced.add((ENTITY, row["pk"]))
        writer.dirty = True
        refresh(self._context, edits.touched | {(ENTITY, row["pk"])})


def _key(record: MemoryRecord) -> tuple[object, ...]:
    """What makes two records of a file one memory."""
    return record.content, tuple(record.about), tuple(record.scopes)


class Withdrawal:
    """Withdraws what files no longer say, at the end of a run."""

    def __init__(self, context: BatchContext) -> None:
        self._context = context
        self._edits = Edits(context)
        self._following = Following(context.writer.db)
        self._items: set[Item] = set()
        self._origins: set[int] = set()
        self._absorbed: set[int] = set()
        """Entities that are part of another one now."""

    @property
    def touched(self) -> set[Item]:
        """The items whose indexes must follow."""
        return self._edits.touched

    def gone(self, origin: int, source: int | None) -> None:
        """Withdraws what an origin said and its input says no more; everything where the file is gone."""
        found = self._context.tables.said_no_more(origin, source)
        for _, kind, item, _ in found:
            if (kind, item) not in self._items:
                self._items.add((kind, item))
                self._keep(kind, item)
        self._following.withdraw(origin, [digest for digest, *_ in found])
        self._origins.add(origin)

    def _keep(self, kind: int, item: int) -> None:
        self._context.writer.keep_version(kind, item)
        self._context.writer.dirty = True

    def settle(self, allowed: int) -> Withdrawn:
        """Makes every item what is left of it. Raises `SyncRefused` when more would be archived than allowed."""
        told = Withdrawn()
        ends: set[int] = set()
        self._items |= self._context.run.left
        # Made ready for a record that was refused, or that went elsewhere.
        self._items |= {one for one in self._context.run.replaced if not self._following.supporters(*one)}
        for kind, item in sorted(self._items, reverse=True):  # entities last: what refers to them is known
            if kind == ENTITY:
                continue
            self._settle(kind, item, told)
            ends.update(self._following.ends(kind, item))
        entities = {item for kind, item in self._items if kind == ENTITY}
        for item in sorted(entities):
            if item not in self._absorbed:
                self._settle(ENTITY, item, told)
        for item in sorted(ends - entities):
            if item not in self._absorbed:
                self._leave(item, told)
        self._following.drop_origins(sorted(self._origins))
        archived = sum(told.archived.values())
        if archived > allowed:
            raise SyncRefused(
                f"{archived:,} things would be archived, more than {allowed:,}",
                f"if the files are really gone, allow it with --max-delete {archived}",
            )
        return told

    def _settle(self, kind: int, item: int, told: Withdrawn) -> None:
        merger = Merger(self._context)
        old = self._edits.row(kind, item)
        left = [one for one in merger.held(kind, old) if one.digest]
        by_hand = self._context.writer.origin(EDIT_URI)
        if left and kind != ENTITY and all(one.origin == by_hand for one in left):
            self._stand_alone(kind, old, left)
        elif left:
            row, _ = merger.folded(kind, old, old, left)
            if kind == ENTITY:
                row["kind"], row["kind_key"] = self._kind(old, any(one.said.get("kind") for one in left))
            self._put(kind, row, old, told)
        elif old["state"] == "active":
            if kind == ENTITY and self._following.is_referred_to(item):
                spelled, key = self._kind(old, False)
                bare: Row = {
                    "description": None, "aliases": [], "properties": {}, "stub": 1, "kind": spelled,
                    "kind_key": key,
                }  # fmt: skip
                self._put(ENTITY, old | bare, old, told)
                told.stubs += 1
            else:
                self._archive(kind, item, told)

    def _stand_alone(self, kind: int, old: Row, left: Sequence[Taken]) -> None:
        """Lets what a person has edited stand as it is: the last edit says all of it from now on."""
        last = max(left, key=lambda one: one.taken_at)
        kept = {key: last.said[key] for key in ("without", "renamed") if key in last.said}
        said = said_of_fields(kind, old, "") | kept
        self._edits.editor.rewrite_said(kind, old["pk"], last.digest, canonical_json(said))

    def _kind(self, old: Row, said: bool) -> tuple[str | None, str]:
        """The kind that an entity keeps: none that nobody says any more, unless that is another entity's."""
        if said or not old["kind_key"]:
            return old["kind"], old["kind_key"]
        other = self._edits.editor.same_entity(old["scope"], old["name"], "")
        if other is not None:
            if self._context.writer.row(ENTITY, other)["archived_by"] != "sync":
                return old["kind"], old["kind_key"]
            # It had the name without a kind before; what is archived with it stays with the name.
            self._edits.absorb(other, old["pk"], MergeCounts())
            self._absorbed.add(other)
        return None, ""

    def _put(self, kind: int, row: Row, old: Row, told: Withdrawn) -> None:
        if changes(row, old):
            self._edits.write(kind, row)
            self._edits.touched.add((kind, row["pk"]))
            told.changed += 1

    def _archive(self, kind: int, item: int, told: Withdrawn) -> None:
        self._context.writer.set_state(kind, item, "archived", "sync")
        told.archived[KINDS[kind]] += 1

    def _leave(self, entity: int, told: Withdrawn) -> None:
        """Archives a stub that nothing refers to any more."""
        row = self._context.writer.row(ENTITY, entity)
        if row["stub"] and row["state"] == "active" and not self._following.is_referred_to(entity):
            self._archive(ENTITY, entity, told)


def apply_renames(writer: Writer, renamed: Iterable[tuple[str, int]]) -> None:
    """Gives origins the new addresses of their files."""
    following = Following(writer.db)
    for uri, origin in renamed:
        following.move_origin(origin, uri)
        writer.dirty = True
