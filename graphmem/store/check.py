"""Whether a store is sound: SQLite's own checks, then that derived tables agree with what they come from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from graphmem.findings import Finding, finding
from graphmem.names import kind_key, name_keys, predicate_key
from graphmem.records import KINDS
from graphmem.store import Store
from graphmem.store.connection import SCHEMA_VERSION
from graphmem.store.packed import out_of_step as ranges_out_of_step
from graphmem.store.sketches import INDEXES, out_of_step
from graphmem.store.vectors import current_encoder
from graphmem.store.write import TABLES

_SHOWN: Final = 20
"""How many rows of one kind of damage are told one by one."""

_NUMBERS: Final = (
    ("entities", "SELECT count(*) FROM entity"),
    ("memories", "SELECT count(*) FROM memory"),
    ("relations", "SELECT count(*) FROM relation"),
    ("stubs", "SELECT count(*) FROM entity WHERE stub = 1"),
    ("vectors", "SELECT count(*) FROM vector"),
    ("origins", "SELECT count(*) FROM origin WHERE uri <> ''"),
    ("batches", "SELECT count(*) FROM batch"),
)
# Tables that name an item by kind and number, which no foreign key can check.
_POINTERS: Final = ("contribution", "version", "id_alias", "chunk")
_MISSING_ITEM: Final = """
SELECT count(*) FROM {table} AS t
WHERE t.kind = ? AND NOT EXISTS (SELECT 1 FROM {item} AS i WHERE i.pk = t.item)
"""
_ODD_KIND: Final = "SELECT count(*) FROM {table} WHERE kind NOT IN (0, 1, 2)"
_FTS: Final = """
SELECT
  (SELECT count(*) FROM {table} WHERE pk NOT IN (SELECT id FROM {table}_fts_docsize)),
  (SELECT count(*) FROM {table}_fts_docsize WHERE id NOT IN (SELECT pk FROM {table}))
"""
_TAGS: Final = """
SELECT count(*) FROM (
  SELECT value AS tag, m.pk AS memory FROM memory AS m, json_each(m.tags)
  EXCEPT SELECT tag, memory FROM memory_tag)
"""
_STRAY_TAGS: Final = """
SELECT count(*) FROM (
  SELECT tag, memory FROM memory_tag
  EXCEPT SELECT value, m.pk FROM memory AS m, json_each(m.tags))
"""
_JSON: Final = (
    ("entity", "aliases"), ("entity", "properties"), ("memory", "tags"), ("memory", "properties"),
    ("relation", "properties"), ("contribution", "said"), ("version", "before"),
    ("batch", "inputs"), ("batch", "counts"), ("scope_set", "key"),
)  # fmt: skip
_NAMES: Final = "SELECT pk, name, aliases FROM entity ORDER BY pk"
_FORMER: Final = "SELECT entity, name FROM redirect ORDER BY entity"
_KEYS: Final = "SELECT entity, key, step, alias FROM name_key ORDER BY entity"
_SETS: Final = "SELECT pk, key FROM scope_set ORDER BY pk"
_MEMBERS: Final = """
SELECT s.name FROM scope_member AS x JOIN scope AS s ON s.pk = x.scope WHERE x.scope_set = ? ORDER BY s.name
"""
_ODD_VECTORS: Final = """
SELECT count(*) FROM vector AS v JOIN encoder AS e ON e.pk = v.encoder
WHERE length(v.vector) <> 4 * e.dimension
"""
# Those of another encoder wait for the end of a `gmem reembed`.
_UNUSED_VECTORS: Final = """
SELECT count(*) FROM vector AS v JOIN encoder AS e ON e.pk = v.encoder
WHERE e.current = 1 AND NOT EXISTS (SELECT 1 FROM chunk AS c WHERE c.vector = v.pk)
"""
_OUTDATED: Final = """
SELECT count(*) FROM chunk AS c JOIN vector AS v ON v.pk = c.vector JOIN encoder AS e ON e.pk = v.encoder
WHERE e.current = 0
"""
_BARE_ITEMS: Final = """
SELECT count(*) FROM {table} AS i
WHERE NOT EXISTS (SELECT 1 FROM chunk AS c WHERE c.item = i.pk AND c.kind = {kind})
"""


@dataclass(slots=True)
class StoreReport:
    """What a check of a store found: findings, and how much the store holds."""

    path: str
    numbers: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The numbers as JSON."""
        return {"path": self.path, "schema_version": SCHEMA_VERSION, **self.numbers}


def check(store: Store) -> StoreReport:
    """What is wrong with an open store, which is only read, at one instant.

    Raises `StoreDamaged` when the damage is so great that not even the checks can be done.
    """
    report = StoreReport(store.path)
    with store.errors(), store.reading():
        report.findings += _Check(store).findings()
        report.numbers = {name: store.db.execute(sql).get for name, sql in _NUMBERS}
        stubs = report.numbers["stubs"]
        if stubs:
            message = f"{stubs:,} {'entity is a stub' if stubs == 1 else 'entities are stubs'}"
            report.findings.append(finding("store-stubs", message, file=store.path))
    return report


