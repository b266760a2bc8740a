"""What a run did: counts per kind, findings, batches; one object for the terminal and for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from graphmem.errors import EXIT_DONE, EXIT_FINDINGS, EXIT_INTEGRITY, EXIT_NOTHING_USABLE, EXIT_USAGE
from graphmem.findings import Finding, Severity
from graphmem.records import KINDS

FINDINGS_KEPT: Final = 10_000
"""Findings of one rule that are kept in full; further ones are counted."""

UNRECOGNISED: Final = "unrecognised"
"""The row of `counts` for what could not be told to be a record of any kind."""


@dataclass(slots=True)
class Counts:
    """What became of the records of one kind; the six outcomes add up to `read`."""

    read: int = 0
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    merged: int = 0
    skipped: int = 0
    rejected: int = 0

    @property
    def stored(self) -> int:
        """Records that are in the store now."""
        return self.created + self.updated + self.unchanged + self.merged


class Findings:
    """The findings of a run, in the order they came; of a rule that floods, only the first are kept."""

    def __init__(self) -> None:
        self._kept: list[Finding] = []
        self.by_rule: dict[str, int] = {}
        self.worst: Severity | None = None
        self.errors = 0

    def add(self, found: Finding) -> None:
        """Adds a finding."""
        count = self.by_rule.get(found.rule, 0)
        self.by_rule[found.rule] = count + 1
        if count < FINDINGS_KEPT:
            self._kept.append(found)
        if found.severity is Severity.ERROR:
            self.errors += 1
        if self.worst is None or found.severity > self.worst:
            self.worst = found.severity

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def left_out(self) -> int:
        """Findings counted but not kept."""
        return sum(self.by_rule.values()) - len(self._kept)

    def mark(self) -> tuple[int, dict[str, int], Severity | None, int]:
        """A point to which `rewind` goes back."""
        return len(self._kept), dict(self.by_rule), self.worst, self.errors

    def rewind(self, mark: tuple[int, dict[str, int], Severity | None, int]) -> None:
        """Forgets the findings since a mark, for a batch that is done again."""
        kept, self.by_rule, self.worst, self.errors = mark[0], dict(mark[1]), mark[2], mark[3]
        del self._kept[kept:]


@dataclass(slots=True)
class InputSummary:
    """One input of a run."""

    label: str
    uri: str
    format: str | None
    digest: str | None
    records: int
    transport: bool
    broken: bool = False
    """Whether something in it could not be read or stored."""


@dataclass(slots=True)
class ImportReport:
    """The report of an import, a dry run or a validation."""

    command: str
    dry_run: bool = False
    committed: bool = False
    counts: dict[str, Counts] = field(
        default_factory=lambda: {kind: Counts() for kind in (*KINDS, UNRECOGNISED)}
    )
    stubs: int = 0
    encoded: int = 0
    without_vectors: str = ""
    kept_archived: int = 0
    no_longer_in_source: int = 0
    archived: dict[str, int] = field(default_factory=dict)
    """Of a sync: items by kind that no file says any more."""
    withdrawn: int = 0
    """Of a sync: items that stay and lost something that a file no longer says."""
    ignored_files: int = 0
    other_files: int = 0
    inputs: list[InputSummary] = field(default_factory=list)
    batches: list[dict[str, Any]] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)
    unmapped: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    interrupted: bool = False

    def total(self, name: str) -> int:
        """The sum of one count over all kinds."""
        return sum(getattr(counts, name) for counts in self.counts.values())

    @property
    def usable(self) -> bool:
        """Whether any input held a record that was understood, or was an export, even an empty one."""
        return any(one.records or one.transport for one in self.inputs)

    @property
    def unreadable(self) -> bool:
        """Whether nothing could be used because nothing could be opened or read."""
        found = self.findings.by_rule
        return (
            not self.usable
            and "file-unreadable" in found
            and "unknown-format" not in found
            and all(one.format is None for one in self.inputs)
        )

    def batches_told(self) -> str:
        """What is stored, for a run that ended early."""
        count, records = len(self.batches), sum(batch["records"] for batch in self.batches)
        batches = "1 whole batch" if count == 1 else f"{count:,} whole batches"
        held = "1 record" if records == 1 else f"{records:,} records"
        return f"{batches} of {held} {'is' if count == 1 else 'are'} stored"

    def exit_status(self, fail_on: Severity = Severity.ERROR) -> int:
        """The exit status that says how the run went."""
        if "manifest-mismatch" in self.findings.by_rule:
            return EXIT_INTEGRITY
        if self.unreadable:
            return EXIT_USAGE
        if not self.usable:
            return EXIT_NOTHING_USABLE
        lost = self.total("rejected") + self.total("skipped")
        if lost or (self.findings.worst is not None and self.findings.worst >= fail_on):
            return EXIT_FINDINGS
        return EXIT_DONE

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        return {
            "command": self.command,
            "dry_run": self.dry_run,
            "committed": self.committed,
            "counts": {kind: asdict(counts) for kind, counts in self.counts.items()},
            "stubs": self.stubs,
            "encoded": self.encoded,
            "without_vectors": self.without_vectors,
            "kept_archived": self.kept_archived,
            "no_longer_in_source": self.no_longer_in_source,
            "ignored_files": self.ignored_files,
            "other_files": self.other_files,
            "unmapped": dict(sorted(self.unmapped.items())),
            "inputs": [asdict(one) for one in self.inputs],
            "batches": self.batches,
            "findings": [found.as_dict() for found in self.findings],
            "findings_left_out": self.findings.left_out,
            "findings_by_rule": dict(sorted(self.findings.by_rule.items())),
            "seconds": round(self.seconds, 3),
        }
