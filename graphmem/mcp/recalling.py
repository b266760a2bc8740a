"""The tool `recall`: the core's answer in lean rows, each with why it was found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from graphmem.errors import UsageError
from graphmem.lookup import bindable, meant
from graphmem.mcp.answers import EVIDENCE, Budget, Fields, lean
from graphmem.mcp.service import NOTHING_STORED, Service, also_meant
from graphmem.mcp.walking import edge_row
from graphmem.recall import HARDLY_RELEVANT, Answer, Query, Recipe, meaning, search
from graphmem.store import Store
from graphmem.store.filters import Filters
from graphmem.store.graph import Graph
from graphmem.store.lookup import Names
from graphmem.store.search import Searcher
from graphmem.times import now, parse_bound

_AROUND: Final = 30
_MEMORIES_SHARE: Final = 0.75
_FACTS_SHARE: Final = 0.7
"""Of what the memories leave, so that entities are shown beside many facts."""
_CHANNELS: Final = {"lexical": "words", "semantic": "meaning", "graph": "graph", "near": "nearness"}


def recall(service: Service, given: Fields) -> Fields:
    """What the store knows of a question."""
    filters = Filters(
        now(), service.scopes(given), tuple(given.get("kinds", ())),
        tuple(given.get("types", ())), tuple(given.get("tags", ())), bound(given, "since"),
        bound(given, "until"),
    )  # fmt: skip
    with service.reading() as store:
        if store is None:
            return _nothing(given, [NOTHING_STORED])
        answer, notes, filters = _answered(service, store, given, filters)
        told = _told(store, answer, given, filters, notes)
    service.accessed(row["id"] for row in told["memories"])
    return told


def bound(given: Fields, name: str) -> str | None:
    """The time of `since` or `until`. Raises `UsageError` for what is no time."""
    if not given.get(name):
        return None
    try:
        return parse_bound(given[name], last=name == "until")
    except ValueError as error:
        raise UsageError(
            f"'{name}' is '{given[name]}', which is no time", "write a date such as 2026-05-08"
        ) from error


def _answered(
    service: Service, store: Store, given: Fields, filters: Filters
) -> tuple[Answer, list[str], Filters]:
    notes: list[str] = []
    recipe: Recipe = given["recipe"]
    entity = given.get("entity")
    if recipe == "near" and not entity:
        raise UsageError("the recipe 'near' needs 'entity'", "name the entity to rank by the distance to")
    if entity:
        found, others = meant(Names(store.db, filters.scopes), entity)
        notes += also_meant(entity, found, others)
        entity = found.id
        if recipe != "near":
            filters = replace(filters, entity=entity)
    query = Query(
        bindable(given["query"]), filters, given["limit"], given.get("offset", 0), recipe, explain=True,
        near=entity if recipe == "near" else None,
    )  # fmt: skip
    searcher = Searcher(store.db, filters)
    how = meaning(searcher, recipe, service.model.now)
    if how.why_not:
        notes.append(f"searched by words only: {how.why_not}")
    answer = search(searcher, query, how.encoder)
    return answer, notes + answer.notes, filters


def _nothing(given: Fields, notes: list[str]) -> Fields:
    return {
        "evidence": EVIDENCE, "found": False, "recipe": given["recipe"], "memories": [], "facts": [],
        "entities": [], "totals": {"memories": 0, "facts": 0, "entities": 0}, "notes": notes,
    }  # fmt: skip


def _told(store: Store, answer: Answer, given: Fields, filters: Filters, notes: list[str]) -> Fields:
    budget = Budget(given["max_tokens"])
    relevant, offset = answer.relevant, given.get("offset", 0)
    memories = _memories(budget, answer.hits)
    facts, facts_seen = _shown(budget, answer.facts, _fact, relevant, share=_FACTS_SHARE, text="fact")
    entities, entities_seen = _shown(budget, answer.entities, _entity, relevant, text="description")
    told: Fields = {
        "evidence": EVIDENCE, "found": relevant, "recipe": answer.recipe, "memories": memories,
        "facts": facts, "entities": entities,
    }  # fmt: skip
    if given.get("around"):
        around = _around(store, filters, memories)
        told["around"] = budget.take(around[:_AROUND], text="fact")
        if len(told["around"]) < len(around):
            told["truncated"] = True
            notes.append(f"around are {len(around):,} facts; 'graph' with the id of an entity shows its own")
    totals = {"memories": answer.totals["hits"]}
    told["totals"] = totals | {key: answer.totals[key] for key in ("facts", "entities")}
    further = [(facts_seen, answer.totals["facts"]), (entities_seen, answer.totals["entities"])]
    told |= _rest(offset, (len(memories), answer.totals["hits"]), further)
    if budget.spent:
        told["truncated"] = True
        notes.append("not everything fits; a larger max_tokens or 'inspect' with an id shows more")
    if answer.elsewhere is not None:
        told["elsewhere"] = {
            "memories" if key == "hits" else key: many for key, many in answer.elsewhere.items()
        }
        notes.append("other scopes hold something that could answer this (scopes=['*'] searches them)")
    if not relevant:
        notes.append("nothing stored here is about this")
    return told | ({"notes": notes} if notes else {})


def _rest(offset: int, memories: tuple[int, int], further: Sequence[tuple[int | None, int]]) -> Fields:
    """Whether there is more, and the offset of the next page; each is what was dealt with, and the total.

    Pages follow the memories as long as there are any, then whichever list is behind.
    """
    left = [seen for seen, total in further if seen is not None and offset + seen < total]
    if offset + memories[0] < memories[1]:
        left = [memories[0]]
    going = [seen for seen in left if seen]
    return ({"truncated": True} if left else {}) | ({"next_offset": offset + min(going)} if going else {})


def _shown(
    budget: Budget, rows: Sequence[Fields], lean_: Callable[[Fields], Fields], relevant: bool, **how: Any
) -> tuple[list[Fields], int | None]:
    """What is shown of a page of facts or entities, and how many of the page that deals with.

    The hardly relevant ones are shown only where there is nothing better. What comes after them is not
    worth a page either, which is `None`.
    """
    worth = [place for place, one in enumerate(rows) if one["relevance"] >= HARDLY_RELEVANT or not relevant]
    shown = budget.take([lean_(rows[place]) for place in worth], **how)
    if len(shown) < len(worth):
        return shown, worth[len(shown)]
    return shown, len(rows) if worth and worth[-1] == len(rows) - 1 else None


def _memories(budget: Budget, hits: Sequence[Fields]) -> list[Fields]:
    """The memories that fit, and where none does the beginning of the first one, so that there is a next page."""
    shown = budget.take([_memory(hit) for hit in hits], share=_MEMORIES_SHARE, text="content")
    if hits and not shown:
        row = {"id": hits[0]["id"], "content": hits[0]["content"], "why": "", "cut": True}
        shown = budget.take([row], text="content")
    return shown


def _memory(hit: Fields) -> Fields:
    about = [{"id": ref["id"], "name": ref["name"], "kind": ref["kind"]} for ref in hit["about_refs"]]
    row = lean({
        "title": hit["title"], "content": hit["content"], "about": about, "tags": hit["tags"],
        "scopes": hit["scopes"], "source": hit["source"], "valid_at": hit["valid_at"],
        "created_at": hit["created_at"],
    })  # fmt: skip
    return {"id": hit["id"], "type": hit["memory_type"], "content": ""} | row | _figures(hit)


def _fact(one: Fields) -> Fields:
    keys = ("id", "subject", "predicate", "object", "fact", "valid_at")
    return lean({key: one[key] for key in keys}) | _figures(one)


def _entity(one: Fields) -> Fields:
    keys = ("id", "name", "kind", "scope", "description", "aliases")
    return lean({key: one[key] for key in keys}) | _figures(one)


def _figures(one: Fields) -> Fields:
    return {"relevance": round(one["relevance"], 2), "why": "; ".join(_why(one["channels"]))}


def _why(channels: dict[str, Fields]) -> Iterator[str]:
    """How each channel found it: its rank there, the words that it has, the way through the graph."""
    for name, channel in channels.items():
        rank = f" #{channel['rank']}" if channel["rank"] else ""
        words = f" ({', '.join(channel['words'])})" if channel.get("words") else ""
        steps = [step.get("name") or step.get("memory", "") for step in channel.get("path", ())]
        way = f" from {' > '.join(steps)}" if steps else ""
        yield f"{_CHANNELS.get(name, name)}{rank}{words}{way}"


def _around(store: Store, filters: Filters, memories: Sequence[Fields]) -> list[Fields]:
    """The facts that hold now of the entities that the memories are about."""
    names = Names(store.db, filters.scopes)
    ids = dict.fromkeys(ref["id"] for memory in memories for ref in memory.get("about", ()))
    found = [one for one in map(names.by_id, ids) if one is not None]
    graph = Graph(store.db, Filters(filters.now, filters.scopes))
    edges = graph.hop([one.pk for one in found], "both")
    ends = sorted({end for edge in edges for end in (edge.subject, edge.object)})
    nodes: dict[int, Any] = {node.pk: node for node in graph.nodes(ends)}
    return [edge_row(edge, nodes) for edge in edges if {edge.subject, edge.object} <= nodes.keys()]
