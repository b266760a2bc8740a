"""Whether everything that is derived is what it would be if it were made now, compared row by row.

Where a derived row differs from its item, the item itself may be what is damaged. So the two are only
reconciled where something else vouches for the item: the key that a memory is filed under is a digest of
its text, a vector is filed under the digest of the text it was made of, and names stand in two indexes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import apsw

from graphmem.errors import StoreDamaged
from graphmem.names import name_keys
from graphmem.prepare import text_hash
from graphmem.store.changes import changes
from graphmem.store.connection import load_vectors
from graphmem.store.derived import full_text
from graphmem.store.mentions import rebuild
from graphmem.store.packed import out_of_step as ranges_out_of_step
from graphmem.store.physical import FULL_TEXT
from graphmem.store.reembed import Texts
from graphmem.store.sketches import INDEXES, Sketcher, out_of_step
from graphmem.store.vectors import current_encoder
from graphmem.store.write import ENTITY, MEMORY, RELATION, TABLES
from graphmem.ulid import memory_key

if TYPE_CHECKING:
    from graphmem.store.vectors import StoredEncoder

_PAGE: Final = 512
_SIZES: Final = """
SELECT ifnull(h.id, w.id), h.sz, w.sz FROM {table}_docsize AS h FULL JOIN temp.{table}_twin_docsize AS w
ON w.id = h.id WHERE h.sz IS NOT w.sz
"""
_TERMS: Final = """
SELECT term FROM (SELECT * FROM temp.{table}_words EXCEPT SELECT * FROM temp.{table}_twin_words)
UNION SELECT term FROM (SELECT * FROM temp.{table}_twin_words EXCEPT SELECT * FROM temp.{table}_words)
"""
_AT: Final = "SELECT doc, col, offset FROM temp.{table}_places WHERE term = ?"
_KEYS: Final = "SELECT entity, key, step, alias FROM name_key ORDER BY entity"
_NAMES: Final = "SELECT pk, name, aliases FROM entity ORDER BY pk"
_FORMER: Final = "SELECT entity, name FROM redirect ORDER BY entity"
_MEMORIES: Final = """
SELECT m.pk, m.key, m.content, s.key FROM memory AS m JOIN scope_set AS s ON s.pk = m.scope_set
WHERE m.pk > ? ORDER BY m.pk LIMIT ?
"""
_ABOUT: Final = """
SELECT l.memory, e.id FROM memory_link AS l JOIN entity AS e ON e.pk = l.entity
WHERE l.role = 0 AND l.memory BETWEEN ? AND ?
"""
_TAGS_HELD: Final = (
    "SELECT memory, tag FROM memory_tag EXCEPT SELECT m.pk, value FROM memory AS m, json_each(m.tags)"
)
_TAGS_WANTED: Final = (
    "SELECT m.pk, value FROM memory AS m, json_each(m.tags) EXCEPT SELECT memory, tag FROM memory_tag"
)
_PIECES: Final = """
SELECT c.item, c.start, c.stop, v.text_digest FROM chunk AS c LEFT JOIN vector AS v ON v.pk = c.vector
WHERE c.kind = ? AND c.item BETWEEN ? AND ? ORDER BY c.item, c.ordinal
"""
_ODD_PIECES: Final = """
SELECT c.kind, c.item FROM chunk AS c LEFT JOIN vector AS v ON v.pk = c.vector
WHERE v.pk IS NULL OR v.encoder <> :encoder OR length(v.vector) <> 4 * :dimension
"""
_LOOSE_PIECES: Final = """
SELECT pk FROM chunk AS c WHERE kind NOT IN (0, 1, 2)
  OR (kind = 0 AND NOT EXISTS (SELECT 1 FROM entity WHERE pk = c.item))
  OR (kind = 1 AND NOT EXISTS (SELECT 1 FROM memory WHERE pk = c.item))
  OR (kind = 2 AND NOT EXISTS (SELECT 1 FROM relation WHERE pk = c.item))
