"""The cascade that turns a reference into an entity: exact, case-insensitive, full text, or nothing.

Pure: candidates come from a look-up (the store together with what the run declares), and `decide` says
which of them the reference means. `docs/concepts.md` has the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from graphmem.names import folded, kind_key, words
from graphmem.records import UNKNOWN_KIND


class Step(StrEnum):
    """The step of the cascade that decided."""

    EXACT = "exact"
    CASE_INSENSITIVE = "case-insensitive"
    FULL_TEXT = "full text"
    NOTHING = "suggestion"


STEPS: Final = (Step.EXACT, Step.CASE_INSENSITIVE, Step.FULL_TEXT)


class Candidate(NamedTuple):
    """An entity found under a key of a name. `own` is whether it is of the reference's own scope.

    `pk` and `id` are those of its row in the store, `None` for one that a run declares and has not stored.
    """

    own: bool
    alias: bool
    scope: str
    name: str
    kind_key: str
    kind: str | None
    updated_at: str
    pk: int | None = None
    id: str | None = None

    @property
    def identity(self) -> tuple[str, str, str]:
        """Scope, exact name, comparable kind."""
        return (self.scope, self.name, self.kind_key)


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a reference means: the deciding step, and one candidate, or several, or none."""

    step: Step
    candidates: tuple[Candidate, ...] = ()

    @property
    def chosen(self) -> Candidate | None:
        """The only candidate, or `None` when there is none or the reference is ambiguous."""
        return self.candidates[0] if len(self.candidates) == 1 else None

    @property
    def ambiguous(self) -> bool:
        """Whether several entities answer at the deciding step."""
        return len(self.candidates) > 1


NOTHING: Final = Resolution(Step.NOTHING)

Lookup = Callable[[str, int], Iterable[Candidate]]
"""(key, step) to the candidates found under that key at that step or a lower one."""


def of_kind(found: list[Candidate], kind: str | None) -> list[Candidate]:
    """The candidates a kind leaves; an explicit `unknown` means the entity without a kind, if there is one."""
    if kind is None:
        return found
    key = kind_key(kind)
    matching = [one for one in found if one.kind_key == key]
    return matching if key or matching else found


def _distinct(found: Iterable[Candidate]) -> tuple[Candidate, ...]:
    by_identity: dict[tuple[str, str, str], Candidate] = {}
    for one in found:
        held = by_identity.get(one.identity)
        if held is None or (held.pk is None, held.kind is None) > (one.pk is None, one.kind is None):
            by_identity[one.identity] = one
    return tuple(by_identity[key] for key in sorted(by_identity, key=lambda k: (k[2], k[1], k[0])))


def decide(found: list[Candidate]) -> tuple[Candidate, ...]:
    """The candidates that win within one step: own scope first, then names before aliases.

    Distinct by identity, in the order of kind, then name.
    """
    if len(found) == 1:
        return (found[0],)
    if not found:
        return ()
    best = max((one.own, not one.alias) for one in found)
    return _distinct(one for one in found if (one.own, not one.alias) == best)


_FORMS: Final[tuple[Callable[[str], str], ...]] = (str, folded, words)


def resolve(name: str, kind: str | None, lookup: Lookup) -> Resolution:
    """The resolution of an exact name, with the kind if one is given.

    A reference with a kind that nothing of that name has yet means the entity of exactly that name
    whose kind is unknown only where a declaration completes it; that is the caller's to know.
    """
    for number, (step, form) in enumerate(zip(STEPS, _FORMS, strict=True), start=1):
        winners = decide(of_kind(list(lookup(form(name), number)), kind))
        if winners:
            return Resolution(step, winners)
    return NOTHING


def newest(candidates: Iterable[Candidate]) -> Candidate:
    """The most recently updated of several; ties go to the greatest kind, then name."""
    return max(candidates, key=lambda one: (one.updated_at, one.kind_key or UNKNOWN_KIND, one.name))
