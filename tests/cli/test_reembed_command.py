"""`gmem reembed` as people use it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import write_records

if TYPE_CHECKING:
    from command_line import Run

RECORDS = [
    {"type": "memory", "content": "billing sends the invoice"},
    {"type": "memory", "content": "goat " * 60},
    {"type": "entity", "name": "goat", "state": "archived"},
]


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return write_records(tmp_path / "records.jsonl", RECORDS)


def test_a_store_that_is_not_there_is_an_error_and_never_made(run: Run, tmp_path: Path) -> None:
    done = run("reembed", "--db", tmp_path / "none.db", "--json")

    assert (done.status, done.json["error"]["code"]) == (2, "store-not-found")
    assert not (tmp_path / "none.db").exists()


def test_without_embeddings_nothing_can_be_done(run: Run, records: Path) -> None:
    run("import", records)

    done = run("reembed")

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("error: no vectors can be made: embeddings are off (GRAPHMEM_EMBEDDINGS=off)")


@pytest.mark.model
def test_vectors_are_made_later_and_made_anew_for_another_model(
    run: Run, records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from test_embed_tiny import save_bert, save_static

    static, bert = save_static(tmp_path / "static"), save_bert(tmp_path / "bert", "mean")
    monkeypatch.setenv("GRAPHMEM_EMBEDDINGS", "on")
    monkeypatch.setenv("GRAPHMEM_EMBEDDING_MODEL", str(static))
    assert run("import", records, "--no-embeddings").status == 0
    assert run("status", "--json").json["encoder"] is None

    done = run("reembed")
    assert done.status == 0
    assert done.out == "2 memories, 1 entity have new vectors (3 texts encoded by static)\n"
    status = run("status", "--json").json
    assert (status["encoder"]["name"], status["encoder"]["dimension"], status["vectors"]) == ("static", 8, 2)
    hits = run("search", "goat", "--recipe", "semantic", "--json").json["hits"]
    assert hits[0]["content"].startswith("goat")
    assert run("reembed").out == "nothing to do: everything has its vectors by static\n"

    monkeypatch.setenv("GRAPHMEM_EMBEDDING_MODEL", str(bert))
    refused = run("import", write_records(tmp_path / "more.jsonl", [{"type": "memory", "content": "more"}]))
    assert (refused.status, "[encoder-mismatch]" in refused.err, "gmem reembed" in refused.err) == (
        2,
        True,
        True,
    )
    report = run("reembed", "--json").json
    assert (report["encoder"]["name"], report["encoder"]["dimension"], report["replaced"]["name"]) == (
        "bert", 32, "static",
    )  # fmt: skip
    assert report["items"] == {"entity": 1, "memory": 2, "relation": 0}
    assert report["encoded"] > 3  # the long text is cut for a model that reads 32 tokens
    assert run("status", "--json").json["vectors"] == report["encoded"] - 1
    assert run("search", "goat", "--recipe", "semantic", "--json").json["recipe"] == "semantic"
