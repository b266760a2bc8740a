"""Markdown notes: each note is an entity, its sections and list facts are memories about it.

The grammar, and what it does not match, is described in `docs/markdown.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, Final

from graphmem.formats import Importer, Item, Source

_YAML_LINE: Final = re.compile(r"""(?:[\w"'$.<-][^\s:]*[ \t]*:(?:\s|\Z)|-(?:\s|\Z)|[{\[?|>&*!%]|---)""")
_OTHER_SUFFIX: Final = re.compile(
    r"\.(?:ya?ml|jsonl?|ndjson|csv|tsv|xml|toml)(?:\.gz|\.zst)?\Z", re.IGNORECASE
)
_MOST_CONTROL: Final = 0.05


class MarkdownImporter(Importer):
    """Reads one markdown note, with frontmatter or without."""

    name = "markdown"
    suffixes = (".md", ".markdown", ".mdc")

    def sniff(self, head: bytes, name: str) -> str | None:
        """Why the input is a note: its suffix and text, or frontmatter that markdown follows."""
        if not _is_text(head) or _is_json(head):
            return None
        plain = name.lower().removesuffix(".gz").removesuffix(".zst")
        if plain.endswith(self.suffixes):
            return f"text in a file named '*{plain[plain.rfind('.') :]}'"
        if _OTHER_SUFFIX.search(name):
            return None
        return "frontmatter followed by markdown" if _starts_like_a_note(head) else None

    def read(self, stream: BinaryIO, source: Source) -> Iterator[Item]:
        """The records of one note: its entity, then memories and relations in their order."""
        from ._markdown_note import read_markdown

        yield from read_markdown(stream, source)


def _is_text(head: bytes) -> bool:
    odd = sum(head.count(bytes([sign])) for sign in range(9))
    return odd <= len(head) * _MOST_CONTROL


def _is_json(head: bytes) -> bool:
    """Whether the first line is a JSON object or list, whole or cut."""
    text = head.lstrip()
    if text.startswith(b"{"):
        return bool(re.match(rb'\{\s*(?:"|\})', text))
    if not text.startswith(b"[") or text.startswith(b"[["):
        return False
    return bool(re.match(rb'\[\s*(?:[{"\d]|\[\s*")', text))


def _starts_like_a_note(head: bytes) -> bool:
    """Whether frontmatter is followed by lines that are markdown and cannot be YAML records."""
    from ._frontmatter import find_block, looks_like_metadata

    lines = [line.removesuffix("\r") for line in head.decode("utf-8", "replace").split("\n")]
    found = find_block(lines)
    if found is None or not looks_like_metadata(lines[slice(*found)]):
        return False
    for line in lines[found[1] + 1 :]:
        if line.strip() and not line.startswith("#"):
            return not _YAML_LINE.match(line.lstrip())
    return False
