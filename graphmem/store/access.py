"""Noting that memories were read, which is worth no wait."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import apsw

from graphmem.store.connection import connect

_TOUCH: Final = """
UPDATE memory SET access_count = access_count + 1, last_accessed_at = max(ifnull(last_accessed_at, ''), :at)
WHERE id IN (SELECT value FROM json_each(:ids))
"""


def note_access(path: str | Path, ids: Iterable[str], at: str) -> bool:
    """Counts one access of each memory; whether that was possible without waiting for another writer.

    Raises as `graphmem.store.connection.connect` does.
    """
    db = connect(path, write=True)
    try:
        db.set_busy_timeout(0)
        with db:
            db.execute(_TOUCH, {"ids": json.dumps(list(ids)), "at": at})
    except (apsw.BusyError, apsw.FullError, apsw.IOError, apsw.ReadOnlyError):
        return False
    finally:
        db.close()
    return True
