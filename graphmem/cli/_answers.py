"""An answer of recall as text for people."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator
from typing import Any, Final

from graphmem.recall import HARDLY_RELEVANT, Answer, Query
from graphmem.terminal import visible

_LINES: Final = 4
_MAX_WIDTH: Final = 110
_NAMES: Final = (
    ("hits", "memory", "memories"),
    ("facts", "fact", "facts"),
    ("entities", "entity", "entities"),
)


def as_text(
    answer: Answer, query: Query, scopes: tuple[str, ...] | None, shared: frozenset[str] = frozenset()
) -> str:
    """The answer: memories first, then facts and entities on a line each, then what is not shown.

    With a name that is among `shared` stands the kind, since several entities have it.
    """
    width = min(shutil.get_terminal_size().columns, _MAX_WIDTH)
    blocks = [
        "\n".join(_memory(hit, query.offset + place, width, query.explain, shared))
        for place, hit in enumerate(answer.hits, start=1)
    ]
    facts, entities = _worth_showing(answer)
    blocks += _section("facts", facts, answer.facts, query.explain, _fact)
    blocks += _section("entities", entities, answer.entities, query.explain, _entity)
    blocks.append("\n".join(_summary(answer, query, scopes)))
    return "\n\n".join(blocks)


def _worth_showing(answer: Answer) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Facts and entities, the hardly relevant ones only where there is nothing better to show."""
    everything = [*answer.hits, *answer.facts, *answer.entities]
    least = HARDLY_RELEVANT if any(one["relevance"] >= HARDLY_RELEVANT for one in everything) else 0.0
    facts = [one for one in answer.facts if one["relevance"] >= least]
    return facts, [one for one in answer.entities if one["relevance"] >= least]


def _section(
    name: str, shown: list[dict[str, Any]], found: list[dict[str, Any]], explain: bool, line: Any
) -> list[str]:
    if not shown:
        return []
    lines = [name]
    for one in shown:
        lines.append(f"  {one['relevance']:.2f}  {line(one)}")
        if explain:
            lines.append(f"        {_why(one)}")
    if len(shown) < len(found):
        lines.append(f"        and {len(found) - len(shown)} hardly relevant (--json shows them)")
    return ["\n".join(lines)]


def _memory(
    hit: dict[str, Any], place: int, width: int, explain: bool, shared: frozenset[str]
) -> Iterator[str]:
    head = " · ".join(visible(part) for part in (hit["title"], about(hit, shared)) if part)
    yield f"{place}. {hit['relevance']:.2f}  {head or visible(hit['id'])}"
    text = " ".join(visible(hit["content"], lines=True).split())
    yield from textwrap.wrap(
        text[: width * (_LINES + 1)], width, initial_indent="   ", subsequent_indent="   ",
        max_lines=_LINES, placeholder=" …", break_on_hyphens=False,
    )  # fmt: skip
    yield f"   {' · '.join(visible(part) for part in details(hit))}"
    if explain:
        yield f"   {_why(hit)}"


def about(hit: dict[str, Any], shared: frozenset[str]) -> str:
    """What a memory is about, by name; with the kind where the name is among `shared`."""
    refs = hit["about_refs"]
    told = (f"{one['name']} ({one['kind']})" if one["name"] in shared else one["name"] for one in refs)
    return ", ".join(dict.fromkeys(told))


def details(hit: dict[str, Any]) -> Iterator[str]:
    """What is told of a memory below its content, part by part."""
    yield hit["memory_type"]
    yield (hit["valid_at"] or hit["created_at"])[:10]
    yield from hit["scopes"]
    if hit["tags"]:
        yield " ".join(f"#{tag}" for tag in hit["tags"])
    source = hit["source"]
    if source:
        yield source if isinstance(source, str) else f"{source['uri']}:{source['position']}"
    if hit["title"] or hit["about"]:
        yield hit["id"]


def _fact(fact: dict[str, Any]) -> str:
    triple = f"{fact['subject']} {fact['predicate']} {fact['object']}"
    since = f" ({fact['valid_at'][:10]})" if fact["valid_at"] else ""
    return visible(f"{triple}{since}" + (f": {fact['fact']}" if fact["fact"] else ""))


def _entity(entity: dict[str, Any]) -> str:
    said = f": {entity['description']}" if entity["description"] else ""
    return visible(
        textwrap.shorten(f"{entity['name']} ({entity['kind']}){said}", _MAX_WIDTH, placeholder=" …")
    )


def _why(one: dict[str, Any]) -> str:
    """What each channel said of a hit."""
    parts = [f"score {one['score']:.3f}"]
    for name, channel in one["channels"].items():
        rank = f" (rank {channel['rank']})" if channel["rank"] else ""
        words = f" by {', '.join(channel['words'])}" if channel.get("words") else ""
        parts.append(f"{name} {channel['score']:.3g}{rank}{words}")
    return visible("; ".join(parts))


def _summary(answer: Answer, query: Query, scopes: tuple[str, ...] | None) -> Iterator[str]:
    """How much was found, how much of it is shown, and what lies elsewhere."""
    counts = []
    for key, one, many in _NAMES:
        total = answer.totals[key]
        if total or key == "hits":
            shown = len(getattr(answer, key))
            part = f"{query.offset + 1}-{query.offset + shown} of " if 0 < shown < total else ""
            counts.append(f"{part}{total:,} {one if total == 1 else many}")
    more = f"; --offset {query.offset + query.limit} shows more" if answer.truncated else ""
    yield f"{', '.join(counts)}{more}"
    if answer.elsewhere is not None:
        there = answer.elsewhere
        held = [
            f"{there[key]:,} {one if there[key] == 1 else many}" for key, one, many in _NAMES if there[key]
        ]
        where = f"{there['scopes']:,} other scope{'' if there['scopes'] == 1 else 's'}"
        yield f"0 here; {', '.join(held)} in {where} (--all-scopes)"
    if answer.empty and scopes is not None:
        yield f"searched: {visible(', '.join(scopes))}"
