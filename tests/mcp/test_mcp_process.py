"""The server as a process: what goes through its pipes, how it ends, and what it speaks over HTTP."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_client import ERAS, GMEM, HELLO, environment, fill, lines, request, started, talking, tool_call

POSIX = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

# A server whose libraries print: while a call runs, from a child process, and when the interpreter ends.
NOISY = """
import atexit, os, subprocess, sys
from graphmem.cli import main
from graphmem.mcp import calls
def noisy(service, given):
    print("printed")
    os.write(1, b"written to the descriptor\\n")
    subprocess.run([sys.executable, "-c", "print('from a child')"])
    sys.__stdout__.write("kept in a buffer")
    return {"memories": 0, "entities": 0, "relations": 0, "hints": []}
calls._READS["stats"] = noisy
atexit.register(lambda: print("at exit"))
atexit.register(lambda: os.write(1, b"at exit too"))
sys.exit(main(["mcp", *sys.argv[1:]]))
"""


def _answers(out: bytes) -> dict[Any, dict[str, Any]]:
    """What came back by request; every line is one JSON object."""
    assert b"\r" not in out
    assert out == b"" or out.endswith(b"\n")
    found = [json.loads(line) for line in out.splitlines()]
    assert all(isinstance(one, dict) and one["jsonrpc"] == "2.0" for one in found)
    return {one.get("id"): one for one in found}


def test_every_line_of_output_is_a_message_and_the_end_of_input_ends_the_process(
    tmp_path: Path, store_path: Path
) -> None:
    server = started(tmp_path / "home", fill(store_path))
    out, err = server.communicate(
        lines(
            *HELLO, request(2, "tools/list"), tool_call(3, "recall", query="tokens"), tool_call(4, "stats")
        ),
        timeout=60,
    )

    assert sorted(_answers(out)) == [1, 2, 3, 4]
    assert server.returncode == 0
    assert err == b""


def test_input_that_ends_at_once_ends_the_process(tmp_path: Path, store_path: Path) -> None:
    server = started(tmp_path / "home", store_path)

    assert server.communicate(timeout=60)[0] == b""
    assert server.returncode == 0


def test_lines_that_are_no_messages_do_no_harm(tmp_path: Path, store_path: Path) -> None:
    server = started(tmp_path / "home", fill(store_path))
    garbage = b'not json\n[]\n{"id": 7}\n\xff\xfe\n\n"text"\n' + b"[" * 100_000 + b"\n"
    out, _ = server.communicate(lines(*HELLO) + garbage + lines(tool_call(3, "stats")), timeout=60)

    assert "result" in _answers(out)[3]
    assert server.returncode == 0


def test_what_libraries_print_never_reaches_the_client(tmp_path: Path, store_path: Path) -> None:
    server = started(tmp_path / "home", fill(store_path), command=[sys.executable, "-P", "-c", NOISY])
    out, err = server.communicate(lines(*HELLO, tool_call(2, "stats")), timeout=60)

    assert sorted(_answers(out)) == [1, 2]
    assert server.returncode == 0
    for text in (
        b"printed",
        b"written to the descriptor",
        b"from a child",
        b"kept in a buffer",
        b"at exit too",
    ):
        assert text in err


@POSIX
def test_a_signal_ends_the_process_while_it_waits_for_input(tmp_path: Path, store_path: Path) -> None:
    server = started(tmp_path / "home", fill(store_path))
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(lines(HELLO[0]))
    server.stdin.flush()
    server.stdout.readline()
    server.send_signal(signal.SIGTERM)

    assert server.wait(timeout=30) == 0
    assert server.stdout.read() == b""
    server.stdin.close()
    server.stdout.close()
    assert server.stderr is not None
    server.stderr.close()


@POSIX
def test_a_client_that_stops_reading_ends_the_process(tmp_path: Path, store_path: Path) -> None:
    server = started(tmp_path / "home", fill(store_path))
    assert server.stdin is not None
    assert server.stdout is not None
    assert server.stderr is not None
    server.stdin.write(lines(HELLO[0]))
    server.stdin.flush()
    server.stdout.readline()
    server.stdout.close()
    server.stdin.write(lines(HELLO[1], tool_call(2, "stats")))
    server.stdin.flush()

    assert server.wait(timeout=30) == 0
    server.stdin.close()
    assert b"Traceback" not in server.stderr.read()
    server.stderr.close()


def test_a_failed_start_is_told_on_stderr_alone(tmp_path: Path, store_path: Path) -> None:
    for options in (
        ("--read-only", "--track-access"),
        ("--scope", "nonsense"),
        ("--json", "--scope", "nonsense"),
    ):
        server = started(tmp_path / "home", store_path, *options)
        out, err = server.communicate(timeout=60)
        assert (server.returncode, out if "--json" not in options else b"") == (2, b"")
        assert b"[usage]" in err


def test_failures_are_logged_without_what_was_asked(tmp_path: Path, store_path: Path) -> None:
    server = started(tmp_path / "home", fill(store_path))
    server.communicate(lines(*HELLO, tool_call(2, "inspect", id="private words")), timeout=60)
    log = (tmp_path / "home" / "logs" / "mcp.log").read_text()

    assert "inspect: entity-not-found" in log
    assert "private" not in log


def test_the_model_library_is_not_imported_for_the_first_answers(tmp_path: Path, store_path: Path) -> None:
    script = "import sys; from graphmem.cli import main; main(['mcp', *sys.argv[1:]]); print(*sys.modules, file=sys.stderr)"
    server = started(
        tmp_path / "home",
        fill(store_path),
        command=[sys.executable, "-P", "-c", script],
        env={"GRAPHMEM_EMBEDDINGS": "on"},
    )
    out, err = server.communicate(lines(*HELLO, request(2, "prompts/list")), timeout=60)

    assert sorted(_answers(out)) == [1, 2]
    loaded = set(err.decode().split())
    assert "mcp" in loaded
    assert loaded & {"numpy", "onnxruntime", "torch", "tokenizers", "sentence_transformers"} == set()


def test_no_other_command_imports_the_library_of_the_server() -> None:
    script = "import sys; from graphmem.cli import main; main(['mcp', '--help']); print('mcp' in sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, check=True, text=True)

    assert done.stdout.endswith("False\n")


@pytest.mark.parametrize("era", ERAS)
def test_a_real_client_starts_the_server_and_asks_it(tmp_path: Path, store_path: Path, era: str) -> None:
    parameters = StdioServerParameters(
        command=GMEM[0], args=[*GMEM[1:], "--db", str(fill(store_path))], env=environment(tmp_path / "home"),
        cwd=str(tmp_path),
    )  # fmt: skip
    with talking(Client(parameters, mode=era)) as client:
        assert client.call("recall", query="tokens expire")["memories"][0]["id"] == "tokens"
        assert client.refused("recall", query="x", limit=0)["code"] == "usage"


# ---- HTTP -----------------------------------------------------------------------------------------


@contextmanager
def _listening(tmp_path: Path, db: Path) -> Iterator[int]:
    """The port of a server that is ended by a signal."""
    server = subprocess.Popen(
        [*GMEM, "--db", str(db), "--http", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(tmp_path / "home"), cwd=tmp_path,
    )  # fmt: skip
    assert server.stderr is not None
    try:
        told = re.search(rb"listening on http://127\.0\.0\.1:(\d+)/mcp", server.stderr.readline())
        assert told is not None
        yield int(told[1])
        server.terminate()
        out, err = server.communicate(timeout=30)
        assert out == b""
        assert all(b"Invalid" in line for line in err.splitlines()), err
        assert server.returncode == 0 or os.name != "posix"
    finally:
        server.kill()
        server.communicate()


def _posted(port: int, headers: dict[str, str]) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    body = json.dumps(HELLO[0])
    given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection.request("POST", "/mcp", body, given | headers)
    status = connection.getresponse().status
    connection.close()
    return status


def test_http_serves_this_machine_and_no_web_page(tmp_path: Path, store_path: Path) -> None:
    with _listening(tmp_path, fill(store_path)) as port:
        for _ in range(100):
            try:
                assert _posted(port, {}) == 200
                break
            except ConnectionError:
                time.sleep(0.1)
        own = f"127.0.0.1:{port}"
        assert _posted(port, {"Host": f"localhost:{port}", "Origin": f"http://{own}"}) == 200
        assert _posted(port, {"Host": "evil.example"}) == 421
        assert _posted(port, {"Host": f"evil.example:{port}"}) == 421
        assert _posted(port, {"Host": f"127.0.0.1:{port + 1}"}) == 421
        assert _posted(port, {"Origin": "http://evil.example"}) == 403
        assert _posted(port, {"Origin": f"http://127.0.0.1:{port + 1}"}) == 403
        assert _posted(port, {"Content-Type": "text/plain"}) >= 400
        with talking(Client(f"http://{own}/mcp")) as client:
            assert client.call("recall", query="tokens expire")["memories"][0]["id"] == "tokens"


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.1", "example.com", "::"])
def test_http_refuses_addresses_that_others_can_reach(tmp_path: Path, store_path: Path, host: str) -> None:
    done = subprocess.run(
        [*GMEM, "--db", str(store_path), "--http", "--host", host], capture_output=True, timeout=60,
        env=environment(tmp_path / "home"), cwd=tmp_path, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (2, b"")
    assert b"is not an address of this machine alone" in done.stderr


def test_a_port_that_is_taken_is_an_error(tmp_path: Path, store_path: Path) -> None:
    with _listening(tmp_path, store_path) as port:
        done = subprocess.run(
            [*GMEM, "--db", str(store_path), "--http", "--port", str(port)], capture_output=True, timeout=60,
            env=environment(tmp_path / "home"), cwd=tmp_path, check=False,
        )  # fmt: skip

    assert done.returncode == 2
    assert b"cannot listen on" in done.stderr
