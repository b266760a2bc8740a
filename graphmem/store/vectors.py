"""Vectors in the store: whose they are, which texts have one, which pieces of which items use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from graphmem.errors import EncoderMismatch, StoreError
from graphmem.store.connection import load_vectors
from graphmem.store.sketches import Sketcher, drop

if TYPE_CHECKING:
    import apsw

DOCUMENT: Final = 0


class StoredEncoder(NamedTuple):
    """The encoder that made the store's vectors."""

    pk: int
    name: str
    revision: str
    digest: str
    dimension: int


def current_encoder(db: apsw.Connection) -> StoredEncoder | None:
    """The encoder of the store's vectors, or `None` while it has none."""
    row: Any = db.execute(
        "SELECT pk, name, revision, digest, dimension FROM encoder WHERE current = 1"
    ).fetchone()
    return None if row is None else StoredEncoder(*row)


def need_index(db: apsw.Connection) -> None:
    """Loads the vector extension. Raises `StoreError` where it is not available."""
    if not load_vectors(db):
        raise StoreError(
            "the sqlite-vec extension cannot be loaded here, so vectors cannot be stored or searched",
            "reinstall sqlite-vec, or set GRAPHMEM_EMBEDDINGS=off to work without vectors",
        )


def has_encoder(db: apsw.Connection) -> bool:
    """Whether the store has, or had, an encoder."""
    return db.execute("SELECT 1 FROM encoder LIMIT 1").get is not None


def use_encoder(db: apsw.Connection, name: str, revision: str, digest: str, dimension: int) -> StoredEncoder:
    """The store's encoder, made current when it has none.

    Raises `EncoderMismatch` when the store's vectors are of another encoder.
    """
    held = current_encoder(db)
    if held is None:
        db.execute(
            "INSERT INTO encoder (name, revision, digest, dimension, current) VALUES (?, ?, ?, ?, 1) "
            "ON CONFLICT DO UPDATE SET current = 1",
            (name, revision, digest, dimension),
        )
        held = current_encoder(db)
        if held is None:
            raise StoreError("the encoder could not be written")
    check_encoder(held, name, digest, dimension)
    return held


def check_encoder(held: StoredEncoder, name: str, digest: str, dimension: int) -> None:
    """Raises `EncoderMismatch` unless the store's vectors are of this encoder."""
    if not fits(held, digest, dimension):
        raise EncoderMismatch(
            f"the store's vectors are of {held.name} ({held.digest[:12]}), not of {name} ({digest[:12]})",
            "run 'gmem reembed' to make them anew, or set GRAPHMEM_EMBEDDING_MODEL to the store's model",
        )


def fits(held: StoredEncoder, digest: str, dimension: int) -> bool:
    """Whether an encoder of these weights and this dimension is the one that made the vectors."""
    return (held.digest, held.dimension) == (digest, dimension)


def find_vector(db: apsw.Connection, encoder: int, digest: bytes) -> int | None:
    """The vector of a text digest by an encoder."""
    found: Any = db.execute(
        "SELECT pk FROM vector WHERE text_digest = ? AND encoder = ? AND role = ?",
        (digest, encoder, DOCUMENT),
    ).get
    return None if found is None else int(found)


class VectorWriter:
    """Adds and removes the vectors of items, inside a transaction."""

    def __init__(self, db: apsw.Connection, encoder: StoredEncoder) -> None:
        self._db: Any = db
        self._encoder = encoder
        self._next = 1 + (self._db.execute("SELECT max(pk) FROM chunk").get or 0)
        self._sketches = Sketcher(db, encoder.dimension)

    def find(self, digest: bytes) -> int | None:
        """The vector of a text digest."""
        return find_vector(self._db, self._encoder.pk, digest)

    def put(self, digest: bytes, vector: bytes) -> int:
        """Stores a vector; its number."""
        pk: int = self._db.execute(
            "INSERT INTO vector (text_digest, encoder, role, vector) VALUES (?, ?, ?, ?) RETURNING pk",
            (digest, self._encoder.pk, DOCUMENT, vector),
        ).get
        return pk

    def attach(self, kind: int, item: int, pieces: list[tuple[int, int, int]]) -> None:
        """Gives an item without chunks its pieces: (start, stop, vector)."""
        db = self._db
        for ordinal, (start, stop, vector) in enumerate(pieces):
            db.execute(
                "INSERT INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?)",
                (self._next, kind, item, ordinal, start, stop, vector),
            )
            self._sketches.add(kind, self._next)
            self._next += 1


def detach(db: apsw.Connection, kind: int, item: int) -> None:
    """Removes an item's pieces, and the vectors that nothing else uses."""
    rows: Any = db.execute(
        "SELECT pk, vector FROM chunk WHERE item = ? AND kind = ?", (item, kind)
    ).fetchall()
    for pk, vector in rows:
        db.execute("DELETE FROM chunk WHERE pk = ?", (pk,))
        drop(db, kind, pk)
        db.execute(
            "DELETE FROM vector WHERE pk = ?1 AND NOT EXISTS (SELECT 1 FROM chunk WHERE vector = ?1)",
            (vector,),
        )
