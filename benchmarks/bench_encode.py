"""Our encoder beside plain sentence-transformers on the same texts, and what a cold query costs.

Run with `python benchmarks/bench_encode.py [--texts N] [--rounds N]`; needs the embeddings extra and the
default model. Throughput is a ratio within one run, rounds alternating; cold starts are medians of new
processes beside the bare interpreter. Milliseconds are for a quiet machine.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from graphmem.config import DEFAULT_MODEL
from graphmem.embed import EmbeddingConfig, load, original, sources

WORDS = (
    "billing service invoice table writes reads owns depends on the a of to never always customer token "
    "session cache index migration retry queue worker deadline 503 getUserById auth_service C++ release "
    "because after before Tuesday config default timeout seconds memory graph entity relation schema"
).split()

QUERY = """
import sys
from pathlib import Path
from graphmem.embed import EmbeddingConfig, load
load(EmbeddingConfig(sys.argv[1], True, Path(sys.argv[2]))).encoder.encode(["who owns the invoices?"], "query")
"""
IDENTITY = QUERY.replace('.encode(["who owns the invoices?"], "query")', ".info")


def texts(count: int, words: int) -> list[str]:
    """Different texts of about so many words, the same in every run."""
    choose = random.Random(words)
    return [
        " ".join(choose.choices(WORDS, k=choose.randint(words // 2, words * 3 // 2))) for _ in range(count)
    ]


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def cold(code: str, *arguments: str, runs: int = 9) -> float:
    """The median seconds of a new process, byte code cached as in an installed package."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as cache:
        environ["PYTHONPYCACHEPREFIX"] = cache
        command = [sys.executable, "-c", code, *arguments]
        run = lambda: subprocess.run(command, check=True, env=environ)  # noqa: E731
        run()
        return statistics.median(seconds(run) for _ in range(runs))


def throughput(home: Path, count: int, rounds: int) -> list[tuple[str, float, float]]:
    """For each length of text: its name, our texts per second, sentence-transformers' texts per second."""
    config = EmbeddingConfig(DEFAULT_MODEL, True, home)
    encoder = load(config).encoder
    assert encoder is not None, "the embeddings extra is not installed"
    plain = original.load(sources.locate(DEFAULT_MODEL), config).model
    rows = []
    for name, words in (("facts, 12 words", 12), ("notes, 80 words", 80)):
        some = texts(count, words)
        ours, theirs = [], []
        for _ in range(rounds + 1):
            ours.append(count / seconds(lambda some=some: encoder.encode(some, "document")))
            theirs.append(
                count
                / seconds(
                    lambda some=some: plain.encode(some, normalize_embeddings=True, show_progress_bar=False)
                )
            )
        rows.append((name, statistics.median(ours[1:]), statistics.median(theirs[1:])))
    return rows


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=320, help="texts of each length")
    parser.add_argument("--rounds", type=int, default=5, help="measured rounds; one more warms up")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        made = seconds(lambda: load(EmbeddingConfig(DEFAULT_MODEL, True, home)).encoder.info)  # type: ignore[union-attr]
        print(f"first use, compiling included   {made:8.1f} s")
        bare = cold("pass")
        for name, code in (
            ("bare interpreter", "pass"),
            ("identity only", IDENTITY),
            ("one query encoded", QUERY),
        ):
            took = cold(code, DEFAULT_MODEL, str(home))
            print(f"cold start, {name:<18}  {took * 1000:8.0f} ms   {took / bare:5.1f} x bare")
        for name, ours, theirs in throughput(home, options.texts, options.rounds):
            print(
                f"{name:<18} ours {ours:6.0f}/s   sentence-transformers {theirs:6.0f}/s   ratio {ours / theirs:4.2f}"
            )


if __name__ == "__main__":
    main()
