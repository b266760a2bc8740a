"""What did not fit into an answer is told, with how to get it; and following that brings all of it, once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.types import ResourceTemplateReference
from mcp_client import Conversation, connected, fill, serving

STORED: list[Any] = [
    *(["Q30", "neighbour", f"Q{number}"] for number in range(100, 125)),
    *([end, "next_to", other] for end in ("start", "end") for other in ("this way", "that way")),
    *(
        {"type": "memory", "content": f"Note {number} on Q30 " + "with a long text " * 60, "about": ["Q30"]}
        for number in range(12)
    ),
    *({"type": "entity", "name": "Jaguar", "kind": kind} for kind in ("animal", "car")),
]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one entity in the middle of everything."""
    return fill(tmp_path_factory.mktemp("pages") / "memory.db", STORED)


@pytest.fixture
def client(db: Path) -> Iterator[Conversation]:
    """A client of that store."""
    with connected(serving(db)) as opened:
        yield opened


def _pages(client: Conversation, **given: Any) -> list[Any]:
    """Every page of an answer, by its offsets."""
    pages = [client.call("recall", **given)]
    while "next_offset" in pages[-1] and len(pages) < 50:
        pages.append(client.call("recall", offset=pages[-1]["next_offset"], **given))
    return pages


def test_facts_that_are_left_out_are_told_and_paging_brings_all_of_them(client: Conversation) -> None:
    pages = _pages(client, query="Q30 neighbour", recipe="lexical", kinds=["unknown"])
    facts = [one["id"] for page in pages for one in page["facts"]]

    assert (len(pages[0]["facts"]), pages[0]["totals"]["facts"]) == (10, 25)
    assert pages[0]["truncated"] is True
    assert len(facts) == len(set(facts)) == 25
    assert "truncated" not in pages[-1]


def test_a_limit_is_one_for_memories_and_for_facts(client: Conversation) -> None:
    told = client.call("recall", query="Q30 neighbour", recipe="lexical", limit=20, max_tokens=50_000)

    assert (len(told["memories"]), len(told["facts"])) == (12, 20)
    assert told["next_offset"] == 20


def test_few_tokens_still_show_the_beginning_of_a_memory_and_lead_to_the_next(client: Conversation) -> None:
    pages = _pages(client, query="Q30 note", recipe="lexical", max_tokens=200)
    memories = [one["id"] for page in pages for one in page["memories"]]

    assert all(one["cut"] and one["content"].startswith("Note") for one in pages[0]["memories"])
    assert len(memories) == len(set(memories)) == 12


def test_an_answer_that_shows_everything_has_no_next_page(client: Conversation) -> None:
    told = client.call("recall", query="Q124", recipe="lexical")

    assert told["totals"] == {"memories": 0, "facts": 1, "entities": 1}
    assert told.keys() & {"truncated", "next_offset"} == set()


def test_graph_says_what_it_left_out_and_shows_it_with_more_tokens(client: Conversation) -> None:
    given = {"entities": ["Q30"], "memories": True}
    few, all_ = (
        client.call("graph", max_tokens=600, **given),
        client.call("graph", max_tokens=50_000, **given),
    )

    assert few["totals"] == {"entities": 26, "relations": 25}
    assert (few["truncated"], all_["truncated"]) == (True, False)
    shown = f"{len(few['entities'])} of 26 entities and {len(few['relations'])} of 25 relations"
    assert few["notes"] == [
        f"shown are {shown}; a larger max_tokens, a smaller depth or 'predicates' shows what is left out"
    ]
    assert (len(all_["entities"]), len(all_["relations"]), all_.get("notes")) == (26, 25, None)


def test_graph_says_that_its_limit_stopped_it(client: Conversation) -> None:
    told = client.call("graph", entities=["Q30"], limit=5)

    assert told["notes"] == ["the walk stopped at its limit of 5 entities; there is more around these"]


def test_graph_says_that_there_are_more_paths(client: Conversation) -> None:
    told = client.call("graph", entities=["start"], to="end", limit=1)

    assert (len(told["paths"]), told["truncated"]) == (1, True)
    assert told["notes"] == ["there are more paths of this length; a larger limit shows them"]
    assert "notes" not in client.call("graph", entities=["start"], to="end", limit=2)


def test_facts_around_that_are_left_out_are_told(client: Conversation) -> None:
    told = client.call("recall", query="Q30 note", recipe="lexical", limit=1, around=True, max_tokens=600)

    assert len(told["around"]) < 25
    assert "around are 25 facts; 'graph' with the id of an entity shows its own" in told["notes"]


def test_names_of_several_entities_are_completed_once(client: Conversation) -> None:
    entity = ResourceTemplateReference(uri="gmem://entity/{name}")
    found = client.ask("complete", entity, {"name": "name", "value": "jag"}).completion

    assert (found.values, found.total, found.has_more) == (["Jaguar"], 1, False)
