"""The doctor: what is wrong with this installation and with a store, and mending what can be made anew."""

from __future__ import annotations

import os
import platform
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from graphmem import __version__, private, scopes, times
from graphmem.backup import free_name, moment, scratch_folder
from graphmem.config import Config
from graphmem.embed import EmbeddingConfig
from graphmem.embed import state as encoders
from graphmem.embed.state import EncoderState
from graphmem.errors import (
    EXIT_DONE,
    EXIT_FINDINGS,
    EXIT_INTEGRITY,
    RepairRefused,
    StoreBusy,
    StoreDamaged,
    StoreNotFound,
    StoreReadOnly,
)
from graphmem.findings import Finding, Severity, finding
from graphmem.prepare import canonical_json
from graphmem.store import SCHEMA_VERSION, Store, is_there
from graphmem.store import backup as stores
from graphmem.store.carry import carry_over
from graphmem.store.connection import as_it_is
from graphmem.store.damage import compare
from graphmem.store.examine import Examined, examine, libraries, without_log
from graphmem.store.mend import Mender
from graphmem.store.physical import look
from graphmem.store.vectors import StoredEncoder
from graphmem.ulid import mint
from graphmem.walk import file_is_gone

COMMAND: Final = "repair"
_ROOM: Final = 100_000_000
_LARGE_LOG: Final = 256_000_000
_SHOWN: Final = 5


@dataclass(slots=True)
class DoctorReport:
    """What was found, and what was made anew before."""

    environment: dict[str, Any]
    store: dict[str, Any]
    findings: list[Finding] = field(default_factory=list)
    repaired: Repaired | None = None

    def exit_status(self, fail_on: Severity = Severity.ERROR) -> int:
        """5 for a store that is not sound, else 1 for a finding as bad as `fail_on`."""
        worst = max((one.severity for one in self.findings), default=None)
        if any(one.severity is Severity.ERROR and one.rule.startswith("store-") for one in self.findings):
            return EXIT_INTEGRITY
        return EXIT_FINDINGS if worst is not None and worst >= fail_on else EXIT_DONE


def diagnose(config: Config, hub_cache: Path | None = None) -> DoctorReport:
    """What is wrong with the installation and with the store of a configuration; nothing is changed.

    Raises `StoreNotFound` for a store that was named and is not there, `StoreForeign`, `StoreTooNew`, and
    `StoreBusy`; damage is a finding.
    """
    encoder = encoders.look(
        EmbeddingConfig(config.embedding_model, config.embeddings, config.home, hub_cache)
    )
    report = DoctorReport(_environment(config, encoder), {"path": str(config.store)})
    report.findings += _of_environment(report.environment, encoder)
    if not is_there(config.store):
        if config.via in ("option", "environment"):
            raise StoreNotFound(
                f"there is no store at {config.store}", "import something, or name it with --db"
            )
        report.findings.append(finding("store-missing", "no store yet", file=str(config.store)))
        return report
    report.findings += _of_files(config.store)
    found = _examined(config.store, report.findings)
    if found is not None:
        report.store |= found.report.numbers
        report.findings += found.findings
        report.findings += _of_places(found, str(config.store))
        report.findings += _of_encoder(found.encoder, encoder, str(config.store))
    return report


# ---- the installation -------------------------------------------------------------------------------


def _environment(config: Config, encoder: EncoderState) -> dict[str, Any]:
    return {
        "graphmem": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        **libraries(),
        "home": str(config.home),
        "encoder": {
            "model": encoder.model, "state": encoder.state,
            **(asdict(encoder.info) if encoder.info is not None else {}),
        },
        "disk_free": _room(config.store.parent),
    }  # fmt: skip


def _room(folder: Path) -> int | None:
    """The free bytes where a folder is, or will be."""
    for place in (folder, *folder.parents):
        try:
            return shutil.disk_usage(place).free
        except OSError:
            continue
    return None


def _of_environment(environment: dict[str, Any], encoder: EncoderState) -> Iterator[Finding]:
    if environment["vectors"] is None:
        yield finding("no-vector-extension", "the sqlite-vec extension cannot be loaded here")
    if encoder.state == "missing":
        yield finding("encoder-missing", f"the model '{encoder.model}' cannot be used: {encoder.why}")
    if encoder.state == "damaged":
        yield finding(
            "encoder-damaged", f"the compiled model '{encoder.model}' cannot be used: {encoder.why}"
        )


