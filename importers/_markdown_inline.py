"""What is matched inside a line: links to notes, tags, and `key:: value` fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from ._markdown_mask import COMMENT, OPAQUE

_WIKILINK: Final = re.compile(r"(!?)\[\[([^\[\]]+)\]\]")
_MARKDOWN_LINK: Final = re.compile(
    r"(?<!\\)\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(\s*(?:<([^<>]*)>|([^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*))"
    r"(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)"
)
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://|[^\s/])|//")
_URL_IN_TEXT: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_FRAGMENT: Final = re.compile(r"#(?=[^\s#])")
_SHOWN: Final = re.compile(r"\\?\|")
_NOTE_SUFFIX: Final = re.compile(r"\.(?:md|markdown)\Z", re.IGNORECASE)
_ATTACHMENT: Final = re.compile(
    r"\.(?:png|jpe?g|gif|svg|webp|bmp|avif|tiff?|ico|pdf|mp3|mp4|m4a|wav|flac|ogg|ogv|webm|mov|mkv|3gp"
    r"|canvas|base|excalidraw|zip|csv|xlsx?|docx?|pptx?)\Z",
    re.IGNORECASE,
)
# A tag ends at white space and at every sign but `-`, `_` and `/`, ASCII or general punctuation.
_TAG_SIGN: Final = (
    r"[^\s\x00-\x20!-,.:-@\[-^`{-\x9f\u00a1-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf"
    r"\u2000-\u200c\u200e-\u206f\u3000-\u3004\u3007-\u3030\u303d-\u303f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]"
)
_TAGS: Final = re.compile(rf"(?:(?<=\s)|\A)((?:#{_TAG_SIGN}*)+)")
_ONE_TAG: Final = re.compile(rf"{_TAG_SIGN}+\Z")
_FIELD_LINE: Final = re.compile(
    rf"[ \t]*(?:[-*+][ \t]+)?(?:\*\*|__|\*|_)?([^\W\d_][^\n:*{COMMENT}{OPAQUE}\[\]()|`]{{0,63}}?)"
    r"(?:\*\*|__|\*|_)?::(?:\*\*|__|\*|_)?[ \t]+(\S.*)"
)
_FIELD_INLINE: Final = re.compile(
    r"[\[(][ \t]*([^\W\d_][^\n:\[\]()]{0,63}?)::[ \t]+([^\[\]()]*(?:\[\[[^\[\]]*\]\])?)[\])]"
)
_MAX_FIELD_WORDS: Final = 4


@dataclass(frozen=True, slots=True)
class Link:
    """A link or embed as written: the target without its heading and shown text.

    `path` says that the target is a percent-decoded path relative to the note, not a wikilink.
    """

    target: str
    line: int
    start: int
    path: bool = False


def wikilink_target(inner: str) -> str | None:
    """The target of `[[inner]]`; "" for the note itself, `None` when it is no link to a note."""
    target = _SHOWN.split(inner, maxsplit=1)[0].strip()
    if _URL.match(target):
        return None
    target = _FRAGMENT.split(target, maxsplit=1)[0].strip()
    if _ATTACHMENT.search(target):
        return None
    return _NOTE_SUFFIX.sub("", target)


def _markdown_target(destination: str) -> str | None:
    if _URL.match(destination):
        return None
    path = unquote(destination.split("#", 1)[0], errors="replace").strip()
    return _NOTE_SUFFIX.sub("", path) if _NOTE_SUFFIX.search(path) else None


def links(text: str, masked: str, line: int = 0) -> list[Link]:
    """The links to notes in a line, in order; `line` is its number."""
    if "[" not in masked:
        return []
    found: list[Link] = []
    for match in _WIKILINK.finditer(masked):
        target = wikilink_target(text[match.start(2) : match.end(2)])
        if target is not None:
            found.append(Link(target, line, match.start()))
    if "](" in masked:
        for match in _MARKDOWN_LINK.finditer(masked):
            group = 1 if match[1] is not None else 2
            path = _markdown_target(text[match.start(group) : match.end(group)])
            if path is not None:
                found.append(Link(path, line, match.start(), path=True))
        found.sort(key=lambda link: link.start)
    return found


def _without_links(masked: str) -> str:
    for pattern in (_WIKILINK, _MARKDOWN_LINK, _URL_IN_TEXT):
        masked = pattern.sub(lambda match: OPAQUE * len(match[0]), masked)
    return masked


def is_tag(word: str) -> bool:
    """Whether `#word` is a tag: letters, digits, `-`, `_` and `/`, and not digits only."""
    clean = word.strip("/")
    return bool(clean) and _ONE_TAG.match(word) is not None and not clean.isdigit()


def tags(masked: str) -> Iterator[str]:
    """The tags in a masked line, without their `#`."""
    if "#" in masked:
        for match in _TAGS.finditer(_without_links(masked)):
            for word in match[1].split("#"):
                if is_tag(word):
                    yield word.strip("/")


def fields(text: str, masked: str) -> Iterator[tuple[str, str]]:
    """The `key:: value` fields in a line: key in lower case with hyphens, value as written."""
    if "::" not in masked:
        return
    match = _FIELD_LINE.match(masked)
    if match is not None and len(match[1].split()) <= _MAX_FIELD_WORDS:
        yield _field_key(match[1]), text[match.start(2) : match.end(2)].strip()
        return
    for match in _FIELD_INLINE.finditer(masked):
        yield _field_key(match[1]), text[match.start(2) : match.end(2)].strip()


def _field_key(written: str) -> str:
    return "-".join(written.lower().split())


def only_links(value: str) -> list[str]:
    """The targets of a value that is nothing but wikilinks, with commas between; else the empty list."""
    found = [wikilink_target(match[2]) for match in _WIKILINK.finditer(value) if not match[1]]
    rest = _WIKILINK.sub("", value).replace(",", "").strip()
    return [target for target in found if target] if found and not rest else []
