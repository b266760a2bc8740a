"""`gmem search`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NoReturn

import click

from graphmem import scopes as scopes_of
from graphmem.cli._answers import as_text
from graphmem.cli._reading import scopes_wanted
from graphmem.cli._shared import configuration, note, output, standard_options
from graphmem.cli._times import moment
from graphmem.errors import EXIT_DONE, EXIT_FINDINGS, InputUnreadable, NothingUsable, UsageError
from graphmem.findings import Finding, finding
from graphmem.fusion import FUSIONS
from graphmem.recall import DEFAULT_RECIPE, RECIPES, Answer, Meaning, Query, Recipe, find_entity, meaning
from graphmem.recall import search as recall
from graphmem.records import Place
from graphmem.render import line_of
from graphmem.store import Store
from graphmem.store.filters import Filters
from graphmem.store.search import Searcher
from graphmem.terminal import write_json
from graphmem.times import now

if TYPE_CHECKING:
    from graphmem.config import Config
    from graphmem.embed import Availability

_KEYS: Final = ("query", "id", "scopes", "limit", "offset")
"""What a query read from a file may say."""
_MOST: Final = 2**31
_HINT: Final = 'write one JSON object a line, for example {"query": "…"}'


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
    help="By words, by meaning, by both, walking on through the graph, or near to an entity.  "
    f"[default: {DEFAULT_RECIPE}]",
)
@click.option(
    "--near",
    metavar="NAME",
    help="What is near to this entity in the graph first; the recipe is then 'near'.",
)
@click.option(
    "--fusion",
    type=click.Choice(FUSIONS),
    default="sum",
    show_default=True,
    help="Add up scores, or reciprocal ranks.",
)
@click.option(
    "--min-score",
    type=click.FloatRange(0, 1),
    default=0.0,
    metavar="X",
    help="Only what has at least this relevance.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Fit each answer into about N tokens of a language model.",
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
    limit: int, offset: int, recipe: Any, near: str | None, fusion: Any, min_score: float,
    max_tokens: int | None, explain: bool, queries: str | None,
    db: str | None, graph: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Find memories, facts and entities.

    They are found by words and by meaning, and any text is a query: "quoted words" are looked for next to
    each other, prefix* stands for every word that begins so. Inside a Git repository its scope and global
    are searched, elsewhere global. --type and --tag leave memories only. --since and --until judge when a
    memory or fact became true, or else was stored, and when an entity was stored. What no longer holds is
    not found.

    The first figure of a hit is its relevance, from 0 to 1; with --json there is more on each. Where
    nothing is relevant that is said, and the nearest few are shown all the same.

    With --queries each line is an object with "query", and optionally "id", "scopes", "limit" and
    "offset". Each gets a line of JSON in the same order: its answer, or what is wrong with it as "error".
    Empty lines are passed over.
    """
    if (queries is None) is not bool(query):
        raise UsageError("give a query or --queries, and not both", "see 'gmem search --help'")
    visible = scopes_wanted(scopes, all_scopes=all_scopes)
    config = configuration(db, graph)
    filters = Filters(now(), visible, kinds, types, tags, since, until)
    chosen: Recipe = recipe or (DEFAULT_RECIPE if near is None else "near")
    wanted = Query(" ".join(query), filters, limit, offset, chosen, min_score, explain, near, fusion)
    with Store(config.store) as store:
        run = _Run(store, config, wanted, entity, max_tokens)
        if queries is not None:
            return run.many(queries)
        return run.one(as_json=as_json)


