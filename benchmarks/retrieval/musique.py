"""MuSiQue: questions that need two to four passages, over passages with triples or with titles only.

`musique` imports each passage as a memory and each triple as a relation stated by its passage, the
malformed ones as they are, so that the import reports them. `musique-mentions` has no triples: the title of
a passage, and the title without its part in brackets, name an entity that the passage is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from .sets import BenchmarkSet, Line, Question, read_json

METRICS: Final = ("recall@5", "recall@2", "recall@10", "all-gold@5")
_FOLDER: Final = "musique-dev"
_TRIPLE: Final = 3
_BRACKETS = re.compile(r"\s*\([^()]*\)\s*$")

Passage: TypeAlias = Mapping[str, Any]


def load_triples(data: Path) -> BenchmarkSet:
    """Passages and triples. Raises `DataMissingError`."""
    passages = read_json(data, f"{_FOLDER}/corpus.json")
    stated = read_json(data, f"{_FOLDER}/openie-triples.json")["docs"]
    return build_triples(passages, stated, read_json(data, f"{_FOLDER}/questions-dev.json"))


def load_mentions(data: Path) -> BenchmarkSet:
    """Passages about the entities of their titles. Raises `DataMissingError`."""
    passages = read_json(data, f"{_FOLDER}/corpus.json")
    return build_mentions(passages, read_json(data, f"{_FOLDER}/questions-dev.json"))


def build_triples(
    passages: Sequence[Passage], stated: Iterable[Passage], asked: Iterable[Passage]
) -> BenchmarkSet:
    """The set of parsed passages, triples by passage, and questions."""
    ids = _ids(passages)
    lines: list[Line] = [_memory(ids[_key(passage)], passage) for passage in passages]
    triples = malformed = 0
    for passage in stated:
        for triple in passage["extracted_triples"]:
            if len(triple) != _TRIPLE:
                malformed += 1
                lines.append(triple)
                continue
            triples += 1
            subject, predicate, object_ = triple
            lines.append(
                {
                    "type": "relation",
                    "subject": subject,
                    "predicate": predicate,
                    "object": object_,
                    "stated_by": [{"id": ids[_key(passage)]}],
                }
            )
    questions = _questions(ids, asked)
    title = f"MuSiQue, {len(passages)} passages with {triples} triples"
    notes = (f"{malformed} triples do not have three parts and are left in the file",) if malformed else ()
    return BenchmarkSet("musique", title, lines, questions, METRICS, notes=notes)


def build_mentions(passages: Sequence[Passage], asked: Iterable[Passage]) -> BenchmarkSet:
    """The set of parsed passages and questions, without triples."""
    ids = _ids(passages)
    titles = sorted({passage["title"] for passage in passages})
    lines: list[Line] = [_entity(title) for title in titles]
    lines += [
        _memory(ids[_key(passage)], passage) | {"about": [{"name": passage["title"]}]} for passage in passages
    ]
    title = f"MuSiQue, {len(passages)} passages and {len(titles)} titles, no triples"
    return BenchmarkSet("musique-mentions", title, lines, _questions(ids, asked), METRICS)


def _key(passage: Passage) -> tuple[str, str]:
    return passage["title"], passage["text"]


def _ids(passages: Sequence[Passage]) -> dict[tuple[str, str], str]:
    return {_key(passage): f"p{number:05}" for number, passage in enumerate(passages)}


def _memory(id_: str, passage: Passage) -> dict[str, Any]:
    return {"type": "memory", "id": id_, "title": passage["title"], "content": passage["text"]}


def _entity(title: str) -> Line:
    short = _BRACKETS.sub("", title)
    aliases = {"aliases": [short]} if short and short != title else {}
    return {"type": "entity", "name": title, **aliases}


def _questions(ids: Mapping[tuple[str, str], str], asked: Iterable[Passage]) -> list[Question]:
    """The questions; right are the passages that support the answer. The group is the number of hops."""
    questions = []
    for one in asked:
        supporting = [passage for passage in one["paragraphs"] if passage["is_supporting"]]
        gold = frozenset(ids[passage["title"], passage["paragraph_text"]] for passage in supporting)
        group = one["id"].partition("_")[0].partition("hop")[0] + "-hop"
        questions.append(Question(one["id"], one["question"], gold, group))
    return questions
