"""What there is to encode with, without downloading, compiling or starting anything new."""

from __future__ import annotations

from typing import Literal, NamedTuple

from graphmem.embed import compiled, copies, runtime, sources
from graphmem.embed.config import EmbeddingConfig
from graphmem.embed.contract import EncoderInfo
from graphmem.errors import ModelUnavailable


class EncoderState(NamedTuple):
    """The state of the configured model; `info` where it has been used, `why` where it cannot be."""

    model: str
    state: Literal["off", "missing", "unused", "compiled", "direct", "damaged"]
    info: EncoderInfo | None = None
    why: str = ""


def look(config: EmbeddingConfig) -> EncoderState:
    """Whether embeddings are off, their packages missing, the model never used, compiled, or served directly.

    A compiled copy is tried with its probe.
    """
    if not config.enabled:
        return EncoderState(config.model, "off")
    try:
        source = sources.locate(config.model)
    except ModelUnavailable as error:
        return EncoderState(config.model, "missing", None, error.message)
    copy = copies.find(config.models, source)
    if copy is None or copy.sheet.refused or not runtime.compiled_runs():
        info = None if copy is None else copy.sheet.info
        if not runtime.original_runs():
            return EncoderState(config.model, "missing", info, "the 'embeddings' extra is not installed")
        return EncoderState(config.model, "unused" if copy is None else "direct", info)
    try:
        compiled.open_copy(copy)
    except (compiled.CopyDamagedError, ImportError) as error:
        return EncoderState(config.model, "damaged", copy.sheet.info, str(error))
    return EncoderState(config.model, "compiled", copy.sheet.info)
