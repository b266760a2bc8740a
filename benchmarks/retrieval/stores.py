"""Stores of the sets: built through the product's own import, kept while nothing they depend on changes."""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import graphmem
from graphmem.embed import Encoder
from graphmem.ingest import run
from graphmem.options import ImportOptions
from graphmem.outcome import ImportReport
from graphmem.store import SCHEMA_VERSION, Store

_SHAPED_BY: Final = (
    "lexical.py", "scripts.py", "names.py", "resolve.py", "mention*.py", "mentions/*.py", "commit/*.py",
    "store/sql/*.sql", "store/write.py", "store/mention*.py", "store/vectors.py", "store/sketches.py",
    "store/packed.py",
)  # fmt: skip
"""The sources that decide what an import puts into a store."""


def digest_of(parts: list[bytes]) -> str:
    """A short name for contents."""
    whole = blake2b(digest_size=8)
    for part in parts:
        whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()


def product_digest() -> str:
    """The state of the product as far as stores depend on it."""
    package = Path(graphmem.__file__).parent
    sources = sorted({path for pattern in _SHAPED_BY for path in package.glob(pattern)})
    return digest_of([str(SCHEMA_VERSION).encode(), *(path.read_bytes() for path in sources)])


def encoder_name(encoder: Encoder | None) -> str:
    """The encoder as a part of a key."""
    return encoder.info.digest if encoder is not None else "none"


def build(
    name: str, content: str, encoder: Encoder | None, cache: Path, *, anew: bool = False
) -> tuple[Path, dict[str, Any]]:
    """The store of JSONL records under a name, built when there is none yet, and what its import reported.

    With `anew` it is built in any case. Stores of that name that do not fit any more are removed.
    """
    key = digest_of([content.encode(), encoder_name(encoder).encode(), product_digest().encode()])
    path, said = cache / f"{name}-{key}.db", cache / f"{name}-{key}.json"
    if path.exists() and said.exists() and not anew:
        return path, dict(json.loads(said.read_text(encoding="utf-8")))
    cache.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="building-", dir=cache) as folder:
        source, made = Path(folder) / f"{name}.jsonl", Path(folder) / "memory.db"
        source.write_text(content, encoding="utf-8")
        with Store(made, write=True) as store:
            report = summary(run(store, ImportOptions([str(source)]), encoder))
        made.replace(path)
    said.write_text(json.dumps(report, indent=1), encoding="utf-8")
    _remove_others(name, key, cache)
    return path, report


def summary(report: ImportReport) -> dict[str, Any]:
    """What became of the records, in few figures."""
    told = report.as_dict()
    counts = {
        kind: {what: count for what, count in row.items() if count}
        for kind, row in told["counts"].items()
        if any(row.values())
    }
    return {
        "counts": counts,
        "stubs": told["stubs"],
        "findings": told["findings_by_rule"],
        "encoded": told["encoded"],
        "seconds": told["seconds"],
    }


def _remove_others(name: str, key: str, cache: Path) -> None:
    """Removes the stores of a name that have another key."""
    for old in cache.glob(f"{name}-*"):
        # A key has a fixed length, so that the stores of `musique-mentions` are none of `musique`.
        if len(old.name.removeprefix(f"{name}-").partition(".")[0]) == len(key) and key not in old.name:
            old.unlink(missing_ok=True)
