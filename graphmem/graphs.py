"""Graphs: the stores that lie in one folder, each by its name."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from graphmem.errors import GraphmemError, StoreNotFound, UsageError
from graphmem.store import Store, is_there
from graphmem.store.files import remove_store
from graphmem.store.status import read_status

SUFFIX: Final = ".db"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph: its name and file, what it holds, and whether it is the one in use."""

    name: str
    path: Path
    current: bool = False
    bytes: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    problem: str = ""
    """Why it cannot be read."""

    def as_dict(self) -> dict[str, Any]:
        """The graph as it stands in JSON."""
        return {
            "name": self.name, "path": str(self.path), "current": self.current, "bytes": self.bytes,
            **self.counts, "problem": self.problem or None,
        }  # fmt: skip


def graphs(folder: Path, current: Path) -> list[Graph]:
    """The graphs in a folder by name; files of other programs are none. Nothing is changed."""
    found = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        if _NAME.match(path.stem) and path.is_file():
            one = _read(path, current=path == current)
            if one is not None:
                found.append(one)
    return found


def create(folder: Path, name: str) -> Path:
    """Makes an empty graph; its file. Raises `UsageError` when there is something of that name."""
    path = _path(folder, name)
    if is_there(path):
        raise UsageError(f"there is '{path}' already", "choose another name")
    Store(path, write=True).close()
    return path


def delete(folder: Path, name: str, *, really: bool) -> Graph:
    """Removes a graph's files, when that is really wanted; what it held.

    Raises `StoreNotFound`, `StoreForeign` for a file that is no store, and `StoreBusy` while another process
    has it open.
    """
    path = _path(folder, name)
    if not is_there(path):
        raise StoreNotFound(f"there is no graph '{name}'", "'gmem graphs' lists them")
    with Store(path) as store, store.errors(), store.reading():
        held = Graph(name, path, counts=_counts(store), bytes=path.stat().st_size)
    if really:
        remove_store(path)
    return held


def _path(folder: Path, name: str) -> Path:
    if not _NAME.match(name):
        raise UsageError(
            f"'{name}' is not a name for a graph", "use 1 to 64 ASCII letters, digits, '_' and '-'"
        )
    return folder / f"{name}{SUFFIX}"


def _read(path: Path, *, current: bool) -> Graph | None:
    from graphmem.errors import StoreForeign

    size = path.stat().st_size
    try:
        with Store(path) as store, store.errors(), store.reading():
            return Graph(path.stem, path, current, size, _counts(store))
    except StoreForeign:
        return None
    except GraphmemError as error:
        return Graph(path.stem, path, current, size, problem=error.message)


def _counts(store: Store) -> dict[str, int]:
    found = read_status(store.db)
    return {"memories": found.memories, "entities": found.entities, "relations": found.relations}
