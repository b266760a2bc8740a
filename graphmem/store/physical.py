"""What SQLite finds wrong with a file, told by the table or index that it is in, and whether it can be mended.

An index can be made anew from its table, and a derived table from the others, but only where it is known
that it is the index or the derived table that is damaged. Where a row and an index of it say different
things, either may be: then nothing is taken from the one into the other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

import apsw

from graphmem.store.sketches import INDEXES
from graphmem.store.write import TABLES

FULL_TEXT: Final = tuple(f"{table}_fts" for table in TABLES)
DERIVED: Final = frozenset(
    ("name_key", "memory_tag", "mention_name", "mention", "scope_member", "packed", *INDEXES, *FULL_TEXT)
)
"""Tables that are made from others."""

CHECKED_BY_DIGEST: Final = frozenset(("vector", "chunk"))
"""Tables whose rows are compared with the texts that they belong to, whatever their indexes say."""
_SHADOWS: Final = tuple(f"_{name}" for name in ("data", "idx", "docsize", "config", "content"))
_SHOWN: Final = 20
_OF_INDEX: Final = re.compile(
    r"(?:missing from index|of row \d+ of index|entries in index|entry in index|row \d+ of index) (\S+)"
)
_OF_TREE: Final = re.compile(r"^Tree (\d+)\b", re.MULTILINE)
_OF_PAGE: Final = re.compile(r"of page (\d+)")
_MALFORMED: Final = "database disk image is malformed"
_SCHEMA: Final = "SELECT name, type, tbl_name, rootpage, sql FROM sqlite_schema"
_COLUMNS: Final = "SELECT name FROM pragma_index_xinfo(?) WHERE cid >= 0 ORDER BY seqno"


@dataclass(slots=True)
class Physical:
    """What is wrong with the file: `messages` of SQLite, and by name what can be made anew.

    `lost` says what cannot be mended, `doubtful` where a row and an index of it differ. Damage that is in
    neither, of free pages for example, is not in the way of making a new file of what can be read.
    """

    messages: list[str] = field(default_factory=list)
    indexes: set[str] = field(default_factory=set)
    tables: set[str] = field(default_factory=set)
    lost: list[str] = field(default_factory=list)
    doubtful: list[str] = field(default_factory=list)

    @property
    def can_be_mended(self) -> bool:
        """Whether all of it is in what can be made anew."""
        return not self.lost and not self.doubtful


def look(db: apsw.Connection) -> Physical:
    """What SQLite's own checks say, full-text tables included.

    Raises `apsw.CorruptError` where not even the schema can be read.
    """
    found = Physical()
    found.messages = _lines(db, f"PRAGMA integrity_check({_SHOWN})")
    if found.messages:
        _Explanation(db, found).run()
    return found


def _lines(db: apsw.Connection, sql: str) -> list[str]:
    """The messages of a check, one each."""
    told: list[str] = []
    try:
        for (said,) in db.execute(sql):
            told += [line for line in str(said).splitlines() if not line.startswith("*** in database")]
    except apsw.CorruptError:
        told.append(_MALFORMED)
    return [line for line in told if line != "ok"]


class _Explanation:
    """Tells for each table whether it is the table, an index of it, or neither that is damaged."""

    def __init__(self, db: apsw.Connection, found: Physical) -> None:
        self._db: Any = db
        self._found = found
        schema: Any = db.execute(_SCHEMA).fetchall()
        self._schema: list[tuple[str, str, str, int, str | None]] = schema
        self._roots = {root: name for name, _, _, root, _ in self._schema if root}
        self._owners = {name: table for name, _, table, _, _ in self._schema}

    def run(self) -> None:
        for name, kind, _, root, sql in self._schema:
            if kind == "table" and not (root and sql is None):
                for message in _lines(self._db, f'PRAGMA integrity_check("{name}")'):
                    self._explain(name, message)
                if root and name not in DERIVED and not self._is_shadow(name):
                    self._read(name)

    @staticmethod
    def _is_shadow(table: str) -> bool:
        return any(table.removesuffix(end) in FULL_TEXT for end in _SHADOWS)

    def _read(self, table: str) -> None:
        """Reads a table through, its indexes aside."""
        try:
            for _ in self._db.execute(f'SELECT * FROM "{table}" {in_order(self._db, table)}'):  # noqa: S608
                pass
        except (apsw.Error, UnicodeDecodeError) as error:
            self._lose(table, str(error))

    def _lose(self, table: str, message: str) -> None:
        told = f"'{table}': {message}"
        if told not in self._found.lost:
            self._found.lost.append(told)

    def _explain(self, table: str, message: str) -> None:
        """Notes what a message about a table or one of its indexes means."""
        whole = next(
            (table.removesuffix(end) for end in _SHADOWS if table.removesuffix(end) in FULL_TEXT), table
        )
        if whole in DERIVED:
            self._found.tables.add(whole)
            return
        tree, index, page = _OF_TREE.search(message), _OF_INDEX.search(message), _OF_PAGE.search(message)
        if tree is not None:
            self._damaged(table, self._roots.get(int(tree[1]), table), message)
        elif index is not None and self._owners.get(index[1]) == table:
            self._disagreeing(table, index[1])
        elif page is not None:
            self._damaged(table, self._owner_of(int(page[1])) or table, message)
        elif message != _MALFORMED:  # which may be of an index: whether the table is readable is tried
            self._lose(table, message)

    def _damaged(self, table: str, name: str, message: str) -> None:
        """Notes that the pages of an index, or of the table itself, are damaged."""
        if name == table:
            self._lose(table, message)
        else:
            self._found.indexes.add(name)

    def _owner_of(self, page: int) -> str | None:
        try:
            found: str | None = self._db.execute("SELECT name FROM dbstat WHERE pageno = ?", (page,)).get
        except apsw.Error:
            return None
        return found

    def _disagreeing(self, table: str, index: str) -> None:
        """Notes that a table and an index of it differ: where rows are only missing, it is the index."""
        if index in self._found.indexes:
            return
        try:
            differ = 0 if table in CHECKED_BY_DIGEST else self._differences(table, index)
        except apsw.Error:  # the index cannot be read, or else the table cannot, which is tried
            differ = 0
        if not differ:
            self._found.indexes.add(index)
            return
        rows = f"{differ:,} {'row' if differ == 1 else 'rows'}"
        told = f"{rows} of '{table}' and the index '{index}' say different things"
        if told not in self._found.doubtful:
            self._found.doubtful.append(told)

    def _differences(self, table: str, index: str) -> int:
        """How many entries an index has that are not those of a row."""
        execute: Any = self._db.execute
        columns = [f'"{name}"' for (name,) in execute(_COLUMNS, (index,)).fetchall()]
        partial = execute("SELECT partial FROM pragma_index_list(?) WHERE name = ?", (table, index)).get
        where = f" WHERE {columns[0]} IS NOT NULL" if partial else ""
        if _has_rowid(self._db, table):
            columns.append("rowid")
        wanted = ", ".join(f"CAST({name} AS BLOB)" for name in dict.fromkeys(columns))
        held = set(execute(f'SELECT {wanted} FROM "{table}" INDEXED BY "{index}"{where}'))  # noqa: S608
        rows = set(
            execute(f'SELECT {wanted} FROM "{table}" {in_order(self._db, table, where)}')  # noqa: S608
        )
        return len(held - rows)


def in_order(db: apsw.Connection, table: str, where: str = "", schema: str = "main") -> str:
    """What makes SQLite read the tree of a table itself, and no index that happens to have the columns."""
    if _has_rowid(db, table, schema):
        return f"NOT INDEXED{where} ORDER BY rowid"
    key: Any = db.execute(f'PRAGMA {schema}.table_info("{table}")').fetchall()
    names = ", ".join(f'"{name}"' for _, name, *_, part in sorted(key, key=lambda row: row[-1]) if part)
    return f"NOT INDEXED{where} ORDER BY {names}"


def _has_rowid(db: apsw.Connection, table: str, schema: str = "main") -> bool:
    sql = "SELECT wr FROM pragma_table_list(?) WHERE schema = ?"
    return bool(db.execute(sql, (table, schema)).get == 0)