"""
# `IS NOT` also finds what is no number.
_NOT_OF_UNIT_LENGTH: Final = """
SELECT c.kind, c.item FROM vector AS v JOIN chunk AS c ON c.vector = v.pk
WHERE length(v.vector) = 4 * :dimension AND (abs(vec_distance_l2(v.vector, :zero) - 1) < 0.01) IS NOT TRUE
"""
_UNUSED: Final = """
SELECT count(*) FROM vector AS v JOIN encoder AS e ON e.pk = v.encoder
WHERE e.current = 1 AND NOT EXISTS (SELECT 1 FROM chunk AS c WHERE c.vector = v.pk)
"""
_BITS: Final = "SELECT s.bits, v.vector FROM {index} AS s JOIN vector AS v ON v.pk = s.vector"
_SETS: Final = "SELECT pk, key FROM scope_set ORDER BY pk"
_MEMBERS: Final = (
    "SELECT s.name FROM scope_member AS x JOIN scope AS s ON s.pk = x.scope WHERE x.scope_set = ?"
)
_MADE: Final = """
SELECT b.id, b.counts ->> '$.items[{kind}]', (SELECT count(*) FROM {table} AS i WHERE i.batch = b.pk)
FROM batch AS b WHERE b.counts ->> '$.items[{kind}]' < (SELECT count(*) FROM {table} AS i WHERE i.batch = b.pk)
"""
_UNKNOWN_BATCH: Final = (
    "SELECT count(*) FROM {table} AS i WHERE NOT EXISTS (SELECT 1 FROM batch WHERE pk = i.batch)"
)
_BEHIND: Final = """
SELECT (SELECT ifnull(max(pk), 0) FROM batch) > ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'batch'), 0)
"""


@dataclass(slots=True)
class Differences:
    """What is not as it would be made now; rows by number.

    `words`, `pieces`: items per kind whose full text, whose vectors are not of their text; `other_words` counts
    those of the former that have a full text, `bits` the sketches that are of another vector. `doubtful`
    says where an item itself may be damaged, `suspects` which, and nothing of these is made anew; `wrong` is
    what is wrong and not derived from anything.
    """

    words: tuple[set[int], set[int], set[int]] = field(default_factory=lambda: (set(), set(), set()))
    other_words: list[int] = field(default_factory=lambda: [0, 0, 0])
    names: set[int] = field(default_factory=set)
    tags: set[int] = field(default_factory=set)
    members: set[int] = field(default_factory=set)
    mentions: int = 0
    pieces: tuple[set[int], set[int], set[int]] = field(default_factory=lambda: (set(), set(), set()))
    loose: set[int] = field(default_factory=set)
    unused: int = 0
    sketches: int = 0
    bits: int = 0
    packed: int = 0
    history: list[int] = field(default_factory=list)
    behind: bool = False
    doubtful: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    suspects: tuple[set[int], set[int], set[int]] = field(default_factory=lambda: (set(), set(), set()))

    @property
    def can_be_mended(self) -> bool:
        """Whether there is anything that can be made anew."""
        found: tuple[object, ...] = (
            *self.words, self.names, self.tags, self.members, self.mentions, *self.pieces, self.loose,
            self.unused, self.sketches, self.bits, self.packed, self.history, self.behind,
        )  # fmt: skip
        return any(found)


def compare(db: apsw.Connection, skip: Iterable[str] = ()) -> Differences:
    """Compares everything derived with what it is derived from.

    `skip` are the names of tables that are damaged as such and are not read. Raises `apsw.CorruptError`
    where others are.
    """
    return _Comparison(db, frozenset(skip)).run()


class _Comparison:
    """One comparison."""

    def __init__(self, db: apsw.Connection, skip: frozenset[str]) -> None:
        self._db: Any = db
        self._skip = skip
        self._found = Differences()
        self._odd_columns: tuple[dict[int, set[str]], ...] = ({}, {}, {})
        self._foreign_text: set[int] = set()

    def run(self) -> Differences:
        self._keys_of_memories()
        self._pieces()
        for kind in range(len(TABLES)):
            if f"{TABLES[kind]}_fts" not in self._skip:
                self._words(kind)
        if "name_key" not in self._skip:
            self._names()
        self._settle_words()
        if "memory_tag" not in self._skip:
            self._tags()
        if "scope_member" not in self._skip:
            self._members()
        if not {"mention", "mention_name"} & self._skip:
            self._found.mentions = count_odd_mentions(self._db)
        self._sketches()
        if not {"packed", *INDEXES, *FULL_TEXT} & self._skip:
            self._found.packed = ranges_out_of_step(self._db)
        self._log()
        self._leave_suspects()
        return self._found

    def _leave_suspects(self) -> None:
        """What differs from an item that may be damaged is kept: it may be what is right."""
        found = self._found
        for kind, pks in enumerate(found.suspects):
            found.words[kind].difference_update(pks)
            found.pieces[kind].difference_update(pks)
        found.names -= found.suspects[ENTITY]

    def _doubt(self, kind: int, pks: set[int], why: str) -> None:
        if pks:
            self._found.suspects[kind].update(pks)
            told = _number(len(pks), TABLES[kind], f"{TABLES[kind][:-1]}ies" if kind < RELATION else "")
            self._found.doubtful.append(f"{told} {why}: {self._ids(kind, pks)}")

    # ---- texts ------------------------------------------------------------------------------------

    def _keys_of_memories(self) -> None:
        """Memories whose text, entities and scopes are not those that they are filed under."""
        after = 0
        while page := self._db.execute(_MEMORIES, (after, _PAGE)).fetchall():
            about: dict[int, list[str]] = {}
            for memory, id_ in self._db.execute(_ABOUT, (page[0][0], page[-1][0])):
                about.setdefault(memory, []).append(id_)
            for pk, key, content, scopes in page:
                if memory_key(content, about.get(pk, ()), json.loads(scopes)) != key:
                    self._foreign_text.add(pk)
            after = page[-1][0]
        why = "whose text, entities or scopes are not those that it was filed under"
        self._doubt(MEMORY, self._foreign_text, why)

    def _ids(self, kind: int, pks: Iterable[int]) -> str:
        some = sorted(pks)
        sql = f"SELECT id FROM {TABLES[kind]} WHERE pk = ?"  # noqa: S608
        told = [str(self._db.execute(sql, (pk,)).get or f"number {pk}") for pk in some[:5]]
        return ", ".join(told) + (f" and {len(some) - 5:,} more" if len(some) > 5 else "")

    # ---- vectors ----------------------------------------------------------------------------------

    def _pieces(self) -> None:
        held = current_encoder(self._db)
        self._found.loose = {pk for (pk,) in self._db.execute(_LOOSE_PIECES)}
        if held is None:
            return
        for page in Texts(self._db).pages(_PAGE, bare=False):
            self._page(page[0].kind, {one.pk: one.text for one in page})
        for kind, item in self._odd(held):
            if kind in (ENTITY, MEMORY, RELATION):
                self._found.pieces[kind].add(item)
        self._found.unused = self._db.execute(_UNUSED).get

    def _page(self, kind: int, texts: dict[int, str]) -> None:
        rows = self._db.execute(_PIECES, (kind, min(texts), max(texts)))
        for pk, pieces in groupby(rows, lambda row: row[0]):
            text = texts.get(pk)
            spans = [(start, stop, digest) for _, start, stop, digest in pieces]
            if text is not None and not (
                max(stop for _, stop, _ in spans) == len(text)
                and all(text_hash(text[start:stop]) == digest for start, stop, digest in spans)
            ):
                self._found.pieces[kind].add(pk)

    def _odd(self, held: StoredEncoder) -> Iterator[tuple[int, int]]:
        """Items with vectors of another encoder, another length, or not of unit length."""
        binds = {"encoder": held.pk, "dimension": held.dimension}
        yield from self._db.execute(_ODD_PIECES, binds).fetchall()
        if load_vectors(self._db):
            lengths: dict[str, Any] = {"dimension": held.dimension, "zero": bytes(4 * held.dimension)}
            yield from self._db.execute(_NOT_OF_UNIT_LENGTH, lengths).fetchall()

    def _fits_its_vectors(self, kind: int, pk: int) -> bool:
        """Whether an item has vectors, and they are of the text it has now."""
        has = self._db.execute("SELECT 1 FROM chunk WHERE kind = ? AND item = ? LIMIT 1", (kind, pk)).get
        return has is not None and pk not in self._found.pieces[kind]

    def _sketches(self) -> None:
        held = current_encoder(self._db)
        for kind, index in enumerate(INDEXES):
            if index in self._skip:
                continue
            self._found.sketches += sum(out_of_step(self._db, kind))
            if held is not None and load_vectors(self._db):
                sketcher = Sketcher(self._db, held.dimension)
                self._found.bits += sum(
                    len(vector) == 4 * held.dimension and sketcher.of(vector) != bits
                    for bits, vector in self._db.cursor().execute(_BITS.format(index=index))
                )

    # ---- full text --------------------------------------------------------------------------------

    def _words(self, kind: int) -> None:
        """Rows of a full-text table that are missing, too many, or of other words than their item's."""
        table = f"{TABLES[kind]}_fts"
        columns = make_twin(self._db, kind)
        odd = self._odd_columns[kind]
        wrong = self._found.words[kind]
        for pk, held, wanted in self._db.execute(_SIZES.format(table=table)).fetchall():
            if held is None or wanted is None:
                wrong.add(pk)
            else:
                sizes = zip(columns, _varints(held), _varints(wanted), strict=False)
                odd.setdefault(pk, set()).update(name for name, one, other in sizes if one != other)
        for term in [term for (term,) in self._db.execute(_TERMS.format(table=table))]:
            one = set(self._db.execute(_AT.format(table=table), (term,)))
            other = set(self._db.execute(_AT.format(table=f"{table}_twin"), (term,)))
            for pk, column, _ in one ^ other:
                if pk not in wrong:
                    odd.setdefault(pk, set()).add(column)
        drop_twin(self._db, kind)

    def _settle_words(self) -> None:
        """Full text that differs is made anew where the item is vouched for, and told where it is not."""
        for kind, rows in enumerate(self._odd_columns):
            doubtful = {pk for pk, columns in rows.items() if not self._is_vouched(kind, pk, columns)}
            self._found.words[kind].update(rows.keys() - doubtful)
            self._found.other_words[kind] = len(rows.keys() - doubtful)
            doubtful -= self._foreign_text if kind == MEMORY else set()
            if doubtful:
                told = _number(
                    len(doubtful), TABLES[kind], f"{TABLES[kind][:-1]}ies" if kind < RELATION else ""
                )
                self._found.doubtful.append(
                    f"{told} with other words than the full text has, and nothing tells which are right: "
                    + self._ids(kind, doubtful)
                )

    def _is_vouched(self, kind: int, pk: int, columns: set[str]) -> bool:
        if kind == MEMORY and pk in self._foreign_text:
            return False
        unsure = columns & {ENTITY: {"description"}, MEMORY: {"title"}, RELATION: {"fact", "parts"}}[kind]
        if kind == ENTITY and "names" in columns and pk in self._found.names:
            return False
        return not unsure or self._fits_its_vectors(kind, pk)

    def _names(self) -> None:
        """Entities that are found by other names than their own."""
        former: dict[int, list[str]] = {}
        for pk, name in self._db.cursor().execute(_FORMER):
            former.setdefault(pk, []).append(name)
        stored = groupby(self._db.cursor().execute(_KEYS), lambda row: row[0])
        entity, keys = next(stored, (None, iter(())))
        doubtful: set[int] = set()
        for pk, name, aliases in self._db.cursor().execute(_NAMES):
            while entity is not None and entity < pk:
                self._found.names.add(entity)  # of an entity that is not there
                entity, keys = next(stored, (None, iter(())))
            held: set[tuple[str, int, int]] = set()
            if entity == pk:
                held = {(key, step, alias) for _, key, step, alias in keys}
                entity, keys = next(stored, (None, iter(())))
            wanted = {(key, step, 0) for key, step in name_keys(name)}
            for alias in (*json.loads(aliases or "[]"), *former.get(pk, ())):
                wanted |= {(key, step, 1) for key, step in name_keys(alias)}
            if held == wanted:
                continue
            self._found.names.add(pk)
            if held - wanted and "names" in self._odd_columns[ENTITY].get(pk, ()):
                doubtful.add(pk)
        while entity is not None:
            self._found.names.add(entity)
            entity, keys = next(stored, (None, iter(())))
        self._doubt(ENTITY, doubtful, "with other names than both indexes of names have")

    def _tags(self) -> None:
        stray = {pk for pk, _ in self._db.execute(_TAGS_HELD)}
        missing = {pk for pk, _ in self._db.execute(_TAGS_WANTED)}
        there = "SELECT 1 FROM memory WHERE pk = ?"
        doubtful = {pk for pk in stray & missing if self._db.execute(there, (pk,)).get}
        self._found.tags = (stray | missing) - doubtful
        self._doubt(MEMORY, doubtful, "with other tags than the table of tags has")

    def _members(self) -> None:
        for pk, key in self._db.execute(_SETS).fetchall():
            members = sorted(name for (name,) in self._db.execute(_MEMBERS, (pk,)))
            if members != sorted(json.loads(key)):
                self._found.members.add(pk)

    # ---- the log ----------------------------------------------------------------------------------

    def _log(self) -> None:
        """Changes that cannot be read any more, and batches whose counts do not fit."""
        for (batch,) in self._db.execute("SELECT DISTINCT batch FROM change ORDER BY batch").fetchall():
            try:
                for _ in changes(self._db, batch):
                    pass
            except (StoreDamaged, apsw.Error):
                self._found.history.append(batch)
        for kind, table in enumerate(TABLES):
            for id_, made, held in self._db.execute(_MADE.format(kind=kind, table=table)).fetchall():
                self._found.wrong.append(f"batch {id_} made {made:,} of kind {table}, and {held:,} are of it")
            unknown = self._db.execute(_UNKNOWN_BATCH.format(table=table)).get
            if unknown:
                self._found.wrong.append(
                    f"{_number(unknown, 'row')} of '{table}' of a batch that is not there"
                )
        self._found.behind = bool(self._db.execute(_BEHIND).get)


