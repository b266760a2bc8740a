"""Where a thing applies: the syntax of scopes, the scope of a folder, and scopes moved between machines.

A scope is `global`, `repo:/absolute/path` (the Git common directory, which linked worktrees share), or
any `kind:value`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from graphmem import git
from graphmem.errors import UsageError
from graphmem.records import GLOBAL_SCOPE

MAX_SCOPE_LENGTH: Final = 1024
REPO: Final = "repo:"
SYNTAX: Final = "'global', 'repo:/absolute/path' or 'kind:value'"

_SIGN = r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]"
_ABSOLUTE = r"(?:/|[A-Za-z]:[\\/]|\\\\)"
_SCOPE: Final = re.compile(
    rf"(?:global|repo:{_ABSOLUTE}{_SIGN}*|(?!repo:)[a-z][a-z0-9_-]*:(?!\s){_SIGN}+(?<!\s))\Z"
)


@lru_cache(maxsize=4096)
def is_scope(text: str) -> bool:
    """Whether a text is a valid scope of at most 1,024 characters."""
    return len(text) <= MAX_SCOPE_LENGTH and _SCOPE.match(text) is not None


def checked(text: str) -> str:
    """The scope itself; raises `UsageError` when it is not one."""
    if not is_scope(text):
        raise UsageError(f"'{text}' is not a scope", f"write {SYNTAX}")
    return text


def given(text: str) -> str:
    """The scope a person means by an option: `repo:` with the path of a checkout is its repository's.

    Raises `UsageError` for a text that is not a scope.
    """
    checked(text)
    if not text.startswith(REPO):
        return text
    path = Path(text[len(REPO) :])
    repository = git.find(path) if path.is_absolute() and path.is_dir() else None
    if repository is None or os.path.realpath(path) != str(repository.top):
        return text
    return checked(f"{REPO}{repository.common}")


def default_scope(cwd: Path) -> str:
    """The scope of a folder: that of the Git repository it lies in, else `global`.

    Raises `UsageError` when the repository's path cannot be written as a scope: falling back to
    `global` would show its memories everywhere.
    """
    repository = git.find(cwd)
    if repository is None:
        return GLOBAL_SCOPE
    scope = f"{REPO}{repository.common}"
    if not is_scope(scope):
        raise UsageError(
            f"the path of this repository cannot be a scope: {str(repository.common)!r}",
            "name a scope with --scope",
        )
    return scope


def is_gone(scope: str) -> bool:
    """Whether a scope is the path of a repository that does not exist on this machine."""
    return scope.startswith(REPO) and not os.path.lexists(scope.removeprefix(REPO))


def visible_scopes(scope: str) -> tuple[str, ...]:
    """The scopes that a read in this scope sees, its own first."""
    return (GLOBAL_SCOPE,) if scope == GLOBAL_SCOPE else (scope, GLOBAL_SCOPE)


class ScopeMap(dict[str, str]):
    """New scopes by old ones, the longest old one first; it remembers which of them were met."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        super().__init__(pairs)
        self.met: set[str] = set()

    @property
    def unmet(self) -> list[str]:
        """The old scopes that nothing was of so far."""
        return [old for old in self if old not in self.met]


def parse_scope_map(options: Iterable[str]) -> ScopeMap:
    """The mapping that `OLD=NEW` texts stand for, the longest old scope first.

    Paths may hold `=`; the cut is where both sides are scopes. Raises `UsageError` when there is no
    such cut or more than one, or when one scope is mapped twice.
    """
    mapping: dict[str, str] = {}
    for option in options:
        cuts = [i for i, sign in enumerate(option) if sign == "="]
        pairs = [(option[:i], option[i + 1 :]) for i in cuts]
        pairs = [(old, new) for old, new in pairs if is_scope(old) and is_scope(new)]
        if len(pairs) != 1:
            problem = "can be cut in several ways" if pairs else "is not OLD=NEW with a scope on both sides"
            raise UsageError(f"'{option}' {problem}", f"a scope is {SYNTAX}")
        old, new = pairs[0]
        if mapping.setdefault(old, new) != new:
            raise UsageError(f"the scope '{old}' is mapped twice", "map each scope once")
    return ScopeMap(sorted(mapping.items(), key=lambda pair: (-len(pair[0]), pair[0])))


def map_scope(scope: str, mapping: Mapping[str, str]) -> str:
    """The scope after a mapping of `parse_scope_map`; a scope that is not mapped stays.

    Between two `repo:` scopes whatever lies below the old path moves along, so that one mapping moves
    every repository of a home folder. The longest old path wins.
    """
    exact = mapping.get(scope)
    if exact is not None:
        _meet(mapping, scope)
        return exact
    for old, new in mapping.items():
        base = old.rstrip("/\\")
        rest = scope[len(base) :]
        if old.startswith(REPO) and new.startswith(REPO) and scope.startswith(base) and rest[:1] in "/\\":
            _meet(mapping, old)
            separator = "/" if new.startswith(f"{REPO}/") else "\\"
            return new.rstrip("/\\") + separator + separator.join(re.split(r"[/\\]", rest[1:]))
    return scope


def _meet(mapping: Mapping[str, str], old: str) -> None:
    if isinstance(mapping, ScopeMap):
        mapping.met.add(old)
