"""Erasing items so that nothing of them is left in the file: rows, history, indexes, and the pages they were in."""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import apsw

from graphmem.errors import StoreBusy, StoreDamaged
from graphmem.prepare import canonical_json
from graphmem.store.changes import Change, changes, is_lost, lose_changes
from graphmem.store.derived import Derived
from graphmem.store.removal import keep_last, remove_items
from graphmem.store.vectors import detach
from graphmem.store.write import ENTITY, MEMORY, RELATION, TABLES
from graphmem.ulid import memory_key

LEAST: Final = 8
"""Texts of fewer bytes are not looked for in the file: they would be found by chance."""

_PIECE: Final = 32
_PIECES_MOST: Final = 64
_WAIT_MOST: Final = 2_000
_FILES: Final = ("", "-wal", "-shm", "-journal")
_ERASED: Final = "(erased)"
_TEXTS: Final = (
    "SELECT name, description, aliases, properties FROM entity WHERE pk = ?",
    "SELECT content, title, source, properties FROM memory WHERE pk = ?",
    "SELECT fact, properties FROM relation WHERE pk = ?",
)
_EARLIER: Final = """
SELECT before FROM version WHERE kind = ?1 AND item = ?2
UNION ALL SELECT said FROM contribution WHERE kind = ?1 AND item = ?2 AND said IS NOT NULL
"""
_TOLD: Final = (
    frozenset(("name", "description", "aliases", "properties", "renamed")),
    frozenset(("content", "title", "source", "properties")),
    frozenset(("fact", "properties")),
)
_CONTRIBUTED: Final = "SELECT origin, digest FROM contribution WHERE kind = ? AND item = ?"
_ALSO: Final = (
    """SELECT id FROM entity WHERE instr(name, ?1) OR instr(description, ?1) OR instr(aliases, ?2)
    OR instr(properties, ?2)""",
    """SELECT id FROM memory WHERE instr(content, ?1) OR instr(title, ?1) OR instr(source, ?1)
    OR instr(properties, ?2)""",
    "SELECT id FROM relation WHERE instr(fact, ?1) OR instr(predicate, ?1) OR instr(properties, ?2)",
)
_SCOPES: Final = "SELECT s.key FROM memory AS m JOIN scope_set AS s ON s.pk = m.scope_set WHERE m.pk = ?"
_ABOUT: Final = """
SELECT e.id FROM memory_link AS l JOIN entity AS e ON e.pk = l.entity WHERE l.role = 0 AND l.memory = ?
"""
_ONLY_ABOUT: Final = """
SELECT l.memory FROM memory_link AS l WHERE l.entity = ?1 AND l.role = 0 AND NOT EXISTS (
  SELECT 1 FROM memory_link AS o WHERE o.memory = l.memory AND o.role = 0 AND o.entity <> ?1
) ORDER BY l.memory
"""
_ENDS: Final = "SELECT pk FROM relation WHERE subject = ?1 OR object = ?1 ORDER BY pk"
_COLUMNS: Final = """
SELECT t.name, c.name FROM sqlite_schema AS t JOIN pragma_table_info(t.name) AS c
WHERE t.type = 'table' AND t.rootpage > 0 AND c.type = 'TEXT'
"""


@dataclass(slots=True)
class Erasure:
    """What is erased: row numbers by kind; and what was found out about it."""

    items: tuple[set[int], set[int], set[int]] = field(default_factory=lambda: (set(), set(), set()))
    texts: set[str] = field(default_factory=set)
    batches: list[str] = field(default_factory=list)
    unlinked: int = 0


