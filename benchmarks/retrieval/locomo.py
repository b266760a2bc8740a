"""LoCoMo by the turn protocol of the LMEB benchmark: one memory for each turn of a conversation.

A question is answered from its own conversation only; right are the turns that the data names as evidence.
The figure of the set is the mean of its five categories.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from .sets import BenchmarkSet, DataMissingError, Line, Question, read_json

CATEGORIES: Final = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
"""What the codes of the data mean; some harnesses swap 1 and 4."""

METRICS: Final = ("ndcg@10", "recall@5", "recall@10")
_FILES: Final = ("locomo-dev/locomo-dev.json", "locomo10.json")


def load(data: Path) -> BenchmarkSet:
    """The set from the first of its files that is in a folder. Raises `DataMissingError`."""
    for name in _FILES:
        try:
            return build(read_json(data, name))
        except DataMissingError:
            continue
    raise DataMissingError(f"neither of {', '.join(_FILES)} is in {data}")


def build(conversations: Sequence[Mapping[str, Any]]) -> BenchmarkSet:
    """The set of parsed conversations."""
    lines: list[Line] = []
    questions: list[Question] = []
    unanswerable = 0
    for conversation in conversations:
        name = conversation["sample_id"]
        turns = list(_turns(name, conversation["conversation"]))
        speakers = sorted({turn["about"][0] for turn in turns})
        lines += [_speaker(name, speaker) for speaker in speakers]
        lines += turns
        known = {turn["id"] for turn in turns}
        for number, asked in enumerate(conversation["qa"]):
            gold = frozenset(f"{name}:{turn}" for turn in asked["evidence"]) & known
            if not gold:
                unanswerable += 1
                continue
            group = CATEGORIES[asked["category"]]
            scopes = (_scope(name),)
            questions.append(Question(f"{name}:q{number}", asked["question"], gold, group, scopes))
    title = f"LoCoMo, {len(conversations)} conversations, turn protocol"
    notes = (f"{unanswerable} questions without a usable evidence id are left out",) if unanswerable else ()
    return BenchmarkSet("locomo", title, lines, questions, METRICS, macro=True, notes=notes)


def _scope(name: str) -> str:
    return f"conversation:{name}"


def _speaker(name: str, speaker: str) -> Line:
    return {"type": "entity", "name": speaker, "kind": "person", "scope": _scope(name)}


def _turns(name: str, conversation: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The turns of a conversation as memories about who speaks, at the time of their session."""
    for key, session in conversation.items():
        if not isinstance(session, list):
            continue
        for position, turn in enumerate(session):
            yield {
                "type": "memory",
                "id": f"{name}:{turn['dia_id']}",
                "content": turn["text"],
                "about": [turn["speaker"]],
                "scopes": [_scope(name)],
                "source": {"uri": f"{name}/{key}", "position": position},
                "valid_at": _time(conversation[f"{key}_date_time"]),
            }


def _time(text: str) -> str:
    """`1:56 pm on 8 May, 2023` in ISO 8601; the hour is taken as UTC."""
    moment = datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
