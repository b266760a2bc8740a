"""Names and ids for people: the cascade of `graphmem.resolve` over a store, with help where it finds nothing.

It is the cascade of imports with three additions. At its third step an entity is also found by some of
its words, where no other has them all. Where a step finds only archived entities these answer; active
ones come first. And a name that nothing answers to comes with the names that are closest to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final

from graphmem.errors import EntityNotFound
from graphmem.names import exact, folded, kind_key, words
from graphmem.records import UNKNOWN_KIND
from graphmem.resolve import Step, decide, newest, of_kind
from graphmem.store.lookup import Found, Names

MAX_SUGGESTIONS: Final = 5
LEAST_CLOSENESS: Final = 0.6
"""What a name that shares no whole word must have in common with the one asked for, from 0 to 1."""

MAX_SHOWN: Final = 20
"""How many of the entities that one step found are shown."""

_MAX_WORDS: Final = 64
_MAX_TEXT: Final = 200
_MAX_PIECES: Final = 8
_CONTAINING: Final = 50
_SIMILAR: Final = 200


@dataclass(frozen=True, slots=True)
class Looked:
    """One look of a look-up: the step, what kind of match was tried, for which text, and what it found.

    `chosen` is how many of the found entities decide: 0 when the cascade goes on.
    """

    step: Step
    match: str
    text: str
    found: tuple[Found, ...] = ()
    chosen: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The look as it stands in JSON."""
        return {
            "step": self.step.value,
            "match": self.match,
            "looked_for": self.text,
            "found": [brief(one) for one in self.found[:MAX_SHOWN]],
            "found_in_all": len(self.found),
            "decided": self.chosen > 0,
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """What a name means to a reader.

    `entity` is the most recently updated of those that answer at the deciding step, `others` are the
    rest of them. Without an entity, `suggestions` has the closest names, best first.
    """

    name: str
    kind: str | None
    step: Step
    entity: Found | None = None
    others: tuple[Found, ...] = ()
    suggestions: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    """The kinds that do have the name, when the kind asked for does not."""
    looks: tuple[Looked, ...] = ()

    @property
    def found(self) -> Found:
        """The entity. Raises `EntityNotFound` with the suggestions when there is none."""
        if self.entity is not None:
            return self.entity
        wanted = f"no entity of kind '{self.kind}'" if self.kind is not None else "no entity"
        hint = "'gmem entities --match TEXT' lists entities"
        if self.kinds:
            kinds = ", ".join(f"'{kind}'" for kind in self.kinds)
            hint = f"of that name there {'is the kind' if len(self.kinds) == 1 else 'are the kinds'} {kinds}"
        raise EntityNotFound(f"{wanted} is called '{self.name}' here", hint, self.suggestions)


def brief(found: Found) -> dict[str, Any]:
    """An entity found by name, as it stands in JSON."""
    one = found.candidate
    return {
        "id": found.id,
        "name": one.name,
        "kind": one.kind or UNKNOWN_KIND,
        "scope": one.scope,
        "by": "alias" if one.alias else "name",
        "stub": found.stub,
        "state": found.state,
        "updated_at": one.updated_at,
    }


def bindable(text: str) -> str:
    """The text as SQLite can take it: halves of surrogate pairs, which no stored text has, replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def look_up(names: Names, name: str, kind: str | None = None, *, archived: bool = True) -> Answer:
    """What a name, with the kind if one is given, means among the visible names.

    Deterministic, and changes nothing. Without `archived` only active entities answer.
    """
    return _LookUp(names, exact(bindable(name)), kind, archived=archived).answer()


def meant(names: Names, text: str, kind: str | None = None) -> tuple[Found, tuple[Found, ...]]:
    """The visible entity of an id or a name, and the others that the name could mean.

    With a kind the text is a name. Raises `EntityNotFound` with suggestions.
    """
    by_id = names.by_id(bindable(text)) if kind is None else None
    if by_id is not None:
        return by_id, ()
    answer = look_up(names, text, kind)
    return answer.found, answer.others


class _LookUp:
    """One look-up, with what it has looked for so far."""

    def __init__(self, names: Names, name: str, kind: str | None, *, archived: bool) -> None:
        self._names = names
        self._name = name
        self._kind = kind
        self._kind_key = None if kind is None else kind_key(kind)
        self._archived = archived
        self._looks: list[Looked] = []

    def answer(self) -> Answer:
        for step, match, form, number in _KEYED:
            key = form(self._name)
            rows = self._names.under(key, number)
            if step is Step.EXACT and self._kind_key is not None:
                rows += self._names.former(key, self._kind_key)
            if self._look(step, match, key, rows, self._deciding(rows)):
                return self._found()
        contained = self._containing()
        if self._looks[-1].chosen:
            return self._found()
        return self._nothing(contained)

    # ---- steps 1 to 3 -----------------------------------------------------------------------------

    def _look(
        self, step: Step, match: str, text: str, rows: Iterable[Found], deciding: Sequence[Found]
    ) -> bool:
        """Keeps a look with those that decide first; whether any do."""
        first = {one.pk for one in deciding}
        rest = {one.pk: one for one in rows if one.pk not in first}
        self._looks.append(Looked(step, match, text, (*deciding, *rest.values()), len(deciding)))
        return bool(deciding)

    def _deciding(self, rows: list[Found]) -> list[Found]:
        """Those of one look that win: of the kind, active before archived, then as `decide` says."""
        left = set(of_kind([one.candidate for one in rows], self._kind))
        fitting = [one for one in rows if one.candidate in left]
        active = [one for one in fitting if one.state == "active"]
        if not active and self._archived:
            active = fitting
        by_candidate = {one.candidate: one for one in reversed(active)}
        return [by_candidate[one] for one in decide([one.candidate for one in active])]

    def _containing(self) -> list[Found]:
        """Entities with all the words of the name; they decide when there is one."""
        wanted = sorted(set(words(self._name).split(" ")) - {""}, key=lambda word: (-len(word), word))
        rows = []
        if 0 < len(wanted) <= _MAX_WORDS:
            rows = self._names.containing(wanted, self._kind_key, _CONTAINING)
        if not self._archived:
            rows = [one for one in rows if one.state == "active"]
        deciding = self._deciding(rows)
        if len(deciding) > 1:
            deciding = []
        self._look(Step.FULL_TEXT, "all the words", " + ".join(wanted), rows, deciding)
        return rows

    def _found(self) -> Answer:
        last = self._looks[-1]
        deciding = last.found[: last.chosen]
        best = newest(one.candidate for one in deciding)
        entity = next(one for one in deciding if one.candidate == best)
        others = tuple(one for one in deciding if one is not entity)
        return Answer(self._name, self._kind, last.step, entity, others, looks=tuple(self._looks))

    # ---- step 4 -----------------------------------------------------------------------------------

    def _nothing(self, contained: list[Found]) -> Answer:
        kinds: set[str] = set()
        if self._kind is not None:
            kinds.update(one.candidate.kind or UNKNOWN_KIND for look in self._looks[:3] for one in look.found)
        close = self._closest(contained)
        suggestions = tuple(dict.fromkeys(one.candidate.name for one in close))[:MAX_SUGGESTIONS]
        close = [one for one in close if one.candidate.name in suggestions]
        self._look(Step.NOTHING, "the closest names", self._name, close, ())
        return Answer(
            self._name, self._kind, Step.NOTHING, suggestions=suggestions, kinds=tuple(sorted(kinds)),
            looks=tuple(self._looks),
        )  # fmt: skip

    def _closest(self, contained: list[Found]) -> list[Found]:
        """The closest entities, best first, then by name; each once."""
        text = _compact(self._name)[:_MAX_TEXT]
        if not text:
            return []
        rated: dict[int, tuple[float, Found]] = {}
        similar = self._names.similar(text, _pieces(text), self._kind_key, _SIMILAR)
        matcher = SequenceMatcher(None, b=text, autojunk=False)
        for least, rows in ((0.0, contained), (LEAST_CLOSENESS, similar)):
            for one in rows:
                if one.state != "active" and not self._archived:
                    continue
                matcher.set_seq1(_compact(one.key)[:_MAX_TEXT])
                closeness = matcher.ratio()
                held = rated.get(one.pk)
                if closeness >= least and (held is None or closeness > held[0]):
                    rated[one.pk] = (closeness, one)
        order = sorted(
            rated.values(), key=lambda pair: (-pair[0], *pair[1].candidate.identity[1:], pair[1].id)
        )
        return [one for _, one in order]


_KEYED: Final = (
    (Step.EXACT, "the same name", str, 1),
    (Step.CASE_INSENSITIVE, "the same name but for case", folded, 2),
    (Step.FULL_TEXT, "the same words", words, 3),
)


def _compact(text: str) -> str:
    """A name without what separates its words."""
    return words(text).replace(" ", "")


def _pieces(text: str) -> list[str]:
    """A few short pieces, spread evenly over the text, of which a misspelt name keeps most."""
    size = 3 if len(text) > 5 else 2 if len(text) > 3 else 1
    places = len(text) - size + 1
    count = min(places, _MAX_PIECES)
    starts = [round(number * (places - 1) / max(count - 1, 1)) for number in range(count)]
    return list(dict.fromkeys(text[start : start + size] for start in starts))
