"""What one import run declares, in temporary tables: names it will bring, references with kinds, ids.

They let a reference find a declaration that comes later in the run, and make the outcome independent of
order and batch size. Temporary tables live in SQLite's own temporary file, so memory stays bounded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from graphmem.names import folded, name_keys, words
from graphmem.prepare import canonical_json
from graphmem.records import GLOBAL_SCOPE
from graphmem.resolve import Candidate, Resolution, resolve
from graphmem.store.sets import Scopes

if TYPE_CHECKING:
    import apsw


_SCHEMA: Final = """
PRAGMA temp.cache_size = -16384;
CREATE TEMP TABLE run_decl (
  pk INTEGER PRIMARY KEY, scope TEXT, name TEXT, kind_key TEXT, kind TEXT, weak INTEGER, time TEXT, carried INTEGER,
  aliases TEXT, keyed INTEGER DEFAULT 0, final_name TEXT, final_kind TEXT, UNIQUE (scope, name, kind_key)
);
CREATE INDEX temp.run_final ON run_decl (scope, final_name) WHERE final_name NOTNULL;
CREATE TEMP TABLE run_key (
  key TEXT, decl INTEGER, step INTEGER, alias INTEGER, PRIMARY KEY (key, decl, step, alias)
) WITHOUT ROWID;
CREATE TEMP TABLE run_weak (
  scope TEXT, name TEXT, kind_key TEXT, kind TEXT, PRIMARY KEY (scope, name, kind_key)
) WITHOUT ROWID;
CREATE TEMP TABLE run_complete (
  scope TEXT, name TEXT, kind_key TEXT, entity INTEGER, kind TEXT, PRIMARY KEY (scope, name, kind_key)
) WITHOUT ROWID;
CREATE TEMP TABLE run_id (
  kind INTEGER, id TEXT, key BLOB, main INTEGER, PRIMARY KEY (kind, id, key)
) WITHOUT ROWID;
CREATE INDEX temp.run_id_key ON run_id (kind, key);
CREATE TEMP TABLE run_was (memory INTEGER PRIMARY KEY, key BLOB);
CREATE INDEX temp.run_was_key ON run_was (key);
CREATE TEMP TABLE run_touch (
  kind INTEGER, item INTEGER, records INTEGER, changed INTEGER, PRIMARY KEY (kind, item)
) WITHOUT ROWID;
CREATE TEMP TABLE run_active (kind INTEGER, item INTEGER, PRIMARY KEY (kind, item)) WITHOUT ROWID;
CREATE TEMP TABLE run_seen (origin INTEGER, digest BLOB, PRIMARY KEY (origin, digest)) WITHOUT ROWID;
CREATE TEMP TABLE run_now (digest BLOB, input INTEGER, PRIMARY KEY (digest, input)) WITHOUT ROWID;
"""
_TABLES: Final = (
    "run_decl", "run_key", "run_weak", "run_complete", "run_id", "run_was", "run_touch", "run_active",
    "run_seen", "run_now",
)  # fmt: skip

_DECLARE: Final = """
INSERT INTO run_decl (scope, name, kind_key, kind, aliases, time, carried, weak)
VALUES (?, ?, ?, ?, ?, ?, ?, 0)
ON CONFLICT DO UPDATE SET kind = max(kind, excluded.kind), time = max(time, excluded.time),
  carried = max(carried, excluded.carried), weak = 0, keyed = 0, aliases = CASE
    WHEN aliases IS NULL THEN excluded.aliases WHEN excluded.aliases IS NULL THEN aliases
    ELSE (SELECT json_group_array(value) FROM
      (SELECT value FROM json_each(aliases) UNION SELECT value FROM json_each(excluded.aliases))) END
