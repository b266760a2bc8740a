"""What a benchmark set is: records to import, questions with their right answers, figures to take."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

Line: TypeAlias = dict[str, Any] | list[str]
"""One line of canonical JSONL: a record, or a short triple as it came."""


class DataMissingError(Exception):
    """The files of a set are not where they were looked for."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the ids of the memories that answer it, and the group it is counted in.

    `scopes` limits what may answer. Nothing answers a question without `gold`.
    """

    id: str
    text: str
    gold: frozenset[str]
    group: str = ""
    scopes: tuple[str, ...] = ("global",)


@dataclass(frozen=True, slots=True)
class BenchmarkSet:
    """One set, ready to be imported and asked.

    `metrics` are names of figures (see `metrics.py`) in the order of the table, the first being the one that
    recipes are compared by. With `macro` the figure of the set is the plain mean of its groups, else the
    mean of its questions. `notes` say what is wrong with the data.
    """

    name: str
    title: str
    lines: Sequence[Line]
    questions: Sequence[Question]
    metrics: tuple[str, ...]
    macro: bool = False
    notes: tuple[str, ...] = ()

    def jsonl(self) -> str:
        """The records as canonical JSONL."""
        return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self.lines)


def read_json(folder: Path, name: str) -> Any:
    """The content of a data file. Raises `DataMissingError`."""
    path = folder / name
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataMissingError(f"{name} is not in {folder}") from None
