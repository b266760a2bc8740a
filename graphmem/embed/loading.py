"""From configuration to encoder: what is there, what has to be made first, and what serves."""

from __future__ import annotations

from collections.abc import Sequence
from threading import RLock
from typing import Final

from graphmem.embed import batching, compiled, copies, runtime, sources
from graphmem.embed.chunking import Tokenise, character_spans, cut, surely_fits
from graphmem.embed.config import SWITCH_VARIABLE, EmbeddingConfig
from graphmem.embed.contract import Availability, Chunk, EncoderInfo, Progress, Role, Say
from graphmem.embed.copies import Copy
from graphmem.embed.sources import ModelSource
from graphmem.errors import EncoderError, GraphmemError, ModelUnavailable

_EXTRA_HINT: Final = (
    f"install it with pip install 'graphmem[embeddings]', or set {SWITCH_VARIABLE}=off to say so on purpose"
)


def log(message: str) -> None:
    """Pass a sentence on as a warning of the logger `graphmem.embed`."""
    import logging

    logging.getLogger("graphmem.embed").warning(message)


def load(config: EmbeddingConfig, say: Say = log) -> Availability:
    """The configured encoder, or why there is none: embeddings are off, or the extra is not installed.

    The model itself is loaded, and at its very first use downloaded and compiled, when the encoder is
    first asked for something that needs it. Raises `ModelUnavailable` when the configured folder does not
    exist; the encoder raises it when the model cannot be loaded.
    """
    if not config.enabled:
        return Availability(None, f"embeddings are off ({SWITCH_VARIABLE}=off): search is lexical only")
    source = sources.locate(config.model)
    copy = copies.find(config.models, source)
    compiled_serves = copy is not None and not copy.sheet.refused and runtime.compiled_runs()
    if not compiled_serves and not runtime.original_runs():
        why = "the 'embeddings' extra is not installed: search is lexical only"
        return Availability(None, why, _EXTRA_HINT)
    return Availability(ModelEncoder(config, source, copy, say))


class ModelEncoder:
    """The encoder of a configured model; safe to use from several threads."""

    def __init__(self, config: EmbeddingConfig, source: ModelSource, copy: Copy | None, say: Say) -> None:
        self._config = config
        self._source = source
        self._say = say
        self._lock = RLock()
        self._known = copy
        self._engine: batching.Engine | None = None
        self._tokenise: Tokenise | None = None

    @property
    def info(self) -> EncoderInfo:
        """Which encoder this is; read from the compiled copy, which is made first when there is none."""
        return self._copy().sheet.info

    def chunks(self, text: str) -> list[Chunk]:
        """The overlapping pieces that together hold every character, each read whole by the model."""
        capacity = self._copy().sheet.capacity
        if capacity is None or surely_fits(text, capacity):
            return [Chunk(0, len(text))]
        return cut(_encodable(text), self._tokeniser(), capacity)

    def encode(self, texts: Sequence[str], role: Role, progress: Progress | None = None) -> list[bytes]:
        """One normalised vector for each text, in their order; equal texts are encoded once."""
        if not texts:
            return []
        engine = self._loaded()
        try:
            return batching.encode(engine, [_encodable(text) for text in texts], role, progress)
        except GraphmemError:
            raise
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise EncoderError(f"the embedding model '{self._source.name}' failed: {why}") from error

    def _copy(self) -> Copy:
        with self._lock:
            if self._known is None:
                # Only the first use of a model needs this, and what it imports costs every other start.
                from graphmem.embed.preparing import prepare

                self._known, self._engine = prepare(self._config, self._source, self._say)
            return self._known

    def _loaded(self) -> batching.Engine:
        with self._lock:
            copy = self._copy()
            if self._engine is None:
                self._engine = self._open(copy)
            return self._engine

    def _open(self, copy: Copy) -> batching.Engine:
        if copy.sheet.refused or not runtime.compiled_runs():
            from graphmem.embed.preparing import open_original

            return open_original(self._config, self._source, copy)
        try:
            return compiled.open_copy(copy)
        except ImportError as error:
            raise sources.unavailable(self._source, error) from error
        except compiled.CopyDamagedError as damage:
            return self._mend(copy, damage)

    def _mend(self, copy: Copy, damage: compiled.CopyDamagedError) -> batching.Engine:
        """Make a damaged copy again; what is still wrong then is an error."""
        self._say(f"the compiled model in '{copy.folder.name}' is damaged and is made again")
        if not runtime.original_runs():
            raise ModelUnavailable(
                f"the compiled model in '{copy.folder.name}' is damaged: {damage}", _EXTRA_HINT
            ) from damage
        copies.discard(copy)
        self._known = self._engine = self._tokenise = None
        again = self._copy()
        if self._engine is not None:
            return self._engine
        try:
            return compiled.open_copy(again)
        except compiled.CopyDamagedError as still:
            raise sources.unavailable(self._source, still) from still

    def _tokeniser(self) -> Tokenise:
        with self._lock:
            if self._tokenise is None:
                copy = self._copy()
                try:
                    self._tokenise = _tokenise_with(copy)
                except compiled.CopyDamagedError as damage:
                    self._engine = self._mend(copy, damage)
                    self._tokenise = _tokenise_with(self._copy())
            return self._tokenise


def _tokenise_with(copy: Copy) -> Tokenise:
    """The spans of the copy's own tokeniser, so that a model is cut alike whatever serves it."""
    if copies.TOKENIZER not in copy.sheet.files:
        return character_spans
    tokenizer = compiled.open_tokenizer(copy)
    return lambda text: list(tokenizer.encode(text, add_special_tokens=False).offsets)


def _encodable(text: str) -> str:
    """The text, with lone surrogates, which no tokeniser reads, replaced one for one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)
    return text
