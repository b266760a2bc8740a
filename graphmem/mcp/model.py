"""The embedding model of a server: loaded once, in the background, while calls go on without it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from threading import Event, Lock, Thread

from graphmem.embed import Availability, Encoder, from_environ, load
from graphmem.errors import EncoderError, GraphmemError
from graphmem.mcp.logs import LOG

LOADING = "the embedding model is still being loaded"

# Libraries of models draw progress bars and start threads of their own unless told otherwise.
_QUIET = {
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
}


def configured(home: Path) -> Availability:
    """The encoder that the environment asks for, or why there is none; raises as `graphmem.embed.load`."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    return load(from_environ(os.environ, home), LOG.warning)


class Model:
    """An encoder that comes later; safe to use from several threads."""

    def __init__(self, find: Callable[[], Availability]) -> None:
        self._find = find
        self._lock = Lock()
        self._done = Event()
        self._thread: Thread | None = None
        self._found = Availability(None, LOADING, "ask again in a moment")
        self._error: GraphmemError | None = None

    def start(self) -> None:
        """Begins to load, unless that was begun."""
        with self._lock:
            if self._thread is None:
                self._thread = Thread(target=self._load, name="gmem-model", daemon=True)
                self._thread.start()

    @property
    def loading(self) -> bool:
        """Whether it was begun and is not done."""
        return self._thread is not None and not self._done.is_set()

    @property
    def started(self) -> bool:
        """Whether loading was begun."""
        return self._thread is not None

    def now(self) -> Availability:
        """The encoder if it is there, else why it is not. Raises the `EncoderError` of a failed load."""
        self.start()
        if self._error is not None:
            raise self._error
        return self._found

    def wait(self) -> Encoder | None:
        """The encoder once it is there, `None` where there is none by choice. Raises as `now`."""
        self.start()
        self._done.wait()
        return self.now().encoder

    def settle(self) -> None:
        """Waits until loading has ended, one way or the other."""
        self._done.wait()

    def _load(self) -> None:
        try:
            found = self._find()
            if found.encoder is not None:
                found.encoder.encode(["ready"], "query")
            self._found = found
        except GraphmemError as error:
            self._fail(error)
        except Exception as error:
            LOG.exception("the embedding model cannot be loaded")
            self._fail(EncoderError(f"the embedding model cannot be loaded: {type(error).__name__}: {error}"))
        finally:
            self._done.set()

    def _fail(self, error: GraphmemError) -> None:
        LOG.warning("%s", error.message)
        self._error = error
