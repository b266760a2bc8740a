"""Answering a query: channels ranked by the store, fused by one formula, read as hits.

Order. Each channel's scores are put on one scale, where 0 is the score of what the channel does not find
and 1 its best, and added with the weights of the recipe. The 200 best of each channel are the pool, and
in it every item has its exact score in both channels; what only contains words, further down, is ranked
by those alone. With the recipe `graph` the memories of that order are seeds of a walk over what belongs
together (`graphmem.channel`), and the mass that it brings decides; the flat order breaks ties. No part of
this depends on the page, so pages are disjoint and add up. Ties go by id.

Relevance, 0 to 1, is a second figure that can be compared between queries. It is a logistic function of
the raw cosine and of the share of the query's words that the item contains, each word weighted by how
rare it is. The constants were fitted with the default model; below 0.15 an item is hardly about the query.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from graphmem.channel import DEFAULT, walk
from graphmem.errors import EncoderError, EncoderMismatch
from graphmem.lexical import Term, expression, query_terms
from graphmem.lookup import bindable, look_up
from graphmem.records import ENTITY, MEMORY, RELATION, UNKNOWN_KIND
from graphmem.store.neighbourhood import Neighbourhood
from graphmem.store.search import NO_RANKING, Filters, Kind, Ranked, Ranking, Searcher

if TYPE_CHECKING:
    from graphmem.embed import Availability, EncoderInfo

Recipe: TypeAlias = Literal["hybrid", "lexical", "semantic", "graph"]

RECIPES: Final[dict[str, dict[str, float]]] = {
    "hybrid": {"lexical": 0.6, "semantic": 0.4},
    "lexical": {"lexical": 1.0},
    "semantic": {"semantic": 1.0},
    "graph": {"lexical": 0.6, "semantic": 0.4, "graph": 1.0},
}
"""The channels of each recipe and their weights in the sum."""

POOL: Final = 200
"""How many of the best of each channel are ranked by all channels."""

MIN_SCORE_WINDOW: Final = 1000
"""How far down the order items are judged when a least relevance is asked for."""

HARDLY_RELEVANT: Final = 0.15

FLAT_SHARE: Final = 0.001
"""What the flat order counts beside the walk: enough to order what the walk does not reach."""


class QueryEncoder(Protocol):
    """Turns a query into the vector it is compared by."""

    @property
    def info(self) -> EncoderInfo:
        """Which encoder this is."""
        ...

    def encode(self, texts: Sequence[str], role: Literal["query"]) -> list[bytes]:
        """One unit vector per text: float32, little-endian. Raises `EncoderError`."""
        ...


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked: a text, what may answer it, and how much of the answer is wanted."""

    text: str
    filters: Filters
    limit: int = 10
    offset: int = 0
    recipe: Recipe = "hybrid"
    min_score: float = 0.0
    explain: bool = False


