"""The proofs of the import core again, longer: run by `make soak`."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import test_accounting
import test_fold
import test_identity
import test_names
import test_order
import test_resolve
from acts_machine import Acts
from faults import interrupted_store
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

pytestmark = pytest.mark.slow

PROPERTIES = [
    (test_order.test_the_layout_of_a_run_does_not_matter, 4_000),
    (test_order.test_the_layout_of_a_run_does_not_matter_to_vectors, 1_000),
    (test_identity.test_any_store_is_itself_after_import_and_export, 2_000),
    (test_resolve.test_references_mean_what_the_table_says, 4_000),
    (test_accounting.test_counts_are_those_of_the_store, 2_000),
    (test_accounting.test_a_rehearsal_reports_what_the_run_then_does, 500),
    (test_accounting.test_any_values_are_imported_and_exported_without_a_fault, 4_000),
    (test_accounting.test_any_bytes_are_read_with_findings_and_without_a_fault, 4_000),
    (test_fold.test_the_order_of_contributions_does_not_count, 4_000),
    (test_names.test_every_form_is_a_fixpoint_of_itself, 20_000),
    (test_names.test_a_coarser_form_does_not_see_a_finer_one, 20_000),
]


@pytest.mark.parametrize(
    ("proof", "examples"), PROPERTIES, ids=lambda value: getattr(value, "__name__", None)
)
def test_for_longer(proof: Any, examples: int, tmp_path: Path) -> None:
    assert callable(proof)
    longer = settings(max_examples=examples, derandomize=False)(proof)
    if "tmp_path" in proof.hypothesis.inner_test.__annotations__:
        longer(tmp_path=tmp_path)
    else:
        longer()


def test_acts_in_any_order_for_longer() -> None:
    run_state_machine_as_test(
        Acts, settings=settings(max_examples=500, stateful_step_count=20, derandomize=False)
    )


def test_a_hundred_kills_leave_whole_batches(tmp_path: Path) -> None:
    """The kills fall between the first and the last batch, not all at one end."""
    reached = interrupted_store(tmp_path, kills=100, seed=7)

    assert len(reached) == 100
    assert len(set(reached)) > 5


def test_whole_batches_come_out_the_same_every_time() -> None:
    """What the kills are compared with does not depend on chance."""
    from conftest import write_records
    from faults import _records, whole_batches

    with TemporaryDirectory() as folder:
        path = write_records(Path(folder) / "records.jsonl", _records())
        first = whole_batches(Path(folder), [path], batch_size=6)
        (Path(folder) / "whole.db").unlink()
        for name in ("whole.db-wal", "whole.db-shm"):
            (Path(folder) / name).unlink(missing_ok=True)

        assert whole_batches(Path(folder), [path], batch_size=6) == first
