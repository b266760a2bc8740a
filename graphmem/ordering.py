"""The order of the items of one kind: channels, their fusion, places and the graph, as the recipe has it.

The flat order of a kind is that of its fused channels. The best of each channel are the pool (100 memories,
25 entities or facts), and in it every item has its exact score in both; what only contains words, further
down, is ranked by those alone. Memories of the recipes `hybrid`, `graph` and `near` are then read in their
places (`graphmem.places`). With `graph` the walk starts from the best of that order (`graphmem.channel`),
with `near` it is changed by the distance from an entity (`graphmem.nearness`). No part of it depends on the
page that is wanted, so that pages are disjoint and add up; only by meaning alone do more candidates, from the
250th item on, sometimes find a better one that was missed. Ties go by id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import Final, Literal, NamedTuple, TypeAlias

from graphmem.channel import SEEDS, arrive, beginnings, by_mass
from graphmem.fusion import Channel, Fused, Fusion, Scored, fuse
from graphmem.lexical import Term
from graphmem.nearness import by_distance
from graphmem.places import LEAD, Places, Sought, behind, best_first
from graphmem.records import MEMORY, RELATION
from graphmem.store.filters import Filters, Kind
from graphmem.store.neighbourhood import Neighbourhood, entity_node
from graphmem.store.places import Surroundings
from graphmem.store.search import NO_RANKING, Ranked, Ranking, Searcher

Recipe: TypeAlias = Literal["hybrid", "lexical", "semantic", "graph", "near"]

RECIPES: Final[dict[str, dict[str, float]]] = {
    "hybrid": {"lexical": 0.6, "semantic": 0.4},
    "lexical": {"lexical": 1.0},
    "semantic": {"semantic": 1.0},
    "graph": {"lexical": 0.6, "semantic": 0.4, "graph": 1.0},
    "near": {"lexical": 0.6, "semantic": 0.4, "near": 1.0},
}
"""The channels of each recipe and their weights in the flat order."""

POOL: Final = 100
"""How many of the best of each channel are ranked by all channels, of memories."""

FEW: Final = 25
"""The same of entities and facts, of which an answer shows few."""

REACHED: Final = 100
"""How many of the memories that the walk reaches take part, with those that have as much as the last."""

_LEAST_STEP: Final = 250
"""By meaning alone at least so many are looked for, and then four times as many, whatever the page."""
READ_OF_WALK: Final = 10
"""How many of the memories that the walk brings most mass to are read in their places."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What all kinds of item are searched by.

    `asked` is the recipe that was asked for, `recipe` the one whose channels can be used. `near` is the row
    number of the entity that distances are measured from.
    """

    text: str
    asked: Recipe
    recipe: Recipe
    fusion: Fusion
    terms: Sequence[Term]
    match: str | None
    vector: bytes | None
    near: int | None = None

    @property
    def in_places(self) -> bool:
        """Whether memories are read in their places: single channels and ranks alone are taken as they are."""
        return self.asked in ("hybrid", "graph", "near") and self.fusion == "sum"


class Order(NamedTuple):
    """At least the wanted items in their order, how many there are in all, and where the graph was entered."""

    items: list[Fused]
    total: int
    entered: Mapping[int, float]


class Ordering:
    """The orders of one query. Within one, what was asked of the store is not asked again."""

    def __init__(self, searcher: Searcher, plan: Plan) -> None:
        self._searcher = searcher
        self._plan = plan
        self._flat: dict[Kind, tuple[list[Fused], int]] = {}
        self._rarities: dict[Kind, dict[Term, float]] = {}
        listed = self._vector is not None and "lexical" in RECIPES[plan.recipe]
        searcher.read_lists(plan.terms if listed else None)
        self._around = Surroundings(searcher)

    @property
    def _vector(self) -> bytes | None:
        return self._plan.vector if self._plan.vector is not None and self._searcher.has_vectors else None

    def rarity(self, kind: Kind) -> Mapping[Term, float]:
        """How telling each term of the query is among items of a kind."""
        if kind not in self._rarities:
            self._rarities[kind] = {term: self._searcher.rarity(kind, term) for term in self._plan.terms}
        return self._rarities[kind]

    def order(self, kind: Kind, depth: int) -> Order:
        """At least the first `depth` items of a kind."""
        flat, total = self._ranked(kind, depth)
        order = Order(flat, 0, {})
        if kind == MEMORY:
            order = self._memories(flat, depth if self._plan.near is None else None)
        items, entered = order.items, order.entered
        if self._plan.near is not None:
            entered = {entity_node(self._plan.near): 1.0}
            items = by_distance(self._neighbourhood(), self._plan.near, kind, items, POOL)
        return Order(items, total + order.total, entered)

    def _memories(self, flat: list[Fused], depth: int | None) -> Order:
        """The first memories, or all, and how many there are beyond those that the flat order knows of."""
        places = self._read(flat) if self._plan.in_places else None
        if self._plan.asked != "graph":
            if places is None:
                return Order(flat, 0, {})
            read = self._best(places)
            rows = [*read, *behind(read, flat)]
            return Order(_told(rows[:depth], flat, read, ()), self._added(rows, flat), {})
        read = [] if places is None else self._best(places)
        items = [*read, *behind(read, flat)] if len(read) < SEEDS else read
        facts, _ = self._ranked(RELATION, FEW if depth is None else depth)
        near = self._neighbourhood()
        entered = beginnings(near, self._plan.text, self._scaled(items), facts)
        mass = arrive(near, entered)
        ids = self._searcher.ids(MEMORY, self._heaviest(mass))
        ranked = sorted(ids, key=lambda pk: (-mass[pk], ids[pk]))
        if places is not None:
            self._gather(places, ranked[:READ_OF_WALK])
            read = self._best(places)
        reached = [Ranked(pk, ids[pk], mass[pk], rank) for rank, pk in enumerate(ranked, start=1)]
        # What the walk reaches counts by its score only where that is known on any page.
        core = {one.pk for one in _core(flat)}
        rest = [row for row in behind(read, flat) if row.pk in core or row.pk not in ids]
        rows = by_mass(self._scaled([*read, *rest]), reached)
        return Order(_told(rows[:depth], flat, read, reached), self._added(rows, flat), entered)

    def _heaviest(self, mass: Mapping[int, float]) -> list[int]:
        """The memories that the walk brought most to; all of them where filters may leave out many."""
        seen = self._searcher.filters
        if seen != Filters(seen.now, seen.scopes) or len(mass) <= REACHED:
            return sorted(mass)
        enough = nlargest(REACHED, mass.values())[-1]
        return sorted(pk for pk, held in mass.items() if held >= enough)

    def _scaled(self, items: list[Scored]) -> list[Scored]:
        """The items with scores that reach 1, as the walk needs them: sums of reciprocal ranks are small."""
        best = items[0].score if items else 0.0
        if self._plan.fusion != "rrf" or best <= 0:
            return items
        return [one._replace(score=one.score / best) for one in items]

    def _neighbourhood(self) -> Neighbourhood:
        return Neighbourhood(self._searcher)

    def _added(self, rows: Iterable[Scored], flat: Iterable[Fused]) -> int:
        """How many items neither contain a word of the query nor are among the nearest, and have a place."""
        known = {one.pk for one in flat}
        added = [row.pk for row in rows if row.pk not in known]
        if self._plan.match is None or not added:
            return len(added)
        return len(added) - len(self._searcher.containing(MEMORY, self._plan.match, added))

    # ---- the flat order -----------------------------------------------------------------------------

    def _ranked(self, kind: Kind, depth: int) -> tuple[list[Fused], int]:
        """At least the first `depth` items of the flat order, and how many there are in all."""
        if kind not in self._flat:
            self._flat[kind] = self._fused(kind, depth)
        return self._flat[kind]

    def _fused(self, kind: Kind, depth: int) -> tuple[list[Fused], int]:
        weights, fusion, vector = RECIPES[self._plan.recipe], self._plan.fusion, self._vector
        if "lexical" not in weights:
            if vector is None:
                return [], 0
            # In steps, since the candidates depend on it a little, and pages must add up.
            rows = self._searcher.nearest(kind, vector, depth=_step(depth))
            return fuse([Channel("semantic", 1.0, rows)], fusion), self._searcher.with_vectors(kind, vector)
        pool = POOL if kind == MEMORY else FEW
        near = self._searcher.nearest(kind, vector, depth=pool) if vector is not None else []
        words = self._lexical(kind, pool + depth, [row.pk for row in near])
        nearest = {row.pk for row in near}
        # Of the nearest the rank by words counts no further than the pool, however much is wanted.
        ranked = [
            row._replace(rank=0) if row.rank > pool and row.pk in nearest else row for row in words.rows
        ]
        lexical = Channel("lexical", weights["lexical"] if vector is not None else 1.0, ranked)
        if vector is None:
            return fuse([lexical], fusion), words.total
        known = {row.pk for row in near}
        further = [row for row in words.rows if 0 < row.rank <= pool and row.pk not in known]
        cosines = self._searcher.cosines(kind, vector, [row.pk for row in further])
        # Their rank by meaning is unknown, only that it is beyond the pool.
        completed = [row._replace(score=cosines[row.pk], rank=0) for row in further if row.pk in cosines]
        semantic = Channel("semantic", weights["semantic"], [*near, *completed])
        both = len(known.intersection(row.pk for row in words.rows))
        return fuse([lexical, semantic], fusion), words.total + len(near) - both

    def _lexical(self, kind: Kind, depth: int, also: Iterable[int]) -> Ranking:
        match = self._plan.match
        if match is None:
            return NO_RANKING
        terms = [term.expression for term in self._plan.terms]
        return self._searcher.lexical(kind, match, depth=depth, also=also, terms=terms)

    # ---- places -------------------------------------------------------------------------------------

    def _read(self, flat: Sequence[Fused]) -> Places:
        """The best of a flat order of memories, read in their places."""
        rarity = self.rarity(MEMORY)
        terms = [Sought(term, rarity[term]) for term in self._plan.terms]
        places = Places(self._around, terms, _core(flat), by_meaning=self._vector is not None)
        self._gather(places, [one.pk for one in flat[:LEAD]])
        return places

    def _gather(self, places: Places, memories: Sequence[int]) -> None:
        places.gather(memories)
        unknown = places.without_cosine()
        if unknown and self._vector is not None:
            places.learn(self._searcher.cosines(MEMORY, self._vector, unknown))

    def _best(self, places: Places) -> list[Scored]:
        """What was read by its score; only what passes the filters is in it."""
        return best_first(places, self._searcher.passing(MEMORY, places.ids()))


def _core(flat: Iterable[Fused]) -> list[Fused]:
    """The part of a flat order of memories that does not depend on how much is wanted."""
    return [
        one for one in flat if "semantic" in one.found or 0 < one.found["lexical"].rank <= POOL
    ]  # fmt: skip


def _step(depth: int) -> int:
    step = _LEAST_STEP
    while step < depth:
        step *= 4
    return step


def _told(
    rows: Sequence[Scored], flat: Iterable[Fused], read: Iterable[Scored], reached: Iterable[Ranked]
) -> list[Fused]:
    """The rows of an order with what each channel said of them."""
    found = {one.pk: one.found for one in flat}
    placed = {row.pk: (row, rank) for rank, row in enumerate(read, start=1)}
    walked = {row.pk: row for row in reached}
    told = []
    for pk, id_, score in rows:
        said = dict(found.get(pk, {}))
        if pk in placed:
            row, rank = placed[pk]
            said["place"] = Ranked(*row, rank)
        if pk in walked:
            said["graph"] = walked[pk]
        told.append(Fused(pk, id_, score, said))
    return told
