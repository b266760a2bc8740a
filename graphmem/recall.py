"""Answering a query: channels ranked by the store, fused by one formula, read as hits.

Order (`graphmem.ordering`). Each channel's scores are put on one scale, where 0 is the score of what the
channel does not find and 1 its best, and added with the weights of the recipe. The best memories are then
read in their places, and with the recipe `graph` followed to what belongs to them. No part of this depends
on the page, so pages are disjoint and add up. Ties go by id.

Relevance, 0 to 1, is a second figure that can be compared between queries (`graphmem.relevance`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

from graphmem.errors import EncoderError, EncoderMismatch, UsageError
from graphmem.fusion import Fused, Fusion
from graphmem.lexical import Term, expression, query_terms
from graphmem.lookup import bindable, look_up
from graphmem.ordering import RECIPES as RECIPES
from graphmem.ordering import Ordering, Plan
from graphmem.ordering import Recipe as Recipe
from graphmem.records import ENTITY, MEMORY, RELATION, UNKNOWN_KIND
from graphmem.relevance import HARDLY_RELEVANT as HARDLY_RELEVANT
from graphmem.relevance import VERDICT_DEPTH, relevance
from graphmem.store.filters import Filters, Kind
from graphmem.store.neighbourhood import Neighbourhood
from graphmem.store.search import Searcher
from graphmem.trails import ways_to

if TYPE_CHECKING:
    from graphmem.embed import Availability, EncoderInfo

DEFAULT_RECIPE: Final[Recipe] = "graph"

MIN_SCORE_WINDOW: Final = 1000
"""How far down the order items are judged when a least relevance is asked for."""


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
    """What is asked: a text, what may answer it, and how much of the answer is wanted.

    `near` is an id or a name of the entity that the recipe `near` measures distances from; it belongs to
    that recipe only. `fusion` is how the channels of a recipe become one order (`graphmem.fusion`).
    """

    text: str
    filters: Filters
    limit: int = 10
    offset: int = 0
    recipe: Recipe = DEFAULT_RECIPE
    min_score: float = 0.0
    explain: bool = False
    near: str | None = None
    fusion: Fusion = "sum"


@dataclass(slots=True)
class Answer:
    """What was found, in order.

    `totals` are the numbers of memories, entities and facts that the channels found under the filters:
    those that contain a word of the query, and for meaning the nearest ones (all that have a vector
    with the recipe `semantic`). `truncated` says whether more was found than is shown. `elsewhere` is
    what other scopes hold when nothing relevant was found; `notes` say what was left out and why.
    `best_relevance` is that of the best among the first ten of each kind, on whatever page. `budget` says
    what was done to fit the answer into a number of tokens (`graphmem.budget`).
    """

    recipe: Recipe
    hits: list[dict[str, Any]] = field(default_factory=list)
    entities: list[dict[str, Any]] = field(default_factory=list)
    facts: list[dict[str, Any]] = field(default_factory=list)
    totals: dict[str, int] = field(default_factory=lambda: {"hits": 0, "entities": 0, "facts": 0})
    truncated: bool = False
    best_relevance: float = 0.0
    elsewhere: dict[str, int] | None = None
    notes: list[str] = field(default_factory=list)
    budget: dict[str, Any] | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing at all was found."""
        return not any(self.totals.values())

    @property
    def relevant(self) -> bool:
        """Whether anything found is about the query, as far as relevance can tell."""
        return self.best_relevance >= HARDLY_RELEVANT

    def as_dict(self) -> dict[str, Any]:
        """The answer as it stands in JSON."""
        return {
            "hits": self.hits,
            "entities": self.entities,
            "facts": self.facts,
            "totals": self.totals,
            "truncated": self.truncated,
            "relevant": self.relevant,
            "best_relevance": self.best_relevance,
            "elsewhere": self.elsewhere,
            "recipe": self.recipe,
            "notes": self.notes,
            "budget": self.budget,
        }


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


