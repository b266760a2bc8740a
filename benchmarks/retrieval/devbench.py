"""DevBench: notes of a software project, questions about them, and questions that nothing answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from .sets import BenchmarkSet, Line, Question, read_json

METRICS: Final = ("recall@5", "mrr", "refused-negative", "refused-answerable")


def load(data: Path) -> BenchmarkSet:
    """The set from its file. Raises `DataMissingError`."""
    return build(read_json(data, "devbench/devbench_dataset.json"))


def build(parsed: Mapping[str, Any]) -> BenchmarkSet:
    """The set of the parsed file. The tags by which it marks right answers are not imported."""
    marks = {memory["id"] for memory in parsed["memories"]} | {"devbench"}
    lines: list[Line] = [
        {
            "type": "memory",
            "id": memory["id"],
            "content": memory["content"],
            "memory_type": memory["memory_type"],
            "tags": [tag for tag in memory["tags"] if tag not in marks],
            "created_at": memory["created_at_iso"],
        }
        for memory in parsed["memories"]
    ]
    by_tag: dict[str, set[str]] = {}
    for memory in parsed["memories"]:
        for tag in memory["tags"]:
            by_tag.setdefault(tag, set()).add(memory["id"])
    questions = [
        Question(one["id"], one["question"], _gold(by_tag, one["expected_tags"]), one["category"])
        for one in parsed["queries"]
    ]
    title = f"DevBench, {len(lines)} notes"
    return BenchmarkSet("devbench", title, lines, questions, METRICS)


def _gold(by_tag: Mapping[str, set[str]], tags: list[str]) -> frozenset[str]:
    return frozenset[str]().union(*(by_tag.get(tag, set()) for tag in tags))
