"""sentence-transformers: loading a model, asking what it is made of, and encoding with it directly."""

from __future__ import annotations

import importlib
import io
import logging
import math
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Any, Final

from graphmem.embed.batching import BATCH, Reading
from graphmem.embed.config import EmbeddingConfig
from graphmem.embed.contract import Role
from graphmem.embed.copies import Sheet
from graphmem.embed.sources import ModelFiles, ModelSource, cached, find, unavailable
from graphmem.errors import ModelUnavailable

_PROMPT_NAMES: Final[dict[Role, tuple[str, ...]]] = {
    "query": ("query",),
    "document": ("document", "passage", "corpus"),
}
_ANSWER_SECONDS: Final = 15
_CHATTY: Final = ("sentence_transformers", "transformers", "torch", "huggingface_hub", "onnxruntime")


@dataclass(frozen=True, slots=True)
class Original:
    """A model as sentence-transformers loaded it, and the files it came from."""

    model: Any
    files: ModelFiles

    @property
    def max_length(self) -> int | None:
        """How many tokens the model reads, special ones included; `None` when it reads any number."""
        length = self.model.max_seq_length
        return None if length is None or math.isinf(length) or length > 2**20 else int(length)

    @property
    def dimension(self) -> int:
        """How many floats a vector has."""
        return len(self.encode([""], "")[0])

    @property
    def prompts(self) -> dict[str, str]:
        """What goes before a text of each role: the role's own prompt, else the model's default, else ""."""
        named = self.model.prompts
        default = named.get(self.model.default_prompt_name) or ""
        return {
            role: next((named[name] or "" for name in names if name in named), default)
            for role, names in _PROMPT_NAMES.items()
        }

    @property
    def tokenizer(self) -> Any:
        """The model's fast tokeniser, a `tokenizers.Tokenizer`, or `None` if it has none."""
        tokenizer = getattr(self.model, "tokenizer", None)
        tokenizer = getattr(tokenizer, "backend_tokenizer", tokenizer)
        return tokenizer if hasattr(tokenizer, "encode_batch_fast") else None

    def encode(self, texts: Sequence[str], prompt: str) -> Any:
        """The normalised vectors, one row for each text."""
        return self.model.encode(
            list(texts),
            prompt=prompt,
            batch_size=BATCH,
            show_progress_bar=False,
            convert_to_numpy=True,
            normalize_embeddings=True,
        )


class OriginalEngine:
    """Encodes with sentence-transformers, for a model that cannot be compiled."""

    def __init__(self, original: Original, sheet: Sheet) -> None:
        self._original = original
        self._sheet = sheet

    def read(self, texts: Sequence[str], role: Role) -> list[Reading]:
        """The texts themselves: the model tokenises, and characters are measure enough to sort by."""
        prompt = self._sheet.prompt(role)
        return [Reading(len(text), (text, prompt)) for text in texts]

    def run(self, batch: Sequence[Reading]) -> list[bytes]:
        """One vector for each text; all of a batch have the same role."""
        texts = [reading.content[0] for reading in batch]
        rows = self._original.encode(texts, batch[0].content[1])
        return [row.astype("<f4").tobytes() for row in rows]


def load(source: ModelSource, config: EmbeddingConfig) -> Original:
    """The model, from this machine if it is there, else downloaded.

    Raises `ModelUnavailable` when it can be neither found nor loaded.
    """
    try:
        with quiet():
            return _load(source, config)
    except (ImportError, OSError) as error:  # the libraries themselves
        raise unavailable(source, error) from error


def _load(source: ModelSource, config: EmbeddingConfig) -> Original:
    files = find(source, config)
    if files is None:
        return _download(source, config)
    try:
        return Original(_sentence_transformer(str(files.folder), config, local=True), files)
    except Exception as error:
        if not files.revision:
            raise unavailable(source, error) from error
        # What the cache holds may be an interrupted download.
        try:
            return _download(source, config)
        except ModelUnavailable:
            raise unavailable(source, error) from error


def _download(source: ModelSource, config: EmbeddingConfig) -> Original:
    from huggingface_hub import model_info

    try:
        # Without a network sentence-transformers tries again and again for more than a minute.
        model_info(source.name, timeout=_ANSWER_SECONDS)
        model = _sentence_transformer(source.name, config, local=False)
    except Exception as error:
        raise unavailable(source, error, "is not on this machine and cannot be downloaded") from error
    files = cached(source.name, config.hub_cache)
    if files is None:
        raise unavailable(source, "the download left nothing in the hub's cache")
    return Original(model, files)


def _sentence_transformer(name: str, config: EmbeddingConfig, *, local: bool) -> Any:
    from sentence_transformers import SentenceTransformer

    cache = None if config.hub_cache is None else str(config.hub_cache)
    return SentenceTransformer(name, device="cpu", cache_folder=cache, local_files_only=local)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the libraries' warnings, bars, logs and prints off the screen; their errors still raise."""
    # Read when the hub's library is first imported: no usage data is sent along with a download.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    loggers = [logging.getLogger(name) for name in _CHATTY]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        try:
            # Decides for the process: both libraries know bars only as on or off.
            importlib.import_module("transformers.utils.logging").disable_progress_bar()
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
