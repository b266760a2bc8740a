"""Imports as the tests of the core run them: records to files, files into stores, stores compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from conftest import write_records
from snapshots import Content, content, differences, sound
from strategies import FIRST_CLOCK, SECOND_CLOCK, Arrangement, Record, Universe

from graphmem.commit import Choices
from graphmem.embed import Encoder
from graphmem.findings import Severity
from graphmem.ingest import run
from graphmem.options import ImportOptions
from graphmem.outcome import Counts, ImportReport
from graphmem.store import Store


def in_memory() -> Store:
    """An empty store that is gone with its connection."""
    return Store(":memory:", write=True)


def take(
    store: Store, paths: Path | Sequence[Path], clock: str = FIRST_CLOCK, *, format: str | None = "jsonl",
    encoder: Encoder | None = None, choices: Choices | None = None, **options: Any,
) -> ImportReport:  # fmt: skip
    """Imports files into a store."""
    given = [paths] if isinstance(paths, Path) else paths
    return run(
        store,
        ImportOptions(
            [str(path) for path in given], format=format, clock=clock, choices=choices or Choices(), **options
        ),
        encoder,
    )


def take_records(
    store: Store, folder: Path, records: Iterable[Any], clock: str = FIRST_CLOCK, *, name: str = "records",
    **options: Any,
) -> ImportReport:  # fmt: skip
    """Imports records by way of a file."""
    return take(store, write_records(folder / f"{name}.jsonl", records), clock, **options)


def unaccounted(report: ImportReport) -> list[str]:
    """The kinds of whose records the outcomes do not add up to what was read."""
    wrong = []
    for kind, counts in report.counts.items():
        outcomes = asdict(counts)
        read = outcomes.pop("read")
        if read != sum(outcomes.values()):
            wrong.append(f"{kind}: {counts}")
    return wrong


def lost(report: ImportReport) -> int:
    """Records that were read and not stored."""
    return report.total("rejected") + report.total("skipped")


def only(**outcomes: int) -> Counts:
    """Counts with these outcomes, and as many records read."""
    return Counts(read=sum(outcomes.values()), **outcomes)


class Outcome(NamedTuple):
    """What a store holds after a run, and the run's report."""

    content: Content
    report: ImportReport


def outcome(
    folder: Path, universe: Universe, arrangement: Arrangement, encoder: Encoder | None = None
) -> Outcome:
    """What becomes of a universe whose run is laid out in this way, in a store of its own."""
    with in_memory() as store:
        take_records(store, folder, universe.before, name="before", encoder=encoder)
        files = [
            write_records(folder / f"{number}.jsonl", records)
            for number, records in enumerate(arrangement.lay_out(universe.records))
        ]
        report = take(
            store, files, SECOND_CLOCK, encoder=encoder, choices=universe.choices,
            batch_size=arrangement.batch_size,
        )  # fmt: skip
        assert sound(store.db) == []
        assert unaccounted(report) == []
        return Outcome(content(store.db, places=False), report)


def _serious(report: ImportReport) -> list[str]:
    rules = [found.rule for found in report.findings if found.severity is not Severity.NOTE]
    # A record that a batch has taken is not resolved again when a later one repeats it.
    once = {"skipped-reference"}
    return sorted([rule for rule in rules if rule not in once] + list(once & set(rules)))


def _notes(report: ImportReport) -> set[str]:
    # Not the messages, which spell kinds as they are at the moment; nor what a later batch may decide or bring.
    rules = {found.rule for found in report.findings if found.severity is Severity.NOTE}
    return rules - {"tied-values", "near-names"}


def compared(one: Outcome, two: Outcome) -> list[str]:
    """What differs between two outcomes, places and the number of notes aside."""
    found = differences(one.content, two.content)
    left, right = one.report, two.report
    found += [
        f"counts of {kind}: {left.counts[kind]} / {right.counts[kind]}"
        for kind in left.counts
        if left.counts[kind] != right.counts[kind]
    ]
    if left.stubs != right.stubs:
        found.append(f"stubs: {left.stubs} / {right.stubs}")
    if _serious(left) != _serious(right):
        found.append(f"findings: {_serious(left)} / {_serious(right)}")
    if _notes(left) != _notes(right):
        found.append(f"notes: {_notes(left) ^ _notes(right)}")
    return found


def in_order(records: Sequence[Record], batch_size: int = 10_000) -> Arrangement:
    """The records as they come, in one file."""
    return Arrangement(list(range(len(records))), [0] * len(records), batch_size)
