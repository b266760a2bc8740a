"""One exported note: frontmatter, memories under their headings, relations, and the `gmem` block."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from graphmem.records import UNKNOWN_KIND

from ._note_front import as_text, is_shown, json_line, yaml_lines
from ._note_items import LINE, Ids, Item, Shown, ShownLink, digest_of, heading, shown_memory, shown_relation

RELATIONS_HEADING: Final = "Relations"


def subject_of(entity: Item) -> Item:
    """The reference to a note's entity that items leave out."""
    return {"name": entity["name"], "kind": entity.get("kind") or UNKNOWN_KIND}


def note_lines(
    entity: Item,
    memories: list[Item],
    relations: list[Item],
    link: ShownLink,
    head: Item,
) -> tuple[list[str], list[Item]]:
    """The lines of a note, and the items it cannot show.

    `head` has the first keys of the `gmem` block.
    """
    subject = subject_of(entity)
    ids = Ids()
    values, hidden = _visible(entity)
    note_tags = frozenset(values.get("tags", ()))
    shown = [shown_memory(item, subject, ids, note_tags) for item in sorted(memories, key=_reading_order)]
    lines_of_relations: list[Shown] = []
    left: list[Item] = []
    for item in relations:
        one = shown_relation(item, subject, ids, link)
        if one is None:
            left.append(item)
        else:
            lines_of_relations.append(one)
    body = _body(entity["name"], shown, lines_of_relations)
    entries = [json_line(one.entry) for one in (*shown, *lines_of_relations)]
    links = _links(one for one in lines_of_relations)
    gmem = {
        **head,
        "record": entity,
        "front": digest_of({key: as_text(value) for key, value in values.items()}),
        "hidden": hidden,
        "body": digest_of("\n".join(body).strip("\n")),
        "links": links,
        "entries": digest_of(entries),
    }
    block = [f"  {line}" for line in (json_line({k: v for k, v in gmem.items() if v != []}), *entries)]
    return ["---", *yaml_lines(values), "gmem: |", *block, "---", *body], left


def _reading_order(item: Item) -> tuple[str, int]:
    source = item.get("source")
    if isinstance(source, dict):
        return source.get("uri") or "", source.get("position") or 0
    return source or "", 0


def _visible(entity: Item) -> tuple[Item, list[str]]:
    """What the frontmatter shows of an entity, and the properties it does not show."""
    properties: Item = entity.get("properties") or {}
    values: Item = {"title": entity["name"]}
    if (entity.get("kind") or UNKNOWN_KIND) != UNKNOWN_KIND:
        values["type"] = entity["kind"]
    if entity.get("aliases"):
        values["aliases"] = entity["aliases"]
    if entity.get("description"):
        values["description"] = entity["description"]
    shown = {key: value for key, value in properties.items() if is_shown(key, value)}
    return {**values, **shown}, [key for key in properties if key not in shown]


def _body(name: str, memories: list[Shown], relations: list[Shown]) -> list[str]:
    lines: list[str] = []
    if heading(name) == name and not name.startswith("#"):
        lines += ["", f"# {name}"]
    groups: dict[str | None, list[Shown]] = {None: []}
    for one in memories:
        groups.setdefault(one.title, []).append(one)
    for title, group in groups.items():
        if title is not None:
            lines += ["", f"## {title}"]
        facts = [one for one in group if one.kind == LINE]
        if facts:
            lines.append("")
        for one in facts:
            lines += one.lines
        for one in group:
            if one.kind != LINE:
                lines += ["", *one.lines]
    if relations:
        lines += ["", f"## {RELATIONS_HEADING}", ""]
        for one in relations:
            lines += one.lines
    return lines


def _links(relations: Iterable[Shown]) -> dict[str, Any]:
    """What each link target stands for that is not simply the name of its entity."""
    links: dict[str, Any] = {}
    for one in relations:
        target, ref = one.entry["seen"]["target"], one.entry["record"]["object"]
        if isinstance(ref, dict) and target != ref.get("name"):
            links[target] = ref
    return links
