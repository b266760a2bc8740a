"""Hypothesis strategies for records of small universes in which names, kinds, ids and times collide."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from graphmem.commit import Choices

Record = dict[str, Any]

FIRST_CLOCK = "2026-02-01T00:00:00.000Z"
SECOND_CLOCK = "2026-03-01T00:00:00.000Z"
THIRD_CLOCK = "2026-04-01T00:00:00.000Z"
TIMES = (
    "2025-12-31T23:59:59.999Z", "2026-01-15T12:00:00.000Z", "2026-02-15T12:00:00.000Z",
    FIRST_CLOCK, "2026-07-01T00:00:00.000Z",
)  # fmt: skip

FAMILIES = (
    ("C", "C++", "C#", "c", "c++"),
    ("auth service", "AuthService", "auth_service", "authService", "Auth-Service", "AUTHSERVICE"),
    ("café", "cafe\u0301", "Café", "CAFE\u0301", "cafe"),
    ("😀", "😀 team", "你好", "ﬁn", "fin", "FIN"),
    ("straße", "STRASSE", "strasse", "Straße"),
    ("a\u0000b", "A\u0000B", "a\u0001b", "a b", "A  B"),
)
"""Names that meet at one step of the cascade or another."""

KINDS = ("service", "Service", "ser vice", "lib", "unknown")
SCOPES = ("global", "repo:/a", "repo:/b")
PREDICATES = ("depends_on", "DEPENDS ON", "DependsOn", "owns")
CONTENTS = ("one\u0000thing", "one thing", "Zwei Dinge — 二", "the third")
IDS = ("i1", "i2", "i3")
TAGS = ("x", "y", "Z")


def _maybe(strategy: st.SearchStrategy[Any], chance: int = 2) -> st.SearchStrategy[Any]:
    """Absent in all but one of `chance` draws or so."""
    return st.integers(0, chance - 1).flatmap(lambda n: strategy if n == chance - 1 else st.none())


def _record(type_: str, **keys: st.SearchStrategy[Any]) -> st.SearchStrategy[Record]:
    made = st.fixed_dictionaries({"type": st.just(type_), **keys})
    return made.map(lambda one: {key: value for key, value in one.items() if value is not None})


@dataclass(frozen=True)
class Pool:
    """The few values from which the records of one universe are made."""

    names: tuple[str, ...]
    scopes: tuple[str, ...]
    ids: bool
    times: bool
    states: bool


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    """Few names, mostly of one family."""
    family = draw(st.sampled_from(FAMILIES))
    other = draw(st.sampled_from(FAMILIES))
    names = draw(st.lists(st.sampled_from((*family, other[0])), min_size=1, max_size=4, unique=True))
    scopes = draw(st.sampled_from(((SCOPES[0],), (SCOPES[1],), SCOPES[:2], SCOPES)))
    return Pool(tuple(names), scopes, draw(st.booleans()), draw(st.booleans()), draw(st.booleans()))


def references(pool: Pool) -> st.SearchStrategy[Any]:
    """A name as text or with kind, scope or id."""
    name = st.sampled_from(pool.names)
    given: dict[str, st.SearchStrategy[Any]] = {
        "name": name, "kind": _maybe(st.sampled_from(KINDS)), "scope": _maybe(st.sampled_from(pool.scopes), 4),
    }  # fmt: skip
    if pool.ids:
        given["id"] = _maybe(st.sampled_from(IDS), 5)
    full = st.fixed_dictionaries(given).map(lambda one: {k: v for k, v in one.items() if v is not None})
    return st.one_of(name, full)


def _times(pool: Pool, *names: str) -> dict[str, st.SearchStrategy[Any]]:
    return {name: _maybe(st.sampled_from(TIMES), 3) for name in names} if pool.times else {}


def _shared(pool: Pool) -> dict[str, st.SearchStrategy[Any]]:
    keys: dict[str, st.SearchStrategy[Any]] = {
        "properties": _maybe(
            st.dictionaries(st.sampled_from(("p", "q")), st.sampled_from((1, True, 1.0, "1", None, [1])), max_size=2), 4
        ),
        **_times(pool, "created_at", "updated_at"),
    }  # fmt: skip
    if pool.ids:
        keys["id"] = _maybe(st.sampled_from(IDS), 3)
    if pool.states:
        keys["state"] = _maybe(st.just("archived"), 4)
    return keys


def entities(pool: Pool) -> st.SearchStrategy[Record]:
    """Declarations."""
    return _record(
        "entity",
        name=st.sampled_from(pool.names),
        kind=_maybe(st.sampled_from(KINDS)),
        scope=st.sampled_from(pool.scopes),
        description=_maybe(st.sampled_from(("d1", "d2")), 3),
        stub=_maybe(st.just(True), 8),
        aliases=_maybe(st.lists(st.sampled_from((*pool.names, "other")), max_size=2), 4),
        **_shared(pool),
    )


def memories(pool: Pool) -> st.SearchStrategy[Record]:
    """Memories, with and without an id."""
    refs = st.lists(references(pool), max_size=2)
    return _record(
        "memory",
        content=st.sampled_from((*CONTENTS[: len(pool.names)], pool.names[0], f"of {pool.names[-1]}, say")),
        about=_maybe(refs),
        mentions=_maybe(refs, 3),
        scopes=st.lists(st.sampled_from(pool.scopes), min_size=1, max_size=2),
        tags=_maybe(st.lists(st.sampled_from(TAGS), max_size=2), 3),
        title=_maybe(st.sampled_from(("t1", "t2")), 4),
        source=_maybe(st.sampled_from(("s", {"uri": "s", "position": 1}, {"uri": "s", "position": 2})), 4),
        importance=_maybe(st.sampled_from((0, 0.5, 1)), 4),
        **_times(pool, "valid_at", "invalid_at", "expired_at"),
        **_shared(pool),
    )


def relations(pool: Pool) -> st.SearchStrategy[Record]:
    """Relations between few names by few predicates."""
    return _record(
        "relation",
        subject=references(pool),
        predicate=st.sampled_from(PREDICATES),
        object=references(pool),
        scope=st.sampled_from(pool.scopes),
        weight=_maybe(st.sampled_from((0, 0.25, 1)), 3),
        fact=_maybe(st.sampled_from(("f1", "f2")), 3),
        stated_by=_maybe(st.lists(st.sampled_from((*IDS, "m9")), max_size=2), 4),
        **_times(pool, "valid_at", "invalid_at"),
        **_shared(pool),
    )


def records(pool: Pool) -> st.SearchStrategy[Record]:
    """A record of any kind."""
    return st.one_of(entities(pool), memories(pool), relations(pool))


@dataclass(frozen=True)
class Universe:
    """What a store holds before a run, and the records of the run."""

    before: list[Record]
    records: list[Record]
    choices: Choices = field(default_factory=Choices)


def choices() -> st.SearchStrategy[Choices]:
    """Any combination of what a caller may decide."""
    return st.builds(
        Choices,
        on_conflict=st.sampled_from(("merge", "merge", "merge", "newer", "overwrite", "skip", "error")),
        on_ambiguous=st.sampled_from(("error", "newest")),
        dangling=st.sampled_from(("stub", "stub", "skip", "error")),
        fold_case=st.booleans(),
        restore_archived=st.booleans(),
    )


@st.composite
def universes(draw: st.DrawFn, *, most: int = 8) -> Universe:
    """A small universe."""
    pool = draw(pools())
    one = records(pool)
    return Universe(
        draw(st.lists(one, max_size=4)), draw(st.lists(one, min_size=1, max_size=most)), draw(choices())
    )


@dataclass(frozen=True)
class Arrangement:
    """How the records of a run are laid out: their order, the file of each, and the batch size."""

    order: list[int]
    files: list[int]
    batch_size: int

    def lay_out(self, given: list[Record]) -> list[list[Record]]:
        """The records file by file."""
        laid: list[list[Record]] = [[] for _ in range(1 + max(self.files, default=0))]
        for at in self.order:
            laid[self.files[at]].append(given[at])
        return laid


@st.composite
def arrangements(draw: st.DrawFn, count: int) -> Arrangement:
    """Any order, up to three files, any batch size."""
    order = draw(st.permutations(range(count)))
    files = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    return Arrangement(list(order), files, draw(st.sampled_from((1, 2, 3, 7, 10_000))))
