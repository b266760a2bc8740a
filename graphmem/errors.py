"""Faults of the tool or of how it was called: each class has a code and an exit status.

A fault of a *file* is never an exception, it is a `graphmem.findings.Finding`.
"""

from __future__ import annotations

EXIT_DONE = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_NOTHING_USABLE = 3
EXIT_BUSY = 4
EXIT_INTEGRITY = 5
EXIT_INTERRUPTED = 130


class GraphmemError(Exception):
    """The tool could not do what was asked."""

    code = "error"
    exit_status = EXIT_USAGE

    def __init__(self, message: str, hint: str = "", suggestions: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.suggestions = suggestions
        self.details: dict[str, object] = {}
        """What is told with `--json` beside the error."""


class UsageError(GraphmemError):
    """The options or arguments do not fit together."""

    code = "usage"


class InputUnreadable(GraphmemError):
    """An input could not be opened or read."""

    code = "input-unreadable"


class OutputUnwritable(GraphmemError):
    """A file or folder that was to be written could not be."""

    code = "output-unwritable"


class NothingUsable(GraphmemError):
    """The input was read and nothing in it could be used."""

    code = "nothing-usable"
    exit_status = EXIT_NOTHING_USABLE


class StoreError(GraphmemError):
    """The store could not be used."""

    code = "store"


class StoreNotFound(StoreError):
    """A read was asked of a store that does not exist."""

    code = "store-not-found"


class StoreUntrusted(StoreError):
    """The nearest store is tracked by Git and was never trusted on this machine."""

    code = "store-untrusted"


class StoreForeign(StoreError):
    """The file belongs to another program."""

    code = "store-foreign"


class StoreTooNew(StoreError):
    """The file was written by a newer graphmem."""

    code = "store-too-new"


class StoreReadOnly(StoreError):
    """A write was asked of a store that can only be read."""

    code = "store-read-only"


class StoreFull(StoreError):
    """The disk has no room, or a file size limit was met."""

    code = "store-full"


class StoreBusy(StoreError):
    """Another process held the write lock for longer than the wait limit."""

    code = "store-busy"
    exit_status = EXIT_BUSY


class StoreDamaged(StoreError):
    """The file is not a sound database."""

    code = "store-damaged"
    exit_status = EXIT_INTEGRITY


class RepairRefused(StoreError):
    """The store is damaged where nothing is left to make it anew from; nothing was changed."""

    code = "repair-refused"
    exit_status = EXIT_INTEGRITY


class BackupUnusable(GraphmemError):
    """The file cannot be read, or is no backup of a store."""

    code = "backup-unusable"


class BackupDamaged(GraphmemError):
    """The backup does not hold what was written; nothing was replaced."""

    code = "backup-damaged"
    exit_status = EXIT_INTEGRITY


class FormatError(GraphmemError):
    """No format, or more than one, fits the input, or a format failed."""

    code = "format"


class UnknownFormat(FormatError):
    """No importer recognises the input."""

    code = "unknown-format"
    exit_status = EXIT_NOTHING_USABLE


class AmbiguousFormat(FormatError):
    """More than one importer claims the input."""

    code = "ambiguous-format"


class FormatFailed(FormatError):
    """An importer or exporter raised something it should not."""

    code = "format-failed"


class EncoderError(GraphmemError):
    """The embedding model could not be used; nothing of the batch was stored."""

    code = "encoder"


class ModelUnavailable(EncoderError):
    """The configured model cannot be found or loaded."""

    code = "model-unavailable"


class EncoderMismatch(EncoderError):
    """The store's vectors were made by another encoder."""

    code = "encoder-mismatch"


class LookupFailed(GraphmemError):
    """Something named could not be found, or not uniquely."""

    code = "lookup"


class EntityNotFound(LookupFailed):
    """No entity answers to the name; suggestions are attached."""

    code = "entity-not-found"


class ItemNotFound(LookupFailed):
    """No memory, entity or relation has the id."""

    code = "item-not-found"


class AmbiguousName(LookupFailed):
    """Several entities answer to the name; they are listed."""

    code = "ambiguous-name"


class EditRefused(GraphmemError):
    """What was asked for cannot be done to these items."""

    code = "edit-refused"


class SyncRefused(GraphmemError):
    """A sync would archive more than is allowed: files that are gone by mistake are no reason to forget."""

    code = "sync-refused"


class UndoRefused(GraphmemError):
    """A batch cannot be taken back: later ones were built on it, or it is not known what it changed."""

    code = "undo-refused"


class Interrupted(GraphmemError):
    """The run was interrupted; whole batches stand."""

    code = "interrupted"
    exit_status = EXIT_INTERRUPTED
