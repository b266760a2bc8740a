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
from typing import Any

from graphmem.config import DEFAULT_MODEL
from graphmem.embed import EmbeddingConfig, Encoder, load, original, sources

WORDS = """
billing service invoice table writes reads owns depends on the a of to never always customer token session
cache index migration retry queue worker deadline 503 getUserById auth_service C++ release because after
before Tuesday config default timeout seconds memory graph entity relation schema
"""

START = """
import sys
from pathlib import Path
from graphmem.embed import EmbeddingConfig, load
encoder = load(EmbeddingConfig(sys.argv[1], True, Path(sys.argv[2]))).encoder
"""
PROGRAMS = {
    "bare interpreter": "pass",
    "identity only": START + "encoder.info",
    "one query encoded": START + "encoder.encode(['who owns the invoices?'], 'query')",
}


def texts(count: int, words: int) -> list[str]:
    """Different texts of about so many words, the same in every run."""
    choose = random.Random(words)
    known = WORDS.split()
    return [
        " ".join(choose.choices(known, k=choose.randint(words // 2, words * 3 // 2))) for _ in range(count)
    ]


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def cold_starts(home: Path, rounds: int) -> dict[str, float]:
    """The median seconds of new processes, taken in turns, byte code cached as in an installed package."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    took: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    with tempfile.TemporaryDirectory() as cache:
        environ["PYTHONPYCACHEPREFIX"] = cache
        for _ in range(rounds + 1):
            for name, program in PROGRAMS.items():
                command = [sys.executable, "-c", program, DEFAULT_MODEL, str(home)]
                start = time.perf_counter()
                subprocess.run(command, check=True, env=environ)
                took[name].append(time.perf_counter() - start)
    return {name: statistics.median(each[1:]) for name, each in took.items()}


def throughput(encoder: Encoder, plain: Any, some: list[str], rounds: int) -> tuple[float, float]:
    """Texts per second of our encoder and of plain sentence-transformers, in turns."""

    def ours() -> None:
        encoder.encode(some, "document")

    def theirs() -> None:
        plain.encode(some, normalize_embeddings=True, show_progress_bar=False)

    took = [(seconds(ours), seconds(theirs)) for _ in range(rounds + 1)][1:]
    first, second = (statistics.median(column) for column in zip(*took, strict=True))
    return len(some) / first, len(some) / second


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=320, help="texts of each length")
    parser.add_argument("--rounds", type=int, default=5, help="measured rounds; one more warms up")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config = EmbeddingConfig(DEFAULT_MODEL, True, Path(folder))
        available = load(config, say=lambda _: None)
        encoder = available.encoder
        if encoder is None:
            sys.exit(available.reason)
        print(f"first use, compiled in {seconds(lambda: encoder.info):.1f} s")
        starts = cold_starts(config.home, 2 * options.rounds)
        bare = starts["bare interpreter"]
        for name, took in starts.items():
            print(f"cold start: {name:<18} {took * 1000:5.0f} ms  {took / bare:5.1f} x bare")
        plain = original.load(sources.locate(DEFAULT_MODEL), config).model
        for name, words in (("12 words", 12), ("80 words", 80)):
            ours, theirs = throughput(encoder, plain, texts(options.texts, words), options.rounds)
            ratio = f"ratio {ours / theirs:.2f}"
            print(f"texts of {name}: {ours:4.0f}/s, sentence-transformers {theirs:4.0f}/s, {ratio}")


if __name__ == "__main__":
    main()
