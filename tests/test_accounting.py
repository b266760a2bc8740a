"""Every record that was read has one outcome, and the outcomes are those of the store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import write_records
from everything import FIRST, SECOND
from hash_encoder import HashEncoder
from hypothesis import given
from hypothesis import strategies as st
from importing import in_memory, only, take, take_records, unaccounted
from snapshots import Content, content, rows
from strategies import FIRST_CLOCK, SECOND_CLOCK, THIRD_CLOCK, Universe, universes

from graphmem.commit import Choices
from graphmem.errors import GraphmemError
from graphmem.ingest import rehearse
from graphmem.options import ImportOptions
from graphmem.outcome import ImportReport
from graphmem.store import Store

FIXTURES = sorted(path for path in (Path(__file__).parent.parent / "fixtures").rglob("*") if path.is_file())
CORRUPT: dict[str, bytes] = {
    "cut.jsonl": b'{"type":"entity","name":"A"}\n{"type":"memory","content":"cut o',
    "two.jsonl": b'{"type":"entity","name":"A"} {"type":"entity","name":"B"}\n',
    "wrong.jsonl": b'{"type":"entity"}\n{"type":"memory","content":5}\n{"type":"x"}\n[1,2]\n7\nnull\n"A"\n'
    b'{"type":"relation","subject":"A","predicate":"","object":{}}\n["A","b","C"]\n',
    "bytes.jsonl": b'{"type":"entity","name":"\xff\xfe"}\n{"type":"entity","name":"good"}\n',
    "surrogate.jsonl": b'{"type":"entity","name":"\\ud800"}\n{"type":"entity","name":"good"}\n',
    "empty.jsonl": b"",
    "manifest.jsonl": b'{"type":"manifest","format":"graphmem","version":1,"counts":{"entity":9}}\n'
    b'{"type":"entity","name":"A"}\n',
    "wrong.yaml": b"- type: entity\n  name: A\n- type: entity\n- 5\n- [a, b, c]\n",
}


@pytest.fixture
def store() -> Iterator[Store]:
    with in_memory() as made:
        yield made


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name)
def test_every_fixture_is_accounted_for(path: Path, store: Store) -> None:
    _twice(store, path)


@pytest.mark.parametrize("name", CORRUPT)
def test_every_damaged_file_is_accounted_for(name: str, store: Store, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(CORRUPT[name])

    _twice(store, path)


def _twice(store: Store, path: Path) -> None:
    first = take(store, path, format=None)
    assert unaccounted(first) == []
    _stored(store, first)
    held = rows(store.db)

    second = take(store, path, SECOND_CLOCK, format=None)

    assert unaccounted(second) == []
    assert rows(store.db) == held
    for kind, counts in second.counts.items():
        assert counts == replace(
            first.counts[kind], created=0, updated=0, merged=0, unchanged=counts.unchanged
        )


def _stored(store: Store, report: ImportReport) -> None:
    """Into an empty store, what was created is what is there."""
    for kind in ("entity", "memory", "relation"):
        there = store.db.execute(f"SELECT count(*) FROM {kind}").get
        stubs = report.stubs if kind == "entity" else 0
        assert report.counts[kind].created == there - stubs, kind


def _own(item: dict[str, Any]) -> dict[str, Any]:
    """The columns that a record about the item decides; the kinds of entities are for their own records."""
    apart = ("contributions", "chunks", "words", "names_in_text")
    own = {column: value for column, value in item.items() if column not in apart}
    for column in ("about", "mentions"):
        if column in own:
            own[column] = [entity[:2] for entity in own[column]]
    for column in ("subject", "object"):
        if column in own:
            own[column] = own[column][:2]
    return own


def _changed(before: Content, after: Content, table: str) -> int:
    """How many items were there before and are not the same now."""
    now = {one["id"]: _own(one) for one in after[table].values()}
    return sum(_own(one) != now[one["id"]] for one in before[table].values())


@given(universe=universes(), batch_size=st.sampled_from((1, 2, 10_000)))
def test_counts_are_those_of_the_store(tmp_path: Path, universe: Universe, batch_size: int) -> None:
    with in_memory() as store:
        take_records(store, tmp_path, universe.before, name="before")
        before = content(store.db)
        report = take_records(
            store, tmp_path, universe.records, SECOND_CLOCK, choices=universe.choices, batch_size=batch_size
        )
        after = content(store.db)

    assert unaccounted(report) == []
    assert sum(report.total(name) for name in ("read",)) == len(universe.records)
    for kind, table in (("memory", "memories"), ("relation", "relations")):
        assert report.counts[kind].created == len(after[table]) - len(before[table])
        assert report.counts[kind].updated == _changed(before, after, table)
    standing = {one["id"] for one in before["entities"].values()}
    made = [one for one in after["entities"].values() if one["id"] not in standing]
    stubs = sum(one["stub"] for one in made)
    assert report.stubs == stubs
    declared = report.counts["entity"].created
    assert len(made) - stubs <= declared <= len(made)


def test_merged_means_joined_to_what_this_run_changed(store: Store, tmp_path: Path) -> None:
    def entity(name: str, **keys: Any) -> dict[str, Any]:
        return {"type": "entity", "name": name, **keys}

    take_records(store, tmp_path, [entity("old"), entity("kept")], name="before")
    records = [
        entity("new"), entity("new", description="d"), entity("new"),
        entity("old", description="d"), entity("old"), entity("old", aliases=["o"]),
        entity("kept"), entity("kept"),
    ]  # fmt: skip

    for batch_size in (10_000, 1):
        with in_memory() as fresh:
            take_records(fresh, tmp_path, [entity("old"), entity("kept")], name="before")
            report = take_records(fresh, tmp_path, records, SECOND_CLOCK, batch_size=batch_size)

        assert report.counts["entity"] == only(created=1, updated=1, merged=4, unchanged=2)


def test_skipped_is_what_the_caller_wanted_kept_out(store: Store, tmp_path: Path) -> None:
    take_records(store, tmp_path, FIRST, name="first")

    report = take_records(
        store, tmp_path, SECOND, SECOND_CLOCK, choices=Choices(on_conflict="skip", dangling="skip")
    )

    assert unaccounted(report) == []
    assert report.total("rejected") == 0
    assert report.total("skipped") == report.findings.by_rule["conflict-skipped"]


def test_a_run_that_stores_nothing_skips_what_it_did_not_reject(store: Store, tmp_path: Path) -> None:
    records = [*FIRST, {"type": "entity"}]

    report = take_records(store, tmp_path, records, strict=True)

    assert unaccounted(report) == []
    assert (report.total("rejected"), report.total("skipped")) == (1, len(FIRST))
    assert report.exit_status() == 1


def test_too_many_errors_end_a_run(store: Store, tmp_path: Path) -> None:
    records = [{"type": "entity"}] * 5 + [{"type": "entity", "name": "good"}]

    report = take_records(store, tmp_path, records, max_errors=2)

    assert unaccounted(report) == []
    assert not report.committed
    assert store.db.execute("SELECT count(*) FROM entity").get == 0


# ---- a rehearsal ------------------------------------------------------------------------------------


@given(universe=universes(most=5))
def test_a_rehearsal_reports_what_the_run_then_does(tmp_path: Path, universe: Universe) -> None:
    store_path = tmp_path / "memory.db"
    store_path.unlink(missing_ok=True)
    write_records(tmp_path / "records.jsonl", universe.records)
    with Store(store_path, write=True) as store:
        take_records(store, tmp_path, universe.before, name="before")
        before = rows(store.db)
        options = ImportOptions(
            [str(tmp_path / "records.jsonl")], format="jsonl", clock=SECOND_CLOCK, choices=universe.choices
        )

        rehearsed = rehearse(str(store_path), options)

        assert rows(store.db) == before
        report = take(store, tmp_path / "records.jsonl", SECOND_CLOCK, choices=universe.choices)
    assert rehearsed.dry_run
    assert not rehearsed.committed
    assert rehearsed.counts == report.counts
    assert list(rehearsed.findings) == list(report.findings)
    assert rehearsed.stubs == report.stubs


def test_a_rehearsal_of_a_store_that_is_not_there_makes_none(tmp_path: Path) -> None:
    path = write_records(tmp_path / "first.jsonl", FIRST)

    report = rehearse(str(tmp_path / "memory.db"), ImportOptions([str(path)]))

    assert report.total("created") == len(FIRST) - report.total("merged")
    assert not (tmp_path / "memory.db").exists()


# ---- the encoder ------------------------------------------------------------------------------------


def test_equal_texts_are_encoded_once_and_known_ones_never(store: Store, tmp_path: Path) -> None:
    encoder = HashEncoder()
    same = [{"type": "memory", "content": "same", "scopes": [scope]} for scope in ("global", "repo:/a")]

    first = take_records(store, tmp_path, same, FIRST_CLOCK, encoder=encoder)
    second = take_records(
        store, tmp_path, [{"type": "memory", "content": "same", "scopes": ["repo:/b"]}], SECOND_CLOCK,
        name="more", encoder=encoder,
    )  # fmt: skip

    assert (first.encoded, second.encoded) == (1, 0)
    assert encoder.encoded == ["same"]
    assert store.db.execute("SELECT count(*) FROM chunk").get == 3


def test_a_vector_goes_with_its_last_user(store: Store, tmp_path: Path) -> None:
    take_records(store, tmp_path, [{"type": "memory", "id": "m", "content": "one"}], encoder=HashEncoder())

    take_records(
        store, tmp_path, [{"type": "memory", "id": "m", "content": "two"}], SECOND_CLOCK, name="n",
        encoder=HashEncoder(),
    )  # fmt: skip
    assert store.db.execute("SELECT count(*) FROM vector").get == 1

    take_records(store, tmp_path, [{"type": "memory", "id": "m", "content": "three"}], THIRD_CLOCK, name="o")
    assert store.db.execute("SELECT count(*) FROM vector").get == 0
    assert content(store.db)["vectors"] == []


# ---- anything ---------------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=60), max_size=4))
def test_any_bytes_are_read_with_findings_and_without_a_fault(tmp_path: Path, lines: list[bytes]) -> None:
    path = tmp_path / "any.jsonl"
    path.write_bytes(b"\n".join(lines))

    _without_a_fault(path)


_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(("a", "global"))
)
_json: st.SearchStrategy[Any] = st.deferred(
    lambda: _scalars | st.lists(_json, max_size=3) | st.dictionaries(st.text(max_size=3), _json, max_size=3)
)
_KEYS = (
    "type name kind scope description aliases properties id state archived_by stub created_at updated_at id_aliases "
    "redirects origins content title memory_type importance tags scopes about mentions source valid_at invalid_at "
    "expired_at subject predicate object weight fact stated_by format version counts digest filters uri record taken_at "
    "said line"
).split()
_likely = st.dictionaries(
    st.sampled_from(_KEYS),
    _json
    | st.sampled_from(({"id": "a"}, ["a"], [{"name": "a"}], [{"uri": "u", "record": "ab", "taken_at": "2020-01-01"}],
                       "2020-01-01T00:00:00Z", 0.5, "archived", ["global"])),
    max_size=7,
)  # fmt: skip
_typed = st.builds(
    lambda type_, rest: {
        "type": type_,
        "name": "a",
        "content": "c",
        "subject": "a",
        "predicate": "p",
        "object": "b",
        **rest,
    },
    st.sampled_from(("entity", "memory", "relation", "manifest")),
    _likely,
)


@given(st.lists(_json | _likely | _typed, min_size=1, max_size=4), st.booleans())
def test_any_values_are_imported_and_exported_without_a_fault(
    tmp_path: Path, values: list[Any], transported: bool
) -> None:
    manifest = [{"type": "manifest", "format": "graphmem", "version": 1}] if transported else []
    path = tmp_path / "any.jsonl"
    path.write_bytes(b"\n".join(_dumped(value) for value in [*manifest, *values]))

    _without_a_fault(path)


def _dumped(value: Any) -> bytes:
    import json

    return json.dumps(value).encode()


def _without_a_fault(path: Path) -> None:
    from graphmem.export import export

    with in_memory() as store:
        try:
            report = take(store, path, encoder=HashEncoder(), batch_size=2)
        except GraphmemError:
            return
        assert unaccounted(report) == []
        held = content(store.db, places=False)
        target = path.with_name("out.jsonl")
        export(store, "jsonl", target)
        with in_memory() as other:
            again = take(other, target, SECOND_CLOCK, encoder=HashEncoder())
            assert again.findings.errors == 0
            assert content(other.db, places=False) == held
