"""Open stores for reading, handed out to one call at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

from graphmem.errors import LookupFailed, StoreNotFound
from graphmem.store import Store, is_there

KEPT: Final = 4
"""How many stores stay open while nobody reads."""


class _Kept(NamedTuple):
    store: Store
    file: tuple[int, int]


class Pool:
    """Readers of one file; a reader goes when the file was replaced by another one.

    With `migrate` a store of an older version is brought up to date when it is met, so that a server goes
    on after an upgrade; without, it is refused.
    """

    def __init__(self, path: Path, *, migrate: bool) -> None:
        self.path = path
        self._migrate = migrate
        self._lock = Lock()
        self._idle: list[_Kept] = []

    @contextmanager
    def reading(self) -> Iterator[Store | None]:
        """The store as it is at one instant, `None` while there is none. Raises as `Store`."""
        kept = self._take()
        if kept is None:
            yield None
            return
        try:
            with kept.store.errors(), kept.store.reading():
                yield kept.store
        except LookupFailed:
            self._give(kept)
            raise
        except BaseException:
            kept.store.close()
            raise
        self._give(kept)

    def close(self) -> None:
        """Closes what is idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        for one in idle:
            one.store.close()

    def _take(self) -> _Kept | None:
        if not is_there(self.path):
            self.close()
            return None
        file = self._file()
        with self._lock:
            stale = [one for one in self._idle if one.file != file]
            self._idle = [one for one in self._idle if one.file == file]
            found = self._idle.pop() if self._idle else None
        for one in stale:
            one.store.close()
        return found or _Kept(self._opened(), file)

    def _opened(self) -> Store:
        try:
            return Store(self.path)
        except StoreNotFound:
            if not (self._migrate and self.path.stat().st_size):
                raise
        Store(self.path, write=True).close()
        return Store(self.path)

    def _give(self, kept: _Kept) -> None:
        with self._lock:
            if len(self._idle) < KEPT:
                self._idle.append(kept)
                return
        kept.store.close()

    def _file(self) -> tuple[int, int]:
        found = os.stat(self.path)  # noqa: PTH116 - as `is_there` does
        return found.st_dev, found.st_ino
