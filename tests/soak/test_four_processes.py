"""Two servers and two imports write to one file at the same time, and nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import write_records
from mcp_client import GMEM, HELLO, environment, lines, started, tool_call
from snapshots import opened, sound

from graphmem.recall import Query, search
from graphmem.store import Store
from graphmem.store.check import check
from graphmem.store.search import Filters, Searcher
from graphmem.times import now

pytestmark = [pytest.mark.slow, pytest.mark.model]

_EACH = 1_000
_AT_ONCE = 10
_ENV = {"GRAPHMEM_EMBEDDINGS": ""}


def _text(writer: int, number: int) -> str:
    return f"writer{writer} keeps item{number} about topic{number % 17}"


def _serve(home: Path, db: Path, writer: int, problems: list[str]) -> None:
    """Remembers through a server, one call after the other, as an agent does."""
    server = started(home, db, env=_ENV)
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(lines(*HELLO))
    for first in range(0, _EACH, _AT_ONCE):
        records = [
            {"content": _text(writer, number), "about": [f"topic{number % 17}"]}
            for number in range(first, first + _AT_ONCE)
        ]
        server.stdin.write(lines(tool_call(first + 10, "remember", records=records)))
        server.stdin.flush()
        while True:
            answer = json.loads(server.stdout.readline())
            if answer.get("id") == first + 10:
                break
        if "error" in answer or answer["result"].get("isError"):
            problems.append(f"server {writer}: {answer}")
    server.stdin.close()
    if server.wait(timeout=60) != 0:
        problems.append(f"server {writer} ended with {server.returncode}")
    server.stdout.close()


def _import(home: Path, db: Path, writer: int, problems: list[str]) -> None:
    records = [
        {"type": "memory", "content": _text(writer, number), "about": [f"topic{number % 17}"]}
        for number in range(_EACH)
    ]
    path = write_records(db.parent / f"{writer}.jsonl", records)
    command = [sys.executable, "-m", "graphmem", "import", str(path), "--db", str(db), "--batch-size", "20"]
    done = subprocess.run(
        command, env=environment(home, **_ENV), cwd=db.parent, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        problems.append(f"import {writer}: {done.stderr}")


def test_four_processes_write_at_once_and_everything_is_found(tmp_path: Path) -> None:
    home, db = tmp_path / "home", tmp_path / "memory.db"
    subprocess.run(  # compiles the model once, before four processes want it
        [*GMEM[:-1], "remember", "first", "--db", str(db)], env=environment(home, **_ENV), check=True
    )
    problems: list[str] = []
    writers = [
        threading.Thread(target=work, args=(home, db, number, problems))
        for number, work in enumerate((_serve, _serve, _import, _import))
    ]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    assert problems == []

    with Store(db) as store:
        counted: Any = store.db.execute("SELECT count(*) FROM memory").get
        assert counted == 4 * _EACH + 1
        assert [one for one in check(store).findings if one.severity.name != "NOTE"] == []
        searcher = Searcher(store.db, Filters(now()))
        for writer in range(4):
            for number in range(0, _EACH, 7):
                text = f"writer{writer} item{number}"
                (best, *_) = search(searcher, Query(text, searcher.filters, recipe="lexical"), None).hits
                assert best["content"] == _text(writer, number)
        without: Any = store.db.execute(
            "SELECT count(*) FROM memory WHERE NOT EXISTS "
            "(SELECT 1 FROM chunk WHERE kind = 1 AND item = memory.pk)"
        ).get
        assert without == 0
    found = opened(db)
    assert sound(found) == []
    found.close()
    asked = "".join(
        json.dumps({"id": f"{writer}-{number}", "query": _text(writer, number)}) + "\n"
        for writer in range(4)
        for number in range(0, _EACH, 97)
    )
    (tmp_path / "queries.jsonl").write_text(asked, encoding="utf-8")
    command = [
        *GMEM[:-1], "search", "--queries", str(tmp_path / "queries.jsonl"), "--db", str(db), "--recipe",
        "semantic", "--limit", "1",
    ]  # fmt: skip
    done = subprocess.run(
        command, env=environment(home, **_ENV), capture_output=True, text=True, check=True, cwd=tmp_path
    )
    for line in done.stdout.splitlines():
        answer = json.loads(line)
        writer, number = map(int, answer["id"].split("-"))
        assert answer["hits"][0]["content"] == _text(writer, number)
