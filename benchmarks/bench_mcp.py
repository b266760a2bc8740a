"""The MCP server: how fast it starts, and what the protocol adds to an answer.

    python benchmarks/bench_mcp.py [--memories 10000] [--repeats 15] [--json]

A start is from the command to the first answer over pipes, beside a Python that only imports the library
`mcp`. Calls go through a client in the same process to a server over a store of `--memories` memories;
beside each stands the core's own search for the same query. Vectors come from digests and are made
beforehand, so encoding takes no part. The figure is the median.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import shake_256
from pathlib import Path
from typing import Any

from _data import mixed_records
from anyio.from_thread import start_blocking_portal
from mcp import Client

from graphmem.embed import Availability, Chunk, EncoderInfo
from graphmem.ingest import run
from graphmem.mcp.server import build
from graphmem.mcp.service import Service
from graphmem.options import ImportOptions
from graphmem.recall import Query, search
from graphmem.store import Store
from graphmem.store.filters import Filters
from graphmem.store.search import Searcher
from graphmem.times import now

DIMENSION = 384
CLIENT = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": CLIENT}


class DigestEncoder:
    """A vector for each text, made of its digest: as long as those of a model, and meaningless."""

    info = EncoderInfo("digest", "", "0" * 64, DIMENSION)

    def chunks(self, text: str) -> list[Chunk]:
        """The text as one piece."""
        return [Chunk(0, len(text))]

    def encode(self, texts: Sequence[str], role: str, progress: Any = None) -> list[bytes]:  # noqa: ARG002
        """A unit vector for each text."""
        made = []
        for text in texts:
            numbers = [byte - 127.5 for byte in shake_256(text.encode()).digest(DIMENSION)]
            length = math.sqrt(sum(number * number for number in numbers))
            made.append(struct.pack(f"<{DIMENSION}f", *(number / length for number in numbers)))
        return made


def median(action: Callable[[Any], object], given: Sequence[Any]) -> float:
    """The median time of an action, in milliseconds."""
    taken = []
    for one in given:
        began = time.perf_counter()
        action(one)
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


# ---- starts ---------------------------------------------------------------------------------------


def first_answer(db: Path, env: dict[str, str]) -> None:
    """Starts a server, waits for its first answer, and ends it."""
    server = subprocess.Popen(
        [sys.executable, "-P", "-m", "graphmem", "mcp", "--db", str(db)], env=env, cwd=db.parent,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(HELLO).encode() + b"\n")
    server.stdin.flush()
    assert server.stdout.readline()
    server.communicate()


def starts(folder: Path, repeats: int) -> dict[str, float]:
    """A start of the server and of the library alone, in turn."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "GRAPHMEM"))}
    env["GRAPHMEM_HOME"] = str(folder / "home")
    library = [sys.executable, "-c", "import mcp"]
    ours, theirs = [], []
    for _ in range(repeats):
        ours.append(median(lambda _: first_answer(folder / "memory.db", env), [0]))
        theirs.append(median(lambda _: subprocess.run(library, env=env, check=True), [0]))
    return {"start to first answer": statistics.median(ours), "import mcp": statistics.median(theirs)}


# ---- calls ----------------------------------------------------------------------------------------


def fill(db: Path, memories: int, encoder: DigestEncoder) -> list[str]:
    """A store of so many memories with what belongs to them; some of their texts, to ask for."""
    file = db.with_suffix(".jsonl")
    lines = list(mixed_records(memories * 3))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with Store(db, write=True) as store:
        run(store, ImportOptions([str(file)], format="jsonl", scope="global"), encoder)
    texts = [json.loads(line)["content"] for line in lines if '"type": "memory"' in line]
    return [" ".join(text.split()[:6]) for text in texts[:: max(len(texts) // 60, 1)]]


@contextmanager
def connected(db: Path, encoder: DigestEncoder) -> Iterator[Callable[..., Any]]:
    """What calls a tool through the protocol."""
    service = Service(db, "global", lambda: Availability(encoder), encoder_name="digest")
    service.model.wait()
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(build(service))) as client,
    ):

        def call(tool: str, **given: Any) -> Any:
            result = portal.call(client.call_tool, tool, given)
            assert not result.is_error, result.content
            return result.structured_content

        yield call
    service.close()


def calls(db: Path, memories: int) -> dict[str, float]:
    """The tools that read, and the core's search beside `recall`."""
    encoder = DigestEncoder()
    queries = fill(db, memories, encoder)
    figures = {}
    with Store(db) as store, connected(db, encoder) as call:
        searcher = Searcher(store.db, Filters(now(), ("global",)))

        def core(query: str) -> object:
            return search(searcher, Query(query, searcher.filters, explain=True), encoder)

        for query in queries[:5]:
            core(query)
            call("recall", query=query)
        figures["recall"] = median(lambda query: call("recall", query=query), queries)
        figures["search"] = median(core, queries)
        names = [row["name"] for row in call("inspect", type="entity", limit=50)["items"]]
        figures["inspect"] = median(lambda name: call("inspect", id=name), names)
        figures["graph"] = median(lambda name: call("graph", entities=[name]), names)
        figures["stats"] = median(lambda _: call("stats"), range(10))
    return figures


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures = {**starts(folder, options.repeats), **calls(folder / "memory.db", options.memories)}
    if options.json:
        print(json.dumps({key: round(value, 2) for key, value in figures.items()}, indent=1))
        return
    for key, value in figures.items():
        print(f"{key:<22} {value:8.1f} ms")
    start = figures["start to first answer"] / figures["import mcp"]
    print(f"start, as a multiple of importing the library: {start:.2f}")
    print(f"recall, as a multiple of the core's search:    {figures['recall'] / figures['search']:.2f}")


if __name__ == "__main__":
    main()
