"""`gmem status`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from graphmem import scopes as scopes_of
from graphmem.cli._reading import reading
from graphmem.cli._shared import configuration, here, output, size, standard_options
from graphmem.errors import UsageError
from graphmem.records import GLOBAL_SCOPE
from graphmem.terminal import visible

if TYPE_CHECKING:
    from graphmem.store.status import ScopeCounts, Status

_SHOWN: Final = 20
"""How many scopes are listed one by one."""


@click.command()
@standard_options
def status(db: str | None, graph: str | None, as_json: bool) -> None:
    """Tell what the store holds.

    Archived things are not counted; entities include stubs. A scope is marked when the repository that it
    names is not there any more.
    """
    from graphmem.store.status import read_status

    config = configuration(db, graph)
    with reading(config) as store:
        found = read_status(store.db)
    output(_result(found, config.store), as_json=as_json, text=lambda: "\n".join(_lines(found, config.store)))


def _result(found: Status, path: Path) -> dict[str, Any]:
    encoder = found.encoder
    return {
        "path": str(path),
        "schema_version": found.schema_version,
        "memories": found.memories,
        "entities": found.entities,
        "relations": found.relations,
        "stubs": found.stubs,
        "vectors": found.vectors,
        "scopes": len(found.scopes),
        "origins": found.origins,
        "encoder": None if encoder is None else {key: getattr(encoder, key) for key in _ENCODER},
    }


_ENCODER: Final = ("name", "revision", "digest", "dimension")


def _lines(found: Status, path: Path) -> Iterator[str]:
    yield f"store      {visible(str(path))} ({_size(path)}, schema {found.schema_version})"
    yield f"memories   {found.memories:,}"
    stubs = f" ({found.stubs:,} {'stub' if found.stubs == 1 else 'stubs'})" if found.stubs else ""
    yield f"entities   {found.entities:,}{stubs}"
    yield f"relations  {found.relations:,}"
    if found.archived:
        yield f"archived   {found.archived:,}"
    yield f"origins    {found.origins:,}"
    yield f"vectors    {_vectors(found)}"
    if found.last is not None:
        yield f"last batch {visible(f'{found.last.at} {found.last.command} {found.last.id}')}"
    yield ""
    yield from _scopes(found)


def _vectors(found: Status) -> str:
    count = found.without_vectors
    missing = f"{count:,} item{'' if count == 1 else 's'} without one ('gmem reembed')" if count else ""
    if found.encoder is None:
        return f"none{f'; {missing}' if missing else ''}"
    encoder = found.encoder
    made = visible(f"{encoder.name} ({encoder.digest[:12]}, {encoder.dimension} dimensions)")
    return f"{found.vectors:,} by {made}{f'; {missing}' if missing else ''}"


def _size(path: Path) -> str:
    """The size of the store's files."""
    files = (path, path.with_name(f"{path.name}-wal"))
    return size(sum(file.stat().st_size for file in files if file.exists()))


def _scopes(found: Status) -> Iterator[str]:
    try:
        own = scopes_of.default_scope(here())
    except UsageError:
        own = GLOBAL_SCOPE
    yield visible(f"scope here {own}")
    order = sorted(found.scopes, key=lambda one: (one.name != own, -sum(one[1:]), one.name))
    for one in order[:_SHOWN]:
        yield f"  {_scope(one)}"
    if len(order) > _SHOWN:
        yield f"  and {len(order) - _SHOWN:,} more"


def _scope(one: ScopeCounts) -> str:
    counts = (
        (one.memories, "memory", "memories"),
        (one.entities, "entity", "entities"),
        (one.relations, "relation", "relations"),
    )
    held = ", ".join(f"{count:,} {single if count == 1 else many}" for count, single, many in counts if count)
    gone = " [not there any more]" if scopes_of.is_gone(one.name) else ""
    return visible(f"{one.name}: {held}{gone}")
