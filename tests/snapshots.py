"""What a store holds, in two forms that tests compare: row by row, and by public identities."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import apsw

from graphmem.store.connection import connect, load_vectors
from graphmem.store.packed import out_of_step as figures_out_of_step
from graphmem.store.sketches import INDEXES, Sketcher, out_of_step

Rows = dict[str, list[tuple[Any, ...]]]
Content = dict[str, Any]

_VOCABULARIES = ("entity_fts", "memory_fts", "relation_fts")
_KINDS = ("entity", "memory", "relation")


def opened(path: Path | str) -> apsw.Connection:
    """A reading connection with the vector extension loaded."""
    db = connect(path, write=False)
    load_vectors(db)
    return db


def sketches_are_in_step(db: apsw.Connection) -> bool:
    """Whether every piece of an item has its sketch, of its vector, where it belongs, and there are no others."""
    dimension: Any = db.execute("SELECT dimension FROM encoder WHERE current").get
    stored: Any
    if figures_out_of_step(db):
        return False
    for kind, index in enumerate(INDEXES):
        if out_of_step(db, kind) != (0, 0):
            return False
        stored = db.execute(
            f"SELECT s.bits, v.vector FROM {index} AS s JOIN vector AS v ON v.pk = s.vector"
        ).fetchall()
        for bits, vector in stored:
            if Sketcher(db, dimension).of(vector) != bits:
                return False
    return True


def words_of(db: apsw.Connection) -> dict[str, list[tuple[Any, ...]]]:
    """Every word of the full-text tables: (word, row, column, position)."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for table in _VOCABULARIES:
        db.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{table}_v USING fts5vocab(main, {table}, instance)"
        )
        found[table] = sorted(tuple(row) for row in db.execute(f"SELECT * FROM temp.{table}_v"))
    return found


def rows(db: apsw.Connection) -> Rows:
    """Every row of every table, the tables behind full text and vectors included.

    Packed figures, whose numbers are random, are not told; `content` compares them with what they are made from.
    """
    names = [
        str(name)
        for (name,) in db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' "
            "AND name <> 'packed'"
        ).fetchall()
    ]
    found: Rows = {
        name: sorted((tuple(row) for row in db.execute(f'SELECT * FROM "{name}"')), key=repr)
        for name in sorted(names)
    }
    return found | words_of(db)


def changed(before: Rows, after: Rows) -> dict[str, tuple[list[Any], list[Any]]]:
    """Per table, the rows that only one of two dumps has; empty when nothing changed."""
    differing = {}
    for name in before.keys() | after.keys():
        old, new = Counter(before.get(name, [])), Counter(after.get(name, []))
        if old != new:
            differing[name] = (list((old - new).elements()), list((new - old).elements()))
    return differing


