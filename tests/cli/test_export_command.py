"""`gmem export`: what is written where, filters, read-only stores, and exports that fail half way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, as_root, process
from conftest import write_records

from graphmem import formats
from graphmem.errors import StoreReadOnly
from graphmem.formats import ExportFile
from graphmem.store import Store

FIXTURES = Path(__file__).parents[2] / "fixtures"
SERVICES = FIXTURES / "jsonl" / "services.jsonl"


@pytest.fixture
def store(run: Run, tmp_path: Path) -> Path:
    assert run("import", SERVICES, "--db", tmp_path / "x.db").status == 0
    return tmp_path / "x.db"


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def names(lines: list[dict[str, Any]]) -> list[str]:
    return [one["name"] for one in lines if one["type"] == "entity"]


def test_without_o_stdout_is_the_export_and_nothing_else(home: Path, store: Path, tmp_path: Path) -> None:
    done = process("export", "--db", str(store))
    to_file = process("export", "--db", str(store), "-o", str(tmp_path / "out.jsonl"))
    assert (done.returncode, to_file.returncode) == (0, 0)
    assert done.stdout == (tmp_path / "out.jsonl").read_bytes()
    assert done.stdout.endswith(b"}\n")
    assert done.stderr == b"exported 7 entities, 4 memories, 6 relations\n"
    assert (
        to_file.stdout.decode() == f"exported 7 entities, 4 memories, 6 relations to {tmp_path}/out.jsonl\n"
    )


def test_json_tells_of_the_export_on_stdout_with_o_and_on_stderr_without(
    run: Run, store: Path, tmp_path: Path
) -> None:
    with_o = run("export", "--db", store, "-o", tmp_path / "out.jsonl", "--json")
    assert with_o.err == ""
    report = with_o.json
    assert report["counts"] == {"entity": 7, "memory": 4, "relation": 6}
    assert report["bytes"] == (tmp_path / "out.jsonl").stat().st_size
    manifest = records((tmp_path / "out.jsonl").read_text())[0]
    assert report["digest"] == manifest["digest"]
    without = run("export", "--db", store, "--json")
    assert json.loads(without.err)["digest"] == report["digest"]


@pytest.mark.parametrize("to", ["jsonl", "yaml", "markdown"])
def test_an_export_imported_into_an_empty_store_exports_the_same(
    run: Run, store: Path, tmp_path: Path, to: str
) -> None:
    target = tmp_path / f"out.{to}"
    assert run("export", "--db", store, "--to", to, "-o", target).status == 0
    assert run("import", target, "--db", tmp_path / "other.db").status == 0
    first, second = run("export", "--db", store), run("export", "--db", tmp_path / "other.db")
    assert first.out == second.out
    again = run("import", target, "--db", store, "--json").json
    assert (again["committed"], again["counts"]["entity"]["unchanged"]) == (False, 7)


def test_markdown_needs_a_folder_to_go_to(run: Run, store: Path) -> None:
    done = run("export", "--db", store, "--to", "markdown")
    assert (done.status, done.out) == (2, "")
    assert "-o FOLDER" in done.err


def test_an_unknown_format_is_status_2(run: Run, store: Path) -> None:
    assert run("export", "--db", store, "--to", "parquet").status == 2


def test_a_store_that_is_not_there_is_status_2_and_is_not_made(run: Run, tmp_path: Path) -> None:
    done = run("export", "--db", tmp_path / "none.db", "-o", tmp_path / "out.jsonl")
    assert done.status == 2
    assert not (tmp_path / "none.db").exists()
    assert not (tmp_path / "out.jsonl").exists()


# ---- filters ------------------------------------------------------------------------------------------


@pytest.fixture
def many(run: Run, tmp_path: Path) -> Path:
    """A store with two scopes, kinds, times and names that are alike."""
    path = write_records(
        tmp_path / "many.jsonl",
        [
            {"type": "entity", "name": "AuthService", "kind": "Web Service", "scope": "team:a",
             "created_at": "2020-01-01T00:00:00Z"},
            {"type": "entity", "name": "Redis", "kind": "database", "scope": "team:a", "aliases": ["cache"],
             "created_at": "2021-01-01T00:00:00Z"},
            {"type": "entity", "name": "Redis", "kind": "database", "scope": "team:b",
             "created_at": "2024-06-01T12:00:00Z"},
            {"type": "memory", "content": "old", "scopes": ["team:a"], "about": ["Redis"],
             "valid_at": "2021-05-01T00:00:00Z", "created_at": "2022-01-01T00:00:00Z"},
            {"type": "memory", "content": "new", "scopes": ["team:b"], "about": ["Redis"],
             "valid_at": "2024-06-01T23:00:00Z", "created_at": "2024-06-02T00:00:00Z"},
            {"type": "memory", "content": "of nothing", "scopes": ["team:a"],
             "created_at": "2023-01-01T00:00:00Z"},
        ],
    )  # fmt: skip
    assert run("import", path, "--db", tmp_path / "many.db").status == 0
    return tmp_path / "many.db"


def contents(lines: list[dict[str, Any]]) -> list[str]:
    return sorted(one["content"] for one in lines if one["type"] == "memory")


@pytest.mark.parametrize(
    ("args", "entities", "memories"),
    [
        (("--scope", "team:b"), ["Redis"], ["new"]),
        (("--scope", "team:a", "--scope", "team:b"), ["AuthService", "Redis", "Redis"],
         ["new", "of nothing", "old"]),
        (("--kind", "web_service"), ["AuthService"], []),
        (("--kind", "DATABASE", "--scope", "team:a"), ["Redis"], ["old"]),
        (("--entity", "redis", "--scope", "team:a"), ["Redis"], ["old"]),
        (("--entity", "cache"), ["Redis"], ["old"]),
        (("--since", "2024-01-01"), ["Redis"], ["new"]),
        (("--until", "2021-12-31"), ["AuthService", "Redis"], ["old"]),
        (("--since", "2024-06-01", "--until", "2024-06-01"), ["Redis"], ["new"]),
    ],
)  # fmt: skip
def test_filters_leave_the_rest_out_and_the_manifest_names_them(
    run: Run, many: Path, args: tuple[str, ...], entities: list[str], memories: list[str]
) -> None:
    done = run("export", "--db", many, *args)
    assert done.status == 0
    manifest, *lines = records(done.out)
    assert (names(lines), contents(lines)) == (entities, memories)
    assert manifest["counts"]["memory"] == len(memories)
    assert set(manifest["filters"]) <= {"scopes", "kinds", "entities", "since", "until"}
    assert manifest["filters"]


def test_an_export_with_filters_imports_with_a_warning_that_names_them(
    run: Run, many: Path, tmp_path: Path
) -> None:
    run("export", "--db", many, "--scope", "team:b", "-o", tmp_path / "b.jsonl")
    done = run("import", tmp_path / "b.jsonl", "--db", tmp_path / "other.db")
    assert done.status == 0
    assert "partial-export" in done.err


def test_a_name_that_could_be_several_is_taken_as_the_newest_and_told(run: Run, many: Path) -> None:
    done = run("export", "--db", many, "--entity", "Redis")
    assert contents(records(done.out)) == ["new"]
    assert "'Redis' was taken as Redis (team:b); it could also be Redis (team:a)" in done.err


def test_a_name_that_nothing_has_is_an_error_with_suggestions(run: Run, many: Path) -> None:
    done = run("export", "--db", many, "--entity", "AuthServise")
    assert (done.status, done.out) == (2, "")
    assert "did you mean: AuthService" in done.err


@pytest.mark.parametrize("args", [("--since", "yesterday"), ("--scope", "nonsense")])
def test_a_filter_that_means_nothing_is_status_2(run: Run, many: Path, args: tuple[str, ...]) -> None:
    assert run("export", "--db", many, *args).status == 2


# ---- targets ------------------------------------------------------------------------------------------


class Breaking:
    """An exporter that raises in the middle of its bytes."""

    name = "breaking"
    suffix = ".x"

    def __init__(self, *, folder: bool) -> None:
        self.folder = folder

    def write(self, manifest: dict[str, Any], records: Iterable[dict[str, Any]]) -> Iterator[ExportFile]:
        def pieces() -> Iterator[bytes]:
            yield b"half"
            raise ValueError("no more")

        yield ExportFile("a.x" if self.folder else "", pieces())


@pytest.fixture
def breaking(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two formats that are installed and break."""
    points = {
        name: _Point(Breaking(folder=name == "broken-folder")) for name in ("broken-file", "broken-folder")
    }
    known = formats.exporter_points()
    monkeypatch.setattr(formats, "exporter_points", lambda: {**known, **points})
    yield
    formats.exporter.cache_clear()


