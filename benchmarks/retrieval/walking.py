"""How long reading the graph around an entity takes, on the public graph CoDEx-S."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from graphmem.store import Store
from graphmem.store.filters import Filters
from graphmem.store.graph import Graph
from graphmem.times import now
from graphmem.traverse import Subgraph, expand, reach

from . import stores
from .answering import percentile
from .sets import DataMissingError

DEPTHS: Final = (1, 2, 3)
_FILES: Final = ("train.txt", "valid.txt", "test.txt")
_EVERY: Final = 40
"""The walk starts from every so manieth entity."""


def triples(data: Path) -> str:
    """The graph as short triples, one on each line. Raises `DataMissingError`."""
    found = []
    for name in _FILES:
        path = data / "kg" / "codex-s" / name
        if not path.is_file():
            raise DataMissingError(f"no file {path}")
        found += [json.dumps(line.split("\t")) for line in path.read_text(encoding="utf-8").splitlines()]
    return "".join(f"{line}\n" for line in found)


def measure(data: Path, cache: Path) -> list[dict[str, Any]]:
    """The times of walks of each depth, with and without the relations among what they reach."""
    path, _ = stores.build("codex", triples(data), None, cache)
    rows = []
    with Store(path) as store:
        graph = Graph(store.db, Filters(now(), ("global",)))
        entities: Any = store.db.execute("SELECT pk FROM entity ORDER BY pk").fetchall()
        starts: list[int] = [pk for (pk,) in entities[::_EVERY]]
        for depth in DEPTHS:
            for what, walk in (("neighbours", reach), ("subgraph", expand)):
                walk(graph, starts[:1], depth)
                rows.append({"what": what, "depth": depth, **_times(graph, starts, depth, walk)})
    return rows


def _times(
    graph: Graph, starts: list[int], depth: int, walk: Callable[[Graph, list[int], int], Subgraph]
) -> dict[str, float]:
    times, nodes, edges = [], [], []
    for start in starts:
        began = time.perf_counter()
        found = walk(graph, [start], depth)
        times.append((time.perf_counter() - began) * 1000)
        nodes.append(len(found.nodes))
        edges.append(len(found.edges))
    return {
        "p50_ms": round(percentile(times, 0.5), 2),
        "p95_ms": round(percentile(times, 0.95), 2),
        "nodes": percentile(nodes, 0.5),
        "relations": percentile(edges, 0.5),
    }


def lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The times as a table."""
    yield f"{'CoDEx-S':<12}{'depth':>6}{'p50 ms':>9}{'p95 ms':>9}{'nodes':>8}{'relations':>11}"
    for row in rows:
        yield (
            f"{row['what']:<12}{row['depth']:>6}{row['p50_ms']:>9.1f}{row['p95_ms']:>9.1f}"
            f"{row['nodes']:>8,}{row['relations']:>11,}"
        )
