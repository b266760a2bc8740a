"""Records that the store knows already: never resolved, merged or encoded again."""

from __future__ import annotations

from graphmem.commit.context import BatchContext, Input
from graphmem.records import KINDS, Record
from graphmem.store.write import ENTITY


class Known:
    """Tells the records of a batch that were taken before, from this origin or another."""

    def __init__(self, context: BatchContext) -> None:
        self._context = context
        self._run = context.run
        self._writer = context.writer

    def recognise(self, records: list[Record]) -> list[Record]:
        """Counts the records that the store knows; the others, in order."""
        if self._run.choices.on_conflict == "overwrite":
            return records
        fresh: list[Record] = []
        find = self._writer.contributions
        inputs = self._run.inputs
        for record in records:
            source = inputs[record.input]
            found = None if source.transport else find(record.digest)
            if found:
                self._count(record, source, found)
            else:
                fresh.append(record)
        return fresh

    def _count(
        self, record: Record, source: Input, found: list[tuple[int, int, int, int, str, str | None]]
    ) -> None:
        context = self._context
        context.see(record)
        _, kind, item, batch, taken_at, said = found[0] if len(found) == 1 else min(found, key=_first)
        if kind == ENTITY:
            # What it declares may have been edited out of the store since, and still counts for the run.
            context.tables.pending += 1
        looked_at = context.any_archived or context.tables.archives
        changed = looked_at and self._revive(kind, item, record)
        if all(origin != source.origin for origin, *_ in found):
            # It says of the item what another origin has said, and does not make that any newer.
            self._writer.add_contribution(
                context.origin(source), record.digest, kind, item, record.place[0], taken_at, said
            )
        if batch in self._run.batches:
            context.touch(kind, item, 1, changed=changed)
        else:
            context.touch_old(kind, item, 1, changed=changed)

    def _revive(self, kind: int, item: int, record: Record) -> bool:
        """Brings an archived item back where sync archived it or the caller asks; whether it did.

        What only this run has archived comes back as well, since not all of its records speak of it so.
        """
        if record.state == "archived" or self._writer.batch_of(kind, item) in self._run.batches:
            return False
        context = self._context
        state, by, _ = self._writer.state_before(kind, item, context.tables.first_batch)
        if state == "archived" and by != "sync" and not self._run.choices.restore_archived:
            self._run.report.kept_archived += 1
            context.note("kept-archived", f"{KINDS[kind]} is archived and stays so", record)
            return False
        context.support(kind, item, (record,))
        if not self._writer.is_archived(kind, item):
            return False
        self._writer.set_state(kind, item, "active", None)
        return True


def _first(contribution: tuple[int, int, int, int, str, str | None]) -> tuple[str, int]:
    """The order of contributions of one digest: when they were taken, then from where."""
    return contribution[4], contribution[0]
