"""What recall asks of the store: ranked rows of each channel, and the items that they stand for.

The filters of a search are one SQL condition per kind of item. It stands inside the full-text query and
inside the nearest-neighbour query, so that whatever is filtered out never takes a place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from heapq import nlargest
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from graphmem.records import MEMORY
from graphmem.store import blocks
from graphmem.store.connection import load_vectors
from graphmem.store.filters import AT_ONCE, NO_FILTER, TABLES, Condition, Kind, packed
from graphmem.store.hits import Hits
from graphmem.store.lookup import Names
from graphmem.store.near import Near, best_of, cosines, masked, numbers
from graphmem.store.postings import Layout, Postings, tokens
from graphmem.store.sketches import Sketcher
from graphmem.store.vectors import StoredEncoder, current_encoder, has_encoder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from graphmem.lexical import Term

_MANY: Final = 8_000
"""From so many items that contain a word on, those with a telling one come first."""
_TELLING: Final = 600
"""How many items the telling words find together, at least."""
_SAMPLE: Final = 1000
_SLACK: Final = 16


_Row: TypeAlias = tuple[int, str, float]
"""An item's number, id and score."""


class Ranked(NamedTuple):
    """One item in the order of one channel; ranks count from 1."""

    pk: int
    id: str
    score: float
    rank: int


class Ranking(NamedTuple):
    """The best rows of one channel, and how many it has in all."""

    rows: list[Ranked]
    total: int


NO_RANKING: Final = Ranking([], 0)


# ---- statements; {table} is one of the three kinds, {condition} of its filters ---------------------

_IDS: Final = """
SELECT i.pk, i.id FROM carray(:those) AS c CROSS JOIN {table} AS i ON i.pk = c.value WHERE {condition}
"""
# The full-text table is the outer loop and gives its rows by rank: what the filters leave out costs a
# look-up, and the loop ends when there are enough.
_BEST: Final = """
SELECT i.pk, i.id, -f.rank FROM {table}_fts AS f CROSS JOIN {table} AS i ON i.pk = f.rowid
WHERE {table}_fts MATCH :match AND f.rank MATCH 'bm25({weights})' AND {condition} ORDER BY f.rank LIMIT :most
"""
# Scores are by the whole expression, but only of the rows that a part of it finds.
_BEST_OF_SOME: Final = """
SELECT i.pk, i.id, -bm25({table}_fts, {weights}) FROM {table}_fts AS f CROSS JOIN {table} AS i ON i.pk = f.rowid
WHERE {table}_fts MATCH :match AND +f.rowid IN (SELECT rowid FROM {table}_fts WHERE {table}_fts MATCH :some)
  AND {condition}
"""
_MATCHING_ROWS: Final = "SELECT count(*) FROM {table}_fts WHERE {table}_fts MATCH :match"
_TOTAL: Final = """
SELECT count(*) FROM {table}_fts AS f CROSS JOIN {table} AS i ON i.pk = f.rowid
WHERE {table}_fts MATCH :match AND {condition}
"""
_MATCHING_OF: Final = """
SELECT count(*) FROM {table}_fts
WHERE {table}_fts MATCH :match AND +rowid IN (SELECT value FROM json_each(:items))
"""
# The sign keeps full text from being started anew, with its statistics, for each of the rows.
_ALSO: Final = """
SELECT i.pk, i.id, -bm25({table}_fts, {weights}) FROM {table}_fts AS f CROSS JOIN {table} AS i ON i.pk = f.rowid
WHERE {table}_fts MATCH :match AND +f.rowid IN (SELECT value FROM json_each(:also)) AND {condition}
"""
_AMONG: Final = """
SELECT i.pk FROM carray(:those) AS c CROSS JOIN {table} AS i ON i.pk = c.value WHERE {condition}
"""
_NAMED: Final = """
SELECT i.pk, i.id FROM carray(:those) AS c CROSS JOIN {table} AS i ON i.pk = c.value
"""
_WITH_VECTORS: Final = "SELECT count(*) FROM sketch_{table} AS s {sketched} AND s.ordinal = 0"
_VECTORS: Final = """
SELECT c.item, v.vector FROM carray(:those) AS t CROSS JOIN chunk AS c ON c.item = t.value AND c.kind = {number}
CROSS JOIN vector AS v ON v.pk = c.vector
"""
_COSINES: Final = """
SELECT c.item, max(1 - vec_distance_cosine(v.vector, :vector))
FROM chunk AS c JOIN vector AS v ON v.pk = c.vector
WHERE c.kind = {number} AND c.item IN (SELECT value FROM json_each(:items)) GROUP BY c.item
"""
# The full-text index is read through once; asked for single rows it would be started anew for each.
_HOLDING: Final = """
SELECT rowid FROM {table}_fts
WHERE {table}_fts MATCH :match AND +rowid IN (SELECT value FROM carray(:those))
"""
_FREQUENCY: Final = """
SELECT count(*), max(rowid) FROM (SELECT rowid FROM {table}_fts WHERE {table}_fts MATCH :match LIMIT :sample)
"""
_ROWS: Final = "SELECT ifnull(max(pk), 0) FROM {table}"
_COUNT: Final = "SELECT count(*) FROM {table} AS i WHERE {condition}"
_MATCHING: Final = "i.pk IN (SELECT rowid FROM {table}_fts WHERE {table}_fts MATCH :match)"
_SCOPES_OF_MEMORIES: Final = """
SELECT DISTINCT scope FROM scope_member
WHERE scope_set IN (SELECT DISTINCT scope_set FROM memory AS i WHERE {condition})
"""
_SCOPES_OF_OTHERS: Final = "SELECT DISTINCT scope FROM {table} AS i WHERE {condition}"


