"""`gmem search` as people and scripts use it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from search_store import NOW, SmallStore, SynonymEncoder

from graphmem.cli import main


class Done(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def answer(self) -> Any:
        return json.loads(self.out)


class Gmem:
    """Runs `gmem search` on one store, outside any repository."""

    def __init__(self, db: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.db = db
        self._capsys = capsys

    def __call__(self, *args: str) -> Done:
        self._capsys.readouterr()
        status = main(["search", *args, "--db", str(self.db)])
        told = self._capsys.readouterr()
        return Done(status, told.out, told.err)


@pytest.fixture
def gmem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Gmem:
    for name in [name for name in os.environ if name.startswith("GRAPHMEM_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GRAPHMEM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GRAPHMEM_EMBEDDINGS", "off")
    monkeypatch.setenv("COLUMNS", "80")
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Gmem(tmp_path / "memory.db", capsys)


@pytest.fixture
def store(gmem: Gmem) -> SmallStore:
    return SmallStore(gmem.db)


def test_an_answer_reads_as_text(gmem: Gmem, store: SmallStore) -> None:
    auth, db = store.entity("AuthService", "service"), store.entity("Postgres", "database")
    store.relation(auth, "depends_on", db, fact="Sessions are kept there.")
    store.memory(
        "The auth service retries three times.", title="Retries", about=[auth], tags=["retry", "auth"],
        source="notes/auth.md", position=3, memory_type="decision", valid_at="2026-05-08T00:00:00.000Z",
        id_="m1",
    )  # fmt: skip

    done = gmem("auth", "service")

    assert done.status == 0
    assert done.out == (
        "1. 1.00  Retries · AuthService\n"
        "   The auth service retries three times.\n"
        "   decision · 2026-05-08 · global · #auth #retry · notes/auth.md:3 · m1\n"
        "\n"
        "facts\n"
        "  0.98  AuthService depends_on Postgres: Sessions are kept there.\n"
        "\n"
        "entities\n"
        "  0.89  AuthService (service)\n"
        "\n"
        "1 memory, 1 fact, 1 entity\n"
    )
    assert done.err == "note: searched by words only: embeddings are off (GRAPHMEM_EMBEDDINGS=off)\n"


def test_explaining_names_ranks_and_words(gmem: Gmem, store: SmallStore) -> None:
    store.memory("red car", id_="m1")
    store.memory("red house", id_="m2")

    done = gmem("red", "car", "--explain")

    assert "(rank 1) by red, car" in done.out
    assert "(rank 2) by red" in done.out


def test_json_has_the_published_shape(gmem: Gmem, store: SmallStore) -> None:
    store.memory("red car", id_="m1")

    answer = gmem("red car", "--json").answer

    assert set(answer) == {
        "query", "hits", "entities", "facts", "totals", "truncated", "relevant", "best_relevance", "elsewhere",
        "recipe", "notes", "budget",
    }  # fmt: skip
    assert set(answer["hits"][0]) == {
        "id", "content", "title", "memory_type", "score", "relevance", "channels", "scopes", "tags", "about",
        "about_refs", "source", "valid_at", "created_at", "properties",
    }  # fmt: skip
    assert answer["recipe"] == "graph"


def test_control_characters_are_shown_not_obeyed(gmem: Gmem, store: SmallStore) -> None:
    store.memory("red \x1b[31m car\r\nsecond line", title="a\x07b", tags=["\x1bt"])

    out = gmem("red").out

    assert "\x1b" not in out
    assert "red \\x1b[31m car" in out
    assert "a\\x07b" in out


def test_long_text_is_cut(gmem: Gmem, store: SmallStore) -> None:
    store.memory("red " + "and very long " * 1000)

    lines = gmem("red").out.splitlines()

    assert max(map(len, lines)) <= 80
    assert lines[4].endswith("…")


def test_what_is_hardly_relevant_is_counted_not_listed(gmem: Gmem, store: SmallStore) -> None:
    store.memory("red car with a long roof and two doors")
    store.entity("long story about words and nothing more")
    store.entity("red car roof doors two")

    done = gmem("red car long roof two doors")

    assert "and 1 hardly relevant (--json shows them)" in done.out
    assert "long story" not in done.out


def test_pages_are_announced(gmem: Gmem, store: SmallStore) -> None:
    for number in range(5):
        store.memory(f"red car {number}")

    assert gmem("car", "--limit", "2").out.endswith("1-2 of 5 memories; --offset 2 shows more\n")
    last = gmem("car", "--limit", "2", "--offset", "4").out
    assert last.startswith("5. ")
    assert last.endswith("5-5 of 5 memories\n")


def test_outside_a_repository_only_global_is_searched(gmem: Gmem, store: SmallStore) -> None:
    store.memory("red car", ["repo:/a"])
    store.memory("red house", ["topic:x"])

    done = gmem("car")

    assert done.status == 0
    assert done.out == "0 memories\n0 here; 1 memory in 1 other scope (--all-scopes)\nsearched: global\n"
    assert "red car" in gmem("car", "--all-scopes").out
    assert "red car" in gmem("car", "--scope", "topic:x", "--scope", "repo:/a").out
    assert gmem("car", "--scope", "topic:x", "--json").answer["totals"]["hits"] == 0


def test_inside_a_repository_its_scope_and_global_are_searched(
    gmem: Gmem, store: SmallStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "project")], check=True)
    common = (tmp_path / "project" / ".git").resolve()
    store.memory("red car", [f"repo:{common}"], id_="mine")
    store.memory("red car", ["global"], id_="shared")
    store.memory("red car", ["repo:/other"], id_="other")
    monkeypatch.chdir(tmp_path / "project")

    assert [hit["id"] for hit in gmem("car", "--json").answer["hits"]] == ["mine", "shared"]


def test_filters_narrow_the_answer(gmem: Gmem, store: SmallStore) -> None:
    ann = store.entity("Ann", "person")
    store.memory("red car", id_="1", memory_type="note", tags=["100%"], about=[ann])
    store.memory("red car", id_="2", valid_at="2024-05-08T12:00:00.000Z")

    def found(*args: str) -> list[str]:
        return [hit["id"] for hit in gmem("car", "--json", *args).answer["hits"]]

    assert found("--type", "note") == ["1"]
    assert found("--type", "observation") == ["2"]
    assert found("--type", "note", "--type", "observation") == ["1", "2"]
    assert found("--tag", "100%") == ["1"]
    assert found("--tag", "100") == []
    assert found("--kind", "Person") == ["1"]
    assert found("--entity", "ann") == ["1"]
    assert found("--until", "2024-05-08") == ["2"]
    assert found("--until", "2024-05-07") == []
    assert found("--since", "2024-05-09") == ["1"]
    assert found("--since", "2024-05-08T12:00:00Z", "--until", "2025-01-01") == ["2"]
    assert found("--min-score", "1") == []


def test_an_ambiguous_entity_is_chosen_and_said(gmem: Gmem, store: SmallStore) -> None:
    store.entity("Mercury", "planet")
    store.entity("Mercury", "metal")

    assert "note: 'Mercury' could also be Mercury (metal, global)\n" in gmem("x", "--entity", "Mercury").err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "give a query or --queries"),
        (("car", "--queries", "x.jsonl"), "give a query or --queries"),
        (("car", "--all-scopes", "--scope", "global"), "do not go together"),
        (("car", "--scope", "nonsense"), "is not a scope"),
        (("car", "--since", "yesterday"), "is not a time"),
        (("car", "--limit", "0"), "--limit"),
        (("car", "--recipe", "magic"), "--recipe"),
        (("car", "--min-score", "2"), "--min-score"),
        (("car", "--entity", "Nobody"), "no entity is called 'Nobody' here"),
        (("--queries", "missing.jsonl"), "'missing.jsonl' cannot be read"),
    ],
)
def test_misuse_is_an_error(gmem: Gmem, store: SmallStore, args: tuple[str, ...], words: str) -> None:
    done = gmem(*args)

    assert done.status == 2
    assert words in done.err
    assert done.out == ""


def test_a_store_that_is_not_there_is_an_error_and_not_made(gmem: Gmem) -> None:
    done = gmem("car")

    assert (done.status, done.out) == (2, "")
    assert not gmem.db.exists()


def test_a_read_only_store_is_searched(gmem: Gmem, store: SmallStore) -> None:
    store.memory("red car")
    store.db.close()
    gmem.db.chmod(0o400)

    assert gmem("car").status == 0


@pytest.mark.parametrize("query", ['"', "C++", "don't", "NEAR", "*", "(", "2026-05-08", "検索"])
def test_any_text_is_a_query(gmem: Gmem, store: SmallStore, query: str) -> None:
    assert gmem(query).status == 0


# ---- many queries -----------------------------------------------------------------------------------


def test_many_queries_are_answered_one_line_each(gmem: Gmem, store: SmallStore, tmp_path: Path) -> None:
    store.memory("red car", id_="1")
    store.memory("red house", ["topic:x"], id_="2")
    file = tmp_path / "queries.jsonl"
    file.write_text(
        '\ufeff{"id": "a", "query": "car"}\n\n{"id": 7, "query": "red", "scopes": ["topic:x"]}\n'
        '{"query": "\\"", "scopes": null}\n',
        encoding="utf-8",
    )

    done = gmem("--queries", str(file), "--limit", "3")
    answers = [json.loads(line) for line in done.out.splitlines()]

    assert done.status == 0
    assert [(one["id"], [hit["id"] for hit in one["hits"]]) for one in answers] == [
        ("a", ["1"]),
        (7, ["2"]),
        (None, []),
    ]
    assert {"hits", "entities", "facts"} <= set(answers[0])
    assert done.err.count("searched by words only") == 1


def test_a_bad_line_of_queries_is_a_finding_and_the_others_are_answered(
    gmem: Gmem, store: SmallStore, tmp_path: Path
) -> None:
    file = tmp_path / "queries.jsonl"
    lines = (
        b"{",
        b"[1]",
        b'{"query": 1}',
        b'{"query": "x", "scopes": "global"}',
        b'{"query": "x", "scopes": ["y"]}',
        b'{"query": "\xff"}',
        b'{"query": "x", "recipe": "semantic"}',
        b'{"query": "x", "limit": 0}',
        b'{"query": "x", "offset": true}',
        b'{"query": "x", "id": NaN}',
        b"[" * 100_000,
        b'{"id": 1, "query": "x"}',
    )
    file.write_bytes(b"\n".join(lines))

    done = gmem("--queries", str(file))

    assert done.status == 1
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert [one["line"] for one in answers] == [*range(1, len(lines) + 1)]
    assert [one["error"]["code"] for one in answers if "error" in one] == [
        "bad-json", *["bad-query"] * 4, "bad-json", *["bad-query"] * 3, "bad-json", "bad-json"
    ]  # fmt: skip
    assert answers[-1]["id"] == 1
    assert not any(word in done.err for word in ("Expecting", "codec", "char ", "recursion"))
    for number, rule in enumerate(("bad-json", *["bad-query"] * 4, "bad-json"), start=1):
        assert any(
            line.startswith(f"{file}:{number}:1: error: ") and line.endswith(f"[{rule}]")
            for line in done.err.splitlines()
        ), (number, done.err)


def test_a_query_of_a_file_may_have_its_own_limit_and_offset(
    gmem: Gmem, store: SmallStore, tmp_path: Path
) -> None:
    for number in range(4):
        store.memory("red car", id_=f"m{number}")
    file = tmp_path / "queries.jsonl"
    file.write_text('{"query":"car","limit":1}\n{"query":"car","limit":2,"offset":1}\n{"query":"car"}\n')

    answers = [json.loads(line) for line in gmem("--queries", str(file), "--limit", "3").out.splitlines()]

    assert [[hit["id"] for hit in one["hits"]] for one in answers] == [
        ["m0"], ["m1", "m2"], ["m0", "m1", "m2"]
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_a_file_without_a_query_is_status_3(gmem: Gmem, store: SmallStore, tmp_path: Path, text: str) -> None:
    (tmp_path / "none.jsonl").write_text(text)

    done = gmem("--queries", str(tmp_path / "none.jsonl"))

    assert (done.status, done.out) == (3, "")
    assert "holds no query [nothing-usable]" in done.err


def test_since_and_until_judge_when_an_entity_was_stored(gmem: Gmem, store: SmallStore) -> None:
    store.entity("Red", "colour")

    assert len(gmem("red", "--json").answer["entities"]) == 1
    assert len(gmem("red", "--since", NOW, "--until", NOW, "--json").answer["entities"]) == 1
    for late in (("--since", "2100-01-01"), ("--until", "1999-01-01")):
        answer = gmem("red", *late, "--json").answer
        assert (answer["entities"], answer["totals"]["entities"]) == ([], 0)


def test_the_kind_stands_with_a_name_that_several_entities_have(gmem: Gmem, store: SmallStore) -> None:
    planet, sun = store.entity("Mercury", "planet"), store.entity("Sun", "star")
    store.entity("Mercury", "metal")
    store.memory("It is hot there.", about=[planet, sun])

    assert gmem("hot").out.splitlines()[0].endswith("  Mercury (planet), Sun")
    hit = gmem("hot", "--json").answer["hits"][0]
    assert hit["about"] == ["Mercury", "Sun"]
    assert [(one["name"], one["kind"], one["scope"]) for one in hit["about_refs"]] == [
        ("Mercury", "planet", "global"), ("Sun", "star", "global"),
    ]  # fmt: skip


def test_queries_come_from_standard_input_too(
    gmem: Gmem, store: SmallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.memory("red car", id_="1")
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b'{"id": 1, "query": "car"}\n')))

    assert json.loads(gmem("--queries", "-").out)["hits"][0]["id"] == "1"


# ---- meaning ----------------------------------------------------------------------------------------


def test_a_store_without_vectors_is_searched_by_words(
    gmem: Gmem, store: SmallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHMEM_EMBEDDINGS", "on")
    store.memory("red car")

    done = gmem("car")

    assert "red car" in done.out
    assert done.err == (
        "note: searched by words only: the store has no vectors yet; 'gmem reembed' makes them\n"
    )
    assert gmem("car", "--recipe", "lexical").err == ""


def test_a_model_that_is_missing_leaves_the_words(gmem: Gmem, monkeypatch: pytest.MonkeyPatch) -> None:
    SmallStore(gmem.db, SynonymEncoder()).memory("red car")
    monkeypatch.setenv("GRAPHMEM_EMBEDDINGS", "on")
    monkeypatch.setenv("GRAPHMEM_EMBEDDING_MODEL", str(gmem.db.parent / "no-such-model"))

    done = gmem("car")

    assert done.status == 0
    assert "red car" in done.out
    assert done.err.startswith("note: searched by words only: ")
    assert gmem("car", "--recipe", "semantic").status == 2


def test_a_search_by_words_loads_no_numeric_library(gmem: Gmem) -> None:
    SmallStore(gmem.db, SynonymEncoder()).memory("red car")
    heavy = (
        "numpy",
        "onnxruntime",
        "torch",
        "tokenizers",
        "sentence_transformers",
        "sqlite_vec",
        "yaml",
        "mcp",
    )
    script = (
        "import sys; from graphmem.cli import main; status = main(sys.argv[1:]); "
        f"print(status, [name for name in {heavy} if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", script, "search", "car", "--db", str(gmem.db)],
        capture_output=True, text=True, check=True, encoding="utf-8",
    )  # fmt: skip

    assert done.stdout.endswith("\n0 []\n")
