"""Whole stores copied, looked at and put in the place of others, through SQLite's backup interface."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import apsw

from graphmem.errors import StoreBusy, StoreDamaged, StoreFull, StoreNotFound
from graphmem.store.connection import as_it_is, load_vectors

_PAGES: Final = 4096
_TRIES: Final = 5
_SHOWN: Final = 5
_COUNTED: Final = (
    ("memories", "memory"), ("entities", "entity"), ("relations", "relation"), ("vectors", "vector"),
    ("contributions", "contribution"), ("origins", "origin"), ("batches", "batch"),
)  # fmt: skip
_COUNT: Final = "SELECT count(*) FROM {table}"
_LAST: Final = "SELECT max(at) FROM batch"
_Kept = TypeVar("_Kept")


class Held(NamedTuple):
    """What a store holds: the schema it has, rows by table, and the time of its newest batch."""

    schema_version: int
    counts: dict[str, int]
    newest: str | None


def _held(db: apsw.Connection, version: int) -> Held:
    ask: Any = db.execute
    counts = {name: ask(_COUNT.format(table=table)).get for name, table in _COUNTED}
    return Held(version, counts, ask(_LAST).get)


def copy_pages(path: Path, target: Path) -> None:
    """Makes `target` the same as the store at `path`, page by page, whatever is in them."""
    with as_it_is(path) as (origin, _), _room(target):
        _copy(origin, target)


def _copy(origin: apsw.Connection, target: Path) -> None:
    made = apsw.Connection(str(target))
    try:
        with made.backup("main", origin, "main") as running:
            while not running.done:
                running.step(_PAGES)
        made.pragma("journal_mode", "delete")
    finally:
        made.close()


def copy(path: Path, target: Path) -> Held:
    """Makes `target` a store like the one at `path` is now; what it held at that instant.

    Others may write meanwhile. The copy is one file, without a log. Raises `StoreNotFound`, `StoreForeign`,
    `StoreTooNew`, `StoreDamaged`, `StoreBusy`, `StoreFull`.
    """
    with as_it_is(path) as (origin, version), _room(target):
        _need_schema(path, version)
        origin.execute("BEGIN")
        try:
            held = _held(origin, version)
            _copy(origin, target)
        finally:
            if origin.in_transaction:
                origin.execute("ROLLBACK")
    return held


def inspect(path: Path) -> Held:
    """What a store holds, once it was found sound; SQLite reads every page of it for that.

    Raises `StoreDamaged` with what is wrong, and what `copy` raises.
    """
    with as_it_is(path) as (db, version):
        _need_schema(path, version)
        loaded = load_vectors(db)  # stores of an earlier schema have tables of that extension
        wrong = [
            said for (said,) in db.execute(f"PRAGMA integrity_check({_SHOWN})")
            if said != "ok" and (loaded or "no such module: vec0" not in said)
        ]  # fmt: skip
        if wrong:
            raise StoreDamaged(
                f"{path}: not sound: {'; '.join(wrong)}",
                "'gmem doctor' says what can be done about it",
            )
        return _held(db, version)


def replace(path: Path, new: Path, keep: Callable[[], _Kept | None], drop: Callable[[_Kept], None]) -> Held:
    """Puts what the store `new` holds in the place of what the one at `path` holds, in one transaction.

    Whoever has the store open sees the new content from then on. `keep` is called before, to keep what
    the store holds, and again when others wrote to it meanwhile, after `drop` of what was kept. What the
    store holds then. Raises `StoreBusy` when others do not stop writing, and what `copy` raises.
    """
    with as_it_is(path, write=True) as (target, version), as_it_is(path) as (watch, _), as_it_is(new) as (
        source, _,
    ), _room(path):  # fmt: skip
        target.pragma("journal_mode", "wal")  # in which a reader can look while another one writes
        target.execute("PRAGMA synchronous = FULL")
        for _ in range(_TRIES):
            seen = watch.pragma("data_version")
            kept = keep() if version else None
            if _fill(target, source, lambda: watch.pragma("data_version") == seen):  # noqa: B023
                break
            if kept is not None:
                drop(kept)
        else:
            raise StoreBusy(f"{path}: others go on writing to it", "end them, and try again")
        target.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        return _held(target, target.pragma("user_version"))


def _fill(target: apsw.Connection, source: apsw.Connection, is_unchanged: Callable[[], bool]) -> bool:
    """Copies everything, unless the target is not what it was by the time that nobody else can write to it."""
    with target.backup("main", source, "main") as running:
        running.step(1)
        if not is_unchanged():
            return False
        while not running.done:
            running.step(_PAGES)
    return True


def is_in_use(path: Path) -> bool:
    """Whether another connection has the file open, as far as can be told of a damaged one."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
    except (apsw.BusyError, apsw.LockedError):
        return True
    except apsw.Error:
        return False
    finally:
        db.close()
    return False


def _need_schema(path: Path, version: int) -> None:
    if not version:
        raise StoreNotFound(
            f"{path}: an empty file, not yet a store", "import something, or name another one"
        )


class _room:  # noqa: N801 - read like `translated`
    """Tells a full disk by the file that was being written."""

    def __init__(self, target: Path) -> None:
        self._target = target

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (apsw.FullError, apsw.CantOpenError)):
            raise StoreFull(
                f"{self._target}: cannot be written ({error})", "free some room there, or name another place"
            ) from error
