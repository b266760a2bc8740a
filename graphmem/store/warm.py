"""What a connection remembers from one question to the next, for as long as the store stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import apsw

if TYPE_CHECKING:
    from collections.abc import Hashable

_KEPT: WeakKeyDictionary[apsw.Connection, tuple[tuple[int, int], dict[Hashable, Any]]] = WeakKeyDictionary()


def remembered(db: apsw.Connection) -> dict[Hashable, Any]:
    """What was remembered of the store in its present state, to be added to; empty after any change of it.

    Inside a transaction that writes nothing is remembered, since it may be taken back.
    """
    if db.txn_state("main") == apsw.mapping_txn_state["SQLITE_TXN_WRITE"]:
        return {}
    version: Any = db.pragma("data_version")
    state = (version, db.total_changes())
    kept = _KEPT.get(db)
    if kept is None or kept[0] != state:
        kept = (state, {})
        _KEPT[db] = kept
    return kept[1]
