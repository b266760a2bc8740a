"""The index of vectors: a sketch of each, by which the candidates for a query's vector are found.

A sketch has three bits for each dimension: whether the value exceeds a lower bound, zero, an upper bound.
The number of bits in which two sketches differ is nearly in the order of the cosines, and a scan of
sketches reads a tenth of what one of vectors does. Which of the candidates are nearest is then decided by
the vectors themselves. On real texts (38,066 of them, MiniLM) the 400 nearest sketches hold 99.9 % of the
50 nearest vectors, and the 800 nearest all of them. Vectors that are all about equally far from a query,
such as random ones, need more.

A sketch carries its item's scope and the time at which that stops to hold; triggers keep them in step.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, Final

from graphmem.records import KINDS
from graphmem.store.packed import sketched, unpack, unpack_all

if TYPE_CHECKING:
    import apsw

INDEXES: Final = tuple(f"sketch_{kind}" for kind in ("entity", "memory", "relation"))
_FORMER: Final = ("vec_entity", "vec_memory", "vec_relation")
_BOUND: Final = 0.8
"""The bounds, in multiples of the root mean square of the values of a unit vector."""

_HOLDS: Final = """CASE i.state WHEN 'archived' THEN ''
 ELSE ifnull(min(i.invalid_at, i.expired_at), ifnull(i.invalid_at, i.expired_at)) END"""
_UNTIL: Final = ("CASE i.state WHEN 'archived' THEN '' END", _HOLDS, _HOLDS)
_SCOPE: Final = ("scope", "scope_set", "scope")
_BITS: Final = """CAST(vec_quantize_binary(vec_sub({vector}, :high)) || vec_quantize_binary({vector})
 || vec_quantize_binary(vec_sub({vector}, :low)) AS BLOB)"""
_INSERT: Final = """INSERT INTO {index} (scope, chunk, item, ordinal, vector, until, bits)
SELECT i.{scope}, c.pk, c.item, c.ordinal, c.vector, {until}, {bits}
FROM chunk AS c CROSS JOIN vector AS v ON v.pk = c.vector CROSS JOIN {table} AS i ON i.pk = c.item
WHERE c.kind = :kind
"""
_WANTED: Final = """
SELECT i.{scope}, c.pk, c.item, c.ordinal, c.vector, {until}
FROM chunk AS c CROSS JOIN {table} AS i ON i.pk = c.item WHERE c.kind = {kind}
"""
_HELD: Final = "SELECT scope, chunk, item, ordinal, vector, until FROM {index}"


class Sketcher:
    """Makes sketches of vectors of one dimension; the connection has the vector extension."""

    def __init__(self, db: apsw.Connection, dimension: int) -> None:
        self._db: Any = db
        # Bits are packed by eight: what is left over of the dimension is filled up with zeros.
        self._padding = -dimension % 8
        whole = dimension + self._padding
        bound = _BOUND / math.sqrt(dimension)
        self._bounds = {
            "high": struct.pack(f"<{whole}f", *[bound] * whole),
            "low": struct.pack(f"<{whole}f", *[-bound] * whole),
        }

    def _bits(self, vector: str) -> str:
        if self._padding:
            vector = f"CAST({vector} || zeroblob({4 * self._padding}) AS BLOB)"
        return _BITS.format(vector=vector)

    def of(self, vector: bytes) -> bytes:
        """The sketch of a vector."""
        made: bytes = self._db.execute(
            f"SELECT {self._bits(':vector')}", {**self._bounds, "vector": vector}
        ).get
        return made

    def add(self, kind: int, chunk: int) -> None:
        """Files a stored piece of an item of a kind, inside a transaction."""
        self._insert(kind, " AND c.pk = :chunk", chunk=chunk)
        unpack(self._db, sketched(kind), [chunk])

    def fill(self) -> None:
        """Makes all sketches anew, inside a transaction."""
        for kind in range(len(KINDS)):
            self._db.execute(f"DELETE FROM {INDEXES[kind]}")  # noqa: S608
            self._insert(kind, " ORDER BY c.pk")
        unpack_all(self._db, map(sketched, range(len(KINDS))))

    def _insert(self, kind: int, more: str, **binds: Any) -> None:
        sql = _INSERT.format(bits=self._bits("v.vector"), **_named(kind))
        self._db.execute(sql + more, {**self._bounds, **binds, "kind": kind})


def _named(kind: int) -> dict[str, str]:
    return {"index": INDEXES[kind], "table": KINDS[kind], "scope": _SCOPE[kind], "until": _UNTIL[kind]}


def out_of_step(db: apsw.Connection, kind: int) -> tuple[int, int]:
    """How many pieces of a kind have no sketch that fits them, and how many sketches fit no piece."""
    execute: Any = db.execute
    held, wanted = _HELD.format(**_named(kind)), _WANTED.format(kind=kind, **_named(kind))
    missing: int = execute(f"SELECT count(*) FROM ({wanted} EXCEPT {held})").get  # noqa: S608
    stray: int = execute(f"SELECT count(*) FROM ({held} EXCEPT {wanted})").get  # noqa: S608
    return missing, stray


def drop(db: apsw.Connection, kind: int, chunk: int) -> None:
    """Removes the sketch of a piece, inside a transaction."""
    db.execute(f"DELETE FROM {INDEXES[kind]} WHERE chunk = ?", (chunk,))  # noqa: S608
    unpack(db, sketched(kind), [chunk])


def has_former(db: apsw.Connection) -> bool:
    """Whether the store has the index of an earlier layout."""
    return db.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (_FORMER[0],)).get is not None


def replace_former(db: apsw.Connection) -> None:
    """Puts sketches in the place of the index of an earlier layout, inside a transaction.

    The connection has the vector extension.
    """
    for table in _FORMER:
        db.execute(f"DROP TABLE IF EXISTS {table}")
    dimension: Any = db.execute("SELECT dimension FROM encoder WHERE current = 1").get
    if dimension is not None:
        Sketcher(db, dimension).fill()
