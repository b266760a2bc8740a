"""Inputs for the benchmarks, made from a fixed seed."""

from __future__ import annotations

import json
import random
from pathlib import Path

_WORDS = [
    "service", "token", "session", "cache", "queue", "database", "index", "vector", "graph", "memory",
    "recall", "import", "export", "sync", "commit", "batch", "record", "resolve", "name", "alias",
    "scope", "origin", "digest", "encoder", "chunk", "search", "hybrid", "lexical", "semantic",
    "fusion", "rank", "score", "limit", "page", "filter", "time", "valid", "deploy", "rollback",
    "latency", "timeout", "retry", "owner", "review", "incident", "runbook", "alert",
]  # fmt: skip


def mixed_records(count: int, seed: int = 7) -> list[str]:
    """JSONL lines of an equal mix of entities, memories and relations, in random order.

    Each memory is about one entity; each relation joins two; every third entity has an alias.
    """
    rng = random.Random(seed)
    third = count // 3

    def name(number: int) -> str:
        return f"Component{number} {_WORDS[number % len(_WORDS)]}"

    lines: list[dict[str, object]] = []
    for number in range(third):
        lines.append(
            {
                "type": "entity",
                "name": name(number),
                "kind": ("service", "library", "person")[number % 3],
                "description": " ".join(rng.choices(_WORDS, k=6)),
                **({"aliases": [f"c{number}"]} if number % 3 == 0 else {}),
            }
        )
        lines.append(
            {
                "type": "memory",
                "content": f"Note {number}: " + " ".join(rng.choices(_WORDS, k=16)),
                "about": [name(rng.randrange(third))],
            }
        )
        lines.append(
            {
                "type": "relation",
                "subject": name(rng.randrange(third)),
                "predicate": rng.choice(("depends_on", "uses", "owns", "replaces")),
                "object": name(rng.randrange(third)),
            }
        )
    rng.shuffle(lines)
    return [json.dumps(line) for line in lines]


def write_mixed(path: Path, count: int, seed: int = 7) -> None:
    """Writes `count` mixed records to a JSONL file."""
    path.write_text("\n".join(mixed_records(count, seed)) + "\n", encoding="utf-8")
