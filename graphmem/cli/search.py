"""`gmem search`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from graphmem import scopes as scopes_of
from graphmem.cli._answers import as_text
from graphmem.cli._reading import scopes_wanted
from graphmem.cli._shared import configuration, note, output, standard_options
from graphmem.cli._times import moment
from graphmem.errors import EXIT_DONE, EXIT_FINDINGS, InputUnreadable, UsageError
from graphmem.findings import Finding, finding
from graphmem.recall import RECIPES, Answer, Meaning, Query, find_entity, meaning
from graphmem.recall import search as recall
from graphmem.records import Place
from graphmem.render import line_of
from graphmem.store import Store
from graphmem.store.search import Filters, Searcher
from graphmem.terminal import write_json
from graphmem.times import now

if TYPE_CHECKING:
    from graphmem.config import Config
    from graphmem.embed import Availability


@click.command()
@click.argument("query", nargs=-1)
@click.option("--scope", "scopes", multiple=True, metavar="SCOPE", help="Search only there; may be repeated.")
@click.option("--all-scopes", is_flag=True, help="Search every scope of the store.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="KIND",
    help="Of, about or between entities of this kind; may be repeated.",
)
@click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="Only memories of this type; may be repeated."
)
@click.option(
    "--tag",
    "tags",
    multiple=True,
    metavar="TAG",
    help="Only memories with this tag; repeated, with any of them.",
)
@click.option("--since", metavar="TIME", callback=moment, help="Only what was true or stored since then.")
@click.option("--until", metavar="TIME", callback=moment, help="Only what was true or stored until then.")
@click.option("--entity", metavar="NAME", help="Only what is about, mentions or involves this entity.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="How many memories, facts and entities to show of each.",
)
@click.option("--offset", type=click.IntRange(min=0), default=0, metavar="N", help="How many to pass over.")
@click.option(
    "--recipe",
    type=click.Choice(list(RECIPES)),
    default="hybrid",
    show_default=True,
    help="By words, by meaning, or both.",
)
@click.option(
    "--min-score",
    type=click.FloatRange(0, 1),
    default=0.0,
    metavar="X",
    help="Only what has at least this relevance.",
)
@click.option("--explain", is_flag=True, help="Say why each was found.")
@click.option(
    "--queries",
    type=click.Path(allow_dash=True),
    metavar="FILE",
    help="Answer every line of a JSONL file of queries; '-' is standard input.",
)
@standard_options
def search(
    query: tuple[str, ...], scopes: tuple[str, ...], all_scopes: bool, kinds: tuple[str, ...],
    types: tuple[str, ...], tags: tuple[str, ...], since: str | None, until: str | None, entity: str | None,
    limit: int, offset: int, recipe: Any, min_score: float, explain: bool, queries: str | None,
    db: str | None, graph: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Find memories, facts and entities.

    They are found by words and by meaning, and any text is a query: "quoted words" are looked for next to
    each other, prefix* stands for every word that begins so. Inside a Git repository its scope and global
    are searched, elsewhere global. --type and --tag leave memories only. What no longer holds is not found.

    The first figure of a hit is its relevance, from 0 to 1; with --json there is more on each.

    With --queries each line is an object with "query", and optionally "id" and "scopes"; each answer is
    a line in the same order.
    """
    if (queries is None) is not bool(query):
        raise UsageError("give a query or --queries, and not both", "see 'gmem search --help'")
    visible = scopes_wanted(scopes, all_scopes=all_scopes)
    config = configuration(db, graph)
    filters = Filters(now(), visible, kinds, types, tags, since, until)
    wanted = Query(" ".join(query), filters, limit, offset, recipe, min_score, explain)
    with Store(config.store) as store:
        run = _Run(store, config, wanted, entity)
        if queries is not None:
            return run.many(queries)
        return run.one(as_json=as_json)


