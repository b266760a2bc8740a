"""The JSON Schemas of the record format, as files of the package and each in one self-contained piece.

The files refer to each other by name; `schema` puts what one needs into its `$defs`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

NAMES: Final = ("record", "entity", "memory", "relation", "triple", "manifest")
"""The schemas by name; `record` is any line of a file."""

_FOLDER: Final = Path(__file__).with_name("schemas")
_SUFFIX: Final = ".schema.json"


def schema(name: str) -> dict[str, Any]:
    """The schema of that name, which needs no other file. Raises `KeyError` when there is none."""
    if name not in NAMES:
        raise KeyError(name)
    definitions: dict[str, Any] = {}
    top = _bundled(_load(name), definitions)
    return {**top, "$defs": dict(sorted(definitions.items()))} if definitions else top


def _load(name: str) -> dict[str, Any]:
    shape: dict[str, Any] = json.loads((_FOLDER / f"{name}{_SUFFIX}").read_bytes())
    return shape


def _bundled(value: Any, definitions: dict[str, Any]) -> Any:
    """The value with its references into other files made references into `definitions`, which grows."""
    if isinstance(value, list):
        return [_bundled(one, definitions) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _local(one, definitions) if key == "$ref" else _bundled(one, definitions)
        for key, one in value.items()
    }


def _local(reference: str, definitions: dict[str, Any]) -> str:
    """A reference `x.schema.json` or `x.schema.json#/$defs/y` as one into `$defs`."""
    file, _, pointer = reference.partition("#")
    name = pointer.removeprefix("/$defs/") or file.removesuffix(_SUFFIX)
    if name not in definitions:
        definitions[name] = None  # holds the place while definitions that refer to each other are read
        shape = _load(file.removesuffix(_SUFFIX))
        shape = shape["$defs"][name] if pointer else shape
        bundled = _bundled(shape, definitions)
        definitions[name] = {key: one for key, one in bundled.items() if key not in ("$schema", "$id")}
    return f"#/$defs/{name}"
