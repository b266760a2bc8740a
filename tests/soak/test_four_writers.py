"""Two servers and two commands write to one store at once, with vectors; nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from graphmem.embed import EmbeddingConfig, load
from graphmem.recall import Query, search
from graphmem.store import Store
from graphmem.store.filters import Filters
from graphmem.store.search import Searcher
from graphmem.times import now

sys.path.insert(0, str(Path(__file__).parents[1] / "mcp"))

from mcp_client import GMEM, HELLO, environment, lines, started, tool_call
from test_embed_tiny import save_bert

pytestmark = [pytest.mark.slow, pytest.mark.model]

EACH = 1_000
AT_ONCE = 10


def _texts(name: str) -> list[str]:
    """Texts that differ in letters, which are all that the tiny model knows."""
    letters = ["".join(chr(97 + number // 26**place % 26) for place in range(3)) for number in range(EACH)]
    return [f"{name} {word} and {word[::-1]}" for word in letters]


def test_four_processes_write_a_thousand_memories_each(tmp_path: Path) -> None:
    db, home, model = tmp_path / "memory.db", tmp_path / "home", save_bert(tmp_path / "tiny", "mean")
    env = {"GRAPHMEM_EMBEDDINGS": "on", "GRAPHMEM_EMBEDDING_MODEL": str(model)}
    encoder = load(EmbeddingConfig(str(model), True, home)).encoder
    assert encoder is not None
    encoder.encode(["compiled before anybody needs it"], "query")

    def serve(name: str) -> None:
        records = [{"content": text} for text in _texts(name)]
        calls = [
            tool_call(start + 2, "remember", records=records[start : start + AT_ONCE])
            for start in range(0, EACH, AT_ONCE)
        ]
        server = started(home, db, env=env)
        out, _ = server.communicate(lines(*HELLO, *calls), timeout=600)
        answers = [json.loads(line) for line in out.splitlines()]
        assert len(answers) == len(calls) + 1
        assert not any(one["result"].get("isError") for one in answers)
        assert server.returncode == 0

    def command(name: str) -> None:
        texts = _texts(name)
        for start in range(0, EACH, EACH // 4):
            file = tmp_path / f"{name}-{start}.jsonl"
            records = [{"type": "memory", "content": text} for text in texts[start : start + EACH // 4]]
            file.write_text("".join(json.dumps(one) + "\n" for one in records))
            subprocess.run([*GMEM[:-1], "import", str(file), "--db", str(db)], env=environment(home, **env),
                           cwd=tmp_path, check=True, capture_output=True)  # fmt: skip

    names = ["alpha", "beta", "gamma", "delta"]
    with ThreadPoolExecutor(4) as threads:
        running = [threads.submit(serve if place < 2 else command, name) for place, name in enumerate(names)]
        for each in running:
            each.result()

    texts = [text for name in names for text in _texts(name)]
    with Store(db) as store:
        assert sorted(text for (text,) in store.db.execute("SELECT content FROM memory")) == sorted(texts)
        searcher = Searcher(store.db, Filters(now(), None))
        for text in texts[::37]:
            by_words = search(searcher, Query(f'"{text}"', searcher.filters, 1, recipe="lexical"), None)
            by_meaning = search(searcher, Query(text, searcher.filters, 5, recipe="semantic"), encoder)
            assert by_words.hits[0]["content"] == text
            assert text in [hit["content"] for hit in by_meaning.hits]
        assert store.db.execute("SELECT count(DISTINCT item) FROM chunk WHERE kind = 1").get == 4 * EACH
