"""Scopes and sets of scopes as small numbers, with a cache per connection."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import apsw

_FIND: Final = "SELECT pk FROM scope WHERE name = ?"
_ADD: Final = "INSERT INTO scope (name) VALUES (?) RETURNING pk"
_FIND_SET: Final = "SELECT pk FROM scope_set WHERE key = ?"
_ADD_SET: Final = "INSERT INTO scope_set (key) VALUES (?) RETURNING pk"


class Scopes:
    """The numbers of scopes."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._pks: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._sets: dict[tuple[str, ...], int] = {}

    def forget(self) -> None:
        """Empties the cache, after a rollback."""
        self._pks.clear()
        self._names.clear()
        self._sets.clear()

    def pk(self, name: str) -> int:
        """The number of a scope, made when it is new (on a writing connection)."""
        found = self._pks.get(name)
        if found is None:
            found = self._db.execute(_FIND, (name,)).get
            if found is None:
                found = self._db.execute(_ADD, (name,)).get
            self._pks[name] = found
            self._names[found] = name
        return found

    def find(self, name: str) -> int | None:
        """The number of a scope the store has, or `None`."""
        found = self._pks.get(name)
        if found is None:
            found = self._db.execute(_FIND, (name,)).get
            if found is not None:
                self._pks[name] = found
        return found

    def name(self, pk: int) -> str:
        """The scope of that number."""
        found = self._names.get(pk)
        if found is None:
            found = str(self._db.execute("SELECT name FROM scope WHERE pk = ?", (pk,)).get)
            self._names[pk] = found
        return found

    def set_pk(self, names: tuple[str, ...]) -> int:
        """The number of a sorted set of scopes, made when it is new."""
        found = self._sets.get(names)
        if found is None:
            key = json.dumps(names, ensure_ascii=False, separators=(",", ":"))
            found = self._db.execute(_FIND_SET, (key,)).get
            if found is None:
                found = self._db.execute(_ADD_SET, (key,)).get
                self._db.executemany(
                    "INSERT INTO scope_member VALUES (?, ?)", [(self.pk(name), found) for name in names]
                )
            self._sets[names] = found
        return found

    def set_names(self, pk: int) -> list[str]:
        """The scopes of a set."""
        key = str(self._db.execute("SELECT key FROM scope_set WHERE pk = ?", (pk,)).get)
        names: list[str] = json.loads(key)
        return names
