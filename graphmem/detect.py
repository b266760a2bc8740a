"""Which format each input is, and why: what an import would read, without reading it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from graphmem import formats
from graphmem.errors import AmbiguousFormat, UnknownFormat
from graphmem.findings import Finding, finding
from graphmem.reading import Found, discover, open_input


@dataclass(frozen=True, slots=True)
class Detected:
    """What one input is; `compression` and `encoding` are `None` for plain UTF-8."""

    label: str
    format: str
    why: str
    compression: str | None
    encoding: str | None

    def as_dict(self) -> dict[str, Any]:
        """The answer as JSON."""
        return asdict(self)


def detect(
    paths: Sequence[str], *, format_name: str | None = None, encoding: str | None = None
) -> Iterator[Detected | Finding]:
    """The format of every input that `paths` mean, in their order; a finding for what no format reads.

    Raises `UsageError` for an unknown format or encoding and `InputUnreadable` for a path that is not there.
    """
    forced = formats.importer(format_name) if format_name else None
    for found in discover(paths):
        if isinstance(found, Finding):
            yield found
        else:
            yield from _detect(found, forced, encoding)


def _detect(
    found: Found, forced: formats.Importer | None, encoding: str | None
) -> Iterator[Detected | Finding]:
    with open_input(found, encoding) as opened:
        head = opened.head()
        yield from opened.findings
        if not opened.complete and not head:
            return
        try:
            importer, why = (forced, "named by --from") if forced else formats.pick(head, found.name)
        except (UnknownFormat, AmbiguousFormat) as error:
            yield finding(error.code, error.message, file=found.label, hint=error.hint)
            return
        yield Detected(found.label, importer.name, why, opened.compression, opened.encoding)
