"""Changing one item in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from graphmem.act import Act, Done, perform
from graphmem.commit.edits import Edits
from graphmem.edit.targets import Scopes, Target, find_item
from graphmem.errors import UsageError
from graphmem.mapping import STATES, checked_value
from graphmem.records import KINDS
from graphmem.store import Store
from graphmem.store.write import ENTITY, MEMORY, RELATION

if TYPE_CHECKING:
    from graphmem.embed import Encoder

SETTABLE: Final = {
    ENTITY: ("name", "kind", "description", "aliases", "state"),
    MEMORY: (
        "content", "title", "memory_type", "importance", "tags", "scopes", "about", "mentions", "source",
        "valid_at", "invalid_at", "expired_at", "state",
    ),
    RELATION: ("predicate", "fact", "weight", "invalid_at", "expired_at", "stated_by", "state"),
}  # fmt: skip
"""What of an item of each kind can be set, besides properties."""

_SETS: Final = {
    ENTITY: ("aliases",),
    MEMORY: ("tags", "scopes", "about", "mentions"),
    RELATION: ("stated_by",),
}
_REQUIRED: Final = frozenset(("name", "content", "predicate", "state", "scopes"))
_IDENTITY: Final = frozenset(("name", "kind", "predicate", "state"))


@dataclass(frozen=True, slots=True)
class Update:
    """What is to change: fields and properties to set or clear, members to add to sets or remove from them."""

    set: Mapping[str, Any] = field(default_factory=dict)
    clear: Sequence[str] = ()
    add: Mapping[str, Sequence[str]] = field(default_factory=dict)
    remove: Mapping[str, Sequence[str]] = field(default_factory=dict)
    properties: Mapping[str, Any] = field(default_factory=dict)
    without_properties: Sequence[str] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing is to change."""
        return not any(
            (self.set, self.clear, self.add, self.remove, self.properties, self.without_properties)
        )