def _of_files(store: Path) -> Iterator[Finding]:
    """Room, permissions, and the size of the log."""
    label = str(store)
    size = store.stat().st_size
    room = _room(store.parent)
    if room is not None and room < max(_ROOM, size):
        yield finding("disk-low", f"{room:,} bytes are free, and the store has {size:,}", file=label)
    for path in (store, store.parent):
        if not _is_writable(path):
            what = "folder of the store" if path == store.parent else "store"
            yield finding("store-read-only", f"the {what} can only be read", file=str(path))
    if os.name == "posix":
        yield from _open_to_others(store)
    log = store.with_name(f"{store.name}-wal")
    if is_there(log) and log.stat().st_size > _LARGE_LOG:
        yield finding("log-large", f"the write-ahead log has {log.stat().st_size:,} bytes", file=str(log))


def _is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _open_to_others(store: Path) -> Iterator[Finding]:
    """Files of the store that others can read, unless a folder above keeps them out."""
    if not store.parent.stat().st_mode & stat.S_IXOTH and not store.parent.stat().st_mode & stat.S_IXGRP:
        return
    for path in (store, store.with_name(f"{store.name}-wal")):
        mode = stat.S_IMODE(path.stat().st_mode) if is_there(path) else 0
        if mode & 0o077:
            yield finding(
                "open-permissions", f"other users can read it (mode {mode:o})", file=str(path),
                hint=f"chmod 600 '{path}'",
            )  # fmt: skip


# ---- the store --------------------------------------------------------------------------------------


def _examined(path: Path, findings: list[Finding]) -> Examined | None:
    """The examination of a store that is only read; of an older one, that of a copy brought up to date."""
    label = str(path)
    log = without_log(path) if path.stat().st_size else None
    if not path.stat().st_size:
        left = path.with_name(f"{path.name}-wal")
        if is_there(left) and left.stat().st_size:
            message = f"the file is empty, and the log beside it has {left.stat().st_size:,} bytes"
            hint = (
                "copy both before anything else opens the store, which would remove the log; restore a backup"
            )
            findings.append(finding("store-damage", message, file=label, hint=hint))
        else:
            findings.append(finding("store-missing", "the file is empty, not yet a store", file=label))
        return None
    try:
        with as_it_is(path) as (_, version):
            pass
        with _readable(path, version, findings) as store:
            found: Examined | None = examine(store)
    except StoreDamaged as error:
        message = error.message.removeprefix(f"{label}: ")
        findings.append(finding("store-damage", message, file=label))
        found = None
    unsound = found is None or any(one.rule == "store-damage" for one in found.findings)
    if unsound and log is not None and log.sound:
        message = f"without the log beside it the store is sound, up to batch {log.batch} of {log.at}"
        findings.append(finding("store-log", message, file=f"{label}-wal"))
    return found


@contextmanager
def _readable(path: Path, version: int, findings: list[Finding]) -> Iterator[Store]:
    if version == SCHEMA_VERSION:
        with Store(path) as store:
            yield store
        return
    message = f"its schema is {version}, the present one is {SCHEMA_VERSION}"
    findings.append(finding("store-older", message, file=str(path)))
    with tempfile.TemporaryDirectory(prefix="gmem-doctor-") as folder:
        copy = Path(folder) / "memory.db"
        stores.copy(path, copy)
        with Store(copy, write=True) as store:
            store.path = str(path)
            yield store


def _of_places(found: Examined, label: str) -> Iterator[Finding]:
    """Files and repositories that are not there any more."""
    for rule, what, gone in (
        ("source-gone", "sources that are not there any more", list(filter(file_is_gone, found.origins))),
        (
            "scope-gone",
            "scopes of repositories that are not there",
            list(filter(scopes.is_gone, found.scopes)),
        ),
    ):
        if gone:
            some = ", ".join(gone[:_SHOWN]) + (
                f" and {len(gone) - _SHOWN:,} more" if len(gone) > _SHOWN else ""
            )
            yield finding(rule, f"{len(gone):,} {what}: {some}", file=label)


def _of_encoder(held: StoredEncoder | None, encoder: EncoderState, label: str) -> Iterator[Finding]:
    if held is None or encoder.info is None:
        return
    info = encoder.info
    if (held.digest, held.dimension) != (info.digest, info.dimension):
        message = (
            f"the vectors are of {held.name} ({held.digest[:12]}), the configured model is "
            f"{info.name} ({info.digest[:12]})"
        )
        yield finding("encoder-stale", message, file=label)


# ---- mending ----------------------------------------------------------------------------------------


