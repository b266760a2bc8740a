"""What a batch changed, as people and programs read it: items made, removed, and changed field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import apsw

from graphmem.records import KINDS
from graphmem.store.changes import Change, changes
from graphmem.store.write import ENTITY, MEMORY, RELATION, TABLES

if TYPE_CHECKING:
    from graphmem.store.history import Entry
    from graphmem.store.sets import Scopes

Fields = dict[str, Any]

_KIND_OF: Final = {table: kind for kind, table in enumerate(TABLES)}
_UNTOLD: Final = frozenset(
    (
        "pk",
        "id",
        "batch",
        "key",
        "kind_key",
        "predicate_key",
        "updated_at",
        "last_accessed_at",
        "access_count",
    )
)
_PACKED: Final = {"aliases": "[]", "tags": "[]", "properties": "{}"}
_ROLES: Final = ("about", "mentions")
_MADE: Final = "SELECT pk FROM {table} WHERE batch = ? ORDER BY pk LIMIT ? OFFSET ?"
_COUNT_MADE: Final = "SELECT count(*) FROM {table} WHERE batch = ?"
_LABELS: Final = (
    "SELECT id, name FROM entity WHERE pk = ?",
    "SELECT id, content FROM memory WHERE pk = ?",
    (
        "SELECT r.id, a.name || ' ' || r.predicate || ' ' || b.name FROM relation AS r "
        "JOIN entity AS a ON a.pk = r.subject JOIN entity AS b ON b.pk = r.object WHERE r.pk = ?"
    ),
)
_NEW_WORDS: Final = "SELECT count(*) FROM contribution WHERE batch = ?"

Item = tuple[int, int]


class Diff:
    """What one batch did to items, read from what was kept of it."""

    def __init__(self, db: apsw.Connection, scopes: Scopes, entry: Entry) -> None:
        self._db: Any = db
        self._scopes = scopes
        self._entry = entry
        self._columns: dict[str, list[str]] = {}
        self._made: set[Item] = set()
        self._brought_back: dict[Item, Fields] = {}
        self._removed: dict[Item, Fields] = {}
        self._changed: dict[Item, dict[str, list[Any]]] = {}
        self._read()

    def as_dict(self, limit: int, offset: int = 0) -> Fields:
        """The totals, and of each list the items from `offset` on, at most `limit`."""
        made = [self._db.execute(_COUNT_MADE.format(table=table), (self._entry.pk,)).get for table in TABLES]
        removed, changed = sorted(self._removed), sorted(self._changed)
        page = slice(offset, offset + limit)
        result = {
            "made": list(self._items_made(limit, offset)),
            "removed": [self._removed[item] for item in removed[page]],
            "changed": [
                self._label(item) | {"fields": self._fields(item)} for item in changed[page]
            ],
            "totals": {
                "made": dict(zip(KINDS, made, strict=True)),
                "removed": self._count(removed),
                "changed": self._count(changed),
            },
            "records": self._db.execute(_NEW_WORDS, (self._entry.pk,)).get,
        }  # fmt: skip
        longest = max(sum(made), len(removed), len(changed))
        return result | {"truncated": longest > offset + limit}

    @staticmethod
    def _count(items: list[Item]) -> dict[str, int]:
        counts = dict.fromkeys(KINDS, 0)
        for kind, _ in items:
            counts[KINDS[kind]] += 1
        return counts

    # ---- items ------------------------------------------------------------------------------------

    def _items_made(self, limit: int, offset: int) -> Iterator[Fields]:
        for kind, table in enumerate(TABLES):
            total = self._db.execute(_COUNT_MADE.format(table=table), (self._entry.pk,)).get
            sql = _MADE.format(table=table)
            for (pk,) in self._db.execute(sql, (self._entry.pk, limit, offset)).fetchall():
                yield self._label((kind, pk))
                limit -= 1
            offset = max(0, offset - total)

    def _label(self, item: Item) -> Fields:
        """An item's type, id and what it is called by; one that is gone has a number alone."""
        kind, pk = item
        row = self._db.execute(_LABELS[kind], (pk,)).fetchone()
        if row is None:
            return {"type": KINDS[kind], "id": None, "label": f"number {pk}, which is not there any more"}
        return {"type": KINDS[kind], "id": row[0], "label": row[1]}

    def _entity(self, pk: Any) -> str:
        found: str | None = self._db.execute("SELECT name FROM entity WHERE pk = ?", (pk,)).get
        if found is None and (ENTITY, pk) in self._removed:
            found = self._removed[ENTITY, pk]["label"]
        return found or f"number {pk}"

    # ---- rows -------------------------------------------------------------------------------------

    def _names(self, table: str) -> list[str]:
        if table not in self._columns:
            self._columns[table] = [row[1] for row in self._db.execute(f"PRAGMA table_info({table})")]
        return self._columns[table]

    def _read(self) -> None:
        """Sorts the rows that the batch changed; the last segment comes first."""
        rows = list(changes(self._db, self._entry.pk))
        for one in rows:
            if one.table in _KIND_OF:
                self._item_row(one)
        for one in rows:
            self._belonging(one)
        for item in (*self._brought_back, *self._removed):
            self._changed.pop(item, None)
        self._changed = {item: fields for item, fields in self._changed.items() if fields}

    def _item_row(self, change: Change) -> None:
        names = self._names(change.table)
        kind = _KIND_OF[change.table]
        row = change.old if change.old is not None else change.new
        assert row is not None
        item = (kind, row[0])
        if change.old is None and change.new is not None:
            self._brought_back[item] = dict(zip(names, change.new, strict=True))
        elif change.new is None and change.old is not None:
            if item not in self._brought_back:
                old = dict(zip(names, change.old, strict=True))
                self._removed[item] = {"type": KINDS[kind], "id": old["id"], "label": self._called(kind, old)}
        elif change.old is not None and change.new is not None:
            for name, before, after in zip(names, change.old, change.new, strict=True):
                if after is not apsw.no_change and name not in _UNTOLD:
                    self._note(item, name, before, after)

    def _called(self, kind: int, row: Fields) -> str:
        if kind == RELATION:
            return f"{self._entity(row['subject'])} {row['predicate']} {self._entity(row['object'])}"
        return str(row["name"] if kind == ENTITY else row["content"])

    def _note(self, item: Item, name: str, before: Any, after: Any) -> None:
        pair = self._changed.setdefault(item, {}).setdefault(name, [before, after])
        pair[0] = before  # of an earlier segment

    def _belonging(self, change: Change) -> None:
        """Rows of links, names and ids, as members that an item gained or lost."""
        row = change.old if change.old is not None else change.new
        if row is None or (change.old is not None and change.new is not None):
            return
        fields = dict(zip(self._names(change.table), row, strict=True))
        gained = change.old is None
        if change.table == "memory_link":
            self._member(
                (MEMORY, fields["memory"]), _ROLES[fields["role"]], self._entity(fields["entity"]), gained
            )
        elif change.table == "stated_by":
            self._member((RELATION, fields["relation"]), "stated_by", fields["memory"], gained)
        elif change.table == "redirect":
            name = f"{fields['name']} ({fields['kind'] or 'unknown'}, {self._scopes.name(fields['scope'])})"
            self._member((ENTITY, fields["entity"]), "former_names", name, gained)
        elif change.table == "id_alias":
            self._member((fields["kind"], fields["item"]), "former_ids", fields["id"], gained)

    def _member(self, item: Item, name: str, member: str, gained: bool) -> None:
        if item in self._brought_back or item in self._removed:
            return
        before, after = self._changed.setdefault(item, {}).setdefault(name, [[], []])
        # Gained and lost again, in two segments, is nothing.
        near, far = (after, before) if gained else (before, after)
        if member in far:
            far.remove(member)
        else:
            near.append(member)

    # ---- values -----------------------------------------------------------------------------------

    def _fields(self, item: Item) -> list[Fields]:
        """The changes of an item: of a value what it was and is, of a set what it lost and gained."""
        told: list[Fields] = []
        for name, (before, after) in sorted(self._changed[item].items()):
            if name in _PACKED:
                before, after = (json.loads(one or _PACKED[name]) for one in (before, after))
            if isinstance(before, list):
                lost = [one for one in before if one not in after]
                gained = [one for one in after if one not in before]
                told.append({"field": name, "removed": sorted(lost), "added": sorted(gained)})
                continue
            if name == "stub":
                before, after = bool(before), bool(after)
            if name == "scope_set":
                was, is_ = (self._scopes.set_names(one) for one in (before, after))
                told.append({"field": "scopes", "removed": sorted({*was} - {*is_}),
                             "added": sorted({*is_} - {*was})})  # fmt: skip
                continue
            if name == "scope":
                before, after = self._scopes.name(before), self._scopes.name(after)
            elif name in ("subject", "object"):
                before, after = self._entity(before), self._entity(after)
            told.append({"field": name, "before": before, "after": after})
        return [one for one in told if one.get("removed") or one.get("added") or "before" in one]
