"""The server: what it offers, how it fails, and that no call waits for another."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import apsw
import pytest
from hash_encoder import HashEncoder
from mcp import MCPError
from mcp_client import ERAS, Conversation, connected, fill, serving

from graphmem.embed import Availability
from graphmem.mcp.server import instructions
from graphmem.store import Store

READING = ["recall", "inspect", "graph", "stats"]


@pytest.fixture(params=ERAS)
def client(request: pytest.FixtureRequest, store_path: Path) -> Iterator[Conversation]:
    """A client of the small store, in both eras of the protocol."""
    with connected(serving(fill(store_path)), request.param) as opened:
        yield opened


# ---- what is offered ------------------------------------------------------------------------------


def test_every_tool_says_what_it_does_to_the_store(client: Conversation) -> None:
    for tool in client.ask("list_tools").tools:
        assert tool.annotations.read_only_hint is (tool.name in READING)
        assert tool.annotations.open_world_hint is False
        assert tool.annotations.destructive_hint is not None
        assert tool.annotations.idempotent_hint is not None
        assert tool.description
        assert tool.output_schema


def test_a_read_only_server_offers_reading_alone(store_path: Path) -> None:
    with connected(serving(fill(store_path), read_only=True)) as client:
        assert [tool.name for tool in client.ask("list_tools").tools] == READING
        assert "only reads" in str(client.client.instructions)


def test_instructions_name_the_scope_and_the_encoder(store_path: Path) -> None:
    told = instructions(serving(store_path, scope="repo:/srv/shop", encoder=HashEncoder()))
    off = instructions(serving(store_path))

    assert "writes go to repo:/srv/shop; reads see it and global" in told
    assert "hash-words" in told
    assert "by words only: embeddings are off" in off
    assert len(told) < 2_000


def test_resources_are_read(client: Conversation) -> None:
    def content(uri: str) -> Any:
        (found,) = client.ask("read_resource", uri).contents
        assert found.mime_type == "application/json"
        return json.loads(found.text)

    assert content("gmem://stats")["memories"] == 2
    assert content("gmem://entity/Auth%20Service")["id"] == "auth"
    assert content("gmem://memory/tokens")["content"] == "Tokens expire after an hour."
    assert [one.uri for one in client.ask("list_resources").resources] == ["gmem://stats"]
    templates = client.ask("list_resource_templates").resource_templates
    assert [one.uri_template for one in templates] == ["gmem://entity/{name}", "gmem://memory/{id}"]


@pytest.mark.parametrize(
    "uri", ["gmem://entity/authservise", "gmem://memory/none", "gmem://other", "file:///etc"]
)
def test_a_resource_that_is_not_there_is_an_error_with_a_code(client: Conversation, uri: str) -> None:
    with pytest.raises(MCPError) as caught:
        client.ask("read_resource", uri)

    assert caught.value.code == -32602
    assert sorted(caught.value.data) == ["code", "hint", "message", "suggestions", "uri"]


def test_prompts_are_made_of_what_is_known(client: Conversation) -> None:
    prompts = client.ask("list_prompts").prompts

    assert [one.name for one in prompts] == ["session-start", "save-learned"]
    assert all(one.description for one in prompts)
    (start,) = client.ask("get_prompt", "session-start", {"topic": "token expiry"}).messages
    assert "Tokens expire after an hour." in start.content.text
    assert "evidence" in start.content.text
    (ask,) = client.ask("get_prompt", "session-start", {}).messages
    assert "`recall`" in ask.content.text
    (save,) = client.ask("get_prompt", "save-learned", {"topic": "the outage"}).messages
    assert "about the outage" in save.content.text


def test_a_prompt_that_is_not_there_is_an_error(client: Conversation) -> None:
    with pytest.raises(MCPError, match="there is no prompt 'other'"):
        client.ask("get_prompt", "other", {})


def test_names_of_entities_are_completed(client: Conversation) -> None:
    from mcp.types import PromptReference, ResourceTemplateReference

    entity = ResourceTemplateReference(uri="gmem://entity/{name}")
    memory = ResourceTemplateReference(uri="gmem://memory/{id}")
    prompt = PromptReference(name="session-start")

    def complete(ref: Any, name: str, value: str) -> Any:
        return client.ask("complete", ref, {"name": name, "value": value}).completion.values

    assert complete(entity, "name", "ser") == ["AuthService"]
    assert complete(entity, "name", "m") == ["Mara", "Mercury"]
    assert complete(prompt, "topic", "post") == ["PostgresDB"]
    assert complete(memory, "id", "to") == []


# ---- how calls fail -------------------------------------------------------------------------------


def test_an_unknown_argument_is_refused_with_the_nearest_name(client: Conversation) -> None:
    error = client.refused("recall", quary="tokens")

    assert error == {
        "code": "usage", "message": "there is no argument 'quary'", "hint": "it may be 'query'",
        "suggestions": ["query"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("tool", "given", "code"),
    [
        ("recall", {}, "usage"),
        ("recall", {"query": "x", "limit": 1_000}, "usage"),
        ("recall", {"query": "x", "since": "yesterday"}, "usage"),
        ("recall", {"query": "x", "scopes": ["nonsense"]}, "usage"),
        ("recall", {"query": "x", "recipe": "near"}, "usage"),
        ("recall", {"query": "x", "entity": "nobody at all"}, "entity-not-found"),
        ("inspect", {"match": "x", "type": "memory"}, "usage"),
        ("graph", {"entities": []}, "usage"),
        ("graph", {"entities": ["nobody at all"]}, "entity-not-found"),
        ("recal", {"query": "x"}, "usage"),
    ],
)
def test_a_failure_is_complete_in_its_text(
    client: Conversation, tool: str, given: dict[str, Any], code: str
) -> None:
    error = client.refused(tool, **given)

    assert error["code"] == code
    assert error["message"]
    assert "Traceback" not in error["message"]
    assert "pydantic" not in json.dumps(error)


def test_an_internal_error_is_told_without_a_trace(
    store_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> Availability:
        raise AssertionError("private words")

    encoder = HashEncoder()
    service = serving(fill(store_path, encoder=encoder), find=broken)
    with connected(service) as client:
        service.model.start()
        service.model.settle()
        error = client.refused("recall", query="tokens", recipe="semantic")

    assert error["code"] == "encoder"
    assert "Traceback" in caplog.text


def test_a_store_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    path.write_bytes(b"this is no database at all")
    with connected(serving(path)) as client:
        assert client.refused("recall", query="tokens")["code"] == "store-foreign"

    assert path.read_bytes() == b"this is no database at all"


def test_a_store_of_an_older_version_is_brought_up_to_date_unless_it_is_only_read(store_path: Path) -> None:
    from graphmem.store.connection import APPLICATION_ID
    from graphmem.store.schema import migration_sql

    db = apsw.Connection(str(store_path))
    db.execute(migration_sql(0))
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 1")
    db.close()
    with connected(serving(store_path, read_only=True)) as client:
        assert client.refused("stats")["code"] == "store-not-found"
    with connected(serving(store_path)) as client:
        assert client.call("stats")["memories"] == 0


# ---- a store that is not there --------------------------------------------------------------------


def test_reads_of_a_store_that_is_not_there_say_so_and_make_none(store_path: Path) -> None:
    with connected(serving(store_path)) as client:
        assert client.call("recall", query="tokens")["notes"] == [
            "nothing is stored yet; 'remember' makes the store"
        ]
        assert client.call("stats")["memories"] == 0
        assert client.call("graph", entities=["AuthService"])["entities"] == []
        assert client.call("inspect")["items"] == []
        assert client.refused("inspect", id="AuthService")["code"] == "item-not-found"

    assert not store_path.exists()


def test_a_store_that_is_made_or_replaced_meanwhile_is_seen(store_path: Path) -> None:
    with connected(serving(store_path)) as client:
        assert client.call("stats")["memories"] == 0
        fill(store_path)
        assert client.call("stats")["memories"] == 2
        other = fill(store_path.with_name("new.db"), [{"type": "memory", "content": "alone"}])
        for suffix in ("-wal", "-shm"):
            store_path.with_name(store_path.name + suffix).unlink(missing_ok=True)
        other.replace(store_path)
        assert client.call("stats")["memories"] == 1


# ---- the model, and calls side by side --------------------------------------------------------------


class SlowModel:
    """A model that is loaded when the test says so."""

    def __init__(self, encoder: HashEncoder) -> None:
        self.loaded = Event()
        self.asked = Event()
        self._encoder = encoder

    def __call__(self) -> Availability:
        self.asked.set()
        assert self.loaded.wait(30)
        return Availability(self._encoder)


def test_no_model_is_asked_for_before_the_tools_were_listed(store_path: Path) -> None:
    model = SlowModel(HashEncoder())
    service = serving(fill(store_path, encoder=HashEncoder()), find=model)
    with connected(service, "legacy") as client:
        client.ask("list_prompts")
        assert not model.asked.is_set()
        client.ask("list_tools")
        assert model.asked.wait(30)
        model.loaded.set()


def test_recall_goes_by_words_while_the_model_loads_and_says_so(store_path: Path) -> None:
    model = SlowModel(HashEncoder())
    service = serving(fill(store_path, encoder=HashEncoder()), find=model)
    with connected(service) as client:
        before = client.call("recall", query="tokens expire", recipe="hybrid")
        model.loaded.set()
        service.model.wait()
        after = client.call("recall", query="tokens expire", recipe="hybrid")

    assert before["recipe"] == "lexical"
    assert "still being loaded" in before["notes"][0]
    assert before["memories"][0]["id"] == "tokens"
    assert after["recipe"] == "hybrid"


class StuckEncoder(HashEncoder):
    """Takes as long as the test wants for a text with 'slow' in it."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = Event()
        self.release = Event()

    def encode(self, texts: Any, role: Any, progress: Any = None) -> list[bytes]:
        if any("slow" in text for text in texts):
            self.entered.set()
            assert self.release.wait(30)
        return super().encode(texts, role, progress)


