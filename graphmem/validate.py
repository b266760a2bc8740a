"""Checking inputs without a store: a whole import, done on a store of its own that is thrown away.

So references, homonyms and ids are checked across all inputs, by the rules of the import itself.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from graphmem.ingest import Progress, rehearse, run
from graphmem.options import ImportOptions
from graphmem.outcome import ImportReport
from graphmem.store import Store

COMMAND = "validate"


def validate(
    options: ImportOptions, *, against: Path | None = None, progress: Progress | None = None
) -> ImportReport:
    """What is wrong with the inputs, with what would become of their records.

    They are taken for all there is, or, with `against`, for what is added to the store of that path, which
    is not changed. Raises what an import raises, and `StoreNotFound` when there is no such store.
    """
    options = replace(options, command=COMMAND)
    if against is not None:
        Store(against).close()
        return rehearse(against, options, progress=progress)
    with Store.scratch() as store:
        report = run(store, options, progress=progress)
    report.dry_run = True
    report.committed = False
    return report