class _Point:
    """An entry point of a package that is not there."""

    def __init__(self, made: Breaking) -> None:
        self._made = made

    def load(self) -> Any:
        return lambda: self._made


def test_an_export_that_fails_half_way_leaves_the_old_file(
    run: Run, store: Path, tmp_path: Path, breaking: None
) -> None:
    target = tmp_path / "out" / "x"
    target.parent.mkdir()
    target.write_bytes(b"old")
    done = run("export", "--db", store, "--to", "broken-file", "-o", target)
    assert done.status == 2
    assert "the export format 'broken-file' failed: ValueError: no more" in done.err
    assert target.read_bytes() == b"old"
    assert list(target.parent.iterdir()) == [target]


def test_an_export_that_fails_half_way_leaves_the_old_folder(
    run: Run, store: Path, tmp_path: Path, breaking: None
) -> None:
    target = tmp_path / "out" / "vault"
    target.parent.mkdir()
    run("export", "--db", store, "--to", "markdown", "-o", target)
    before = sorted(path.name for path in target.iterdir())
    assert run("export", "--db", store, "--to", "broken-folder", "-o", target).status == 2
    assert sorted(path.name for path in target.iterdir()) == before
    assert list(target.parent.iterdir()) == [target]


def test_a_file_is_replaced_and_a_link_to_it_is_followed(run: Run, store: Path, tmp_path: Path) -> None:
    (tmp_path / "real.jsonl").write_text("old")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real.jsonl")
    run("export", "--db", store, "-o", tmp_path / "link.jsonl")
    assert (tmp_path / "link.jsonl").is_symlink()
    assert (tmp_path / "real.jsonl").read_text().startswith('{"type":"manifest"')


