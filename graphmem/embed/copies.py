"""The compiled copies under `$GRAPHMEM_HOME/models/`: what they hold, and finding the right one.

A copy is a folder `<name>-<digest>` with `model.json` and, where the model could be compiled, an ONNX
graph, its weights and the tokeniser. A small file in `sources/` says which copy belongs to a configured
model, so that a start reads two small files and no weights.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from graphmem.embed.contract import EncoderInfo, Role
from graphmem.embed.sources import ModelSource

FORMAT: Final = 1
SHEET: Final = "model.json"
GRAPH: Final = "model.onnx"
WEIGHTS: Final = "model.bin"
TOKENIZER: Final = "tokenizer.json"

_TOOLS: Final = ("torch", "onnx", "onnxruntime", "sentence-transformers", "tokenizers", "transformers")


@dataclass(frozen=True, slots=True)
class Sheet:
    """What `model.json` says of a copy.

    `refused` is "" for a compiled copy, else why sentence-transformers has to serve the model.
    `max_length` is in tokens, special ones included, `capacity` what is left of it for a text beside
    special tokens and prompt; both are `None` when the model reads texts of any length. `probe` is the
    vector of a fixed text, in hexadecimal.
    """

    name: str
    revision: str
    digest: str
    dimension: int
    max_length: int | None
    capacity: int | None
    prompts: dict[str, str]
    pooling: str = ""
    pad_id: int = 0
    refused: str = ""
    probe: str = ""
    normalised: bool = True
    files: dict[str, int] = field(default_factory=dict)
    versions: dict[str, str | None] = field(default_factory=dict)
    format: int = FORMAT

    @property
    def info(self) -> EncoderInfo:
        """The identity of the encoder."""
        return EncoderInfo(self.name, self.revision, self.digest, self.dimension)

    def prompt(self, role: Role) -> str:
        """What the model wants before a text of that role."""
        return self.prompts[role]


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy in its place."""

    folder: Path
    sheet: Sheet


def find(models: Path, source: ModelSource) -> Copy | None:
    """The copy that belongs to a configured model, if it is there, whole and of the model as it is now."""
    link = _read_json(link_file(models, source))
    if link is None or link.get("stamp") != source.stamp:
        return None
    folder = link.get("copy")
    return read(models / folder) if isinstance(folder, str) else None


def read(folder: Path) -> Copy | None:
    """The copy in a folder, or `None` when it is missing, incomplete, of another format or outdated.

    A refusal is outdated when one of the tools has another version than at the time.
    """
    said = _read_json(folder / SHEET)
    if said is None or said.get("format") != FORMAT:
        return None
    try:
        sheet = Sheet(**said)
        sizes = {name: (folder / name).stat().st_size for name in sheet.files}
    except (TypeError, OSError):
        return None
    if sizes != sheet.files or (sheet.refused and sheet.versions != tool_versions()):
        return None
    return Copy(folder, sheet)


def tool_versions() -> dict[str, str | None]:
    """The versions of the packages that make a copy, `None` for one that is not installed."""
    from importlib import metadata  # as slow to import as all of this package

    found: dict[str, str | None] = {}
    for tool in _TOOLS:
        try:
            found[tool] = metadata.version(tool)
        except metadata.PackageNotFoundError:
            found[tool] = None
    return found


def discard(copy: Copy) -> None:
    """Make a damaged copy count as missing: without its sheet nobody uses it."""
    (copy.folder / SHEET).unlink(missing_ok=True)


def link_file(models: Path, source: ModelSource) -> Path:
    """The file that says which copy belongs to a configured model."""
    return models / "sources" / f"{source.key}.json"


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return said if isinstance(said, dict) else None
