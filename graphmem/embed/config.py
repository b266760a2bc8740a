"""Which embedding model is wanted, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from graphmem.config import encoder_wanted

MODEL_VARIABLE: Final = "GRAPHMEM_EMBEDDING_MODEL"
SWITCH_VARIABLE: Final = "GRAPHMEM_EMBEDDINGS"


@dataclass(frozen=True, slots=True)
class EmbeddingConfig:
    """The wanted model (hub id or folder), whether embeddings are on, and where graphmem keeps its files.

    `hub_cache` is the folder where sentence-transformers keeps downloads, `None` for its own default.
    """

    model: str
    enabled: bool
    home: Path
    hub_cache: Path | None = None

    @property
    def models(self) -> Path:
        """The folder of the compiled copies."""
        return self.home / "models"


def from_environ(environ: Mapping[str, str], home: Path) -> EmbeddingConfig:
    """What the environment asks for. Raises `UsageError` when the switch is neither on nor off."""
    enabled, model = encoder_wanted(environ)
    cache = environ.get("SENTENCE_TRANSFORMERS_HOME", "")
    return EmbeddingConfig(model, enabled, home, Path(cache) if cache else None)
