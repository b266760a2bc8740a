"""Writing one batch: look-ups under the write lock, rows gathered, then inserted table by table."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

from graphmem.names import name_keys, words
from graphmem.prepare import canonical_json
from graphmem.store.packed import measured, unpack
from graphmem.store.sets import Scopes

if TYPE_CHECKING:
    import apsw

    from graphmem.store.changes import Recorder

ENTITY, MEMORY, RELATION = 0, 1, 2
TABLES: Final = ("entity", "memory", "relation")
ABOUT, MENTION = 0, 1

COLUMNS: Final[tuple[tuple[str, ...], ...]] = (
    ("pk", "id", "scope", "name", "kind", "kind_key", "description", "aliases", "properties", "state",
     "archived_by", "stub", "created_at", "updated_at", "batch"),
    ("pk", "id", "key", "content", "title", "memory_type", "importance", "tags", "scope_set", "source",
     "position", "properties", "state", "archived_by", "created_at", "updated_at", "valid_at", "invalid_at",
     "expired_at", "batch"),
    ("pk", "id", "scope", "subject", "predicate", "predicate_key", "object", "valid_at", "fact", "weight",
     "properties", "state", "archived_by", "created_at", "updated_at", "invalid_at", "expired_at", "batch"),
)  # fmt: skip
"""The columns of an item's row in the order in which rows are inserted, per kind."""

_JSON_COLUMNS: Final = frozenset(("aliases", "tags", "properties"))


