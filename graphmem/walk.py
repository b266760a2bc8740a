"""Which files the paths on a command line mean: files, folders, globs and standard input.

What does not exist is an error at once; what cannot be read on the way is a finding, never silence.
Inside a folder, hidden things, what its ignore files name, editors' leftovers and files that no format
reads are left out and counted; a file given by name is always taken.
"""

# ruff: noqa: PTH112, PTH116, PTH118, PTH119, PTH123 (text paths: `os.scandir` gives them, and a walk makes many)

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from graphmem import formats
from graphmem.errors import InputUnreadable
from graphmem.findings import Finding, finding
from graphmem.ignore import Patterns, compiled, segment_expression
from graphmem.outfile import EXPORT_MARKER

STDIN: Final = "-"
STDIN_LABEL: Final = "<stdin>"
COMPRESSED_SUFFIXES: Final = ("", ".gz", ".zst")
_ALWAYS_IGNORED: Final = frozenset((".git", ".graphmem"))
_LEFTOVER: Final = re.compile(r".*(?:~|\.(?:bak|orig|rej|swp|swo|swx|tmp|temp|part|crdownload))|#.*#|~\$.*")
_MAGIC: Final = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Found:
    """An input to read. `path` is `None` for standard input.

    `root` is the folder that was given, `None` where a single file was; `name` is the path relative to
    it with forward slashes, or the file's name; `label` is how findings call it; `real` is its path without
    links, "" where it was not looked at.
    """

    path: Path | None
    root: Path | None
    name: str
    label: str
    real: str = ""

    @property
    def uri(self) -> str:
        """The address of the file. Raises `ValueError` for standard input, which has none."""
        if self.path is None:
            raise ValueError("standard input has no address")
        return (Path(self.real) if self.real else self.path.resolve()).as_uri()


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder on the walk: its path, its path from the root (""), its real path and the ignore files.

    Each entry of `rules` is the length of the relative path of its folder, with what `.gitignore` and
    `.gmemignore` there say.
    """

    path: str
    rel: str
    real: str
    rules: tuple[tuple[int, Patterns, Patterns], ...] = ()

    def below(self, name: str) -> str:
        """The path of an entry relative to the root."""
        return f"{self.rel}/{name}" if self.rel else name

    def child(self, name: str) -> _Folder:
        """A folder in this one that is not a link."""
        path, real = os.path.join(self.path, name), os.path.join(self.real, name)
        return _Folder(path, self.below(name), real, self.rules)


_Target: TypeAlias = tuple[str, bool]
"""A path that was given or that a glob matched, and whether it is a folder."""


def file_is_gone(uri: str) -> bool:
    """Whether there is no file any more at an address; `False` for what is no address of a file."""
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(uri)
    path = unquote(parts.path, errors="surrogateescape")
    return parts.scheme == "file" and not os.path.lexists(path.lstrip("/") if os.name == "nt" else path)


def known_suffixes() -> tuple[str, ...]:
    """The suffixes of files that some importer reads, in lower case, compressed variants included."""
    plain = sorted(
        {suffix for name in formats.importer_points() for suffix in formats.importer(name).suffixes}
    )
    return tuple(suffix.lower() + packed for suffix in plain for packed in COMPRESSED_SUFFIXES)


def discover(paths: Sequence[str], suffixes: Sequence[str] | None = None) -> Discovery:
    """The inputs that `paths` mean, in a fixed order, each real file and folder once.

    `suffixes` are those taken inside folders (by default all that the installed formats read).
    Raises `InputUnreadable` for a path that does not exist and for a glob that matches nothing.
    """
    return Discovery(paths, suffixes)


class Discovery(Iterator[Found | Finding]):
    """The inputs and findings of a walk, with counts of what was left out, complete once it has ended."""

    def __init__(self, paths: Sequence[str], suffixes: Sequence[str] | None = None) -> None:
        self.ignored_files = 0
        """Files left out because they are hidden, leftovers, or named by an ignore file."""
        self.ignored_folders = 0
        """Folders left out for the same reasons; what is in them is not counted."""
        self.other_files = 0
        """Files left out because no format reads files of that suffix."""
        self._suffixes = None if suffixes is None else tuple(suffixes)
        self._seen: set[str] = set()
        self._early: list[Finding] = []
        targets = [target for given in paths for target in self._targets(given)]
        self._items = self._run(targets)

    def __next__(self) -> Found | Finding:
        """The next input or finding."""
        return next(self._items)

    # ---- what was given ----------------------------------------------------------------------------

    def _targets(self, given: str) -> list[_Target]:
        if given == STDIN:
            return [(STDIN, False)]
        try:
            return [(given, stat.S_ISDIR(os.stat(given).st_mode))]
        except (FileNotFoundError, NotADirectoryError):
            if not _MAGIC.search(given):
                raise InputUnreadable(f"'{given}' does not exist") from None
        except OSError as error:
            if not _MAGIC.search(given):
                raise InputUnreadable(f"'{given}' cannot be read: {error.strerror}") from None
        except ValueError:
            raise InputUnreadable(f"'{given!r}' is not a path") from None
        matched = self._expand(given)
        if not matched and not self._early:
            raise InputUnreadable(f"'{given}' matches no file", "what is hidden or ignored does not count")
        return matched

    def _expand(self, pattern: str) -> list[_Target]:
        """What a glob matches; `**` crosses folders, and ignored things match only where they are named."""
        parts = [part for part in re.split(r"[\\/]" if os.name == "nt" else "/", pattern) if part]
        fixed = next(i for i, part in enumerate(parts) if _MAGIC.search(part))
        start = "/" if pattern.startswith("/") else ""
        base = start + "/".join(parts[:fixed])
        if not os.path.isdir(base or "."):
            return []
        folder = _Folder(base, "", os.path.realpath(base or "."))
        return list(dict.fromkeys(self._matches(folder, parts[fixed:])))

    def _matches(self, folder: _Folder, parts: list[str]) -> Iterator[_Target]:
        """What the rest of a glob matches below a folder."""
        head, tail = parts[0], parts[1:]
        if head == "**":
            yield from self._matches(folder, tail) if tail else [(folder.path or ".", True)]
        asked = head.startswith(".") or not _MAGIC.search(head)
        expression = compiled(segment_expression(head))
        folder, entries = self._listed(folder, self._early)
        for entry in entries:
            is_folder = _is_folder(entry)
            if head == "**":
                if is_folder and not _is_link(entry) and not self._ignores(folder, entry.name, True):
                    yield from self._matches(folder.child(entry.name), parts)
            elif expression is None or not expression.fullmatch(entry.name):
                pass
            elif not asked and self._ignores(folder, entry.name, is_folder):
                self._count(is_folder)
            elif not tail:
                yield entry.path, is_folder
            elif is_folder:
                yield from self._matches(folder.child(entry.name), tail)

    # ---- the walk ----------------------------------------------------------------------------------

    def _run(self, targets: list[_Target]) -> Iterator[Found | Finding]:
        yield from self._early
        for path, is_folder in targets:
            real = path if path == STDIN else os.path.realpath(path)
            if is_folder:
                yield from self._walk(path, real)
            elif real not in self._seen:
                self._seen.add(real)
                yield _named(path)

    def _walk(self, given: str, real: str) -> Iterator[Found | Finding]:
        """Everything below a folder: first what is really there, then what links inside it lead to."""
        root = Path(given)
        folders = [_Folder(given, "", real)]
        links: list[tuple[_Folder, str]] = []
        while folders or links:
            if not folders:
                followed = self._followed(root, real, *links.pop(0))
                if isinstance(followed, _Folder):
                    folders.append(followed)
                elif followed is not None:
                    yield followed
                continue
            folder = folders.pop()
            if folder.real not in self._seen:
                self._seen.add(folder.real)
                yield from self._inside(root, folder, folders, links)

    def _inside(
        self, root: Path, folder: _Folder, folders: list[_Folder], links: list[tuple[_Folder, str]]
    ) -> Iterator[Found | Finding]:
        """The files of one folder; its folders and links are put down for later."""
        problems: list[Finding] = []
        folder, entries = self._listed(folder, problems)
        below: list[_Folder] = []
        for entry in entries:
            is_folder = _is_folder(entry)
            if not self._wanted(folder, entry, is_folder):
                continue
            if _is_link(entry):
                links.append((folder, entry.name))
            elif is_folder:
                below.append(folder.child(entry.name))
            elif (real_file := os.path.join(folder.real, entry.name)) not in self._seen:
                self._seen.add(real_file)
                yield _found(root, entry.path, folder.below(entry.name), real_file)
        yield from problems
        folders.extend(reversed(below))

    def _followed(
        self, root: Path, real_root: str, folder: _Folder, name: str
    ) -> Found | _Folder | Finding | None:
        """What a link leads to, unless that was met already or lies outside the folder that was given."""
        path = os.path.join(folder.path, name)
        target = os.path.realpath(path)
        if not _is_inside(target, real_root):
            message = "the link leads out of the folder that was given"
            return finding("link-outside", message, file=_label(path))
        if target in self._seen:
            return None
        if os.path.isdir(target):
            return _Folder(path, folder.below(name), target, folder.rules)
        self._seen.add(target)
        return _found(root, path, folder.below(name), target)

    def _listed(self, folder: _Folder, problems: list[Finding]) -> tuple[_Folder, list[os.DirEntry[str]]]:
        """The folder with its own ignore files added, and its entries by name.

        An unreadable folder has no entries and is a finding.
        """
        try:
            with os.scandir(folder.path or ".") as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            problems.append(_unreadable(folder.path or ".", error))
            return folder, []
        names = {entry.name for entry in entries}
        if names.isdisjoint((".gitignore", ".gmemignore")):
            return folder, entries
        gits, ours = (
            _patterns(os.path.join(folder.path, name), problems) if name in names else Patterns(())
            for name in (".gitignore", ".gmemignore")
        )
        depth = len(folder.rel) + 1 if folder.rel else 0
        rules = (*folder.rules, (depth, gits, ours))
        return _Folder(folder.path, folder.rel, folder.real, rules), entries

    # ---- what is left out --------------------------------------------------------------------------

    def _wanted(self, folder: _Folder, entry: os.DirEntry[str], is_folder: bool) -> bool:
        if entry.name == EXPORT_MARKER and not is_folder:
            return False
        if self._ignores(folder, entry.name, is_folder):
            self._count(is_folder)
            return False
        if is_folder:
            return True
        if self._suffixes is None:
            self._suffixes = known_suffixes()
        if entry.name.lower().endswith(self._suffixes) and not _is_special(entry):
            return True
        self.other_files += 1
        return False

    def _count(self, is_folder: bool) -> None:
        self.ignored_folders += is_folder
        self.ignored_files += not is_folder

    def _ignores(self, folder: _Folder, name: str, is_folder: bool) -> bool:
        """Whether an entry is left out: `.gmemignore` decides first, then our own rules, then Git's."""
        if name in _ALWAYS_IGNORED:
            return True
        path = folder.below(name)
        for depth, _, ours in reversed(folder.rules):
            verdict = ours.ignores(path[depth:], is_folder)
            if verdict is not None:
                return verdict
        if name.startswith(".") or _LEFTOVER.fullmatch(name) or (is_folder and _is_dump(folder, name)):
            return True
        for depth, gits, _ in reversed(folder.rules):
            verdict = gits.ignores(path[depth:], is_folder)
            if verdict is not None:
                return verdict
        return False


