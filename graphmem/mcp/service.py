"""What all calls of a server share: the store, the scope, the model, and how they were configured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from graphmem.embed import Availability, Encoder
from graphmem.errors import GraphmemError
from graphmem.mcp.answers import Fields
from graphmem.mcp.logs import LOG
from graphmem.mcp.model import Model
from graphmem.mcp.pool import Pool
from graphmem.records import UNKNOWN_KIND
from graphmem.scopes import given, visible_scopes
from graphmem.store import Store
from graphmem.store.lookup import Found
from graphmem.times import now

NOTHING_STORED: Final = "nothing is stored yet; 'remember' makes the store"

ALL: Final = "*"
"""Stands for every scope in the argument `scopes`."""


class Service:
    """One server's view of one store; its methods may be called from several threads."""

    def __init__(
        self, path: Path, scope: str, find_encoder: Callable[[], Availability], *, encoder_name: str = "",
        read_only: bool = False, track_access: bool = False,
    ) -> None:  # fmt: skip
        self.path = path
        self.scope = scope
        self.encoder_name = encoder_name
        """The configured model, "" where embeddings are off."""
        self.read_only = read_only
        self.model = Model(find_encoder)
        self._pool = Pool(path, migrate=not read_only)
        self._tracker = ThreadPoolExecutor(1, "gmem-access") if track_access else None

    def reading(self) -> AbstractContextManager[Store | None]:
        """The store as it is at one instant, `None` while there is none."""
        return self._pool.reading()

    def writing(self) -> Store:
        """The store for one write, made where there is none; raises as `Store`."""
        return Store(self.path, write=True)

    def encoder(self, store: Store | None = None) -> Encoder | None:
        """The encoder for what is written, waited for; `None` where the store is one without vectors.

        Raises `EncoderError` when it cannot be loaded, so that nothing is stored without its vectors.
        """
        if store is not None and store.encoder() is None and not store.is_empty():
            return None
        return self.model.wait()

    def scopes(self, asked: Fields) -> tuple[str, ...] | None:
        """The scopes that a read sees, by its `scope` or `scopes`; `None` for all.

        Raises `UsageError` for what is no scope.
        """
        named = [*asked.get("scopes", ()), *filter(None, [asked.get("scope")])]
        if ALL in named:
            return None
        if named:
            return tuple(dict.fromkeys(given(scope) for scope in named))
        return self.own_scopes

    @property
    def own_scopes(self) -> tuple[str, ...]:
        """The server's scope and global: what a read sees unless told otherwise, and all a write may touch."""
        return visible_scopes(self.scope)

    def scope_to_write(self, asked: Fields) -> str:
        """The scope that a write goes to. Raises `UsageError` for what is no scope."""
        return given(asked["scope"]) if asked.get("scope") else self.scope

    def accessed(self, memories: Iterable[str]) -> None:
        """Notes, where that is wanted, that memories were read; nobody waits for it."""
        ids = list(memories)
        if self._tracker is not None and ids:
            self._tracker.submit(self._note, ids)

    def _note(self, ids: list[str]) -> None:
        from graphmem.store.access import note_access

        try:
            note_access(self.path, ids, now())
        except GraphmemError as error:
            LOG.info("access was not noted: %s", error.code)

    def close(self) -> None:
        """Closes what is open."""
        if self._tracker is not None:
            self._tracker.shutdown()
        self._pool.close()


def spelled(found: Found) -> str:
    """An entity as it is told of: name, kind, scope."""
    one = found.candidate
    return f"{one.name} ({one.kind or UNKNOWN_KIND}, {one.scope})"


def also_meant(text: str, found: Found, others: Sequence[Found]) -> list[str]:
    """A note on the other entities that a name could mean."""
    if not others:
        return []
    named = "; ".join(f"{spelled(one)}, id {one.id}" for one in others)
    return [f"'{text}' was taken as {spelled(found)}; it could also be {named}"]
