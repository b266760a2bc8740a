"""What clients ask a memory server: sessions that were recorded with the official one and are replayed to ours."""

from __future__ import annotations

from typing import Any, Final

Request = tuple[str, dict[str, Any] | None]

URI: Final = "memory://knowledge-graph"


def call(tool: str, **arguments: Any) -> Request:
    return "tools/call", {"name": tool, "arguments": arguments}


def entity(name: str, type_: str, *observations: str) -> dict[str, Any]:
    return {"name": name, "entityType": type_, "observations": list(observations)}


def relation(subject: str, predicate: str, object_: str) -> dict[str, Any]:
    return {"from": subject, "to": object_, "relationType": predicate}


_READ: Final = call("read_graph")
_GARDEN: Final = call(
    "create_entities",
    entities=[
        entity("Walled garden", "place", "Faces south", "Soil is chalky, pH 7.8"),
        entity("Ruth Adeyemi", "person", "Head gardener since 2019", "Allergic to wasps"),
        entity("pear_espalier", "plant", "Planted 1931", "Needs copper spray in March"),
        entity("Gießkanne №2", "tool"),
    ],
)
_LINKS: Final = call(
    "create_relations",
    relations=[
        relation("Ruth Adeyemi", "tends", "Walled garden"),
        relation("pear_espalier", "grows_in", "Walled garden"),
        relation("Ruth Adeyemi", "reports_to", "Estate office"),
        relation("Walled garden", "beside", "Walled garden"),
    ],
)

