"""What a caller asks of an import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from graphmem.commit import Choices
from graphmem.records import GLOBAL_SCOPE

DEFAULT_BATCH_SIZE: Final = 10_000


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What the caller asks of an import."""

    paths: Sequence[str]
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
