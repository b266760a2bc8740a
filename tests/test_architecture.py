"""The layers of `docs/architecture.md`, checked on the syntax trees."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

from graphmem import formats

ROOT = Path(__file__).parent.parent
FOLDERS = {"graphmem": "graphmem", "importers": "graphmem.importers", "exporters": "graphmem.exporters"}
FORMATS = ("graphmem.importers", "graphmem.exporters")
SQL = re.compile(
    r"\b(SELECT\s|INSERT\s+INTO\s|DELETE\s+FROM\s|UPDATE\s+\w+\s+SET\s|CREATE\s+(VIRTUAL\s+)?TABLE\s)"
)

# Who may import what is not in the standard library.
OWNERS = {
    "apsw": ("graphmem.store",),
    "sqlite_vec": (),
    "click": ("graphmem.cli",),
    "tqdm": ("graphmem.cli",),
    "yaml": FORMATS,
    "zstandard": ("graphmem.reading", "graphmem.packing"),
    "numpy": ("graphmem.embed", "graphmem.store"),
    "torch": ("graphmem.embed",),
    "onnx": ("graphmem.embed",),
    "onnxruntime": ("graphmem.embed",),
    "tokenizers": ("graphmem.embed",),
    "sentence_transformers": ("graphmem.embed",),
    "huggingface_hub": ("graphmem.embed",),
    "mcp": ("graphmem.mcp", "graphmem.cli.mcp"),
    "uvicorn": ("graphmem.mcp",),
}
STANDARD_TOO = {"compression", "_typeshed"}  # of Python 3.14, and of type checkers
ONLY_INSIDE_FUNCTIONS = {"numpy", "torch", "onnx", "onnxruntime", "tokenizers", "sentence_transformers",
                         "huggingface_hub", "tqdm", "zstandard", "mcp", "uvicorn"}  # fmt: skip


class Import(NamedTuple):
    module: str
    target: str
    inner: bool
    """Whether it stands in a function, or is for type checkers alone."""
    level: int
    """The dots of a relative import."""


def _modules() -> dict[str, Path]:
    found = {}
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = [package, *path.relative_to(ROOT / folder).with_suffix("").parts]
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


MODULES = _modules()
TREES = {module: ast.parse(path.read_text(encoding="utf-8")) for module, path in MODULES.items()}


def _imports(module: str) -> Iterator[Import]:
    package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
    inner = {
        id(node)
        for function in ast.walk(TREES[module])
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for node in ast.walk(function)
    } | {
        id(node)
        for block in ast.walk(TREES[module])
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, alias.name, id(node) in inner, 0)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield Import(module, full if full in MODULES else base, id(node) in inner, node.level)


IMPORTS = [one for module in MODULES for one in _imports(module)]


def _inside(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def _layers() -> dict[str, int]:
    """The layer of each part of the core, as `docs/architecture.md` draws them."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    drawn = page.partition("<!-- layers -->")[2].partition("```\n\n")[0]
    rows = re.findall(r"^(\d)  (.+(?:\n   .+)*)", drawn, re.MULTILINE)
    return {name: int(number) for number, names in rows for name in names.split()}


LAYERS = _layers()
CORE = [module for module in MODULES if not _inside(module, FORMATS) and "." in module]


def _part(module: str) -> str:
    return module.split(".")[1]


def test_the_page_gives_every_part_of_the_core_a_layer_and_names_no_other() -> None:
    assert sorted(LAYERS) == sorted({_part(module) for module in CORE})


@pytest.mark.parametrize("module", CORE)
def test_a_module_imports_only_from_its_own_layer_and_below(module: str) -> None:
    upward = [
        one.target
        for one in IMPORTS
        if one.module == module
        and one.target in CORE
        and _part(one.target) != _part(module)
        and LAYERS[_part(one.target)] > LAYERS[_part(module)]
    ]

    assert upward == []


def test_the_store_and_the_encoder_do_not_know_each_other() -> None:
    between = [
        one
        for one in IMPORTS
        for a, b in (("graphmem.store", "graphmem.embed"), ("graphmem.embed", "graphmem.store"))
        if _inside(one.module, (a,)) and _inside(one.target, (b,))
    ]

    assert between == []


def test_no_two_modules_import_each_other_even_by_way_of_others() -> None:
    graph = {
        module: {one.target for one in IMPORTS if one.module == module and one.target in MODULES}
        for module in MODULES
    }

    assert set(TopologicalSorter(graph).static_order()) == set(MODULES)


def test_libraries_are_imported_by_their_owners_alone() -> None:
    foreign = {
        (one.module, one.target.split(".")[0])
        for one in IMPORTS
        if one.target.split(".")[0] not in {*sys.stdlib_module_names, *STANDARD_TOO, "graphmem"}
    }

    assert sorted(pair for pair in foreign if not _inside(pair[0], OWNERS.get(pair[1], ()))) == []


def test_heavy_libraries_are_imported_inside_functions_alone() -> None:
    early = [one for one in IMPORTS if one.target.split(".")[0] in ONLY_INSIDE_FUNCTIONS and not one.inner]

    assert early == []


def test_formats_import_the_core_by_its_full_name_and_only_its_first_layer() -> None:
    wrong = [
        one
        for one in IMPORTS
        if _inside(one.module, FORMATS)
        and one.target.startswith("graphmem")
        and not (
            LAYERS.get(_part(one.target)) == 1
            if not _inside(one.target, FORMATS)
            else one.level == 1 and one.target.startswith(one.module.rpartition(".")[0])
        )
    ]

    assert wrong == []


def test_the_core_never_imports_a_format() -> None:
    assert [one for one in IMPORTS if one.module in CORE and _inside(one.target, FORMATS)] == []


def test_sql_stands_in_the_store_alone() -> None:
    outside = [
        (module, node.value)
        for module, tree in TREES.items()
        if not _inside(module, ("graphmem.store",))
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.search(node.value)
    ]

    assert outside == []


@pytest.mark.parametrize("name", formats.importer_points())
def test_an_importer_is_loaded_under_its_installed_name(name: str) -> None:
    assert type(formats.importer(name)).__module__ == f"graphmem.importers.{name.replace('-', '_')}"


@pytest.mark.parametrize("name", formats.exporter_points())
def test_an_exporter_is_loaded_under_its_installed_name(name: str) -> None:
    assert type(formats.exporter(name)).__module__ == f"graphmem.exporters.{name.replace('-', '_')}"
