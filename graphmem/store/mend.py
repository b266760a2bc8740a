"""Making anew what is derived, inside a transaction: full text, names, tags, mentions, pieces of vectors."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

import apsw

from graphmem.names import name_keys
from graphmem.store.changes import lose_changes
from graphmem.store.damage import Differences
from graphmem.store.derived import full_text
from graphmem.store.mentions import rebuild
from graphmem.store.packed import unpack_all
from graphmem.store.physical import FULL_TEXT, Physical
from graphmem.store.sketches import INDEXES, Sketcher, drop
from graphmem.store.vectors import current_encoder, detach, need_index
from graphmem.store.write import TABLES

_DROP_UNUSED: Final = """
DELETE FROM vector WHERE encoder IN (SELECT pk FROM encoder WHERE current = 1)
  AND pk NOT IN (SELECT vector FROM chunk)
"""


class Mender:
    """Makes derived rows anew; `done` counts them by what they belong to."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db: Any = db
        self.done: dict[str, int] = {}

    def physical(self, found: Physical) -> None:
        """Makes damaged derived tables anew as a whole."""
        for table in sorted(found.tables):
            if table in FULL_TEXT:
                self._whole_text(FULL_TEXT.index(table))
            elif table == "name_key":
                self._db.execute("DELETE FROM name_key")
                self._names(pk for (pk,) in self._db.execute("SELECT pk FROM entity").fetchall())
            elif table == "memory_tag":
                self._db.execute("DELETE FROM memory_tag")
                self._tags(pk for (pk,) in self._db.execute("SELECT pk FROM memory").fetchall())
            elif table == "scope_member":
                self._db.execute("DELETE FROM scope_member")
                self._members(pk for (pk,) in self._db.execute("SELECT pk FROM scope_set").fetchall())
        if {"mention", "mention_name"} & found.tables:
            self._mentions()
        if set(INDEXES) & found.tables:
            self._sketches()
        if {"packed", *FULL_TEXT} & found.tables:
            unpack_all(self._db)

    def differences(self, found: Differences) -> None:
        """Makes the rows that differ anew."""
        if found.behind:
            self._db.execute(
                "UPDATE sqlite_sequence SET seq = (SELECT max(pk) FROM batch) WHERE name = 'batch'"
            )
            self._note("counters", 1)
        self._pieces(found)
        for kind, rows in enumerate(found.words):
            if rows:
                self._text(kind, rows)
        if found.names:
            self._names(found.names)
        if found.tags:
            self._tags(found.tags)
        if found.members:
            self._members(found.members)
        if found.mentions:
            self._mentions(found.mentions)
        for batch in found.history:
            lose_changes(self._db, batch)
            self._note("history", 1)
        if found.sketches or found.bits or found.loose:
            self._sketches(found.sketches + found.bits)
        if any(found.words) or found.packed:
            unpack_all(self._db)
            self._note("packed figures", found.packed)

    def _note(self, what: str, count: int) -> None:
        if count:
            self.done[what] = self.done.get(what, 0) + count

    # ---- full text --------------------------------------------------------------------------------

    def _text(self, kind: int, rows: set[int]) -> None:
        try:
            for pk in sorted(rows):
                self._db.execute(f"DELETE FROM {FULL_TEXT[kind]} WHERE rowid = ?", (pk,))  # noqa: S608
            self._write_text(kind, rows)
        except apsw.CorruptError:  # a damage that only shows when the row is looked up
            self._whole_text(kind)
            return
        self._note(f"full text of kind {TABLES[kind]}", len(rows))

    def _whole_text(self, kind: int) -> None:
        table = FULL_TEXT[kind]
        sql = self._db.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).get
        self._db.execute(f"DROP TABLE {table}")
        self._db.execute(sql)
        self._note(f"full text of kind {TABLES[kind]}", self._write_text(kind, None))

    def _write_text(self, kind: int, rows: set[int] | None) -> int:
        columns = [name for _, name, *_ in self._db.execute(f"PRAGMA table_info({FULL_TEXT[kind]})")]
        marks = ", ".join("?" * (1 + len(columns)))
        sql = f"INSERT INTO {FULL_TEXT[kind]} (rowid, {', '.join(columns)}) VALUES ({marks})"  # noqa: S608
        count = 0
        for row in full_text(self._db, kind):
            if rows is None or row[0] in rows:
                self._db.cursor().execute(sql, row)
                count += 1
        return count

    # ---- names, tags, scopes, mentions ------------------------------------------------------------

    def _names(self, entities: Iterable[int]) -> None:
        wanted = list(entities)
        self._db.execute(
            "DELETE FROM name_key WHERE entity IN (SELECT value FROM json_each(?))", (json.dumps(wanted),)
        )
        for pk in wanted:
            row = self._db.execute("SELECT name, aliases FROM entity WHERE pk = ?", (pk,)).fetchone()
            if row is not None:
                former = self._db.execute("SELECT name FROM redirect WHERE entity = ?", (pk,)).fetchall()
                others = {*json.loads(row[1] or "[]"), *(name for (name,) in former)}
                keys = [(key, step, 0, pk) for key, step in name_keys(row[0])]
                keys += [(key, step, 1, pk) for name in sorted(others) for key, step in name_keys(name)]
                self._db.executemany(
                    "INSERT OR IGNORE INTO name_key (key, step, alias, entity) VALUES (?, ?, ?, ?)", keys
                )
        self._note("entities with their names", len(wanted))

    def _tags(self, memories: Iterable[int]) -> None:
        for pk in memories:
            self._db.execute("DELETE FROM memory_tag WHERE memory = ?", (pk,))
            self._db.execute(
                "INSERT INTO memory_tag (tag, memory) SELECT value, ?1 FROM memory AS m, json_each(m.tags) "
                "WHERE m.pk = ?1",
                (pk,),
            )
            self._note("memories with their tags", 1)

    def _members(self, sets: Iterable[int]) -> None:
        for pk in sets:
            self._db.execute("DELETE FROM scope_member WHERE scope_set = ?", (pk,))
            self._db.execute(
                "INSERT INTO scope_member (scope, scope_set) SELECT s.pk, t.pk "
                "FROM scope_set AS t, json_each(t.key) AS j JOIN scope AS s ON s.name = j.value WHERE t.pk = ?",
                (pk,),
            )
            self._note("sets of scopes", 1)

    def _mentions(self, odd: int = 1) -> None:
        rebuild(self._db)
        self._note("mentions", odd)

    # ---- vectors ----------------------------------------------------------------------------------

    def _pieces(self, found: Differences) -> None:
        """Takes vectors of another text away, and those of nothing: 'gmem reembed' makes new ones."""
        for kind, items in enumerate(found.pieces):
            for pk in sorted(items):
                detach(self._db, kind, pk)
                self._note("items without a vector now", 1)
        for pk in sorted(found.loose):
            for kind in range(len(TABLES)):
                drop(self._db, kind, pk)
            self._db.execute("DELETE FROM chunk WHERE pk = ?", (pk,))
            self._note("pieces of nothing", 1)
        before = self._db.total_changes()
        self._db.execute(_DROP_UNUSED)
        self._note("vectors of nothing", self._db.total_changes() - before)

    def _sketches(self, odd: int = 1) -> None:
        held = current_encoder(self._db)
        if held is None:
            for index in INDEXES:
                self._db.execute(f"DELETE FROM {index}")  # noqa: S608
            unpack_all(self._db)
        else:
            need_index(self._db)
            Sketcher(self._db, held.dimension).fill()
        self._note("sketches of vectors", odd)