@dataclass(frozen=True, slots=True)
class Updated:
    """What became of the item: its id now, whether anything changed, the batch."""

    type: str
    id: str
    status: str
    batch: str | None
    fields: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The outcome as it stands in JSON."""
        return {
            "type": self.type, "id": self.id, "status": self.status, "batch": self.batch,
            "fields": list(self.fields),
        }  # fmt: skip


def update(
    store: Store, text: str, wanted: Update, scopes: Scopes, *, kind: str | None = None,
    encoder: Encoder | None = None, actor: str | None = None,
) -> Updated:  # fmt: skip
    """Changes the item of an id, or the entity of a name, in one batch; texts that changed are encoded again.

    Another name or kind of an entity, or predicate of a relation, is a change of identity: the old name
    leads to the entity from then on, and two relations that become one are united. Raises `UsageError` for
    what such an item does not have, `EditRefused`, and the errors of `find_item`.
    """
    if wanted.empty:
        raise UsageError("nothing to change was given", "say what is to be set, added, removed or cleared")

    def body(edits: Edits, done: Done) -> Updated:
        target = find_item(store, text, scopes, kind=kind)
        checked = _checked(target.kind, wanted)
        before = edits.row(target.kind, target.pk)
        pk = _change_identity(edits, target, checked)
        changed = pk != target.pk
        said = _said(store, edits, Target(target.kind, pk, target.id), checked, scopes)
        if said:
            edits.change(target.kind, pk, said)
        if "state" in checked.set:
            edits.set_state(target.kind, pk, checked.set["state"])
        after = edits.row(target.kind, pk)
        fields = tuple(
            name for name in sorted(after)
            if before.get(name) != after[name] and name not in ("updated_at", "key", "scope_set", "batch")
            and not name.endswith("_key")
        )  # fmt: skip
        done.counts["changed"] = {KINDS[target.kind]: 1}
        status = "united" if changed else "updated" if fields else "unchanged"
        return Updated(KINDS[target.kind], after["id"], status, None, fields)

    result, done = perform(store, Act("update", [text], actor), body, encoder)
    return Updated(result.type, result.id, result.status, done.batch, result.fields)


def _checked(number: int, wanted: Update) -> Update:
    """The update with its values as they are stored. Raises `UsageError` for what cannot be."""
    type_ = KINDS[number]
    known = SETTABLE[number]
    for name in (*wanted.set, *wanted.clear, *wanted.add, *wanted.remove):
        if name not in known:
            told = ", ".join(known)
            raise UsageError(f"'{name}' of this {type_} cannot be changed", f"what can be changed: {told}")
    for name in (*wanted.add, *wanted.remove):
        if name not in _SETS[number]:
            raise UsageError(f"'{name}' is no set: it can be set or cleared", f"sets are {_SETS[number]}")
    for name in wanted.clear:
        if name in _REQUIRED:
            raise UsageError(f"'{name}' cannot be cleared", "set it to something else")
    values = {name: _value(type_, name, value) for name, value in wanted.set.items()}
    if values.get("state") not in (None, *STATES):
        raise UsageError(f"'{values['state']}' is no state", f"write one of {', '.join(STATES)}")
    sets = [
        {name: _members(type_, name, given) for name, given in one.items()}
        for one in (wanted.add, wanted.remove)
    ]
    return Update(
        values,
        tuple(wanted.clear),
        sets[0],
        sets[1],
        dict(wanted.properties),
        tuple(wanted.without_properties),
    )


def _value(type_: str, name: str, value: Any) -> Any:
    if name in ("about", "mentions"):
        return _members(type_, name, value)
    if name == "source":
        if not isinstance(value, str) or not value:
            raise UsageError("'source' must be text")
        return value
    try:
        return checked_value(type_, name, value)
    except ValueError as error:
        raise UsageError(f"'{name}' {error}") from None


def _members(type_: str, name: str, given: Any) -> list[str]:
    if isinstance(given, str):
        given = [given]
    if name in ("about", "mentions"):
        if not all(isinstance(one, str) and one.strip() for one in given):
            raise UsageError(f"'{name}' takes names or ids of entities")
        return list(given)
    try:
        found: list[str] = checked_value(type_, name, list(given))
    except ValueError as error:
        raise UsageError(f"'{name}' {error}") from None
    return found


def _change_identity(edits: Edits, target: Target, wanted: Update) -> int:
    if target.kind == ENTITY and ("name" in wanted.set or "kind" in wanted.set or "kind" in wanted.clear):
        row = edits.row(ENTITY, target.pk)
        kind = wanted.set.get("kind", None if "kind" in wanted.clear else row["kind"])
        edits.reidentify(target.pk, wanted.set.get("name", row["name"]), kind)
    elif target.kind == RELATION and "predicate" in wanted.set:
        return edits.repredicate(target.pk, wanted.set["predicate"])[0]
    return target.pk


def _said(store: Store, edits: Edits, target: Target, wanted: Update, scopes: Scopes) -> dict[str, Any]:
    """What the edit says, of what it changes only."""
    row = edits.row(target.kind, target.pk)
    said: dict[str, Any] = {}
    without: dict[str, list[str]] = {}
    for name in _SETS[target.kind]:
        said |= _said_set(store, row, name, wanted, scopes, without)
    for name, value in wanted.set.items():
        if name in _IDENTITY or name in _SETS[target.kind]:
            continue
        if name == "source":
            said["place"] = [value, None]
        elif row[name] != value:
            said[name] = value
    cleared = [
        "place" if name == "source" else name
        for name in wanted.clear
        if name not in _SETS[target.kind] and name not in _IDENTITY and row.get(name) is not None
    ]
    if cleared:
        without["fields"] = sorted(cleared)
    properties = {
        key: value for key, value in wanted.properties.items()
        if key not in row["properties"] or row["properties"][key] != value
    }  # fmt: skip
    if properties:
        said["properties"] = properties
    gone = sorted(key for key in wanted.without_properties if key in row["properties"])
    if gone:
        without["properties"] = gone
    if without:
        said["without"] = without
    return said


def _said_set(
    store: Store, row: Mapping[str, Any], name: str, wanted: Update, scopes: Scopes,
    without: dict[str, list[str]],
) -> dict[str, Any]:  # fmt: skip
    """The members that a set gains; those that it loses go to `without`."""

    def ids(members: Sequence[str]) -> list[str]:
        if name not in ("about", "mentions"):
            return list(members)
        return [find_item(store, one, scopes, only=ENTITY).id for one in members]

    held = set(row[name])
    after = set(held)
    if name in wanted.clear:
        after = set()
    if name in wanted.set:
        after = set(ids(wanted.set[name]))
    after |= set(ids(wanted.add.get(name, ())))
    after -= set(ids(wanted.remove.get(name, ())))
    if name == "scopes" and not after:
        raise UsageError("a memory has at least one scope", "add another before you remove the last one")
    if held - after:
        without[name] = sorted(held - after)
    return {name: sorted(after - held)} if after - held else {}
