"""Putting a compiled copy in its place, in one step and beside other processes that do the same."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Final

from graphmem import private
from graphmem.embed.copies import FORMAT, SHEET, Copy, Sheet, link_file, read, tool_versions
from graphmem.embed.sources import ModelSource
from graphmem.errors import ModelUnavailable, StoreError

_MAKING: Final = ".making-"
_ABANDONED_SECONDS: Final = 24 * 3600


def copy_folder(models: Path, source: ModelSource, weights: str, settings: str) -> Path:
    """Where the copy of a model with these digests belongs."""
    digest = sha256(f"{FORMAT}:{weights}:{settings}".encode()).hexdigest()
    safe = re.sub(r"[^A-Za-z0-9]+", "-", source.name).strip("-")[:60] or "model"
    return models / f"{safe}-{digest[:12]}"


def link(models: Path, source: ModelSource, copy: Copy) -> None:
    """Remember that a copy belongs to a configured model as it is now.

    Where that cannot be written, the next start has to look at the model's own files again.
    """
    said = json.dumps({"copy": copy.folder.name, "stamp": source.stamp})
    path = link_file(models, source)
    with suppress(StoreError):
        private.make_folder(path.parent)
        private.replace_file(path, said.encode())


def make(folder: Path, fill: Callable[[Path], Sheet]) -> Copy:
    """The copy that `fill` writes, put in place in one step.

    It is made in a folder beside it; when another process was faster, that one's copy is used. Raises
    `ModelUnavailable` when the place cannot be written.
    """
    try:
        private.make_folder(folder.parent)
        _remove_abandoned(folder.parent)
        making = Path(tempfile.mkdtemp(prefix=_MAKING, dir=folder.parent))
    except (OSError, StoreError) as error:
        raise _unwritable(folder, error) from error
    try:
        sheet = fill(making)
        sizes = {file.name: file.stat().st_size for file in sorted(making.iterdir())}
        said = asdict(sheet) | {"files": sizes, "versions": tool_versions()}
        (making / SHEET).write_text(json.dumps(said, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        _put(making, folder)
    except OSError as error:
        raise _unwritable(folder, error) from error
    finally:
        shutil.rmtree(making, ignore_errors=True)
    made = read(folder)
    if made is None:
        raise ModelUnavailable(
            f"the compiled model '{folder}' changed while it was made", "run the command again"
        )
    return made


def _put(making: Path, folder: Path) -> None:
    """Rename into place; what stands there stays if it is whole, else it makes room."""
    for _attempt in range(3):
        try:
            making.rename(folder)
        except OSError:
            if read(folder) is not None:
                return
            aside = Path(tempfile.mkdtemp(prefix=_MAKING, dir=folder.parent))
            with suppress(FileNotFoundError):
                folder.rename(aside / "damaged")
            shutil.rmtree(aside, ignore_errors=True)
        else:
            return
    making.rename(folder)


def _remove_abandoned(models: Path) -> None:
    for left in models.glob(f"{_MAKING}*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _ABANDONED_SECONDS:
                shutil.rmtree(left, ignore_errors=True)


def _unwritable(folder: Path, error: Exception) -> ModelUnavailable:
    return ModelUnavailable(
        f"the compiled model cannot be written to '{folder.parent}': {error}",
        "make room or set GRAPHMEM_HOME to a folder that can be written",
    )