"""
_CLAIM: Final = """
INSERT INTO run_id VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET main = max(main, excluded.main)
"""
_KEYS_AT_ONCE: Final = 20_000
_KEY: Final = "INSERT OR IGNORE INTO run_key VALUES (?, ?, ?, ?)"
_WEAK: Final = """
INSERT INTO run_weak VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET kind = max(kind, excluded.kind)
"""
# A store row counts for a run when it was there before it or is declared by it: the stubs that the run
# itself makes must not depend on which batch came first. What sync archived is not there for names.
_STORED: Final = """
SELECT e.pk, n.alias, s.name, e.name, e.kind_key, e.kind, e.updated_at
FROM name_key AS n CROSS JOIN entity AS e ON e.pk = n.entity CROSS JOIN scope AS s ON s.pk = e.scope
WHERE n.key = ?1 AND n.step <= ?2 AND (e.stub = 0 OR e.batch < ?3) AND e.archived_by IS NOT 'sync'
"""
# An entity that the run completes has the kind it is going to have, whether or not it has it yet.
_COMPLETED: Final = """
SELECT e.pk, n.alias, s.name, e.name, ifnull(c.kind_key, e.kind_key), e.kind, e.updated_at
FROM name_key AS n CROSS JOIN entity AS e ON e.pk = n.entity CROSS JOIN scope AS s ON s.pk = e.scope
LEFT JOIN run_complete AS c ON c.scope = s.name AND c.name = e.name AND c.entity = e.pk
WHERE n.key = ?1 AND n.step <= ?2 AND (e.stub = 0 OR e.batch < ?3) AND e.archived_by IS NOT 'sync'
"""
_EXACT: Final = """
SELECT e.pk, e.scope, e.name, e.kind_key, e.id
FROM name_key AS n CROSS JOIN entity AS e ON e.pk = n.entity
WHERE n.key = ?1 AND n.step = 1 AND (e.stub = 0 OR e.batch < ?2) AND e.archived_by IS NOT 'sync'
"""
_CANDIDATES: Final = f"""
{_COMPLETED}
UNION ALL
SELECT NULL, k.alias OR d.final_name NOTNULL, d.scope, ifnull(d.final_name, d.name),
  ifnull(d.final_kind, d.kind_key), d.kind, ''
FROM run_key AS k CROSS JOIN run_decl AS d ON d.pk = k.decl
WHERE k.key = ?1 AND k.step <= ?2
"""  # noqa: S608
_NEAR: Final = f"{_CANDIDATES} AND d.weak = 0"
_STORE_KINDS: Final = """
SELECT pk, kind_key FROM entity WHERE scope = ? AND name = ? AND (stub = 0 OR batch < ?)
  AND archived_by IS NOT 'sync'
"""
_RUN_KINDS: Final = """
SELECT kind_key FROM run_decl WHERE scope = ?1 AND name = ?2 AND final_name IS NULL AND kind_key <> ''
UNION
SELECT kind_key FROM run_decl WHERE scope = ?1 AND final_name = ?2 AND kind_key <> ''
"""
_KINDLESS: Final = (
    "SELECT pk, scope, ifnull(final_name, name) FROM run_decl WHERE kind_key = '' AND NOT carried"
)
_DECLARED: Final = """
SELECT kind FROM run_decl
WHERE scope = ?1 AND name = ?2 AND final_name IS NULL AND ifnull(final_kind, kind_key) = ?3
UNION ALL
SELECT kind FROM run_decl
WHERE scope = ?1 AND final_name = ?2 AND ifnull(final_kind, kind_key) = ?3
"""
_TIMES: Final = """
SELECT time FROM run_decl WHERE weak = 0
  AND scope = ?1 AND name = ?2 AND final_name IS NULL AND ifnull(final_kind, kind_key) = ?3
UNION ALL
SELECT time FROM run_decl WHERE weak = 0
  AND scope = ?1 AND final_name = ?2 AND ifnull(final_kind, kind_key) = ?3
