"""Records put aside and taken up again."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from graphmem.records import Claim, EntityRecord, MemoryRecord, Place, Record, Ref, RelationRecord
from graphmem.spool import Spool, pack, unpack

texts = st.text(max_size=5)
maybe = st.none() | texts
refs = st.builds(Ref, texts, maybe, maybe, maybe)
values = st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
                      lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2))  # fmt: skip
properties = st.dictionaries(texts, values, max_size=2)
claims = st.none() | st.lists(
    st.builds(Claim, maybe, maybe, maybe, texts, st.integers(0, 9), texts, st.none() | properties), max_size=2
)
common: dict[str, st.SearchStrategy[Any]] = {
    "properties": properties, "id": maybe, "state": maybe, "archived_by": maybe, "created_at": maybe,
    "updated_at": maybe, "origins": claims, "digest": st.binary(max_size=16), "input": st.integers(0, 9),
    "place": st.builds(Place, st.integers(0, 9), st.integers(0, 9), st.integers(-1, 9)),
}  # fmt: skip
lists = st.lists(texts, max_size=2)
records = st.one_of(
    st.builds(
        EntityRecord, name=texts, kind=maybe, scope=maybe, description=maybe, aliases=lists, stub=st.booleans(),
        id_aliases=lists, redirects=st.lists(refs, max_size=2), **common,
    ),
    st.builds(
        MemoryRecord, content=texts, title=maybe, memory_type=maybe, importance=st.none() | st.floats(0, 1),
        tags=lists, scopes=lists, about=st.lists(refs, max_size=2), mentions=st.lists(refs, max_size=2),
        source=maybe, position=st.none() | st.integers(0, 2**63 - 1), valid_at=maybe, invalid_at=maybe,
        expired_at=maybe, **common,
    ),
    st.builds(
        RelationRecord, subject=refs, predicate=texts, object=refs, scope=maybe, weight=st.none() | st.floats(0, 1),
        fact=maybe, stated_by=lists, valid_at=maybe, invalid_at=maybe, expired_at=maybe, id_aliases=lists, **common,
    ),
)  # fmt: skip


@given(records)
def test_a_record_is_packed_and_unpacked(record: Record) -> None:
    assert unpack(pack(record)) == record
    assert all(isinstance(ref, Ref) for ref in _refs_of(unpack(pack(record))))


def _refs_of(record: Record) -> list[Any]:
    if isinstance(record, EntityRecord):
        return list(record.redirects)
    if isinstance(record, MemoryRecord):
        return [*record.about, *record.mentions]
    return [record.subject, record.object]


@given(st.lists(st.lists(records, max_size=3), max_size=4))
def test_batches_come_back_in_order_as_often_as_asked(batches: list[list[Record]]) -> None:
    spool = Spool()
    for batch in batches:
        spool.push(batch)

    assert len(spool) == len(batches)
    assert list(spool.batches()) == batches
    assert list(spool.batches()) == batches
    spool.close()


def test_the_declarations_of_a_file_come_before_the_rest() -> None:
    def batch(name: str) -> list[Record]:
        return [EntityRecord(name)]

    spool = Spool()
    spool.push(batch("before"))
    spool.push(batch("rest 1"), 1)
    spool.push(batch("declared 1"), 0)
    spool.push(batch("rest 2"), 1)
    spool.push(batch("declared 2"), 0)
    spool.seal()
    spool.push(batch("after"))

    assert [one.name for [one] in spool.batches() if isinstance(one, EntityRecord)] == [
        "before", "declared 1", "declared 2", "rest 1", "rest 2", "after",
    ]  # fmt: skip
    spool.close()