def test_a_pipe_is_written_and_not_replaced(run: Run, store: Path, tmp_path: Path) -> None:
    if os.name != "posix":
        pytest.skip("named pipes of POSIX")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    done = run("export", "--db", store, "-o", pipe)
    read = os.read(reader, 1_000_000)
    os.close(reader)
    assert done.status == 0
    assert read.startswith(b'{"type":"manifest"')
    assert pipe.is_fifo()


@pytest.mark.parametrize("target", ["no/such/folder/out.jsonl", "."])
def test_a_target_that_cannot_be_written_is_status_2(run: Run, store: Path, target: str) -> None:
    done = run("export", "--db", store, "-o", target)
    assert done.status == 2
    assert "output-unwritable" in done.err


def test_a_folder_of_an_export_is_replaced_while_nothing_else_is_in_it(
    run: Run, store: Path, tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    args = ("export", "--db", store, "--to", "markdown", "-o", vault)
    assert run(*args).status == 0
    assert run(*args).status == 0

    (vault / "mine.md").write_text("# Mine\n")
    refused = run(*args)
    assert refused.status == 2
    assert "'mine.md', which no export put there" in refused.err
    (vault / "mine.md").unlink()

    note = next(path for path in sorted(vault.iterdir()) if path.suffix == ".md")
    note.write_text(note.read_text() + "\nan edit\n")
    refused = run(*args)
    assert refused.status == 2
    assert f"'{note.name}' in '{vault}' was edited since it was exported" in refused.err
    assert note.read_text().endswith("an edit\n")


def test_a_folder_that_no_export_made_is_never_replaced(run: Run, store: Path, tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "note.md").write_text("# Mine\n")
    done = run("export", "--db", store, "--to", "markdown", "-o", tmp_path / "vault")
    assert done.status == 2
    assert [path.name for path in (tmp_path / "vault").iterdir()] == ["note.md"]


# ---- stores that cannot be written --------------------------------------------------------------------


def test_a_store_in_a_folder_that_cannot_be_written_is_exported(
    run: Run, store: Path, guarded: Path, nobody: None
) -> None:
    held = guarded / "x.db"

    def put() -> None:
        shutil.copy(store, held)
        held.chmod(0o444)
        guarded.chmod(0o555)

    as_root(put)
    expected = records(_as_root_export(run, store))
    done = run("export", "--db", held)
    assert done.status == 0
    assert records(done.out) == expected
    assert [path.name for path in guarded.iterdir()] == ["x.db"]


def _as_root_export(run: Run, store: Path) -> str:
    told: list[str] = []
    as_root(lambda: told.append(run("export", "--db", store).out))
    return told[0]


def test_a_read_only_file_in_a_folder_that_can_be_written_is_exported(
    run: Run, store: Path, guarded: Path, nobody: None
) -> None:
    def put() -> None:
        shutil.copy(store, guarded / "x.db")
        (guarded / "x.db").chmod(0o444)
        guarded.chmod(0o777)

    as_root(put)
    done = run("export", "--db", guarded / "x.db")
    assert (done.status, len(records(done.out))) == (0, 18)


def test_batches_that_only_the_log_holds_are_not_passed_over_in_silence(
    store: Path, guarded: Path, nobody: None
) -> None:
    def put() -> None:
        with Store(store, write=True) as opened:
            with opened.transaction():
                opened.db.execute("UPDATE entity SET description = 'in the log'")
            for suffix in ("", "-wal"):
                shutil.copy(f"{store}{suffix}", f"{guarded / 'x.db'}{suffix}")
                Path(f"{guarded / 'x.db'}{suffix}").chmod(0o444)
        guarded.chmod(0o555)

    as_root(put)
    with pytest.raises(StoreReadOnly, match=r"x\.db-wal"):
        Store(guarded / "x.db")


@pytest.mark.skipif(os.name != "posix", reason="a pipe that is closed early")
def test_a_reader_that_has_had_enough_is_no_failure(home: Path, run: Run, tmp_path: Path) -> None:
    many = write_records(tmp_path / "m.jsonl", [{"type": "entity", "name": f"E {i}"} for i in range(3000)])
    run("import", many, "--db", tmp_path / "m.db")
    command = [sys.executable, "-m", "graphmem", "export", "--db", str(tmp_path / "m.db")]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert running.stdout is not None
    assert running.stderr is not None
    running.stdout.read(100)
    running.stdout.close()
    err = running.stderr.read()
    running.stderr.close()
    assert (running.wait(timeout=60), err) == (0, b"")
