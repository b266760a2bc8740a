"""What making vectors anew asks of the store: the texts of its items, and the change of encoders.

Two encoders live in one store while vectors are made anew. A vector is filed under the digest of its text
and its encoder, so the new ones are simply more rows of `vector`, which nothing points at yet. The pieces
of items (`chunk`) and their sketches stay those of the old encoder, which stays the current one.
`change_over` puts the new pieces and new sketches in their place and drops the old vectors, all in the
caller's transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from graphmem import lexical
from graphmem.errors import EncoderError
from graphmem.records import KINDS
from graphmem.store.sketches import Sketcher
from graphmem.store.vectors import DOCUMENT, StoredEncoder, find_vector

if TYPE_CHECKING:
    import apsw

Span = tuple[int, int]
Piece = tuple[int, int, bytes]
"""Start and end of a piece of a text, in characters, and the digest of the piece."""

_BARE: Final = "NOT EXISTS (SELECT 1 FROM chunk AS c WHERE c.item = i.pk AND c.kind = {kind})"
_PAGES: Final = (
    "SELECT i.pk, i.name, i.kind, i.description FROM entity AS i WHERE {where} ORDER BY i.pk LIMIT :limit",
    "SELECT i.pk, i.content, i.title FROM memory AS i WHERE {where} ORDER BY i.pk LIMIT :limit",
    """SELECT i.pk, i.fact, a.name, i.predicate, b.name FROM relation AS i
    JOIN entity AS a ON a.pk = i.subject JOIN entity AS b ON b.pk = i.object
    WHERE {where} ORDER BY i.pk LIMIT :limit""",
)
_AFTER: Final = "i.pk > :after"
_AMONG: Final = "i.pk IN (SELECT value FROM json_each(:items))"
_ABOUT: Final = """
SELECT l.memory, e.name FROM memory_link AS l JOIN entity AS e ON e.pk = l.entity
WHERE l.role = 0 AND l.memory IN (SELECT value FROM json_each(?)) ORDER BY l.memory, e.name
"""
_COUNT: Final = "SELECT count(*) FROM {table} AS i WHERE {where}"
_PLAN: Final = """
CREATE TEMP TABLE reembed_chunk (
  pk INTEGER PRIMARY KEY, kind INTEGER, item INTEGER, ordinal INTEGER, start INTEGER, stop INTEGER,
  vector INTEGER
)
"""
_SPANS: Final = "CREATE TEMP TABLE reembed_spans (text BLOB PRIMARY KEY, spans TEXT) WITHOUT ROWID"
_PLANNED: Final = """
INSERT INTO reembed_chunk (kind, item, ordinal, start, stop, vector) VALUES (?, ?, ?, ?, ?, ?)
"""


class ItemText(NamedTuple):
    """An item and the text of it that is embedded."""

    kind: int
    pk: int
    text: str


class Texts:
    """The texts of all items, active and archived, that are embedded."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db: Any = db

    def count(self, *, bare: bool) -> int:
        """How many items there are; with `bare`, how many of them have no vector."""
        return sum(
            self._db.execute(
                _COUNT.format(table=table, where=_BARE.format(kind=kind) if bare else "1")
            ).get
            for kind, table in enumerate(KINDS)
        )  # fmt: skip

    def pages(self, size: int, *, bare: bool) -> Iterator[list[ItemText]]:
        """All items, or all bare ones, in pages; what changes meanwhile may be seen in either state."""
        for kind in range(len(KINDS)):
            after = 0
            while page := self._page(kind, _AFTER, bare=bare, after=after, limit=size):
                yield page
                after = page[-1].pk

    def bare_among(self, items: Iterable[ItemText]) -> Iterator[ItemText]:
        """Those of the items that still have no vector, with the texts that they have now."""
        by_kind: dict[int, list[int]] = {}
        for one in items:
            by_kind.setdefault(one.kind, []).append(one.pk)
        for kind, pks in by_kind.items():
            yield from self._page(kind, _AMONG, bare=True, items=json.dumps(pks), limit=-1)

    def _page(self, kind: int, where: str, *, bare: bool, **binds: Any) -> list[ItemText]:
        if bare:
            where = f"{where} AND {_BARE.format(kind=kind)}"
        rows = self._db.execute(_PAGES[kind].format(where=where), binds).fetchall()
        if kind == KINDS.index("entity"):
            return [ItemText(kind, pk, lexical.entity_text(*row)) for pk, *row in rows]
        if kind == KINDS.index("relation"):
            return [ItemText(kind, pk, lexical.relation_text(*row)) for pk, *row in rows]
        about: dict[int, list[str]] = {}
        for pk, name in self._db.execute(_ABOUT, (json.dumps([row[0] for row in rows]),)):
            about.setdefault(pk, []).append(name)
        return [
            ItemText(kind, pk, lexical.memory_text(content, title, sorted(about.get(pk, ()))))
            for pk, content, title in rows
        ]


