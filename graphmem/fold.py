"""An item's mergeable fields as a function of its contributions.

Contributions are taken in runs, told apart by `taken_at` (a run reads the clock once). Inside a run the
order does not count: for a scalar a stated time beats an unknown one, a later time an earlier one, and a
tie goes to the greatest value by code point. Between runs a value replaces an older one; a value of
unknown time counts as said when its run took it. Sets are united, properties are scalars key by key.

What a person takes away is said too, under `without`: `fields` and `properties` by name, members of sets
by set. It holds for what was said before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final, NamedTuple

from graphmem.prepare import canonical_json

SCALARS: Final[tuple[tuple[str, ...], ...]] = (
    ("kind", "description"),
    ("content", "title", "memory_type", "importance", "place", "valid_at", "invalid_at", "expired_at"),
    ("predicate", "fact", "weight", "invalid_at", "expired_at"),
)
SETS: Final[tuple[tuple[str, ...], ...]] = (
    ("aliases",),
    ("tags", "about", "mentions", "scopes"),
    ("stated_by",),
)


class Contribution(NamedTuple):
    """What one record said about an item, and when it was taken.

    `said` holds the stated fields only: scalars, sets, `properties`, `without`, and the stated `created_at`
    and `updated_at`. A memory's source and position are one scalar, `place`: `[uri, position]`.
    """

    taken_at: str
    said: Mapping[str, Any]

    @property
    def known(self) -> str | None:
        """When the record says it was last true, if it says so."""
        time: str | None = self.said.get("updated_at") or self.said.get("created_at")
        return time


@dataclass(slots=True)
class Folded:
    """The outcome: fields by name, the two times, and which scalars were decided by a tie."""

    fields: dict[str, Any]
    created_at: str
    updated_at: str
    ties: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Scalar:
    value: Any
    asserted: str
    changed: str
    gone: bool = False


def _order(value: Any) -> tuple[str, bool]:
    """What a value is compared by; other than in Python, 1, 1.0, true and "1" are four values."""
    return (value, True) if isinstance(value, str) else (canonical_json(value), False)


def _winner(stated: list[tuple[str | None, Any]]) -> tuple[str | None, Any, bool]:
    """The value that one run states: (known time, value, whether a tie had to be broken)."""
    if len(stated) == 1:
        return (*stated[0], False)
    best = max(stated, key=lambda pair: (pair[0] is not None, pair[0] or "", _order(pair[1])))
    tie = any(time == best[0] and _order(value) != _order(best[1]) for time, value in stated)
    return (*best, tie)


def _apply(
    state: dict[str, _Scalar], key: str, stated: list[tuple[str | None, Any]], taken_at: str, ties: list[str]
) -> None:
    known, value, tie = _winner(stated)
    if tie:
        ties.append(key)
    time = known or taken_at
    held = state.get(key)
    if held is None:
        state[key] = _Scalar(value, time, time)
    elif held.gone:
        if time > held.asserted:
            state[key] = _Scalar(value, time, time)
    elif _order(held.value) == _order(value):
        held.asserted = max(held.asserted, time)
    elif (time, _order(value)) > (held.asserted, _order(held.value)):
        if time == held.asserted:
            ties.append(key)
        state[key] = _Scalar(value, time, time)


def _stated(run: list[Contribution], key: str) -> list[tuple[str | None, Any]]:
    return [(one.known, one.said[key]) for one in run if one.said.get(key) is not None]


def _take_away(
    run: list[Contribution],
    taken_at: str,
    scalars: dict[str, _Scalar],
    properties: dict[str, _Scalar],
    members: dict[str, dict[Any, str]],
) -> list[str]:
    """Applies what a run takes away; the times at which something went."""
    times: list[str] = []
    for one in run:
        without = one.said.get("without")
        if not without:
            continue
        time = one.known or taken_at
        for name, state in (("fields", scalars), ("properties", properties)):
            for key in without.get(name, ()):
                if key in state and not state[key].gone:
                    state[key] = _Scalar(None, time, time, gone=True)
        for name, held in members.items():
            times += [time for member in without.get(name, ()) if held.pop(member, None) is not None]
    return times


def _created(first_run: list[Contribution]) -> str:
    known = [one.said["created_at"] for one in first_run if one.said.get("created_at")]
    return min(known) if known else first_run[0].taken_at


def fold(kind: int, contributions: Iterable[Contribution]) -> Folded:
    """The fields that the contributions (at least one) give an item of a kind (0 entity, 1 memory, 2 relation).

    Pure, and the same for every order of its input.
    """
    ordered = sorted(contributions, key=lambda one: one.taken_at)
    scalars: dict[str, _Scalar] = {}
    properties: dict[str, _Scalar] = {}
    members: dict[str, dict[Any, str]] = {name: {} for name in SETS[kind]}
    ties: list[str] = []
    created_at = ""
    gone: list[str] = []
    for taken_at, group in groupby(ordered, key=lambda one: one.taken_at):
        run = list(group)
        gone += _take_away(run, taken_at, scalars, properties, members)
        if not created_at:
            created_at = _created(run)
        _apply(scalars, "", [(one.known, True) for one in run], taken_at, ties)
        for name in SCALARS[kind]:
            stated = _stated(run, name)
            if stated:
                _apply(scalars, name, stated, taken_at, ties)
        for key in {key for one in run for key in one.said.get("properties") or ()}:
            stated = [
                (one.known, one.said["properties"][key])
                for one in run
                if key in (one.said.get("properties") or ())
            ]
            _apply(properties, key, stated, taken_at, ties)
        for name, held in members.items():
            before = set(held)
            for one in run:
                for member in one.said.get(name) or ():
                    if member not in before:
                        time = one.known or taken_at
                        held[member] = min(held.get(member, time), time)
    times = [one.changed for one in scalars.values()]
    times += [one.changed for one in properties.values()]
    # Links never touch an item's time.
    times += [t for name, held in members.items() if name not in ("about", "mentions") for t in held.values()]
    times += gone
    times += [one.known or one.taken_at for one in ordered if one.said.get("renamed")]
    fields: dict[str, Any] = {name: one.value for name, one in scalars.items() if name and not one.gone}
    fields["properties"] = {key: one.value for key, one in sorted(properties.items()) if not one.gone}
    fields.update({name: sorted(held) for name, held in members.items()})
    return Folded(fields, created_at, max(times), sorted(set(ties)))
