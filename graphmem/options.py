"""What a caller asks of an import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from graphmem.commit import Choices
from graphmem.records import GLOBAL_SCOPE

if TYPE_CHECKING:
    from graphmem.findings import Finding
    from graphmem.walk import Found

DEFAULT_BATCH_SIZE: Final = 10_000


@dataclass(frozen=True, slots=True)
class Given:
    """Records that are handed over as values in place of a file: §4 records as mappings, or short triples."""

    values: Sequence[Any]
    uri: str
    label: str = "record"
    """What findings call them; the number of the value stands for the line."""


@dataclass(frozen=True, slots=True)
class Follow:
    """What a sync asks of a run: only some files are read, and what files no longer say is withdrawn.

    `inputs` are the files to read and findings of the walk, `siblings` the names of all files by folder,
    `renamed` the origins of files by their new address, `removed` the origins of files that are gone,
    `allowed` how many items may be archived.
    """

    inputs: Sequence[Found | Finding]
    siblings: Mapping[Path | None, frozenset[str]]
    renamed: Mapping[str, int]
    removed: Sequence[int]
    allowed: int


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What the caller asks of an import."""

    paths: Sequence[str] = ()
    format: str | None = None
    encoding: str | None = None
    scope: str = GLOBAL_SCOPE
    map_scope: Mapping[str, str] = field(default_factory=dict)
    choices: Choices = field(default_factory=Choices)
    strict: bool = False
    atomic: bool = False
    batch_size: int = DEFAULT_BATCH_SIZE
    max_errors: int | None = None
    mentions: bool = True
    command: str = "import"
    clock: str | None = None
    follow: Follow | None = None
    given: Given | None = None
    """Records to be read instead of, or after, the paths."""
    actor: str | None = None
    """Who asks, as the log says it."""
    history: bool = True
    """Whether it is kept what each batch changes, so that it can be taken back."""