def make_twin(db: apsw.Connection, kind: int) -> list[str]:
    """Makes a full-text table as it would be made now, in the temporary database, and word lists of both.

    Its columns.
    """
    execute: Any = db.execute
    table = f"{TABLES[kind]}_fts"
    drop_twin(db, kind)
    arguments = execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).get.partition("USING fts5")[
        2
    ]
    execute(f"CREATE VIRTUAL TABLE temp.{table}_twin USING fts5{arguments}")
    columns = [name for _, name, *_ in execute(f"PRAGMA temp.table_info({table}_twin)")]
    marks = ", ".join("?" * (1 + len(columns)))
    sql = f"INSERT INTO temp.{table}_twin (rowid, {', '.join(columns)}) VALUES ({marks})"  # noqa: S608
    db.executemany(sql, full_text(db, kind))
    for name, schema in ((table, "main"), (f"{table}_twin", "temp")):
        execute(f"CREATE VIRTUAL TABLE temp.{name}_words USING fts5vocab({schema}, {name}, row)")
        execute(f"CREATE VIRTUAL TABLE temp.{name}_places USING fts5vocab({schema}, {name}, instance)")
    return columns


def drop_twin(db: apsw.Connection, kind: int) -> None:
    """Removes what `make_twin` made."""
    table = f"{TABLES[kind]}_fts"
    for name in (
        f"{table}_words",
        f"{table}_places",
        f"{table}_twin_words",
        f"{table}_twin_places",
        f"{table}_twin",
    ):
        db.execute(f"DROP TABLE IF EXISTS temp.{name}")


