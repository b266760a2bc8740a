"""Bounding an answer by tokens: how many a text has, about, and how an answer is made to fit.

A model's tokens are estimated without the model, so that the same text always counts the same. Counted
are: a run of Latin letters as one for each four begun, a run of digits as one for each two begun, every
other sign or letter as one, white space as nothing. On prose, notes, code and JSON this is between 0.8
and 1.5 times what the tokenizer of the default model says, and rarely below it; the tokenizers of large
models make fewer of other alphabets.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from unicodedata import category

from graphmem.terminal import to_json

if TYPE_CHECKING:
    from graphmem.recall import Answer

Measure: TypeAlias = Callable[[str, dict[str, Any]], int]
"""The tokens of an item as it is told, by the key under which it stands in an answer."""

MARK: Final = " …"
"""What stands where a text was cut."""

_TEXTS: Final = {"hits": "content", "facts": "fact", "entities": "description"}
"""The lists of an answer in the order of their importance, and the text of their items that can be cut."""

_EXTRAS: Final = ("properties", "channels", "tags", "about_refs", "aliases")
"""What a cut item does without."""

_LEAST: Final = 8
"""Fewer tokens of a text than these are not worth showing."""

_TOKEN = re.compile(r"([A-Za-z\u00c0-\u024f]+)|([0-9]+)|(\s+)|.", re.DOTALL)
_JOINER: Final = "\u200d"


def _cost(match: re.Match[str]) -> int:
    letters, digits, space = match.groups()
    if letters:
        return (len(letters) + 3) // 4
    if digits:
        return (len(digits) + 1) // 2
    return 0 if space else 1


def tokens(text: str) -> int:
    """About how many tokens a text has."""
    return sum(map(_cost, _TOKEN.finditer(text)))


def cut(text: str, limit: int) -> str:
    """The text where it has at most `limit` tokens, else its beginning with a mark; "" where nothing fits.

    It is cut between two words, or between two characters where words are not divided by spaces.
    """
    if tokens(text) <= limit:
        return text
    left, end = limit - tokens(MARK), 0
    for match in _TOKEN.finditer(text):
        left -= _cost(match)
        if left < 0:
            break
        end = match.end()
    kept = text[: _boundary(text, end)].rstrip()
    return kept + MARK if kept else ""


def _boundary(text: str, end: int) -> int:
    """The last place up to `end` that is between two words; `end` when there is only one."""
    if text[end].isspace() or not text[:end].strip():
        return end
    if not text[end].isascii():
        from graphmem import scripts

        if scripts.is_spaceless(text[end]):
            while end and (category(text[end])[0] == "M" or _JOINER in text[end - 1 : end + 1]):
                end -= 1
            return end
    spaces = [match.start() for match in re.finditer(r"\s+", text[:end])]
    return spaces[-1] if spaces and text[: spaces[-1]].strip() else end


def in_json(_key: str, item: dict[str, Any]) -> int:
    """The tokens of an item as JSON."""
    return tokens(to_json(item, indent=None))


def bound(answer: Answer, limit: int, *, around: int = 0, measure: Measure = in_json) -> None:
    """Makes an answer fit into about `limit` tokens: memories first, then facts, then entities, in order.

    Whole items are kept as long as they fit. The text of the first that does not is cut, where that leaves
    something worth reading; such an item says `cut`, and its properties, channels and tags are empty. What
    follows is left out.
    `around` are tokens of whatever is told besides the items. `budget` of the answer says what was done.
    """
    used, full, shortened = around, False, None
    left_out = {}
    for key in _TEXTS:
        items: list[dict[str, Any]] = getattr(answer, key)
        kept: list[dict[str, Any]] = []
        for item in items:
            if full:
                break
            fitting = item
            if used + measure(key, item) > limit:
                full = True
                fitting = _shortened(key, item, limit - used, measure)
                shortened = item["id"] if fitting else None
            if fitting:
                kept.append(fitting)
                used += measure(key, fitting)
        left_out[key] = len(items) - len(kept)
        setattr(answer, key, kept)
    answer.budget = {"max_tokens": limit, "tokens": used, "left_out": left_out, "cut": shortened}
    answer.truncated |= full


def _shortened(key: str, item: dict[str, Any], limit: int, measure: Measure) -> dict[str, Any]:
    """The item with as much of its text as fits; empty when that is next to nothing."""
    name = _TEXTS[key]
    extras = {extra: type(item[extra])() for extra in _EXTRAS if extra in item}
    bare = item | extras | {name: "", "cut": True}
    room = limit - measure(key, bare)
    while room >= _LEAST:
        text = cut(item[name] or "", room)
        short = bare | {name: text}
        over = measure(key, short) - limit
        if over <= 0:
            return short if text else {}
        room -= over  # signs that JSON escapes
    return {}


def bound_json(answer: Answer, limit: int, beside: dict[str, Any]) -> None:
    """Makes an answer fit as JSON, together with its other keys and with what stands beside them."""
    told = {"max_tokens": limit, "tokens": limit, "left_out": answer.totals, "cut": "x" * 26}
    bare = beside | answer.as_dict() | {key: [] for key in _TEXTS} | {"budget": told}
    bound(answer, limit, around=in_json("", bare))
