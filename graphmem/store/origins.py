"""What was taken from an origin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from graphmem.records import KINDS

if TYPE_CHECKING:
    import apsw

_FIND: Final = "SELECT pk, uri, format, digest, read_at FROM origin WHERE uri = ?1 AND uri <> ''"
_ENDING: Final = """
SELECT pk, uri, format, digest, read_at FROM origin
WHERE uri <> '' AND substr(uri, -length(?1)) = ?1 ORDER BY uri LIMIT 2
"""
_ITEMS: Final = """
SELECT c.kind, c.line, b.id, e.id, e.name, e.state, m.id, m.content, m.state, r.id,
  x.name || ' ' || r.predicate || ' ' || y.name, r.state
FROM contribution AS c LEFT JOIN batch AS b ON b.pk = c.batch
LEFT JOIN entity AS e ON c.kind = 0 AND e.pk = c.item
LEFT JOIN memory AS m ON c.kind = 1 AND m.pk = c.item
LEFT JOIN relation AS r ON c.kind = 2 AND r.pk = c.item
LEFT JOIN entity AS x ON x.pk = r.subject LEFT JOIN entity AS y ON y.pk = r.object
WHERE c.origin = ? ORDER BY c.line, c.kind, c.item, c.digest LIMIT ? OFFSET ?
"""
_COUNT: Final = "SELECT count(*) FROM contribution WHERE origin = ?"


def find_origin(db: apsw.Connection, uri: str, tail: str) -> dict[str, Any] | None:
    """The origin of a uri, else the only one that ends in `tail`, if that is not empty."""
    row = db.execute(_FIND, (uri,)).fetchone()
    if row is None and tail:
        found = db.execute(_ENDING, (tail,)).fetchall()
        row = found[0] if len(found) == 1 else None
    if row is None:
        return None
    return dict(zip(("pk", "uri", "format", "digest", "read_at"), row, strict=True))


def brought(
    db: apsw.Connection, origin: int, limit: int, offset: int = 0
) -> tuple[list[dict[str, Any]], int]:
    """The records taken from an origin in their order there, each with the item it went to; how many."""
    ask: Any = db.execute
    items = []
    for kind, line, batch, *columns in ask(_ITEMS, (origin, limit, offset)):
        id_, label, state = columns[3 * kind : 3 * kind + 3]
        items.append(
            {"type": KINDS[kind], "id": id_, "label": label, "state": state, "line": line or None,
             "batch": batch}
        )  # fmt: skip
    return items, int(ask(_COUNT, (origin,)).get)