def _varints(data: bytes) -> list[int]:
    """The numbers that SQLite packed one after the other."""
    numbers, value, length = [], 0, 0
    for byte in data:
        length += 1
        value = (value << 8 | byte) if length == 9 else (value << 7 | byte & 0x7F)
        if byte < 0x80 or length == 9:
            numbers.append(value)
            value = length = 0
    return numbers


def count_odd_mentions(db: apsw.Connection) -> int:
    """How many rows the index of mentions has too many or too few."""
    execute: Any = db.execute
    tables = ("mention", "mention_name")
    try:
        for table in tables:  # temporary tables of these names stand before the real ones
            columns = [name for _, name, *_ in execute(f"PRAGMA main.table_info({table})")]
            key = ", ".join(columns)
            execute(f"CREATE TEMP TABLE {table} ({key}, PRIMARY KEY ({key})) WITHOUT ROWID")
        rebuild(db)
        odd = 0
        for table in tables:
            for one, other in (("main", "temp"), ("temp", "main")):
                sql = f"SELECT * FROM {one}.{table} EXCEPT SELECT * FROM {other}.{table}"  # noqa: S608
                odd += execute(f"SELECT count(*) FROM ({sql})").get  # noqa: S608
        return odd
    finally:
        for table in tables:
            execute(f"DROP TABLE IF EXISTS temp.{table}")


def _number(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
