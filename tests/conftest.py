"""Fixtures that all tests may use, and the Hypothesis profiles."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from command_line import Done, Run
from hypothesis import HealthCheck, settings

from graphmem.cli import main

if TYPE_CHECKING:
    from hash_encoder import HashEncoder

    from graphmem.store import Store

sys.path.insert(0, str(Path(__file__).parent / "embed"))

settings.register_profile(
    "ordinary", derandomize=True, deadline=None, database=None, max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
)  # fmt: skip
settings.register_profile("soak", settings.get_profile("ordinary"), derandomize=False, max_examples=5_000)
settings.load_profile(os.environ.get("GRAPHMEM_TEST_PROFILE", "ordinary"))

CLOCK = "2026-03-01T00:00:00.000Z"


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update`, by which tests of pages rewrite what the code decides."""
    parser.addoption("--update", action="store_true", help="rewrite the parts of pages that are made")


@pytest.fixture
def clock() -> str:
    """The time at which a test's import happens."""
    return CLOCK


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    """A place for a store that is not there yet."""
    return tmp_path / "memory.db"


def write_records(path: Path, records: Iterable[Any]) -> Path:
    """Writes records as JSON lines; the path."""
    path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records), encoding="utf-8")
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without any settings, in an empty project folder; embeddings are off."""
    for name in [name for name in os.environ if name.startswith(("GRAPHMEM_", "_GMEM"))]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # which would hide what happens at the last flush
    monkeypatch.setenv("GRAPHMEM_EMBEDDINGS", "off")
    made = tmp_path / "user"
    made.mkdir()
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.setenv("USERPROFILE", str(made))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return made


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command line in this process."""

    def runner(*args: str | Path) -> Done:
        status = main([str(arg) for arg in args])
        return Done(status, *capsys.readouterr())

    return runner


@pytest.fixture
def guarded() -> Iterator[Path]:
    """A folder in which permissions bind, also where the tests are run by root."""
    if os.name != "posix":
        pytest.skip("permissions of POSIX")
    folder = Path(tempfile.mkdtemp(prefix="gmem-guarded-"))
    folder.chmod(0o755)
    yield folder
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    shutil.rmtree(folder)


@pytest.fixture
def nobody(guarded: Path) -> Iterator[None]:
    """For the length of a test we are a user without rights, where we are root."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    yield
    if root:
        os.seteuid(0)


@pytest.fixture
def encoder() -> HashEncoder:
    """An encoder without a model."""
    from hash_encoder import HashEncoder

    return HashEncoder()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store in memory with the records of `editing`, each with its vectors."""
    from editing import filled

    with filled(tmp_path) as opened:
        yield opened
