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
    support. Records archive an item that is new, or older than what one of them says, when no record of
    the run speaks of it otherwise. Judged from what stood before the run, so that batches do not count.
    """
    archiving = [one for one in records if one.state == "archived"]
    supporting = [one for one in records if one.state != "archived"]
    supported = bool(supporting) or (
        old is not None and context.tables.archives and context.tables.supported(kind, old["pk"])
    )
    if old is not None and old["batch"] not in context.run.batches:
        before = context.writer.state_before(kind, old["pk"], context.tables.first_batch)
        state, by, updated_at = before
        if state == "archived":
            _wake(context, kind, row, by, supporting)
            return
        archiving = [
            one for one in archiving if (one.updated_at or one.created_at or context.run.clock) > updated_at
        ]
    if supported:
        row["state"], row["archived_by"] = "active", None
    elif archiving:
        by_whom = [one.archived_by or "person" for one in archiving]
        if row["state"] == "archived":
            by_whom.append(row["archived_by"])
        row["state"], row["archived_by"] = "archived", max(by_whom)


def _wake(context: BatchContext, kind: int, row: Row, by: str | None, supporting: Sequence[Record]) -> None:
    """Brings an archived item back where records support it and that is wanted."""
    if not supporting:
        return
    if by == "sync" or context.run.choices.restore_archived:
        row["state"], row["archived_by"] = "active", None
    else:
        context.run.report.kept_archived += len(supporting)
        context.note("kept-archived", f"{KINDS[kind]} is archived and stays so", supporting[0])
