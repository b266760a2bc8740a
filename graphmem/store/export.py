"""Reading the whole store in a stable order, as the mappings of the canonical format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from graphmem.canonical import ordered
from graphmem.records import UNKNOWN_KIND
from graphmem.store.sets import Scopes
from graphmem.store.write import ABOUT, ENTITY, MEMORY, MENTION, RELATION

if TYPE_CHECKING:
    import apsw

Mapping = dict[str, Any]

_CLAIMS: Final = """
SELECT o.uri, o.format, o.digest, c.digest, c.line, c.taken_at, c.said
FROM contribution AS c JOIN origin AS o ON o.pk = c.origin
WHERE c.item = ? AND c.kind = ? ORDER BY c.taken_at, o.uri, c.digest
"""
_ALIASES: Final = "SELECT id FROM id_alias WHERE item = ? AND kind = ? ORDER BY id"
_REDIRECTS: Final = """
SELECT s.name, r.name, r.kind FROM redirect AS r JOIN scope AS s ON s.pk = r.scope
WHERE r.entity = ? ORDER BY s.name, r.name, r.kind_key
"""
_LINKS: Final = """
SELECT e.name, e.kind, s.name FROM memory_link AS l
JOIN entity AS e ON e.pk = l.entity JOIN scope AS s ON s.pk = e.scope
WHERE l.memory = ? AND l.role = ? {visible} ORDER BY e.pk
"""
_ENTITIES: Final = """
SELECT e.pk, e.id, s.name, e.name, e.kind, e.description, e.aliases, e.properties, e.state, e.archived_by,
  e.stub, e.created_at, e.updated_at
FROM entity AS e JOIN scope AS s ON s.pk = e.scope {where} ORDER BY s.name, e.name, e.kind_key
"""
_MEMORIES: Final = """
SELECT m.pk, m.id, m.content, m.title, m.memory_type, m.importance, m.tags, t.key, m.source, m.position,
  m.properties, m.state, m.archived_by, m.created_at, m.updated_at, m.valid_at, m.invalid_at, m.expired_at
FROM memory AS m JOIN scope_set AS t ON t.pk = m.scope_set {where}
ORDER BY t.key, m.source, m.position, m.created_at, m.id
"""
_RELATIONS: Final = """
SELECT r.pk, r.id, s.name, a.name, a.kind, x.name, r.predicate, b.name, b.kind, y.name, r.weight, r.fact,
  r.properties, r.state, r.archived_by, r.created_at, r.updated_at, r.valid_at, r.invalid_at, r.expired_at
FROM relation AS r JOIN scope AS s ON s.pk = r.scope
JOIN entity AS a ON a.pk = r.subject JOIN scope AS x ON x.pk = a.scope
JOIN entity AS b ON b.pk = r.object JOIN scope AS y ON y.pk = b.scope {where}
ORDER BY s.name, a.name, a.kind_key, r.predicate_key, b.name, b.kind_key, r.valid_at, r.id
"""


@dataclass(frozen=True, slots=True)
class Filters:
    """What an export leaves out: items outside these scopes, of other kinds, about other entities, older."""

    scopes: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    entities: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None

    def as_dict(self) -> Mapping:
        """The filters as the manifest names them; empty when nothing is filtered."""
        given: Mapping = {
            "scopes": list(self.scopes),
            "kinds": list(self.kinds),
            "entities": list(self.names),
            "since": self.since,
            "until": self.until,
        }
        return {key: value for key, value in given.items() if value}


def _loaded(text: str | None) -> Any:
    return json.loads(text) if text else None


def _ref(name: str, kind: str | None, scope: str, home: str | None) -> Mapping:
    """A reference that means exactly one entity; its scope is left out where it is the record's own."""
    ref: Mapping = {"name": name, "kind": kind or UNKNOWN_KIND}
    if scope != home:
        ref["scope"] = scope
    return ref


