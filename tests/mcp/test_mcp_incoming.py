"""What is sent and is no message is answered as such, lists of messages by a list, and nothing ends the server."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_client import GMEM, HELLO, environment, fill, lines, request, started, tool_call

from graphmem.mcp.incoming import Refused, parsed, readable

PING = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
HALF = b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"%s","arguments":%s}}\n'
DEEP = "[" * 500 + "]" * 500

REFUSED = [
    ("nonsense", -32700, None),
    ('{"jsonrpc":"2.0","id":1', -32700, None),
    ("[" * 100_000, -32700, None),
    ("null", -32600, None),
    ('"text"', -32600, None),
    ("[]", -32600, None),
    (json.dumps([PING]), -32600, None),
    ('{"jsonrpc":"1.0","id":77,"method":"ping"}', -32600, 77),
    ('{"id":"seven","method":"ping"}', -32600, "seven"),
    ('{"id":7}', -32600, 7),
    ('{"jsonrpc":"2.0","id":7,"method":5}', -32600, 7),
    ('{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}', -32600, 7),
    (f'{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{"a":{DEEP}}}}}', -32600, 7),
    ('{"jsonrpc":"2.0","id":7,"method":"ping","result":{}}', -32600, 7),
    ('{"jsonrpc":"2.0","id":7,"method":"ping","error":{"code":1,"message":"x"}}', -32600, 7),
    ('{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
    ('{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
    ('{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
    ('{"jsonrpc":"2.0","id":"\\ud83d","method":"ping"}', -32600, None),
]
"""What is sent, the code of the error that answers it, and the id that it is told with."""


def _sent(tmp_path: Path, *, revision: str = "2025-11-25", given: bytes) -> list[Any]:
    """What a server answers after a client said hello; it has ended by itself, without a word on stderr."""
    hello: list[dict[str, Any]] = json.loads(json.dumps(HELLO))
    hello[0]["params"]["protocolVersion"] = revision
    server = started(tmp_path / "home", fill(tmp_path / "memory.db"))
    try:
        out, err = server.communicate(lines(*hello) + given, timeout=30)
    finally:
        server.kill()
    assert (server.returncode, err) == (0, b"")
    answers = [json.loads(line) for line in out.splitlines()]
    (hello_back,) = [one for one in answers if isinstance(one, dict) and one["id"] == 1]
    assert hello_back["result"]["protocolVersion"] == revision
    return [one for one in answers if one is not hello_back]


def test_what_is_no_message_is_answered_and_the_server_goes_on_and_ends(tmp_path: Path) -> None:
    given = "\n".join(text for text, _, _ in REFUSED)
    *refused, last = _sent(tmp_path, given=given.encode() + b"\n\n\xff\xfe\n" + lines(PING))

    told = [(one["error"]["code"], one["id"]) for one in refused]
    assert told == [*((code, id_) for _, code, id_ in REFUSED), (-32700, None)]
    assert all(0 < len(one["error"]["message"]) < 120 for one in refused)
    assert last == {"jsonrpc": "2.0", "id": 7, "result": {}}


@pytest.mark.parametrize(("text", "code", "id_"), REFUSED)
def test_a_refusal_has_a_code_and_the_id_where_there_is_one(text: str, code: int, id_: Any) -> None:
    with pytest.raises(Refused) as caught:
        readable(parsed(text), text)

    assert (caught.value.code, caught.value.id, caught.value.told) == (code, id_, True)


def test_what_claims_to_be_an_answer_gets_none(tmp_path: Path) -> None:
    assert _sent(tmp_path, given=b'{"jsonrpc":"2.0","id":3,"result":5}\n{"id":3,"error":{}}\n') == []


def test_half_of_a_surrogate_pair_is_replaced(tmp_path: Path) -> None:
    written = HALF % (b"remember", b'{"records":[{"content":"cut \\ud83d off"}]}')
    asked = HALF.replace(b'"id":9', b'"id":10') % (b"recall", b'{"query":"tokens \\ude00"}')
    answers = {one["id"]: one["result"] for one in _sent(tmp_path, given=written + asked)}

    assert answers[9]["structuredContent"]["counts"]["created"] == 1
    assert answers[10]["structuredContent"]["found"] is True


def test_a_whole_surrogate_pair_stays_and_a_half_becomes_a_sign_for_it() -> None:
    text = '{"jsonrpc":"2.0","id":1,"method":"x","params":{"whole":"\\ud83d\\ude00","half":"a\\ud83d","\\ude00":1}}'

    assert json.loads(readable(parsed(text), text))["params"] == {
        "whole": "😀",
        "half": "a\ufffd",
        "\ufffd": 1,
    }


# ---- batches --------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26"])
def test_a_batch_is_answered_by_one_list(tmp_path: Path, revision: str) -> None:
    batch = [
        request(2, "ping"), {"jsonrpc": "2.0", "method": "notifications/other"}, 5, tool_call(3, "stats"),
        request(4, "initialize"), request(5, "no/such/method"),
    ]  # fmt: skip
    answers = _sent(tmp_path, revision=revision, given=json.dumps(batch).encode() + b"\n" + lines(PING))
    (of_batch,) = [one for one in answers if isinstance(one, list)]

    assert [one for one in answers if one is not of_batch] == [{"jsonrpc": "2.0", "id": 7, "result": {}}]
    told = {one["id"]: one.get("error", {}).get("code") for one in of_batch}
    assert told == {2: None, None: -32600, 3: None, 4: -32600, 5: -32601}
    assert len(of_batch) == 5


def test_a_batch_that_asks_nothing_is_not_answered(tmp_path: Path) -> None:
    assert (
        _sent(tmp_path, revision="2025-03-26", given=b'[{"jsonrpc":"2.0","method":"notifications/x"}]\n')
        == []
    )


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
def test_a_batch_is_refused_where_the_revision_has_none(tmp_path: Path, revision: str) -> None:
    (answer,) = _sent(tmp_path, revision=revision, given=json.dumps([PING]).encode() + b"\n")

    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert "one by one" in answer["error"]["message"]


def test_an_empty_batch_is_refused(tmp_path: Path) -> None:
    (answer,) = _sent(tmp_path, revision="2025-03-26", given=b"[]\n")

    assert answer["error"]["code"] == -32600


# ---- HTTP -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a server over the small store."""
    folder = tmp_path_factory.mktemp("http")
    server = subprocess.Popen(
        [*GMEM, "--db", str(fill(folder / "memory.db")), "--http", "--port", "0"], stderr=subprocess.PIPE,
        env=environment(folder / "home"), cwd=folder,
    )  # fmt: skip
    assert server.stderr is not None
    told = re.search(rb":(\d+)/mcp", server.stderr.readline())
    assert told is not None
    yield int(told[1])
    server.terminate()
    server.communicate(timeout=30)


