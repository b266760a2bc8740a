"""Whatever is done to a store in whatever order, it stays sound, and all of it can be taken back."""

from __future__ import annotations

from acts_machine import Acts
from hypothesis import settings

TestActs = Acts.TestCase
TestActs.settings = settings(max_examples=10, stateful_step_count=6)
