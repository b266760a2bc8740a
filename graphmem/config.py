"""Where the store is and which encoder is wanted: options and environment, read once.

The order is `--db`, then `GRAPHMEM_DB`, then the nearest `.graphmem/` upwards that `gmem init` made,
then `$GRAPHMEM_HOME`, which is `~/.graphmem` unless set.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from graphmem import git, private
from graphmem.errors import StoreError, StoreUntrusted, UsageError

Via: TypeAlias = Literal["option", "environment", "folder", "home"]

FOLDER_NAME: Final = ".graphmem"
MARKER_NAME: Final = "graphmem.json"
STORE_NAME: Final = "memory.db"
DEFAULT_MODEL: Final = "sentence-transformers/all-MiniLM-L6-v2"

_MARKER: Final = b'{"format":"graphmem"}\n'
_MAX_MARKER = 4096
_GRAPH_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_SWITCH: Final = {
    **dict.fromkeys(("", "on", "1", "true", "yes"), True),
    **dict.fromkeys(("off", "0", "false", "no"), False),
}


class Config(NamedTuple):
    """What a command was told by its options and its environment."""

    home: Path
    """The folder of the user's own files: the default store, models, logs, trust."""
    store: Path
    """The absolute path of the store, which need not exist."""
    via: Via
    """What decided where the store is."""
    graph: str | None
    """The name of the graph, `None` for the one that is called `memory`."""
    embeddings: bool
    """Whether vectors are wanted at all."""
    embedding_model: str
    """A model's hub id or folder."""


def locate(
    db: str | os.PathLike[str] | None, graph: str | None, environ: Mapping[str, str], cwd: Path
) -> Config:
    """The configuration for the options `--db` and `--graph`; empty variables count as not set.

    Raises `UsageError` for values that cannot be used and `StoreUntrusted` when the nearest store
    came with a repository (or from another user) and was never trusted here.
    """
    home = home_folder(environ, cwd)
    graph = graph if graph is not None else environ.get("GRAPHMEM_GRAPH") or None
    if graph is not None and not _GRAPH_NAME.match(graph):
        raise UsageError(
            f"'{graph}' is not a name for a graph", "use 1 to 64 ASCII letters, digits, '_' and '-'"
        )
    if db is not None:
        via: Via = "option"
        store = _store_at(os.fspath(db), environ, cwd, "--db")
    elif environ.get("GRAPHMEM_DB"):
        via = "environment"
        store = _store_at(environ["GRAPHMEM_DB"], environ, cwd, "GRAPHMEM_DB")
    elif (folder := nearest_folder(cwd, environ, cwd)) is not None:
        via = "folder"
        check_trust(folder, environ, cwd)
        store = folder / STORE_NAME
    else:
        via = "home"
        store = home / STORE_NAME
    if graph is not None:
        store = store.with_name(f"{graph}.db")
    return Config(home, store, via, graph, *encoder_wanted(environ))


def encoder_wanted(environ: Mapping[str, str]) -> tuple[bool, str]:
    """Whether vectors are wanted, and by which model. Raises `UsageError` for an unknown switch."""
    switch = environ.get("GRAPHMEM_EMBEDDINGS", "").strip().lower()
    if switch not in _SWITCH:
        raise UsageError(f"GRAPHMEM_EMBEDDINGS is '{switch}'", "set it to 'on' or 'off'")
    return _SWITCH[switch], environ.get("GRAPHMEM_EMBEDDING_MODEL", "").strip() or DEFAULT_MODEL


def home_folder(environ: Mapping[str, str], cwd: Path) -> Path:
    """The folder of the user's own files. Raises `UsageError` when there is no home to be found."""
    named = environ.get("GRAPHMEM_HOME")
    return _absolute(named, environ, cwd) if named else _user_home(environ) / FOLDER_NAME