class _Judged(NamedTuple):
    """An item with what its relevance was judged by."""

    item: Fused
    relevance: float
    cosine: float | None
    coverage: float | None
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

    Without an encoder, or where the store has no vectors, meaning takes no part: say why beforehand. Raises
    `UsageError` when an entity to be near to is missing or not asked for, and `EntityNotFound`.
    """
    if (query.near is None) is (query.recipe == "near"):
        raise UsageError("the recipe 'near' and an entity to be near to go together", "give both or neither")
    terms = query_terms(query.text)
    by_words: Recipe = query.recipe if query.recipe in ("graph", "near") else "lexical"
    answer = Answer(query.recipe if encoder is not None else by_words)
    vector = None
    # What has no word has no meaning to compare either.
    if encoder is not None and terms and "semantic" in RECIPES[query.recipe]:
        try:
            vector = encoder.encode([query.text], "query")[0]
        except EncoderError as error:
            if query.recipe == "semantic":
                raise
            answer.recipe = by_words
            answer.notes.append(f"searched by words only: {error.message}")
    match = expression(terms)
    if match is None:
        answer.notes.append("the query has no word that can be searched for")
    with searcher.snapshot():
        if vector is not None and encoder is not None and not _fits(searcher, encoder):
            other = "the store's vectors were made anew by another model meanwhile"
            if query.recipe == "semantic":
                raise EncoderMismatch(other, "ask again")
            vector, answer.recipe = None, by_words
            answer.notes.append(f"searched by words only: {other}")
        near = None if query.near is None else _centre(answer, searcher, query.near)
        plan = Plan(query.text, query.recipe, answer.recipe, query.fusion, terms, match, vector, near)
        ordering = Ordering(searcher, plan)
        for one in _kinds(query.filters):
            _fill(answer, searcher, query, plan, ordering, one)
        if not answer.relevant:
            answer.elsewhere = _elsewhere(searcher, plan, by_words=not answer.empty)
    return answer


def _fits(searcher: Searcher, encoder: QueryEncoder) -> bool:
    """Whether the store's vectors are of this encoder, or it has none."""
    held = searcher.encoder()
    return held is None or (held.digest, held.dimension) == (encoder.info.digest, encoder.info.dimension)


def _centre(answer: Answer, searcher: Searcher, name: str) -> int:
    """The row number of the entity that a name means, with a note where it could mean another."""
    named = find_entity(searcher, name)
    if named.others:
        answer.notes.append(f"'{name}' could also be {'; '.join(named.others)}")
    return Neighbourhood(searcher).entity(named.id)


def _fill(
    answer: Answer, searcher: Searcher, query: Query, plan: Plan, ordering: Ordering, one: _Kind
) -> None:
    until = query.offset + query.limit
    depth = max(until, MIN_SCORE_WINDOW if query.min_score else VERDICT_DEPTH)
    fused, total, seeds = ordering.order(one.kind, depth)
    weight = ordering.rarity(one.kind)
    if query.min_score:
        judged = _judge(searcher, plan, weight, one.kind, fused[:MIN_SCORE_WINDOW])
        first = judged[:VERDICT_DEPTH]
        answer.truncated |= total > MIN_SCORE_WINDOW
        judged = [row for row in judged if row.relevance >= query.min_score]
        total = len(judged)
        judged = judged[query.offset : until]
    else:
        # The first ones are judged for any page, so that the verdict on an answer is that of its query.
        page = fused[max(query.offset, VERDICT_DEPTH) : until]
        judged = _judge(searcher, plan, weight, one.kind, [*fused[:VERDICT_DEPTH], *page])
        first = judged[:VERDICT_DEPTH]
        judged = [*first[query.offset : until], *judged[len(first) :]]
    answer.best_relevance = max([answer.best_relevance, *(round(row.relevance, 4) for row in first)])
    answer.totals[one.key] = total
    answer.truncated |= total > query.offset + len(judged)
    pks = [row.item.pk for row in judged]
    read = {MEMORY: searcher.memories, ENTITY: searcher.entities, RELATION: searcher.relations}[one.kind]
    items = read(pks)
    shown = [_shown(items[row.item.pk], row, explain=query.explain) for row in judged]
    if query.explain and seeds:
        walked = [row.item.pk for row in judged if row.item.found.keys() & {"graph", "near"}]
        ways = ways_to(searcher, one.kind, walked, seeds)
        for row, hit in zip(judged, shown, strict=True):
            if row.item.pk in ways:
                hit["channels"]["near" if plan.near is not None else "graph"]["path"] = ways[row.item.pk]
    setattr(answer, one.key, shown)


def _judge(
    searcher: Searcher, plan: Plan, weight: Mapping[Term, float], kind: Kind, items: Sequence[Fused]
) -> list[_Judged]:
    """The items with their relevance and the words of the query that they contain."""
    if not items:
        return []
    pks = [item.pk for item in items]
    holders = {term: searcher.holding(kind, term, pks) for term in plan.terms}
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
        judged.append(_Judged(item, relevance(cosine, coverage, kind), cosine, coverage, words))
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
    if explain:
        figures["judged"] = {
            "cosine": None if row.cosine is None else _figure(row.cosine),
            "coverage": None if row.coverage is None else _figure(row.coverage),
        }
    return item | figures


def _elsewhere(searcher: Searcher, plan: Plan, *, by_words: bool) -> dict[str, int] | None:
    """How much other scopes hold that could have answered; `None` when they hold nothing.

    That is what contains a word of the query, `by_words` or where nothing has been compared by meaning;
    else it is everything.
    """
    if plan.match is None or searcher.sees_all:
        return None
    match = plan.match if by_words or plan.vector is None else None
    counts = {one.key: 0 for one in _KINDS}
    scopes: set[int] = set()
    for kind, key in _kinds(searcher.filters):
        counts[key], where = searcher.elsewhere(kind, match)
        scopes |= where
    return counts | {"scopes": len(scopes)} if any(counts.values()) else None
