"""Where the server logs: stderr, and `$GRAPHMEM_HOME/logs/mcp.log` (1 MB, one older file is kept).

What is remembered or asked is never logged, only which call it was and how it ended.
"""

from __future__ import annotations

import logging
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from graphmem import private
from graphmem.errors import GraphmemError

LOG: Final = logging.getLogger("graphmem.mcp")

_MAX_LOG: Final = 1_000_000
_FORM: Final = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"


def start(home: Path) -> Path | None:
    """Sends warnings of every library, and what the server tells of itself, to both; the file, if that works."""
    handlers: list[logging.Handler] = []
    if sys.stderr is not None:
        told = logging.StreamHandler(sys.stderr)
        told.setLevel(logging.WARNING)
        handlers.append(told)
    path: Path | None = home / "logs" / "mcp.log"
    try:
        private.make_folder(home / "logs")
        private.create_file(home / "logs" / "mcp.log")
        kept = RotatingFileHandler(
            home / "logs" / "mcp.log", maxBytes=_MAX_LOG, backupCount=1, encoding="utf-8",
            errors="backslashreplace",
        )  # fmt: skip
        handlers.append(kept)
    except (OSError, GraphmemError):
        path = None
    logging.basicConfig(level=logging.WARNING, handlers=handlers, format=_FORM, force=True)
    logging.raiseExceptions = False  # a full disk must not fill stderr
    LOG.setLevel(logging.INFO)
    return path
