"""Checking inputs without a store: by the rules of an import, across all inputs at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import write_records

from graphmem.commit import Choices
from graphmem.errors import StoreNotFound
from graphmem.ingest import run
from graphmem.options import ImportOptions
from graphmem.outcome import ImportReport
from graphmem.store import Store
from graphmem.validate import validate

ANN = {"type": "entity", "name": "Ann", "kind": "person"}


def rules(report: ImportReport) -> dict[str, int]:
    return report.findings.by_rule


def files(tmp_path: Path, *contents: list[Any]) -> list[str]:
    return [
        str(write_records(tmp_path / f"{number}.jsonl", content)) for number, content in enumerate(contents)
    ]


def test_references_are_resolved_across_files_whatever_their_order(tmp_path: Path) -> None:
    paths = files(tmp_path, [["Ann", "knows", "Bob"]], [ANN, {"type": "entity", "name": "Bob"}])
    assert rules(validate(ImportOptions(paths))) == {}
    assert rules(validate(ImportOptions(paths[:1]))) == {"stub-created": 2}


def test_a_reference_to_several_entities_is_an_error(tmp_path: Path) -> None:
    paths = files(tmp_path, [ANN], [{**ANN, "kind": "boat"}], [["Ann", "floats_on", "Ann"]])
    report = validate(ImportOptions(paths))
    assert rules(report) == {"ambiguous-name": 1}
    assert report.counts["relation"].rejected == 1


def test_an_id_given_to_two_things_is_an_error(tmp_path: Path) -> None:
    paths = files(tmp_path, [{**ANN, "id": "x"}], [{"type": "entity", "name": "Bob", "id": "x"}])
    assert rules(validate(ImportOptions(paths))) == {"id-conflict": 1}


def test_a_dangling_reference_can_be_an_error(tmp_path: Path) -> None:
    paths = files(tmp_path, [ANN, ["Ann", "knows", "Bob"]])
    report = validate(ImportOptions(paths, choices=Choices(dangling="error")))
    assert rules(report) == {"dangling-reference": 1}


def test_nothing_is_said_to_be_stored(tmp_path: Path) -> None:
    report = validate(ImportOptions(files(tmp_path, [ANN])))
    assert (report.command, report.dry_run, report.committed) == ("validate", True, False)
    assert report.counts["entity"].created == 1


def test_against_a_store_the_records_meet_what_it_holds(tmp_path: Path, store_path: Path) -> None:
    held, new = files(tmp_path, [ANN], [["Ann", "knows", "Ann"], ANN])
    with Store(store_path, write=True) as opened:
        run(opened, ImportOptions([held]))
    before = store_path.read_bytes()

    alone, against = (
        validate(ImportOptions([new])),
        validate(ImportOptions([new]), against=store_path),
    )
    assert (alone.counts["entity"].created, against.counts["entity"].unchanged) == (1, 1)
    assert store_path.read_bytes() == before


def test_against_a_store_that_is_not_there_is_an_error(tmp_path: Path, store_path: Path) -> None:
    with pytest.raises(StoreNotFound):
        validate(ImportOptions(files(tmp_path, [ANN])), against=store_path)
    assert not store_path.exists()


def test_the_findings_do_not_depend_on_the_batch_size(tmp_path: Path) -> None:
    paths = files(tmp_path, [[f"a{i}", "knows", f"b{i % 7}"] for i in range(50)])
    whole = validate(ImportOptions(paths))
    pieces = validate(ImportOptions(paths, batch_size=3))
    assert rules(whole) == rules(pieces) == {"stub-created": 57}
