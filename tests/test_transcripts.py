"""Terminal sessions that are run: the `console` blocks of README.md, docs/ and tests/transcripts/.

A line `$ command`, with further lines `> …`, is run by sh without embeddings, in a folder of its own for
each page with `fixtures/` in it; a session goes on over the blocks of a page. The lines below a command are
what it prints, stderr first. `...` stands for anything on its line, and alone on a line for any lines. An
exit status other than 0 is written `[1]` on the last line. `--update` rewrites what is expected.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("tests/transcripts/*.md")]))
    if "```console" in page.read_text(encoding="utf-8")
]
BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
MARK = "--- end of command, status "
VOLATILE = (
    (re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b"), "..."),
    (re.compile(r"\b[0-9a-f]{64}\b"), "..."),
    (re.compile(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "..."),
    (re.compile(f"{datetime.now(UTC):%Y-%m-%d}"), "..."),
    (re.compile(r"\b\d+(\.\d+)?( ?m?s\b| seconds?\b)"), "..."),
    (re.compile(r"\b\d[\d,]* records?/s"), "... records/s"),
)

pytestmark = pytest.mark.skipif(shutil.which("sh") is None, reason="there is no sh here")


class Step(NamedTuple):
    typed: str
    """The command as it stands, further lines with the prompt `> `."""
    expected: str

    @property
    def command(self) -> str:
        return self.typed.replace("\n> ", "\n")


def steps_of(text: str) -> list[Step]:
    """The commands of a session and what each is expected to print."""
    steps = []
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        typed, *further = re.split(r"\n(?!> )", part, maxsplit=1)
        steps.append(Step(typed, "".join(further).rstrip("\n")))
    return steps


def run(commands: list[str], folder: Path) -> list[str]:
    """What each command prints, with its exit status if that is not 0."""
    shutil.copytree(ROOT / "fixtures", folder / "fixtures")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHMEM_")}
    scripts = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    home = str(folder)
    environ = kept | {"PATH": scripts, "HOME": home, "USERPROFILE": home, "PYTHONUTF8": "1", "TZ": "UTC",
                      "COLUMNS": "100", "GRAPHMEM_EMBEDDINGS": "off", "GRAPHMEM_ACTOR": "you"}  # fmt: skip
    script = "".join(f"{command}\nprintf '\\n{MARK}%s\\n' $?\n" for command in commands)
    done = subprocess.run(
        ["sh", "-c", script], cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=300, check=False, encoding="utf-8",
    )  # fmt: skip
    told = []
    for printed, status in re.findall(rf"(.*?)\n{MARK}(\d+)\n", done.stdout, re.DOTALL):
        text = printed.replace(str(folder), "/home/you").rstrip("\n")
        told.append(text if status == "0" else f"{text}\n[{status}]".lstrip("\n"))
    return told


def fits(expected: str, actual: str) -> bool:
    """Whether a text is what is expected, `...` standing for anything."""
    pattern = re.escape(expected + "\n")
    pattern = re.sub(r"^\\\.\\\.\\\.\\\n", r"(?:.*\\n)*?", pattern, flags=re.MULTILINE)
    return re.fullmatch(pattern.replace(r"\.\.\.", ".*?"), actual + "\n") is not None


def updated(step: Step, actual: str) -> str:
    """The step as it should be written: as it is where it fits, else with what differs by run left open."""
    if fits(step.expected, actual):
        return f"$ {step.typed}\n{step.expected}".rstrip("\n")
    for volatile, instead in VOLATILE:
        actual = volatile.sub(instead, actual)
    return f"$ {step.typed}\n{actual}".rstrip("\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_session_prints_what_its_page_says(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    steps = [step for block in blocks for step in steps_of(block)]
    told = run([step.command for step in steps], tmp_path.resolve())
    assert len(told) == len(steps)

    if request.config.getoption("--update"):
        made = iter([updated(step, actual) for step, actual in zip(steps, told, strict=True)])
        rewritten = ["\n".join([next(made) for _ in steps_of(block)]) + "\n" for block in blocks]
        for block, new in zip(blocks, rewritten, strict=True):
            text = text.replace(block, new, 1)
        page.write_text(text, encoding="utf-8")
        return
    wrong = [
        "\n".join(
            difflib.unified_diff(step.expected.split("\n"), actual.split("\n"), "page", "run", lineterm="")
        )
        for step, actual in zip(steps, told, strict=True)
        if not fits(step.expected, actual)
    ]
    assert wrong == [], "\n\n".join(wrong)
