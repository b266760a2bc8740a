"""What graphmem asks of Git: which repository a folder lies in, and whether Git tracks a path there.

The first question is answered by reading files, because starting a process costs more than a whole
look-up may; only the second one starts `git`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_TIMEOUT = 10.0
_MAX_POINTER = 65_536


class Repository(NamedTuple):
    """A repository seen from a folder in it: the top of the work tree and the common directory.

    Both are real paths. Linked worktrees differ in `top` and share `common`; in a bare repository
    the two are the same.
    """

    top: Path
    common: Path


def find(folder: Path, *, bare: bool = True) -> Repository | None:
    """The repository that a folder lies in, or `None`; with `bare` false, only one with a work tree.

    A worktree whose repository is out of reach (moved, or not mounted here) still answers, with the
    common directory that its `.git` file names.
    """
    start = Path(os.path.realpath(folder))
    for here in (start, *start.parents):
        # What we may not look into is no repository that we could work in.
        with suppress(PermissionError):
            git_dir = _git_dir_of(here)
            if git_dir is None and bare and _is_git_dir(here):
                git_dir = here
            if git_dir is not None:
                return Repository(here, _common_of(git_dir))
    return None


def _git_dir_of(top: Path) -> Path | None:
    entry = top / ".git"
    if entry.is_file():
        return _pointed_at(entry)
    return entry if _is_git_dir(entry) else None


def _is_git_dir(folder: Path) -> bool:
    return (folder / "HEAD").is_file() and (
        ((folder / "objects").is_dir() and (folder / "refs").is_dir()) or (folder / "commondir").is_file()
    )


def _read_line(file: Path) -> str | None:
    try:
        with file.open("rb") as stream:
            return os.fsdecode(stream.read(_MAX_POINTER)).strip("\r\n")
    except OSError:
        return None


def _pointed_at(file: Path) -> Path | None:
    """The directory that a `.git` file names, which need not exist; `None` when it names none."""
    text = _read_line(file)
    if text is None or not text.startswith("gitdir:"):
        return None
    target = text.removeprefix("gitdir:").strip(" ")
    return Path(os.path.realpath(file.parent / target)) if target and "\0" not in target else None


def _common_of(git_dir: Path) -> Path:
    pointer = _read_line(git_dir / "commondir")
    if pointer and "\0" not in pointer:
        return Path(os.path.realpath(git_dir / pointer))
    if not git_dir.is_dir() and git_dir.parent.name == "worktrees":
        return git_dir.parent.parent
    return Path(os.path.realpath(git_dir))


def may_track(path: Path, environ: Mapping[str, str]) -> bool:
    """Whether Git tracks a path or anything below it; also true when Git cannot be asked.

    Outside every repository the answer is false. The repository's own configuration is not trusted:
    nothing that it names is run.
    """
    folder = Path(os.path.realpath(path.parent))
    # Folders that look like a bare repository can be part of a clone and would hide the real index.
    repository = find(folder, bare=False)
    if repository is None:
        return False
    program = _program(environ)
    if program is None:
        return True
    import subprocess

    command = [
        program,
        *("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}"),
        *("-C", str(folder), "--git-dir", str(repository.top / ".git"), "--work-tree", str(repository.top)),
        *("--no-pager", "ls-files", "-z", "--cached"),
        # On a file system that ignores case, '.Graphmem' in the index is '.graphmem' on disk.
        *("--", f":(icase,literal){path.name}"),
    ]
    clean = {key: value for key, value in environ.items() if not key.startswith("GIT_")}
    clean |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command without a shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_TIMEOUT,
            check=False,
            env=clean,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except (OSError, subprocess.TimeoutExpired):
        return True
    return done.returncode != 0 or bool(done.stdout)


def _program(environ: Mapping[str, str]) -> str | None:
    """The path of `git`, looked for in absolute folders only: never in the folder we stand in."""
    names = ("git.exe",) if os.name == "nt" else ("git",)
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        for name in names:
            candidate = Path(folder, name)
            if candidate.is_absolute() and os.access(candidate, os.X_OK) and candidate.is_file():
                return str(candidate)
    return None
