"""The nine operations over a store: as the memory server does them, and what a store adds to that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hash_encoder import HashEncoder
from hypothesis import given
from hypothesis import strategies as st
from importing import in_memory, take, take_records
from memory_sessions import entity, relation
from snapshots import sound

from graphmem import memory_graph
from graphmem.edit.undo import undo
from graphmem.embed import Availability
from graphmem.errors import EditRefused
from graphmem.memory_graph import Sight
from graphmem.store import Store

FIXTURES = Path(__file__).parents[2] / "fixtures" / "memory-server"
HERE = Sight("global", ("global",))
REPO = Sight("repo:/a", ("repo:/a", "global"))


@pytest.fixture
def store() -> Iterator[Store]:
    with in_memory() as made:
        yield made
        assert sound(made.db) == []


def create(store: Store, *entities: dict[str, Any], sight: Sight = HERE) -> list[str]:
    return [one["name"] for one in memory_graph.create_entities(store, sight, entities, None)]


def relate(store: Store, *relations: dict[str, Any], sight: Sight = HERE) -> list[dict[str, Any]]:
    return memory_graph.create_relations(store, sight, relations, None)


def observe(store: Store, name: str, *contents: str, sight: Sight = HERE) -> list[str]:
    given_ = [{"entityName": name, "contents": list(contents)}]
    (result,) = memory_graph.add_observations(store, sight, given_, None)
    return list(result["addedObservations"])


def shown(store: Store, sight: Sight = HERE) -> list[str]:
    """The graph in short."""
    graph = memory_graph.read_graph(store, sight)
    return [
        *(
            f"{one['name']} ({one['entityType']}): {', '.join(one['observations'])}"
            for one in graph["entities"]
        ),
        *(f"{one['from']} {one['relationType']} {one['to']}" for one in graph["relations"]),
    ]


def found(store: Store, query: str, encoder: HashEncoder | None = None, sight: Sight = HERE) -> list[str]:
    graph = memory_graph.search_nodes(store, sight, query, lambda: Availability(encoder))
    return [one["name"] for one in graph["entities"]]


def batches(store: Store) -> int:
    count: int = store.db.execute("SELECT count(*) FROM batch").get
    return count


# ---- the same as the original, whatever is asked -----------------------------------------------------


class Original:
    """What the memory server does, in the few words that it takes; `came` is the call in which a thing came."""

    def __init__(self) -> None:
        self.entities: list[dict[str, Any]] = []
        self.relations: list[dict[str, Any]] = []
        self.came: dict[str, int] = {}

    def note(self, call: int) -> None:
        """Notes what came in a call, and forgets what went."""
        self.came = {key: self.came.get(key, call) for key in keys_of(self.read_graph())}

    def create_entities(self, entities: list[dict[str, Any]]) -> Any:
        held = {one["name"] for one in self.entities}
        new = [one for one in entities if one["name"] not in held]
        self.entities += [{**one, "observations": list(one["observations"])} for one in new]
        return new

    def create_relations(self, relations: list[dict[str, Any]]) -> Any:
        new = [one for one in relations if one not in self.relations]
        self.relations += new
        return new

    def add_observations(self, observations: list[dict[str, Any]]) -> Any:
        if any(self._first(one["entityName"]) is None for one in observations):
            return None
        results = []
        for one in observations:
            held = (self._first(one["entityName"]) or {})["observations"]
            added = [text for text in one["contents"] if text not in held]
            held += added
            results.append({"entityName": one["entityName"], "addedObservations": added})
        return results

    def delete_entities(self, names: list[str]) -> None:
        self.entities = [one for one in self.entities if one["name"] not in names]
        self.relations = [
            one for one in self.relations if one["from"] not in names and one["to"] not in names
        ]

    def delete_observations(self, deletions: list[dict[str, Any]]) -> None:
        for one in deletions:
            held = self._first(one["entityName"])
            if held is not None:
                held["observations"] = [
                    text for text in held["observations"] if text not in one["observations"]
                ]

    def delete_relations(self, relations: list[dict[str, Any]]) -> None:
        self.relations = [one for one in self.relations if one not in relations]

    def read_graph(self) -> Any:
        return {"entities": self.entities, "relations": self.relations}

    def open_nodes(self, names: list[str]) -> Any:
        return self._part([one for one in self.entities if one["name"] in names])

    def search_nodes(self, query: str) -> Any:
        wanted = query.lower()
        return self._part([
            one for one in self.entities
            if any(wanted in text.lower() for text in (one["name"], one["entityType"], *one["observations"]))
        ])  # fmt: skip

    def _part(self, entities: list[dict[str, Any]]) -> Any:
        names = {one["name"] for one in entities}
        links = [one for one in self.relations if one["from"] in names or one["to"] in names]
        return {"entities": entities, "relations": links}

    def _first(self, name: str) -> dict[str, Any] | None:
        return next((one for one in self.entities if one["name"] == name), None)


def keys_of(graph: dict[str, Any]) -> list[str]:
    """The entities, observations and relations of a graph, each as one text, in their order."""
    return [
        *(f"{one['name']} ({one['entityType']})" for one in graph["entities"]),
        *(f"{one['name']}: {text}" for one in graph["entities"] for text in one["observations"]),
        *(str(one) for one in graph["relations"]),
    ]


def in_order(graph: dict[str, Any], came: dict[str, int]) -> bool:
    """Whether everything stands behind what came in an earlier call; of one call any order will do."""
    lists = [
        [f"{one['name']} ({one['entityType']})" for one in graph["entities"]],
        *([f"{one['name']}: {text}" for text in one["observations"]] for one in graph["entities"]),
        [str(one) for one in graph["relations"]],
    ]
    return all([came[key] for key in each] == sorted(came[key] for key in each) for each in lists)


_NAMES = st.sampled_from(["AuthService", "auth service", "C", "C++", "Ж"])
_TEXTS = st.lists(st.sampled_from(["one", "One", "two words", "三"]), max_size=3, unique=True)
_ENTITY = st.builds(
    lambda name, kind, texts: entity(name, kind, *texts),
    _NAMES,
    st.sampled_from(["service", "language"]),
    _TEXTS,
)
_RELATION = st.builds(relation, _NAMES, st.sampled_from(["uses", "knows"]), _NAMES)
_RELATIONS = st.lists(_RELATION, max_size=3, unique_by=lambda one: tuple(one.values()))
_ABOUT = st.lists(
    st.builds(lambda name, texts: {"entityName": name, "contents": texts}, _NAMES, _TEXTS), max_size=3,
    unique_by=lambda one: one["entityName"],
)  # fmt: skip
_STEPS = st.one_of(
    st.tuples(st.just("create_entities"), st.lists(_ENTITY, max_size=3, unique_by=lambda one: one["name"])),
    st.tuples(st.just("create_relations"), _RELATIONS),
    st.tuples(st.just("add_observations"), _ABOUT),
    st.tuples(st.just("delete_entities"), st.lists(_NAMES, max_size=2)),
    st.tuples(
        st.just("delete_observations"),
        _ABOUT.map(
            lambda all_: [{"entityName": one["entityName"], "observations": one["contents"]} for one in all_]
        ),
    ),
    st.tuples(st.just("delete_relations"), _RELATIONS),
)


@given(
    st.lists(_STEPS, max_size=8), st.lists(_NAMES, max_size=2), st.sampled_from(["", "ser", "C", "TWO", "三"])
)
def test_any_walk_through_the_operations_gives_what_the_original_gives(
    steps: list[tuple[str, Any]], names: list[str], query: str
) -> None:
    original = Original()
    with in_memory() as store:
        for number, (operation, argument) in enumerate(steps):
            expected = getattr(original, operation)(argument)
            try:
                told = getattr(memory_graph, operation)(store, HERE, argument, None)
            except EditRefused:
                told = None
            assert told == expected, operation
            original.note(number)
            graph = memory_graph.read_graph(store, HERE)
            assert sorted(keys_of(graph)) == sorted(original.came)
            assert in_order(graph, original.came)
        opened = memory_graph.open_nodes(store, HERE, names)
        assert sorted(keys_of(opened)) == sorted(keys_of(original.open_nodes(names)))
        assert in_order(opened, original.came)
        ours = memory_graph.search_nodes(store, HERE, query, lambda: Availability(None))
        theirs = original.search_nodes(query)
        assert set(keys_of(theirs)) <= set(keys_of(ours))
        assert sound(store.db) == []


# ---- what is asked of a store ------------------------------------------------------------------------


def test_an_imported_file_is_the_graph_that_the_server_would_show(store: Store) -> None:
    take(store, FIXTURES / "memory.jsonl", format=None)

    assert shown(store) == [
        "Ines Duarte (person): Runs the harbour lighthouse, Speaks Portuguese and some German, Prefers reports before 9 am",
        "Farol (project): Rewrite of the lamp controller firmware, Uses Zephyr RTOS 3.7, The watchdog resets after 8 s",
        "lamp-controller (component): Draws 12 W at full beam",
        "Harbour Office (organization): ",
        "Ines Duarte maintains Farol",
        "Farol controls lamp-controller",
        "Ines Duarte reports_to Harbour Office",
        "Farol documented_in Wiki",
    ]


def test_what_the_profile_makes_is_what_an_import_of_its_file_would_make(tmp_path: Path) -> None:
    with in_memory() as one, in_memory() as two:
        create(one, entity("A", "x", "one"), entity("B", "y"))
        relate(one, relation("A", "r", "B"), relation("A", "r", "Gone"))
        lines = [
            {"type": "entity", **entity("A", "x", "one")}, {"type": "entity", **entity("B", "y")},
            {"type": "relation", **relation("A", "r", "B")}, {"type": "relation", **relation("A", "r", "Gone")},
        ]  # fmt: skip
        report = take_records(one, tmp_path, lines, "2027-01-01T00:00:00.000Z", format=None)
        take_records(two, tmp_path, lines, format=None)

        assert report.total("unchanged") == 5
        assert shown(one) == shown(two)


def test_only_what_is_active_and_holds_and_is_about_an_entity_is_an_observation(
    store: Store, tmp_path: Path
) -> None:
    take_records(
        store, tmp_path,
        [
            {"type": "entity", "name": "A", "kind": "x"},
            {"type": "memory", "content": "now", "about": ["A"]},
            {"type": "memory", "content": "archived", "about": ["A"], "state": "archived"},
            {"type": "memory", "content": "over", "about": ["A"], "invalid_at": "2020-01-01"},
            {"type": "memory", "content": "replaced", "about": ["A"], "expired_at": "2020-01-01"},
            {"type": "memory", "content": "elsewhere", "about": ["A"], "scopes": ["project:b", "global"]},
            {"type": "memory", "content": "only mentions", "mentions": ["A"]},
            {"type": "memory", "content": "about nothing"},
            {"type": "relation", "subject": "A", "predicate": "was", "object": "B", "invalid_at": "2020-01-01"},
            {"type": "memory", "content": "of a name nobody declared", "about": ["Stub"]},
            {"type": "memory", "content": "unseen", "scopes": ["project:c"]},
            {"type": "entity", "name": "Hidden", "scope": "project:c"},
        ],
    )  # fmt: skip

    assert shown(store) == ["A (x): now, elsewhere", "Stub (unknown): of a name nobody declared"]


def test_reads_see_the_scope_and_global_and_writes_go_to_the_scope(store: Store) -> None:
    create(store, entity("Everywhere", "x", "said globally"))
    assert create(store, entity("Everywhere", "y"), entity("Here", "x"), sight=REPO) == ["Here"]
    observe(store, "Everywhere", "said here", sight=REPO)
    relate(store, relation("Here", "uses", "Everywhere"), sight=REPO)

    assert shown(store, REPO) == [
        "Everywhere (x): said globally, said here", "Here (x): ", "Here uses Everywhere",
    ]  # fmt: skip
    assert shown(store) == ["Everywhere (x): said globally"]


def test_an_end_is_the_entity_of_exactly_that_name_and_no_near_one(store: Store) -> None:
    create(store, entity("AuthService", "service"))

    relate(store, relation("auth service", "is not", "AuthService"))

    assert shown(store)[1:] == ["auth service is not AuthService"]
    with pytest.raises(EditRefused, match=r"^Entity with name authservice not found$"):
        observe(store, "authservice", "x")


def test_names_are_compared_in_the_form_in_which_they_are_kept(store: Store) -> None:
    assert create(store, entity("  Caf\u00e9  Central ", "place")) == ["  Caf\u00e9  Central "]
    assert create(store, entity("Cafe\u0301 Central", "place")) == []
    observe(store, "Cafe\u0301  Central", "Opens at 7")

    assert shown(store) == ["Café Central (place): Opens at 7"]
    assert memory_graph.open_nodes(store, HERE, ["Caf\u00e9 Central "])["entities"] != []


def test_namesakes_are_all_shown_and_the_first_takes_what_is_added(store: Store, tmp_path: Path) -> None:
    take_records(
        store,
        tmp_path,
        [{"type": "entity", "name": "M", "kind": "planet"}, {"type": "entity", "name": "M", "kind": "car"}],
    )

    assert create(store, entity("M", "god")) == []
    observe(store, "M", "Has no moon")
    assert shown(store) == ["M (planet): Has no moon", "M (car): "]
    memory_graph.delete_entities(store, HERE, ["M"], None)
    assert shown(store) == []


def test_the_same_thing_given_twice_in_one_call_is_stored_once(store: Store) -> None:
    entities = [entity("A", "x", "one", "one", ""), entity("A", "y", "two", " ")]
    made = memory_graph.create_entities(store, HERE, entities, None)
    assert made == [entity("A", "x", "one", "two")]
    assert relate(store, *[relation("A", "works_at", "B")] * 2, relation("A", "works at", "B")) == [
        relation("A", "works_at", "B")
    ]
    assert observe(store, "A", "new", "new", "\n") == ["new"]
    assert shown(store) == ["A (x): one, two, new", "A works_at B"]


@pytest.mark.parametrize("one", [entity(" ", "x"), entity("", "x")])
def test_an_entity_without_a_name_is_refused_and_nothing_stored(one: dict[str, Any], store: Store) -> None:
    with pytest.raises(EditRefused, match="'name' is empty"):
        create(store, entity("A", "x"), one)
    with pytest.raises(EditRefused, match="'relationType' is empty"):
        relate(store, relation("A", "r", "B"), relation("A", " ", "B"))

    assert (shown(store), batches(store)) == ([], 0)


def test_an_entity_without_a_type_reads_as_unknown(store: Store) -> None:
    create(store, entity("A", "", "one"), entity("B", "unknown"))

    assert shown(store) == ["A (unknown): one", "B (unknown): "]


def test_every_call_is_one_batch_and_one_that_changes_nothing_is_none(store: Store) -> None:
    create(store, entity("A", "x", "one", "two"), entity("B", "x"))
    relate(store, relation("A", "r", "B"), relation("A", "r", "C"))
    assert batches(store) == 2
    create(store, entity("A", "x", "one"))
    relate(store, relation("A", "r", "B"))
    observe(store, "A", "one")
    memory_graph.delete_entities(store, HERE, ["Nobody"], None)
    memory_graph.delete_observations(store, HERE, [{"entityName": "A", "observations": ["never"]}], None)
    memory_graph.delete_relations(store, HERE, [relation("B", "r", "A")], None)
    assert batches(store) == 2
    memory_graph.delete_entities(store, HERE, ["A", "B"], None)
    told = store.db.execute(
        "SELECT command, actor, counts ->> '$.archived' FROM batch ORDER BY pk DESC LIMIT 1"
    )
    assert told.fetchall() == [("delete_entities", None, '{"entity":2,"memory":2,"relation":2}')]


def test_what_is_deleted_is_archived_and_comes_back_when_it_is_said_again(store: Store) -> None:
    create(store, entity("A", "x", "one", "two"))
    memory_graph.delete_observations(store, HERE, [{"entityName": "A", "observations": ["one"]}], None)
    assert store.db.execute("SELECT content, state FROM memory ORDER BY pk").fetchall() == [
        ("one", "archived"), ("two", "active"),
    ]  # fmt: skip

    assert observe(store, "A", "one") == ["one"]

    assert shown(store) == ["A (x): two, one"]
    assert store.db.execute("SELECT count(*) FROM memory").get == 2


def test_what_was_deleted_comes_back_by_undo(store: Store) -> None:
    create(store, entity("A", "x", "one"), entity("B", "x", "two"))
    relate(store, relation("A", "r", "B"))
    before = shown(store)
    memory_graph.delete_entities(store, HERE, ["A"], None)
    assert shown(store) == ["B (x): two"]

    undo(store, None)

    assert shown(store) == before


def test_an_observation_about_two_entities_is_taken_from_one_and_stays_with_the_other(
    store: Store, tmp_path: Path
) -> None:
    take_records(
        store, tmp_path,
        [["A", "near", "B"], {"type": "entity", "name": "A"}, {"type": "entity", "name": "B"},
         {"type": "memory", "content": "both", "about": ["A", "B"]}],
    )  # fmt: skip

    memory_graph.delete_observations(store, HERE, [{"entityName": "A", "observations": ["both"]}], None)
    assert shown(store) == ["A (unknown): ", "B (unknown): both", "A near B"]
    memory_graph.delete_entities(store, HERE, ["A"], None)
    assert shown(store) == ["B (unknown): both"]


# ---- searching ---------------------------------------------------------------------------------------


def test_search_finds_every_substring_and_puts_the_most_relevant_first(store: Store) -> None:
    create(
        store,
        entity("Catalogue", "document", "Lists the plants"),
        entity("Shed", "building", "Home of the cat"),
        entity("Education", "topic"),
    )

    assert found(store, "CAT") == ["Shed", "Catalogue", "Education"]


def test_search_adds_what_is_relevant_and_has_the_words_in_another_order(store: Store) -> None:
    create(
        store,
        entity("Pump", "machine", "The red valve leaks at night"),
        entity("Gate", "structure", "Painted blue"),
    )

    assert found(store, "leaks valve") == ["Pump"]
    assert found(store, "nothing of the kind") == []


def test_search_by_meaning_adds_to_the_substrings_and_takes_none_away(store: Store, tmp_path: Path) -> None:
    encoder = HashEncoder()
    take_records(
        store, tmp_path,
        [{"type": "entity", **entity("Pump", "machine", "The red valve leaks at night")},
         {"type": "entity", **entity("Leaksham", "town")}],
        format=None, encoder=encoder,
    )  # fmt: skip

    names = found(store, "leaks", encoder)

    assert sorted(names) == ["Leaksham", "Pump"]


def test_any_text_is_a_legal_query(store: Store) -> None:
    create(store, entity('a"b', "x", "100% _ [x] C++ don't"))

    for query in ['"', "%", "_", "[x]", "C++", "don't", "a OR", "NEAR(", "*"]:
        assert found(store, query) == (
            ['a"b'] if query not in ("a OR", "NEAR(", "*") else found(store, query)
        )
    assert found(store, "100%") == ['a"b']


def test_relations_of_what_is_found_come_along_with_one_end_in_the_set(store: Store) -> None:
    create(store, entity("A", "x"), entity("B", "x"))
    relate(store, relation("A", "r", "Gone"), relation("B", "r", "Gone"))

    graph = memory_graph.search_nodes(store, HERE, "a", lambda: Availability(None))
    assert graph == {"entities": [entity("A", "x")], "relations": [relation("A", "r", "Gone")]}


def test_small_and_capital_letters_are_those_of_all_scripts(store: Store) -> None:
    create(store, entity("Unit", "quantity", "273 \u212aelvin, ÄRGER"), entity("Żółw", "animal"))

    assert found(store, "kelvin") == ["Unit"]
    assert found(store, "ärger") == ["Unit"]
    assert found(store, "żÓŁw") == ["Żółw"]
