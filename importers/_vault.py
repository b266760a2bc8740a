"""Which note a link means: the names under which a note answers, and links as those names."""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache
from typing import Final
from unicodedata import normalize

_NOTE: Final = re.compile(r"\.(?:md|markdown|mdc)(?:\.gz|\.zst)?\Z", re.IGNORECASE)


def without_suffix(name: str) -> str:
    """A note's path without `.md`, `.markdown` or `.mdc`."""
    return _NOTE.sub("", name)


def _folded(path: str) -> str:
    """A path blind to case and to how its accents are written."""
    return normalize("NFC", path).casefold()


@lru_cache(maxsize=4)
def _paths_by_stem(siblings: frozenset[str]) -> dict[str, list[str]]:
    """The notes of a folder by the case-folded last part of their path, the shortest path first."""
    stems: dict[str, list[str]] = {}
    for name in siblings:
        if _NOTE.search(name):
            path = without_suffix(name)
            stems.setdefault(_folded(posixpath.basename(path)), []).append(path)
    for paths in stems.values():
        paths.sort(key=lambda path: (len(path), path))
    return stems


class Vault:
    """The folder a note stands in, seen from that note."""

    def __init__(self, name: str, siblings: frozenset[str]) -> None:
        self.path = without_suffix(name)
        self.folder = posixpath.dirname(self.path)
        self._siblings = siblings

    def _known(self, target: str) -> list[str]:
        if not self._siblings:
            return []
        folded = _folded(target)
        stem = posixpath.basename(folded)
        paths = _paths_by_stem(self._siblings).get(stem, [])
        return [p for p in paths if _folded(p) == folded or _folded(p).endswith("/" + folded)]

    def _choose(self, target: str, known: list[str]) -> str:
        """One of several notes: the exact path, then the note's own folder, then the shortest path."""
        own = posixpath.join(self.folder, target)
        for wanted in (_folded(target), _folded(own)):
            for path in known:
                if _folded(path) == wanted:
                    return path
        return known[0]

    def wikilink(self, target: str) -> str:
        """The name a wikilink's target refers to: a path when the bare name would not be enough."""
        if target.startswith(("./", "../")):
            return self._relative(target)
        target = target.lstrip("/")
        known = self._known(target)
        if len(known) > 1 or ("/" in target and known):
            return self._choose(target, known)
        return target

    def markdown_link(self, path: str) -> str:
        """The name a markdown link's path refers to; it is relative to the note's folder."""
        if path.startswith("/"):
            return posixpath.normpath(path).lstrip("/")
        relative = self._relative(path)
        known = self._known(posixpath.basename(path))
        exact = {_folded(p): p for p in known}
        for wanted in (relative, posixpath.normpath(path)):
            if _folded(wanted) in exact:
                return exact[_folded(wanted)]
        return known[0] if known else relative

    def _relative(self, path: str) -> str:
        joined = posixpath.normpath(posixpath.join(self.folder, path))
        while joined.startswith("../"):
            joined = joined[3:]
        return joined

    def aliases(self) -> list[str]:
        """The names under which links reach this note: its file name and its path.

        Of several notes of one file name only the one a bare link from the root means has that name.
        """
        if not self.path:
            return []
        stem = posixpath.basename(self.path)
        known = self._known(stem)
        first = Vault("", self._siblings)._choose(stem, known) if known else self.path
        names = [stem] if first == self.path else []
        return names + ([self.path] if self.folder else [])
