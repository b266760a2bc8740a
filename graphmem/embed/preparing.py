"""The first use of a model: find or download it, compile it, and remember where the copy is."""

from __future__ import annotations

from pathlib import Path

from graphmem.embed import compiling, copies, original, placing, sources
from graphmem.embed.batching import Engine
from graphmem.embed.config import EmbeddingConfig
from graphmem.embed.contract import Say
from graphmem.embed.copies import Copy
from graphmem.embed.sources import ModelSource


def prepare(config: EmbeddingConfig, source: ModelSource, say: Say) -> tuple[Copy, Engine | None]:
    """The copy that belongs to a model as it is now, made if need be, and the engine if it is loaded.

    Raises `ModelUnavailable` when the model cannot be found or loaded, or the copy cannot be written.
    """
    try:
        files = sources.find(source, config)
    except ImportError as error:
        raise sources.unavailable(source, error) from error
    if files is not None:
        digest, place = _filed(config, source, files.folder)
        ready = copies.read(place)
        if ready is not None:
            placing.link(config.models, source, ready)
            return ready, None
    say(f"preparing the embedding model '{source.name}' for its first use")
    loaded = original.load(source, config)
    digest, place = _filed(config, source, loaded.files.folder)
    copy = placing.make(place, lambda making: compiling.fill(making, source, loaded, digest))
    placing.link(config.models, source, copy)
    if not copy.sheet.refused:
        return copy, None
    say(
        f"the embedding model '{source.name}' cannot be compiled ({copy.sheet.refused}): "
        "sentence-transformers serves it, which takes some seconds at each start"
    )
    return copy, original.OriginalEngine(loaded, copy.sheet)


def open_original(config: EmbeddingConfig, source: ModelSource, copy: Copy) -> Engine:
    """The engine of a model that is served by sentence-transformers."""
    return original.OriginalEngine(original.load(source, config), copy.sheet)


def _filed(config: EmbeddingConfig, source: ModelSource, folder: Path) -> tuple[str, Path]:
    """The digest of a model's weights, and the place of its copy."""
    weights = sources.weights_digest(folder)
    return weights, placing.copy_folder(config.models, source, weights, sources.settings_digest(folder))
