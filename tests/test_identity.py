"""What is imported twice, or exported and imported, is what it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import write_records
from everything import FIRST, SECOND, fill
from hash_encoder import HashEncoder
from hypothesis import given
from hypothesis import strategies as st
from importing import in_memory, lost, only, take, take_records
from snapshots import changed, content, differences, rows, sound
from strategies import FIRST_CLOCK, SECOND_CLOCK, THIRD_CLOCK, Universe, universes

from graphmem.commit import Choices
from graphmem.export import export
from graphmem.store import Store

FORMATS = ("jsonl", "yaml", "markdown")


@pytest.fixture
def store() -> Iterator[Store]:
    with in_memory() as made:
        yield made


def exported(store: Store, format: str, folder: Path, name: str = "out") -> Path:
    target = folder / f"{name}.{format}"
    export(store, format, target)
    return target


def files(path: Path) -> dict[str, bytes]:
    """What an export wrote: the bytes of its one file, or of every file of its folder."""
    if path.is_file():
        return {"": path.read_bytes()}
    return {str(one.relative_to(path)): one.read_bytes() for one in path.rglob("*") if one.is_file()}


# ---- the same input again ---------------------------------------------------------------------------


def test_the_same_files_again_change_no_row_and_encode_nothing(store: Store, tmp_path: Path) -> None:
    fill(store, tmp_path, HashEncoder())
    before = rows(store.db)

    for name in ("first", "second"):
        report = take(store, tmp_path / f"{name}.jsonl", THIRD_CLOCK, encoder=HashEncoder())

        assert report.encoded == 0
        assert report.batches == []
        assert all(counts.unchanged == counts.read for counts in report.counts.values())
    assert changed(before, rows(store.db)) == {}


BETWEEN: dict[str, list[dict[str, Any]]] = {
    "an update": [{"type": "memory", "id": "m2", "content": "plain no more", "scopes": ["global"]}],
    "another file about the same": [
        {"type": "entity", "name": "Auth Service", "kind": "service", "scope": "repo:/a", "aliases": ["x"]},
        {"type": "entity", "name": "C++", "scope": "global", "description": "a language"},
    ],
    "a new namesake": [
        {"type": "entity", "name": "C++", "kind": "band", "scope": "repo:/a"},
        {"type": "entity", "name": "C++", "kind": "letter", "scope": "global"},
        {"type": "entity", "name": "Nobody yet", "kind": "film", "scope": "global"},
    ],
    "a new alias": [
        {"type": "entity", "name": "Else", "scope": "repo:/a", "aliases": ["C++", "Auth Service"]}
    ],
}


@pytest.mark.parametrize("what", BETWEEN)
@pytest.mark.parametrize("batch_size", [1, 10_000])
def test_the_same_file_after(what: str, batch_size: int, store: Store, tmp_path: Path) -> None:
    """The first file again, when something else was imported in between."""
    fill(store, tmp_path, HashEncoder())
    between = take_records(store, tmp_path, BETWEEN[what], THIRD_CLOCK, encoder=HashEncoder())
    assert between.batches
    before = rows(store.db)

    report = take(store, tmp_path / "first.jsonl", THIRD_CLOCK, encoder=HashEncoder(), batch_size=batch_size)

    assert changed(before, rows(store.db)) == {}
    assert (report.encoded, report.batches) == (0, [])


def test_records_in_another_file_add_an_origin_and_encode_nothing(store: Store, tmp_path: Path) -> None:
    take_records(store, tmp_path, FIRST, name="first", encoder=HashEncoder())
    before = content(store.db, places=False)

    report = take_records(store, tmp_path, FIRST, SECOND_CLOCK, name="copy", encoder=HashEncoder())

    assert report.encoded == 0
    assert all(counts.unchanged == counts.read for counts in report.counts.values())
    origins = store.db.execute("SELECT count(DISTINCT origin), count(*) FROM contribution").fetchone()
    assert origins == (2, 2 * len(FIRST))
    after = content(store.db, places=False)
    assert [one for one in differences(before, after) if " contributions: " not in one] == []


def test_a_further_origin_does_not_make_a_record_newer(store: Store, tmp_path: Path) -> None:
    """Else the item would no longer be what its contributions make of it."""
    old = {"type": "entity", "name": "C", "description": "old"}
    new = {"type": "entity", "name": "C", "description": "new", "updated_at": "2025-06-01T00:00:00Z"}
    take_records(store, tmp_path, [old, new])

    take_records(store, tmp_path, [old], SECOND_CLOCK, name="copy")

    take(store, exported(store, "jsonl", tmp_path), THIRD_CLOCK)
    assert store.db.execute("SELECT description FROM entity").get == "new"


def test_a_file_of_which_nothing_is_taken_leaves_no_trace(store: Store, tmp_path: Path) -> None:
    fill(store, tmp_path)
    before = rows(store.db)
    refused = [
        {"type": "entity", "name": "C++", "scope": "global", "description": "differs"},
        {"type": "relation", "subject": "nothing", "predicate": "of", "object": "the sort"},
    ]

    choices = Choices(on_conflict="skip", dangling="error")
    report = take_records(store, tmp_path, refused, THIRD_CLOCK, choices=choices)

    assert report.counts["entity"] == only(skipped=1)
    assert report.counts["relation"] == only(rejected=1)
    assert report.batches == []
    assert changed(before, rows(store.db)) == {}


def test_the_digest_of_a_file_that_changed_is_kept(store: Store, tmp_path: Path) -> None:
    first = take_records(store, tmp_path, FIRST)
    second = take_records(store, tmp_path, FIRST[::-1], SECOND_CLOCK)

    assert first.inputs[0].digest != second.inputs[0].digest
    assert store.db.execute("SELECT digest FROM origin").fetchall() == [(second.inputs[0].digest,)]


def test_what_a_file_no_longer_says_is_counted(store: Store, tmp_path: Path) -> None:
    take_records(store, tmp_path, FIRST)

    report = take_records(store, tmp_path, FIRST[3:], SECOND_CLOCK)

    assert report.no_longer_in_source == 3
    assert report.batches == []


# ---- out and in again -------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("batch_size", [1, 3, 10_000])
def test_an_export_into_the_same_store_changes_no_row(
    format: str, batch_size: int, store: Store, tmp_path: Path
) -> None:
    fill(store, tmp_path, HashEncoder())
    target = exported(store, format, tmp_path)
    before = rows(store.db)

    report = take(store, target, THIRD_CLOCK, format=None, encoder=HashEncoder(), batch_size=batch_size)

    assert changed(before, rows(store.db)) == {}
    assert (report.encoded, report.batches, report.findings.by_rule) == (0, [], {})
    assert all(counts.unchanged == counts.read for counts in report.counts.values())


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("batch_size", [1, 2, 3, 10_000])
def test_an_export_into_an_empty_store_is_that_store(
    format: str, batch_size: int, store: Store, tmp_path: Path
) -> None:
    fill(store, tmp_path, HashEncoder())
    target = exported(store, format, tmp_path)

    with in_memory() as other:
        report = take(
            other, target, "2031-01-01T00:00:00.000Z", format=None, encoder=HashEncoder(),
            batch_size=batch_size,
        )  # fmt: skip

        assert report.findings.by_rule == {}
        assert all(counts.created == counts.read for counts in report.counts.values())
        assert differences(content(store.db), content(other.db)) == []
        assert sound(other.db) == []
        assert files(target) == files(exported(other, format, tmp_path, "again"))


def test_a_store_with_every_field_has_every_key_in_its_export(store: Store, tmp_path: Path) -> None:
    from graphmem.canonical import _ORDER

    fill(store, tmp_path)
    text = exported(store, "jsonl", tmp_path).read_text(encoding="utf-8")

    for type_, keys in _ORDER.items():
        lines = [line for line in text.splitlines() if line.startswith(f'{{"type":"{type_}"')]
        missing = [key for key in keys if not any(f'"{key}":' in line for line in lines)]
        assert missing == [], type_


def test_an_export_joins_what_another_store_holds(store: Store, tmp_path: Path) -> None:
    fill(store, tmp_path)
    target = exported(store, "jsonl", tmp_path)

    with in_memory() as other:
        take_records(other, tmp_path, SECOND, THIRD_CLOCK, name="second")
        take(other, target, "2031-01-01T00:00:00.000Z")
        before = rows(other.db)

        report = take(other, target, "2032-01-01T00:00:00.000Z")

        assert changed(before, rows(other.db)) == {}
        assert report.batches == []


@pytest.mark.parametrize("change", [lambda line: line.replace("plain", "plane"), lambda _: ""])
def test_an_export_that_was_edited_does_not_fit_its_manifest(
    change: Callable[[str], str], store: Store, tmp_path: Path
) -> None:
    fill(store, tmp_path)
    target = exported(store, "jsonl", tmp_path)
    lines = target.read_text(encoding="utf-8").split("\n")
    at = next(number for number, line in enumerate(lines) if '"plain"' in line)
    target.write_text("\n".join([*lines[:at], change(lines[at]), *lines[at + 1 :]]), encoding="utf-8")

    report = take(in_memory(), target)

    assert "manifest-mismatch" in report.findings.by_rule
    assert report.exit_status() == 5


# ---- any store --------------------------------------------------------------------------------------


@given(universe=universes(most=5), batch_size=st.sampled_from((1, 2, 3, 10_000)))
def test_any_store_is_itself_after_import_and_export(
    tmp_path: Path, universe: Universe, batch_size: int
) -> None:
    before_path = write_records(tmp_path / "before.jsonl", universe.before)
    path = write_records(tmp_path / "records.jsonl", universe.records)
    with in_memory() as store, in_memory() as other:
        first = take(store, before_path, FIRST_CLOCK)
        second = take(store, path, SECOND_CLOCK, choices=universe.choices)
        state = rows(store.db)

        if not lost(first):
            take(store, before_path, THIRD_CLOCK)
            assert changed(state, rows(store.db)) == {}
        if not lost(second) and universe.choices.on_conflict != "overwrite":
            take(store, path, THIRD_CLOCK, choices=universe.choices)
            assert changed(state, rows(store.db)) == {}
        target = exported(store, "jsonl", tmp_path)
        report = take(store, target, THIRD_CLOCK, batch_size=batch_size)
        assert changed(state, rows(store.db)) == {}
        assert report.findings.errors == 0

        take(other, target, "2031-01-01T00:00:00.000Z", batch_size=batch_size)
        assert differences(content(store.db), content(other.db)) == []
        assert sound(other.db) == []
        assert target.read_bytes() == exported(other, "jsonl", tmp_path, "again").read_bytes()
