"""Remembering: records handed over by a person or an agent, through the same line as an import."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from graphmem.commit import Choices
from graphmem.commit.edits import REMEMBER_URI
from graphmem.ingest import run
from graphmem.mapping import to_record
from graphmem.options import Given, ImportOptions
from graphmem.outcome import ImportReport
from graphmem.prepare import prepare
from graphmem.records import KINDS, ManifestRecord, Place
from graphmem.store import Store
from graphmem.store.outcome import where_it_went

if TYPE_CHECKING:
    from graphmem.embed import Encoder

MAX_RECORDS: Final = 10_000
"""How many records one call takes, which are one batch: more of them are a file to import."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """What became of one record: `created`, `merged` (it changed something), `unchanged` or `rejected`."""

    status: str
    type: str = ""
    id: str | None = None
    problems: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The outcome as it stands in JSON."""
        told: dict[str, Any] = {"status": self.status, "type": self.type, "id": self.id}
        if self.problems:
            told["problems"] = list(self.problems)
        return told


def remember(
    store: Store | Callable[[], Store],
    records: Sequence[Any],
    *,
    scope: str,
    encoder: Encoder | None = None,
    actor: str | None = None,
    command: str = "remember",
    dangling: str = "stub",
    strict: bool = False,
) -> tuple[ImportReport, list[Remembered]]:
    """Stores records (mappings as in the record format, or short triples) as one batch with their vectors.

    What the store knows already is told as unchanged; what a person archived comes back when it is said
    again. References to nothing become stubs, or are refused with `dangling="error"`. `strict` stores all
    records or none. Raises what an import raises.
    """
    options = ImportOptions(
        given=Given(records, REMEMBER_URI), scope=scope, command=command, actor=actor, atomic=True,
        strict=strict, choices=Choices(dangling=dangling, restore_archived=True),
    )  # fmt: skip
    opened: list[Store] = []

    def opening() -> Store:
        if not opened:
            opened.append(store if isinstance(store, Store) else store())
        return opened[0]

    report = run(opening, options, encoder)
    if report.findings.errors and strict and not report.batches:
        return report, [_problem(report, number) for number in range(1, len(records) + 1)]
    outcomes = [
        _outcome(opening, report, scope, number, value) for number, value in enumerate(records, start=1)
    ]
    return report, outcomes


def _problem(report: ImportReport, number: int) -> Remembered:
    told = tuple(f"{found.message} [{found.rule}]" for found in report.findings if found.place.line == number)
    return Remembered("rejected", problems=told)


def _outcome(
    opening: Callable[[], Store], report: ImportReport, scope: str, number: int, value: Any
) -> Remembered:
    record = None
    if not any(found.place.line == number and found.severity.name == "ERROR" for found in report.findings):
        record = to_record(value, Place(number, 1), "", [])
    if record is None or isinstance(record, ManifestRecord):
        return _problem(report, number)
    record.origins = None
    prepare(record, 0, scope)
    store = opening()
    went = where_it_went(store.db, REMEMBER_URI, record.digest)
    if went is None:
        return _problem(report, number)
    batches = {batch["batch"] for batch in report.batches}
    status = "created" if went.made_by in batches else "merged" if went.changed_by in batches else "unchanged"
    notes = tuple(
        f"{found.message} [{found.rule}]"
        for found in report.findings
        if found.place.line == number and found.severity.name != "ERROR"
    )
    return Remembered(status, KINDS[went.kind], went.id, notes)
