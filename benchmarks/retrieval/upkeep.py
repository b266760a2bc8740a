"""What finding mentions costs: in a bulk import, and in a small write into a store of many entities."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from graphmem.ingest import run
from graphmem.options import ImportOptions
from graphmem.store import Store

ENTITIES: Final = 10_000
MEMORIES: Final = 10_000
WRITTEN: Final = 10
ROUNDS: Final = 5
_WORDS: Final = 30
_SEED: Final = 17


def _entities(rng: random.Random, words: Sequence[str], count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        name = f"{' '.join(rng.choices(words, k=2)).title()} {number}"
        yield {"type": "entity", "name": name, "kind": "service"}


def _memories(
    rng: random.Random, words: Sequence[str], names: Sequence[str], count: int
) -> Iterator[dict[str, Any]]:
    """Memories that name an entity each, somewhere in their text."""
    for _ in range(count):
        said = rng.choices(words, k=_WORDS)
        said.insert(rng.randrange(_WORDS), rng.choice(names))
        yield {"type": "memory", "content": " ".join(said)}


def _seconds(store: Store, path: Path, *, mentions: bool) -> float:
    began = time.perf_counter()
    run(store, ImportOptions([str(path)], mentions=mentions))
    return time.perf_counter() - began


def measure(words: Sequence[str], entities: int = ENTITIES, memories: int = MEMORIES) -> dict[str, float]:
    """Seconds of a bulk import and milliseconds of a small write, each with mentions and without."""
    rng = random.Random(_SEED)
    made = list(_entities(rng, words, entities))
    names = [record["name"] for record in made]
    bulk = [*made, *_memories(rng, words, names, memories)]
    found: dict[str, float] = {"entities": entities, "memories": memories}
    with TemporaryDirectory(prefix="mentions-") as folder:
        source = Path(folder) / "bulk.jsonl"
        source.write_text("".join(json.dumps(record) + "\n" for record in bulk), encoding="utf-8")
        for name, mentions in (("with", True), ("without", False)):
            with Store(Path(folder) / f"{name}.db", write=True) as store:
                found[f"bulk_{name}_s"] = round(_seconds(store, source, mentions=mentions), 2)
                times = []
                for number in range(ROUNDS):
                    small = Path(folder) / f"{name}{number}.jsonl"
                    written = _memories(rng, words, names, WRITTEN)
                    small.write_text("".join(json.dumps(one) + "\n" for one in written), encoding="utf-8")
                    times.append(_seconds(store, small, mentions=mentions))
                found[f"small_{name}_ms"] = round(sorted(times)[ROUNDS // 2] * 1000, 1)
    return found


def lines(found: dict[str, float]) -> Iterator[str]:
    """The times as text."""
    yield (
        f"mentions, {found['entities']:,.0f} entities and {found['memories']:,.0f} memories: bulk import "
        f"{found['bulk_with_s']:.2f} s, without mentions {found['bulk_without_s']:.2f} s"
    )
    yield (
        f"mentions, {WRITTEN} memories into that store: {found['small_with_ms']:.1f} ms, "
        f"without mentions {found['small_without_ms']:.1f} ms"
    )