SESSIONS: Final[dict[str, list[Request]]] = {
    "listing": [
        ("tools/list", {}),
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("resources/read", {"uri": URI}),
        _READ,
        call("search_nodes", query=""),
        call("open_nodes", names=[]),
    ],
    "everyday": [
        _GARDEN,
        _LINKS,
        _READ,
        call("open_nodes", names=["Ruth Adeyemi", "Nobody"]),
        call("open_nodes", names=["pear_espalier", "Walled garden"]),
        call("add_observations", observations=[
            {"entityName": "Ruth Adeyemi", "contents": ["Speaks Yoruba", "Allergic to wasps", "On leave in August"]},
            {"entityName": "Gießkanne №2", "contents": ["Leaks at the rose"]},
        ]),
        _READ,
        ("resources/read", {"uri": URI}),
        call("delete_observations", deletions=[
            {"entityName": "Ruth Adeyemi", "observations": ["On leave in August", "Never said"]},
        ]),
        call("delete_relations", relations=[relation("Walled garden", "beside", "Walled garden")]),
        _READ,
        call("delete_entities", entityNames=["Walled garden"]),
        _READ,
    ],
    "already there and not there": [
        _GARDEN,
        _LINKS,
        _GARDEN,
        _LINKS,
        call("create_entities", entities=[
            entity("Ruth Adeyemi", "director", "This is dropped with its entity"),
            entity("Cold frame", "structure", "Two panes are cracked"),
        ]),
        call("create_relations", relations=[
            relation("Ruth Adeyemi", "tends", "Walled garden"),
            relation("Ruth Adeyemi", "tends", "Cold frame"),
            relation("Walled garden", "tends", "Ruth Adeyemi"),
        ]),
        call("create_entities", entities=[entity("walled garden", "place", "Another one, in small letters")]),
        call("open_nodes", names=["walled garden"]),
        call("add_observations", observations=[
            {"entityName": "Cold frame", "contents": ["Painted green"]},
            {"entityName": "Hot house", "contents": ["Does not exist"]},
        ]),
        call("open_nodes", names=["Cold frame"]),
        call("add_observations", observations=[{"entityName": "Estate office", "contents": ["Only a name at an end"]}]),
        call("add_observations", observations=[{"entityName": "Cold frame", "contents": ["Two panes are cracked"]}]),
        call("delete_entities", entityNames=["Hot house", "Nobody"]),
        call("delete_observations", deletions=[{"entityName": "Nobody", "observations": ["x"]}]),
        call("delete_relations", relations=[relation("A", "b", "C"), relation("Ruth Adeyemi", "tends", "Nobody")]),
        _READ,
        call("create_entities", entities=[]),
        call("create_relations", relations=[]),
        call("add_observations", observations=[]),
        call("delete_entities", entityNames=[]),
        call("delete_observations", deletions=[]),
        call("delete_relations", relations=[]),
    ],
    "gone and back": [
        _GARDEN,
        _LINKS,
        call("delete_entities", entityNames=["Ruth Adeyemi", "Estate office"]),
        _READ,
        call("add_observations", observations=[{"entityName": "Ruth Adeyemi", "contents": ["x"]}]),
        call("create_relations", relations=[relation("Ruth Adeyemi", "tends", "Walled garden")]),
        _READ,
        call("create_entities", entities=[entity("Ruth Adeyemi", "person", "Came back in 2026")]),
        call("open_nodes", names=["Ruth Adeyemi"]),
        call("delete_observations", deletions=[{"entityName": "Ruth Adeyemi", "observations": ["Came back in 2026"]}]),
        call("add_observations", observations=[{"entityName": "Ruth Adeyemi", "contents": ["Came back in 2026", "Retired"]}]),
        call("open_nodes", names=["Ruth Adeyemi"]),
        call("delete_relations", relations=[relation("Ruth Adeyemi", "tends", "Walled garden")]),
        call("open_nodes", names=["Ruth Adeyemi"]),
        call("create_relations", relations=[relation("Ruth Adeyemi", "tends", "Walled garden")]),
        call("open_nodes", names=["Ruth Adeyemi"]),
        call("create_entities", entities=[entity("Estate office", "office", "Ground floor")]),
        call("open_nodes", names=["Estate office"]),
    ],
    "text": [
        call("create_entities", entities=[
            entity("日本庭園", "場所", "池の鯉は 12 匹", "line one\nline two\ttabbed", 'says "no" \\ and 🪴'),
            entity("C++", "language", "C is not C++"),
            entity("C", "language", "C is not C++"),
            entity("<b>&amp;%s{0}", "odd", "\u2028 is no line end", "\u0001 is a control character", "DROP TABLE; --"),
        ]),
        call("create_relations", relations=[relation("C++", "grew out of", "C"), relation("日本庭園", "隣接", "C")]),
        _READ,
        call("open_nodes", names=["C"]),
        call("delete_observations", deletions=[{"entityName": "C", "observations": ["C is not C++"]}]),
        _READ,
    ],
    "searching": [
        _GARDEN,
        _LINKS,
        call("search_nodes", query="ESPALIER"),
        call("search_nodes", query="copper spray"),
        call("search_nodes", query="person"),
        call("search_nodes", query="hal"),
        call("search_nodes", query="№2"),
        call("search_nodes", query="garden"),
        call("search_nodes", query=""),
    ],
    "errors": [
        call("create_entities", entities=[entity("Shed", "structure", "Dry")]),
        call("search_nodes"),
        call("search_nodes", query=7),
        call("search_nodes", query=None),
        call("search_nodes", query=["x"]),
        call("open_nodes", names="Shed"),
        call("open_nodes", names=["Shed", 3, None]),
        call("create_entities", entities=[{"name": "Half", "entityType": "x"}]),
        call("create_entities", entities=[{"entityType": True, "observations": [1, "two", {}]}, "Shed", []]),
        call("create_relations", relations={"from": "A"}),
        call("add_observations", observations=[{"entityName": "Shed", "contents": "Damp"}]),
        call("delete_entities", names=["Shed"]),
        call("delete_observations", deletions=[{}]),
        call("delete_relations", relations=[{"from": 1.5, "to": False, "relationType": []}]),
        call("create_entities", entities=[{**entity("Barn", "structure"), "colour": "red"}], note="not known"),
        call("read_graph", depth=3),
        ("tools/call", {"name": "read_graph"}),
        ("tools/call", {"name": "search_nodes"}),
        call("search_node", query="x"),
        ("resources/read", {"uri": "memory://nothing"}),
        _READ,
    ],
    "told of changes": [
        ("resources/subscribe", {"uri": URI}),
        call("create_entities", entities=[entity("Shed", "structure", "Dry")]),
        call("search_nodes", query="shed"),
        call("create_relations", relations=[relation("Shed", "is", "Shed")]),
        call("add_observations", observations=[{"entityName": "Shed", "contents": ["Red"]}]),
        call("add_observations", observations=[{"entityName": "None", "contents": ["Red"]}]),
        call("delete_observations", deletions=[{"entityName": "Shed", "observations": ["Red"]}]),
        call("delete_relations", relations=[relation("Shed", "is", "Shed")]),
        call("delete_entities", entityNames=["Shed"]),
        ("resources/unsubscribe", {"uri": URI}),
        call("create_entities", entities=[entity("Shed", "structure", "Dry")]),
    ],
    "told apart": [
        call("create_entities", entities=[
            entity("Twice", "thing", "one", "one", "two"), entity("Twice", "thing", "three"), entity("Bare", "", ""),
        ]),
        _READ,
        call("create_relations", relations=[
            relation("Twice", "works_at", "Bare"), relation("Twice", "works_at", "Bare"), relation("Twice", "works at", "Bare"),
        ]),
        call("add_observations", observations=[{"entityName": "Bare", "contents": ["new", "new", " "]}]),
        _READ,
    ],
}  # fmt: skip
"""The last session holds what ours does differently on purpose: a store does not keep the same thing twice."""