def nearest_folder(start: Path, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """The nearest `.graphmem/` from a folder upwards that `gmem init` made; the home ones never count."""
    homes = _homes(environ, cwd)
    top = Path(os.path.realpath(start))
    for here in (top, *top.parents):
        folder = here / FOLDER_NAME
        if is_marked(folder) and os.path.realpath(folder) not in homes:
            return folder
    return None


def is_marked(folder: Path) -> bool:
    """Whether a folder was made by `gmem init`: other tools use the same name for theirs."""
    try:
        with (folder / MARKER_NAME).open("rb") as stream:
            marker = json.loads(stream.read(_MAX_MARKER))
    except (OSError, ValueError):
        return False
    return isinstance(marker, dict) and marker.get("format") == "graphmem"


def init(folder: Path, environ: Mapping[str, str], cwd: Path) -> tuple[Path, bool]:
    """Make the `.graphmem/` of a folder; its path, and whether it was made now.

    It ignores itself for Git, so that memories are not committed by accident. Raises `UsageError`
    where the folder is the user's home or another program's files are in the way.
    """
    top = Path(os.path.realpath(folder))
    made = top / FOLDER_NAME
    if os.path.realpath(made) in _homes(environ, cwd):
        raise UsageError(
            f"'{made}' is your own default store and needs no init",
            "run 'gmem init' in the folder of a project",
        )
    if is_marked(made):
        return made, False
    if made.is_dir():
        strangers = sorted(one.name for one in made.iterdir() if one.name != ".gitignore")
        if strangers:
            raise UsageError(
                f"'{made}' holds another program's files: {', '.join(strangers[:5])}",
                "move them away, or name a store elsewhere with --db",
            )
    private.make_folder(made)
    private.create_file(made / ".gitignore", b"*\n")
    private.create_file(made / MARKER_NAME, _MARKER)
    return made, True


def trust(folder: Path, environ: Mapping[str, str], cwd: Path) -> tuple[Path, bool]:
    """Trust the nearest `.graphmem/` upwards from a folder; its path, and whether that is new.

    Raises `UsageError` when there is none.
    """
    found = nearest_folder(folder, environ, cwd)
    if found is None:
        raise UsageError(
            f"there is no {FOLDER_NAME}/ made by gmem in '{folder}' or above", "make one with 'gmem init'"
        )
    record = _trust_record(environ, cwd)
    paths = _trusted(record)
    path = os.path.realpath(found)
    if path in paths:
        return found, False
    private.make_folder(record.parent)
    content = json.dumps({"format": "graphmem-trust", "paths": sorted({*paths, path})}, indent=1)
    private.replace_file(record, content.encode() + b"\n")
    return found, True


def check_trust(folder: Path, environ: Mapping[str, str], cwd: Path) -> None:
    """Raise `StoreUntrusted` when a found `.graphmem/` must not be used before `gmem trust`.

    That is one whose files Git tracks, so that a clone never brings memories along unseen, and one
    that belongs to another user.
    """
    if os.path.realpath(folder) in _trusted(_trust_record(environ, cwd)):
        return
    if _is_foreign(folder):
        why = "belongs to another user"
    elif git.may_track(folder, environ):
        why = "came with the Git repository"
    else:
        return
    raise StoreUntrusted(
        f"'{folder}' {why} and was never trusted on this machine",
        f"look at what is in it, then run 'gmem trust \"{folder.parent}\"'; or name a store with --db",
    )


def _is_foreign(folder: Path) -> bool:
    return os.name == "posix" and folder.stat().st_uid != os.geteuid()


def _trust_record(environ: Mapping[str, str], cwd: Path) -> Path:
    return home_folder(environ, cwd) / "trusted.json"


def _trusted(record: Path) -> list[str]:
    try:
        paths = json.loads(record.read_bytes())["paths"]
        if isinstance(paths, list):
            return [path for path in paths if isinstance(path, str)]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, LookupError, TypeError):
        pass
    raise StoreError(f"'{record}' cannot be read", "repair or remove it, and trust the folders again")


def _homes(environ: Mapping[str, str], cwd: Path) -> set[str]:
    """The folder in use as home, and the default one, which stays a home while another is in use."""
    homes = [home_folder(environ, cwd)]
    with contextlib.suppress(UsageError):
        homes.append(_user_home(environ) / FOLDER_NAME)
    return {os.path.realpath(one) for one in homes}


def _store_at(text: str, environ: Mapping[str, str], cwd: Path, name: str) -> Path:
    if not text.strip():
        raise UsageError(f"{name} is empty", "name a file, or a folder that holds 'memory.db'")
    path = _absolute(text, environ, cwd)
    # Unlike `Path.is_dir` this never raises: that a store cannot be reached is told when it is opened.
    is_folder = os.path.isdir(path)  # noqa: PTH112
    is_folder = is_folder or text.endswith(tuple(filter(None, (os.sep, os.altsep))))
    return path / STORE_NAME if is_folder else path


def _absolute(text: str, environ: Mapping[str, str], cwd: Path) -> Path:
    # Variables often come from files where no shell expands '~'.
    if text == "~" or text.startswith(("~/", "~\\")):
        return Path(os.path.normpath(_user_home(environ) / text[2:]))
    return Path(os.path.normpath(cwd / text))


def _user_home(environ: Mapping[str, str]) -> Path:
    named = environ.get("USERPROFILE" if os.name == "nt" else "HOME")
    home = Path(named or os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises where this does not
    if not home.is_absolute():
        raise UsageError("there is no home folder", "set GRAPHMEM_HOME to a folder for graphmem's files")
    return home
