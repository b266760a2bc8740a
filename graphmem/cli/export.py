"""`gmem export`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from graphmem import scopes as scopes_of
from graphmem.cli import abandon_stdout, unwritable
from graphmem.cli._inputs import terminable
from graphmem.cli._shared import configuration, note, output, standard_options
from graphmem.cli._targets import check_targets
from graphmem.cli._times import moment
from graphmem.errors import EXIT_DONE, GraphmemError
from graphmem.export import ExportReport, Filters
from graphmem.export import export as write_export
from graphmem.names import kind_key
from graphmem.store import Store
from graphmem.terminal import to_json, visible

if TYPE_CHECKING:
    from graphmem.lookup import Answer


@click.command()
@click.option(
    "--to",
    "format_name",
    default="jsonl",
    show_default=True,
    metavar="FORMAT",
    help="jsonl, yaml, markdown, which is a folder of notes, or memory-server.",
)
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Write there and not to stdout.",
)
@click.option(
    "--scope", "scopes", multiple=True, metavar="SCOPE", help="Only of this scope; may be repeated."
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="KIND",
    help="Only entities of this kind and what is about or between them; may be repeated.",
)
@click.option(
    "--entity",
    "entities",
    multiple=True,
    metavar="NAME",
    help="Only this entity and what is about it or has it at an end; may be repeated.",
)
@click.option("--since", metavar="TIME", callback=moment, help="Only what was true or stored since then.")
@click.option("--until", metavar="TIME", callback=moment, help="Only what was true or stored until then.")
@standard_options
def export(
    format_name: str, target: Path | None, scopes: tuple[str, ...], kinds: tuple[str, ...],
    entities: tuple[str, ...], since: str | None, until: str | None, db: str | None, graph: str | None,
    as_json: bool,
) -> int:  # fmt: skip
    """Write what the store holds to files.

    Everything of every scope is written unless filters are given; what a kept memory or relation refers to
    comes along. The order is always the same, and importing the file into an empty store gives the same
    store. -o replaces a file, or a folder that an export made, only once everything is written.

    What was written is told on stdout with -o, else on stderr; --json tells it as JSON.
    """
    given = tuple(dict.fromkeys(scopes_of.given(scope) for scope in scopes))
    path = configuration(db, graph).store
    check_targets({"-o": target}, store=path)
    with terminable(), Store(path) as store:
        chosen = [_entity(store, name, given) for name in entities]
        filters = Filters(
            scopes=given, kinds=tuple(dict.fromkeys(map(kind_key, kinds))),
            entities=tuple(one.found.pk for one in chosen),
            names=tuple(one.found.candidate.name for one in chosen), since=since, until=until,
        )  # fmt: skip
        report = _write(store, format_name, target, filters)
    if target is not None:
        output(report.as_dict(), as_json=as_json, text=lambda: _text(report))
    else:
        for line in (to_json(report.as_dict()) if as_json else _text(report)).split("\n"):
            note(line)
    return EXIT_DONE


def _write(store: Store, format_name: str, target: Path | None, filters: Filters) -> ExportReport:
    if target is not None:
        return write_export(store, format_name, target, filters)
    if sys.stdout is None:
        raise GraphmemError("there is no stdout to write to", "name a file with -o")
    try:
        report = write_export(store, format_name, sys.stdout.buffer, filters)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        abandon_stdout()
        raise
    except OSError as error:
        raise unwritable(error) from error
    return report


def _entity(store: Store, name: str, scopes: tuple[str, ...]) -> Answer:
    """What a name means in the scopes; the others that it could be are told."""
    from graphmem.lookup import look_up
    from graphmem.store.lookup import Names

    answer = look_up(Names(store.db, scopes or None), name)
    if answer.others:
        others = ", ".join(f"{one.candidate.name} ({one.candidate.scope})" for one in answer.others)
        chosen = answer.found.candidate
        note(f"note: '{name}' was taken as {chosen.name} ({chosen.scope}); it could also be {others}")
    return answer


def _text(report: ExportReport) -> str:
    counts = ", ".join(
        f"{report.counts[kind]:,} {one if report.counts[kind] == 1 else many}"
        for kind, one, many in (
            ("entity", "entity", "entities"), ("memory", "memory", "memories"),
            ("relation", "relation", "relations"),
        )
    )  # fmt: skip
    where = "" if report.target == "-" else f" to {visible(report.target)}"
    files = f" in {report.files:,} files" if report.files != 1 else ""
    told = f"exported {counts}{where}{files}"
    if report.lost:
        lost = ", ".join(f"{what} ({count:,})" for what, count in report.lost.items())
        told += f"\nthe format cannot hold: {lost}"
    return told