class Change:
    """The change of a store to another encoder, which may take several runs."""

    def __init__(self, db: apsw.Connection, name: str, revision: str, digest: str, dimension: int) -> None:
        self._db: Any = db
        self._new = (name, revision, digest, dimension)
        for table in ("reembed_spans", "reembed_chunk"):
            self._db.execute(f"DROP TABLE IF EXISTS temp.{table}")
        self._db.execute(_SPANS)
        self._encoder = 0

    def begin(self) -> None:
        """Makes the new encoder known, inside a transaction; vectors of an interrupted run are kept.

        Raises `EncoderError` when it is known with another dimension.
        """
        self._db.execute(
            "INSERT INTO encoder (name, revision, digest, dimension, current) VALUES (?, ?, ?, ?, 0) "
            "ON CONFLICT DO NOTHING",
            self._new,
        )
        self._encoder, dimension = self._db.execute(
            "SELECT pk, dimension FROM encoder WHERE name = ? AND revision = ? AND digest = ?", self._new[:3]
        ).fetchone()
        if dimension != self._new[3]:
            raise EncoderError(
                f"the model '{self._new[0]}' has {self._new[3]} dimensions now, and had {dimension} before",
                "give the changed model another name",
            )

    def find(self, digest: bytes) -> int | None:
        """The new vector of a text digest."""
        return find_vector(self._db, self._encoder, digest)

    def put(self, vectors: Iterable[tuple[bytes, bytes]]) -> None:
        """Stores new vectors by the digest of their text, inside a transaction."""
        self.begin()
        self._db.executemany(
            "INSERT OR IGNORE INTO vector (text_digest, encoder, role, vector) VALUES (?, ?, ?, ?)",
            ((digest, self._encoder, DOCUMENT, vector) for digest, vector in vectors),
        )

    def spans(self, text: bytes) -> list[Span] | None:
        """The pieces of a text, by its digest, where they were kept."""
        kept = self._db.execute("SELECT spans FROM reembed_spans WHERE text = ?", (text,)).get
        return None if kept is None else [(start, stop) for start, stop in json.loads(kept)]

    def keep_spans(self, text: bytes, spans: list[Span]) -> None:
        """Keeps the pieces of a text for this run, since cutting one is slow."""
        self._db.execute("INSERT OR IGNORE INTO reembed_spans VALUES (?, ?)", (text, json.dumps(spans)))

    def start_plan(self) -> None:
        """Starts the list of new pieces, inside the transaction that changes over."""
        self._db.execute("DROP TABLE IF EXISTS temp.reembed_chunk")
        self._db.execute(_PLAN)

    def plan(self, kind: int, item: int, pieces: Iterable[Piece]) -> bool:
        """Adds an item's pieces to the list; False when one of them has no new vector yet."""
        rows = []
        for ordinal, (start, stop, digest) in enumerate(pieces):
            vector = self.find(digest)
            if vector is None:
                return False
            rows.append((kind, item, ordinal, start, stop, vector))
        self._db.executemany(_PLANNED, rows)
        return True

    def change_over(self) -> None:
        """Puts the listed pieces in the place of the old ones, with new sketches and the new encoder."""
        db = self._db
        db.execute("DELETE FROM chunk")
        db.execute("INSERT INTO chunk SELECT * FROM reembed_chunk ORDER BY pk")
        db.execute("DROP TABLE temp.reembed_chunk")
        Sketcher(db, self._new[3]).fill()
        db.execute("UPDATE encoder SET current = (pk = ?)", (self._encoder,))
        drop_unused(db)


def drop_unused(db: apsw.Connection) -> None:
    """Drops vectors that nothing uses and encoders that are not current, inside a transaction."""
    db.execute("DELETE FROM vector WHERE pk NOT IN (SELECT vector FROM chunk)")
    db.execute("DELETE FROM encoder WHERE current = 0 AND pk NOT IN (SELECT encoder FROM vector)")


def has_unused(db: apsw.Connection, current: StoredEncoder) -> bool:
    """Whether there are leftovers of a change to another encoder that was given up."""
    return db.execute("SELECT 1 FROM encoder WHERE pk <> ? LIMIT 1", (current.pk,)).get is not None
