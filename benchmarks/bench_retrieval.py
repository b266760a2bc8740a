"""How well the recipes find what is asked for, on public sets, beside the figures of others.

    python benchmarks/bench_retrieval.py [--data DIR] [--sets locomo musique musique-mentions devbench]
        [--recipe R …] [--limit-questions N] [--json] [--cache DIR] [--rebuild] [--save FILE]
    python benchmarks/bench_retrieval.py --compare BEFORE.json AFTER.json
    python benchmarks/bench_retrieval.py --refusals [--fit]
    python benchmarks/bench_retrieval.py --speed [--large]

Data is looked for in --data, else in GRAPHMEM_BENCH_DATA; a set whose files are not there is skipped.
Records are imported and questions answered by the product itself; stores and vectors are kept in --cache.
Every run is saved with the results of each question. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from retrieval import (
    answering,
    calibrate,
    devbench,
    folds,
    locomo,
    musique,
    refusals,
    report,
    speed,
    stores,
    tables,
)
from retrieval.sets import BenchmarkSet, DataMissingError
from retrieval.vectors import KeptVectors

from graphmem.config import home_folder
from graphmem.embed import Encoder, from_environ, load

DATA_VARIABLE: Final = "GRAPHMEM_BENCH_DATA"
SETS: Final[Mapping[str, Callable[[Path], BenchmarkSet]]] = {
    "locomo": locomo.load,
    "musique": musique.load_triples,
    "musique-mentions": musique.load_mentions,
    "devbench": devbench.load,
}


def say(text: str) -> None:
    """Tells a person what is going on."""
    print(text, file=sys.stderr, flush=True)


def found_sets(
    data: Path | None, names: list[str], limit: int | None
) -> tuple[list[BenchmarkSet], dict[str, str]]:
    """The sets whose data is there, and why the others are not."""
    found, skipped = [], {}
    for name in names:
        if data is None:
            skipped[name] = f"no data: set {DATA_VARIABLE} or give --data"
            continue
        try:
            found.append(limited(SETS[name](data), limit))
        except DataMissingError as missing:
            skipped[name] = str(missing)
    return found, skipped


def limited(wanted: BenchmarkSet, limit: int | None) -> BenchmarkSet:
    """The set with at most so many of its questions, chosen by the hash of their ids."""
    if limit is None:
        return wanted
    chosen = sorted(wanted.questions, key=lambda one: (folds.fold_of(one.id, 1 << 32), one.id))[:limit]
    return replace(wanted, questions=chosen)


def run_sets(sets: list[BenchmarkSet], asked: argparse.Namespace, encoder: Encoder | None) -> dict[str, Any]:
    """The documents of the sets, by name."""
    documents = {}
    for wanted in sets:
        say(f"{wanted.name}: importing, where no store is kept")
        path, imported = stores.build(wanted.name, wanted.jsonl(), encoder, asked.cache, anew=asked.rebuild)
        runs = {}
        for recipe in asked.recipe:
            say(f"{wanted.name}: {recipe}")
            try:
                runs[recipe] = answering.ask(path, wanted, recipe, encoder)
            except answering.NoVectorsError as why:
                say(f"{wanted.name}: {recipe} is left out, {why}")
        documents[wanted.name] = report.document(wanted, imported, runs)
    return documents


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    """One run as a document."""
    named = asked.data or os.environ.get(DATA_VARIABLE)
    sets, skipped = found_sets(Path(named) if named else None, asked.sets, asked.limit_questions)
    run = {
        "version": report.VERSION,
        "product": stores.product_digest(),
        "encoder": "",
        "skipped": skipped,
        "sets": {},
    }
    if not sets:
        return run
    available = load(from_environ(os.environ, home_folder(os.environ, Path.cwd())))
    if available.encoder is None:
        say(f"by words only: {available.reason}")
        return run | {"sets": run_sets(sets, asked, None)}
    with KeptVectors(available.encoder, asked.cache) as encoder:
        documents = run_sets(sets, asked, encoder)
        return run | {"encoder": encoder.info.name, "sets": documents}


def refused(asked: argparse.Namespace) -> tuple[Any, Callable[[Any], Any]]:
    """How often nothing relevant is found, or with --fit the constants of relevance; and how to print it."""
    named = asked.data or os.environ.get(DATA_VARIABLE)
    sets, _ = found_sets(Path(named) if named else None, asked.sets, asked.limit_questions)
    available = load(from_environ(os.environ, home_folder(os.environ, Path.cwd())))
    if available.encoder is None:
        say(f"by words only: {available.reason}")
        return refusals_with(asked, sets, None)
    with KeptVectors(available.encoder, asked.cache) as encoder:
        return refusals_with(asked, sets, encoder)


def refusals_with(
    asked: argparse.Namespace, sets: list[BenchmarkSet], encoder: Encoder | None
) -> tuple[Any, Callable[[Any], Any]]:
    """The same, with an encoder or by words."""
    if not asked.fit:
        return refusals.measure(sets, asked.recipe, encoder, asked.cache, say), refusals.lines
    once = [one for one in sets if not one.name.endswith("-mentions")]
    found = [
        bag
        for path, wanted in refusals.asked_stores(once, encoder, asked.cache)
        for bag in calibrate.bags(path, wanted, encoder)
    ]
    return calibrate.calibrated(found), calibrate.lines


def without_results(run: Mapping[str, Any]) -> dict[str, Any]:
    """The run without the results of single questions."""
    sets = {
        name: found
        | {
            "recipes": {
                recipe: {key: value for key, value in row.items() if key != "results"}
                for recipe, row in found["recipes"].items()
            }
        }
        for name, found in run["sets"].items()
    }
    return {**run, "sets": sets}


def data_folder(asked: argparse.Namespace) -> Path | None:
    """Where the data lies, if it was said."""
    named = asked.data or os.environ.get(DATA_VARIABLE)
    return Path(named) if named else None


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    recipes = answering.recipes_of_product()
    parser.add_argument("--data", metavar="DIR", help=f"the folder of the data, else {DATA_VARIABLE}")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--recipe", nargs="+", choices=recipes, default=recipes)
    parser.add_argument("--limit-questions", type=int, metavar="N", help="at most so many questions of a set")
    parser.add_argument("--cache", type=Path, metavar="DIR", default=Path(__file__).parent / ".cache")
    parser.add_argument("--rebuild", action="store_true", help="import again, also where a store is kept")
    parser.add_argument(
        "--save", type=Path, metavar="FILE", help="where the run goes, else last-run.json in --cache"
    )
    parser.add_argument(
        "--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"), help="compare two saved runs"
    )
    parser.add_argument(
        "--refusals",
        action="store_true",
        help="measure how often nothing relevant is found, and nothing else",
    )
    parser.add_argument("--fit", action="store_true", help="with --refusals: fit the constants of relevance")
    parser.add_argument(
        "--speed", action="store_true", help="measure how long warm answers take, and nothing else"
    )
    parser.add_argument("--large", action="store_true", help="with --speed: 100,000 memories as well")
    parser.add_argument("--json", action="store_true", help="print JSON, without the single results")
    return parser.parse_args()


def main() -> None:
    """Measures or compares, and prints."""
    asked = arguments()
    if asked.compare:
        compared = report.compare(*(json.loads(path.read_text(encoding="utf-8")) for path in asked.compare))
        show(asked, compared, tables.comparison_lines)
        return
    if asked.refusals:
        show(asked, *refused(asked))
        return
    if asked.speed:
        sizes = (10_000, 100_000) if asked.large else (10_000,)
        show(asked, speed.measure(sizes, asked.recipe, asked.cache, say, data_folder(asked)), speed.lines)
        return
    run = measure(asked)
    if run["sets"]:
        target = asked.save or asked.cache / "last-run.json"
        target.write_text(json.dumps(run, indent=1), encoding="utf-8")
        say(f"saved as {target}")
    show(asked, without_results(run), tables.run_lines)


def show(asked: argparse.Namespace, found: Any, lines: Callable[[Any], Any]) -> None:
    """Prints a document as JSON or as text."""
    print(json.dumps(found) if asked.json else "\n".join(lines(found)))


if __name__ == "__main__":
    main()
