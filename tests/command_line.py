"""Running the command line in tests: in this process, or as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple


class Done(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What stdout holds, which is one JSON value."""
        return json.loads(self.out)


Run = Callable[..., Done]


def process(
    *args: str, stdin: bytes = b"", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own."""
    command = (sys.executable, "-m", "graphmem", *args)
    return subprocess.run(command, input=stdin, capture_output=True, check=False, env=env, timeout=120)


def as_root(action: Callable[[], object]) -> None:
    """Does something with the rights that we had."""
    dropped = os.getuid() == 0 and os.geteuid() != 0
    if dropped:
        os.seteuid(0)
    try:
        action()
    finally:
        if dropped:
            os.seteuid(65534)