def _insert(table: str, columns: tuple[str, ...]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608


_INSERT: Final = tuple(_insert(table, columns) for table, columns in zip(TABLES, COLUMNS, strict=True))
_SELECT: Final = tuple(
    f"SELECT {', '.join(columns)} FROM {table} WHERE pk = ?"  # noqa: S608
    for table, columns in zip(TABLES, COLUMNS, strict=True)
)
_FIXED: Final = frozenset(("pk", "id", "scope", "name", "subject", "object", "predicate_key", "batch"))
"""Columns that merging never changes; leaving them out of the update spares their indexes."""
_CHANGING: Final = tuple(tuple(c for c in columns if c not in _FIXED) for columns in COLUMNS)
_UPDATE: Final = tuple(
    f"UPDATE {table} SET {', '.join(f'{column} = ?' for column in columns)} WHERE pk = ?"  # noqa: S608
    for table, columns in zip(TABLES, _CHANGING, strict=True)
)
_BY_ID: Final = tuple(
    f"SELECT pk FROM {table} WHERE id = ?1 UNION ALL SELECT item FROM id_alias "  # noqa: S608
    f"WHERE kind = {kind} AND id = ?1 LIMIT 1"
    for kind, table in enumerate(TABLES)
)
_RELATION_BY_KEY: Final = """
SELECT pk FROM relation
WHERE subject = ? AND object = ? AND predicate_key = ? AND scope = ? AND ifnull(valid_at, '') = ?
"""
_FTS: Final = (
    ("INSERT INTO entity_fts (rowid, names, description, parts) VALUES (?, ?, ?, ?)", "entity_fts"),
    ("INSERT INTO memory_fts (rowid, content, title, context, parts) VALUES (?, ?, ?, ?, ?)", "memory_fts"),
    ("INSERT INTO relation_fts (rowid, fact, parts) VALUES (?, ?, ?)", "relation_fts"),
)
_CONTRIBUTE: Final = """
INSERT INTO contribution (origin, digest, kind, item, line, taken_at, said, batch)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET taken_at = excluded.taken_at, said = excluded.said, batch = excluded.batch
WHERE excluded.taken_at > taken_at
"""
_CONTRIBUTE_NEW: Final = """
INSERT OR IGNORE INTO contribution (origin, digest, kind, item, line, taken_at, said, batch)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""

# An origin of which nothing was taken in the end: its records were refused.
_DROP_ORIGIN: Final = """
DELETE FROM origin WHERE pk = ?1 AND NOT EXISTS (SELECT 1 FROM contribution WHERE origin = ?1)
"""

Row = dict[str, Any]


def json_or_none(value: Any) -> str | None:
    """Canonical JSON of a container, `None` for an empty one."""
    return canonical_json(value) if value else None


def decoded(kind: int, values: tuple[Any, ...]) -> Row:
    """A row as a mapping, with sets and properties as Python values."""
    row: Row = dict(zip(COLUMNS[kind], values, strict=True))
    for column in _JSON_COLUMNS & row.keys():
        empty: Any = {} if column == "properties" else []
        row[column] = json.loads(row[column]) if row[column] else empty
    return row


def encoded(kind: int, row: Row) -> tuple[Any, ...]:
    """The inverse of `decoded`."""
    return tuple(
        json_or_none(row[column]) if column in _JSON_COLUMNS else row[column] for column in COLUMNS[kind]
    )


class Writer:
    """Look-ups and gathered rows of one batch; nothing is inserted before `flush`, but for updates."""

    def __init__(
        self,
        db: apsw.Connection,
        scopes: Scopes,
        batch: int | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self._db: Any = db
        self._new = nullcontext if recorder is None else recorder.paused
        """The time in which items are inserted that carry the batch's number."""
        self.db = db
        self.scopes = scopes
        seq = "SELECT seq FROM sqlite_sequence WHERE name = 'batch'"
        self.batch: int = batch or 1 + (self._db.execute(seq).get or 0)
        # The number of an item that is gone is never given again: what a batch changed is known by it.
        self._next = [
            1 + self._db.execute(
                f"SELECT max(ifnull((SELECT max(pk) FROM {table}), 0), "  # noqa: S608
                "ifnull((SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?), 0))",
                (f"last {table}",),
            ).get
            for table in TABLES
        ]  # fmt: skip
        self._items: list[list[tuple[Any, ...]]] = [[], [], []]
        self._fts: list[list[tuple[Any, ...]]] = [[], [], []]
        self._keys: list[tuple[Any, ...]] = []
        self._first_new = tuple(self._next)
        # First what belongs to items of this batch, then what belongs to older ones.
        self._links: tuple[list[tuple[int, int, int]], ...] = ([], [])
        self._stated: tuple[list[tuple[int, str]], ...] = ([], [])
        self._contributions: tuple[list[tuple[Any, ...]], ...] = ([], [])
        self._tags: list[tuple[str, int]] = []
        self._given: set[tuple[int, bytes]] = set()
        self._origins: list[int] = []
        self._aliases: list[tuple[int, str, int]] = []
        self.has_redirects = self._db.execute("SELECT 1 FROM redirect LIMIT 1").get is not None
        """Whether an identity may be a former one."""
        self.made = [0, 0, 0]
        """How many items of each kind were inserted."""
        self.dirty = False

    # ---- look-ups ---------------------------------------------------------------------------------

    def contributions(self, digest: bytes) -> list[tuple[int, int, int, int, str, str | None]]:
        """(origin, kind, item, batch, taken_at, said) of every record with this digest that was ever taken."""
        found: list[tuple[int, int, int, int, str, str | None]] = self._db.execute(
            "SELECT origin, kind, item, batch, taken_at, said FROM contribution WHERE digest = ?", (digest,)
        ).fetchall()
        return found

    def contributions_of(self, kind: int, item: int) -> list[tuple[int, bytes, int, str, str | None]]:
        """(origin, digest, line, taken_at, said) of an item's contributions, those of this batch included."""
        self._flush_contributions()
        found: list[tuple[int, bytes, int, str, str | None]] = self._db.execute(
            "SELECT origin, digest, line, taken_at, said FROM contribution WHERE item = ? AND kind = ? "
            "ORDER BY taken_at, origin, digest",
            (item, kind),
        ).fetchall()
        return found

    def is_taken(self, origin: int, digest: bytes) -> bool:
        """Whether an item has a contribution of that origin and digest."""
        sql = "SELECT 1 FROM contribution WHERE origin = ? AND digest = ?"
        return (origin, digest) in self._given or self._db.execute(sql, (origin, digest)).get is not None

    def entity(self, scope: int, name: str, key: str) -> int | None:
        """The entity of that identity, following redirects."""
        found: int | None = self._db.execute(
            "SELECT pk FROM entity WHERE scope = ? AND name = ? AND kind_key = ?", (scope, name, key)
        ).get
        if found is None and self.has_redirects:
            found = self._db.execute(
                "SELECT entity FROM redirect WHERE scope = ? AND name = ? AND kind_key = ?",
                (scope, name, key),
            ).get
        return found

    def archived_by_sync(self, scope: int, name: str, pk: int | None) -> int | None:
        """The given entity, or with `None` the oldest one of that name, if sync has archived it."""
        sql = "SELECT min(pk) FROM entity WHERE scope = ? AND name = ? AND archived_by = 'sync'"
        found: int | None = self._db.execute(f"{sql} AND (?3 IS NULL OR pk = ?3)", (scope, name, pk)).get
        return found

    def by_id(self, kind: int, id_: str) -> int | None:
        """The item that has this id or this id alias."""
        found: int | None = self._db.execute(_BY_ID[kind], (id_,)).get
        return found

    def memories_by_key(self, key: bytes) -> list[tuple[int, int]]:
        """(pk, batch) of the memories with this natural key, oldest first."""
        found: list[tuple[int, int]] = self._db.execute(
            "SELECT pk, batch FROM memory WHERE key = ? ORDER BY pk", (key,)
        ).fetchall()
        return found

    def relation(self, subject: int, key: str, object_: int, scope: int, valid_at: str | None) -> int | None:
        """The relation of that natural key."""
        found: int | None = self._db.execute(
            _RELATION_BY_KEY, (subject, object_, key, scope, valid_at or "")
        ).get
        return found

    def row(self, kind: int, pk: int) -> Row:
        """An item's row."""
        return decoded(kind, self._db.execute(_SELECT[kind], (pk,)).fetchone())

    def batch_of(self, kind: int, pk: int) -> int:
        """The batch that made an item."""
        made: int = self._db.execute(f"SELECT batch FROM {TABLES[kind]} WHERE pk = ?", (pk,)).get  # noqa: S608
        return made

    def state_before(self, kind: int, pk: int, batch: int) -> tuple[str, str | None, str]:
        """(state, archived by, updated_at) that an item had before a batch and all later ones."""
        kept = self._db.execute(
            "SELECT before FROM version WHERE kind = ? AND item = ? AND batch >= ? ORDER BY batch LIMIT 1",
            (kind, pk, batch),
        ).get
        if kept is not None:
            row = json.loads(kept)
            return row["state"], row["archived_by"], row["updated_at"]
        found: tuple[str, str | None, str] = self._db.execute(
            f"SELECT state, archived_by, updated_at FROM {TABLES[kind]} WHERE pk = ?",  # noqa: S608
            (pk,),
        ).fetchone()
        return found

    def is_archived(self, kind: int, pk: int) -> bool:
        """Whether an item is archived now."""
        sql = f"SELECT 1 FROM {TABLES[kind]} WHERE pk = ? AND state = 'archived'"  # noqa: S608
        return self._db.execute(sql, (pk,)).get is not None

    def has_memories(self) -> bool:
        """Whether the store holds any memory."""
        return self._db.execute("SELECT 1 FROM memory LIMIT 1").get is not None

    def any_archived(self) -> bool:
        """Whether the store holds anything archived."""
        return any(
            self._db.execute(f"SELECT 1 FROM {table} WHERE state = 'archived' LIMIT 1").get  # noqa: S608
            for table in TABLES
        )

    def links(self, memory: int, role: int) -> list[int]:
        """The entities a memory is about, or mentions."""
        return [
            pk
            for (pk,) in self._db.execute(
                "SELECT entity FROM memory_link WHERE memory = ? AND role = ? ORDER BY entity", (memory, role)
            )
        ]

    def stated_by(self, relation: int) -> list[str]:
        """The ids of the memories that state a relation."""
        return [
            id_
            for (id_,) in self._db.execute(
                "SELECT memory FROM stated_by WHERE relation = ? ORDER BY memory", (relation,)
            )
        ]

    def entity_name(self, pk: int) -> str:
        """An entity's name."""
        name: str = self._db.execute("SELECT name FROM entity WHERE pk = ?", (pk,)).get
        return name

    def shares_words(self, name: str, pk: int) -> bool:
        """Whether another entity, of any scope, has a name or alias with these words."""
        found = self._db.execute(
            "SELECT 1 FROM name_key WHERE key = ? AND entity <> ? LIMIT 1", (words(name), pk)
        ).get
        return found is not None

    def entity_id(self, pk: int) -> str:
        """An entity's id."""
        id_: str = self._db.execute("SELECT id FROM entity WHERE pk = ?", (pk,)).get
        return id_

    def identity(self, pk: int) -> tuple[str, str, str]:
        """An entity's scope, name and comparable kind."""
        scope, name, key = self._db.execute(
            "SELECT scope, name, kind_key FROM entity WHERE pk = ?", (pk,)
        ).fetchone()
        return self.scopes.name(scope), name, key

    # ---- gathering --------------------------------------------------------------------------------

    def next_pk(self, kind: int) -> int:
        """The row number of the next new item of a kind."""
        pk: int = self._next[kind]
        self._next[kind] = pk + 1
        return pk

    def add(self, kind: int, row: tuple[Any, ...], text: tuple[str, ...]) -> None:
        """A new item: its row in the order of `COLUMNS`, and the columns of its full-text row."""
        self._items[kind].append(row)
        self._fts[kind].append((row[0], *text))

    def add_name(self, pk: int, name: str, *, alias: bool) -> None:
        """A name or alias under which an entity is found."""
        for key, step in name_keys(name):
            self._keys.append((key, step, 1 if alias else 0, pk))

    def add_link(self, memory: int, entity: int, role: int) -> None:
        """A memory's link to an entity."""
        self._links[memory < self._first_new[MEMORY]].append((memory, entity, role))

    def add_tag(self, memory: int, tag: str) -> None:
        """A memory's tag."""
        self._tags.append((tag, memory))

    def add_stated_by(self, relation: int, memory_id: str) -> None:
        """A memory that states a relation."""
        self._stated[relation < self._first_new[RELATION]].append((relation, memory_id))

    def add_contribution(
        self, origin: int, digest: bytes, kind: int, item: int, line: int, taken_at: str, said: str | None
    ) -> None:
        """What a record of an origin said about an item."""
        self._given.add((origin, digest))
        old = item < self._first_new[kind]
        self._contributions[old].append((origin, digest, kind, item, line, taken_at, said, self.batch))

    def add_id_alias(self, kind: int, id_: str, item: int) -> None:
        """Another id under which an item is found."""
        self._aliases.append((kind, id_, item))

    def replace_id(self, kind: int, pk: int, id_: str, *, keep: bool) -> None:
        """Gives an item that this run made another id; the one it had stays as an alias where it is kept."""
        self.dirty = True
        old = self._db.execute(f"SELECT id FROM {TABLES[kind]} WHERE pk = ?", (pk,)).get  # noqa: S608
        self._db.execute("DELETE FROM id_alias WHERE kind = ? AND id = ?", (kind, id_))
        self._db.execute(f"UPDATE {TABLES[kind]} SET id = ? WHERE pk = ?", (id_, pk))  # noqa: S608
        if keep:
            self.add_id_alias(kind, old, pk)

    def add_redirect(self, scope: int, name: str, kind: str | None, key: str, entity: int) -> None:
        """A former identity of an entity; nothing when it leads there already."""
        if self.entity(scope, name, key) is not None:
            return
        self.flush_entities()  # the entity may be among those gathered
        self.dirty = self.has_redirects = True
        self._db.execute("INSERT INTO redirect VALUES (?, ?, ?, ?, ?)", (scope, name, kind, key, entity))
        if name != self.entity_name(entity):  # else it is found by that
            self.add_name(entity, name, alias=True)

    def flush_entities(self) -> int:
        """Inserts the gathered entities with their names and ids, so that references find them; how many."""
        count = self._flush_items(ENTITY)
        if self._aliases:
            self.dirty = True
            self._db.executemany("INSERT OR IGNORE INTO id_alias VALUES (?, ?, ?)", self._aliases)
            self._aliases.clear()
        if self._keys:
            self.dirty = True
            self._db.executemany(
                "INSERT OR IGNORE INTO name_key (key, step, alias, entity) VALUES (?, ?, ?, ?)", self._keys
            )
            self._keys.clear()
        return count

    def _flush_items(self, kind: int) -> int:
        rows = self._items[kind]
        if not rows:
            return 0
        self.dirty = True
        before = self._db.total_changes()
        with self._new():
            self._db.executemany(_INSERT[kind], rows)
        stored: int = self._db.total_changes() - before
        self.made[kind] += stored
        self._db.executemany(_FTS[kind][0], self._fts[kind])
        unpack(self._db, measured(kind), (row[0] for row in rows))
        rows.clear()
        self._fts[kind].clear()
        return stored

    def _flush_contributions(self) -> None:
        new = self._contributions[0]
        if new:
            before = self._db.total_changes()
            with self._new():
                self._db.executemany(_CONTRIBUTE_NEW, new)
            if self._db.total_changes() - before < len(new):  # some were taken before, for other items
                self._db.executemany(_CONTRIBUTE, new)
            self.dirty = True
            new.clear()
        self._insert(_CONTRIBUTE, self._contributions)

    def _insert(self, sql: str, rows: tuple[list[Any], ...]) -> None:
        new, more = rows
        if new:
            with self._new():
                self._db.executemany(sql, new)
        if more:
            self._db.executemany(sql, more)
        self.dirty = self.dirty or bool(new or more)
        new.clear()
        more.clear()

    def flush(self) -> tuple[int, int, int]:
        """Inserts everything gathered; the rows that were stored of each kind since the last flush."""
        db = self._db
        stored = (self.flush_entities(), self._flush_items(MEMORY), self._flush_items(RELATION))
        self._insert("INSERT OR IGNORE INTO memory_link VALUES (?, ?, ?)", self._links)
        self._insert("INSERT OR IGNORE INTO stated_by VALUES (?, ?)", self._stated)
        self._insert("INSERT OR IGNORE INTO memory_tag VALUES (?, ?)", (self._tags, []))
        self._flush_contributions()
        db.executemany(_DROP_ORIGIN, [(origin,) for origin in self._origins])
        self._origins.clear()
        return stored

    # ---- changing ---------------------------------------------------------------------------------

    def keep_version(self, kind: int, pk: int) -> None:
        """Keeps an item as it is before this batch changes it; once per batch."""
        row = self._db.execute(_SELECT[kind], (pk,)).fetchone()
        if row[-1] == self.batch:
            return
        self.dirty = True
        self._db.execute(
            "INSERT OR IGNORE INTO version (batch, kind, item, before) VALUES (?, ?, ?, ?)",
            (self.batch, kind, pk, self._version(kind, pk, row)),
        )

    def _version(self, kind: int, pk: int, row: tuple[Any, ...]) -> str:
        before: Row = {
            column: value.hex() if isinstance(value, bytes) else value
            for column, value in zip(COLUMNS[kind], row, strict=True)
        }
        if kind == MEMORY:
            before["about"] = self.links(pk, ABOUT)
            before["mentions"] = self.links(pk, MENTION)
        elif kind == RELATION:
            before["stated_by"] = self.stated_by(pk)
        return canonical_json(before)

    def came_back(self, batch: int) -> list[tuple[int, int]]:
        """(kind, item) of what several batches since that one have changed, and is what it was before them."""
        found = self._db.execute(
            "SELECT kind, item, before, min(batch) FROM version WHERE batch >= ? "
            "GROUP BY kind, item HAVING count(*) > 1",
            (batch,),
        ).fetchall()
        return [
            (kind, pk)
            for kind, pk, before, _ in found
            if self._version(kind, pk, self._db.execute(_SELECT[kind], (pk,)).fetchone()) == before
        ]

    def update(self, kind: int, row: Row, text: tuple[str, ...]) -> None:
        """Replaces an item's row and full-text row; `keep_version` comes first."""
        self.dirty = True
        values = dict(zip(COLUMNS[kind], encoded(kind, row), strict=True))
        pk = row["pk"]
        self._db.execute(_UPDATE[kind], (*(values[column] for column in _CHANGING[kind]), pk))
        table = _FTS[kind][1]
        self._db.execute(f"DELETE FROM {table} WHERE rowid = ?", (pk,))  # noqa: S608
        self._db.execute(_FTS[kind][0], (pk, *text))
        unpack(self._db, measured(kind), [pk])

    def set_state(self, kind: int, pk: int, state: str, archived_by: str | None) -> None:
        """Archives an item or brings it back."""
        self.keep_version(kind, pk)
        self.dirty = True
        self._db.execute(
            f"UPDATE {TABLES[kind]} SET state = ?, archived_by = ? WHERE pk = ?",  # noqa: S608
            (state, archived_by, pk),
        )

    def replace_names(self, pk: int, name: str, aliases: Iterable[str]) -> None:
        """Makes an entity's name keys anew; those of redirects stay."""
        self.dirty = True
        kept = [
            old for (old,) in self._db.execute("SELECT name FROM redirect WHERE entity = ?", (pk,)).fetchall()
        ]
        for key, alias in self._db.execute(
            "SELECT key, alias FROM name_key WHERE entity = ? ORDER BY key", (pk,)
        ).fetchall():
            self._db.execute(
                "DELETE FROM name_key WHERE key = ? AND entity = ? AND alias = ?", (key, pk, alias)
            )
        self.add_name(pk, name, alias=False)
        for alias in {*aliases, *kept} - {name}:
            self.add_name(pk, alias, alias=True)

    def clear_links(self, memory: int) -> None:
        """Removes a memory's links and tag rows, before they are written anew."""
        self._db.execute("DELETE FROM memory_link WHERE memory = ?", (memory,))
        self._db.execute("DELETE FROM memory_tag WHERE memory = ?", (memory,))

    def say(self, kind: int, item: int, digest: bytes, said: str) -> None:
        """Writes out what contributions of that digest said, where the item's own fields stood for it."""
        self._db.execute(
            "UPDATE contribution SET said = ? WHERE item = ? AND kind = ? AND digest = ? AND said IS NULL",
            (said, item, kind, digest),
        )

    # ---- origins and the batch row ----------------------------------------------------------------

    def origin(self, uri: str) -> int | None:
        """The number of an origin, or `None`."""
        found: int | None = self._db.execute("SELECT pk FROM origin WHERE uri = ?", (uri,)).get
        return found

    def origin_digest(self, uri: str) -> str | None:
        """The digest of the version of an origin that was read last, or `None`."""
        found: str | None = self._db.execute("SELECT digest FROM origin WHERE uri = ?", (uri,)).get
        return found

    def keep_origin(self, uri: str, format_: str | None, digest: str | None, read_at: str | None) -> int:
        """The number of an origin, made or, when its digest is another, brought up to date."""
        row = self._db.execute("SELECT pk, digest, read_at FROM origin WHERE uri = ?", (uri,)).fetchone()
        if row is None:
            made: int = self._db.execute(
                "INSERT INTO origin (uri, format, digest, read_at) VALUES (?, ?, ?, ?) RETURNING pk",
                (uri, format_, digest, read_at),
            ).get
            self._origins.append(made)
            return made
        pk, held, when = row
        if digest != held and (read_at or "") >= (when or ""):
            self._db.execute(
                "UPDATE origin SET format = ?, digest = ?, read_at = ? WHERE pk = ?",
                (format_, digest, read_at, pk),
            )
        return int(pk)

    def add_batch(self, *, id_: str, run: str, at: str, command: str, importer: str | None,
                  inputs: Any, counts: Any, actor: str | None = None) -> None:  # fmt: skip
        """Writes the batch's own row, last."""
        self._db.execute(
            "INSERT INTO batch (pk, id, run, at, command, importer, inputs, counts, actor) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                self.batch,
                id_,
                run,
                at,
                command,
                importer,
                canonical_json(inputs),
                canonical_json(counts),
                actor,
            ),
        )
