"""Opening the SQLite file: identity, migrations, pragmas, the vector extension, errors of SQLite as ours."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import apsw

from graphmem import private
from graphmem.errors import (
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreForeign,
    StoreFull,
    StoreNotFound,
    StoreReadOnly,
    StoreTooNew,
    UsageError,
)
from graphmem.store.mentions import rebuild
from graphmem.store.packed import pack
from graphmem.store.schema import MIGRATIONS, migration_sql
from graphmem.store.sketches import has_former, replace_former

APPLICATION_ID: Final = 0x676D656D  # "gmem"
SCHEMA_VERSION: Final = len(MIGRATIONS)
BUSY_TIMEOUT_MS: Final = 30_000
SCRATCH_PATH: Final = ""
"""The path of a store of one's own that is thrown away: in memory, and on disk when it grows large."""
_CACHE_KIB: Final = 65_536
_LONGEST_TIMEOUT: Final = 2**31 - 1
_MAGIC: Final = b"SQLite format 3\0"


@contextmanager
def translated(path: object) -> Iterator[None]:
    """Turns what SQLite raises into the errors of `graphmem.errors`, naming the store."""
    try:
        yield
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreBusy(
            f"{path}: another process is writing and did not finish in time",
            "try again; set GRAPHMEM_BUSY_TIMEOUT (milliseconds) to wait longer",
        ) from error
    except apsw.ReadOnlyError as error:
        raise StoreReadOnly(f"{path}: the store can only be read", "check the permissions") from error
    except (apsw.FullError, apsw.IOError) as error:
        raise StoreFull(
            f"{path}: the disk did not take the write ({error})",
            "free some room there, and where temporary files go (TMPDIR)",
        ) from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StoreDamaged(
            f"{path}: not a sound database ({error})", "restore a backup of the file"
        ) from error
    except UnicodeDecodeError as error:
        raise StoreDamaged(
            f"{path}: a text in it is damaged ({error})", "restore a backup of the file"
        ) from error
    except (apsw.NoMemError, apsw.TooBigError) as error:
        raise StoreError(
            f"{path}: SQLite cannot hold what it read ({error})",
            "'gmem validate --store' tells whether the file is damaged",
        ) from error
    except apsw.CantOpenError as error:
        raise StoreError(f"{path}: cannot be opened ({error})", "check the path and permissions") from error


def _vec0_path() -> str | None:
    """The file of the sqlite-vec extension; importing its module would cost a quarter of a second."""
    spec = find_spec("sqlite_vec")
    if spec is None or spec.origin is None:
        return None
    return str(Path(spec.origin).parent / "vec0")


def load_vectors(db: apsw.Connection) -> bool:
    """Loads the vector extension into the connection, once; False when it is not available here."""
    with suppress(apsw.SQLError):
        db.execute("SELECT vec_version()")
        return True
    path = _vec0_path()
    if path is None:
        return False
    try:
        db.enable_load_extension(True)
        db.load_extension(path)
    except apsw.ExtensionLoadingError:
        return False
    finally:
        db.enable_load_extension(False)
    return True


def _busy_timeout() -> int:
    """How long to wait for a lock, in milliseconds. Raises `UsageError` for what is no such number."""
    given = os.environ.get("GRAPHMEM_BUSY_TIMEOUT", "").strip()
    if not given:
        return BUSY_TIMEOUT_MS
    if not (given.isascii() and given.isdigit() and len(given) < 20 and int(given) <= _LONGEST_TIMEOUT):
        raise UsageError(
            f"GRAPHMEM_BUSY_TIMEOUT is '{given}'", f"set it to milliseconds, from 0 to {_LONGEST_TIMEOUT}"
        )
    return int(given)


def is_there(path: str | Path) -> bool:
    """Whether there is a file at a path. Raises `StoreError` where that cannot be told."""
    try:
        os.stat(path)  # noqa: PTH116 - text too
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise StoreError(
            f"{path}: cannot be reached: {(error.strerror or str(error)).lower()}",
            "check the permissions of its folder and of those above it, or name another store with --db",
        ) from error
    return True


@contextmanager
def _foreign(name: str) -> Iterator[None]:
    """Tells a file that never was a database from a damaged one."""
    try:
        yield
    except apsw.NotADBError as error:
        # Only now: to close a file that another connection of this process uses would take away its locks.
        with Path(name).open("rb") as stream:
            if stream.read(len(_MAGIC)) == _MAGIC:
                raise
        raise StoreForeign(
            f"{name}: not a store: the file is no SQLite database, and was not touched",
            "choose another file with --db; if it was a store once, restore a backup of it",
        ) from error