class Exporting:
    """One reading of the store for an export; use it inside a read transaction."""

    def __init__(self, db: apsw.Connection, scopes: Scopes, filters: Filters) -> None:
        self._db: Any = db
        self._scopes = scopes
        self._filters = filters
        self._prepare()

    def _prepare(self) -> None:
        """Fills temporary tables with the items that the filters leave, so that every query agrees."""
        db, filters = self._db, self._filters
        self._filtered = bool(filters.as_dict())
        # A filter by scope also hides the entities of other scopes that a shared memory is linked to.
        hidden = "AND e.pk IN (SELECT pk FROM temp.export_entity)" if filters.scopes else ""
        self._links_sql = _LINKS.format(visible=hidden)
        if not self._filtered:
            return
        for table in ("export_entity", "export_memory", "export_relation"):
            db.execute(f"DROP TABLE IF EXISTS temp.{table}")
            db.execute(f"CREATE TEMP TABLE {table} (pk INTEGER PRIMARY KEY)")
        scopes = json.dumps(filters.scopes)
        kinds = json.dumps(filters.kinds)
        entities = json.dumps(filters.entities)
        named = {
            "scopes": scopes, "any_scope": not filters.scopes, "kinds": kinds, "any_kind": not filters.kinds,
            "entities": entities, "any_entity": not filters.entities, "since": filters.since or "",
            "until": filters.until or "9999",
        }  # fmt: skip
        db.execute(_PICK_MEMORIES, named)
        db.execute(_PICK_RELATIONS, named)
        db.execute(_PICK_ENTITIES, named)

    def _where(self, alias: str, table: str) -> str:
        if not self._filtered:
            return ""
        return f"WHERE {alias}.pk IN (SELECT pk FROM temp.export_{table})"  # noqa: S608

    def counts(self) -> dict[str, int]:
        """How many items of each kind the export has."""
        tables = ("entity", "memory", "relation")
        if self._filtered:
            return {name: self._db.execute(f"SELECT count(*) FROM temp.export_{name}").get for name in tables}  # noqa: S608
        return {name: self._db.execute(f"SELECT count(*) FROM {name}").get for name in tables}  # noqa: S608

    def records(self) -> Iterator[Mapping]:
        """All items: entities, then memories, then relations."""
        yield from self.entities()
        yield from self.memories()
        yield from self.relations()

    def _claims(self, kind: int, pk: int) -> list[Mapping]:
        claims: list[Mapping] = []
        for uri, format_, digest, record, line, taken_at, said in self._db.execute(_CLAIMS, (pk, kind)):
            claim = {
                "uri": uri or None, "format": format_, "digest": digest, "record": record.hex(),
                "line": line or None, "taken_at": taken_at, "said": None if said is None else json.loads(said),
            }  # fmt: skip
            claims.append({key: value for key, value in claim.items() if value is not None})
        return claims

    def _id_aliases(self, kind: int, pk: int) -> list[str]:
        return [id_ for (id_,) in self._db.execute(_ALIASES, (pk, kind))]

    def entities(self) -> Iterator[Mapping]:
        """The entities by scope, name and kind."""
        for row in self._db.execute(_ENTITIES.format(where=self._where("e", "entity"))):
            (pk, id_, scope, name, kind, description, aliases, properties, state, by, stub, created,
             updated) = row  # fmt: skip
            redirects = [
                _ref(old, old_kind, of, None) for of, old, old_kind in self._db.execute(_REDIRECTS, (pk,))
            ]
            yield ordered(
                "entity",
                {
                    "id": id_, "name": name, "kind": kind, "scope": scope, "description": description,
                    "aliases": _loaded(aliases), "properties": _loaded(properties),
                    "state": state if state != "active" else None, "archived_by": by, "stub": bool(stub),
                    "created_at": created, "updated_at": updated,
                    "id_aliases": self._id_aliases(ENTITY, pk), "redirects": redirects,
                    "origins": self._claims(ENTITY, pk),
                },
            )  # fmt: skip

    def _links(self, pk: int, role: int, home: str | None) -> list[Mapping]:
        links = [
            _ref(name, kind, scope, home)
            for name, kind, scope in self._db.execute(self._links_sql, (pk, role))
        ]
        # The order in which `graphmem.mapping` reads them, so that a manifest's digest is found again.
        return sorted(links, key=lambda ref: (ref["name"], ref["kind"], ref.get("scope", "")))

    def memories(self) -> Iterator[Mapping]:
        """The memories by scopes, source, position, time and id."""
        for row in self._db.execute(_MEMORIES.format(where=self._where("m", "memory"))):
            (pk, id_, content, title, type_, importance, tags, key, source, position, properties, state, by,
             created, updated, valid, invalid, expired) = row  # fmt: skip
            scopes = json.loads(key)
            home = scopes[0] if len(scopes) == 1 else None
            yield ordered(
                "memory",
                {
                    "id": id_, "content": content, "title": title, "memory_type": type_,
                    "importance": importance, "tags": _loaded(tags), "scopes": scopes,
                    "about": self._links(pk, ABOUT, home), "mentions": self._links(pk, MENTION, home),
                    "source": source if position is None else {"uri": source, "position": position},
                    "properties": _loaded(properties), "state": state if state != "active" else None,
                    "archived_by": by, "created_at": created, "updated_at": updated, "valid_at": valid,
                    "invalid_at": invalid, "expired_at": expired,
                    "id_aliases": self._id_aliases(MEMORY, pk), "origins": self._claims(MEMORY, pk),
                },
            )  # fmt: skip

    def relations(self) -> Iterator[Mapping]:
        """The relations by scope, subject, predicate, object and time."""
        stated = "SELECT memory FROM stated_by WHERE relation = ? ORDER BY memory"
        for row in self._db.execute(_RELATIONS.format(where=self._where("r", "relation"))):
            (pk, id_, scope, subject, subject_kind, subject_scope, predicate, object_, object_kind, object_scope,
             weight, fact, properties, state, by, created, updated, valid, invalid, expired) = row  # fmt: skip
            yield ordered(
                "relation",
                {
                    "id": id_, "subject": _ref(subject, subject_kind, subject_scope, scope),
                    "predicate": predicate, "object": _ref(object_, object_kind, object_scope, scope),
                    "scope": scope, "weight": weight, "fact": fact,
                    "stated_by": [memory for (memory,) in self._db.execute(stated, (pk,))],
                    "properties": _loaded(properties), "state": state if state != "active" else None,
                    "archived_by": by, "created_at": created, "updated_at": updated, "valid_at": valid,
                    "invalid_at": invalid, "expired_at": expired,
                    "id_aliases": self._id_aliases(RELATION, pk), "origins": self._claims(RELATION, pk),
                },
            )  # fmt: skip