@dataclass(slots=True)
class Answer:
    """What was found, in order.

    `totals` are the numbers of memories, entities and facts that the channels found under the filters:
    those that contain a word of the query, and for meaning the nearest ones (all that have a vector
    with the recipe `semantic`). `truncated` says whether more was found than is shown. `elsewhere` is
    what other scopes hold when nothing was found; `notes` say what was left out and why.
    """

    recipe: Recipe
    hits: list[dict[str, Any]] = field(default_factory=list)
    entities: list[dict[str, Any]] = field(default_factory=list)
    facts: list[dict[str, Any]] = field(default_factory=list)
    totals: dict[str, int] = field(default_factory=lambda: {"hits": 0, "entities": 0, "facts": 0})
    truncated: bool = False
    elsewhere: dict[str, int] | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Whether nothing at all was found."""
        return not any(self.totals.values())

    def as_dict(self) -> dict[str, Any]:
        """The answer as it stands in JSON."""
        return {
            "hits": self.hits,
            "entities": self.entities,
            "facts": self.facts,
            "totals": self.totals,
            "truncated": self.truncated,
            "elsewhere": self.elsewhere,
            "recipe": self.recipe,
            "notes": self.notes,
        }


# ---- pure parts -----------------------------------------------------------------------------------


class Channel(NamedTuple):
    """What one channel found, and how much it counts."""

    name: str
    weight: float
    rows: Sequence[Ranked]


class Fused(NamedTuple):
    """An item with its place in the fused order, and its row in each channel that found it."""

    pk: int
    id: str
    score: float
    found: Mapping[str, Ranked]


def fuse(channels: Iterable[Channel]) -> list[Fused]:
    """The items of all channels by weighted sum of their scores over the best of the channel, then id."""
    sums: dict[int, float] = {}
    found: dict[int, dict[str, Ranked]] = {}
    for channel in channels:
        best = max((row.score for row in channel.rows), default=0.0)
        for row in channel.rows:
            share = max(row.score, 0.0) / best if best > 0 else 0.0
            sums[row.pk] = sums.get(row.pk, 0.0) + channel.weight * share
            found.setdefault(row.pk, {})[channel.name] = row
    fused = [Fused(pk, next(iter(rows.values())).id, sums[pk], rows) for pk, rows in found.items()]
    return sorted(fused, key=lambda one: (-one.score, one.id))


def relevance(cosine: float | None, coverage: float | None) -> float:
    """How relevant an item is, by cosine and share of rare words; what is unknown is judged by the other."""
    if cosine is None and coverage is None:
        return 0.0
    if cosine is None:
        cosine = 0.25 + 0.35 * (coverage or 0.0)
    if coverage is None:
        coverage = min(max((cosine - 0.25) / 0.35, 0.0), 1.0)
    return 1 / (1 + math.exp(5.5 - 8 * cosine - 4 * coverage))


# ---- what a search needs beforehand ----------------------------------------------------------------


class Meaning(NamedTuple):
    """The encoder to search with, or why the search is by words only ("" when that was asked for)."""

    encoder: QueryEncoder | None
    why_not: str = ""


def meaning(searcher: Searcher, recipe: Recipe, load: Callable[[], Availability]) -> Meaning:
    """The encoder for a recipe; `load` is only called when the store has vectors to compare with.

    Raises `EncoderMismatch` when the recipe is `semantic` and the store's vectors are of another encoder,
    and what loading raises; a hybrid search goes on by words instead.
    """
    if "semantic" not in RECIPES[recipe]:
        return Meaning(None)
    with searcher.snapshot():
        held = searcher.encoder()
    if held is None:
        return Meaning(None, "the store has no vectors yet; 'gmem reembed' makes them")
    try:
        found = load()
        if found.encoder is None:
            return Meaning(None, f"{found.reason}{found.hint and f'; {found.hint}'}")
        info = found.encoder.info
        if (info.digest, info.dimension) != (held.digest, held.dimension):
            raise EncoderMismatch(
                f"the store's vectors are of {held.name}, not of {info.name}",
                "run 'gmem reembed', or set GRAPHMEM_EMBEDDING_MODEL to the store's model",
            )
    except EncoderError as error:
        if recipe == "semantic":
            raise
        return Meaning(None, f"{error.message}{error.hint and f'; {error.hint}'}")
    if not searcher.has_vectors:
        return Meaning(None, "the sqlite-vec extension cannot be loaded here")
    return Meaning(found.encoder)


class Named(NamedTuple):
    """The entity that a name means to a reader, and the others that it could mean."""

    id: str
    others: tuple[str, ...] = ()


def find_entity(searcher: Searcher, name: str, kind: str | None = None) -> Named:
    """The visible active entity of an id or a name, as `graphmem.lookup` finds it.

    Of several the most recently updated one, with the others listed. Raises `EntityNotFound` with
    suggestions.
    """
    with searcher.snapshot():
        names = searcher.names()
        by_id = names.by_id(bindable(name)) if kind is None else None
        if by_id is not None and by_id.state == "active":
            return Named(by_id.id)
        answer = look_up(names, name, kind, archived=False)
    others = (one.candidate for one in answer.others)
    told = tuple(f"{one.name} ({one.kind or UNKNOWN_KIND}, {one.scope})" for one in others)
    return Named(answer.found.id, told)


# ---- one search -----------------------------------------------------------------------------------


class _Plan(NamedTuple):
    """What all kinds of item are searched by."""

    query: Query
    recipe: Recipe
    terms: list[Term]
    match: str | None
    vector: bytes | None


class _Judged(NamedTuple):
    """An item with what its relevance was judged by."""

    item: Fused
    relevance: float
    cosine: float | None
    words: list[str]


class _Kind(NamedTuple):
    """Where the items of a kind stand in an answer."""

    kind: Kind
    key: str


_KINDS: Final = (_Kind(MEMORY, "hits"), _Kind(ENTITY, "entities"), _Kind(RELATION, "facts"))


def _kinds(filters: Filters) -> Sequence[_Kind]:
    """The kinds of item that can pass the filters: types and tags are things of memories."""
    return _KINDS[:1] if filters.memory_types or filters.tags else _KINDS


def search(searcher: Searcher, query: Query, encoder: QueryEncoder | None) -> Answer:
    """The answer of a store to a query; changes nothing.

    Without an encoder, or where the store has no vectors, the recipe is `lexical`: say why beforehand.
    """
    terms = query_terms(query.text)
    answer = Answer(query.recipe if encoder is not None else "lexical")
    vector = None
    if encoder is not None and "semantic" in RECIPES[query.recipe] and query.text.strip():
        try:
            vector = encoder.encode([query.text], "query")[0]
        except EncoderError as error:
            if query.recipe == "semantic":
                raise
            answer.recipe = "lexical"
            answer.notes.append(f"searched by words only: {error.message}")
    match = expression(terms)
    if match is None and vector is None:
        answer.notes.append("the query has no word that can be searched for")
    plan = _Plan(query, answer.recipe, terms, match, vector)
    with searcher.snapshot():
        for one in _kinds(query.filters):
            _fill(answer, searcher, plan, one)
        if answer.empty:
            answer.elsewhere = _elsewhere(searcher, plan)
    best = max((hit["relevance"] for hit in (*answer.hits, *answer.entities, *answer.facts)), default=1.0)
    if best < HARDLY_RELEVANT and query.offset == 0:
        answer.notes.append(f"nothing found is clearly about the query (best relevance {best:.2f})")
    return answer


def _fill(answer: Answer, searcher: Searcher, plan: _Plan, one: _Kind) -> None:
    query = plan.query
    until = query.offset + query.limit
    depth = max(until, MIN_SCORE_WINDOW if query.min_score else 0)
    if one.kind == MEMORY and "graph" in RECIPES[query.recipe]:
        fused, total = _walked(searcher, plan, depth)
    else:
        fused, total = _ranked(searcher, plan, one.kind, depth)
    if query.min_score:
        judged = _judge(searcher, plan, one.kind, fused[:MIN_SCORE_WINDOW])
        answer.truncated |= total > MIN_SCORE_WINDOW
        judged = [row for row in judged if row.relevance >= query.min_score]
        total = len(judged)
        judged = judged[query.offset : until]
    else:
        judged = _judge(searcher, plan, one.kind, fused[query.offset : until])
    answer.totals[one.key] = total
    answer.truncated |= total > query.offset + len(judged)
    pks = [row.item.pk for row in judged]
    read = {MEMORY: searcher.memories, ENTITY: searcher.entities, RELATION: searcher.relations}[one.kind]
    items = read(pks)
    shown = [_shown(items[row.item.pk], row, explain=query.explain) for row in judged]
    setattr(answer, one.key, shown)


def _ranked(searcher: Searcher, plan: _Plan, kind: Kind, depth: int) -> tuple[list[Fused], int]:
    """The first `depth` items of the fused order, and how many there are in all."""
    weights = RECIPES[plan.recipe]
    vector = plan.vector if plan.vector is not None and searcher.has_vectors else None
    if "lexical" not in weights:
        if vector is None:
            return [], 0
        rows = searcher.nearest(kind, vector, depth=depth)
        return fuse([Channel("semantic", 1.0, rows)]), searcher.with_vectors(kind)
    near = searcher.nearest(kind, vector, depth=POOL) if vector is not None else []
    words = _lexical(searcher, plan.match, kind, depth=POOL + depth, also=[row.pk for row in near])
    if vector is None:
        return fuse([Channel("lexical", weights["lexical"], words.rows)])[:depth], words.total
    known = {row.pk for row in near}
    further = [row for row in words.rows if row.rank <= POOL and row.pk not in known]
    cosines = searcher.cosines(kind, vector, [row.pk for row in further])
    # Their rank by meaning is unknown, only that it is beyond the pool.
    completed = [row._replace(score=cosines[row.pk], rank=0) for row in further if row.pk in cosines]
    fused = fuse(
        [
            Channel("lexical", weights["lexical"], words.rows),
            Channel("semantic", weights["semantic"], [*near, *completed]),
        ]
    )
    both = len(known.intersection(row.pk for row in words.rows))
    return fused[:depth], words.total + len(near) - both


def _walked(searcher: Searcher, plan: _Plan, depth: int) -> tuple[list[Fused], int]:
    """The flat order of memories, led by those that the walk brings the most mass to."""
    flat, total = _ranked(searcher, plan, MEMORY, max(depth, POOL))
    facts, _ = _ranked(searcher, plan, RELATION, DEFAULT.facts)
    near = Neighbourhood(searcher.db, searcher.filters)
    mass = walk(near, plan.query.text, flat, facts)
    best = max(mass.values(), default=0.0)
    known = {one.pk: one for one in flat}
    ids = searcher.ids(MEMORY, mass.keys())
    ranked = sorted(ids, key=lambda pk: (-mass[pk], ids[pk]))
    led: list[Fused] = []
    for rank, pk in enumerate(ranked, start=1):
        found = Ranked(pk, ids[pk], mass[pk], rank)
        held = known.pop(pk, None)
        score = mass[pk] / best + FLAT_SHARE * (held.score if held else 0.0)
        led.append(Fused(pk, ids[pk], score, {**(held.found if held else {}), "graph": found}))
    led += [one._replace(score=FLAT_SHARE * one.score) for one in known.values()]
    led.sort(key=lambda one: (-one.score, one.id))
    return led[:depth], total + sum(1 for one in led if not one.found.keys() - {"graph"})


def _lexical(
    searcher: Searcher, match: str | None, kind: Kind, *, depth: int, also: Iterable[int]
) -> Ranking:
    return NO_RANKING if match is None else searcher.lexical(kind, match, depth=depth, also=also)


def _judge(searcher: Searcher, plan: _Plan, kind: Kind, items: Sequence[Fused]) -> list[_Judged]:
    """The items with their relevance and the words of the query that they contain."""
    if not items:
        return []
    pks = [item.pk for item in items]
    weight = {term: searcher.rarity(kind, term.expression) for term in plan.terms}
    holders = {term: searcher.matched(kind, term.expression, pks) for term in plan.terms}
    whole = sum(weight.values())
    cosines = {item.pk: item.found["semantic"].score for item in items if "semantic" in item.found}
    if plan.vector is not None and searcher.has_vectors:
        unknown = [pk for pk in pks if pk not in cosines]
        cosines |= searcher.cosines(kind, plan.vector, unknown)
    judged = []
    for item in items:
        held = [term for term in plan.terms if item.pk in holders[term]]
        coverage = sum(weight[term] for term in held) / whole if whole else None
        cosine = cosines.get(item.pk)
        words = [f"{term.text}*" if term.prefix else term.text for term in held]
        judged.append(_Judged(item, relevance(cosine, coverage), cosine, words))
    return judged


def _figure(value: float) -> float:
    """Six significant digits."""
    return float(f"{value:.6g}")


def _shown(item: dict[str, Any], row: _Judged, *, explain: bool) -> dict[str, Any]:
    """The item as a hit: its fields, its two figures, and what each channel said."""
    channels: dict[str, dict[str, Any]] = {
        name: {"rank": found.rank or None, "score": _figure(found.score)}
        for name, found in row.item.found.items()
    }
    if explain:
        if "lexical" in channels:
            channels["lexical"]["words"] = row.words
        if row.cosine is not None:
            channels.setdefault("semantic", {"rank": None, "score": _figure(row.cosine)})
    figures = {"score": _figure(row.item.score), "relevance": round(row.relevance, 4), "channels": channels}
    return item | figures


def _elsewhere(searcher: Searcher, plan: _Plan) -> dict[str, int] | None:
    """How much other scopes hold that could have answered; `None` when they hold nothing."""
    if searcher.filters.scopes is None:
        return None
    match = plan.match if plan.vector is None else None
    if match is None and plan.vector is None:
        return None
    counts = {one.key: 0 for one in _KINDS}
    scopes: set[int] = set()
    for kind, key in _kinds(searcher.filters):
        counts[key], where = searcher.elsewhere(kind, match)
        scopes |= where
    return counts | {"scopes": len(scopes)} if any(counts.values()) else None
