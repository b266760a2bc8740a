"""The nine operations of the MCP memory server over a store.

What is seen in the scopes of a server is one graph in which names are identities: an observation is a
memory about an entity, deleting archives. Names are compared exactly, in the form in which the store keeps
them, relation types blind to case and separators, as everywhere in the store. Where there are several
entities of one name, reads give all of them, and writes go to the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from graphmem.act import Act, Done, perform
from graphmem.commit.edits import Edits
from graphmem.edit.remember import remember
from graphmem.errors import EditRefused
from graphmem.lookup import bindable
from graphmem.names import exact, predicate_key
from graphmem.recall import HARDLY_RELEVANT, Query, meaning, search
from graphmem.records import ENTITY, KINDS, MEMORY, RELATION, UNKNOWN_KIND
from graphmem.store import Store
from graphmem.store.filters import Filters
from graphmem.store.memory_graph import Link, MemoryGraph, Node
from graphmem.store.search import Searcher
from graphmem.store.write import ENTITY as ENTITIES
from graphmem.store.write import MEMORY as MEMORIES
from graphmem.store.write import RELATION as RELATIONS
from graphmem.times import now

if TYPE_CHECKING:
    from graphmem.embed import Availability, Encoder

Fields = dict[str, Any]

_BEYOND: Final = 10
"""How many entities a search adds to those that contain the query as it stands."""
_RANKED: Final = 50


@dataclass(frozen=True, slots=True)
class Sight:
    """Where writes go, and the scopes that are seen (`None` for all)."""

    scope: str
    scopes: tuple[str, ...] | None
    actor: str | None = None


def _graph(store: Store, sight: Sight) -> MemoryGraph:
    return MemoryGraph(store.db, Filters(now(), sight.scopes))


# ---- reading --------------------------------------------------------------------------------------


def read_graph(store: Store, sight: Sight) -> Fields:
    """All entities and relations."""
    graph = _graph(store, sight)
    return _shown(graph.nodes(), graph.links())


def open_nodes(store: Store, sight: Sight, names: Sequence[str]) -> Fields:
    """The entities of these names, and the relations with at least one of them at an end."""
    graph = _graph(store, sight)
    nodes = graph.nodes([exact(name) for name in names])
    return _shown(nodes, graph.links({one.name for one in nodes}))


def search_nodes(store: Store, sight: Sight, query: str, load: Callable[[], Availability]) -> Fields:
    """The entities that a text finds, and the relations with at least one of them at an end.

    First every entity that has the text in its name, type or an observation, whatever the case, the most
    relevant first; then others that are relevant to it. An empty text finds everything, in order.
    """
    graph = _graph(store, sight)
    if not query.strip():
        return _shown([one for one in graph.nodes() if _contains(one, query)], graph.links())
    relevance = _relevance(store, sight, query, load)
    wanted = query.lower()
    if wanted.isascii():
        ids = [id_ for id_, one in relevance.items() if one >= HARDLY_RELEVANT]
        nodes = graph.nodes_of({*graph.may_contain(wanted), *graph.of_ids(ids)})
    else:
        nodes = graph.nodes()
    ranked = sorted(nodes, key=lambda one: -relevance.get(one.id, 0.0))
    found = [one for one in ranked if _contains(one, query)]
    held = {one.pk for one in found}
    further = [one for one in ranked if relevance.get(one.id, 0.0) >= HARDLY_RELEVANT and one.pk not in held]
    found += further[:_BEYOND]
    return _shown(found, graph.links({one.name for one in found}))


def _contains(node: Node, query: str) -> bool:
    wanted = query.lower()
    texts = (node.name, node.kind or UNKNOWN_KIND, *(one.content for one in node.observations))
    return any(wanted in text.lower() for text in texts)


def _relevance(
    store: Store, sight: Sight, query: str, load: Callable[[], Availability]
) -> Mapping[str, float]:
    """How relevant entities are, by id: as much as what is said about them, or they themselves."""
    filters = Filters(now(), sight.scopes)
    searcher = Searcher(store.db, filters)
    encoder = meaning(searcher, "hybrid", load).encoder
    answer = search(searcher, Query(bindable(query), filters, _RANKED), encoder)
    best: dict[str, float] = {}
    for hit in answer.entities:
        best[hit["id"]] = max(hit["relevance"], best.get(hit["id"], 0.0))
    for hit in answer.hits:
        for entity in hit["about_refs"]:
            best[entity["id"]] = max(hit["relevance"], best.get(entity["id"], 0.0))
    return best


def _shown(nodes: Iterable[Node], links: Iterable[Link]) -> Fields:
    return {
        "entities": [
            {
                "name": one.name,
                "entityType": one.kind or UNKNOWN_KIND,
                "observations": [each.content for each in one.observations],
            }
            for one in nodes
        ],
        "relations": [
            {"from": one.subject, "to": one.object, "relationType": one.predicate} for one in links
        ],
    }


# ---- creating -------------------------------------------------------------------------------------


def create_entities(
    store: Store, sight: Sight, entities: Sequence[Fields], encoder: Encoder | None
) -> list[Fields]:
    """Stores the entities whose name is not there yet; those that are new, as they were stored.

    Entities of one name in one call are united. Observations without text are left out. All are stored or
    none: raises `EditRefused`, and what an import raises.
    """
    names = [_given(one["name"], "name") for one in entities]
    held = {one.name for one in _graph(store, sight).nodes(names)}
    made: dict[str, Fields] = {}
    for name, one in zip(names, entities, strict=True):
        if name not in held:
            entity = made.setdefault(name, {**one, "observations": []})
            entity["observations"] = _with(entity["observations"], one["observations"])
    records: list[Fields] = []
    for name, one in made.items():
        kind = {"kind": one["entityType"]} if one["entityType"].strip() else {}
        records.append({"type": ENTITY, "name": name, **kind})
        records += [
            {"type": MEMORY, "content": content, "about": [{"name": name, **kind}]}
            for content in one["observations"]
        ]
    _store(store, sight, "create_entities", records, encoder)
    return list(made.values())


def create_relations(
    store: Store, sight: Sight, relations: Sequence[Fields], encoder: Encoder | None
) -> list[Fields]:
    """Stores the relations that are not there yet; those that are new.

    An end that is no entity becomes a stub of exactly that name. Raises as `create_entities`.
    """
    graph = _graph(store, sight)
    given = [_triple(one) for one in relations]
    names = list(dict.fromkeys(name for subject, _, object_ in given for name in (subject, object_)))
    held = {_key(one) for one in graph.links(names)}
    made: dict[tuple[str, str, str], Fields] = {}
    for triple, one in zip(given, relations, strict=True):
        key = (triple[0], predicate_key(triple[1]), triple[2])
        if key not in held:
            made.setdefault(key, one)
    ends: dict[str, Any] = {}
    for called in graph.called(names):
        ends.setdefault(called.name, {"id": called.id})
    new = [name for subject, _, object_ in made for name in (subject, object_) if name not in ends]
    records: list[Any] = [{"type": ENTITY, "name": name, "stub": True} for name in dict.fromkeys(new)]
    records += [
        {"type": RELATION, "subject": ends.get(subject, subject), "predicate": one["relationType"],
         "object": ends.get(object_, object_)}
        for (subject, _, object_), one in made.items()
    ]  # fmt: skip
    _store(store, sight, "create_relations", records, encoder)
    return list(made.values())


def add_observations(
    store: Store, sight: Sight, observations: Sequence[Fields], encoder: Encoder | None
) -> list[Fields]:
    """Stores what is new about entities; for each what was added.

    Raises `EditRefused` when one of the entities is not there, and then nothing is stored; else as
    `create_entities`.
    """
    names = [exact(one["entityName"]) for one in observations]
    nodes = _first_of(_graph(store, sight).nodes(names))
    held: dict[str, list[str]] = {}
    records: list[Fields] = []
    results: list[Fields] = []
    for name, one in zip(names, observations, strict=True):
        node = nodes.get(name)
        if node is None:
            raise EditRefused(f"Entity with name {one['entityName']} not found")
        before = held.setdefault(name, [each.content for each in node.observations])
        held[name] = _with(before, one["contents"])
        added = held[name][len(before) :]
        records += [{"type": MEMORY, "content": content, "about": [{"id": node.id}]} for content in added]
        results.append({"entityName": one["entityName"], "addedObservations": added})
    _store(store, sight, "add_observations", records, encoder)
    return results


def _with(held: Sequence[str], more: Iterable[str]) -> list[str]:
    """The texts and those of `more` that are new and say something, in order."""
    return list(dict.fromkeys([*held, *(one for one in more if one.strip())]))


def _first_of(nodes: Iterable[Node]) -> dict[str, Node]:
    first: dict[str, Node] = {}
    for one in nodes:
        first.setdefault(one.name, one)
    return first


def _given(text: str, key: str) -> str:
    name = exact(text)
    if not name:
        raise EditRefused(f"'{key}' is empty", "every entity has a name, and every relation a type")
    return name


def _triple(relation: Fields) -> tuple[str, str, str]:
    subject, predicate, object_ = (_given(relation[key], key) for key in ("from", "relationType", "to"))
    return subject, predicate, object_


def _key(link: Link) -> tuple[str, str, str]:
    return link.subject, predicate_key(link.predicate), link.object


def _store(store: Store, sight: Sight, command: str, records: Sequence[Any], encoder: Encoder | None) -> None:
    if not records:
        return
    report, outcomes = remember(
        store, records, scope=sight.scope, encoder=encoder, actor=sight.actor, command=command, strict=True
    )
    if report.findings.errors:
        problems = [problem for one in outcomes if one.status == "rejected" for problem in one.problems]
        raise EditRefused("; ".join(problems), "nothing was stored")


# ---- deleting -------------------------------------------------------------------------------------


def _archive(edits: Edits, done: Done, kind: int, pks: Iterable[int]) -> None:
    archived = done.counts.setdefault("archived", {})
    for pk in pks:
        if edits.set_state(kind, pk, "archived"):
            archived[KINDS[kind]] = archived.get(KINDS[kind], 0) + 1


def _perform(
    store: Store, sight: Sight, command: str, told: Iterable[str], body: Callable[[Edits, Done], None],
    encoder: Encoder | None,
) -> None:  # fmt: skip
    perform(store, Act(command, [bindable(one) for one in told], sight.actor), body, encoder)


def delete_entities(store: Store, sight: Sight, names: Sequence[str], encoder: Encoder | None) -> None:
    """Archives every entity of these names, with its relations and what is about nothing else."""

    def body(edits: Edits, done: Done) -> None:
        editor = edits.editor
        for one in _graph(store, sight).called(exact(name) for name in names):
            _archive(edits, done, MEMORIES, editor.memories_only_about(one.pk))
            _archive(edits, done, RELATIONS, editor.relations_of(one.pk, active=True))
            _archive(edits, done, ENTITIES, [one.pk])

    _perform(store, sight, "delete_entities", names, body, encoder)


def delete_observations(
    store: Store, sight: Sight, deletions: Sequence[Fields], encoder: Encoder | None
) -> None:
    """Archives observations; one that is about another entity too stays with that one."""
    wanted = [(exact(one["entityName"]), set(one["observations"])) for one in deletions]

    def body(edits: Edits, done: Done) -> None:
        nodes = _first_of(_graph(store, sight).nodes([name for name, _ in wanted]))
        for name, contents in wanted:
            node = nodes.get(name)
            only = set(edits.editor.memories_only_about(node.pk)) if node else set()
            for one in node.observations if node else ():
                if one.content not in contents:
                    continue
                if one.pk in only:
                    _archive(edits, done, MEMORIES, [one.pk])
                elif node and node.id in edits.row(MEMORIES, one.pk)["about"]:
                    edits.change(MEMORIES, one.pk, {"without": {"about": [node.id]}})

    _perform(store, sight, "delete_observations", [name for name, _ in wanted], body, encoder)


def delete_relations(
    store: Store, sight: Sight, relations: Sequence[Fields], encoder: Encoder | None
) -> None:
    """Archives the relations of these ends and types."""
    keys = {
        (exact(one["from"]), predicate_key(exact(one["relationType"])), exact(one["to"])) for one in relations
    }

    def body(edits: Edits, done: Done) -> None:
        links = _graph(store, sight).links({key[0] for key in keys})
        _archive(edits, done, RELATIONS, [one.pk for one in links if _key(one) in keys])

    told = [f"{subject} {predicate} {object_}" for subject, predicate, object_ in sorted(keys)]
    _perform(store, sight, "delete_relations", told, body, encoder)