class _Run:
    """One command: the store, what is asked of it, and what was already said."""

    def __init__(
        self, store: Store, config: Config, query: Query, entity: str | None, max_tokens: int | None
    ) -> None:
        self._db = store.db
        self._config = config
        self._query = query
        self._entity = entity
        self._max_tokens = max_tokens
        self._meaning: Meaning | None = None
        self._said: set[str] = set()

    def one(self, *, as_json: bool) -> int:
        """Answers the query of the command line."""
        answer = self._answer(self._query)
        self._tell(answer.notes)
        said: dict[str, Any] = {"query": self._query.text}
        if as_json:
            self._bound(answer, said)
        output(
            said | answer.as_dict(),
            as_json=as_json,
            text=lambda: as_text(answer, self._query, self._shared(answer), self._max_tokens),
        )
        return EXIT_DONE

    def _bound(self, answer: Answer, beside: dict[str, Any]) -> None:
        """Makes an answer in JSON fit, together with what stands beside it."""
        if self._max_tokens is not None:
            from graphmem.budget import bound_json

            bound_json(answer, self._max_tokens, beside)

    def _shared(self, answer: Answer) -> frozenset[str]:
        """The names that memories of the answer are about and that several visible entities have."""
        searcher = Searcher(self._db, self._query.filters)
        with searcher.snapshot():
            return searcher.shared_names({name for hit in answer.hits for name in hit["about"]})

    def many(self, path: str) -> int:
        """Answers every line of a file; for one that cannot be read its finding stands in the answer's place.

        Raises `NothingUsable` where there is no line, and `InputUnreadable`.
        """
        status = EXIT_DONE
        label = "<stdin>" if path == "-" else path
        number = 0
        with closing(_open(path)) as stream:
            for number, item in _lines(stream, label):
                if isinstance(item, Finding):
                    note(line_of(item))
                    status = EXIT_FINDINGS
                    told = {"code": item.rule, "message": item.message, "hint": item.hint}
                    self._write({"line": number, "error": told})
                else:
                    answer = self._answer(self._asked(item))
                    said: dict[str, Any] = {"line": number, "id": item.get("id")}
                    self._bound(answer, said)
                    self._write(said | answer.as_dict())
        if not number:
            raise NothingUsable(f"'{label}' holds no query", _HINT)
        return status

    @staticmethod
    def _write(shape: dict[str, Any]) -> None:
        write_json(shape, sys.stdout, indent=None)
        sys.stdout.flush()

    def _asked(self, item: dict[str, Any]) -> Query:
        """The query of a line: what it does not say is as the command line says."""
        given = {key: item[key] for key in ("limit", "offset") if item.get(key) is not None}
        query = replace(self._query, text=item["query"], **given)
        if item.get("scopes"):
            query = replace(query, filters=replace(query.filters, scopes=tuple(item["scopes"])))
        return query

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


def _lines(stream: BinaryIO, label: str) -> Iterator[tuple[int, dict[str, Any] | Finding]]:
    """The queries of a JSONL file with the numbers of their lines, blank lines left out."""
    offset = 0
    for number, line in enumerate(iter(stream.readline, b""), start=1):
        place = Place(number, 1, offset)
        offset += len(line)
        if not line.strip():
            continue
        try:
            item = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"), parse_constant=_refused)
        except (ValueError, RecursionError) as error:
            yield number, finding("bad-json", f"not a query: {_fault(error)}", file=label, place=place)
            continue
        problem = _problem(item)
        if problem is None:
            yield number, item
        else:
            yield number, finding("bad-query", problem, file=label, place=place)


def _refused(name: str) -> NoReturn:
    raise ValueError(name)


def _fault(error: Exception) -> str:
    """What keeps a line from being JSON, in our words."""
    if isinstance(error, json.JSONDecodeError):
        return f"it is no JSON at column {error.colno}"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return "it holds a number that is none" if isinstance(error, ValueError) else "it is nested too deep"


def _problem(item: Any) -> str | None:
    """What is wrong with a query read from a file."""
    if not isinstance(item, dict):
        return "a query is an object with 'query'"
    unknown = [key for key in item if key not in _KEYS]
    if unknown:
        return f"'{unknown[0]}' is not a key of a query"
    if not isinstance(item.get("query"), str):
        return "'query' is missing or not text"
    for key, least in (("limit", 1), ("offset", 0)):
        number = item.get(key)
        if number is not None and (type(number) is not int or not least <= number <= _MOST):
            return f"'{key}' is not a whole number from {least}"
    scopes = item.get("scopes")
    if scopes is None:
        return None
    if not isinstance(scopes, list) or not all(isinstance(one, str) for one in scopes):
        return "'scopes' is not a list of texts"
    wrong = [one for one in scopes if not scopes_of.is_scope(one)]
    return f"'{wrong[0]}' is not a scope" if wrong else None