def _patterns(path: str, problems: list[Finding]) -> Patterns:
    try:
        with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="\n") as file:
            return Patterns(file)
    except IsADirectoryError:
        return Patterns(())
    except OSError as error:
        problems.append(_unreadable(path, error))
        return Patterns(())


def _is_dump(folder: _Folder, name: str) -> bool:
    """Whether a folder holds other people's packages or Logseq's old copies."""
    return name == "node_modules" or (name == "bak" and os.path.basename(folder.real) == "logseq")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_link(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a symbolic link, or a junction on Windows."""
    if entry.is_symlink():
        return True
    if os.name != "nt":
        return False
    tag = getattr(entry.stat(follow_symlinks=False), "st_reparse_tag", 0)
    return bool(tag == getattr(stat, "IO_REPARSE_TAG_MOUNT_POINT", -1))


def _is_special(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a pipe, socket or device, which would block the run; a broken link is not."""
    try:
        mode = entry.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode)


def _is_inside(path: str, folder: str) -> bool:
    """Whether a real path is a real folder or lies below it."""
    path, folder = os.path.normcase(path), os.path.normcase(folder)
    return path == folder or path.startswith(os.path.join(folder, ""))


def _printable(path: str) -> str:
    """The path with bytes that are no text in hexadecimal, so that it can be printed and stored."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _label(path: str) -> str:
    return _printable(Path(path).as_posix())


def _unreadable(path: str, error: OSError) -> Finding:
    return finding("file-unreadable", f"cannot be read: {error.strerror or error}", file=_label(path))


def _named(path: str) -> Found:
    if path == STDIN:
        return Found(None, None, "", STDIN_LABEL)
    return Found(Path(path), None, _printable(os.path.basename(path)), _label(path))


def _found(root: Path, path: str, name: str, real: str) -> Found:
    return Found(Path(path), root, _printable(name), _label(path), real)
