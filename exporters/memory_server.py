"""The MCP memory server's file: entities with their observations, then relations, one JSON line each.

That format knows names, types, observations and relations and nothing else. What holds now is written;
`lost` says what the file cannot say. A stub without observations has no line, as the server lets a
relation point at a name that has none.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from graphmem.formats import Exporter, ExportFile
from graphmem.names import kind_key
from graphmem.records import DEFAULT_MEMORY_TYPE, ENTITY, MEMORY, RELATION, UNKNOWN_KIND

from ._export_spool import Spool

_Mapping = dict[str, Any]
_Key = tuple[str | None, str, str]

# What a record may say that the format has no place for; ids, scopes, times and origins aside, which
# every record has.
_LOST: Final[dict[str, tuple[str, ...]]] = {
    "entity": ("description", "aliases", "properties", "redirects"),
    "memory": ("title", "memory_type", "importance", "tags", "mentions", "source", "properties", "valid_at"),
    "relation": ("weight", "fact", "stated_by", "properties", "valid_at"),
}
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class MemoryServerExporter(Exporter):
    """Writes a file that the MCP memory server reads."""

    name = "memory-server"
    suffix = ".jsonl"
    folder = False

    def write(
        self,
        manifest: dict[str, Any],  # noqa: ARG002 -- the server would drop it
        records: Iterable[dict[str, Any]],
    ) -> Iterator[ExportFile]:
        """One file of UTF-8 lines, each ended by LF; there is no manifest in it."""
        yield ExportFile("", _lines(records))

    def lost(self, records: Iterable[dict[str, Any]]) -> dict[str, int]:
        """How many records, of those in an export, say what the file cannot, by what that is."""
        counts: Counter[str] = Counter()
        names: Counter[str] = Counter()
        absent: set[_Key] = set()
        for record in records:
            type_ = record["type"]
            why = _why_left_out(record)
            if type_ == ENTITY:
                if why:
                    absent.add(_key(record, record["scope"]))
                names[record["name"]] += not why
            elif not why and _is_cut_off(record, absent):
                why = f"{type_} of an archived entity"
            if why:
                counts[why] += 1
                continue
            counts.update(f"{key} of {type_}" for key in _LOST[type_] if _says(record, key))
            if type_ == MEMORY and len(record["about"]) > 1:
                counts["memory about several entities, written for each"] += 1
        counts["entity of the same name as another"] = sum(count - 1 for count in names.values() if count)
        return {what: count for what, count in sorted(counts.items()) if count}


def _says(record: _Mapping, key: str) -> bool:
    return record.get(key) is not None and (key, record[key]) != ("memory_type", DEFAULT_MEMORY_TYPE)


def _why_left_out(record: _Mapping) -> str | None:
    """Why a record is not written; `None` for one that is."""
    if record.get("state", "active") != "active":
        return f"archived {record['type']}"
    if record.get("invalid_at") is not None or record.get("expired_at") is not None:
        return f"{record['type']} that no longer holds"
    if record["type"] == MEMORY and not record.get("about"):
        return "memory about no entity"
    return None


def _home(record: _Mapping) -> str | None:
    """The scope that references of a record leave out."""
    if record["type"] != MEMORY:
        home: str | None = record["scope"]
        return home
    return record["scopes"][0] if len(record["scopes"]) == 1 else None


def _key(ref: _Mapping, home: str | None) -> _Key:
    return ref.get("scope", home), ref["name"], kind_key(ref.get("kind"))


def _ends(record: _Mapping) -> list[_Key]:
    """The entities that a memory is about, or that a relation has at its ends."""
    refs = record["about"] if record["type"] == MEMORY else [record["subject"], record["object"]]
    home = _home(record)
    return [_key(ref, home) for ref in refs]


def _is_cut_off(record: _Mapping, absent: set[_Key]) -> bool:
    """Whether a memory has no entity, or a relation lacks an end, because those are left out."""
    gone = [end in absent for end in _ends(record)]
    return all(gone) if record["type"] == MEMORY else any(gone)


def _lines(records: Iterable[_Mapping]) -> Iterator[bytes]:
    pages: dict[_Key, int] = {}
    written = False
    with Spool() as spool:
        for record in records:
            if record["type"] == ENTITY:
                if not _why_left_out(record):
                    page = pages[_key(record, record["scope"])] = len(pages)
                    spool.put(record, page)
            elif _why_left_out(record):
                continue
            elif record["type"] == MEMORY:
                for end in _ends(record):
                    if end in pages:
                        spool.put(record, pages[end])
            else:
                if not written:
                    yield from _entities(spool)
                    written = True
                if all(end in pages for end in _ends(record)):
                    yield _relation(record)
        if not written:
            yield from _entities(spool)


def _entities(spool: Spool) -> Iterator[bytes]:
    for _, numbers in spool.by_page():
        entity = spool.get(numbers[0])
        observations = list(dict.fromkeys(spool.get(number)["content"] for number in numbers[1:]))
        if observations or not entity.get("stub"):
            yield _line(
                {
                    "type": ENTITY,
                    "name": entity["name"],
                    "entityType": entity.get("kind", UNKNOWN_KIND),
                    "observations": observations,
                }
            )


def _relation(record: _Mapping) -> bytes:
    return _line(
        {
            "type": RELATION,
            "from": record["subject"]["name"],
            "to": record["object"]["name"],
            "relationType": record["predicate"],
        }
    )


def _line(record: _Mapping) -> bytes:
    return _encode(record).encode() + b"\n"
