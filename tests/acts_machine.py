"""A Hypothesis machine that imports, remembers, changes, forgets, renames, merges and takes back.

After each step the store is sound, its indexes are what making them anew gives, its export in an empty
store is the same store, and what was taken back and done again is exactly what it was.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from hash_encoder import HashEncoder
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from importing import in_memory, take, take_records, unaccounted
from snapshots import Content, content, differences, sound
from strategies import KINDS, PREDICATES, SCOPES, TIMES, Pool, Record, pools, records

from graphmem import lexical
from graphmem.edit.forget import forget
from graphmem.edit.identity import alias, merge, rename
from graphmem.edit.remember import remember
from graphmem.edit.scopes import rename_scope
from graphmem.edit.undo import undo
from graphmem.edit.update import Update, update
from graphmem.errors import EditRefused, LookupFailed, UndoRefused, UsageError
from graphmem.export import export
from graphmem.findings import Severity
from graphmem.store import Store
from graphmem.store.check import check
from graphmem.store.derived import Derived
from graphmem.store.mentions import rebuild
from graphmem.store.write import ENTITY, MEMORY, RELATION, TABLES

REFUSED = (EditRefused, LookupFailed, UndoRefused, UsageError)


def exported(store: Store) -> bytes:
    """The store as a JSONL export."""
    target = io.BytesIO()
    export(store, "jsonl", target)
    return target.getvalue()


class _Back(Exception):
    """Ends a transaction without keeping what it did."""


def anew(store: Store) -> Content:
    """What the store holds once its derived tables are made anew, which is not kept."""
    held: Content = {}
    db: Any = store.db
    with suppress(_Back), store.transaction():
        for table in ("name_key", "memory_tag", "mention", "mention_name"):
            db.execute(f"DELETE FROM {table}")
        for table in TABLES:
            db.execute(f"INSERT INTO {table}_fts ({table}_fts) VALUES ('delete-all')")
        derived = Derived(db)
        for kind, table in enumerate(TABLES):
            for (pk,) in db.execute(f"SELECT pk FROM {table} ORDER BY pk").fetchall():
                assert derived.refresh(kind, pk) is not None
        rebuild(db)
        held = content(db)
        raise _Back
    return held


def wrong(store: Store, *, vectors: bool = True) -> list[str]:
    """Everything that is not as it must be in a store after an act; empty when all is well."""
    db: Any = store.db
    problems = sound(db)
    problems += [
        f"{one.rule}: {one.message}" for one in check(store).findings if one.severity is not Severity.NOTE
    ]
    held = content(db)
    problems += [f"anew: {line}" for line in differences(held, anew(store))]
    if vectors:
        problems += _without_their_vectors(db)
    for kind, table in enumerate(TABLES):
        highest = db.execute(f"SELECT ifnull(max(pk), 0) FROM {table}").get
        assert store.writer().next_pk(kind) > highest
    return problems


def _without_their_vectors(db: Any) -> list[str]:
    derived = Derived(db)
    entities = "SELECT pk, name, kind, description FROM entity"
    relations = (
        "SELECT i.pk, i.fact, a.name, i.predicate, b.name FROM relation AS i "
        "JOIN entity AS a ON a.pk = i.subject JOIN entity AS b ON b.pk = i.object"
    )
    about = (
        "SELECT e.name FROM memory_link AS l JOIN entity AS e ON e.pk = l.entity "
        "WHERE l.memory = ? AND l.role = 0 ORDER BY e.name"
    )
    wanted = {(ENTITY, pk): lexical.entity_text(*row) for pk, *row in db.execute(entities).fetchall()}
    wanted |= {(RELATION, pk): lexical.relation_text(*row) for pk, *row in db.execute(relations).fetchall()}
    for pk, text, title in db.execute("SELECT pk, content, title FROM memory").fetchall():
        names = [name for (name,) in db.execute(about, (pk,))]
        wanted[MEMORY, pk] = lexical.memory_text(text, title, names)
    return [
        f"{TABLES[kind]} {pk} has not the vectors of '{text}'"
        for (kind, pk), text in wanted.items()
        if not derived.has_vectors_of(kind, pk, text)
    ]


class State(NamedTuple):
    """A store at one moment."""

    content: Content
    export: bytes


def state(store: Store) -> State:
    """The store as it is now."""
    return State(content(store.db), exported(store))


def unlike(one: State, two: State) -> list[str]:
    """What two states differ in."""
    found = differences(one.content, two.content)
    if not found and one.export != two.export:
        old, new = set(one.export.splitlines()), set(two.export.splitlines())
        found = [f"export: {sorted(old - new)} / {sorted(new - old)}"]
    return found


def nothing(problems: list[str]) -> None:
    """Fails with all the problems, if there are any."""
    assert not problems, "\n".join(problems)


class Acts(RuleBasedStateMachine):
    """Acts on one store in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.store = in_memory()
        self.encoder = HashEncoder()
        self.pool = Pool(("a",), ("global",), ids=False, times=False, states=False)
        self.files: dict[str, list[Record]] = {}
        self.taken: set[str] = set()
        """The files of which every record was taken when they were imported last."""
        self.done: list[tuple[str, State]] = []
        """Batches that stand, each with what stood before it; nothing else changed the store since."""
        self.redo: tuple[str, State] | None = None
        """The last step, if it took batches back: its batch, and what stood before it."""

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    # ---- doing ------------------------------------------------------------------------------------

    def act(self, told: str, body: Callable[[], Any]) -> Any:
        """Does something that is one batch or nothing; what it returns, `None` when it was refused."""
        before, said = state(self.store), content(self.store.db, places=False)
        note(told)
        try:
            result = body()
        except REFUSED as error:
            note(f"  refused: {error.message}")
            nothing(unlike(before, state(self.store)))
            return None
        self.sound()
        batch = self.last_batch()
        if batch is None or batch == self.newest:
            nothing(differences(said, content(self.store.db, places=False)))
            if unlike(before, state(self.store)):  # a file was read in another version that says no more
                self.done.clear()
                self.redo = None
            return result
        self.newest = batch
        self.done.append((batch, before))
        self.redo = None
        return result

    newest: str | None = None

    def last_batch(self) -> str | None:
        found: str | None = self.store.db.execute("SELECT id FROM batch ORDER BY pk DESC LIMIT 1").get
        return found

    def sound(self) -> None:
        nothing(wrong(self.store))

    def ids(self, kind: int | None = None) -> list[str]:
        found = []
        for number, table in enumerate(TABLES):
            if kind in (None, number):
                found += [one for (one,) in self.store.db.execute(f"SELECT id FROM {table} ORDER BY pk")]
        return found

    def pick(self, data: st.DataObject, kind: int | None = None) -> str:
        return data.draw(st.sampled_from(self.ids(kind)))

    # ---- rules ------------------------------------------------------------------------------------

    @initialize(pool=pools(), data=st.data())
    def begin(self, pool: Pool, data: st.DataObject) -> None:
        self.pool = pool
        self.import_(data, "a")

    @rule(data=st.data(), name=st.sampled_from(("a", "b")))
    def import_(self, data: st.DataObject, name: str) -> None:
        held = self.files.get(name, [])
        more = data.draw(st.lists(records(self.pool), min_size=1, max_size=3))
        kept = [one for one in held if data.draw(st.booleans())]
        self.files[name] = kept + more
        self.act(f"import {name}: {self.files[name]}", lambda: self._import(name))

    def _import(self, name: str) -> Any:
        report = take_records(
            self.store, Path(self.folder.name), self.files[name], name=name, encoder=self.encoder
        )
        assert unaccounted(report) == []
        self.taken.discard(name)
        if not report.total("rejected") and not report.total("skipped"):
            self.taken.add(name)
        return report

    @rule(name=st.sampled_from(("a", "b")))
    def import_again(self, name: str) -> None:
        """What was taken already changes nothing, whatever was done to it since."""
        path = Path(self.folder.name) / f"{name}.jsonl"
        if name not in self.taken or self.undone:
            return
        before = state(self.store)
        report = take(self.store, path, encoder=self.encoder)
        note(f"import {name} again")
        assert report.batches == [], report.as_dict()
        nothing(unlike(before, state(self.store)))

    undone = False
    """Whether anything was taken back that may have been an import."""

    @rule(data=st.data(), scope=st.sampled_from(SCOPES))
    def remember(self, data: st.DataObject, scope: str) -> None:
        given = data.draw(st.lists(records(self.pool), min_size=1, max_size=3))
        done = self.act(
            f"remember {given}",
            lambda: remember(self.store, given, scope=scope, encoder=self.encoder),
        )
        if done is not None:
            assert len(done[1]) == len(given)
            for told in done[1]:
                assert told.status in ("created", "merged", "unchanged", "rejected")
                assert (told.id is None) == (told.status == "rejected")

    @precondition(lambda self: self.ids(0))
    @rule(data=st.data())
    def change_entity(self, data: st.DataObject) -> None:
        wanted = Update(
            set=data.draw(st.fixed_dictionaries({}, optional={
                "description": st.sampled_from(("d1", "d3")), "kind": st.sampled_from(KINDS[:4]),
                "aliases": st.lists(st.sampled_from(self.pool.names), max_size=2),
                "state": st.sampled_from(("active", "archived"))})),
            clear=data.draw(st.lists(st.sampled_from(("description", "kind", "aliases")), max_size=1)),
            add=data.draw(st.fixed_dictionaries({}, optional={
                "aliases": st.lists(st.sampled_from((*self.pool.names, "new")), min_size=1, max_size=2)})),
            properties=data.draw(st.dictionaries(st.sampled_from("pq"), st.sampled_from((1, "x")), max_size=1)),
            without_properties=data.draw(st.lists(st.sampled_from("pq"), max_size=1)),
        )  # fmt: skip
        self.change(self.pick(data, 0), wanted)

    @precondition(lambda self: self.ids(1))
    @rule(data=st.data())
    def change_memory(self, data: st.DataObject) -> None:
        entities = self.ids(0)
        refs = st.lists(st.sampled_from(entities), min_size=1, max_size=2) if entities else st.nothing()
        links = {"about": refs, "mentions": refs} if entities else {}
        wanted = Update(
            set=data.draw(st.fixed_dictionaries({}, optional={
                "content": st.sampled_from(("one thing", "new words", self.pool.names[0])),
                "title": st.sampled_from(("t1", "t3")), "source": st.just("elsewhere"),
                "importance": st.sampled_from((0.25, 1)), "valid_at": st.sampled_from(TIMES),
                "scopes": st.lists(st.sampled_from(SCOPES), min_size=1, max_size=2), **links})),
            clear=data.draw(st.lists(
                st.sampled_from(("title", "source", "tags", "about", "mentions", "valid_at")), max_size=2)),
            add=data.draw(st.fixed_dictionaries({}, optional={
                "tags": st.lists(st.sampled_from(("x", "n")), min_size=1, max_size=2), **links})),
            remove=data.draw(st.fixed_dictionaries({}, optional={
                "tags": st.just(["x"]), "scopes": st.just([SCOPES[0]]), **links})),
        )  # fmt: skip
        self.change(self.pick(data, 1), wanted)

    @precondition(lambda self: self.ids(2))
    @rule(data=st.data())
    def change_relation(self, data: st.DataObject) -> None:
        wanted = Update(
            set=data.draw(st.fixed_dictionaries({}, optional={
                "predicate": st.sampled_from(PREDICATES), "fact": st.sampled_from(("f1", "f3")),
                "weight": st.sampled_from((0, 0.75)), "invalid_at": st.sampled_from(TIMES)})),
            clear=data.draw(st.lists(st.sampled_from(("fact", "weight", "stated_by")), max_size=1)),
            add=data.draw(st.fixed_dictionaries({}, optional={"stated_by": st.just(["i1"])})),
        )  # fmt: skip
        self.change(self.pick(data, 2), wanted)

    def change(self, id_: str, wanted: Update) -> None:
        self.act(
            f"update {id_}: {wanted}", lambda: update(self.store, id_, wanted, None, encoder=self.encoder)
        )

    @precondition(lambda self: self.ids())
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        id_ = self.pick(data)
        self.act(f"forget {id_}", lambda: forget(self.store, [id_], None, encoder=self.encoder))

    @precondition(lambda self: self.ids(0))
    @rule(data=st.data())
    def rename(self, data: st.DataObject) -> None:
        id_ = self.pick(data, 0)
        name = data.draw(st.sampled_from((*self.pool.names, "renamed")))
        self.act(f"rename {id_} {name!r}", lambda: rename(self.store, id_, name, None, encoder=self.encoder))

    @precondition(lambda self: self.ids(0))
    @rule(data=st.data())
    def alias(self, data: st.DataObject) -> None:
        id_ = self.pick(data, 0)
        names = st.lists(st.sampled_from((*self.pool.names, "alias")), max_size=2)
        add, remove = data.draw(names), data.draw(names)
        self.act(
            f"alias {id_} +{add} -{remove}",
            lambda: alias(self.store, id_, add, remove, None, encoder=self.encoder),
        )

    @precondition(lambda self: len(self.ids(0)) > 1)
    @rule(data=st.data())
    def merge(self, data: st.DataObject) -> None:
        old, new = self.pick(data, 0), self.pick(data, 0)
        done = self.act(f"merge {old} {new}", lambda: merge(self.store, old, new, None, encoder=self.encoder))
        if done is not None:
            found = self.store.writer().by_id(ENTITY, old)
            assert found is not None
            assert self.store.writer().entity_id(found) == done["id"]

    @rule(old=st.sampled_from(SCOPES[1:]), new=st.sampled_from((*SCOPES, "team:new")), unite=st.booleans())
    def rename_scope(self, old: str, new: str, *, unite: bool) -> None:
        self.act(
            f"rename scope {old} {new}{' --unite' if unite else ''}",
            lambda: rename_scope(self.store, old, new, unite=unite, encoder=self.encoder),
        )

    # ---- taking back ------------------------------------------------------------------------------

    @precondition(lambda self: self.done)
    @rule()
    def undo_last(self) -> None:
        batch, before = self.done.pop()
        now = state(self.store)
        note(f"undo {batch}")
        undone = undo(self.store, batch, encoder=self.encoder)
        self.sound()
        assert undone.batches == [batch]
        nothing(unlike(before, state(self.store)))
        assert undone.batch is not None
        self.after_undo(undone.batch, now)
        self.brought_back = (batch, before)

    brought_back: tuple[str, State] | None = None

    def after_undo(self, batch: str, now: State) -> None:
        self.newest = batch
        self.redo = (batch, now)
        self.undone = True
        self.brought_back = None

    @precondition(lambda self: self.redo is not None)
    @rule()
    def undo_undo(self) -> None:
        assert self.redo is not None
        batch, before = self.redo
        note(f"undo the undo {batch}")
        undone = undo(self.store, batch, encoder=self.encoder)
        self.sound()
        nothing(unlike(before, state(self.store)))
        self.newest = undone.batch
        self.redo = None
        if self.brought_back is not None:
            self.done.append(self.brought_back)
            self.brought_back = None
        else:
            self.done.clear()

    @precondition(lambda self: len(self.done) > 1)
    @rule(data=st.data(), cascade=st.booleans())
    def undo_earlier(self, data: st.DataObject, cascade: bool) -> None:
        at = data.draw(st.integers(0, len(self.done) - 2))
        batch, before = self.done[at]
        now = state(self.store)
        note(f"undo {batch}{' with those built on it' if cascade else ''}")
        try:
            undone = undo(self.store, batch, cascade=cascade, encoder=self.encoder)
        except UndoRefused as error:
            refused = error.message
        else:
            refused = ""
        if refused:
            note(f"  refused: {refused}")
            assert not cascade, refused
            nothing(unlike(now, state(self.store)))
            return
        self.sound()
        assert undone.batch is not None
        if set(undone.batches) == {one for one, _ in self.done[at:]}:
            nothing(unlike(before, state(self.store)))
        self.after_undo(undone.batch, now)
        self.done.clear()

    @precondition(lambda self: self.done)
    @rule()
    def rehearse_undo(self) -> None:
        before = state(self.store)
        told = undo(self.store, dry_run=True, encoder=self.encoder)
        assert told.batch is None
        nothing(unlike(before, state(self.store)))

    # ---- elsewhere --------------------------------------------------------------------------------

    @rule()
    def carry_over(self) -> None:
        """The export of the store, in an empty one, is the same store."""
        path = Path(self.folder.name) / "export.jsonl"
        path.write_bytes(exported(self.store))
        with in_memory() as other:
            report = take(other, path, encoder=self.encoder)
            assert [one.as_dict() for one in report.findings if one.severity is Severity.ERROR] == []
            nothing(unlike(state(self.store), state(other)))
        before = state(self.store)
        take(self.store, path, encoder=self.encoder)
        nothing(unlike(before, state(self.store)))
