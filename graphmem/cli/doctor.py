"""`gmem doctor`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from graphmem.cli._inputs import SEVERITIES, brief, terminable
from graphmem.cli._shared import configuration, number, output, standard_options
from graphmem.errors import EXIT_DONE
from graphmem.findings import Severity
from graphmem.render import counts, summary
from graphmem.terminal import visible

if TYPE_CHECKING:
    from graphmem.doctor import DoctorReport

_STATES: Final = {
    "off": "embeddings are off",
    "missing": "cannot be used",
    "unused": "not used yet",
    "compiled": "compiled",
    "direct": "served by sentence-transformers",
    "damaged": "its compiled copy is damaged",
}
_HELD: Final = (
    ("memories", "memory"), ("entities", "entity"), ("relations", "relation"), ("vectors", "vector"),
    ("batches", "batch"),
)  # fmt: skip


@click.command()
@click.option("--repair", is_flag=True, help="Make anew what is derived and is not as it should be.")
@click.option(
    "--fail-on", type=click.Choice(list(SEVERITIES)), default="error", show_default=True,
    help="The least severity of a finding that makes the exit status 1.",
)  # fmt: skip
@standard_options
def doctor(repair: bool, fail_on: str, db: str | None, graph: str | None, as_json: bool) -> int:
    """Find what is wrong, and mend what can be mended.

    Looks at the installation, the file, and everything in it: each index is compared with what it is made
    from. Nothing is changed, and a damaged file is only read. A store that is not sound makes the exit
    status 5.

    --repair makes indexes anew, in one transaction that is a batch of the log; the outcome is examined
    before it is kept. What somebody said is never made up: where a memory and its index differ and nothing
    tells which is right, both stay as they are, and a file that is damaged beyond its indexes is refused.
    """
    from graphmem import doctor as core

    config = configuration(db, graph)
    cache = os.environ.get("SENTENCE_TRANSFORMERS_HOME")
    with terminable():
        repaired = core.repair(config.store) if repair and config.store.exists() else None
        report = core.diagnose(config, Path(cache) if cache else None)
    report.repaired = repaired
    status = report.exit_status(SEVERITIES[fail_on])
    output(_result(report, status), as_json=as_json, text=lambda: "\n".join(_lines(report)))
    return status


def _result(report: DoctorReport, status: int) -> dict[str, Any]:
    return {
        "ok": status == EXIT_DONE, "environment": report.environment, "store": report.store,
        "findings": [one.as_dict() for one in report.findings], **counts(report.findings),
        "repaired": None if report.repaired is None else asdict(report.repaired),
    }  # fmt: skip


def _lines(report: DoctorReport) -> Iterator[str]:
    found, encoder = report.environment, report.environment["encoder"]
    vectors = f"vectors {found['vectors']}" if found["vectors"] else "no vectors"
    yield visible(f"graphmem  {found['graphmem']}, Python {found['python']}, {found['platform']}")
    yield f"SQLite    {found['sqlite']}, {'full text' if found['full_text'] else 'no full text'}, {vectors}"
    yield visible(f"model     {encoder['model']}: {_STATES[encoder['state']]}")
    held = report.store
    told = ", ".join(number(held[many], one, many) for many, one in _HELD if many in held)
    yield visible(f"store     {held['path']}{': ' if told else ''}{told}")
    if report.findings:
        yield ""
        yield brief(report.findings, all_of=Severity.NOTE)
    yield ""
    if report.repaired is not None and report.repaired.made:
        made = ", ".join(f"{count:,} {what}" for what, count in sorted(report.repaired.made.items()))
        yield visible(f"made anew: {made} (batch {report.repaired.batch})")
        if report.repaired.kept:
            yield visible(f"the damaged file is kept as {report.repaired.kept}")
    elif report.repaired is not None:
        yield "nothing had to be made anew"
    yield summary(report.findings)