class _NotMendedError(Exception):
    """What was made anew is not sound."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """What was made anew, counted by what it belongs to, the batch of it, and where a damaged file is kept."""

    made: dict[str, int]
    batch: str | None = None
    kept: str | None = None


def repair(path: Path) -> Repaired:
    """Makes anew what is derived and is not as it should be, in one transaction.

    Where the file itself is damaged, but not the tables that hold what was said, a new one is made of these
    and put in its place.

    What an item itself says is never changed, and where an item and its index differ, neither. The result
    is examined before it is kept. Raises `RepairRefused` when the file is damaged where nothing is
    left to make it from, `StoreBusy`, `StoreFull`, `StoreReadOnly`.
    """
    findings: list[Finding] = []
    found = _examined(path, findings)
    _refuse(path, found, findings)
    if not _is_writable(path):
        raise StoreReadOnly(f"{path}: the store can only be read", "check the permissions")
    try:
        if found is not None and found.physical.messages:
            return _rebuild(path)
        with Store(path, write=True) as store, store.errors(), store.transaction():
            return _mend(store)
    except (_NotMendedError, StoreDamaged) as error:
        raise RepairRefused(
            f"{path}: what was made anew was not sound, and nothing was changed ({error})",
            "restore a backup; 'gmem export' may still read what is there",
        ) from error


def _rebuild(path: Path) -> Repaired:
    """Makes a new store of what a damaged file holds, and puts it in its place when it is sound."""
    with scratch_folder(path.parent) as folder:
        old, new = folder / "old.db", folder / "memory.db"
        private.create_file(old)
        stores.copy_pages(path, old)
        with Store(old) as damaged, damaged.errors():
            physical = look(damaged.db)
        if not physical.can_be_mended:
            raise _NotMendedError("; ".join([*physical.lost, *physical.doubtful]))
        with Store(new, write=True) as store, store.errors():
            mender = carry_over(store, old, physical)
            with store.transaction():
                done = _mend(store, mender)
        return replace(done, kept=str(_swap(path, old, new)))


def _swap(path: Path, old: Path, new: Path) -> Path:
    """Puts a new store in the place of a damaged one, whose content is kept beside it."""
    kept = free_name(path.parent, f"{path.name}.damaged-{moment(times.now())}")
    made: list[Path] = []

    def keep() -> Path:
        if made:
            raise StoreBusy(f"{path}: others write to it while it is repaired", "end them, and try again")
        made.append(kept)
        old.replace(kept)
        return kept

    stores.replace(path, new, keep, lambda one: one.unlink())
    return kept


def _refuse(path: Path, found: Examined | None, findings: list[Finding]) -> None:
    advice = "restore a backup; 'gmem export' may still read what is there"
    if any(one.rule == "store-log" for one in findings):
        raise RepairRefused(
            f"{path}: the log beside it does not belong to it, and nothing was changed",
            "'gmem doctor' says what to do with it",
        )
    physical = None if found is None else found.physical
    if physical is None or not physical.can_be_mended:
        why = [one.message for one in findings if one.severity is Severity.ERROR]
        why += [] if physical is None else [*physical.lost, *physical.doubtful]
        told = "; ".join(why[:_SHOWN]) or "it holds nothing"
        raise RepairRefused(f"{path}: damaged where it cannot be mended, and not changed: {told}", advice)
    if found is not None and found.differences is None and not physical.messages:
        told = "; ".join(one.message for one in found.findings if one.severity is Severity.ERROR)
        raise RepairRefused(f"{path}: holds values that cannot be read, and was not changed: {told}", advice)


def _mend(store: Store, mender: Mender | None = None) -> Repaired:
    """Everything inside the transaction: look again under the lock, mend, look once more."""
    physical = look(store.db)
    if physical.messages:
        raise _NotMendedError("; ".join(physical.messages))
    mender = mender or Mender(store.db)
    mender.differences(compare(store.db))
    if not mender.done:
        return Repaired({})
    if compare(store.db).can_be_mended:
        raise _NotMendedError("what was made anew differs still")
    clock, last = times.now(), store.last_time()
    clock = clock if clock > last else times.next_millisecond(last)
    writer = store.writer()
    batch = mint(clock, "batch", str(writer.batch), canonical_json([COMMAND]))
    writer.add_batch(
        id_=batch, run=mint(clock, "run"), at=clock, command=COMMAND, importer=None, inputs=[],
        counts={"repaired": mender.done},
    )  # fmt: skip
    return Repaired(mender.done, batch)
