"""Whatever is done to a store in whatever order, it stays sound, and all of it can be taken back."""

from __future__ import annotations

from acts_machine import Acts
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test


def test_acts_in_any_order_leave_a_sound_store_and_can_be_taken_back() -> None:
    run_state_machine_as_test(Acts, settings=settings(max_examples=12, stateful_step_count=12))
