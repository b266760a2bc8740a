"""Import with embeddings against the encoder's own throughput, in one run.

    python benchmarks/bench_embed_import.py [--records 1500] [--json]

The same texts go through the encoder alone, then through an import into an empty store; then the same
records again from another file, which must encode nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

from _data import mixed_records

from graphmem import lexical
from graphmem.embed import from_environ, load
from graphmem.ingest import run
from graphmem.options import ImportOptions
from graphmem.store import Store


def texts_of(store: Store) -> list[str]:
    """The texts that the import of the store's items encoded."""
    db = store.db
    names = dict(db.execute("SELECT pk, name FROM entity").fetchall())
    texts = [
        lexical.entity_text(name, kind, description)
        for name, kind, description in db.execute("SELECT name, kind, description FROM entity")
    ]
    about: dict[int, list[str]] = {}
    for memory, entity in db.execute("SELECT memory, entity FROM memory_link WHERE role = 0"):
        about.setdefault(memory, []).append(names[entity])
    texts += [
        lexical.memory_text(content, title, sorted(about.get(pk, [])))
        for pk, content, title in db.execute("SELECT pk, content, title FROM memory")
    ]
    texts += [
        lexical.relation_text(fact, names[subject], predicate, names[object_])
        for fact, subject, predicate, object_ in db.execute(
            "SELECT fact, subject, predicate, object FROM relation"
        )
    ]
    return texts


def measure(records: int) -> dict[str, float | int]:
    """The figures, for so many mixed records."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        home = Path(os.environ.get("GRAPHMEM_HOME", folder / "home"))
        available = load(from_environ(os.environ, home))
        if available.encoder is None:
            raise SystemExit(f"no encoder: {available.reason}")
        encoder = available.encoder
        encoder.encode(["warm"], "document")
        source, again = folder / "records.jsonl", folder / "again.jsonl"
        source.write_text("\n".join(mixed_records(records)) + "\n")
        again.write_bytes(source.read_bytes())
        with Store(folder / "plain.db", write=True) as store:
            run(store, ImportOptions([str(source)]))
            texts = texts_of(store)
        began = time.perf_counter()
        encoder.encode(texts, "document")
        alone = time.perf_counter() - began
        with Store(folder / "memory.db", write=True) as store:
            began = time.perf_counter()
            report = run(store, ImportOptions([str(source)]), encoder)
            imported = time.perf_counter() - began
            second = run(store, ImportOptions([str(again)]), encoder)
        return {
            "records": records,
            "texts": len(texts),
            "encoded": report.encoded,
            "encoder_per_second": round(len(texts) / alone, 1),
            "import_per_second": round(report.encoded / imported, 1),
            "ratio": round(alone / imported * report.encoded / len(texts), 3),
            "encoded_again": second.encoded,
        }


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1500)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    row = measure(asked.records)
    if asked.json:
        print(json.dumps(row))
        return
    for key, value in row.items():
        print(f"{key:<20} {value}")


if __name__ == "__main__":
    main()
