"""`gmem remember`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from graphmem.cli._acts import (
    actor,
    adding,
    batch_line,
    encoder_for,
    own_scope_option,
    own_scopes,
    vector_option,
)
from graphmem.cli._inputs import terminable
from graphmem.cli._shared import configuration, output, standard_options
from graphmem.errors import EXIT_DONE, EXIT_FINDINGS, UsageError
from graphmem.terminal import visible

if TYPE_CHECKING:
    from graphmem.edit.remember import Remembered
    from graphmem.outcome import ImportReport

STDIN = "-"


@click.command()
@click.argument("texts", metavar="TEXT…", nargs=-1)
@click.option("--about", multiple=True, metavar="NAME", help="What it is about; may be repeated.")
@click.option("--mentions", multiple=True, metavar="NAME", help="What it mentions; may be repeated.")
@click.option("--type", "type_", metavar="TYPE", help="The type of memory; observation unless given.")
@click.option("--title", metavar="TEXT", help="A title.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag; may be repeated.")
@click.option("--importance", type=float, metavar="X", help="How much it matters, from 0 to 1.")
@click.option("--valid-at", metavar="TIME", help="Since when it is true.")
@click.option("--id", "id_", metavar="ID", help="An id of your own; an id that is there is updated.")
@click.option("--source", metavar="SOURCE", help="Where it comes from.")
@click.option(
    "--record", "records", multiple=True, metavar="JSON",
    help="A record as in a JSONL file, of any kind; may be repeated.",
)  # fmt: skip
@own_scope_option
@vector_option
@standard_options
def remember(
    texts: tuple[str, ...], about: tuple[str, ...], mentions: tuple[str, ...], type_: str | None,
    title: str | None, tags: tuple[str, ...], importance: float | None, valid_at: str | None,
    id_: str | None, source: str | None, records: tuple[str, ...], scopes: tuple[str, ...],
    no_embeddings: bool, db: str | None, graph: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Remember something.

    Each TEXT is a memory, and all of them are one batch; '-' is standard input. The options say the same of
    all. NAME is the name or id of an entity: one that is not there is made, and told; one that could be
    several is refused, and the candidates are named.

    What the store knows already is not stored twice. What was forgotten comes back when it is said again.
    """
    from graphmem.edit.references import referring
    from graphmem.edit.remember import remember as run

    where = own_scopes(scopes)
    values = _given(records)
    texts = tuple(_text(text) for text in texts)
    if not texts and not values:
        raise UsageError("nothing to remember was given", "give a text, '-' or --record")
    if id_ is not None and len(texts) != 1:
        raise UsageError("--id goes with one text", "store the others without it")
    config = configuration(db, graph)
    with terminable(), adding(config) as (opening, store):
        encoder = encoder_for(config, store, wanted=not no_embeddings)
        said = {
            "about": [referring(store, name, where[0]) for name in about],
            "mentions": [referring(store, name, where[0]) for name in mentions],
            "memory_type": type_, "title": title, "tags": list(tags), "importance": importance,
            "valid_at": valid_at, "id": id_, "source": source, "scopes": where,
        }  # fmt: skip
        fields = {key: value for key, value in said.items() if value not in (None, [])}
        values = [{"type": "memory", "content": text, **fields} for text in texts] + values
        report, outcomes = run(opening, values, scope=where[0], encoder=encoder, actor=actor())
    return tell(report, outcomes, as_json=as_json)


def tell(report: ImportReport, outcomes: Sequence[Remembered], *, as_json: bool) -> int:
    """Prints what became of records; the exit status."""
    batch = report.batches[0]["id"] if report.batches else None
    result = {"records": [one.as_dict() for one in outcomes], "stubs": report.stubs, "batch": batch}
    output(result, as_json=as_json, text=lambda: "\n".join(_lines(outcomes, batch)))
    return EXIT_FINDINGS if any(one.status == "rejected" for one in outcomes) else EXIT_DONE


def _lines(outcomes: Sequence[Remembered], batch: str | None) -> Iterator[str]:
    for one in outcomes:
        word = "already there" if one.status == "unchanged" else one.status
        what = f" {one.type} {one.id}" if one.id else ""
        yield visible(f"{word}{what}")
        yield from (visible(f"  {problem}") for problem in one.problems)
    yield batch_line(batch)


def _text(given: str) -> str:
    if given != STDIN:
        return given
    try:
        return sys.stdin.read().strip("\n")
    except (UnicodeDecodeError, AttributeError) as error:
        raise UsageError("standard input is not text", "give it as UTF-8") from error


def _given(records: Sequence[str]) -> list[Any]:
    values = []
    for text in records:
        try:
            values.append(json.loads(text))
        except ValueError as error:
            raise UsageError(
                f"--record is not JSON: {error}", "give one object, or a short triple"
            ) from error
    return values
