"""The tool `graph`: what is around entities, and the shortest paths between two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphmem.lookup import meant
from graphmem.mcp.answers import EVIDENCE, Budget, Fields, lean
from graphmem.mcp.service import NOTHING_STORED, Service, also_meant
from graphmem.store.filters import Filters
from graphmem.store.graph import Edge, Graph, Node
from graphmem.store.lookup import Found, Names
from graphmem.times import now
from graphmem.traverse import MAX_DEPTH, Paths, Subgraph, expand, shortest_paths

_MEMORIES = 50
_SHARE = 0.5


def graph(service: Service, given: Fields) -> Fields:
    """What is reached from entities, or the paths to another one."""
    scopes = service.scopes(given)
    with service.reading() as store:
        if store is None:
            empty: Fields = {"evidence": EVIDENCE, "entities": [], "relations": [], "truncated": False}
            return empty | {"notes": [NOTHING_STORED]}
        names = Names(store.db, scopes)
        notes: list[str] = []
        found = [_meant(names, text, given, notes) for text in given["entities"]]
        walk = Graph(store.db, Filters(now(), scopes), given.get("predicates", ()))
        if given.get("to"):
            last = _meant(names, given["to"], {}, notes)
            told = _paths(walk, found[0], last, given, notes)
        else:
            told = _subgraph(walk, found, given, notes)
    return told | ({"notes": notes} if notes else {})


def _meant(names: Names, text: str, given: Fields, notes: list[str]) -> Found:
    found, others = meant(names, text, given.get("kind") or None)
    notes += also_meant(text, found, others)
    return found


def edge_row(edge: Edge, nodes: Mapping[int, Node]) -> Fields:
    """A relation in few words; its ends by name and id."""
    subject, object_ = nodes[edge.subject], nodes[edge.object]
    return lean({
        "id": edge.id, "subject": subject.name, "predicate": edge.predicate, "object": object_.name,
        "subject_id": subject.id, "object_id": object_.id, "weight": edge.weight, "fact": edge.fact,
        "valid_at": edge.valid_at,
    })  # fmt: skip


def _node_row(node: Node, depth: int | None = None) -> Fields:
    row = lean({"id": node.id, "name": node.name, "kind": node.kind, "scope": node.scope,
                "description": node.description})  # fmt: skip
    return row | ({"stub": True} if node.stub else {}) | ({} if depth is None else {"depth": depth})


def _subgraph(walk: Graph, found: list[Found], given: Fields, notes: list[str]) -> Fields:
    depth = given.get("depth", 1)
    seeds = [one.pk for one in found]
    reached = expand(walk, seeds, depth, given["direction"], max(given["limit"], len(seeds)))
    budget = Budget(given["max_tokens"])
    rows = [_node_row(node, reached.depths[pk]) for pk, node in reached.nodes.items()]
    entities = budget.take(rows, share=_SHARE, text="description")
    shown = {row["id"] for row in entities}
    edges = [edge_row(edge, reached.nodes) for edge in reached.edges]
    edges = [row for row in edges if {row["subject_id"], row["object_id"]} <= shown]
    told: Fields = {"evidence": EVIDENCE, "entities": entities}
    told["relations"] = budget.take(edges, share=1.0 if not given.get("memories") else _SHARE, text="fact")
    if given.get("memories"):
        told["memories"] = budget.take(_memories(walk, reached), text="content")
    told["totals"] = {"entities": len(reached.nodes), "relations": len(reached.edges)}
    told["truncated"] = reached.truncated or budget.spent
    notes += _left_out(told, reached, budget, given)
    return told


def _left_out(told: Fields, reached: Subgraph, budget: Budget, given: Fields) -> Iterator[str]:
    """What is not shown, and how to see it."""
    if reached.truncated:
        yield f"the walk stopped at its limit of {given['limit']} entities; there is more around these"
    if budget.spent:
        rows = ((len(told[what]), told["totals"][what], what) for what in ("entities", "relations"))
        parts = " and ".join(f"{shown:,} of {total:,} {what}" for shown, total, what in rows)
        yield f"shown are {parts}; a larger max_tokens, a smaller depth or 'predicates' shows what is left out"


def _memories(walk: Graph, reached: Subgraph) -> list[Fields]:
    """The newest memories of the entities, each once for each entity."""
    pairs = walk.memories(list(reached.nodes), _MEMORIES)
    rows = walk.memory_rows(sorted({memory for _, memory in pairs}))
    return [
        {"id": rows[memory]["id"], "entity": reached.nodes[entity].name, "content": rows[memory]["content"]}
        for entity, memory in pairs
        if memory in rows
    ]


def _paths(walk: Graph, first: Found, last: Found, given: Fields, notes: list[str]) -> Fields:
    found = shortest_paths(
        walk, first.pk, last.pk, direction=given["direction"], max_hops=given.get("depth") or MAX_DEPTH,
        limit=given["limit"],
    )  # fmt: skip
    budget = Budget(given["max_tokens"])
    told: Fields = {"evidence": EVIDENCE, **_length(found)}
    rows = [{"steps": [_step(step) for step in path]} for path in found.paths]
    told["paths"] = [row["steps"] for row in budget.take(rows)]
    told["truncated"] = found.truncated or budget.spent
    if told["truncated"]:
        how = "max_tokens" if budget.spent else "limit"
        notes.append(f"there are more paths of this length; a larger {how} shows them")
    return told


def _length(found: Paths) -> Fields:
    if found.length is not None:
        return {"length": found.length}
    why = "the search was given up: too many entities" if found.exhausted else "there is no path that short"
    return {"why_none": why}


def _step(step: Any) -> Fields:
    nodes = {step.start.pk: step.start, step.end.pk: step.end}
    relations = [
        {key: row[key] for key in ("id", "subject", "predicate", "object")}
        for row in (edge_row(edge, nodes) for edge in step.edges)
    ]
    return {
        "from": step.start.name, "from_id": step.start.id, "to": step.end.name, "to_id": step.end.id,
        "relations": relations,
    }  # fmt: skip
