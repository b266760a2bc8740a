"""Which of the optional packages are there, found without importing them."""

from __future__ import annotations

from importlib.util import find_spec


def compiled_runs() -> bool:
    """Whether what a compiled copy needs is installed."""
    return _installed("onnxruntime", "tokenizers", "numpy")


def original_runs() -> bool:
    """Whether sentence-transformers and torch are installed."""
    return _installed("sentence_transformers", "torch")


def _installed(*names: str) -> bool:
    return all(find_spec(name) is not None for name in names)
