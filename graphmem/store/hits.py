"""Items as hits show them; scopes and entities only where the filters let them through."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from graphmem.records import DEFAULT_MEMORY_TYPE, UNKNOWN_KIND
from graphmem.store.filters import Filtered, packed

_MEMORIES: Final = """
SELECT pk, id, content, title, memory_type, tags, scope_set, source, position, valid_at, created_at,
  properties
FROM memory WHERE pk IN (SELECT value FROM json_each(:items))
"""
_ABOUT: Final = """
SELECT l.memory, i.id, i.name, i.kind, s.name
FROM memory_link AS l JOIN entity AS i ON i.pk = l.entity JOIN scope AS s ON s.pk = i.scope
WHERE l.role = 0 AND l.memory IN (SELECT value FROM json_each(:items)) AND {seen}
ORDER BY l.memory, i.name, i.kind_key, i.id
"""
_SHARED: Final = """
SELECT i.name FROM entity AS i
WHERE i.name IN (SELECT value FROM json_each(:names)) AND {seen} GROUP BY i.name HAVING count(*) > 1
"""
_ENTITIES: Final = """
SELECT i.pk, i.id, i.name, i.kind, s.name, i.description, i.aliases, i.properties
FROM entity AS i JOIN scope AS s ON s.pk = i.scope WHERE i.pk IN (SELECT value FROM json_each(:items))
"""
_RELATIONS: Final = """
SELECT i.pk, i.id, a.name, i.predicate, b.name, i.fact, s.name, i.weight, i.valid_at, i.created_at,
  i.properties
FROM relation AS i JOIN entity AS a ON a.pk = i.subject JOIN entity AS b ON b.pk = i.object
JOIN scope AS s ON s.pk = i.scope WHERE i.pk IN (SELECT value FROM json_each(:items))
"""


def _list(text: str | None) -> list[str]:
    found: list[str] = json.loads(text) if text else []
    return found


def _mapping(text: str | None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text) if text else {}
    return found


class Hits(Filtered):
    """Reads items for whoever shows them."""

    def _forget(self) -> None:
        super()._forget()
        self._set_names: dict[int, list[str]] = {}

    def memories(self, items: Sequence[int]) -> dict[int, dict[str, Any]]:
        """The memories by row number, as hits show them; scopes and entities only where visible."""
        binds = {"items": packed(items), "scopes": packed(self.scopes or ())}
        about: dict[int, list[dict[str, str]]] = {}
        for pk, id_, name, kind, scope in self._db.execute(_ABOUT.format(seen=self.seen), binds):
            about.setdefault(pk, []).append(
                {"id": id_, "name": name, "kind": kind or UNKNOWN_KIND, "scope": scope}
            )
        found: dict[int, dict[str, Any]] = {}
        for row in self._db.execute(_MEMORIES, binds):
            pk, id_, content, title, type_, tags, scopes, source, position, valid_at, created_at, more = row
            found[pk] = {
                "id": id_,
                "content": content,
                "title": title,
                "memory_type": type_ or DEFAULT_MEMORY_TYPE,
                "scopes": self.visible_names(scopes),
                "tags": _list(tags),
                "about": list(dict.fromkeys(ref["name"] for ref in about.get(pk, []))),
                "about_refs": about.get(pk, []),
                "source": source if position is None else {"uri": source, "position": position},
                "valid_at": valid_at,
                "created_at": created_at,
                "properties": _mapping(more),
            }
        return found

    def shared_names(self, names: Iterable[str]) -> frozenset[str]:
        """Which of the names several visible entities have."""
        wanted = sorted(names)
        if not wanted:
            return frozenset()
        binds = {"names": packed(wanted), "scopes": packed(self.scopes or ())}
        return frozenset(name for (name,) in self._db.execute(_SHARED.format(seen=self.seen), binds))

    def visible_names(self, scope_set: int) -> list[str]:
        """The scopes of a set that the filters let through."""
        if scope_set not in self._set_names:
            names = _list(self._db.execute("SELECT key FROM scope_set WHERE pk = ?", (scope_set,)).get)
            visible = self.filters.scopes
            self._set_names[scope_set] = [name for name in names if visible is None or name in visible]
        return list(self._set_names[scope_set])

    def entities(self, items: Sequence[int]) -> dict[int, dict[str, Any]]:
        """The entities by row number."""
        keys = ("id", "name", "kind", "scope", "description", "aliases", "properties")
        found: dict[int, dict[str, Any]] = {}
        for pk, *values in self._db.execute(_ENTITIES, {"items": packed(items)}):
            entity = dict(zip(keys, values, strict=True))
            entity["kind"] = entity["kind"] or UNKNOWN_KIND
            found[pk] = entity | {
                "aliases": _list(entity["aliases"]),
                "properties": _mapping(entity["properties"]),
            }
        return found

    def relations(self, items: Sequence[int]) -> dict[int, dict[str, Any]]:
        """The relations by row number."""
        keys = ("id", "subject", "predicate", "object", "fact", "scope", "weight", "valid_at", "created_at")
        found: dict[int, dict[str, Any]] = {}
        for pk, *values, more in self._db.execute(_RELATIONS, {"items": packed(items)}):
            found[pk] = dict(zip(keys, values, strict=True)) | {"properties": _mapping(more)}
        return found
