"""Taking a batch back, row by row, where nothing later was built on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import apsw

from graphmem.store.changes import Change, Values, changes, has_changes, is_lost
from graphmem.store.removal import keep_last, remove_items
from graphmem.store.write import ENTITY, MEMORY, RELATION, TABLES

_KEPT: Final = frozenset(("scope", "origin"))
"""Tables whose new rows stay: they say nothing by themselves, and later batches use them."""

_COUNTERS: Final = frozenset(("last_accessed_at", "access_count"))
_KIND_OF: Final = {table: kind for kind, table in enumerate(TABLES)}
_ITEM_OF: Final = {"memory_link": (MEMORY, "memory"), "stated_by": (RELATION, "relation"),
                   "redirect": (ENTITY, "entity")}  # fmt: skip

# What was built on an item that a batch made: {table} holds it, and {own} is a batch that did so.
_BUILT_ON: Final = {
    ENTITY: (
        (
            MEMORY,
            (
                "SELECT m.pk, m.batch FROM memory_link AS l JOIN memory AS m ON m.pk = l.memory "
                "WHERE l.entity = ?1"
            ),
        ),
        (RELATION, "SELECT pk, batch FROM relation WHERE subject = ?1"),
        (RELATION, "SELECT pk, batch FROM relation WHERE object = ?1"),
    ),
    MEMORY: (
        (
            RELATION,
            (
                "SELECT r.pk, r.batch FROM stated_by AS s JOIN relation AS r ON r.pk = s.relation "
                "WHERE s.memory = (SELECT id FROM memory WHERE pk = ?1)"
            ),
        ),
    ),
    RELATION: (),
}
_REFERRING: Final = {"memory_link": ("entity",), "relation": ("subject", "object")}
_LATER_VERSION: Final = "SELECT batch FROM version WHERE kind = ? AND item = ? AND batch > ?"
_LATER_WORD: Final = "SELECT batch FROM contribution WHERE kind = ? AND item = ? AND batch > ?"
_NATURAL: Final = {
    ENTITY: ("scope", "name", "kind_key"),
    MEMORY: ("id",),
    RELATION: ("subject", "object", "predicate_key", "scope", "valid_at"),
}
"""The columns of which no two items have the same values."""

# What a batch said about items that it did not make.
_FOREIGN_WORD: Final = """
SELECT 1 FROM contribution AS c WHERE c.batch = ?1 AND c.kind = ?2
  AND NOT EXISTS (SELECT 1 FROM {table} AS i WHERE i.pk = c.item AND i.batch = ?1) LIMIT 1
