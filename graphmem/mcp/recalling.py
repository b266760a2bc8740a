"""The tool `recall`: the core's answer in lean rows, each with why it was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from graphmem.errors import UsageError
from graphmem.lookup import bindable, meant
from graphmem.mcp.answers import EVIDENCE, Budget, Fields, lean, page
from graphmem.mcp.service import NOTHING_STORED, Service, also_meant
from graphmem.mcp.walking import edge_row
from graphmem.recall import HARDLY_RELEVANT, Answer, Query, Recipe, meaning, search
from graphmem.store import Store
from graphmem.store.graph import Graph
from graphmem.store.lookup import Names
from graphmem.store.search import Filters, Searcher
from graphmem.times import now, parse_bound

_FURTHER: Final = 10
"""How many facts and entities stand beside the memories at most."""
_AROUND: Final = 30
_MEMORIES_SHARE: Final = 0.75
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
    relevant = answer.relevant
    memories = budget.take([_memory(hit) for hit in answer.hits], share=_MEMORIES_SHARE, text="content")
    facts = budget.take([_fact(one) for one in _worth(answer.facts, relevant)], text="fact")
    entities = budget.take([_entity(one) for one in _worth(answer.entities, relevant)], text="description")
    told: Fields = {
        "evidence": EVIDENCE, "found": relevant, "recipe": answer.recipe, "memories": memories,
        "facts": facts, "entities": entities,
    }  # fmt: skip
    if given.get("around"):
        told["around"] = budget.take(_around(store, filters, memories), text="fact")
    totals = {"memories": answer.totals["hits"]}
    told["totals"] = totals | {key: answer.totals[key] for key in ("facts", "entities")}
    shown = page(len(memories), answer.totals["hits"], given.get("offset", 0))
    if "next_offset" in shown and memories:
        told["next_offset"] = shown["next_offset"]
    if "next_offset" in told or budget.spent:
        told["truncated"] = True
    if budget.spent:
        notes.append("not everything fits; a larger max_tokens or 'inspect' with an id shows more")
    if answer.elsewhere is not None:
        told["elsewhere"] = {
            "memories" if key == "hits" else key: many for key, many in answer.elsewhere.items()
        }
        notes.append("other scopes hold something that could answer this (scopes=['*'] searches them)")
    if not relevant:
        notes.append("nothing stored here is about this")
    return told | ({"notes": notes} if notes else {})


def _worth(rows: Sequence[Fields], relevant: bool) -> list[Fields]:
    """The rows worth showing: the hardly relevant ones only where there is nothing better."""
    return [one for one in rows[:_FURTHER] if one["relevance"] >= HARDLY_RELEVANT or not relevant]


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
    return [edge_row(edge, nodes) for edge in edges if {edge.subject, edge.object} <= nodes.keys()][:_AROUND]