"""
_NATURAL: Final = """
SELECT name, kind_key FROM run_decl
WHERE scope = ?1 AND name = ?2 AND final_name IS NULL AND ifnull(final_kind, kind_key) = ?3
UNION ALL
SELECT name, kind_key FROM run_decl
WHERE scope = ?1 AND final_name = ?2 AND ifnull(final_kind, kind_key) = ?3
"""
_KINDLESS_OF: Final = """
SELECT pk FROM run_decl WHERE scope = ?1 AND name = ?2 AND final_name IS NULL AND kind_key = '' AND NOT carried
UNION ALL
SELECT pk FROM run_decl WHERE scope = ?1 AND final_name = ?2 AND kind_key = '' AND NOT carried
"""
_FINAL_NAME: Final = "SELECT max(final_name) FROM run_decl WHERE scope = ? AND name = ?"
_CARRIED: Final = "SELECT 1 FROM run_decl WHERE scope = ? AND name = ? AND kind_key = '' AND carried"
_WEAKLY: Final = "INSERT OR IGNORE INTO run_decl (scope, name, kind_key, kind, weak) VALUES (?, ?, ?, ?, 1)"
_COMPLETABLE: Final = """
SELECT DISTINCT d.scope, e.name, e.pk FROM run_decl AS d
JOIN scope AS s ON s.name = d.scope
JOIN entity AS e ON e.scope = s.pk AND e.name = ifnull(d.final_name, d.name) AND e.kind_key = ''
WHERE d.kind_key <> '' AND (e.stub = 0 OR e.batch < ?) AND NOT EXISTS (
  SELECT 1 FROM run_decl AS x WHERE x.scope = d.scope AND x.name = e.name AND x.kind_key = '' AND x.carried
)
"""


Declared = tuple[str, str, str, str | None, list[str], str | None, bytes, bool]
"""Scope, name, kind key, kind, aliases, stated time, digest of the record, whether it is of a transport file."""


_Weak = tuple[str, str, str, str]
"""Scope, name, kind key and kind of references."""


class RunTables:
    """The temporary tables of one run on one writing connection."""

    def __init__(self, db: apsw.Connection, scopes: Scopes) -> None:
        self._db: Any = db
        self._scopes = scopes
        self._settled_at = -1
        self.first_batch = 0
        self.has_finals = False
        self.has_completions = False
        self.has_weak = False
        self.pending = 0
        """Declarations that no batch has stored yet."""
        self._clock = ""
        self._overwrite = False
        self.rekeyed = False
        self.archives = False
        """Whether a record of the run says of its item that it is archived."""
        self._unkeyed = False
        self._old_memories: bool | None = None
        for table in _TABLES:
            db.execute(f"DROP TABLE IF EXISTS temp.{table}")
        db.execute(_SCHEMA)

    # ---- filling, while the inputs are read -------------------------------------------------------

    def declare(self, rows: Iterable[Declared]) -> None:
        """Adds declarations."""
        time = self._time
        given = [
            (scope, name, key, kind, json.dumps(aliases) if aliases else None, time(stated, digest), carried)
            for scope, name, key, kind, aliases, stated, digest, carried in rows
        ]
        self._db.executemany(_DECLARE, given)
        self.pending += len(given)
        self._unkeyed = True

    def judge(self, clock: str, *, overwrite: bool) -> None:
        """Has declarations keep their times, for telling the newest of several; before any is added."""
        self._clock = clock
        self._overwrite = overwrite

    def _time(self, stated: str | None, digest: bytes) -> str:
        """When a declaration was so; "" for one that the store knows already, or when nobody asks."""
        if not self._clock or self._overwrite:
            return self._clock
        known = self._db.execute("SELECT 1 FROM contribution WHERE digest = ? LIMIT 1", (digest,)).get
        return "" if known else stated or self._clock

    def _key(self) -> None:
        """Makes the name keys of declarations, when a reference first asks for one not stored yet."""
        self._unkeyed = False
        keys: list[tuple[str, int, int, int]] = []
        for pk, name, aliases in self._db.execute("SELECT pk, name, aliases FROM run_decl WHERE keyed = 0"):
            keys += [(form, pk, step, 0) for form, step in name_keys(name)]
            for alias in json.loads(aliases) if aliases else ():
                keys += [(form, pk, step, 1) for form, step in name_keys(alias)]
            if len(keys) > _KEYS_AT_ONCE:
                self._db.executemany(_KEY, keys)
                keys.clear()
        self._db.executemany(_KEY, keys)
        self._db.execute("UPDATE run_decl SET keyed = 1 WHERE keyed = 0")

    def refer(self, rows: Iterable[tuple[str, str, str, str]]) -> None:
        """Adds references that give a kind: (scope, name, kind key, kind)."""
        self._db.executemany(_WEAK, rows)

    def claim(self, rows: Iterable[tuple[int, str, bytes, bool]]) -> None:
        """Adds ids that records give: (kind number, id, natural key as written, own id or further one)."""
        self._db.executemany(_CLAIM, rows)

    # ---- settling: which kind a kindless record means, and which unknown entity is completed -------

    def settle(self, *, fold_case: bool = False, stubs: bool = True) -> None:
        """Works out, for the store as it is now, what declarations mean; cheap when nothing changed since.

        `stubs` is whether references to nothing are going to become stubs.
        """
        state = self._db.pragma("data_version")
        if state == self._settled_at:
            return
        self._settled_at = state
        db = self._db
        db.execute("DELETE FROM run_key WHERE decl IN (SELECT pk FROM run_decl WHERE weak = 1)")
        db.execute("DELETE FROM run_decl WHERE weak = 1")
        db.execute("DELETE FROM run_complete")
        if self.has_finals:
            db.execute("UPDATE run_decl SET final_name = NULL, final_kind = NULL")
        self.has_finals = self.has_completions = self.has_weak = False
        if fold_case:
            self._fold_case()
        self._settle_kinds()
        self._settle_weak(stubs=stubs)

    def unsettle(self) -> None:
        """Forgets what was settled, after a rollback."""
        self._settled_at = -1
        self._unkeyed = True
        self.has_finals = True

    def _store_kinds(self, scope: str, name: str) -> dict[str, int]:
        pk = self._scopes.find(scope)
        if pk is None:
            return {}
        rows = self._db.execute(_STORE_KINDS, (pk, name, self.first_batch))
        return {key: pk for pk, key in rows}

    def _settle_kinds(self) -> None:
        db = self._db
        for pk, scope, name in db.execute(_KINDLESS).fetchall():
            known = {key for key in self._store_kinds(scope, name) if key}
            known.update(key for (key,) in db.execute(_RUN_KINDS, (scope, name)))
            if known:
                # An empty final kind says that there were several, for the note.
                self.has_finals = True
                final = known.pop() if len(known) == 1 else ""
                db.execute("UPDATE run_decl SET final_kind = ? WHERE pk = ?", (final, pk))
        for scope, name, pk in db.execute(_COMPLETABLE, (self.first_batch,)).fetchall():
            held = self._store_kinds(scope, name)
            declared = {key for (key,) in db.execute(_RUN_KINDS, (scope, name))}
            if held.keys() == {""} and len(declared) == 1:
                self._complete(scope, name, declared.pop(), pk)

    def _complete(self, scope: str, name: str, key: str, pk: int, kind: str | None = None) -> None:
        self.has_completions = True
        self._db.execute(
            "INSERT OR IGNORE INTO run_complete VALUES (?, ?, ?, ?, ?)", (scope, name, key, pk, kind)
        )

    def _settle_weak(self, *, stubs: bool) -> None:
        """References with a kind that nothing answers to.

        The only kind of a name is also that of what has none, first in `global`, which every scope sees;
        what then still means nothing declares a stub of its kind.
        """
        unmet = self._unmet(
            self._db.execute("SELECT * FROM run_weak ORDER BY scope, name, kind_key").fetchall()
        )
        self._join([one for one in unmet if one[0] == GLOBAL_SCOPE])
        unmet = self._unmet(unmet)
        self._join(unmet)
        if stubs:
            self._weakly(self._unmet(unmet))

    def _unmet(self, refs: list[_Weak]) -> list[_Weak]:
        return [one for one in refs if not self.resolve(one[0], one[1], one[3]).candidates]

    def _weakly(self, refs: Iterable[_Weak]) -> None:
        rows = [(scope, self._final_name(scope, name), key, kind) for scope, name, key, kind in refs]
        if rows:
            self._db.executemany(_WEAKLY, rows)
            self.has_weak = self._unkeyed = True

    def _final_name(self, scope: str, name: str) -> str:
        final: str | None = self._db.execute(_FINAL_NAME, (scope, name)).get
        return final or name

    def _join(self, refs: list[_Weak]) -> None:
        """Gives the kind of references to what is declared or stored under the name without one."""
        db = self._db
        named: dict[tuple[str, str], list[_Weak]] = {}
        for one in refs:
            named.setdefault((one[0], self._final_name(one[0], one[1])), []).append(one)
        for (scope, name), group in named.items():
            held = self._store_kinds(scope, name)
            kindless = db.execute(_KINDLESS_OF, (scope, name)).fetchall()
            declared = {key for (key,) in db.execute(_RUN_KINDS, (scope, name))}
            unknown = None if db.execute(_CARRIED, (scope, name)).get else held.get("")
            if len({*filter(None, held), *declared, *(one[2] for one in group)}) > 1:
                continue
            if not kindless and unknown is None:
                continue
            self._weakly(group)
            _, _, key, kind = max(group)
            self.has_finals = self.has_finals or bool(kindless)
            db.executemany(
                "UPDATE run_decl SET final_kind = ? WHERE pk = ?", [(key, pk) for (pk,) in kindless]
            )
            if unknown is not None:
                self._complete(scope, name, key, unknown, kind)

    def _fold_case(self) -> None:
        """Declared names that differ only by case take one spelling: the store's, else the greatest."""
        db = self._db
        groups: dict[tuple[str, str], list[str]] = {}
        for scope, name in db.execute("SELECT scope, name FROM run_decl ORDER BY scope, name"):
            groups.setdefault((scope, name.casefold()), []).append(name)
        for (scope, _), names in groups.items():
            spelled = set(names)
            for _pk, alias, of, name, *_rest in db.execute(
                _CANDIDATES, (folded(names[0]), 2, self.first_batch)
            ).fetchall():
                if not alias and of == scope and name.casefold() == names[0].casefold():
                    spelled.add(name)
            if len(spelled) < 2:
                continue
            stored = sorted(name for name in spelled if self._store_kinds(scope, name))
            final = stored[0] if stored else max(spelled)
            for name in names:
                if name != final and name not in stored:
                    self.has_finals = True
                    db.execute("UPDATE run_decl SET final_name = ? WHERE scope = ? AND name = ?",
                               (final, scope, name))  # fmt: skip

    # ---- asking -----------------------------------------------------------------------------------

    def final(self, scope: str, name: str, key: str) -> tuple[str, str, bool]:
        """The name and kind key that a declaration comes to, and whether its kind stays open among several."""
        row = self._db.execute(
            "SELECT final_name, final_kind FROM run_decl WHERE scope = ? AND name = ? AND kind_key = ?",
            (scope, name, key),
        ).fetchone()
        if row is None:
            return name, key, False
        return row[0] or name, key if row[1] is None else row[1], row[1] == ""

    def updated(self, candidate: Candidate) -> str:
        """When a candidate will have been updated last, the run's declarations included.

        It does not matter which of them are stored already: a declaration only ever brings the time of the
        row up to its own. The time of a stub that the run declares does not count.
        """
        times = self._db.execute(_TIMES, candidate.identity).fetchall()
        declared = max((time for (time,) in times), default="")
        row = self._db.execute("SELECT updated_at, stub FROM entity WHERE pk = ?", (candidate.pk,)).fetchone()
        stored = "" if row is None or (row[1] and times) else row[0]
        return max(stored, declared)

    def declares(self, scope: str, name: str, key: str) -> bool:
        """Whether a record of the run declares exactly this scope, name and kind."""
        found = self._db.execute(
            "SELECT 1 FROM run_decl WHERE scope = ? AND name = ? AND kind_key = ? AND weak = 0",
            (scope, name, key),
        ).get
        return found is not None

    def spelled(self, scope: str, name: str, key: str) -> str | None:
        """The kind as the run writes it of a final name and kind, or `None`."""
        found = self._db.execute(_DECLARED, (scope, name, key)).fetchall()
        return max((kind for (kind,) in found if kind is not None), default=None)

    def declared_id(self, id_: str) -> tuple[str, str, str] | None:
        """(scope, final name, final kind key) of the entity that a record of the run gives this id."""
        key = self._db.execute("SELECT min(key) FROM run_id WHERE kind = 0 AND id = ?", (id_,)).get
        if key is None:
            return None
        scope, name, kind = json.loads(key)
        final_name, final_kind, _ = self.final(scope, name, kind)
        return scope, final_name, final_kind

    def completed(self, scope: str, name: str, key: str) -> int | None:
        """The stored entity of unknown kind that a declaration completes."""
        found: int | None = self._db.execute(
            "SELECT entity FROM run_complete WHERE scope = ? AND name = ? AND kind_key = ?",
            (scope, name, key),
        ).get
        return found

    def referred_kind(self, scope: str, name: str, key: str) -> str | None:
        """The kind that references alone give to a stored entity of unknown kind."""
        found: str | None = self._db.execute(
            "SELECT kind FROM run_complete WHERE scope = ? AND name = ? AND kind_key = ?", (scope, name, key)
        ).get
        return found

    def resolve(self, scope: str, name: str, kind: str | None, only: str | None = None) -> Resolution:
        """What a reference means in a scope; `only` limits it to one scope named by the reference."""
        if self._unkeyed and (self.pending > 0 or self.has_weak):
            self._key()
        # Once every declaration is stored, the store alone knows all that the run does.
        sql = _CANDIDATES if self.pending > 0 or self.has_weak or self.has_completions else _STORED

        def lookup(key: str, step: int) -> list[Candidate]:
            return [
                Candidate(of == scope, bool(alias), of, held, held_key, held_kind, updated, pk)
                for pk, alias, of, held, held_key, held_kind, updated in self._db.execute(
                    sql, (key, step, self.first_batch)
                )
                if (of in (scope, GLOBAL_SCOPE) if only is None else of == only)
            ]

        return resolve(name, kind, lookup)

    def sole(self, scope: str, name: str) -> tuple[int, tuple[str, str, str], str] | None:
        """(row, identity, id) of the only entity of exactly this name or alias: the common case, kept short.

        `None` where there is another one, or one may still come: then `resolve` has to say.
        """
        if self.pending > 0 or self.has_weak:
            return None
        rows = self._db.execute(_EXACT, (name, self.first_batch)).fetchall()
        if len(rows) != 1:
            return None
        pk, of, held, key, id_ = rows[0]
        home = self._scopes.name(of)
        if home not in (scope, GLOBAL_SCOPE):
            return None
        return pk, (home, held, key), id_

    def near(self, scope: str, name: str) -> list[str]:
        """Other names of the scope with the same words, in order."""
        if self._unkeyed:
            self._key()
        rows = self._db.execute(_NEAR, (words(name), 3, self.first_batch)).fetchall()
        return sorted({held for _, alias, of, held, *_ in rows if of == scope and not alias and held != name})

    def rival_ids(self, kind: int) -> dict[str, list[bytes]]:
        """Ids that the run gives to several natural keys, with those keys in order."""
        found: dict[str, list[bytes]] = {}
        for id_, key in self._db.execute(
            "SELECT id, key FROM run_id WHERE kind = ?1 AND id IN (SELECT id FROM run_id WHERE kind = ?1 "
            "GROUP BY id HAVING count(*) > 1) ORDER BY id, key",
            (kind,),
        ):
            found.setdefault(id_, []).append(key)
        return found

    def ids_by_key(self, kind: int, key: bytes) -> list[str]:
        """The ids that records of the run give to a natural key as written, in order."""
        found = self._db.execute(
            "SELECT id FROM run_id WHERE kind = ? AND key = ? AND main = 1 ORDER BY id", (kind, key)
        )
        return [id_ for (id_,) in found]

    def entity_ids(self, scope: str, name: str, key: str) -> list[str]:
        """The ids that records of the run give to the entity of a final name and kind."""
        found = self._db.execute(_NATURAL, (scope, name, key)).fetchall()
        keys = (canonical_json([scope, name, kind]).encode() for name, kind in found)
        return [id_ for key in keys for id_ in self.ids_by_key(0, key)]

    def has_ids(self, kind: int) -> bool:
        """Whether any record of the run of that kind gives an id."""
        return self._db.execute("SELECT 1 FROM run_id WHERE kind = ? LIMIT 1", (kind,)).get is not None

    # ---- keys that memories had before the run ----------------------------------------------------

    def keep_key(self, memory: int, key: bytes) -> None:
        """Notes the natural key that a memory had when the run first changed it."""
        self.rekeyed = True
        self._db.execute("INSERT OR IGNORE INTO run_was VALUES (?, ?)", (memory, key))

    def memory_by_key(self, key: bytes, found: list[tuple[int, int]], batches: set[int]) -> int | None:
        """Of memories (pk, batch) that have a natural key now, and those that had it, the oldest from before."""
        pks = [pk for pk, batch in found if batch not in batches]
        if self.rekeyed:
            changed = self._db.execute("SELECT memory, key FROM run_was WHERE key = ?", (key,)).fetchall()
            pks = [pk for pk in pks if not self._was_rekeyed(pk)] + [pk for pk, _ in changed]
        return min(pks, default=None)

    def _was_rekeyed(self, memory: int) -> bool:
        return self._db.execute("SELECT 1 FROM run_was WHERE memory = ?", (memory,)).get is not None

    # ---- keeping count ----------------------------------------------------------------------------

    def touch(self, rows: Iterable[tuple[int, int, int, int]]) -> None:
        """Counts records that went to items which the run did not make: (kind, item, records, changed).

        `changed` is 0, 1, or 2 for a change that stays whatever becomes of the item's row.
        """
        self._db.executemany(
            "INSERT INTO run_touch VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "records = records + excluded.records, changed = max(changed, excluded.changed)",
            rows,
        )

    def untouch(self, items: Iterable[tuple[int, int]]) -> None:
        """Counts items (kind, item) as not changed: what the run changed it changed back."""
        self._db.executemany(
            "UPDATE run_touch SET changed = 0 WHERE kind = ? AND item = ? AND changed = 1", items
        )

    def touched(self) -> list[tuple[int, int, int, int]]:
        """Per kind: (kind, items changed, records to changed items, records to unchanged items)."""
        found: list[tuple[int, int, int, int]] = self._db.execute(
            "SELECT kind, sum(changed > 0), sum(iif(changed, records, 0)), sum(iif(changed, 0, records)) "
            "FROM run_touch GROUP BY kind"
        ).fetchall()
        return found

    def support(self, kind: int, item: int) -> None:
        """Notes that a record of the run speaks of an item as one that is not archived."""
        self._db.execute("INSERT OR IGNORE INTO run_active VALUES (?, ?)", (kind, item))

    def supported(self, kind: int, item: int) -> bool:
        """Whether a record of the run spoke of an item as one that is not archived."""
        found = self._db.execute("SELECT 1 FROM run_active WHERE kind = ? AND item = ?", (kind, item)).get
        return found is not None

    def say_now(self, rows: Iterable[tuple[int, bytes]]) -> None:
        """Notes what inputs say now: (input, digest)."""
        self._db.executemany("INSERT OR IGNORE INTO run_now (input, digest) VALUES (?, ?)", rows)

    def said_no_more(self, origin: int, source: int | None) -> list[tuple[bytes, int, int, int]]:
        """(digest, kind, item, line) of what an origin said and its input says no more; all without one."""
        found: list[tuple[bytes, int, int, int]] = self._db.execute(
            "SELECT digest, kind, item, line FROM contribution AS c WHERE origin = ?1 AND (?2 IS NULL OR "
            "NOT EXISTS (SELECT 1 FROM run_now AS n WHERE n.digest = c.digest AND n.input = ?2)) "
            "ORDER BY line, digest",
            (origin, source),
        ).fetchall()
        return found

    def is_said(self, digest: bytes) -> bool:
        """Whether any input of the run says this."""
        return self._db.execute("SELECT 1 FROM run_now WHERE digest = ? LIMIT 1", (digest,)).get is not None

    def see(self, rows: Iterable[tuple[int, bytes]]) -> None:
        """Notes records seen in origins: (origin, digest)."""
        self._db.executemany("INSERT OR IGNORE INTO run_seen VALUES (?, ?)", rows)

    def unseen(self, origin: int) -> int:
        """How many contributions of an origin this run did not see in it."""
        count: int = self._db.execute(
            "SELECT count(*) FROM contribution AS c WHERE origin = ?1 AND NOT EXISTS "
            "(SELECT 1 FROM run_seen AS s WHERE s.origin = ?1 AND s.digest = c.digest)",
            (origin,),
        ).get
        return count
