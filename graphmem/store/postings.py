"""BM25 from the full-text index's own lists of where a word stands, for all items of a kind at once.

SQLite ranks row by row: for each it looks up the length of the text and where the words stand in it. Here
each word's list is read once, and the scores are one sum of arrays; the lists also tell which of any items
hold a word, and how many do. The formula and its constants are those of FTS5 (k1 = 1.2, b = .75; Robertson
and Zaragoza 2009), and so are the scores.

Where the words are found very often, only the lists of the rarest are read: the score of what has none of
them is hardly worth what it costs. What the other words add is then asked of FTS5 for the items at hand.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from graphmem.lexical import Term, expression
from graphmem.store import blocks
from graphmem.store.near import numbers

if TYPE_CHECKING:
    import apsw
    import numpy as np
    from numpy.typing import NDArray

_K1: Final = 1.2
_B: Final = 0.75
_LEAST_RARITY: Final = 1e-6
MANY: Final = 12_000
"""From so many items that contain a word on, those with a telling one come first."""
TELLING: Final = 600
"""How many items the telling words find together, at least."""
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
_COUNT: Final = "SELECT count(*) FROM {table}_fts WHERE {table}_fts MATCH ?"
_HOLDING: Final = """
SELECT rowid FROM {table}_fts WHERE {table}_fts MATCH ? AND +rowid IN (SELECT value FROM carray(?))
"""
_SCORED: Final = """
SELECT rowid, -bm25({table}_fts, {weights}) FROM {table}_fts
WHERE {table}_fts MATCH ? AND +rowid IN (SELECT value FROM carray(?))
"""


class Layout(NamedTuple):
    """The full-text table of a kind: its columns, and which of them count double."""

    number: int
    table: str
    columns: tuple[str, ...]
    double: tuple[str, ...]


class _List(NamedTuple):
    """Which items hold a term, ascending, and how often, weighted by column."""

    items: NDArray[np.int64]
    counts: NDArray[np.float64]


class Scores(NamedTuple):
    """BM25 by the number of the item, 0 for what was not found or not looked at."""

    by_item: NDArray[np.float64]
    whole: bool
    """Whether all that contain a word have their score."""


class Postings:
    """What the full-text index of one kind says about the terms of one query."""

    def __init__(self, db: apsw.Connection, layout: Layout, tokens: Mapping[Term, Sequence[str]]) -> None:
        self._db: Any = db
        self._layout = layout
        self._tokens = tokens
        self._terms = list(tokens)
        self._lists: dict[Term, _List] = {}
        self._found: dict[Term, int] = {}
        self._execute(_LISTS)

    @cached_property
    def _are_many(self) -> bool:
        return self._lengths.texts > MANY and self.matched > MANY

    @cached_property
    def matched(self) -> int:
        """How many items contain any of the terms, filtered or not."""
        count: int = self._execute(_COUNT, expression(self._terms) or '""').get
        return count

    @cached_property
    def _lengths(self) -> blocks.Lengths:
        return blocks.lengths(self._db, self._layout.number)

    # ---- what holds a term ------------------------------------------------------------------------

    def found(self, term: Term) -> int:
        """How many items hold a term."""
        if term not in self._found:
            if self._are_many:
                self._found[term] = int(self._execute(_COUNT, term.expression).get)
            else:
                self._found[term] = len(self._list(term).items)
        return self._found[term]

    def holding(self, term: Term, items: Sequence[int]) -> set[int]:
        """Which of some items hold a term."""
        import numpy as np

        if not items:
            return set()
        if term not in self._lists and self._are_many:
            return {pk for (pk,) in self._execute(_HOLDING, term.expression, numbers(items))}
        given = np.array(items, np.int64)
        held = self._list(term).items
        if not len(held):
            return set()
        at = np.minimum(np.searchsorted(held, given), len(held) - 1)
        return set(given[held[at] == given].tolist())

    def containing(self, items: Sequence[int]) -> set[int]:
        """Which of some items contain any of the terms."""
        if self._are_many:
            match = expression(self._terms) or '""'
            return {pk for (pk,) in self._execute(_HOLDING, match, numbers(items))}
        return {pk for term in self._terms for pk in self.holding(term, items)}

    # ---- scores -----------------------------------------------------------------------------------

    def scores(self, least: int | None) -> Scores:
        """The scores of all items that contain a word; where these are very many, of at least `least`."""
        telling = self._telling() if self._are_many else None
        if telling is not None and least is not None:
            scores = self._sum(telling)
            items = scores.nonzero()[0]
            if len(items) >= least:
                for term in self._terms:
                    if term not in telling:
                        self._add(scores, term, items.tolist())
                return Scores(scores, whole=False)
        return Scores(self._sum(self._terms), whole=True)

    def _telling(self) -> set[Term] | None:
        """The rarest terms that find enough items; `None` when that takes all of them."""
        counted = sorted((self.found(term), term) for term in self._terms)
        count = 0
        for number, (found, _) in enumerate(counted, start=1):
            count += found
            if count >= TELLING and number < len(counted):
                return {term for _, term in counted[:number]}
        return None

    def _sum(self, terms: Sequence[Term] | set[Term]) -> NDArray[np.float64]:
        import numpy as np

        texts, mean = self._lengths.texts, self._lengths.mean
        words = self._lengths.words
        lists = [(term, self._list(term)) for term in self._terms if term in terms]
        highest = max((int(one.items[-1]) for _, one in lists if len(one.items)), default=0)
        scores = np.zeros(max(len(words), highest + 1))
        if not mean:
            return scores
        for _, (items, counts) in lists:
            found = len(items)
            # As FTS5 does: a word that more than half of all texts hold counts next to nothing.
            rarity = max(math.log(max(texts - found + 0.5, 0.5) / (found + 0.5)), _LEAST_RARITY)
            long = np.maximum(words[np.minimum(items, len(words) - 1)], 0)
            scores[items] += rarity * ((counts * (_K1 + 1.0)) / (counts + _K1 * (1 - _B + _B * long / mean)))
        return scores

    def _add(self, scores: NDArray[np.float64], term: Term, items: Sequence[int]) -> None:
        """Adds what a term is worth in some items, as FTS5 has it: the score of a query is a sum over terms."""
        for pk, score in self._execute(_SCORED, term.expression, numbers(items)):
            scores[pk] += score

    # ---- lists ------------------------------------------------------------------------------------

    def _list(self, term: Term) -> _List:
        if not self._lists and not self._are_many:
            self._read_simple()
        if term not in self._lists:
            self._lists[term] = self._read(term)
        return self._lists[term]

    def _read_simple(self) -> None:
        """Reads the lists of all terms of one word at once."""
        simple = {
            words[0]: term for term, words in self._tokens.items() if len(words) == 1 and not term.prefix
        }
        rows = self._execute(_SIMPLE, json.dumps(list(simple)), double=self._double)
        for word, text in rows.fetchall():
            self._lists[simple[word]] = _list_of(_numbers(text))

    def _read(self, term: Term) -> _List:
        words = self._tokens[term]
        if len(words) > 1:
            return _list_of(self._phrase(words, prefix=term.prefix))
        if not words:
            return _list_of(_numbers(None))
        return _list_of(self._places(_IN, words[0], prefix=term.prefix, double=self._double))

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
        layout = self._layout
        weights = ", ".join("2" if column in layout.double else "1" for column in layout.columns)
        return self._db.execute(statement.format(table=layout.table, weights=weights, **parts), given)


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


def _list_of(found: NDArray[np.int64]) -> _List:
    """The list of what `_IN` found."""
    import numpy as np

    counts = np.bincount(found >> 1, weights=1.0 + (found & 1))
    items = counts.nonzero()[0]
    return _List(items, counts[items].astype(np.float64))
