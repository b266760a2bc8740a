"""A bar on stderr for long runs; none of it where stderr is not a terminal."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from graphmem.cli._shared import note

if TYPE_CHECKING:
    from graphmem.ingest import Progress

_WORDS: Final = {"read": "reading", "encode": "encoding", "store": "storing"}
_UNITS: Final = {"read": " records", "encode": " texts", "store": " records"}


class Bar:
    """The progress of a run, stage after stage. Use it as a context manager."""

    def __init__(self, *, wanted: bool) -> None:
        self._shown = wanted and sys.stderr is not None and sys.stderr.isatty()
        self._stage = ""
        self._bar: Any = None

    @property
    def told(self) -> Progress | None:
        """What the core tells its progress to; `None` where nobody would see it."""
        return self._tell if self._shown else None

    def __enter__(self) -> Self:
        """The bar itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the bar from the screen."""
        self._end()

    def say(self, text: str) -> None:
        """Tells a person something without tearing the bar."""
        if self._bar is not None:
            self._bar.clear()
        note(text)

    def _tell(self, stage: str, done: int, of: int | None) -> None:
        if stage != self._stage or done < self._bar.n or of != self._bar.total:
            self._end()
            from tqdm import tqdm

            self._stage = stage
            self._bar = tqdm(
                total=of,
                desc=_WORDS[stage],
                unit=_UNITS[stage],
                file=sys.stderr,
                leave=False,
                mininterval=0.2,
            )
        self._bar.update(done - self._bar.n)

    def _end(self) -> None:
        if self._bar is not None:
            self._bar.close()
        self._bar, self._stage = None, ""
