"""What a store holds, in numbers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from graphmem.records import KINDS
from graphmem.store.connection import SCHEMA_VERSION
from graphmem.store.vectors import StoredEncoder, current_encoder

if TYPE_CHECKING:
    import apsw

_COUNTS: Final = "SELECT count(*) FILTER (WHERE state = 'active'), count(*) FROM {table}"
_STUBS: Final = "SELECT count(*) FROM entity WHERE stub = 1 AND state = 'active'"
_WITHOUT: Final = """
SELECT count(*) FROM {table} AS i
WHERE NOT EXISTS (SELECT 1 FROM chunk AS c WHERE c.item = i.pk AND c.kind = {number})
"""
_VECTORS: Final = "SELECT count(*) FROM vector WHERE encoder = ?"
# Vectors that archived items alone use; equal texts share a vector.
_USED: Final = """
SELECT c.vector, c.kind, c.item FROM {table} AS i JOIN chunk AS c ON c.item = i.pk AND c.kind = {number}
WHERE i.state = 'archived'
"""
_ARCHIVED_VECTORS: Final = f"""
WITH used AS MATERIALIZED (
  {" UNION ALL ".join(_USED.format(number=number, table=table) for number, table in enumerate(KINDS))}
)
SELECT count(DISTINCT u.vector) FROM used AS u WHERE NOT EXISTS (
  SELECT 1 FROM chunk AS c WHERE c.vector = u.vector
    AND NOT EXISTS (SELECT 1 FROM used AS a WHERE a.vector = u.vector AND a.kind = c.kind AND a.item = c.item)
)
"""  # noqa: S608
_ORIGINS: Final = "SELECT count(*) FROM origin WHERE uri <> ''"
_SCOPES: Final = """
SELECT s.name, sum(h.memories), sum(h.entities), sum(h.relations) FROM (
  SELECT m.scope AS scope, n.memories AS memories, 0 AS entities, 0 AS relations FROM (
    SELECT scope_set, count(*) AS memories FROM memory WHERE state = 'active' GROUP BY scope_set
  ) AS n JOIN scope_member AS m ON m.scope_set = n.scope_set
  UNION ALL SELECT scope, 0, count(*), 0 FROM entity WHERE state = 'active' GROUP BY scope
  UNION ALL SELECT scope, 0, 0, count(*) FROM relation WHERE state = 'active' GROUP BY scope
) AS h JOIN scope AS s ON s.pk = h.scope GROUP BY s.pk ORDER BY s.name
"""
_LAST: Final = "SELECT id, at, command, inputs FROM batch ORDER BY pk DESC LIMIT 1"


class ScopeCounts(NamedTuple):
    """How many active items a scope has."""

    name: str
    memories: int
    entities: int
    relations: int


class LastBatch(NamedTuple):
    """The newest batch of a store."""

    id: str
    at: str
    command: str
    inputs: list[str]


@dataclass(frozen=True, slots=True)
class Status:
    """What a store holds. Archived items count only where it says so; entities include stubs."""

    memories: int
    entities: int
    relations: int
    archived: int
    stubs: int
    vectors: int
    without_vectors: int
    """Items, archived ones too, that have no vector."""
    scopes: list[ScopeCounts]
    origins: int
    encoder: StoredEncoder | None
    last: LastBatch | None
    schema_version: int = SCHEMA_VERSION


def read_status(db: apsw.Connection) -> Status:
    """The numbers of a store; use it inside a read transaction."""
    ask: Any = db.execute
    active: dict[str, int] = {}
    archived = without = 0
    for number, table in enumerate(KINDS):
        active[table], in_all = ask(_COUNTS.format(table=table)).fetchone()
        archived += in_all - active[table]
        without += ask(_WITHOUT.format(table=table, number=number)).get
    encoder = current_encoder(db)
    vectors = 0 if encoder is None else ask(_VECTORS, (encoder.pk,)).get
    if vectors and archived:
        vectors -= ask(_ARCHIVED_VECTORS).get
    last = ask(_LAST).fetchone()
    return Status(
        active["memory"], active["entity"], active["relation"], archived, ask(_STUBS).get, vectors, without,
        [ScopeCounts(*row) for row in ask(_SCOPES)], ask(_ORIGINS).get, encoder,
        None if last is None else LastBatch(last[0], last[1], last[2], json.loads(last[3])),
    )  # fmt: skip