def _identify(db: apsw.Connection, path: str) -> int:
    """The schema version of the file: 0 for an empty one. Raises for a file that is not ours or newer."""
    application = db.pragma("application_id")
    version = db.pragma("user_version")
    if application != APPLICATION_ID:
        tables = db.execute("SELECT count(*) FROM sqlite_schema").get
        if tables or application:
            raise StoreForeign(
                f"{path}: this database belongs to another program and was not touched",
                "choose another file with --db",
            )
        return 0
    if version > SCHEMA_VERSION:
        raise StoreTooNew(
            f"{path}: written by a newer graphmem (schema {version}; this one knows {SCHEMA_VERSION})",
            "upgrade graphmem",
        )
    return int(version)


def _migrate(db: apsw.Connection, path: str) -> None:
    """Brings the schema up to date, each migration in one transaction with its number."""
    if _identify(db, path) == SCHEMA_VERSION:
        return
    while True:
        with db:
            version = _identify(db, path)
            if version == SCHEMA_VERSION:
                return
            db.execute(migration_sql(version))
            if MIGRATIONS[version].mentions and version:
                rebuild(db)
            if MIGRATIONS[version].sketches and has_former(db):
                _replace_vec0(db, path)
            if version + 1 == SCHEMA_VERSION:
                pack(db)
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {version + 1}")


def _replace_vec0(db: apsw.Connection, path: str) -> None:
    if not load_vectors(db):
        raise StoreError(
            f"{path}: the index of its vectors cannot be made anew, since sqlite-vec cannot be loaded here",
            "reinstall sqlite-vec",
        )
    replace_former(db)


def connect(path: str | Path, *, write: bool) -> apsw.Connection:
    """An open connection to the store at `path`, which may be `:memory:` or `SCRATCH_PATH`.

    A reader is opened read-only by SQLite and never creates the file. A writer creates and migrates.
    Raises `StoreNotFound`, `StoreForeign`, `StoreTooNew`, `StoreDamaged`, `StoreBusy`, `StoreReadOnly`,
    `StoreError`, and `UsageError` for a wait limit that is no number.
    """
    name = str(path)
    timeout = _busy_timeout()
    has_file = name not in (":memory:", SCRATCH_PATH)
    if has_file and not is_there(name):
        if not write:
            raise StoreNotFound(f"there is no store at {name}", "import something, or name it with --db")
        private.make_folder(Path(name).parent)
        private.create_file(Path(name))
    with translated(name), _foreign(name):
        db = _opened(name, timeout, write=write)
        try:
            db.set_busy_timeout(timeout)
            db.transaction_mode = "IMMEDIATE"
            db.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
            db.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
            db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
            db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            if write:
                _open_for_writing(db, name, has_file=has_file)
            else:
                version = _identify(db, name)
                if version < SCHEMA_VERSION:
                    raise StoreNotFound(
                        f"{name}: an empty or older store, which reading does not change",
                        "run any writing command once, for example 'gmem import'",
                    )
        except BaseException:
            db.close()
            raise
    return db


@contextmanager
def as_it_is(path: str | Path, *, write: bool = False) -> Iterator[tuple[apsw.Connection, int]]:
    """A connection to a store of any schema that is known, never migrated, with its schema version.

    The version is 0 for an empty file. Closing it moves nothing from the log into the file. Raises as
    `connect` does.
    """
    name = str(path)
    timeout = _busy_timeout()
    if not is_there(name):
        raise StoreNotFound(f"there is no store at {name}", "import something, or name it with --db")
    with translated(name), _foreign(name):
        db = _opened(name, timeout, write=write)
        try:
            db.set_busy_timeout(timeout)
            db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            yield db, _identify(db, name)
        finally:
            db.close()


def _opened(name: str, timeout: int, *, write: bool) -> apsw.Connection:
    if write:
        return apsw.Connection(name, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    db = apsw.Connection(name, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        db.set_busy_timeout(timeout)
        db.pragma("application_id")
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        db.close()
        return _immutable(name)
    except BaseException:
        db.close()
        raise
    return db


def _immutable(name: str) -> apsw.Connection:
    """A connection to a store in a folder that cannot be written, where SQLite cannot make its own files.

    Nothing can change such a store while it is read, so it needs no locks; but what a log beside it holds
    would not be seen.
    """
    log = Path(f"{name}-wal")
    if log.exists() and log.stat().st_size:
        raise StoreReadOnly(
            f"{name}: the newest batches are in '{log.name}', which a read-only folder keeps from being read",
            "copy the store and the files beside it to a folder that you may write to",
        )
    uri = f"{Path(name).absolute().as_uri()}?immutable=1"
    return apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def _open_for_writing(db: apsw.Connection, name: str, *, has_file: bool) -> None:
    _identify(db, name)
    if db.readonly("main"):
        raise apsw.ReadOnlyError("the file is write-protected")
    if has_file:
        db.pragma("journal_mode", "wal")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA journal_size_limit = 67108864")
    _migrate(db, name)
    db.execute("PRAGMA foreign_keys = ON")
