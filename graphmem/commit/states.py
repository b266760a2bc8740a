"""Whether an item that records speak of is active or archived."""

from __future__ import annotations

from collections.abc import Sequence

from graphmem.commit.context import BatchContext
from graphmem.records import KINDS, Record
from graphmem.store.write import Row


def settle_state(
    context: BatchContext, kind: int, row: Row, old: Row | None, records: Sequence[Record]
) -> None:
    """Sets `state` and `archived_by` of the row.

    What a person archived stays archived unless the caller restores; what sync archived comes back with
    support. A record archives an item that is new, or older than what the record says.
    """
    archiving = [one for one in records if one.state == "archived"]
    if old is None:
        if archiving and len(archiving) == len(records):
            row["state"] = "archived"
            row["archived_by"] = max(one.archived_by or "person" for one in archiving)
        return
    if old["state"] == "archived":
        supported = [one for one in records if one.state != "archived"]
        if not supported:
            return
        if old["archived_by"] == "sync" or context.run.choices.restore_archived:
            row["state"], row["archived_by"] = "active", None
        else:
            context.run.report.kept_archived += len(supported)
            context.note("kept-archived", f"{KINDS[kind]} is archived and stays so", supported[0])
        return
    newer = [
        one
        for one in archiving
        if (one.updated_at or one.created_at or context.run.clock) > old["updated_at"]
    ]
    if newer and len(archiving) == len(records):
        row["state"] = "archived"
        row["archived_by"] = max(one.archived_by or "person" for one in newer)