class Searcher(Hits):
    """The questions of one search, asked on one connection."""

    def _forget(self) -> None:
        super()._forget()
        self._frequencies: dict[tuple[str, str], int] = {}
        self._row_counts: dict[str, int] = {}
        self._terms: Sequence[Term] | None = None
        self._tokens: dict[Term, list[str]] = {}
        self._postings: dict[str, Postings] = {}
        self._sketches: dict[bytes, bytes] = {}
        self._known_ids: dict[str, dict[int, str]] = {}
        self.__dict__.pop("has_vectors", None)

    def read_lists(self, terms: Sequence[Term] | None) -> None:
        """From now on takes what it is asked about some terms from their whole lists, where there is a NumPy.

        That is faster than SQLite's own ranking, but not worth loading NumPy for. `None` takes it back.
        """
        self._terms = terms if terms is not None and blocks.available() else None
        self._tokens = tokens(self.db, self._terms or ())
        self._postings = {}

    def lists(self, kind: Kind) -> Postings | None:
        """The lists of the terms among items of a kind, filtered or not; `None` where they are not read."""
        if self._terms is None:
            return None
        if kind not in self._postings:
            table = TABLES[kind]
            layout = Layout(table.number, table.table, table.columns, table.double)
            self._postings[kind] = Postings(self.db, layout, self._tokens)
        return self._postings[kind]

    # ---- channels ---------------------------------------------------------------------------------

    def lexical(
        self, kind: Kind, match: str, *, depth: int, also: Iterable[int] = (), terms: Sequence[str] = ()
    ) -> Ranking:
        """The best `depth` items by BM25, and whichever of `also` contain a word too. Higher is better.

        Of what is not among the best the rank is not known: it is 0. `terms` are the expressions of which
        `match` finds any. Where that finds very many items, those come first that contain one of the rarest
        terms: the score of the others is hardly worth what it costs.
        """
        lists = self.lists(kind)
        if lists is not None:
            return self._by_lists(kind, lists, depth, also)
        matched: int = self.ask(_MATCHING_ROWS, kind, NO_FILTER, match=match).get
        telling = self._telling(kind, terms) if matched > _MANY else None
        if telling is not None:
            rows = self.ask(_BEST_OF_SOME, kind, match=match, some=telling).fetchall()
            rows.sort(key=_best_first)
            if len(rows) >= depth:
                total = self._total(kind, match, matched)
                wanted = set(also).difference(row[0] for row in rows[:depth])
                further = self._scored(kind, match, wanted)
                return _ranking(rows[:depth], further, total)
        if matched <= max(depth, AT_ONCE):
            rows = self._best_rows(kind, match, matched)
            total, wanted = len(rows), set(also)
            further = [row for row in rows[depth:] if row[0] in wanted]
        else:
            rows = self._best_rows(kind, match, depth)
            total = self._total(kind, match, matched)
            wanted = set(also).difference(row[0] for row in rows[:depth])
            further = self._scored(kind, match, wanted)
        return _ranking(rows[:depth], further, total)

    def _by_lists(self, kind: Kind, lists: Postings, depth: int, also: Iterable[int]) -> Ranking:
        """The same as `lexical`, from the lists of the terms."""
        import numpy as np

        scores = lists.scores()
        passing = self._passing(kind, scores.nonzero()[0])
        figures = scores[passing]
        first = passing
        if len(passing) > depth:
            first = passing[figures >= np.partition(figures, -depth)[-depth]]
        best = self._named(kind, first.tolist(), scores)
        wanted = set(also).difference(row[0] for row in best[:depth])
        given = np.fromiter(wanted, np.int64, len(wanted))
        further = self._named(kind, given[np.isin(given, passing)].tolist(), scores)
        return _ranking(best[:depth], further, len(passing))

    def _passing(self, kind: Kind, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of some items that pass the filters."""
        import numpy as np

        hidden = self.hidden(kind)
        if hidden is not None:
            return items[~np.isin(items, list(hidden))] if hidden else items
        mask = self.mask(kind)
        if mask is not None:
            return items[masked(mask, items)]
        rows = self.ask(_AMONG, kind, those=numbers(items.tolist()))
        return np.array([pk for (pk,) in rows], np.int64)

    def _named(self, kind: Kind, items: Sequence[int], scores: NDArray[np.float64]) -> list[_Row]:
        """Some items with their ids and scores, the best first."""
        named = self._ids_of(kind, items)
        return sorted(((pk, id_, float(scores[pk])) for pk, id_ in named), key=_best_first)

    def _ids_of(self, kind: Kind, items: Iterable[int]) -> list[tuple[int, str]]:
        """Those of some items that there are, with their ids, whether they pass the filters or not."""
        known = self._known_ids.setdefault(kind, {})
        wanted = list(items)
        new = [pk for pk in wanted if pk not in known]
        if new:
            known.update(self.ask(_NAMED, kind, NO_FILTER, those=numbers(new)))
        return [(pk, known[pk]) for pk in wanted if pk in known]

    def _telling(self, kind: Kind, terms: Sequence[str]) -> str | None:
        """The expression of the rarest terms that find enough items; `None` when that takes all of them."""
        counted = sorted((self._frequency(kind, term), term) for term in terms)
        found = 0
        for number, (count, _) in enumerate(counted, start=1):
            found += count
            if found >= _TELLING and number < len(counted):
                return " OR ".join(term for _, term in counted[:number])
        return None

    def _total(self, kind: Kind, match: str, matched: int) -> int:
        """How many of the items that contain a word pass the filters."""
        hidden = self.hidden(kind)
        if hidden is None:
            count: int = self.ask(_TOTAL, kind, match=match).get
            return count
        left_out: int = self.ask(_MATCHING_OF, kind, match=match, items=packed(hidden)).get if hidden else 0
        return matched - left_out

    def _scored(self, kind: Kind, match: str, items: set[int]) -> list[_Row]:
        """Those of some items that contain a word, the best first."""
        if not items:
            return []
        rows: list[_Row] = self.ask(_ALSO, kind, match=match, also=packed(sorted(items))).fetchall()
        return sorted(rows, key=_best_first)

    def _best_rows(self, kind: Kind, match: str, depth: int) -> list[_Row]:
        """The best rows, more than `depth` if there are more, and all that are as good as the last of these."""
        most = depth + _SLACK
        while True:
            rows: list[_Row] = self.ask(_BEST, kind, match=match, most=most).fetchall()
            if len(rows) < most or rows[-1][2] < rows[depth - 1][2]:
                return sorted(rows, key=_best_first)
            most *= 2

    def nearest(self, kind: Kind, vector: bytes, *, depth: int) -> list[Ranked]:
        """The `depth` items nearest by cosine of their best piece of text.

        Of many pieces only those with the nearest sketches are compared (`graphmem.store.sketches`).
        """
        if depth <= 0:
            return []
        scores = self._near(kind).cosines(vector, self._sketch(vector), depth)
        if not scores:
            return []
        least = nlargest(depth, scores.values())[-1]
        best = {pk: score for pk, score in scores.items() if score >= least}
        rows = sorted(((pk, id_, best[pk]) for pk, id_ in self._ids_of(kind, best)), key=_best_first)
        return [Ranked(*row, rank) for rank, row in enumerate(rows[:depth], start=1)]

    def with_vectors(self, kind: Kind, vector: bytes) -> int:
        """How many items have a vector, of an encoder with such vectors."""
        if blocks.available():
            counted = self._near(kind).count(self._sketch(vector))
            if counted is not None:
                return counted
        return int(self.ask(_WITH_VECTORS, kind).get)

    def _near(self, kind: Kind) -> Near:
        hidden = self.hidden(kind)
        mask = self.mask(kind) if hidden is None else None
        return Near(self.db, TABLES[kind], self.condition(kind), hidden, mask)

    def _sketch(self, vector: bytes) -> bytes:
        if vector not in self._sketches:
            self._sketches[vector] = Sketcher(self.db, len(vector) // 4).of(vector)
        return self._sketches[vector]

    def ids(self, kind: Kind, items: Iterable[int]) -> dict[int, str]:
        """The ids of those items that pass the filters."""
        passes = self.passes(kind)
        if passes is None:
            return dict(self.ask(_IDS, kind, those=numbers(items)))
        return dict(self._ids_of(kind, [pk for pk in items if passes(pk)]))

    def passing(self, kind: Kind, ids: Mapping[int, str]) -> dict[int, str]:
        """Those of some items, with their ids, that pass the filters."""
        passes = self.passes(kind)
        if passes is None:
            return self.ids(kind, ids)
        return {pk: id_ for pk, id_ in ids.items() if passes(pk)}

    def passes(self, kind: Kind) -> Callable[[int], object] | None:
        """What tells of an item that there is whether it passes the filters; `None` where that takes a query."""
        hidden = self.hidden(kind)
        if hidden is not None:
            return lambda pk: pk not in hidden
        mask = self.mask(kind)
        if mask is None:
            return None
        size = len(mask)
        return lambda pk: pk < size and mask[pk]

    def cosines(self, kind: Kind, vector: bytes, items: Iterable[int]) -> dict[int, float]:
        """The cosine of the best piece of text of each of the items that have vectors."""
        if not blocks.available():
            return dict(self.ask(_COSINES, kind, NO_FILTER, vector=vector, items=packed(items)))
        wanted = list(items)
        if not wanted:
            return {}
        near = Near(self.db, TABLES[kind], NO_FILTER, (), None)
        kept = near.cosines_of(vector, self._sketch(vector), wanted)
        if kept is not None:
            return kept
        rows = self.ask(_VECTORS, kind, NO_FILTER, those=numbers(wanted)).fetchall()
        if not rows:
            return {}
        found = cosines([held for _, held in rows], vector)
        return best_of(zip((item for item, _ in rows), found, strict=True))

    def holding(self, kind: Kind, term: Term, items: Sequence[int]) -> set[int]:
        """Which of some items hold a term."""
        lists = self.lists(kind)
        if lists is not None:
            return lists.holding(term, items)
        if not items:
            return set()
        return {
            pk for (pk,) in self.ask(_HOLDING, kind, NO_FILTER, match=term.expression, those=numbers(items))
        }

    def containing(self, kind: Kind, match: str, items: Sequence[int]) -> set[int]:
        """Which of some items the expression of all terms finds."""
        lists = self.lists(kind)
        if lists is not None:
            return lists.containing(items)
        return {pk for (pk,) in self.ask(_HOLDING, kind, NO_FILTER, match=match, those=numbers(items))}

    def rarity(self, kind: Kind, term: Term) -> float:
        """How telling a term is: the logarithm of all rows over those it finds.

        Store-wide, and where no lists are read, from at most a thousand rows: beyond those the rate so far
        is taken for the rest.
        """
        lists = self.lists(kind)
        found = lists.found(term) if lists is not None else self._frequency(kind, term.expression)
        return math.log(1 + max(self._rows(kind), found, 1) / (found + 0.5))

    def _frequency(self, kind: Kind, match: str) -> int:
        """How many rows an expression finds, about."""
        if (kind, match) not in self._frequencies:
            found, last = self.ask(_FREQUENCY, kind, NO_FILTER, match=match, sample=_SAMPLE).fetchone()
            if found == _SAMPLE:
                found = max(found, round(found * max(self._rows(kind), found) / max(last, 1)))
            self._frequencies[kind, match] = found
        return self._frequencies[kind, match]

    def _rows(self, kind: Kind) -> int:
        if kind not in self._row_counts:
            self._row_counts[kind] = int(self.ask(_ROWS, kind, NO_FILTER).get)
        return self._row_counts[kind]

    # ---- vectors ----------------------------------------------------------------------------------

    def encoder(self) -> StoredEncoder | None:
        """The encoder of the store's vectors; `None` while it has none."""
        return current_encoder(self._db)

    @cached_property
    def has_vectors(self) -> bool:
        """Whether vectors can be searched on this connection; loads what that takes."""
        return has_encoder(self._db) and load_vectors(self._db)

    # ---- names ------------------------------------------------------------------------------------

    def names(self) -> Names:
        """The names of the entities in the visible scopes."""
        return Names(self._db, self.filters.scopes)

    # ---- elsewhere --------------------------------------------------------------------------------

    def elsewhere(self, kind: Kind, match: str | None) -> tuple[int, set[int]]:
        """How many items other scopes hold that the other filters leave, and which scopes those are.

        With `match`, only those that it finds. Numbers only: nothing of another scope is told.
        """
        condition = self.compile(kind, elsewhere=True)
        if match is not None:
            condition = Condition(
                f"{condition.sql} AND {_MATCHING.format(table=TABLES[kind].table)}",
                condition.binds | {"match": match},
            )
        count = self.ask(_COUNT, kind, condition).get
        where = _SCOPES_OF_MEMORIES if kind == MEMORY else _SCOPES_OF_OTHERS
        scopes = {pk for (pk,) in self.ask(where, kind, condition)}
        return count, scopes - set(self.scopes or ())


def _ranking(best: Sequence[_Row], further: Sequence[_Row], total: int) -> Ranking:
    """The best rows with their ranks, and further ones whose rank is not known."""
    ranked = [Ranked(*row, rank) for rank, row in enumerate(best, start=1)]
    return Ranking(ranked + [Ranked(*row, 0) for row in further], total)


def _best_first(row: _Row) -> tuple[float, str]:
    return (-row[2], row[1])
