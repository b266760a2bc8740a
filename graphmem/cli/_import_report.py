"""The report of an import as text for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Final

from graphmem.cli._shared import number
from graphmem.outcome import UNRECOGNISED, Counts, ImportReport
from graphmem.records import ENTITY, MEMORY, RELATION
from graphmem.terminal import visible

_ROWS: Final = {
    ENTITY: "entities",
    MEMORY: "memories",
    RELATION: "relations",
    UNRECOGNISED: UNRECOGNISED,
}
_COLUMNS: Final = tuple(field.name for field in fields(Counts))


def as_text(report: ImportReport, store: str) -> str:
    """A table of what became of the records, and lines on what else is worth knowing."""
    return "\n".join([*_table(report), "", *_lines(report, store)])


def _table(report: ImportReport) -> Iterator[str]:
    rows = {
        name: [f"{getattr(report.counts[kind], column):,}" for column in _COLUMNS]
        for kind, name in _ROWS.items()
        if kind != UNRECOGNISED or report.counts[kind].read
    }
    first = max(len(name) for name in rows)
    widths = [max(len(column), *(len(row[i]) for row in rows.values())) for i, column in enumerate(_COLUMNS)]
    titles = [column.rjust(width) for column, width in zip(_COLUMNS, widths, strict=True)]
    yield "  ".join([" " * first, *titles])
    for name, row in rows.items():
        yield "  ".join(
            [name.ljust(first), *(cell.rjust(width) for cell, width in zip(row, widths, strict=True))]
        )


def _lines(report: ImportReport, store: str) -> Iterator[str]:
    if report.stubs:
        yield f"{number(report.stubs, 'stub')} made for names that nothing declares"
    if report.encoded:
        yield f"{number(report.encoded, 'text')} encoded"
    if report.kept_archived:
        yield f"{number(report.kept_archived, 'record')} of archived things, which stay archived"
    if report.no_longer_in_source:
        said = number(report.no_longer_in_source, "thing")
        yield f"{said} that a source said before and no longer says: kept, since import never removes"
    unread = report.findings.by_rule.get("file-unreadable", 0)
    if unread:
        yield f"{number(unread, 'file or folder', 'files or folders')} could not be read"
    yield from left_out(report)
    yield _stored(report, visible(store))


def _stored(report: ImportReport, store: str) -> str:
    if report.dry_run:
        return f"dry run: nothing was stored in {store}"
    if report.batches:
        return f"stored in {store} ({number(len(report.batches), 'batch', 'batches')})"
    if report.total("unchanged") or report.total("merged") or not report.total("read"):
        return f"nothing new for {store}"
    return f"nothing was stored in {store}"


def left_out(report: ImportReport) -> Iterator[str]:
    """A line on the files that were passed over, where there were any."""
    count = report.ignored_files + report.other_files
    if count:
        yield f"{number(count, 'file')} left out: ignored, or of no format that is read"
