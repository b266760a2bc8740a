"""Embeddings: texts to vectors, with a model that is compiled once and started fast.

Importing this package imports no model library.
"""

from graphmem.embed.config import EmbeddingConfig, from_environ
from graphmem.embed.contract import (
    Availability,
    Chunk,
    Encoder,
    EncoderInfo,
    Progress,
    Role,
    Say,
    text_digest,
)
from graphmem.embed.loading import load

__all__ = [
    "Availability",
    "Chunk",
    "EmbeddingConfig",
    "Encoder",
    "EncoderInfo",
    "Progress",
    "Role",
    "Say",
    "from_environ",
    "load",
    "text_digest",
]