"""
# Links into a scope that the memory or relation is not of, where {where} says which to look at.
_UNSEEN: Final = (
    (
        MEMORY,
        (
            "SELECT m.pk FROM memory_link AS l JOIN memory AS m ON m.pk = l.memory "
            "JOIN entity AS e ON e.pk = l.entity JOIN scope AS s ON s.pk = e.scope "
            "WHERE {where} AND s.name <> 'global' AND NOT EXISTS ("
            "SELECT 1 FROM scope_member AS x WHERE x.scope_set = m.scope_set AND x.scope = e.scope)"
        ),
        {ENTITY: "e.pk = ?1", MEMORY: "m.pk = ?1"},
    ),
    (
        RELATION,
        (
            "SELECT r.pk FROM relation AS r JOIN entity AS e ON e.pk IN (r.subject, r.object) "
            "JOIN scope AS s ON s.pk = e.scope WHERE {where} AND s.name <> 'global' AND e.scope <> r.scope"
        ),
        {
            ENTITY: "r.pk IN (SELECT pk FROM relation WHERE subject = ?1 OR object = ?1)",
            RELATION: "r.pk = ?1",
        },
    ),
)
_SCOPES: Final = frozenset(("scope", "scope_set"))
_LATER: Final = "SELECT pk FROM batch WHERE pk > ? AND undone_by IS NULL ORDER BY pk"


class Item(NamedTuple):
    """An item by kind and row number."""

    kind: int
    pk: int


@dataclass(slots=True)
class Taken:
    """What taking back touched, and the later batches that stood in the way."""

    touched: set[Item] = field(default_factory=set)
    removed: list[int] = field(default_factory=lambda: [0, 0, 0])
    changed: list[int] = field(default_factory=lambda: [0, 0, 0])
    unmade: set[Item] = field(default_factory=set)
    """Items that a batch had brought back, and that are gone again."""
    rescoped: set[Item] = field(default_factory=set)
    """Items that are in another scope again."""
    builders: set[int] = field(default_factory=set)
    clashes: list[str] = field(default_factory=list)


class Undoing:
    """Takes batches back inside a transaction, newest first."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db: Any = db
        self._columns: dict[str, list[str]] = {}

    def take_back(self, batch: int, made: tuple[int, int, int] | None) -> Taken:
        """Restores what stood before a batch; with builders or clashes in the answer, roll back.

        `made` are the numbers of items that the batch made, where they are known.
        """
        taken = Taken()
        self._db.execute("PRAGMA defer_foreign_keys = ON")
        keep_last(self._db)
        own = [
            {pk for (pk,) in self._db.execute(f"SELECT pk FROM {table} WHERE batch = ?", (batch,))}  # noqa: S608
            for table in TABLES
        ]
        if made is not None and any(len(pks) < count for pks, count in zip(own, made, strict=True)):
            taken.builders.update(self._removers(batch))
        rows = [one for one in changes(self._db, batch) if not self._is_of(one, own)]
        self._check_words(batch, rows, taken)
        lost: list[Change] = []
        # What was made goes first, so that unique names and ids are free for what comes back.
        for step in (self._unmake, self._unchange, self._bring_back):
            for one in rows:
                self._one(step, one, taken, lost, batch)
        if lost:
            taken.builders.update(self._users(batch, lost))
            taken.clashes += sorted({self._told(one) for one in lost})
        for kind in (RELATION, MEMORY, ENTITY):
            self._remove(kind, own[kind], batch, taken)
        for item in sorted(taken.unmade):
            self._check_left(item, batch, taken)
        self._check_scopes(batch, taken)
        return taken

    def batches_of(self, run: str) -> list[int]:
        """The batches of a run that stand, newest first."""
        sql = "SELECT pk FROM batch WHERE run = ? AND undone_by IS NULL ORDER BY pk DESC"
        return [pk for (pk,) in self._db.execute(sql, (run,))]

    def drop_origins(self) -> None:
        """Removes origins of which nothing is left."""
        self._db.execute(
            "DELETE FROM origin WHERE NOT EXISTS (SELECT 1 FROM contribution WHERE origin = origin.pk)"
        )

    def mark(self, batches: Iterable[int], by: int) -> None:
        """Notes which batch took others back; those that these had taken back stand again."""
        for batch in batches:
            self._db.execute("UPDATE batch SET undone_by = NULL WHERE undone_by = ?", (batch,))
            self._db.execute("UPDATE batch SET undone_by = ? WHERE pk = ?", (by, batch))

    def can(self, batch: int) -> bool:
        """Whether it is known what a batch changed: it was kept, or the batch only made items."""
        db = self._db
        if is_lost(db, batch):
            return False
        if has_changes(db, batch):
            return True
        if db.execute("SELECT 1 FROM version WHERE batch = ? LIMIT 1", (batch,)).get:
            return False
        if any(
            db.execute(_FOREIGN_WORD.format(table=table), (batch, kind)).get
            for kind, table in enumerate(TABLES)
        ):
            return False
        return any(
            db.execute(f"SELECT 1 FROM {table} WHERE batch = ? LIMIT 1", (batch,)).get  # noqa: S608
            for table in TABLES
        )

    # ---- rows -------------------------------------------------------------------------------------

    def _names(self, table: str) -> list[str]:
        if table not in self._columns:
            self._columns[table] = [row[1] for row in self._db.execute(f"PRAGMA table_info({table})")]
        return self._columns[table]

    def _is_of(self, change: Change, own: list[set[int]]) -> bool:
        """Whether a row belongs to an item that the batch itself made, and goes with it."""
        item = self._item(change)
        return item is not None and item.pk in own[item.kind]

    def _item(self, change: Change, first: Values | None = None) -> Item | None:
        """The item that a row belongs to, by one of its sides first."""
        names = self._names(change.table)

        def value(name: str) -> Any:
            at = names.index(name)
            for side in (first, change.new, change.old):
                if side is not None and side[at] is not apsw.no_change:
                    return side[at]
            return None

        if change.table in _KIND_OF:
            return Item(_KIND_OF[change.table], value("pk"))
        if change.table in _ITEM_OF:
            kind, name = _ITEM_OF[change.table]
            return None if value(name) is None else Item(kind, value(name))
        if change.table in ("contribution", "id_alias", "version"):
            kind, pk = value("kind"), value("item")
            if kind is None or pk is None:
                return self._owner(change)
            return Item(kind, pk)
        return None

    def _owner(self, change: Change) -> Item | None:
        """The item of a row of which only the key and what changed is known."""
        row = self._present(change, ("kind", "item"))
        return None if row is None else Item(*row)

    def _key(self, change: Change) -> dict[str, Any]:
        names = self._names(change.table)
        side = change.old if change.old is not None else change.new
        if side is None:
            raise AssertionError("a change without a row")
        return {names[at]: side[at] for at in change.key}

    def _present(self, change: Change, columns: Iterable[str]) -> tuple[Any, ...] | None:
        key = self._key(change)
        sql = f"SELECT {', '.join(columns)} FROM {change.table} WHERE "  # noqa: S608
        found: tuple[Any, ...] | None = self._db.execute(
            sql + " AND ".join(f"{name} = ?" for name in key), tuple(key.values())
        ).fetchone()
        return found

    def _one(self, step: Any, change: Change, taken: Taken, lost: list[Change], batch: int) -> None:
        try:
            fits = step(change, taken)
        except apsw.ConstraintError:
            taken.builders.update(self._occupants(change, batch))
            fits = False
        if fits is None:
            return
        if not fits:
            lost.append(change)
            return
        taken.touched.update(
            item for side in (change.old, change.new) if (item := self._item(change, side)) is not None
        )

    def _occupants(self, change: Change, batch: int) -> set[int]:
        """Later batches that gave an id or a natural key to another item than the one that had it before."""
        kind = _KIND_OF.get(change.table)
        if kind is None or change.old is None:
            return set()
        names = self._names(change.table)
        now = self._present(change, names) or change.old
        row = {
            name: held if before is apsw.no_change else before
            for name, held, before in zip(names, now, change.old, strict=True)
        }
        found: set[int] = set()
        for columns in (("id",), _NATURAL[kind]):
            where = " AND ".join(f"{name} IS ?" for name in columns)
            sql = f"SELECT pk, batch FROM {change.table} WHERE pk <> ? AND {where}"  # noqa: S608
            for pk, made in self._db.execute(sql, (row["pk"], *(row[name] for name in columns))).fetchall():
                # It may have come there by a change; if not, it was made so.
                found |= self._touched(kind, pk, batch) - {made} or ({made} if made > batch else set())
        return found

    def _unmake(self, change: Change, taken: Taken) -> bool | None:
        """Removes a row that the batch made, if it is as the batch left it."""
        if change.old is not None or change.new is None:
            return None
        if change.table in _KEPT:
            return None
        names = self._names(change.table)
        row = self._present(change, names)
        if row is None or not self._same(names, row, change.new):
            return False
        if change.table in _KIND_OF:  # what belongs to it is on record too; its indexes follow
            item = Item(_KIND_OF[change.table], row[0])
            taken.removed[item.kind] += 1
            taken.unmade.add(item)
        key = self._key(change)
        self._db.execute(
            f"DELETE FROM {change.table} WHERE " + " AND ".join(f"{name} = ?" for name in key),  # noqa: S608
            tuple(key.values()),
        )
        return True

    def _unchange(self, change: Change, taken: Taken) -> bool | None:
        """Gives a row the values back that the batch replaced, if these are the ones that it wrote."""
        if change.old is None or change.new is None:
            return None
        names = self._names(change.table)
        at = [
            number for number, value in enumerate(change.new)
            if value is not apsw.no_change and names[number] not in _COUNTERS
        ]  # fmt: skip
        if not at:
            return None
        row = self._present(change, [names[number] for number in at])
        if row != tuple(change.new[number] for number in at):
            return None if change.table == "origin" else False
        key = self._key(change)
        # A row known by its key keeps it, so that key columns among the changed ones are set as well.
        sql = f"UPDATE {change.table} SET {', '.join(f'{names[number]} = ?' for number in at)} WHERE "  # noqa: S608
        values = [change.old[number] for number in at]
        self._db.execute(sql + " AND ".join(f"{name} = ?" for name in key), (*values, *key.values()))
        if change.table in _KIND_OF:
            taken.changed[_KIND_OF[change.table]] += 1
            if any(names[number] in _SCOPES for number in at):
                taken.rescoped.add(Item(_KIND_OF[change.table], key["pk"]))
        return True

    def _bring_back(self, change: Change, taken: Taken) -> bool | None:
        """Puts a row back that the batch removed."""
        if change.new is not None or change.old is None:
            return None
        names = self._names(change.table)
        if self._present(change, names[:1]) is not None:
            return None if change.table == "origin" else False
        marks = ", ".join("?" * len(names))
        self._db.execute(f"INSERT INTO {change.table} VALUES ({marks})", change.old)  # noqa: S608
        if change.table in _KIND_OF:
            taken.changed[_KIND_OF[change.table]] += 1
        return True

    @staticmethod
    def _same(names: list[str], row: tuple[Any, ...], was: tuple[Any, ...]) -> bool:
        return all(
            name in _COUNTERS or held == before for name, held, before in zip(names, row, was, strict=True)
        )

    # ---- items that the batch made ----------------------------------------------------------------

    def _remove(self, kind: int, pks: set[int], batch: int, taken: Taken) -> None:
        for pk in sorted(pks):
            found = self._built_on(kind, pk, batch)
            if found:
                taken.builders |= found
                taken.clashes.append(self._called(kind, pk))
        remove_items(self._db, kind, sorted(pks))
        taken.removed[kind] += len(pks)

    def _built_on(self, kind: int, pk: int, batch: int) -> set[int]:
        later = self._touched(kind, pk, batch)
        for by, sql in _BUILT_ON[kind]:
            for one, made in self._db.execute(sql, (pk,)).fetchall():
                if made > batch:
                    later.add(made)
                elif made < batch:  # an older one refers to it by a change, or by an id that came only now
                    later |= self._touched(by, one, batch)
        return later

    def _touched(self, kind: int, pk: int, batch: int) -> set[int]:
        """Later batches that changed an item or said something about it."""
        later = {one for (one,) in self._db.execute(_LATER_VERSION, (kind, pk, batch))}
        return later | {one for (one,) in self._db.execute(_LATER_WORD, (kind, pk, batch))}

    def _check_words(self, batch: int, rows: Iterable[Change], taken: Taken) -> None:
        """Finds later batches that said something about items of which the batch changed what was said."""
        said = [one for one in rows if one.table == "contribution"]
        items = {self._item(one, side) for one in said for side in (one.old, one.new)} - {None}
        for item in sorted(filter(None, items)):
            later = {one for (one,) in self._db.execute(_LATER_WORD, (*item, batch))}
            if later:
                taken.builders |= later
                taken.clashes.append(self._called(*item))

    def _check_scopes(self, batch: int, taken: Taken) -> None:
        """Finds what later batches linked across the scopes that items are in again."""
        for item in sorted(taken.rescoped):
            for kind, sql, ways in _UNSEEN:
                if item.kind not in ways:
                    continue
                for (pk,) in self._db.execute(sql.format(where=ways[item.kind]), (item.pk,)).fetchall():
                    made: int = self._db.execute(f"SELECT batch FROM {TABLES[kind]} WHERE pk = ?", (pk,)).get  # noqa: S608
                    taken.builders |= self._touched(kind, pk, batch) | ({made} if made > batch else set())
                    taken.clashes.append(self._called(kind, pk))

    def _check_left(self, item: Item, batch: int, taken: Taken) -> None:
        """Finds what still refers to an item that is gone, and which batches are to blame."""
        for _, sql in _BUILT_ON[item.kind]:
            left = {made for _, made in self._db.execute(sql, (item.pk,))}
            if left:
                taken.builders.update(made for made in left if made > batch)
                taken.builders.update(self._referrers(batch, item))
                taken.clashes.append(self._called(*item))

    def _referrers(self, batch: int, item: Item) -> Iterator[int]:
        """Later batches that wrote rows which refer to an item."""
        for (later,) in self._db.execute(_LATER, (batch,)).fetchall():
            for one in changes(self._db, later):
                columns = _REFERRING.get(one.table, ()) if item.kind == ENTITY else ()
                names = self._names(one.table)
                if one.new is not None and any(one.new[names.index(name)] == item.pk for name in columns):
                    yield later
                    break

    def _removers(self, batch: int) -> Iterator[int]:
        """Later batches that removed items of this one."""
        for (later,) in self._db.execute(_LATER, (batch,)).fetchall():
            for one in changes(self._db, later):
                if one.table in _KIND_OF and one.new is None and one.old is not None:
                    at = self._names(one.table).index("batch")
                    if one.old[at] == batch:
                        yield later
                        break

    def _users(self, batch: int, lost: list[Change]) -> Iterator[int]:
        """Later batches that changed rows which are not as this one left them."""
        wanted = {(one.table, tuple(self._key(one).values())) for one in lost}
        for (later,) in self._db.execute(_LATER, (batch,)).fetchall():
            for one in changes(self._db, later):
                if (one.table, tuple(self._key(one).values())) in wanted:
                    yield later
                    break

    # ---- telling ----------------------------------------------------------------------------------

    def _told(self, change: Change) -> str:
        item = self._item(change)
        return f"a row of {change.table}" if item is None else self._called(*item)

    def _called(self, kind: int, pk: int) -> str:
        id_ = self._db.execute(f"SELECT id FROM {TABLES[kind]} WHERE pk = ?", (pk,)).get  # noqa: S608
        return f"{TABLES[kind]} {id_ or f'number {pk}'}"
