"""What reading a memory in its place asks of the store: what stands around it, and what it says."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from graphmem.lexical import Term
from graphmem.records import MEMORY
from graphmem.store.search import Searcher

BESIDE_MOST: Final = 16
"""How many memories around one are read at most, as a mean: a source may have many at one position."""
TEXT_MOST: Final = 1000
"""How many characters of a text are read: what comes later changes nothing."""

_BESIDE: Final = """
SELECT DISTINCT i.pk FROM carray(:those) AS c CROSS JOIN memory AS a ON a.pk = c.value
CROSS JOIN memory AS i ON i.source = a.source
 AND i.position BETWEEN a.position - :reach AND a.position + :reach
WHERE {condition} LIMIT :most
"""
_PLACED: Final = """
SELECT i.pk, i.id, i.source, i.position, substr(i.content, 1, :text)
FROM carray(:those) AS c CROSS JOIN memory AS i ON i.pk = c.value
"""


class Placed(NamedTuple):
    """A memory with where it stands and how its text begins."""

    pk: int
    id: str
    source: str | None
    position: int | None
    text: str


class Surroundings:
    """The visible memories around others; filters beyond scope and time do not apply to what is only near."""

    def __init__(self, searcher: Searcher) -> None:
        self._db: Any = searcher.db
        self._asked = searcher
        self._searcher = searcher.loosened(searcher.filters.state)

    def beside(self, memories: Sequence[int], reach: int) -> set[int]:
        """The memories up to `reach` positions before and after some in the same source, and these."""
        condition = self._searcher.condition(MEMORY)
        given = condition.binds | {"reach": reach, "most": BESIDE_MOST * len(memories)}
        rows = self._execute(_BESIDE.format(condition=condition.sql), memories, **given)
        return {*memories, *(pk for (pk,) in rows)}

    def placed(self, memories: Sequence[int]) -> list[Placed]:
        """Memories by row number, with their places."""
        rows = self._execute(_PLACED, memories, text=TEXT_MOST)
        return [Placed(*row) for row in rows]

    def holding(self, term: Term, memories: Sequence[int]) -> set[int]:
        """Which of some memories hold a term."""
        return self._asked.holding(MEMORY, term, memories)

    def _execute(self, sql: str, memories: Sequence[int], **binds: Any) -> list[Any]:
        import apsw

        if not memories:
            return []
        rows: list[Any] = self._db.execute(
            sql, binds | {"those": apsw.carray(array("q", memories))}
        ).fetchall()
        return rows