def _posted(port: int, body: bytes, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection.request(
        "POST", "/mcp", body, given | {key.replace("_", "-"): one for key, one in headers.items()}
    )
    answer = connection.getresponse()
    found = answer.status, answer.read()
    session = answer.headers.get("Mcp-Session-Id")
    connection.close()
    return found if session is None or headers else (found[0], session.encode())


@pytest.fixture
def session(port: int) -> dict[str, str]:
    """What says in each request that it is one of a client that said hello."""
    status, id_ = _posted(port, json.dumps(HELLO[0]).encode())
    assert status == 200
    return {"Mcp_Session_Id": id_.decode(), "MCP_Protocol_Version": "2025-11-25"}


@pytest.mark.parametrize(("text", "code", "id_"), REFUSED)
def test_a_body_that_is_no_message_is_refused_in_the_same_words(
    port: int, session: dict[str, str], text: str, code: int, id_: Any
) -> None:
    status, body = _posted(port, text.encode(), **session)
    answer = json.loads(body)

    assert (status, answer["error"]["code"], answer["id"]) == (400, code, id_)
    assert "pydantic" not in body.decode()
    assert len(answer["error"]["message"]) < 120


def test_a_body_that_is_no_text_is_refused(port: int, session: dict[str, str]) -> None:
    status, body = _posted(port, b"\xff\xfe", **session)

    assert (status, json.loads(body)["error"]["message"]) == (400, "this is not UTF-8")


def test_half_of_a_surrogate_pair_is_replaced_over_http(port: int, session: dict[str, str]) -> None:
    status, body = _posted(port, HALF % (b"recall", b'{"query":"tokens \\ud83d"}'), **session)

    assert status == 200
    assert b'"found":true' in body


def test_who_may_not_ask_is_told_so_whatever_the_body_is(port: int) -> None:
    assert _posted(port, b"nonsense", Host="evil.example")[0] == 421
    assert _posted(port, b"nonsense", Origin="http://evil.example")[0] == 403
