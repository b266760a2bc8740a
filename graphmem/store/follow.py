"""What following files asks of the store: their origins, what hangs on them, and what files looked like."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import apsw

_BELOW: Final = """
SELECT pk, uri, digest FROM origin AS o WHERE uri >= ?1 AND uri < ?2
  AND EXISTS (SELECT 1 FROM contribution AS c WHERE c.origin = o.pk) ORDER BY uri
"""
_HELD: Final = """
SELECT count(*) FROM (
  SELECT DISTINCT kind, item FROM contribution WHERE origin IN (SELECT value FROM json_each(?1))
)
"""
_HELD_ALONE: Final = """
SELECT count(*) FROM (
  SELECT DISTINCT kind, item FROM contribution WHERE origin IN (SELECT value FROM json_each(?1))
) AS i WHERE NOT EXISTS (
  SELECT 1 FROM contribution AS c WHERE c.item = i.item AND c.kind = i.kind
    AND c.origin NOT IN (SELECT value FROM json_each(?1))
)
"""
_SEEN: Final = "SELECT path, size, mtime_ns, digest, holds, scope FROM seen_file WHERE path >= ? AND path < ?"
_SEE: Final = """
INSERT INTO seen_file VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET size = excluded.size,
  mtime_ns = excluded.mtime_ns, digest = excluded.digest, holds = excluded.holds, scope = excluded.scope
"""
# An entity that something active still refers to; memories and relations that are archived do not count.
_REFERRED: Final = """
SELECT EXISTS (
  SELECT 1 FROM memory_link AS l JOIN memory AS m ON m.pk = l.memory
  WHERE l.entity = ?1 AND m.state = 'active'
) OR EXISTS (SELECT 1 FROM relation WHERE subject = ?1 AND state = 'active')
  OR EXISTS (SELECT 1 FROM relation WHERE object = ?1 AND state = 'active')
"""
_ENDS: Final = (
    "",
    "SELECT entity FROM memory_link WHERE memory = ?",
    "SELECT subject FROM relation WHERE pk = ?1 UNION SELECT object FROM relation WHERE pk = ?1",
)


class Source(NamedTuple):
    """An origin from which something was taken."""

    pk: int
    uri: str
    digest: str | None


class SeenFile(NamedTuple):
    """What a file looked like when it was read without a problem; `holds`: something was taken from it."""

    size: int
    mtime_ns: int
    digest: str
    holds: bool
    scope: str


class Following:
    """Questions and statements about files and their origins."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db: Any = db

    def below(self, folder_uri: str) -> list[Source]:
        """The origins below a folder, by address; the address ends in a slash."""
        rows = self._db.execute(_BELOW, (folder_uri, _after(folder_uri)))
        return [Source(*row) for row in rows]

    def all_of(self, digests: Iterable[str]) -> list[Source]:
        """The origins, wherever they are, whose content has one of these digests."""
        rows = self._db.execute(
            "SELECT pk, uri, digest FROM origin AS o WHERE digest IN (SELECT value FROM json_each(?)) "
            "AND EXISTS (SELECT 1 FROM contribution AS c WHERE c.origin = o.pk) ORDER BY uri",
            (json.dumps(sorted(digests)),),
        )
        return [Source(*row) for row in rows]

    def has_files(self) -> bool:
        """Whether anything was taken from a file."""
        sql = "SELECT 1 FROM origin WHERE uri >= 'file:' AND uri < 'file;' LIMIT 1"
        return self._db.execute(sql).get is not None

    def holds(self, uri: str) -> bool:
        """Whether something was taken from the origin of an address."""
        sql = (
            "SELECT EXISTS (SELECT 1 FROM contribution WHERE origin = (SELECT pk FROM origin WHERE uri = ?))"
        )
        return bool(self._db.execute(sql, (uri,)).get)

    def held(self, origins: Iterable[int]) -> int:
        """How many items origins support."""
        return int(self._db.execute(_HELD, (json.dumps(list(origins)),)).get)

    def held_alone(self, origins: Iterable[int]) -> int:
        """How many items these origins support and no other does."""
        return int(self._db.execute(_HELD_ALONE, (json.dumps(list(origins)),)).get)

    def seen(self, folder: str) -> dict[str, SeenFile]:
        """What the files below a folder looked like, by path; the folder ends in a separator."""
        return {
            path: SeenFile(size, mtime, digest, bool(holds), scope)
            for path, size, mtime, digest, holds, scope in self._db.execute(_SEEN, (folder, _after(folder)))
        }

    def see(self, files: Iterable[tuple[str, SeenFile]]) -> None:
        """Keeps what files look like."""
        self._db.executemany(_SEE, [(path, *seen[:3], int(seen.holds), seen.scope) for path, seen in files])

    def forget_files(self, paths: Iterable[str]) -> None:
        """Forgets what files looked like."""
        self._db.executemany("DELETE FROM seen_file WHERE path = ?", [(path,) for path in paths])

    def move_origin(self, origin: int, uri: str) -> None:
        """Gives an origin the new address of its file; an origin of that address without content goes."""
        self._db.execute(
            "DELETE FROM origin WHERE uri = ?1 AND pk <> ?2 "
            "AND NOT EXISTS (SELECT 1 FROM contribution WHERE origin = origin.pk)",
            (uri, origin),
        )
        self._db.execute("UPDATE origin SET uri = ? WHERE pk = ?", (uri, origin))

    def withdraw(self, origin: int, digests: Iterable[bytes]) -> None:
        """Removes contributions of an origin."""
        self._db.executemany(
            "DELETE FROM contribution WHERE origin = ? AND digest = ?", [(origin, one) for one in digests]
        )

    def drop_origins(self, origins: Iterable[int]) -> None:
        """Removes origins of which nothing is left."""
        self._db.executemany(
            "DELETE FROM origin WHERE pk = ?1 AND NOT EXISTS (SELECT 1 FROM contribution WHERE origin = ?1)",
            [(one,) for one in origins],
        )

    def supporters(self, kind: int, item: int) -> set[int]:
        """The origins that say something about an item."""
        sql = "SELECT DISTINCT origin FROM contribution WHERE item = ? AND kind = ?"
        return {pk for (pk,) in self._db.execute(sql, (item, kind))}

    def is_referred_to(self, entity: int) -> bool:
        """Whether anything active refers to an entity."""
        return bool(self._db.execute(_REFERRED, (entity,)).get)

    def ends(self, kind: int, item: int) -> Iterator[int]:
        """The entities that a memory or relation refers to."""
        if _ENDS[kind]:
            yield from (pk for (pk,) in self._db.execute(_ENDS[kind], (item,)).fetchall())


def _after(prefix: str) -> str:
    """The least text that is greater than every text with that prefix."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)
