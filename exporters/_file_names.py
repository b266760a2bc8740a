"""File names for entities: readable, reversible, and distinct on every file system.

A name is written as it is, except that signs which some file system or link syntax refuses become
`%XX` for each of their UTF-8 bytes, as in URLs. `%~` starts an addition that is not part of the name:
the kind where names collide, or a digest where that is not enough or the name had to be cut.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Final
from unicodedata import normalize

MAX_STEM_BYTES: Final = 150
ADDED: Final = "%~"

# Refused by Windows, or part of the syntax of links, code or comments, or invisible.
_REFUSED: Final = re.compile(
    r"[\x00-\x1f\x7f-\xa0\xad<>:\"/\\|?*%#^\[\]`$\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f"
    r"\u3000\ufeff\ufff0-\uffff\U000e0000-\U000e007f]"
)
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")
_FIRST: Final = re.compile(r"\A[. ~-]")
_LAST: Final = re.compile(r"[. ]\Z")
_DEVICE: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|\Z)", re.IGNORECASE)
_LIKE_A_FILE: Final = re.compile(r"\.(?=[A-Za-z0-9]{1,10}\Z)")
_PIECE: Final = re.compile(r"(?:%[0-9A-F]{2})+|.", re.DOTALL)

EntityKey = tuple[str, str, str]
"""Scope, name and kind."""


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8"))


def encoded(name: str) -> str:
    """The file name of a name, without suffix; `urllib.parse.unquote` gives the name back."""
    stem = _REFUSED.sub(_percent, name)
    if normalize("NFC", name) != name:
        stem = _NOT_ASCII.sub(_percent, stem)
    if _DEVICE.match(stem):
        stem = f"%{ord(stem[0]):02X}{stem[1:]}"
    stem = _FIRST.sub(_percent, stem)
    stem = _LAST.sub(_percent, stem)
    return _LIKE_A_FILE.sub(_percent, stem) if _is_known_file(stem) else stem


_KNOWN: Final = re.compile(
    r"\.(?:md|markdown|mdc|png|jpe?g|gif|svg|webp|bmp|avif|tiff?|ico|pdf|mp3|mp4|m4a|wav|flac|ogg|ogv|webm"
    r"|mov|mkv|3gp|canvas|base|excalidraw|zip|csv|xlsx?|docx?|pptx?)\Z",
    re.IGNORECASE,
)


def _is_known_file(stem: str) -> bool:
    """Whether a link to the stem would be taken for a file with that suffix."""
    return _KNOWN.search(stem) is not None


def _digest(key: EntityKey) -> str:
    return hashlib.sha256(json.dumps(key).encode()).hexdigest()[:12]


def _cut(stem: str, addition: str) -> str:
    """The stem and an addition within the limit; the stem is cut between whole signs."""
    room = MAX_STEM_BYTES - len(addition.encode())
    if len(stem.encode()) > room:
        kept = ""
        for piece in _PIECE.findall(stem):
            if len((kept + piece).encode()) > room:
                break
            kept += piece
        stem = kept
    return stem + addition


def folded(stem: str) -> str:
    """A stem blind to case and Unicode form, as the most forgetful file system sees it."""
    return normalize("NFKC", normalize("NFKC", stem).casefold())


def stems(keys: Sequence[EntityKey]) -> list[str]:
    """The file names of entities, in their order, distinct also where case and form do not count."""
    plain: list[str] = []
    groups: dict[str, list[int]] = {}
    for i, key in enumerate(keys):
        stem = encoded(key[1])
        if len(stem.encode()) > MAX_STEM_BYTES:
            stem = _cut(stem, ADDED + _digest(key))
        plain.append(stem)
        groups.setdefault(folded(stem), []).append(i)
    for group in groups.values():
        if len(group) > 1:
            _tell_apart(group, keys, plain)
    return plain


def _tell_apart(group: list[int], keys: Sequence[EntityKey], plain: list[str]) -> None:
    """Add the kinds of colliding entities to their names, or digests where kinds do not suffice."""
    kinds = {i: encoded(keys[i][2]) for i in group}
    by_kind = {folded(kind) for kind in kinds.values()}
    readable = len(by_kind) == len(group) and all(
        len(f"{plain[i]}{ADDED}{kind}".encode()) <= MAX_STEM_BYTES for i, kind in kinds.items()
    )
    for i in group:
        stem = encoded(keys[i][1])
        plain[i] = _cut(stem, ADDED + (kinds[i] if readable else _digest(keys[i])))
