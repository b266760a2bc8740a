"""The official memory server and ours, side by side, where Node and the npm package are there.

`MEMORY_SERVER=FOLDER pytest -m slow tests/mcp/test_memory_profile_beside.py` with the folder in which
`npm install @modelcontextprotocol/server-memory` was run; with `--update` the recordings are made anew.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from importing import take
from mcp_client import serving
from memory_sessions import SESSIONS, call, entity, relation
from original_server import entry, in_process, original, record, recording

from graphmem.mcp.memory_profile import build
from graphmem.store import Store

SCRIPT = entry()
FIXTURES = Path(__file__).parents[2] / "fixtures" / "memory-server"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(isinstance(SCRIPT, str), reason=str(SCRIPT))]


@pytest.mark.parametrize("name", SESSIONS)
def test_the_original_still_answers_as_recorded(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    assert isinstance(SCRIPT, Path)
    with original(SCRIPT, tmp_path / "memory.jsonl") as conversation:
        steps = [(asked, conversation.ask(*asked)) for asked in SESSIONS[name]]
    if request.config.getoption("--update"):
        record(name, steps)

    assert steps == recording(name)


def _walk(seed: int) -> list[Any]:
    """Calls at random in which nothing is given twice, and one read after each."""
    dice = random.Random(seed)
    names = ["Anna", "anna", "Ben Okri", "C++", "水"]
    steps: list[Any] = []
    for _ in range(40):
        some = dice.sample(names, dice.randint(1, 3))
        texts = dice.sample(["one", "two words", "drei", "四"], dice.randint(1, 3))
        links = [relation(one, dice.choice(["knows", "uses"]), dice.choice(names)) for one in some]
        steps.append(
            dice.choice([
                call("create_entities", entities=[entity(one, dice.choice(["person", "tool"]), *texts) for one in some]),
                call("create_relations", relations=links),
                call("add_observations", observations=[{"entityName": one, "contents": texts} for one in some]),
                call("delete_entities", entityNames=some[:1]),
                call("delete_observations", deletions=[{"entityName": one, "observations": texts} for one in some]),
                call("delete_relations", relations=links),
            ])
        )  # fmt: skip
        steps.append(dice.choice([call("read_graph"), call("open_nodes", names=some)]))
    return steps


def _unordered(answers: list[Any]) -> Any:
    """Answers without the order in which things came back in one call."""
    structure = json.loads(json.dumps(answers[-1])).get("result", {}).get("structuredContent") or answers
    if isinstance(structure, dict):
        for one in structure.get("entities", ()):
            one["observations"].sort()
        structure = {
            key: sorted(map(str, rows)) if isinstance(rows, list) else rows for key, rows in structure.items()
        }
    return structure


@pytest.mark.parametrize("seed", range(5))
def test_both_answer_the_same_to_calls_at_random(seed: int, tmp_path: Path) -> None:
    assert isinstance(SCRIPT, Path)
    service = serving(tmp_path / "m.db")
    with original(SCRIPT, tmp_path / "memory.jsonl") as theirs, in_process(build(service)) as ours:
        for step in _walk(seed):
            assert _unordered(ours.ask(*step)) == _unordered(theirs.ask(*step)), step
    service.close()


def test_a_file_of_the_original_shows_the_same_graph_after_an_import(tmp_path: Path) -> None:
    assert isinstance(SCRIPT, Path)
    file = tmp_path / "memory.jsonl"
    with original(SCRIPT, file) as theirs:
        for step in (one for one in SESSIONS["everyday"][:3]):
            theirs.ask(*step)
        file_graph = theirs.ask(*call("read_graph"))
    with Store(tmp_path / "m.db", write=True) as store:
        take(store, file, format=None)
    service = serving(tmp_path / "m.db")
    with in_process(build(service)) as ours:
        assert ours.ask(*call("read_graph")) == file_graph
    service.close()


def test_the_original_reads_what_we_export(tmp_path: Path) -> None:
    from graphmem.export import export

    assert isinstance(SCRIPT, Path)
    with Store(tmp_path / "m.db", write=True) as store:
        take(store, FIXTURES / "memory.jsonl", format=None)
        export(store, "memory-server", tmp_path / "exported.jsonl")
    service = serving(tmp_path / "m.db")
    with original(SCRIPT, tmp_path / "exported.jsonl") as theirs, in_process(build(service)) as ours:
        read = call("read_graph")
        assert _unordered(theirs.ask(*read)) == _unordered(ours.ask(*read))
    service.close()