def _loaded(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _frozen(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


class _Reading:
    """One reading of a store by public identities; row and batch numbers appear nowhere."""

    def __init__(self, db: apsw.Connection, *, places: bool) -> None:
        self._db: Any = db
        self._places = places
        self._entities = {
            pk: (scope, name, key)
            for pk, scope, name, key in db.execute(
                "SELECT e.pk, s.name, e.name, e.kind_key FROM entity AS e JOIN scope AS s ON s.pk = e.scope"
            )
        }
        self._words: dict[tuple[int, int], list[tuple[Any, ...]]] = {}
        for kind, table in enumerate(_VOCABULARIES):
            for word, row, column, at in words_of(db)[table]:
                self._words.setdefault((kind, row), []).append((column, at, word))

    def content(self) -> Content:
        return {"entities": self._all_entities(), "memories": self._memories(), "relations": self._relations(),
                "origins": self._origins(), "vectors": self._vectors()}  # fmt: skip

    def _common(self, kind: int, pk: int) -> dict[str, Any]:
        claims = self._db.execute(
            "SELECT o.uri, o.format, o.digest, c.line, c.digest, c.taken_at, c.said "
            "FROM contribution AS c JOIN origin AS o ON o.pk = c.origin WHERE c.item = ? AND c.kind = ?",
            (pk, kind),
        ).fetchall()
        if not self._places:
            claims = [claim[4:] for claim in claims]
        ids = self._db.execute("SELECT id FROM id_alias WHERE item = ? AND kind = ?", (pk, kind)).fetchall()
        chunks = self._db.execute(
            "SELECT c.ordinal, c.start, c.stop, v.text_digest, v.vector FROM chunk AS c "
            "JOIN vector AS v ON v.pk = c.vector WHERE c.item = ? AND c.kind = ? ORDER BY c.ordinal",
            (pk, kind),
        ).fetchall()
        return {
            "contributions": sorted({repr(claim) for claim in claims}),
            "id_aliases": sorted(ids),
            "words": sorted(self._words.pop((kind, pk), [])),
            "chunks": chunks,
        }

    def _rows(self, kind: int, drop: tuple[str, ...]) -> list[dict[str, Any]]:
        cursor = self._db.execute(f"SELECT * FROM {_KINDS[kind]} LIMIT 0")
        del cursor
        names = [name for _, name, *_ in self._db.execute(f"PRAGMA table_info({_KINDS[kind]})")]
        found = []
        for values in self._db.execute(f"SELECT * FROM {_KINDS[kind]}").fetchall():
            row = dict(zip(names, values, strict=True))
            pk = row["pk"]
            for column in ("aliases", "tags"):
                if column in row:
                    row[column] = _loaded(row[column])
            row |= self._common(kind, pk)
            row["_pk"] = pk
            for column in ("pk", "batch", *drop):
                del row[column]
            found.append(row)
        return found

    def _scope(self, pk: int) -> str:
        return str(self._db.execute("SELECT name FROM scope WHERE pk = ?", (pk,)).get)

    def _all_entities(self) -> dict[str, Any]:
        made = {}
        for row in self._rows(0, ()):
            pk = row.pop("_pk")
            row["scope"] = self._scope(row["scope"])
            row["names"] = sorted(
                self._db.execute("SELECT key, step, alias FROM name_key WHERE entity = ?", (pk,)).fetchall()
            )
            row["names_looked_for"] = sorted(
                self._db.execute("SELECT head, name FROM mention_name WHERE entity = ?", (pk,)).fetchall()
            )
            row["redirects"] = sorted(
                self._db.execute(
                    "SELECT s.name, r.name, ifnull(r.kind, ''), r.kind_key FROM redirect AS r "
                    "JOIN scope AS s ON s.pk = r.scope WHERE r.entity = ?",
                    (pk,),
                ).fetchall()
            )
            made[_frozen(self._entities[pk])] = row
        return made

    def _memories(self) -> dict[str, Any]:
        made = {}
        for row in self._rows(1, ("key", "access_count", "last_accessed_at")):
            pk = row.pop("_pk")
            scope_set = row.pop("scope_set")
            key = self._db.execute("SELECT key FROM scope_set WHERE pk = ?", (scope_set,)).get
            row["scopes"] = json.loads(key)
            row["members"] = sorted(
                self._scope(one)
                for (one,) in self._db.execute(
                    "SELECT scope FROM scope_member WHERE scope_set = ?", (scope_set,)
                ).fetchall()
            )
            for role, name in enumerate(("about", "mentions")):
                row[name] = sorted(
                    self._entities[entity]
                    for (entity,) in self._db.execute(
                        "SELECT entity FROM memory_link WHERE memory = ? AND role = ?", (pk, role)
                    )
                )
            row["names_in_text"] = sorted(
                self._entities[entity]
                for (entity,) in self._db.execute("SELECT entity FROM mention WHERE memory = ?", (pk,))
            )
            row["tag_rows"] = sorted(self._db.execute("SELECT tag FROM memory_tag WHERE memory = ?", (pk,)))
            made[str(row["id"])] = row
        return made

    def _relations(self) -> dict[str, Any]:
        made = {}
        for row in self._rows(2, ()):
            pk = row.pop("_pk")
            row["scope"] = self._scope(row["scope"])
            row["subject"] = self._entities[row["subject"]]
            row["object"] = self._entities[row["object"]]
            row["stated_by"] = sorted(
                self._db.execute("SELECT memory FROM stated_by WHERE relation = ?", (pk,))
            )
            key = [row["scope"], row["subject"], row["predicate_key"], row["object"], row["valid_at"]]
            made[_frozen(key)] = row
        return made

    def _origins(self) -> list[Any]:
        if not self._places:
            return []
        return sorted(self._db.execute("SELECT uri, format, digest FROM origin").fetchall(), key=repr)

    def _vectors(self) -> list[Any]:
        """The vectors, and what is wrong with the derived index: nothing, or a reason."""
        vectors: list[Any] = sorted(
            self._db.execute(
                "SELECT v.text_digest, e.name, v.role, v.vector FROM vector AS v "
                "JOIN encoder AS e ON e.pk = v.encoder"
            ).fetchall()
        )
        assert sketches_are_in_step(self._db), "the sketches are not what the chunks say"
        return vectors


def content(db: apsw.Connection, *, places: bool = True) -> Content:
    """What a store holds by public identities, without row and batch numbers.

    Without `places`, it does not matter which file and line a record was taken from.
    """
    return _Reading(db, places=places).content()


def differences(left: Content, right: Content) -> list[str]:
    """What two contents differ in, one line for each item and column; empty when they are equal."""
    found = []
    for table in left:
        one, two = left[table], right[table]
        if isinstance(one, list):
            if one != two:
                found.append(f"{table}: {one} / {two}")
            continue
        for key in sorted(one.keys() | two.keys()):
            if key not in one or key not in two:
                found.append(f"{table} {key}: only {'right' if key not in one else 'left'}")
                continue
            found += [
                f"{table} {key} {column}: {one[key][column]!r} / {two[key][column]!r}"
                for column in one[key]
                if one[key][column] != two[key][column]
            ]
    return found


def sound(db: apsw.Connection) -> list[str]:
    """What is wrong with a store as a database; empty when it is sound.

    SQLite's own check, foreign keys, orphans, and full text and vectors without an item or the reverse.
    """
    problems = [str(row) for row in db.execute("PRAGMA integrity_check") if row != ("ok",)]
    problems += [str(row) for row in db.execute("PRAGMA foreign_key_check")]
    checks = {
        "link to nothing": "SELECT * FROM memory_link WHERE memory NOT IN (SELECT pk FROM memory) "
        "OR entity NOT IN (SELECT pk FROM entity)",
        "tag of nothing": "SELECT * FROM memory_tag WHERE memory NOT IN (SELECT pk FROM memory)",
        "name of nothing": "SELECT * FROM name_key WHERE entity NOT IN (SELECT pk FROM entity)",
        "vector without use": "SELECT pk FROM vector WHERE pk NOT IN (SELECT vector FROM chunk)",
    }
    for kind, table in enumerate(_KINDS):
        for name in ("contribution", "chunk", "id_alias", "version"):
            checks[f"{name} of no {table}"] = (
                f"SELECT item FROM {name} WHERE kind = {kind} AND item NOT IN (SELECT pk FROM {table})"
            )
        checks[f"{table} without full text"] = (
            f"SELECT pk FROM {table} WHERE pk NOT IN (SELECT id FROM {table}_fts_docsize)"
        )
        checks[f"full text without {table}"] = (
            f"SELECT id FROM {table}_fts_docsize WHERE id NOT IN (SELECT pk FROM {table})"
        )
        checks[f"{table} of no batch"] = f"SELECT pk FROM {table} WHERE batch NOT IN (SELECT pk FROM batch)"
    for name, query in checks.items():
        found = db.execute(query).fetchall()
        if found:
            problems.append(f"{name}: {found}")
    return problems