class Eraser:
    """Erases items inside a transaction of a connection that has the file for itself."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db: Any = db

    def add(self, erasure: Erasure, kind: int, pk: int) -> None:
        """Adds an item, with an entity its relations and the memories that are about nothing else."""
        added = {(kind, pk)}
        if kind == ENTITY:
            added |= {(MEMORY, memory) for (memory,) in self._db.execute(_ONLY_ABOUT, (pk,))}
            added |= {(RELATION, relation) for (relation,) in self._db.execute(_ENDS, (pk,))}
        for number, one in added:
            erasure.items[number].add(one)
            erasure.texts.update(self._texts(number, one))

    def erase(self, erasure: Erasure) -> None:
        """Erases the items with everything that was ever said of them, and what batches changed in them."""
        db = self._db
        db.execute("PRAGMA defer_foreign_keys = ON")
        keep_last(db)
        self._lose_history(erasure)
        self._erase_from_log(erasure.texts)
        linked = self._unlink(erasure)
        for kind in (RELATION, MEMORY, ENTITY):
            remove_items(db, kind, sorted(erasure.items[kind]))
        for memory in sorted(linked):
            self._refile(memory)
        erasure.unlinked = len(linked)
        db.execute(
            "DELETE FROM origin WHERE NOT EXISTS (SELECT 1 FROM contribution WHERE origin = origin.pk)"
        )
        for table in TABLES:  # what was deleted stays in the segments of full text until they are merged
            db.execute(f"INSERT INTO {table}_fts ({table}_fts) VALUES ('optimize')")  # noqa: S608

    # ---- texts ------------------------------------------------------------------------------------

    def _texts(self, kind: int, pk: int) -> Iterator[str]:
        """Everything that was said of an item, now and before, that is long enough to be looked for."""
        row = self._db.execute(_TEXTS[kind], (pk,)).fetchone() or ()
        for value in row:
            yield from _strings(value)
        for (packed,) in self._db.execute(_EARLIER, (kind, pk)):
            said = json.loads(packed)
            for key, value in said.items() if isinstance(said, dict) else ():
                if key in _TOLD[kind]:
                    yield from _strings(value)

    def also_in(self, erasure: Erasure) -> list[tuple[int, str]]:
        """(kind, id) of other items that hold one of the texts as a whole; before these are erased."""
        found: set[tuple[int, str]] = set()
        own = {(kind, pk) for kind, pks in enumerate(erasure.items) for pk in pks}
        for text in erasure.texts:
            packed = json.dumps(text, ensure_ascii=False)[1:-1]
            for kind, sql in enumerate(_ALSO):
                for (id_,) in self._db.execute(sql, (text, packed)):
                    found.add((kind, id_))
        ids = {
            (kind, self._db.execute(f"SELECT id FROM {TABLES[kind]} WHERE pk = ?", (pk,)).get)  # noqa: S608
            for kind, pk in own
        }
        return sorted(found - ids)

    # ---- history ----------------------------------------------------------------------------------

    def _lose_history(self, erasure: Erasure) -> None:
        """Forgets what those batches changed that made or touched one of the items, or hold a text of it."""
        needles = [needle for text in erasure.texts for needle in _forms(text)]
        given = {
            pair
            for kind, pks in enumerate(erasure.items)
            for pk in pks
            for pair in self._db.execute(_CONTRIBUTED, (kind, pk))
        }
        batches = {
            batch
            for kind, pks in enumerate(erasure.items)
            for pk in pks
            for (batch,) in self._db.execute(f"SELECT batch FROM {TABLES[kind]} WHERE pk = ?", (pk,))  # noqa: S608
        }
        for (batch,) in self._db.execute("SELECT DISTINCT batch FROM change ORDER BY batch").fetchall():
            if batch not in batches and self._touches(batch, erasure, given, needles):
                batches.add(batch)
        for batch in sorted(batches):
            if is_lost(self._db, batch):
                continue
            lose_changes(self._db, batch)
            id_ = self._db.execute("SELECT id FROM batch WHERE pk = ?", (batch,)).get
            if id_ is not None:
                erasure.batches.append(id_)

    def _touches(
        self, batch: int, erasure: Erasure, given: set[tuple[int, bytes]], needles: list[bytes]
    ) -> bool:
        try:
            return any(
                _is_of(one, erasure, given) or any(_holds(side, needles) for side in (one.old, one.new))
                for one in changes(self._db, batch)
            )
        except (StoreDamaged, apsw.Error):
            return True  # it cannot be looked at, and may hold the text

    def _erase_from_log(self, texts: Iterable[str]) -> None:
        """Takes the texts out of what commands were given."""
        texts = set(texts)
        for pk, packed in self._db.execute("SELECT pk, inputs FROM batch").fetchall():
            inputs = json.loads(packed)
            kept = [_ERASED if any(text in str(one) for text in texts) else one for one in inputs]
            if kept != inputs:
                self._db.execute("UPDATE batch SET inputs = ? WHERE pk = ?", (canonical_json(kept), pk))

    # ---- what hangs on the items ------------------------------------------------------------------

    def _unlink(self, erasure: Erasure) -> set[int]:
        """Takes the links of other items to these away; the memories that had one."""
        linked: set[int] = set()
        for pk in erasure.items[ENTITY]:
            linked.update(
                m for (m,) in self._db.execute("SELECT memory FROM memory_link WHERE entity = ?", (pk,))
            )
            self._db.execute("DELETE FROM memory_link WHERE entity = ?", (pk,))
        for pk in erasure.items[MEMORY]:
            self._db.execute(
                "DELETE FROM stated_by WHERE memory = (SELECT id FROM memory WHERE pk = ?)", (pk,)
            )
        return linked - erasure.items[MEMORY]

    def _refile(self, memory: int) -> None:
        """Brings a memory in step with the entities that it is about now."""
        content = self._db.execute("SELECT content FROM memory WHERE pk = ?", (memory,)).get
        about = [id_ for (id_,) in self._db.execute(_ABOUT, (memory,))]
        scopes = json.loads(self._db.execute(_SCOPES, (memory,)).get)
        self._db.execute(
            "UPDATE memory SET key = ? WHERE pk = ?", (memory_key(content, about, scopes), memory)
        )
        derived = Derived(self._db)
        now = derived.refresh(MEMORY, memory)
        if now is not None and not derived.has_vectors_of(MEMORY, memory, now.said):
            detach(self._db, MEMORY, memory)


def _strings(value: Any) -> Iterator[str]:
    """The texts in a value, JSON included, that are long enough to be looked for."""
    if isinstance(value, str):
        packed: Any = None
        if value[:1] in ("[", "{"):
            try:
                packed = json.loads(value)
            except ValueError:
                packed = None
        if isinstance(packed, (list, dict)):
            yield from _strings(packed)
        elif len(value.encode("utf-8", "surrogatepass")) >= LEAST:
            yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)


def _forms(text: str) -> set[bytes]:
    """A text as it may stand in a row: as it is, and inside JSON."""
    return {text.encode(), json.dumps(text, ensure_ascii=False)[1:-1].encode()}


def _holds(side: tuple[Any, ...] | None, needles: list[bytes]) -> bool:
    values = (value.encode() for value in side or () if isinstance(value, str))
    return any(needle in value for value in values for needle in needles)


def _is_of(change: Change, erasure: Erasure, given: set[tuple[int, bytes]]) -> bool:
    """Whether a row belongs to one of the items, or refers to it."""
    entities, memories, relations = erasure.items
    for side in (change.old, change.new):
        if side is None:
            continue
        table = change.table
        if table in TABLES and side[0] in erasure.items[TABLES.index(table)]:
            return True
        if table == "relation" and (side[3] in entities or side[6] in entities):
            return True
        if table == "memory_link" and (side[0] in memories or side[1] in entities):
            return True
        if (table == "stated_by" and side[0] in relations) or (table == "redirect" and side[4] in entities):
            return True
        if table == "contribution" and (side[0], side[1]) in given:
            return True
        if table == "version" and side[1] in (ENTITY, MEMORY, RELATION) and side[2] in erasure.items[side[1]]:
            return True
    return False


# ---- the file ---------------------------------------------------------------------------------------


@contextmanager
def alone(db: apsw.Connection, path: str) -> Iterator[None]:
    """Has a store for this connection alone, without a log. Raises `StoreBusy` when others have it open."""
    _take(db, path)
    try:
        yield
    finally:
        db.execute("PRAGMA locking_mode = NORMAL")
        db.pragma("journal_mode", "wal")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _take(db: apsw.Connection, path: str) -> None:
    try:
        db.set_busy_timeout(_WAIT_MOST)
        taken = db.pragma("journal_mode", "delete") == "delete"
        if taken:
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
            db.execute("BEGIN EXCLUSIVE")
            db.execute("COMMIT")
    except (apsw.BusyError, apsw.LockedError):
        taken = False
    if not taken:
        raise StoreBusy(
            f"{path}: another program has the store open, and could keep what is to be erased",
            "end it ('gmem mcp' for example), and try again",
        )
    db.execute("PRAGMA secure_delete = ON")


def rewrite(db: apsw.Connection) -> bool:
    """Writes the file anew without what was erased, which is overwritten already; whether there was room."""
    try:
        db.execute("VACUUM")
    except (apsw.FullError, apsw.IOError):
        return False
    return True


def found_in(path: Path, texts: Iterable[str], db: apsw.Connection) -> list[str]:
    """The names of files of a store that hold pieces of the texts which no row explains."""
    pieces = {piece for text in texts for form in _forms(text) for piece in _pieces(form)}
    found: set[str] = set()
    for end in _FILES:
        file = path.with_name(f"{path.name}{end}")
        if not file.exists() or not file.stat().st_size:
            continue
        with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            for piece in pieces:
                if data.find(piece) >= 0 and not _is_explained(db, piece):
                    found.add(file.name)
                    break
    return sorted(found)


def _pieces(data: bytes) -> list[bytes]:
    """Some pieces of a text: pages cut long ones, so that the whole need not stand in one place."""
    if len(data) <= 2 * _PIECE:
        return [data]
    starts = range(0, len(data) - _PIECE + 1, _PIECE)
    step = max(1, len(starts) // _PIECES_MOST)
    return [data[start : start + _PIECE] for start in starts[::step]] + [data[-_PIECE:]]


def _is_explained(db: apsw.Connection, piece: bytes) -> bool:
    """Whether a row that stays has the piece, so that it may be in the file."""
    columns: Any = db.execute(_COLUMNS).fetchall()
    return any(
        db.execute(f'SELECT 1 FROM "{table}" WHERE instr(CAST("{column}" AS BLOB), ?) LIMIT 1', (piece,)).get  # noqa: S608
        for table, column in columns
    )
