"""Loading without a model: nothing heavy is imported, and what is missing is said."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from graphmem.embed import Availability, EmbeddingConfig, load, text_digest
from graphmem.embed.contract import EncoderInfo

HEAVY = ("numpy", "torch", "onnxruntime", "tokenizers", "transformers", "sentence_transformers")
HEAVY_LIST = ", ".join(map(repr, HEAVY))


def config(home: Path, *, enabled: bool = True) -> EmbeddingConfig:
    return EmbeddingConfig("sentence-transformers/all-MiniLM-L6-v2", enabled, home)


def test_importing_imports_no_model_library() -> None:
    code = f"import sys, graphmem.embed; print([name for name in ({HEAVY_LIST}) if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_embeddings_that_are_off_say_so(tmp_path: Path) -> None:
    available = load(config(tmp_path, enabled=False))

    assert available == Availability(
        None, "embeddings are off (GRAPHMEM_EMBEDDINGS=off): search is lexical only"
    )


@pytest.mark.parametrize("missing", [("sentence_transformers",), ("torch",), HEAVY])
def test_a_missing_extra_is_said_with_what_to_install(
    missing: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)

    available = load(config(tmp_path))

    assert available.encoder is None
    assert "'embeddings' extra is not installed" in available.reason
    assert "pip install 'graphmem[embeddings]'" in available.hint


def test_encoders_fit_by_weights_and_dimension_wherever_the_model_came_from() -> None:
    one = EncoderInfo("owner/name", "commit", "weights", 3)

    assert one.fits(EncoderInfo("folder", "", "weights", 3))
    assert not one.fits(EncoderInfo("owner/name", "commit", "other", 3))
    assert not one.fits(EncoderInfo("owner/name", "commit", "weights", 4))


def test_every_text_has_a_digest() -> None:
    assert len({text_digest(text) for text in ("", "a", "A", "a ", "\ud800", "e\u0301", "\u00e9")}) == 7
    assert len(text_digest("")) == 32