_IN_SCOPES: Final = "(:any_scope OR {scope} IN (SELECT value FROM json_each(:scopes)))"
_AT: Final = (
    "ifnull({t}.valid_at, {t}.created_at) >= :since AND ifnull({t}.valid_at, {t}.created_at) <= :until"
)

_PICK_MEMORIES: Final = f"""
INSERT INTO temp.export_memory
SELECT m.pk FROM memory AS m
WHERE (:any_scope OR EXISTS (SELECT 1 FROM scope_member AS x JOIN scope AS s ON s.pk = x.scope
    WHERE x.scope_set = m.scope_set AND s.name IN (SELECT value FROM json_each(:scopes))))
  AND {_AT.format(t="m")}
  AND ((:any_kind AND :any_entity) OR EXISTS (SELECT 1 FROM memory_link AS l JOIN entity AS e ON e.pk = l.entity
    WHERE l.memory = m.pk
      AND (:any_kind OR e.kind_key IN (SELECT value FROM json_each(:kinds)))
      AND (:any_entity OR e.pk IN (SELECT value FROM json_each(:entities)))))
"""  # noqa: S608
_PICK_RELATIONS: Final = f"""
INSERT INTO temp.export_relation
SELECT r.pk FROM relation AS r JOIN scope AS s ON s.pk = r.scope
JOIN entity AS a ON a.pk = r.subject JOIN entity AS b ON b.pk = r.object
WHERE {_IN_SCOPES.format(scope="s.name")} AND {_AT.format(t="r")}
  AND (:any_kind OR a.kind_key IN (SELECT value FROM json_each(:kinds))
    OR b.kind_key IN (SELECT value FROM json_each(:kinds)))
  AND (:any_entity OR a.pk IN (SELECT value FROM json_each(:entities))
    OR b.pk IN (SELECT value FROM json_each(:entities)))
"""  # noqa: S608
# What a kept memory or relation refers to comes along, so that a filtered export never dangles.
_PICK_ENTITIES: Final = f"""
INSERT INTO temp.export_entity
SELECT e.pk FROM entity AS e JOIN scope AS s ON s.pk = e.scope
WHERE {_IN_SCOPES.format(scope="s.name")}
  AND (:any_kind OR e.kind_key IN (SELECT value FROM json_each(:kinds)))
  AND (:any_entity OR e.pk IN (SELECT value FROM json_each(:entities)))
  AND e.created_at >= :since AND e.created_at <= :until
UNION SELECT l.entity FROM memory_link AS l JOIN temp.export_memory AS x ON x.pk = l.memory
  JOIN entity AS e ON e.pk = l.entity JOIN scope AS s ON s.pk = e.scope
  WHERE (:any_scope OR s.name = 'global' OR s.name IN (SELECT value FROM json_each(:scopes)))
UNION SELECT r.subject FROM relation AS r JOIN temp.export_relation AS x ON x.pk = r.pk
UNION SELECT r.object FROM relation AS r JOIN temp.export_relation AS x ON x.pk = r.pk
"""  # noqa: S608
