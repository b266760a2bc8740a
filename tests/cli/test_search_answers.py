"""What an answer of `gmem search` says of itself: relevance, bounds, ways through the graph, pages."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import write_records

from graphmem.budget import tokens
from graphmem.recall import RECIPES

if TYPE_CHECKING:
    from command_line import Run

NOTHING = "nothing relevant was found; the nearest:\n"


def filled(run: Run, folder: Path, records: list[dict[str, Any]]) -> None:
    assert run("import", write_records(folder / "records.jsonl", records)).status == 0


def memory(content: str, **fields: Any) -> dict[str, Any]:
    return {"type": "memory", "content": content, **fields}


@pytest.fixture
def services(run: Run, tmp_path: Path) -> None:
    records = [
        {"type": "entity", "name": "Auth", "kind": "service"},
        {"type": "relation", "subject": "Auth", "predicate": "uses", "object": "Vault"},
        *(
            memory(f"service number {number} is slow " + "and old " * 60, id=f"m{number:02}")
            for number in range(12)
        ),
        memory("Auth checks tokens", about=["Auth"], id="auth"),
        memory("keys are kept for a week", about=["Vault"], id="keys"),
    ]
    filled(run, tmp_path, records)


# ---- nothing relevant -------------------------------------------------------------------------------


def test_where_nothing_is_relevant_it_says_so_and_shows_the_nearest_few(run: Run, services: None) -> None:
    done = run("search", "zebra crossing accident report service")

    assert done.status == 0
    assert done.out.startswith(f"{NOTHING}\n1. 0.")
    assert "\n3. 0." in done.out
    assert "\n4. 0." not in done.out
    assert done.out.endswith("1-3 of 12 memories; --offset 3 shows more\n")


def test_json_says_whether_anything_is_relevant_and_has_all_of_it(run: Run, services: None) -> None:
    nothing = run("search", "zebra crossing accident report service", "--json").json
    something = run("search", "service number", "--json").json

    assert (nothing["relevant"], len(nothing["hits"])) == (False, 10)
    assert nothing["best_relevance"] == max(hit["relevance"] for hit in nothing["hits"])
    assert something["relevant"] is True
    assert "nothing relevant" not in run("search", "service number").out


def test_a_further_page_of_a_relevant_answer_is_not_called_irrelevant(run: Run, services: None) -> None:
    assert "nothing relevant" not in run("search", "service number 3", "--offset", "12").out


def test_where_nothing_is_found_nothing_is_called_nearest(run: Run, services: None) -> None:
    assert run("search", "zebra").out == "0 memories\nsearched: global\n"


def test_a_least_relevance_that_nothing_has_is_told_with_the_best_there_is(run: Run, services: None) -> None:
    out = run("search", "zebra crossing accident report service", "--min-score", "0.9").out

    assert out.splitlines()[0] == "0 memories"
    assert out.splitlines()[1].startswith("nothing has a relevance of 0.9; the best has 0.0")


# ---- a bound on tokens ------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [130, 200, 400, 1_000])
def test_a_text_answer_fits_and_says_what_is_missing(run: Run, services: None, limit: int) -> None:
    done = run("search", "service number", "--max-tokens", str(limit))

    assert 60 < tokens(done.out) <= limit
    assert f"fitted into {limit:,} tokens: " in done.out
    assert "(a larger --max-tokens" in done.out


def test_of_a_memory_that_does_not_fit_the_beginning_is_shown(run: Run, services: None) -> None:
    out = run("search", "service number 7", "--limit", "1", "--max-tokens", "120").out

    assert "service number 7 is slow and old" in out
    assert "…" in out
    assert "the last one cut (a larger --max-tokens shows more)" in out


@pytest.mark.parametrize("limit", [400, 700, 1_500])
def test_an_answer_in_json_fits_and_says_what_is_missing(run: Run, services: None, limit: int) -> None:
    done = run("search", "service number", "--max-tokens", str(limit), "--json")

    answer = done.json
    assert tokens(done.out) <= limit
    assert answer["hits"]
    assert answer["truncated"] is True
    assert len(answer["hits"]) + answer["budget"]["left_out"]["hits"] == 10
    assert [hit["id"] for hit in answer["hits"] if hit.get("cut")] == [
        one for one in [answer["budget"]["cut"]] if one
    ]


def test_an_answer_that_fits_says_no_more_than_its_size(run: Run, services: None) -> None:
    answer = run("search", "tokens", "--max-tokens", "5000", "--json").json
    text = run("search", "tokens", "--max-tokens", "5000").out

    assert answer["budget"]["left_out"] == {"hits": 0, "facts": 0, "entities": 0}
    assert answer["budget"]["tokens"] < 900
    assert answer["truncated"] is False
    assert text == run("search", "tokens").out
    assert run("search", "tokens", "--json").json["budget"] is None


def test_every_answer_of_a_file_of_queries_is_bounded(run: Run, services: None, tmp_path: Path) -> None:
    file = tmp_path / "queries.jsonl"
    file.write_text('{"query":"service number"}\n{"query":"tokens"}\n')

    lines = run("search", "--queries", file, "--max-tokens", "900").out.splitlines()

    assert all(tokens(line) <= 900 for line in lines)
    assert [json.loads(line)["truncated"] for line in lines] == [True, False]


# ---- reasons ----------------------------------------------------------------------------------------


def test_explaining_shows_the_way_through_the_graph(run: Run, services: None) -> None:
    done = run("search", "who checks tokens", "--recipe", "graph", "--explain")
    (keys,) = (
        hit for hit in run("search", "who checks tokens", "--recipe", "graph", "--explain", "--json").json["hits"]
        if hit["id"] == "keys"
    )  # fmt: skip

    assert "lexical" in done.out
    assert "from auth > Auth > Vault\n" in done.out
    assert [step.get("memory") or step["name"] for step in keys["channels"]["graph"]["path"]] == [
        "auth", "Auth", "Vault"
    ]  # fmt: skip
    assert keys["channels"]["graph"]["rank"] > 1
    assert 0 < keys["channels"]["graph"]["score"] < 1


def test_what_is_near_to_an_entity_comes_first(run: Run, services: None) -> None:
    near = [hit["id"] for hit in run("search", "keys slow", "--near", "Vault", "--json").json["hits"]]

    assert near[0] == "keys"
    assert run("search", "keys slow", "--near", "Vault", "--json").json["recipe"] == "near"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--recipe", "near"), "go together"),
        (("--recipe", "lexical", "--near", "Auth"), "go together"),
        (("--near", "Nobody"), "no entity is called 'Nobody'"),
        (("--fusion", "magic"), "--fusion"),
        (("--max-tokens", "0"), "--max-tokens"),
    ],
)
def test_misuse_is_an_error(run: Run, services: None, args: tuple[str, ...], words: str) -> None:
    done = run("search", "keys", *args)

    assert (done.status, done.out) == (2, "")
    assert words in done.err


def test_ranks_can_be_added_up_instead_of_scores(run: Run, services: None) -> None:
    answer = run("search", "service number 3", "--fusion", "rrf", "--recipe", "hybrid", "--json").json

    assert answer["hits"][0]["id"] == "m03"
    assert 0 < answer["hits"][0]["score"] < 1 / 60


# ---- reading ----------------------------------------------------------------------------------------


def test_searching_changes_no_byte_of_the_store(run: Run, services: None, home: Path) -> None:
    (store,) = home.rglob("memory.db")
    run("search", "warm up")
    before = sha256(store.read_bytes()).digest()

    for recipe in RECIPES:
        near = ("--near", "Auth") if recipe == "near" else ("--recipe", recipe)
        for args in (
            (),
            ("--explain",),
            ("--json",),
            ("--all-scopes",),
            ("--min-score", "0.1"),
            ("--entity", "Auth"),
        ):
            assert run("search", "service tokens", *near, *args).status in (0, 4)

    assert sha256(store.read_bytes()).digest() == before


@pytest.mark.parametrize("recipe", ["hybrid", "lexical", "graph"])
def test_pages_are_disjoint_and_say_whether_there_is_more(run: Run, services: None, recipe: str) -> None:
    pages = []
    for offset in range(0, 15, 5):
        answer = run(
            "search", "service", "--recipe", recipe, "--limit", "5", "--offset", str(offset), "--json"
        ).json
        pages += [hit["id"] for hit in answer["hits"]]
        assert answer["truncated"] is (offset + 5 < answer["totals"]["hits"])

    assert len(set(pages)) == len(pages) == answer["totals"]["hits"] >= 12


def test_an_empty_answer_says_what_lies_elsewhere(run: Run, services: None) -> None:
    out = run("search", "service", "--scope", "project:x").out

    assert "0 here; 12 memories in 1 other scope (--all-scopes)\n" in out


def test_where_nothing_relevant_is_here_it_says_where_the_words_are(run: Run, tmp_path: Path) -> None:
    records = [
        memory("a report of the quiet week in the harbour", scopes=["project:here"]),
        memory("a zebra at the crossing", scopes=["project:there"]),
    ]
    filled(run, tmp_path, records)

    out = run("search", "zebra crossing accident report", "--scope", "project:here").out

    assert out.startswith(NOTHING)
    assert "nothing relevant here; 1 memory in 1 other scope with a word of the query (--all-scopes)\n" in out