class _Check:
    """One check of one store."""

    def __init__(self, store: Store) -> None:
        self._db: Any = store.db
        self._path = store.path

    def findings(self) -> Iterator[Finding]:
        """Everything that is wrong, in a fixed order; of a file that cannot be read only that."""
        for unreadable in (list(self._damage()), list(self._json())):
            yield from unreadable
            if unreadable:
                return
        yield from self._references()
        yield from self._values()
        yield from self._indexes()
        yield from self._names()
        yield from self._vectors()

    def _found(self, rule: str, message: str) -> Finding:
        return finding(rule, message, file=self._path)

    def _count(self, sql: str, *given: Any) -> int:
        number: int = self._db.execute(sql, given).get
        return number

    # ---- SQLite's own checks -----------------------------------------------------------------------

    def _damage(self) -> Iterator[Finding]:
        """What SQLite says of the file, its full-text tables included."""
        for (said,) in self._db.execute(f"PRAGMA integrity_check({_SHOWN})").fetchall():
            if said != "ok":
                yield self._found("store-damage", said)

    def _references(self) -> Iterator[Finding]:
        missing: dict[tuple[str, str], int] = {}
        for table, _, parent, _ in self._db.execute("PRAGMA foreign_key_check").fetchall():
            missing[table, parent] = missing.get((table, parent), 0) + 1
        for (table, parent), count in sorted(missing.items()):
            yield self._found("store-reference", f"{_rows(count)} of '{table}' without their '{parent}'")
        for table in _POINTERS:
            for kind, item in enumerate(TABLES):
                count = self._count(_MISSING_ITEM.format(table=table, item=item), kind)
                if count:
                    yield self._found("store-reference", f"{_rows(count)} of '{table}' without their {item}")
            odd = self._count(_ODD_KIND.format(table=table))
            if odd:
                yield self._found("store-reference", f"{_rows(odd)} of '{table}' of no kind of item")

    # ---- values ------------------------------------------------------------------------------------

    def _json(self) -> Iterator[Finding]:
        for table, column in _JSON:
            bad = self._count(f"SELECT count(*) FROM {table} WHERE NOT json_valid({column})")  # noqa: S608
            if bad:
                yield self._found("store-value", f"{_rows(bad)} of '{table}' whose '{column}' is not JSON")

    def _values(self) -> Iterator[Finding]:
        kinds = self._db.execute("SELECT DISTINCT kind, kind_key FROM entity").fetchall()
        for kind, key in sorted(kinds, key=repr):
            if kind_key(kind) != key:
                yield self._found("store-value", f"the kind '{kind}' is filed under '{key}'")
        predicates = self._db.execute("SELECT DISTINCT predicate, predicate_key FROM relation").fetchall()
        for predicate, key in sorted(predicates):
            if predicate_key(predicate) != key:
                yield self._found("store-value", f"the predicate '{predicate}' is filed under '{key}'")
        for pk, key in self._db.execute(_SETS).fetchall():
            if [name for (name,) in self._db.execute(_MEMBERS, (pk,))] != sorted(json.loads(key)):
                yield self._found("store-value", f"the set of scopes {key} has other members")

    # ---- what is derived ---------------------------------------------------------------------------

    def _indexes(self) -> Iterator[Finding]:
        for table in TABLES:
            missing, stray = self._db.execute(_FTS.format(table=table)).fetchone()
            yield from self._out_of_step(f"the full text of '{table}'", missing, stray)
        wrong = ranges_out_of_step(self._db)
        if wrong:
            yield self._found(
                "store-index", f"{_rows(wrong)} of 'packed' with other figures than their items have"
            )
        yield from self._out_of_step("the table of tags", self._count(_TAGS), self._count(_STRAY_TAGS))

    def _out_of_step(self, what: str, missing: int, stray: int) -> Iterator[Finding]:
        for count, how in ((missing, "missing"), (stray, "too many")):
            if count:
                yield self._found("store-index", f"{what} has {_rows(count)} {how}")

    def _names(self) -> Iterator[Finding]:
        """Compares the keys under which entities are found with those that their names give."""
        stored = groupby(self._db.cursor().execute(_KEYS), lambda row: row[0])
        entity, keys = next(stored, (None, iter(())))
        former: dict[int, list[str]] = {}
        for pk, name in self._db.cursor().execute(_FORMER):
            former.setdefault(pk, []).append(name)
        wrong = 0
        for pk, name, aliases in self._db.cursor().execute(_NAMES):
            held: set[tuple[str, int, int]] = set()
            if entity == pk:
                held = {(key, step, alias) for _, key, step, alias in keys}
                entity, keys = next(stored, (None, iter(())))
            wanted = {(key, step, 0) for key, step in name_keys(name)}
            for alias in {*json.loads(aliases or "[]"), *former.get(pk, ())} - {name}:
                wanted |= {(key, step, 1) for key, step in name_keys(alias)}
            wrong += held != wanted
        if wrong:
            entities = "1 entity" if wrong == 1 else f"{wrong:,} entities"
            yield self._found("store-index", f"{entities} whose names are not those they are found by")

    # ---- vectors -----------------------------------------------------------------------------------

    def _vectors(self) -> Iterator[Finding]:
        held = current_encoder(self._db)
        if held is None:
            return
        for sql, message in (
            (_ODD_VECTORS, "{} of 'vector' of another length than their encoder makes"),
            (_OUTDATED, "{} of 'chunk' with the vector of an earlier encoder"),
            (_UNUSED_VECTORS, "{} of 'vector' that nothing uses"),
        ):
            count = self._count(sql)
            if count:
                yield self._found("store-vector", message.format(_rows(count)))
        bare = {}
        for kind, table in enumerate(TABLES):
            bare[KINDS[kind]] = self._count(_BARE_ITEMS.format(table=table, kind=kind))
            yield from self._sketches(kind)
        if any(bare.values()):
            told = ", ".join(f"{count:,} of kind {kind}" for kind, count in bare.items() if count)
            yield self._found("store-without-vectors", f"items without a vector: {told}")

    def _sketches(self, kind: int) -> Iterator[Finding]:
        """Compares the sketches of vectors with the pieces of items that they stand for."""
        missing, stray = out_of_step(self._db, kind)
        for count, how in ((missing, "missing"), (stray, "too many")):
            if count:
                message = f"the index '{INDEXES[kind]}' has {_rows(count)} {how}"
                yield self._found("store-vector", message)


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
