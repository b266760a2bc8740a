"""What is built holds what it should, and an installed graphmem works away from the checkout.

Built and installed without a network: the wheel is installed into an empty environment that sees the
distributions `pip install graphmem` would bring, taken from this environment file by file, and no other.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
NOT_BUILT = shutil.ignore_patterns(
    ".*_cache",
    ".git",
    ".venv",
    ".demo",
    ".conformance",
    ".hypothesis",
    "__pycache__",
    "*.egg-info",
    "build",
    "dist",
)
EXTRA = ("numpy", "torch", "onnx", "onnxruntime", "tokenizers", "sentence_transformers")

pytestmark = pytest.mark.xdist_group("packaging")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wheel and an sdist made of a copy of the checkout."""
    folder = tmp_path_factory.mktemp("built")
    shutil.copytree(ROOT, folder / "tree", ignore=NOT_BUILT)
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(folder / "tree")],
        check=True, capture_output=True, cwd=folder,
    )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def wheel_names(built: Path) -> list[str]:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        return wheel.namelist()


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of scripts of an environment with the wheel and what it requires, without extras."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / Path(sys.executable).name
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
    wheel = str(next(built.glob("*.whl")))
    subprocess.run(
        [*pip, "install", "--quiet", "--no-deps", "--no-index", wheel], check=True, capture_output=True
    )
    site = Path(_output(python, "import sysconfig; print(sysconfig.get_path('purelib'))"))
    _place(_required("graphmem"), site)
    return scripts


def _required(name: str) -> set[str]:
    """The names of what a distribution requires without extras, and of what that requires."""
    seen: set[tuple[str, str]] = set()
    waiting = [(name, "")]
    while waiting:
        name, extra = waiting.pop()
        for text in distribution(name).requires or []:
            wanted = Requirement(text)
            if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
                fresh = {(str(canonicalize_name(wanted.name)), one) for one in ("", *wanted.extras)} - seen
                waiting += fresh
                seen |= fresh
    return {name for name, _ in seen}


def _place(names: set[str], site: Path) -> None:
    for name in sorted(names):
        package = distribution(name)
        tops = {file.parts[0] for file in package.files or () if file.parts[0] not in ("..", "__pycache__")}
        for top in tops:
            origin, target = Path(str(package.locate_file(top))), site / top
            if origin.is_dir():
                shutil.copytree(origin, target, dirs_exist_ok=True, copy_function=_link)
            else:
                _link(str(origin), str(target))


def _link(origin: str, target: str) -> None:
    if Path(target).exists():
        return  # in a folder that several distributions share
    try:
        os.link(origin, target)
    except OSError:
        shutil.copy2(origin, target)


def _output(python: Path, code: str) -> str:
    return subprocess.run(
        [str(python), "-c", code], check=True, capture_output=True, encoding="utf-8"
    ).stdout.strip()


def test_the_listed_packages_are_those_of_the_tree() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    there = {
        ".".join(init.parent.relative_to(ROOT).parts)
        for top in ("graphmem", "importers", "exporters")
        for init in (ROOT / top).rglob("__init__.py")
    }
    mapped = {folder: package for package, folder in listed["package-dir"].items()}

    assert sorted(listed["packages"]) == sorted(mapped.get(name, name) for name in there)


def test_nothing_of_the_wheel_lands_beside_graphmem(wheel_names: list[str]) -> None:
    tops = {name.split("/")[0] for name in wheel_names}

    assert {re.sub(r"-[\d.]+\.dist-info$", ".dist-info", top) for top in tops} == {
        "graphmem",
        "graphmem.dist-info",
    }


def test_the_wheel_holds_every_module_and_file_of_data_of_the_tree(wheel_names: list[str]) -> None:
    wanted = {"graphmem/py.typed"}
    for top, inside in (("graphmem", "graphmem"), ("importers", "graphmem/importers"),
                        ("exporters", "graphmem/exporters")):  # fmt: skip
        for suffix in ("py", "sql", "json"):
            wanted |= {
                f"{inside}/{path.relative_to(ROOT / top).as_posix()}"
                for path in (ROOT / top).rglob(f"*.{suffix}")
                if ".mypy_cache" not in path.parts
            }

    assert wanted - set(wheel_names) == set()
    assert any(re.fullmatch(r"graphmem-[\d.]+\.dist-info/licenses/LICENSE", name) for name in wheel_names)


def test_the_sdist_holds_what_its_tests_need(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    folders = ("tests", "fixtures", "docs", "benchmarks")
    wanted = {
        path.relative_to(ROOT).as_posix()
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and not {"__pycache__", ".cache", ".mypy_cache"} & set(path.parts)
    }
    wanted |= {"README.md", "LICENSE", "CHANGELOG.md", "Makefile", "constraints.txt", "pyproject.toml"}

    assert wanted - names == set()
    assert not [name for name in names if "__pycache__" in name]


def test_an_installed_graphmem_imports_and_searches_without_the_extra(
    installed: Path, tmp_path: Path
) -> None:
    code = f"import importlib.util as u; print([n for n in {EXTRA!r} if u.find_spec(n)])"
    assert _output(installed / Path(sys.executable).name, code) == "[]"

    empty = tmp_path / "empty"
    empty.mkdir()
    record = '["AuthService", "depends_on", "PostgresDB"]\n'
    environ = {"PATH": os.environ["PATH"], "GRAPHMEM_HOME": str(tmp_path / "home"), "PYTHONUTF8": "1"}
    gmem = str(installed / "gmem")
    imported = subprocess.run(
        [gmem, "import", "-"],
        input=record,
        cwd=empty,
        env=environ,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    searched = subprocess.run(
        [gmem, "search", "postgres"],
        cwd=empty,
        env=environ,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    assert imported.returncode == 0, imported.stderr
    assert "the 'embeddings' extra is not installed" in imported.stderr
    assert searched.returncode == 0, searched.stderr
    assert "PostgresDB" in searched.stdout
    assert list(empty.iterdir()) == []
