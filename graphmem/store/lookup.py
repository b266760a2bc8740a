"""What looking up a name asks of the store: the visible entities under a key, or with a name much like it.

Every question works on a reading connection and sees stubs and archived entities too, but nothing of a
scope that was not named. The first kind of question is one look-up in an index. The other two are asked
only when that found nothing; they read the keys of all names once, inside SQLite, and give a bounded
number of rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from graphmem.resolve import Candidate

if TYPE_CHECKING:
    import apsw

_ROW: Final = """
e.pk, e.id, n.alias, s.name, e.name, e.kind_key, e.kind, e.updated_at, e.state, e.stub
"""
_FROM: Final = "JOIN entity AS e ON e.pk = n.entity JOIN scope AS s ON s.pk = e.scope"
_SEEN: Final = "(:all OR e.scope IN (SELECT value FROM json_each(:scopes)))"

_UNDER: Final = f"""
SELECT {_ROW}, n.key FROM name_key AS n {_FROM}
WHERE n.key = :key AND n.step <= :step AND {_SEEN} ORDER BY e.pk, n.alias, n.step
"""  # noqa: S608
# What decides comes first in the order, so that the limit never hides that there are several.
_CONTAINING: Final = f"""
SELECT {_ROW}, n.key FROM name_key AS n {_FROM}
WHERE {{words}} AND {_SEEN} AND (ifnull(:kind, '') = '' OR e.kind_key = :kind)
GROUP BY e.pk, n.alias
ORDER BY (e.kind_key = :kind) DESC, e.state, (s.name = :own) DESC, n.alias, min(length(n.key)),
  e.name, e.kind_key, s.name
LIMIT :limit
"""  # noqa: S608
_SIMILAR: Final = f"""
SELECT {_ROW}, n.key FROM (
  SELECT entity, alias, key, {{hits}} AS hits FROM name_key
  WHERE step < 3 AND length(key) BETWEEN :shortest AND :longest
) AS n {_FROM}
WHERE n.hits >= :least AND {_SEEN} AND (ifnull(:kind, '') = '' OR e.kind_key = :kind)
ORDER BY n.hits DESC, abs(length(n.key) - :length), n.key, e.name, e.kind_key, s.name, n.alias LIMIT :limit
"""  # noqa: S608
_FORMER: Final = f"""
SELECT e.pk, e.id, 1, s.name, e.name, r.kind_key, e.kind, e.updated_at, e.state, e.stub, r.name
FROM redirect AS r JOIN entity AS e ON e.pk = r.entity JOIN scope AS s ON s.pk = e.scope
WHERE r.name = :name AND r.kind_key = :kind AND {_SEEN} ORDER BY e.pk, r.scope
"""  # noqa: S608
_BY_ID: Final = f"""
SELECT e.pk, e.id, 0, s.name, e.name, e.kind_key, e.kind, e.updated_at, e.state, e.stub, e.name
FROM entity AS e JOIN scope AS s ON s.pk = e.scope
WHERE e.pk IN (
  SELECT pk FROM entity WHERE id = :id UNION ALL SELECT item FROM id_alias WHERE kind = 0 AND id = :id
) AND {_SEEN}
"""  # noqa: S608


class Found(NamedTuple):
    """An entity found by name: what the cascade judges it by, and what a reader is told of it.

    `key` is the form of its name or alias under which it was found.
    """

    candidate: Candidate
    id: str
    state: str
    stub: bool
    key: str

    @property
    def pk(self) -> int:
        """Its row number."""
        assert self.candidate.pk is not None
        return self.candidate.pk


class Names:
    """The names that are visible in some scopes, the first of which is the reader's own; `None` is all."""

    def __init__(self, db: apsw.Connection, scopes: Sequence[str] | None) -> None:
        self._db: Any = db
        self._own = scopes[0] if scopes else None
        self._binds: dict[str, Any] = {"all": scopes is None, "scopes": "[]", "own": self._own}
        if scopes is not None:
            rows = self._db.execute(
                "SELECT pk FROM scope WHERE name IN (SELECT value FROM json_each(?))", (json.dumps(scopes),)
            )
            self._binds["scopes"] = json.dumps([pk for (pk,) in rows])

    def by_id(self, id_: str) -> Found | None:
        """The visible entity with this id or id alias."""
        found = self._found(_BY_ID, id=id_)
        return found[0] if found else None

    def under(self, key: str, step: int) -> list[Found]:
        """The entities found under a key of a name, at that step of the cascade or a lower one."""
        return self._found(_UNDER, key=key, step=step)

    def former(self, name: str, kind: str) -> list[Found]:
        """The entities that once had this name together with this comparable kind."""
        return self._found(_FORMER, name=name, kind=kind)

    def containing(self, words: Sequence[str], kind: str | None, limit: int) -> list[Found]:
        """Entities that have all the words in their name or in one alias, those that count most first.

        The words are folded and hold no space. `kind` is a comparable kind, `None` for any; "" puts
        entities without a kind first and leaves out none.
        """
        parts: list[str] = []
        binds: dict[str, Any] = {}
        for number, word in enumerate(words):
            parts.append(f"instr(n.key, :w{number}) AND instr(' ' || n.key || ' ', :p{number})")
            binds |= {f"w{number}": word, f"p{number}": f" {word} "}
        # The list of placeholders is all that is put into the statement.
        return self._found(_CONTAINING.format(words=" AND ".join(parts)), kind=kind, limit=limit, **binds)

    def similar(self, text: str, pieces: Sequence[str], kind: str | None, limit: int) -> list[Found]:
        """Entities of which a name or alias has many of the pieces and about the length of the text."""
        parts = [f"(instr(key, :g{number}) > 0)" for number in range(len(pieces))]
        binds: dict[str, Any] = {f"g{number}": piece for number, piece in enumerate(pieces)}
        spread = max(2, len(text) // 2)
        return self._found(
            _SIMILAR.format(hits=" + ".join(parts)), kind=kind, limit=limit, length=len(text),
            shortest=len(text) - spread, longest=len(text) + spread, least=max(1, len(pieces) // 3), **binds,
        )  # fmt: skip

    def _found(self, sql: str, **binds: Any) -> list[Found]:
        return [
            Found(
                Candidate(scope == self._own, bool(alias), scope, name, kind_key, kind, updated, pk, id_),
                id_, state, bool(stub), key,
            )
            for pk, id_, alias, scope, name, kind_key, kind, updated, state, stub, key in self._db.execute(
                sql, self._binds | binds
            )
        ]  # fmt: skip
