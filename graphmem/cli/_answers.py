"""An answer of recall as text for people."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from graphmem.cli._shared import number
from graphmem.recall import Answer, Query
from graphmem.relevance import HARDLY_RELEVANT
from graphmem.terminal import visible

_LINES: Final = 4
_MAX_WIDTH: Final = 110
_NEAREST: Final = 3
"""How many are shown of an answer without anything relevant."""
_AROUND: Final = 60
"""Tokens of the lines that say what was left out, and of headings."""
_NOTHING: Final = "nothing relevant was found; the nearest:"
_NAMES: Final = (
    ("hits", "memory", "memories"),
    ("facts", "fact", "facts"),
    ("entities", "entity", "entities"),
)


def as_text(
    answer: Answer, query: Query, shared: frozenset[str] = frozenset(), max_tokens: int | None = None
) -> str:
    """The answer: memories first, then facts and entities on a line each, then what is not shown.

    With a name that is among `shared` stands the kind, since several entities have it. Of an answer without
    anything relevant the nearest few are shown, and it is said. With `max_tokens` the text is made to fit.
    """
    width = min(shutil.get_terminal_size().columns, _MAX_WIDTH)
    shown = _worth_showing(answer, query)

    def lines(key: str, one: dict[str, Any], place: int = 1) -> list[str]:
        if key == "hits":
            return list(_memory(one, query.offset + place, width, query.explain, shared))
        said = _fact(one) if key == "facts" else _entity(one)
        why = [f"        {_why(one)}"] if query.explain else []
        return [f"  {one['relevance']:.2f}  {said}", *why]

    if max_tokens is not None:
        from graphmem.budget import bound, tokens

        around = tokens("\n".join(_summary(shown, query))) + _AROUND
        bound(shown, max_tokens, around=around, measure=lambda key, one: tokens("\n".join(lines(key, one))))
    blocks = ["\n".join(lines("hits", hit, place)) for place, hit in enumerate(shown.hits, start=1)]
    for key in ("facts", "entities"):
        told = [line for one in getattr(shown, key) for line in lines(key, one)]
        hardly = len(getattr(answer, key)) - len(getattr(shown, key))
        if told and hardly and answer.relevant and shown.budget is None:
            told.append(f"        and {hardly} hardly relevant (--json shows them)")
        if told:
            blocks.append("\n".join([key, *told]))
    if blocks and not answer.relevant:
        blocks.insert(0, _NOTHING)
    return "\n\n".join([*blocks, "\n".join(_summary(shown, query))])


def _worth_showing(answer: Answer, query: Query) -> Answer:
    """A copy of the answer without hardly relevant facts and entities, where there is something better.

    Of the first page of an answer without anything relevant, only the nearest few are left.
    """
    if not answer.relevant and not query.offset:
        few = 0 if answer.hits else _NEAREST
        return replace(
            answer, hits=answer.hits[:_NEAREST], facts=answer.facts[:few], entities=answer.entities[:few]
        )
    everything = [*answer.hits, *answer.facts, *answer.entities]
    least = HARDLY_RELEVANT if any(one["relevance"] >= HARDLY_RELEVANT for one in everything) else 0.0
    return replace(
        answer,
        facts=[one for one in answer.facts if one["relevance"] >= least],
        entities=[one for one in answer.entities if one["relevance"] >= least],
    )


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
    judged = ", ".join(f"{name} {value:.2f}" for name, value in one["judged"].items() if value is not None)
    parts = [f"relevance by {judged or 'nothing'}", f"score {one['score']:.3f}"]
    for name, channel in one["channels"].items():
        rank = f" (rank {channel['rank']})" if channel["rank"] else ""
        words = f" by {', '.join(channel['words'])}" if channel.get("words") else ""
        way = f" from {' > '.join(map(_step, channel['path']))}" if channel.get("path") else ""
        parts.append(f"{name} {channel['score']:.3g}{rank}{words}{way}")
    return visible("; ".join(parts))


def _step(step: dict[str, str]) -> str:
    """An entity or a memory on the way through the graph."""
    return step["memory"] if "memory" in step else step["name"]


def _summary(answer: Answer, query: Query) -> Iterator[str]:
    """How much was found, how much of it is shown, and what lies elsewhere."""
    counts = []
    for key, one, many in _NAMES:
        total = answer.totals[key]
        if total or key == "hits":
            shown = len(getattr(answer, key))
            part = f"{query.offset + 1}-{query.offset + shown} of " if 0 < shown < total else ""
            counts.append(f"{part}{number(total, one, many)}")
    yield ", ".join(counts) + _more(answer, query)
    if answer.budget is not None and (_left_out(answer) or answer.budget["cut"]):
        yield _cut_short(answer, query)
    if query.min_score and not any(answer.totals.values()) and answer.best_relevance:
        yield f"nothing has a relevance of {query.min_score:g}; the best has {answer.best_relevance:.2f}"
    if answer.elsewhere is not None:
        there = answer.elsewhere
        held = [number(there[key], one, many) for key, one, many in _NAMES if there[key]]
        where = f"{', '.join(held)} in {number(there['scopes'], 'other scope')}"
        with_words = "" if answer.empty else " with a word of the query"
        yield f"{'0' if answer.empty else 'nothing relevant'} here; {where}{with_words} (--all-scopes)"
    scopes = query.filters.scopes
    if answer.empty and scopes is not None:
        yield f"searched: {visible(', '.join(scopes))}"


def _more(answer: Answer, query: Query) -> str:
    """How to see the next page, where there is one."""
    if answer.budget is not None and (_left_out(answer) or answer.budget["cut"]):
        return ""
    few = (
        not answer.relevant
        and not query.offset
        and 0 < len(answer.hits) < min(query.limit, answer.totals["hits"])
    )
    if few or answer.truncated:
        return f"; --offset {query.offset + (len(answer.hits) if few else query.limit)} shows more"
    return ""


def _left_out(answer: Answer) -> list[str]:
    """What did not fit into the tokens that an answer may have, list by list."""
    left = answer.budget["left_out"] if answer.budget else {}
    return [number(left[key], one, many) for key, one, many in _NAMES if left[key]]


def _cut_short(answer: Answer, query: Query) -> str:
    """What a bound on tokens took away, and how to see it."""
    told = answer.budget or {}
    parts = [f"{', '.join(_left_out(answer))} left out"] if _left_out(answer) else []
    if told["cut"]:
        parts.append("the last one cut")
    whole = len(answer.hits) - any(hit.get("cut") for hit in answer.hits)
    page = f", --offset {query.offset + whole}" if whole and whole < answer.totals["hits"] else ""
    return f"fitted into {told['max_tokens']:,} tokens: {', '.join(parts)} (a larger --max-tokens{page} shows more)"
