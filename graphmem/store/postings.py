"""BM25 from the full-text index's own lists of where a word stands, for all items of a kind at once.

SQLite ranks row by row: for each it looks up the length of the text and where the words stand in it. Here
each word's list is read once, and the scores are one sum of arrays; the lists also tell which of any items
hold a word, and how many do. The formula and its constants are those of FTS5 (k1 = 1.2, b = .75; Robertson
and Zaragoza 2009), and so are the scores. Lists are kept, the last used ones, until a text changes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from graphmem.lexical import Term
from graphmem.store import blocks

if TYPE_CHECKING:
    import apsw
    import numpy as np
    from numpy.typing import NDArray

_K1: Final = 1.2
_B: Final = 0.75
_LEAST_RARITY: Final = 1e-6
MOST_KEPT: Final = 1_000_000
"""So many items in all lists of a kind are kept: 16 MB."""
_ENTRY: Final = 32
"""What a list takes besides its items, in items."""
_TOKENIZER: Final = ("porter", ["unicode61", "remove_diacritics", "2"])
_LAST: Final = chr(0x10FFFF)
_COLUMNS: Final = 4
_PLACES: Final = 1 << 24
"""A place in a column is smaller than this."""

_LISTS: Final = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.{table}_at USING fts5vocab(main, {table}_fts, instance)"
)
# One text of numbers is read much faster than as many rows.
_IN: Final = "SELECT group_concat(doc * 2 + (col IN ({double})), ' ') FROM temp.{table}_at WHERE {terms}"
_SIMPLE: Final = """
SELECT t.value, (
  SELECT group_concat(doc * 2 + (col IN ({double})), ' ') FROM temp.{table}_at WHERE term = t.value
) FROM json_each(?) AS t
"""
_AT: Final = """
SELECT group_concat((doc * {columns} + CASE col {which} END) * {places} + offset, ' ')
FROM temp.{table}_at WHERE {terms}
"""


class Layout(NamedTuple):
    """The full-text table of a kind: its columns, and which of them count double."""

    number: int
    table: str
    columns: tuple[str, ...]
    double: tuple[str, ...]


class _List(NamedTuple):
    """Which items hold a term, ascending, and what it adds to the score of each."""

    items: NDArray[np.int64]
    worth: NDArray[np.float64]


class Postings:
    """What the full-text index of one kind says about the terms of one query."""

    def __init__(self, db: apsw.Connection, layout: Layout, tokens: Mapping[Term, Sequence[str]]) -> None:
        self._db: Any = db
        self._layout = layout
        self._tokens = tokens
        self._lists: dict[Term, _List] = {}
        self._lengths = blocks.lengths(db, layout.number)
        self._read_all()

    def found(self, term: Term) -> int:
        """How many items hold a term."""
        return len(self._lists[term].items)

    def holding(self, term: Term, items: Sequence[int]) -> set[int]:
        """Which of some items hold a term."""
        import numpy as np

        held = self._lists[term].items
        if not len(held) or not items:
            return set()
        given = np.array(items, np.int64)
        at = np.minimum(np.searchsorted(held, given), len(held) - 1)
        return set(given[held[at] == given].tolist())

    def containing(self, items: Sequence[int]) -> set[int]:
        """Which of some items contain any of the terms."""
        return {pk for term in self._lists for pk in self.holding(term, items)}

    def scores(self) -> NDArray[np.float64]:
        """The BM25 of each item by its number; 0 for those that contain none of the terms."""
        import numpy as np

        lists = [self._lists[term] for term in self._tokens]
        highest = max((int(one.items[-1]) for one in lists if len(one.items)), default=0)
        scores = np.zeros(max(len(self._lengths.words), highest + 1))
        for items, worth in lists:
            scores[items] += worth
        return scores

    # ---- lists ------------------------------------------------------------------------------------

    def _read_all(self) -> None:
        """Reads the lists that are not kept; those of single words at once."""
        kept = self._lengths.kept
        lists: dict[Term, _List | None] = {term: kept.get(term) for term in self._tokens}
        if all(one is not None for one in lists.values()):
            self._lists = {term: one for term, one in lists.items() if one is not None}
            return
        self._execute(_LISTS)
        new: dict[str, list[Term]] = {}
        for term, words in self._tokens.items():
            if lists[term] is None and len(words) == 1 and not term.prefix:
                new.setdefault(words[0], []).append(term)
        if new:
            rows = self._execute(_SIMPLE, json.dumps(list(new)), double=self._double)
            for word, text in rows.fetchall():
                self._keep(new[word], self._weighed(_numbers(text)))
        for term, one in lists.items():
            if one is not None:
                self._lists[term] = one
            elif term not in self._lists:
                self._keep([term], self._weighed(self._read(term)))

    def _keep(self, terms: Iterable[Term], one: _List) -> None:
        for term in terms:
            self._lists[term] = one
            self._lengths.kept.put(term, one, len(one.items) + _ENTRY, MOST_KEPT)

    def _weighed(self, found: NDArray[np.int64]) -> _List:
        """What a list as `_IN` has it adds to the scores of its items."""
        import numpy as np

        counts = np.bincount(found >> 1, weights=1.0 + (found & 1))
        items = counts.nonzero()[0]
        words, texts, mean, _ = self._lengths
        if not mean:
            return _List(items, np.zeros(len(items)))
        counts = counts[items]
        # As FTS5 does: a word that more than half of all texts hold counts next to nothing.
        rarity = max(math.log(max(texts - len(items) + 0.5, 0.5) / (len(items) + 0.5)), _LEAST_RARITY)
        long = np.maximum(words[np.minimum(items, len(words) - 1)], 0)
        worth = rarity * ((counts * (_K1 + 1.0)) / (counts + _K1 * (1 - _B + _B * long / mean)))
        return _List(items, worth)

    def _read(self, term: Term) -> NDArray[np.int64]:
        words = self._tokens[term]
        if len(words) > 1:
            return self._phrase(words, prefix=term.prefix)
        if not words:
            return _numbers(None)
        return self._places(_IN, words[0], prefix=term.prefix, double=self._double)

    def _phrase(self, tokens: Sequence[str], *, prefix: bool) -> NDArray[np.int64]:
        """Where words stand next to each other: as `_IN` has it for a single one."""
        import numpy as np

        columns = self._layout.columns
        which = " ".join(f"WHEN '{column}' THEN {number}" for number, column in enumerate(columns))
        parts = {"columns": _COLUMNS, "places": _PLACES, "which": which}
        starts = self._places(_AT, tokens[0], prefix=False, **parts)
        for after, token in enumerate(tokens[1:], start=1):
            at = self._places(_AT, token, prefix=prefix and after == len(tokens) - 1, **parts)
            starts = np.intersect1d(starts, at - after)
        item, column = np.divmod(starts // _PLACES, _COLUMNS)
        double = np.isin(column, [columns.index(name) for name in self._layout.double])
        return item * 2 + double

    def _places(self, statement: str, word: str, *, prefix: bool, **parts: Any) -> NDArray[np.int64]:
        terms, given = ("term >= ? AND term < ?", (word, word + _LAST)) if prefix else ("term = ?", (word,))
        return _numbers(self._execute(statement, *given, terms=terms, **parts).get)

    @property
    def _double(self) -> str:
        return ", ".join(f"'{column}'" for column in self._layout.double)

    def _execute(self, statement: str, *given: Any, **parts: Any) -> Any:
        return self._db.execute(statement.format(table=self._layout.table, **parts), given)


def tokens(db: apsw.Connection, terms: Iterable[Term]) -> dict[Term, list[str]]:
    """The words of each term as they stand in the full-text index."""
    import apsw

    tokenize: Any = db.fts5_tokenizer(*_TOKENIZER)
    found = {}
    for term in terms:
        flags = apsw.FTS5_TOKENIZE_QUERY | (apsw.FTS5_TOKENIZE_PREFIX if term.prefix else 0)
        found[term] = tokenize(
            term.text.encode(), flags, None, include_offsets=False, include_colocated=False
        )
    return found


def _numbers(text: str | None) -> NDArray[np.int64]:
    import numpy as np

    return np.fromstring(text, np.int64, sep=" ") if text else np.zeros(0, np.int64)
