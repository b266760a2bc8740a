"""How long a warm answer takes, the encoding of the query apart, on made-up stores of a given size.

A store of n memories holds n relations and n / 10 entities as well, all imported as usual. Words follow
Zipf's law, so that a query has rare and common ones; entities and predicates are as unevenly used. A
vector is the sum of fixed random vectors of the text's words, the rare ones counting more: texts that share
words are near each other, as with a real model, and a hundred thousand texts are encoded in seconds. The
words' vectors are not spread evenly over all directions: the variance falls as it does over the principal
axes of real vectors (MiniLM on LoCoMo and MuSiQue: about 1 / (i + 4) along the i-th).
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import accumulate, product
from pathlib import Path
from typing import Any, Final, cast

from graphmem.embed import Chunk, EncoderInfo, Progress, Role
from graphmem.recall import Query, Recipe, search
from graphmem.store import Store
from graphmem.store.filters import Filters, Kind
from graphmem.store.near import NEAREST_LIMIT
from graphmem.store.search import Searcher
from graphmem.times import now

from . import stores, upkeep, walking
from .answering import DEPTH, percentile
from .sets import DataMissingError

DIMENSION: Final = 384
QUERIES: Final = 200
AGREED: Final = 50
"""How many of the nearest are looked at to see whether sketches find them."""
_COMPARED: Final = 40
WARM_UP: Final = 20
_MEMORY_WORDS: Final = (20, 60)
_QUERY_WORDS: Final = 6
_TURNS: Final = 20
_SEED: Final = 11
_PREDICATES: Final = ("uses", "depends on", "owns", "replaces", "was written by", "is part of")
_SYLLABLES: Final = [first + then for first, then in product("bdfgklmnprstvz", "aeiou")]


class Words:
    """Twenty thousand made-up words, the first the most common."""

    def __init__(self) -> None:
        rng = random.Random(_SEED)
        longer = ("".join(rng.choices(_SYLLABLES, k=rng.randint(2, 4))) for _ in range(60_000))
        self.words = list(dict.fromkeys(longer))[:20_000]
        self._shares = list(accumulate(1 / (rank + 10) for rank in range(len(self.words))))

    def draw(self, rng: random.Random, count: int) -> list[str]:
        """So many words, common ones more often."""
        return rng.choices(self.words, cum_weights=self._shares, k=count)


class WordVectors:
    """An encoder of made-up words that needs no model."""

    def __init__(self, words: Words) -> None:
        self.info = EncoderInfo("made-up words", "", sha256(b"made-up words 2").hexdigest(), DIMENSION)
        self._rows = {word: row for row, word in enumerate(words.words)}
        import numpy as np

        rows = len(words.words)
        chance = np.random.default_rng(_SEED)
        spread = 1 / np.sqrt(np.arange(DIMENSION) + 4)
        axes, _ = np.linalg.qr(chance.standard_normal((DIMENSION, DIMENSION)))
        directions = ((chance.standard_normal((rows, DIMENSION)) * spread) @ axes.T).astype("<f4")
        weights = np.log(np.arange(rows) + 10).astype("<f4") - 1
        self._vectors = directions * weights[:, None]
        self._held: dict[str, bytes] = {}

    def chunks(self, text: str) -> list[Chunk]:
        """The whole text."""
        return [Chunk(0, len(text))]

    def encode(self, texts: Sequence[str], role: Role, progress: Progress | None = None) -> list[bytes]:
        """One vector for each text; those of queries are made once."""
        if progress is not None:
            progress(len(texts))
        if role == "document":
            return [self._encode(text) for text in texts]
        for text in texts:
            if text not in self._held:
                self._held[text] = self._encode(text)
        return [self._held[text] for text in texts]

    def _encode(self, text: str) -> bytes:
        known = [self._rows[word] for word in re.findall(r"\w+", text.lower()) if word in self._rows]
        total = self._vectors[known or [0]].sum(axis=0)
        data: bytes = (total / float(total @ total) ** 0.5).astype("<f4").tobytes()
        return data


def records(size: int, words: Words) -> Iterator[dict[str, Any]]:
    """Entities, memories and relations of a store of a size, the same in every run."""
    rng = random.Random(size)
    names = [f"{' '.join(words.draw(rng, 2)).title()} {number}" for number in range(max(size // 10, 2))]
    shares = list(accumulate(1 / (rank + 5) for rank in range(len(names))))
    for name in names:
        yield {"type": "entity", "name": name, "kind": rng.choice(("service", "person", "library"))}
    for number in range(size):
        yield {
            "type": "memory",
            "id": f"m{number:06}",
            "content": " ".join(words.draw(rng, rng.randint(*_MEMORY_WORDS))),
            "about": rng.choices(names, cum_weights=shares),
            "source": {"uri": f"notes/{number // _TURNS}", "position": number % _TURNS},
        }
    for number, (subject, predicate, object_) in enumerate(_triples(rng, size, names, shares)):
        yield {
            "type": "relation",
            "subject": subject,
            "predicate": predicate,
            "object": object_,
            "fact": f"{subject} {' '.join(words.draw(rng, 6))} {object_}",
            "stated_by": [{"id": f"m{number:06}"}],
        }


def _triples(
    rng: random.Random, size: int, names: Sequence[str], shares: Sequence[float]
) -> Iterator[tuple[str, str, str]]:
    """So many different triples of two different entities."""
    seen: set[tuple[str, str, str]] = set()
    while len(seen) < size:
        subject, object_ = rng.choices(names, cum_weights=shares, k=2)
        triple = subject, rng.choice(_PREDICATES), object_
        if subject != object_ and triple not in seen:
            seen.add(triple)
            yield triple


def queries(made: Sequence[Mapping[str, Any]]) -> list[str]:
    """Questions of some words of a memory each; every fourth names an entity."""
    rng = random.Random(_SEED)
    memories = [record for record in made if record["type"] == "memory"]
    asked = []
    for number, memory in enumerate(rng.choices(memories, k=QUERIES)):
        some = rng.sample(memory["content"].split(), _QUERY_WORDS)
        asked.append(" ".join([*some, memory["about"][0]] if number % 4 == 0 else some))
    return asked


def measure(
    sizes: Sequence[int], recipes: Sequence[str], cache: Path, say: Callable[[str], None], data: Path | None
) -> dict[str, Any]:
    """The times of each recipe on a store of each size, and what else has to be fast."""
    words = Words()
    encoder = WordVectors(words)
    answers, agreements = [], []
    for size in sizes:
        made = list(records(size, words))
        say(f"{size} memories: importing, where no store is kept")
        content = "".join(json.dumps(record) + "\n" for record in made)
        path, _ = stores.build(f"speed{size}", content, encoder, cache)
        asked = queries(made)
        for recipe in recipes:
            say(f"{size} memories: {recipe}")
            times = answer_times(path, asked, recipe, encoder)
            p50, p95 = percentile(times, 0.5), percentile(times, 0.95)
            figures = {"p50_ms": round(p50, 2), "p95_ms": round(p95, 2)}
            answers.append({"memories": size, "recipe": recipe, "queries": len(asked), **figures})
        say(f"{size} memories: sketches against vectors")
        agreements.append({"memories": size, **agreement(path, asked[:_COMPARED], encoder)})
    say("mentions")
    found: dict[str, Any] = {
        "answers": answers,
        "agreement": agreements,
        "mentions": upkeep.measure(words.words),
    }
    try:
        if data is not None:
            say("walks")
            found["walks"] = walking.measure(data, cache)
    except DataMissingError as missing:
        say(f"walks are left out: {missing}")
    return found


def agreement(path: Path, asked: Sequence[str], encoder: WordVectors) -> dict[str, float]:
    """The share of the nearest 50 items of a kind that are found by sketches, as a mean over queries."""
    filters = Filters(now(), ("global",))
    shares: dict[str, float] = {}
    with Store(path) as store:
        searcher = Searcher(store.db, filters)
        if not searcher.has_vectors:
            return {}
        kinds: tuple[Kind, ...] = ("memory", "relation")
        for kind in kinds:
            total = 0
            for vector in encoder.encode(asked, "query"):
                exact = searcher.nearest(kind, vector, depth=NEAREST_LIMIT + 1)[:AGREED]
                found = searcher.nearest(kind, vector, depth=AGREED)
                total += len({row.pk for row in exact} & {row.pk for row in found})
            shares[kind] = round(total / AGREED / len(asked), 4)
    return shares


def answer_times(path: Path, asked: Sequence[str], recipe: str, encoder: WordVectors) -> list[float]:
    """Milliseconds of each answer, after some that warm the caches of the connection."""
    filters = Filters(now(), ("global",))
    encoder.encode(asked, "query")
    times = []
    warm_up = asked[:WARM_UP]
    with Store(path) as store:
        for text in (*warm_up, *asked):
            began = time.perf_counter()
            search(
                Searcher(store.db, filters),
                Query(text, filters, DEPTH, recipe=cast("Recipe", recipe)),
                encoder,
            )
            times.append((time.perf_counter() - began) * 1000)
    return times[len(warm_up) :]


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The times as tables."""
    yield f"{'memories':>9}  {'recipe':<10}{'p50 ms':>9}{'p95 ms':>9}"
    for row in found["answers"]:
        yield f"{row['memories']:>9}  {row['recipe']:<10}{row['p50_ms']:>9.1f}{row['p95_ms']:>9.1f}"
    yield ""
    for row in found["agreement"]:
        shares = ", ".join(f"{row[kind]:.2%} of {kind}" for kind in ("memory", "relation") if kind in row)
        yield f"{row['memories']:>9}  sketches find of the exact nearest {AGREED}: {shares}"
    yield from upkeep.lines(found["mentions"])
    if "walks" in found:
        yield ""
        yield from walking.lines(found["walks"])