class _Run:
    """One command: the store, what is asked of it, and what was already said."""

    def __init__(self, store: Store, config: Config, query: Query, entity: str | None) -> None:
        self._db = store.db
        self._config = config
        self._query = query
        self._entity = entity
        self._meaning: Meaning | None = None
        self._said: set[str] = set()

    def one(self, *, as_json: bool) -> int:
        """Answers the query of the command line."""
        answer = self._answer(self._query)
        self._tell(answer.notes)
        scopes = self._query.filters.scopes
        output(
            {"query": self._query.text, **answer.as_dict()},
            as_json=as_json,
            text=lambda: as_text(answer, self._query, scopes),
        )
        return EXIT_DONE

    def many(self, path: str) -> int:
        """Answers every line of a file; a line that cannot be read is a finding and has no answer."""
        status = EXIT_DONE
        with closing(_open(path)) as stream:
            for item in _lines(stream, "<stdin>" if path == "-" else path):
                if isinstance(item, Finding):
                    note(line_of(item))
                    status = EXIT_FINDINGS
                    continue
                query = replace(self._query, text=item["query"])
                if item.get("scopes"):
                    query = replace(query, filters=replace(query.filters, scopes=tuple(item["scopes"])))
                answer = self._answer(query)
                write_json({"id": item.get("id"), **answer.as_dict()}, sys.stdout, indent=None)
                sys.stdout.flush()
        return status

    def _answer(self, query: Query) -> Answer:
        searcher = Searcher(self._db, query.filters)
        notes: list[str] = []
        if self._entity is not None:
            named = find_entity(searcher, self._entity)
            if named.others:
                notes.append(f"'{self._entity}' could also be {'; '.join(named.others)}")
            query = replace(query, filters=replace(query.filters, entity=named.id))
            searcher = Searcher(self._db, query.filters)
        if self._meaning is None:
            self._meaning = self._wanted_meaning(searcher, query)
        if self._meaning.why_not:
            notes.append(f"searched by words only: {self._meaning.why_not}")
        answer = recall(searcher, query, self._meaning.encoder)
        self._tell(notes)
        answer.notes[:0] = notes
        return answer

    def _tell(self, notes: list[str]) -> None:
        """Says what was not said before on stderr."""
        for text in notes:
            if text not in self._said:
                self._said.add(text)
                note(f"note: {text}")

    def _wanted_meaning(self, searcher: Searcher, query: Query) -> Meaning:
        if query.recipe != "lexical" and not self._config.embeddings:
            return Meaning(None, "embeddings are off (GRAPHMEM_EMBEDDINGS=off)")
        return meaning(searcher, query.recipe, self._load)

    def _load(self) -> Availability:
        from graphmem import embed

        return embed.load(embed.from_environ(os.environ, self._config.home), note)


def _open(path: str) -> BinaryIO:
    if path == "-":
        return sys.stdin.buffer
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise InputUnreadable(f"'{path}' cannot be read: {(error.strerror or str(error)).lower()}") from error


def _lines(stream: BinaryIO, label: str) -> Iterator[dict[str, Any] | Finding]:
    """The queries of a JSONL file, blank lines left out."""
    offset = 0
    for number, line in enumerate(iter(stream.readline, b""), start=1):
        place = Place(number, 1, offset)
        offset += len(line)
        if not line.strip():
            continue
        try:
            item = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
        except ValueError as error:
            yield finding("bad-json", f"not a query: {error}", file=label, place=place)
            continue
        problem = _problem(item)
        yield item if problem is None else finding("bad-query", problem, file=label, place=place)


def _problem(item: Any) -> str | None:
    """What is wrong with a query read from a file."""
    if not isinstance(item, dict):
        return "a query is an object with 'query'"
    if not isinstance(item.get("query"), str):
        return "'query' is missing or not text"
    scopes = item.get("scopes")
    if scopes is None:
        return None
    if not isinstance(scopes, list) or not all(isinstance(one, str) for one in scopes):
        return "'scopes' is not a list of texts"
    wrong = [one for one in scopes if not scopes_of.is_scope(one)]
    return f"'{wrong[0]}' is not a scope" if wrong else None
