"""Records put aside while an export decides where they go: the text on disk, numbers in memory."""

from __future__ import annotations

import json
import tempfile
from array import array
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Final

_IN_MEMORY: Final = 8 * 1024 * 1024
NOWHERE: Final = -1


class Spool:
    """Records in arrival order, each with the number of the page it belongs to.

    Use it as a context manager; its temporary file is gone afterwards.
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 (closed in __exit__)
        self._offsets = array("Q")
        self._pages = array("q")
        self._end = 0

    def __enter__(self) -> Spool:
        """The spool itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the temporary file."""
        self._file.close()

    def __len__(self) -> int:
        """How many records were put aside."""
        return len(self._offsets)

    def put(self, record: dict[str, Any], page: int) -> None:
        """Put a record aside for a page."""
        line = json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass")
        self._file.seek(self._end)
        self._file.write(line)
        self._offsets.append(self._end)
        self._pages.append(page)
        self._end += len(line)

    def page(self, number: int) -> int:
        """The page of a record, by its number in arrival order."""
        return self._pages[number]

    def move(self, number: int, page: int) -> None:
        """Give a record to another page."""
        self._pages[number] = page

    def get(self, number: int) -> dict[str, Any]:
        """A record, by its number in arrival order."""
        last = number + 1 == len(self._offsets)
        end = self._end if last else self._offsets[number + 1]
        self._file.seek(self._offsets[number])
        line = self._file.read(end - self._offsets[number])
        record: dict[str, Any] = json.loads(line.decode("utf-8", "surrogatepass"))
        return record

    def by_page(self) -> Iterator[tuple[int, list[int]]]:
        """The pages in order of their number, each with the numbers of its records in arrival order."""
        order = sorted(range(len(self._pages)), key=self._pages.__getitem__)
        held: list[int] = []
        for number in order:
            if held and self._pages[number] != self._pages[held[0]]:
                yield self._pages[held[0]], held
                held = []
            held.append(number)
        if held:
            yield self._pages[held[0]], held
