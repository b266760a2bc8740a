"""The outcome of a run is the same for any order of records and files and any batch size."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hash_encoder import HashEncoder
from hypothesis import given
from hypothesis import strategies as st
from importing import compared, in_order, outcome
from strategies import Arrangement, Record, Universe, arrangements, universes

from graphmem.commit import Choices


@given(data=st.data(), universe=universes())
def test_the_layout_of_a_run_does_not_matter(tmp_path: Path, data: st.DataObject, universe: Universe) -> None:
    arrangement = data.draw(arrangements(len(universe.records)))

    one = outcome(tmp_path, universe, in_order(universe.records))
    other = outcome(tmp_path, universe, arrangement)

    assert compared(one, other) == []


@given(data=st.data(), universe=universes(most=5))
def test_the_layout_of_a_run_does_not_matter_to_vectors(
    tmp_path: Path, data: st.DataObject, universe: Universe
) -> None:
    arrangement = data.draw(arrangements(len(universe.records)))

    one = outcome(tmp_path, universe, in_order(universe.records), HashEncoder())
    other = outcome(tmp_path, universe, arrangement, HashEncoder())

    assert compared(one, other) == []


def entity(name: str, kind: str | None = None, **keys: Any) -> Record:
    return {"type": "entity", "name": name, "scope": "global", **({"kind": kind} if kind else {}), **keys}


def memory(content: str, *about: Any, **keys: Any) -> Record:
    return {"type": "memory", "content": content, "about": list(about), "scopes": ["global"], **keys}


def relation(subject: Any, object_: Any, **keys: Any) -> Record:
    given = {"subject": subject, "predicate": "uses", "object": object_, "scope": "global"}
    return {"type": "relation", **given, **keys}


SERVICE = {"name": "C", "kind": "service"}
EARLY, LATE = "2025-06-01T00:00:00.000Z", "2026-02-20T00:00:00.000Z"

CASES: dict[str, Universe] = {
    "a known record that a second origin gives, next to one that changes its item": Universe(
        [entity("C"), entity("C")], [entity("C"), entity("C", description="d")]
    ),
    "a declaration refused by policy, and a reference to what it would have completed": Universe(
        [entity("C")], [entity("C", "service"), relation("C", "C")], Choices(on_conflict="skip")
    ),
    "a stub that was there, completed under a policy that keeps what stands": Universe(
        [memory("one", "C")], [entity("C"), entity("C", "service"), entity("C", "service", description="d")],
        Choices(on_conflict="skip"),
    ),
    "a kind refused by policy, and records without one": Universe(
        [entity("C")], [entity("C", stub=True), entity("C", "service")], Choices(on_conflict="skip")
    ),
    "a stub that was there and is older than the policy allows": Universe(
        [memory("one", "C")], [entity("C", updated_at=EARLY), entity("C", description="d", updated_at=EARLY)],
        Choices(on_conflict="newer"),
    ),
    "one record archives, another does not": Universe([], [entity("C", state="archived"), entity("C")]),
    "an item that stood is archived by one record and named by another": Universe(
        [memory("one", id="m")],
        [memory("one", id="m", state="archived"), memory("one", id="m", tags=["x"])],
    ),
    "what sync archived is archived again and supported": Universe(
        [entity("C", state="archived", archived_by="sync")],
        [entity("C", state="archived", updated_at=LATE), entity("C", description="d")],
    ),
    "two people archive": Universe(
        [], [entity("C", state="archived", archived_by="sync"), entity("C", state="archived", description="d")]
    ),
    "a record without a kind and the one that gives it": Universe([], [entity("C"), entity("C", "service")]),
    "equal records of one entity that another gives its kind": Universe(
        [], [entity("C"), entity("C"), entity("C", "service")]
    ),
    "overwriting what this run made": Universe(
        [], [entity("C", updated_at=EARLY), entity("C", description="d")], Choices(on_conflict="overwrite")
    ),
    "several records newer than what stood": Universe(
        [entity("C")], [entity("C", description="d"), entity("C", properties={"p": 1})], Choices(on_conflict="newer")
    ),
    "two ids for one entity": Universe([], [entity("C", id="i2"), entity("C", id="i1"), memory("one", "C")]),
    "one id for two entities": Universe(
        [], [entity("C", id="i1"), entity("D", id="i1"), entity("D", id="i2"), memory("one", "D")]
    ),
    "an entity all of whose records are refused, and a reference to it": Universe(
        [entity("B", id="i1")], [entity("A", id="i1"), memory("one", "A")]
    ),
    "a further id that is another's own": Universe(
        [], [entity("C", id_aliases=["i1"]), entity("D", id="i1"), memory("one", {"id": "i1"})]
    ),
    "two spellings of one relation, one with an id": Universe(
        [entity("C", aliases=["See"])], [relation("C", "C"), relation("See", "C", id="r1")]
    ),
    "two spellings of one relation with one id": Universe(
        [entity("C", aliases=["See"])], [relation("C", "C", id="r1"), relation("See", "C", id="r1")]
    ),
    "two ids for one relation": Universe([], [relation("C", "C", id="r2"), relation("C", "C", id="r1")]),
    "an id and a further id of one relation": Universe(
        [], [relation("C", "C", id_aliases=["r1"]), relation("C", "C", id="r1")]
    ),
    "one memory id in scopes that meet through a third": Universe(
        [memory("one", id="m", scopes=["repo:/b"])],
        [
            memory("one", id="m", scopes=["repo:/a"]),
            memory("one", id="m", scopes=["repo:/c"]),
            memory("one", id="m", scopes=["repo:/b", "repo:/c"]),
        ],
    ),
    "a memory changed by id, and one that is what it was": Universe(
        [memory("one", id="m")], [memory("two", id="m"), memory("one"), memory("two")]
    ),
    "a memory and a reference to nothing, twice": Universe([], [memory("one", mentions=["C"]), memory("one")]),
    "a stub that was there, and two declarations": Universe(
        [memory("one", "C")], [entity("C"), entity("C", state="archived")]
    ),
    "a stub that is declared as one": Universe([], [memory("one", "C"), entity("C", stub=True)]),
    "a reference that completes what stood, and a record without a kind": Universe(
        [entity("C")], [entity("C", description="d"), relation("C", "C"), relation("C", SERVICE)]
    ),
    "a reference that completes, when everything is overwritten": Universe(
        [entity("C")], [entity("C"), relation("C", SERVICE)], Choices(on_conflict="overwrite")
    ),
    "references of two kinds to what has none": Universe(
        [entity("C")], [memory("one", SERVICE), memory("two", {"name": "C", "kind": "lib"}), memory("three", "C")]
    ),
    "a reference of a kind to what the run declares without one": Universe(
        [], [entity("C"), memory("one", SERVICE), memory("two", "C")]
    ),
    "a reference of a kind, in two scopes, to what one of them declares without": Universe(
        [], [entity("C"), memory("one", SERVICE, scopes=["global", "repo:/a"])]
    ),
    "references of a kind, by another spelling too, to what is declared without": Universe(
        [], [entity("C"), memory("one", SERVICE), memory("two", {"name": "c", "kind": "service"})]
    ),
    "references to nothing, left out": Universe(
        [], [memory("one", SERVICE), memory("two", "C"), relation("C", SERVICE)], Choices(dangling="skip")
    ),
    "the newest of two that the run changes": Universe(
        [entity("C", "lib"), entity("C", "service")],
        [entity("C", "lib", description="d", updated_at=LATE), memory("one", "C"),
         entity("C", "service", description="d", updated_at=EARLY)],
        Choices(on_ambiguous="newest"),
    ),
    "the newest of two, one of them a stub until now": Universe(
        [memory("zero", {"name": "C", "kind": "lib"}), entity("C", "service", updated_at="2026-01-01")],
        [entity("C", "lib", updated_at=EARLY), memory("one", "C")],
        Choices(on_ambiguous="newest"),
    ),
    "names folded onto what stood, of another kind": Universe(
        [entity("straße")], [entity("STRASSE", "service"), memory("one", "straße"), entity("straße")],
        Choices(fold_case=True),
    ),
    "a reference of a kind to a name folded onto what stood": Universe(
        [entity("STRASSE")], [entity("straße"), memory("one", {"name": "straße", "kind": "service"})],
        Choices(fold_case=True),
    ),
    "a reference of a kind to a name that is folded under two kinds": Universe(
        [], [entity("c"), entity("C"), entity("C", "lib"), relation("c", {"name": "C", "kind": "service"})],
        Choices(fold_case=True),
    ),
    "the same record twice, with a reference that is left out": Universe(
        [], [memory("one", "C"), memory("one", "C")], Choices(dangling="skip")
    ),
    "names folded where both spellings stood": Universe(
        [entity("c"), entity("C")], [entity("c", description="d"), memory("one", "c")], Choices(fold_case=True)
    ),
    "a spelling that one batch replaces and another puts back": Universe(
        [entity("C"), relation("C", "C", fact="f")], [relation("C", "C", predicate="USES"), relation("C", "C")]
    ),
    "what is archived by one batch, brought back by another, and given an id": Universe(
        [entity("C")], [entity("C", state="archived"), entity("C", id="i1")]
    ),
    "a record that is known, and one that archives its item": Universe(
        [entity("C")], [entity("C"), entity("C", state="archived")]
    ),
    "values of a property that only Python takes for equal": Universe(
        [], [entity("C", properties={"p": value}) for value in (1, True, "1")]
    ),
    "times that are the clock's own": Universe(
        [], [entity("C", updated_at="2026-03-01T00:00:00.000Z"), entity("C", description="d", updated_at=LATE)]
    ),
    "an entity whose kind is unknown in as many words": Universe([], [entity("C"), entity("C", "unknown")]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_order_does_not_matter_to(name: str, tmp_path: Path) -> None:
    """Every order of the records, each in a batch of its own, in files of their own, and all at once."""
    universe = CASES[name]
    count = len(universe.records)
    expected = outcome(tmp_path, universe, in_order(universe.records))

    for order in permutations(range(count)):
        for files, batch_size in (([0] * count, 1), (list(range(count)), 1), (list(range(count)), 10_000)):
            laid_out = Arrangement(list(order), files, batch_size)

            assert compared(expected, outcome(tmp_path, universe, laid_out)) == [], laid_out
