"""How often an answer says that nothing is relevant, for questions that have an answer and that have none.

The questions without an answer are those of `negatives.jsonl`, and DevBench's own five:

far   of another world than the store
near  of the world of the store, which does not hold the answer
name  about somebody or something that the store knows, which does not hold the answer

The handbook of `fixtures/vault` has questions with an answer in that file too. For LoCoMo the questions of
its category 5 stand apart: they ask of one speaker what is true of the other, so that the turns about it
are found though the question has no true answer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from graphmem.embed import Encoder
from graphmem.ingest import run
from graphmem.options import ImportOptions
from graphmem.relevance import HARDLY_RELEVANT
from graphmem.store import Store

from . import answering, stores
from .sets import BenchmarkSet, Question

FILE: Final = Path(__file__).with_name("negatives.jsonl")
VAULT: Final = Path(__file__).parents[2] / "fixtures" / "vault"
ANSWERED: Final = "answered"
OTHER_PERSON: Final = "other person"
KINDS: Final = (ANSWERED, OTHER_PERSON, "far", "near", "name")
_Z: Final = 1.959964


class Rate(NamedTuple):
    """How many of some questions were refused, as a share, and the interval that holds it with 95 %."""

    questions: int
    refused: int
    share: float
    low: float
    high: float


def rate(refused: int, questions: int) -> Rate:
    """The share with its interval by Wilson, which stays within 0 and 1 for few questions too."""
    if not questions:
        return Rate(0, 0, 0.0, 0.0, 1.0)
    share, weight = refused / questions, _Z * _Z / questions
    middle = share + weight / 2
    half = _Z * math.sqrt(share * (1 - share) / questions + weight / questions / 4)
    low, high = (middle - half) / (1 + weight), (middle + half) / (1 + weight)
    return Rate(questions, refused, share, max(low, 0.0), min(high, 1.0))


def own_questions(name: str, text: str | None = None) -> list[Question]:
    """The questions of the file for a set, with their kind as group; only those `answered` have a gold."""
    lines = (FILE.read_text(encoding="utf-8") if text is None else text).splitlines()
    found = []
    for one in map(json.loads, lines):
        if one["set"] == name:
            scope = f"conversation:{one['conversation']}" if "conversation" in one else "global"
            gold = frozenset({"some note"} if one["kind"] == ANSWERED else ())
            found.append(Question(one["id"], one["query"], gold, one["kind"], (scope,)))
    return found


def of_set(wanted: BenchmarkSet) -> BenchmarkSet:
    """The questions of a set by kind, and those of the file for it. No figure but the refusal is taken."""
    kept = [replace(question, group=_kind(question)) for question in wanted.questions]
    asked = [*kept, *own_questions(wanted.name.removesuffix("-mentions"))]
    return replace(wanted, questions=asked, metrics=())


def _kind(question: Question) -> str:
    if not question.gold:
        return "far"
    return OTHER_PERSON if question.group == "adversarial" else ANSWERED


@dataclass(frozen=True, slots=True)
class Refusals:
    """The rates of one set and recipe, by kind."""

    name: str
    recipe: str
    rates: dict[str, Rate]

    def as_dict(self) -> dict[str, Any]:
        """The rates as they stand in JSON."""
        rates = {kind: found._asdict() for kind, found in self.rates.items()}
        return {"set": self.name, "recipe": self.recipe, "rates": rates}


def counted(name: str, recipe: str, results: Sequence[answering.Result]) -> Refusals:
    """The rates of results, by kind; one is refused when its best relevance is below the product's own."""
    rates = {}
    for kind in KINDS:
        best = [one.best for one in results if one.group == kind]
        if best:
            rates[kind] = rate(sum(one < HARDLY_RELEVANT for one in best), len(best))
    return Refusals(name, recipe, rates)


def measure(
    sets: Sequence[BenchmarkSet],
    recipes: Sequence[str],
    encoder: Encoder | None,
    cache: Path,
    say: Callable[[str], None],
) -> list[dict[str, Any]]:
    """The rates of the sets and of the handbook, for each recipe that can be asked, and of all together."""
    found: list[Refusals] = []
    together: dict[str, list[answering.Result]] = {}
    for path, wanted in asked_stores(sets, encoder, cache):
        for recipe in recipes:
            say(f"{wanted.name}: {recipe}")
            try:
                results = answering.ask(path, wanted, recipe, encoder)
            except answering.NoVectorsError as why:
                say(f"{wanted.name}: {recipe} is left out, {why}")
                continue
            found.append(counted(wanted.name, recipe, results))
            # The passages of MuSiQue stand in two sets, and count once.
            together.setdefault(recipe, []).extend(() if wanted.name.endswith("-mentions") else results)
    found += [counted("all", recipe, results) for recipe, results in together.items()]
    return [one.as_dict() for one in found]


def asked_stores(
    sets: Sequence[BenchmarkSet], encoder: Encoder | None, cache: Path
) -> Iterator[tuple[Path, BenchmarkSet]]:
    """The stores of the sets and of the handbook, each with what it is asked; good until the next one."""
    for wanted in map(of_set, sets):
        path, _ = stores.build(wanted.name, wanted.jsonl(), encoder, cache)
        yield path, wanted
    with TemporaryDirectory() as folder:
        path = Path(folder) / "vault.db"
        with Store(path, write=True) as store:
            run(store, ImportOptions([str(VAULT)]), encoder)
        yield path, BenchmarkSet("vault", "the handbook of the fixtures", [], own_questions("vault"), ())


def lines(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The rates as a table."""
    yield f"refused as nothing relevant (best relevance below {HARDLY_RELEVANT}), with 95 % intervals"
    yield f"  {'set':<18}{'recipe':<10}" + "".join(f"{kind:>26}" for kind in KINDS)
    for one in found:
        cells = "".join(f"{_cell(one['rates'].get(kind)):>26}" for kind in KINDS)
        yield f"  {one['set']:<18}{one['recipe']:<10}{cells}"


def _cell(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    part = f"{found['refused']}/{found['questions']}"
    return f"{part} {found['share']:.3f} [{found['low']:.2f}, {found['high']:.2f}]"
