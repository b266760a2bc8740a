"""The whole examination of a store: SQLite's checks, the cheap checks, and every derived row compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import apsw

from graphmem.errors import StoreDamaged
from graphmem.findings import Finding, Severity, finding
from graphmem.store import Store
from graphmem.store.check import StoreReport, check
from graphmem.store.connection import load_vectors
from graphmem.store.damage import Differences, compare
from graphmem.store.physical import Physical, look
from graphmem.store.vectors import StoredEncoder, current_encoder
from graphmem.store.write import TABLES

_HOMONYMS: Final = """
SELECT s.name, e.name, count(*) FROM entity AS e JOIN scope AS s ON s.pk = e.scope
WHERE e.state = 'active' GROUP BY e.scope, e.name HAVING count(*) > 1 ORDER BY count(*) DESC, e.name
"""
_BATCH_ID: Final = "SELECT id FROM batch WHERE pk = ?"
_ORIGINS: Final = "SELECT uri FROM origin WHERE uri LIKE 'file:%' ORDER BY uri"
_SCOPES: Final = "SELECT name FROM scope WHERE name LIKE 'repo:%' ORDER BY name"
_NEWEST: Final = "SELECT id, at FROM batch ORDER BY pk DESC LIMIT 1"


@dataclass(slots=True)
class Examined:
    """What an examination found. `physical` and `differences` say what of it can be made anew."""

    report: StoreReport
    physical: Physical = field(default_factory=Physical)
    differences: Differences | None = None
    origins: list[str] = field(default_factory=list)
    scopes: list[str] = field(default_factory=list)
    encoder: StoredEncoder | None = None

    @property
    def findings(self) -> list[Finding]:
        """Everything that was found, in a fixed order."""
        return self.report.findings


def examine(store: Store) -> Examined:
    """Everything that is wrong with an open store, which is only read. Never raises `StoreDamaged`."""
    load_vectors(store.db)
    try:
        report = check(store)
    except StoreDamaged as error:
        report = StoreReport(store.path)
        message = error.message.removeprefix(f"{store.path}: ")
        report.findings.append(finding("store-damage", message, file=store.path))
    found = Examined(report)
    try:
        with store.errors(), store.reading():
            _look_closer(store, found)
    except StoreDamaged as error:
        message = error.message.removeprefix(f"{store.path}: ")
        found.physical.lost.append(message)
        if not any(one.rule == "store-damage" for one in report.findings):
            report.findings.append(finding("store-damage", message, file=store.path))
    return found


def _look_closer(store: Store, found: Examined) -> None:
    findings = found.report.findings
    if any(one.rule == "store-damage" for one in findings):
        found.physical = look(store.db)
        return
    if any(one.severity is Severity.ERROR and "is not JSON" in one.message for one in findings):
        return
    found.differences = compare(store.db)
    findings += _told(store, found.differences)
    found.encoder = current_encoder(store.db)
    found.origins = [str(uri) for (uri,) in store.db.execute(_ORIGINS)]
    found.scopes = [str(name) for (name,) in store.db.execute(_SCOPES)]
    alike: Any = store.db.execute(_HOMONYMS).fetchall()
    if alike:
        some = ", ".join(f"'{name}' ({count} in {scope})" for scope, name, count in alike[:5])
        more = f" and {len(alike) - 5:,} more" if len(alike) > 5 else ""
        findings.append(finding("store-homonyms", f"names of several kinds: {some}{more}", file=store.path))


def _told(store: Store, found: Differences) -> Iterator[Finding]:
    """What the cheap checks do not tell."""

    def told(rule: str, message: str) -> Finding:
        return finding(rule, message, file=store.path)

    for kind, count in enumerate(found.other_words):
        if count:
            yield told(
                "store-index", f"the full text of {_of_kind(count, kind)} has other words than the item"
            )
    if found.behind:
        yield told("store-index", "the counter of batches is behind the newest batch")
    if found.mentions:
        yield told("store-mentions", f"the index of mentions has {_rows(found.mentions)} too many or too few")
    for kind, items in enumerate(found.pieces):
        if items:
            yield told("store-vector", f"{_of_kind(len(items), kind)} with vectors that are not of its text")
    if found.bits:
        yield told("store-vector", f"{_rows(found.bits)} of the index of vectors of another vector")
    for batch in found.history:
        id_ = store.db.execute(_BATCH_ID, (batch,)).get
        yield told("store-history", f"what batch {id_ or f'number {batch}'} changed cannot be read any more")
    for message in found.doubtful:
        yield told("store-text", message)
    for message in found.wrong:
        yield told("store-value", message)


def _of_kind(count: int, kind: int) -> str:
    return f"{count:,} {'item' if count == 1 else 'items'} of kind {TABLES[kind]}"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


class WithoutLog(NamedTuple):
    """A store as it is without its log: whether it is sound, and its newest batch."""

    sound: bool
    batch: str | None
    at: str | None


def without_log(path: Path) -> WithoutLog | None:
    """What the file of a store is without the log beside it, which is not read; `None` where it has none."""
    log = path.with_name(f"{path.name}-wal")
    if not log.exists() or not log.stat().st_size:
        return None
    uri = f"{path.absolute().as_uri()}?immutable=1"
    db = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        load_vectors(db)
        sound = db.execute("PRAGMA integrity_check(1)").get == "ok"
        newest: Any = db.execute(_NEWEST).fetchone() or (None, None)
    except apsw.Error:
        return WithoutLog(False, None, None)
    finally:
        db.close()
    return WithoutLog(sound, *newest)


def libraries() -> dict[str, Any]:
    """The SQLite in use: its version, whether it has full text, and whether vectors can be searched."""
    db = apsw.Connection(":memory:")
    try:
        vectors = load_vectors(db)
        version = db.execute("SELECT vec_version()").get if vectors else None
    finally:
        db.close()
    return {
        "sqlite": apsw.sqlite_lib_version(),
        "apsw": apsw.apsw_version(),
        "full_text": "ENABLE_FTS5" in apsw.compile_options,
        "vectors": version,
    }
