"""The entity that a note is: its name, and what its frontmatter says about it."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import Any, Final

from graphmem.names import exact
from graphmem.times import parse_time

from ._frontmatter_yaml import Blank, Value
from ._markdown_blocks import Body
from ._markdown_inline import only_links

TITLE: Final = "title"
TYPE: Final = "type"
_DESCRIPTION: Final = ("description", "desc")
_ALIASES: Final = ("aliases", "alias")
_TAGS: Final = ("tags", "tag")
_CREATED: Final = ("created", "created_at")
_UPDATED: Final = ("updated", "modified", "updated_at")
GMEM: Final = "gmem"


@dataclass(slots=True)
class NoteEntity:
    """What the frontmatter of a note says, sorted by what it is for."""

    title: str | None = None
    kind: str | None = None
    description: str | None = None
    aliases: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    created_at: str | None = None
    updated_at: str | None = None
    day: str | None = None
    """The time of the key `date`, the day the note speaks about."""
    properties: dict[str, Any] = field(default_factory=dict)
    links: list[tuple[str, str, str]] = field(default_factory=list)
    """Properties that are links: predicate, target, and the frontmatter key they stand under."""

    def record(self, name: str) -> dict[str, Any]:
        """The canonical mapping of the entity under a name."""
        record: dict[str, Any] = {"type": "entity", "name": name}
        given = {
            "kind": self.kind,
            "description": self.description,
            "aliases": [alias for alias in self.aliases if exact(alias) != name],
            "properties": self.properties,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
        }
        return record | {key: value for key, value in given.items() if value}


def entity_of(values: dict[str, Value]) -> NoteEntity:
    """The frontmatter of a note, sorted; keys are recognised in any case."""
    entity = NoteEntity()
    for key, value in values.items():
        if key != GMEM and not _take(entity, key.lower(), value):
            entity.properties[key] = _plain(value)
            entity.links += [(key, target, key) for target in _link_targets(value)]
    if entity.tags:
        entity.properties["tags"] = entity.tags
    return entity


def _take(entity: NoteEntity, key: str, value: Value) -> bool:
    """Whether a key says something of its own meaning, which is then taken."""
    if key in _ALIASES:
        entity.aliases += _names(value)
        return True
    if key in _TAGS:
        entity.tags = list(dict.fromkeys([*entity.tags, *_tags(value)]))
        return True
    if not isinstance(value, str):
        return False
    if key == TITLE and entity.title is None:
        missing = isinstance(value, Blank) or value.strip() in ("", "None")
        entity.title = None if missing else exact(value) or None
        return True
    if key == TYPE and entity.kind is None:
        entity.kind = None if isinstance(value, Blank) else exact(value) or None
        return True
    if key in _DESCRIPTION and entity.description is None:
        entity.description = None if isinstance(value, Blank) else str(value) or None
        return True
    if key == "permalink":
        entity.aliases += _names([value])
    return _take_time(entity, key, value)


def _take_time(entity: NoteEntity, key: str, value: str) -> bool:
    """Whether a key gave a time of the entity; `date` is kept as a property all the same."""
    if key not in (*_CREATED, *_UPDATED, "date"):
        return False
    try:
        time, _ = parse_time(value)
    except ValueError:
        return False
    if key == "date":
        entity.day = time
        return False
    if key in _CREATED and entity.created_at is None:
        entity.created_at = time
        return True
    if key in _UPDATED and entity.updated_at is None:
        entity.updated_at = time
        return True
    return False


def _plain(value: Value) -> Any:
    """A value as it is stored: text, lists and mappings of text."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return str(value)


def _texts(value: Value) -> list[str]:
    listed = value if isinstance(value, list) else [value]
    return [str(one) for one in listed if isinstance(one, str) and not isinstance(one, Blank)]


def _names(value: Value) -> list[str]:
    """Aliases: the items of a list, or the parts of a text between commas."""
    texts = _texts(value)
    if not isinstance(value, list):
        texts = [part for text in texts for part in text.split(",")]
    return [name for name in map(exact, texts) if name]


def _tags(value: Value) -> list[str]:
    """Tags without their `#`: the items of a list, or of a text cut at commas, else at white space."""
    texts = _texts(value)
    if not isinstance(value, list):
        texts = [part for text in texts for part in (text.split(",") if "," in text else text.split())]
    cleaned = (exact(text.strip().lstrip("#")) for text in texts)
    return list(dict.fromkeys(tag for tag in cleaned if tag))


def _link_targets(value: Value) -> list[str]:
    """The targets of a property whose value, or list items, are nothing but wikilinks."""
    return [target for text in _texts(value) if "[[" in text for target in only_links(text)]


def name_of(entity: NoteEntity, body: Body, path: str) -> str | None:
    """The name of a note: its title, else its first heading, else its file name."""
    return entity.title or exact(body.heading or "") or exact(posixpath.basename(path)) or None


def add_fields(entity: NoteEntity, body: Body) -> None:
    """Add the body's `key:: value` fields to the properties; a key given again becomes a list."""
    for one in body.fields:
        known = entity.properties.get(one.key)
        if known is None:
            entity.properties[one.key] = one.value
        else:
            values = known if isinstance(known, list) else [known]
            if one.value not in values:
                entity.properties[one.key] = [*values, one.value]