def test_a_slow_call_keeps_no_other_waiting(store_path: Path) -> None:
    encoder = StuckEncoder()
    service = serving(fill(store_path, encoder=HashEncoder()), encoder=encoder)
    service.model.wait()
    with connected(service) as client, ThreadPoolExecutor(5) as threads:
        slow = threads.submit(client.call, "recall", query="slow tokens")
        assert encoder.entered.wait(30)
        others = [
            threads.submit(client.call, "recall", query="tokens expire"),
            threads.submit(client.call, "inspect", id="auth"),
            threads.submit(client.call, "graph", entities=["auth"]),
            threads.submit(client.call, "stats"),
        ]
        for one in others:
            one.result(timeout=30)
        assert not slow.done()
        encoder.release.set()
        assert slow.result(timeout=30)["memories"]


# ---- access ---------------------------------------------------------------------------------------


def _accesses(path: Path) -> dict[str, int]:
    with Store(path) as store:
        return dict(store.db.execute("SELECT id, access_count FROM memory"))


def test_access_is_counted_only_when_asked_for(store_path: Path) -> None:
    fill(store_path)
    with connected(serving(store_path)) as client:
        client.call("recall", query="tokens expire", recipe="lexical")
    assert sum(_accesses(store_path).values()) == 0
    with connected(serving(store_path, track_access=True)) as client:
        client.call("recall", query="tokens expire", recipe="lexical")
        client.call("inspect", id="tokens")

    assert _accesses(store_path) == {"tokens": 2, "backup": 0, "secret": 0}


def test_counting_access_waits_for_no_other_writer(store_path: Path) -> None:
    fill(store_path)
    with Store(store_path, write=True) as other, other.transaction():
        began = time.monotonic()
        with connected(serving(store_path, track_access=True)) as client:
            client.call("inspect", id="tokens")

        assert time.monotonic() - began < 10
    assert sum(_accesses(store_path).values()) == 0
