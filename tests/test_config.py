"""Where the store is: options, environment, folders, trust, and who may read it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphmem import config, git, private
from graphmem.errors import StoreError, StoreUntrusted, UsageError

needs_posix = pytest.mark.skipif(os.name != "posix", reason="modes and owners are POSIX")
needs_git = pytest.mark.skipif(git._program(os.environ) is None, reason="needs git")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "user"
    made.mkdir()
    return made


@pytest.fixture
def environ(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "USERPROFILE": str(home), "PATH": os.environ["PATH"]}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "work" / "project"
    made.mkdir(parents=True)
    return made


@pytest.fixture(params=[0, 0o777], ids=["open", "closed"])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def run_git(folder: Path, *args: str) -> None:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(("git", *identity, "-C", str(folder), *args), check=True, capture_output=True)


def cloned(project: Path, tmp_path: Path, environ: dict[str, str]) -> Path:
    """A clone of a repository whose author committed a `.graphmem/`."""
    run_git(project, "init", "-q")
    config.init(project, environ, project)
    (project / ".graphmem" / "memory.db").write_bytes(b"planted")
    run_git(project, "add", "-f", ".graphmem")
    run_git(project, "commit", "-qm", "memories")
    clone = tmp_path / "clone"
    run_git(tmp_path, "clone", "-q", str(project), str(clone))
    return clone


# ---- the order of §11 -------------------------------------------------------------------------------


def test_without_anything_the_store_is_in_the_home_folder(
    home: Path, environ: dict[str, str], project: Path
) -> None:
    found = config.locate(None, None, environ, project)
    assert (found.store, found.via, found.graph) == (home / ".graphmem" / "memory.db", "home", None)


def test_the_home_folder_can_be_moved(environ: dict[str, str], project: Path, tmp_path: Path) -> None:
    environ["GRAPHMEM_HOME"] = str(tmp_path / "elsewhere")
    found = config.locate(None, None, environ, project)
    assert found.home == tmp_path / "elsewhere"
    assert found.store == tmp_path / "elsewhere" / "memory.db"


def test_the_nearest_initialised_folder_wins_over_home_and_over_folders_above(
    environ: dict[str, str], project: Path
) -> None:
    below = project / "src" / "deep"
    below.mkdir(parents=True)
    config.init(project.parent, environ, project)
    config.init(project, environ, project)
    found = config.locate(None, None, environ, below)
    assert (found.store, found.via) == (project / ".graphmem" / "memory.db", "folder")


def test_the_variable_wins_over_the_folder_and_the_option_over_both(
    environ: dict[str, str], project: Path, tmp_path: Path
) -> None:
    config.init(project, environ, project)
    environ["GRAPHMEM_DB"] = str(tmp_path / "env.db")
    by_variable = config.locate(None, None, environ, project)
    by_option = config.locate(str(tmp_path / "opt.db"), None, environ, project)
    assert (by_variable.store, by_variable.via) == (tmp_path / "env.db", "environment")
    assert (by_option.store, by_option.via) == (tmp_path / "opt.db", "option")


def test_a_named_folder_holds_the_store_and_relative_paths_start_here(
    environ: dict[str, str], project: Path
) -> None:
    (project / "data").mkdir()
    assert config.locate("data", None, environ, project).store == project / "data" / "memory.db"
    assert config.locate(f"new{os.sep}", None, environ, project).store == project / "new" / "memory.db"
    assert config.locate("../x.db", None, environ, project).store == project.parent / "x.db"


def test_a_tilde_that_no_shell_expanded_is_the_home_folder(
    home: Path, environ: dict[str, str], project: Path
) -> None:
    environ["GRAPHMEM_DB"] = "~/stores/x.db"
    assert config.locate(None, None, environ, project).store == home / "stores" / "x.db"


def test_empty_variables_count_as_not_set(home: Path, environ: dict[str, str], project: Path) -> None:
    environ |= dict.fromkeys(("GRAPHMEM_DB", "GRAPHMEM_HOME", "GRAPHMEM_GRAPH", "GRAPHMEM_EMBEDDINGS"), "")
    found = config.locate(None, None, environ, project)
    assert (found.store, found.embeddings) == (home / ".graphmem" / "memory.db", True)


def test_an_empty_option_is_refused(environ: dict[str, str], project: Path) -> None:
    with pytest.raises(UsageError, match="--db is empty"):
        config.locate(" ", None, environ, project)


# ---- graphs -----------------------------------------------------------------------------------------


def test_a_graph_is_a_file_beside_the_store_it_would_have_been(
    environ: dict[str, str], project: Path, tmp_path: Path
) -> None:
    assert config.locate(None, "work", environ, project).store.name == "work.db"
    assert config.locate(str(tmp_path / "a.db"), "work", environ, project).store == tmp_path / "work.db"
    environ["GRAPHMEM_GRAPH"] = "other"
    assert config.locate(None, None, environ, project).graph == "other"
    assert config.locate(None, "work", environ, project).graph == "work"


@pytest.mark.parametrize("name", ["", "a/b", "..", "a.b", "a b", "é", "x" * 65, "work\n"])
def test_a_graph_name_of_other_characters_is_refused(
    name: str, environ: dict[str, str], project: Path
) -> None:
    with pytest.raises(UsageError, match="not a name for a graph"):
        config.locate(None, name, environ, project)


# ---- which folders count ----------------------------------------------------------------------------


def test_a_folder_that_another_tool_made_does_not_count(environ: dict[str, str], project: Path) -> None:
    (project / ".graphmem").mkdir()
    (project / ".graphmem" / "graph.db").touch()
    assert config.locate(None, None, environ, project).via == "home"


@pytest.mark.parametrize("marker", [b"", b"[]", b'{"format":"other"}', b"\xff\xfe", b"{" * 5000])
def test_a_marker_that_is_not_ours_does_not_count(
    marker: bytes, environ: dict[str, str], project: Path
) -> None:
    (project / ".graphmem").mkdir()
    (project / ".graphmem" / "graphmem.json").write_bytes(marker)
    assert config.locate(None, None, environ, project).via == "home"


def test_the_home_folders_never_count_by_walking_up(
    home: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    project = home / "project"
    project.mkdir()
    (home / ".graphmem").mkdir()
    (home / ".graphmem" / "graphmem.json").write_text('{"format":"graphmem"}')
    assert config.locate(None, None, environ, project).via == "home"
    environ["GRAPHMEM_HOME"] = str(tmp_path / "elsewhere")
    found = config.locate(None, None, environ, project)
    assert (found.via, found.store) == ("home", tmp_path / "elsewhere" / "memory.db")


# ---- init -------------------------------------------------------------------------------------------


def test_init_twice_makes_the_folder_once(environ: dict[str, str], project: Path) -> None:
    assert config.init(project, environ, project) == (project / ".graphmem", True)
    before = sorted(path.stat().st_mtime_ns for path in (project / ".graphmem").iterdir())
    assert config.init(project, environ, project) == (project / ".graphmem", False)
    assert sorted(path.stat().st_mtime_ns for path in (project / ".graphmem").iterdir()) == before


@needs_git
def test_git_ignores_what_init_makes(environ: dict[str, str], project: Path) -> None:
    run_git(project, "init", "-q")
    config.init(project, environ, project)
    (project / ".graphmem" / "memory.db").touch()
    status = subprocess.run(
        ("git", "-C", str(project), "status", "--porcelain", "-uall"), capture_output=True, check=True
    )
    assert status.stdout == b""


def test_init_leaves_another_programs_folder_alone(environ: dict[str, str], project: Path) -> None:
    (project / ".graphmem").mkdir()
    (project / ".graphmem" / "graph.db").touch()
    with pytest.raises(UsageError, match=r"another program's files: graph\.db"):
        config.init(project, environ, project)
    assert [path.name for path in (project / ".graphmem").iterdir()] == ["graph.db"]


def test_init_of_the_home_folder_is_refused(home: Path, environ: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="needs no init"):
        config.init(home, environ, home)
    assert not (home / ".graphmem").exists()


def test_init_where_a_file_is_in_the_way_is_an_error_and_no_crash(
    environ: dict[str, str], project: Path
) -> None:
    (project / ".graphmem").touch()
    with pytest.raises(StoreError, match="cannot make the folder"):
        config.init(project, environ, project)


@needs_posix
@pytest.mark.usefixtures("umask")
def test_what_is_made_is_readable_by_its_owner_alone_whatever_the_umask(
    environ: dict[str, str], project: Path, tmp_path: Path
) -> None:
    made, _ = config.init(project, environ, project)
    environ["GRAPHMEM_HOME"] = str(tmp_path / "a" / "b")
    config.trust(project, environ, project)
    assert made.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in made.iterdir()} == {0o600}
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b")} == {0o700}
    assert (tmp_path / "a" / "b" / "trusted.json").stat().st_mode & 0o777 == 0o600


def test_a_private_file_that_exists_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old")
    assert private.create_file(tmp_path / "x", b"new") is False
    assert (tmp_path / "x").read_text() == "old"


# ---- trust ------------------------------------------------------------------------------------------


@needs_git
def test_a_store_that_came_with_a_clone_is_refused_until_it_is_trusted(
    environ: dict[str, str], project: Path, tmp_path: Path
) -> None:
    clone = cloned(project, tmp_path, environ)
    with pytest.raises(StoreUntrusted, match="came with the Git repository") as refused:
        config.locate(None, None, environ, clone)
    assert f'gmem trust "{clone}"' in refused.value.hint
    assert config.trust(clone, environ, clone) == (clone / ".graphmem", True)
    assert config.trust(clone, environ, clone) == (clone / ".graphmem", False)
    assert config.locate(None, None, environ, clone).store == clone / ".graphmem" / "memory.db"


@needs_git
def test_trust_is_for_one_path(environ: dict[str, str], project: Path, tmp_path: Path) -> None:
    clone = cloned(project, tmp_path, environ)
    config.trust(clone, environ, clone)
    clone.rename(tmp_path / "moved")
    with pytest.raises(StoreUntrusted):
        config.locate(None, None, environ, tmp_path / "moved")


@needs_git
def test_a_store_named_by_option_or_variable_needs_no_trust(
    environ: dict[str, str], project: Path, tmp_path: Path
) -> None:
    clone = cloned(project, tmp_path, environ)
    assert config.locate(".graphmem", None, environ, clone).via == "option"
    environ["GRAPHMEM_DB"] = str(clone / ".graphmem" / "memory.db")
    assert config.locate(None, None, environ, clone).via == "environment"


@needs_git
def test_a_store_that_git_does_not_track_needs_no_trust(environ: dict[str, str], project: Path) -> None:
    run_git(project, "init", "-q")
    (project / "readme").touch()
    run_git(project, "add", "readme")
    config.init(project, environ, project)
    assert config.locate(None, None, environ, project).via == "folder"


@needs_git
def test_a_tracked_store_in_a_submodule_is_refused_too(
    environ: dict[str, str], project: Path, tmp_path: Path
) -> None:
    origin = cloned(project, tmp_path, environ)
    outer = tmp_path / "outer"
    outer.mkdir()
    run_git(outer, "init", "-q")
    run_git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(origin), "sub")
    with pytest.raises(StoreUntrusted):
        config.locate(None, None, environ, outer / "sub")


@needs_git
def test_a_folder_tracked_in_other_letter_case_is_refused(environ: dict[str, str], project: Path) -> None:
    run_git(project, "init", "-q")
    (project / ".GraphMem").mkdir()
    (project / ".GraphMem" / "graphmem.json").write_text('{"format":"graphmem"}')
    run_git(project, "add", ".GraphMem")
    config.init(project, environ, project)
    with pytest.raises(StoreUntrusted):
        config.locate(None, None, environ, project)


@needs_git
def test_a_false_bare_repository_inside_a_clone_hides_nothing(environ: dict[str, str], project: Path) -> None:
    run_git(project, "init", "-q")
    inner = project / "inner"
    run_git(project, "init", "-q", "--bare", "inner")
    run_git(inner, "config", "core.bare", "false")
    run_git(inner, "config", "core.worktree", "..")
    config.init(inner, environ, project)
    run_git(project, "add", "-f", "inner/.graphmem/graphmem.json")
    with pytest.raises(StoreUntrusted):
        config.locate(None, None, environ, inner)


@needs_git
def test_a_store_in_a_bare_repository_needs_no_trust(environ: dict[str, str], project: Path) -> None:
    run_git(project, "init", "-q", "--bare")
    config.init(project, environ, project)
    assert config.locate(None, None, environ, project).via == "folder"


@needs_git
def test_a_store_is_refused_where_git_cannot_tell(environ: dict[str, str], project: Path) -> None:
    run_git(project, "init", "-q")
    config.init(project, environ, project)
    (project / ".git" / "index").write_bytes(b"damaged")
    with pytest.raises(StoreUntrusted):
        config.locate(None, None, environ, project)


@needs_git
@needs_posix
def test_a_hostile_repository_configuration_runs_nothing(
    environ: dict[str, str], project: Path, tmp_path: Path
) -> None:
    clone = cloned(project, tmp_path, environ)
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch '{tmp_path}/sprung'\n")
    trap.chmod(0o755)
    for key in ("core.fsmonitor", "core.pager", "pager.ls-files", "core.editor", "alias.ls-files"):
        run_git(clone, "config", key, str(trap))
    with pytest.raises(StoreUntrusted):
        config.locate(None, None, environ, clone)
    assert not (tmp_path / "sprung").exists()


@needs_git
def test_variables_of_a_git_hook_do_not_mislead_the_check(
    environ: dict[str, str], project: Path, tmp_path: Path
) -> None:
    clone = cloned(project, tmp_path, environ)
    other = tmp_path / "other"
    other.mkdir()
    run_git(other, "init", "-q")
    environ |= {"GIT_DIR": str(other / ".git"), "GIT_INDEX_FILE": str(other / "nothing")}
    with pytest.raises(StoreUntrusted):
        config.locate(None, None, environ, clone)


@needs_git
@needs_posix
def test_a_git_program_in_a_relative_folder_is_not_run(
    environ: dict[str, str], project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = cloned(project, tmp_path, environ)
    (clone / "git").write_text(f"#!/bin/sh\n: > '{tmp_path}/sprung'\n")
    (clone / "git").chmod(0o755)
    monkeypatch.chdir(clone)
    environ["PATH"] = f".{os.pathsep}{os.pathsep}bin"
    with pytest.raises(StoreUntrusted):
        config.locate(None, None, environ, clone)
    assert not (tmp_path / "sprung").exists()


@needs_posix
@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root may give files away")
def test_a_folder_of_another_user_needs_trust(environ: dict[str, str], project: Path) -> None:
    made, _ = config.init(project, environ, project)
    os.chown(made, 12345, -1)
    with pytest.raises(StoreUntrusted, match="belongs to another user"):
        config.locate(None, None, environ, project)
    config.trust(project, environ, project)
    assert config.locate(None, None, environ, project).via == "folder"


def test_trust_without_a_folder_is_a_usage_error(environ: dict[str, str], project: Path) -> None:
    with pytest.raises(UsageError, match=r"no \.graphmem/ made by gmem"):
        config.trust(project, environ, project)


def test_a_damaged_record_of_trust_is_an_error_that_names_it(
    home: Path, environ: dict[str, str], project: Path
) -> None:
    config.init(project, environ, project)
    (home / ".graphmem").mkdir()
    (home / ".graphmem" / "trusted.json").write_text("{")
    with pytest.raises(StoreError, match=r"trusted\.json' cannot be read"):
        config.trust(project, environ, project)


def test_trusting_a_second_folder_keeps_the_first(
    home: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        config.init(tmp_path / name, environ, tmp_path)
        config.trust(tmp_path / name, environ, tmp_path)
    record = json.loads((home / ".graphmem" / "trusted.json").read_text())
    assert record["paths"] == [str(tmp_path / "a" / ".graphmem"), str(tmp_path / "b" / ".graphmem")]


# ---- the encoder ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "wanted"), [("off", False), ("OFF", False), ("0", False), ("on", True)])
def test_embeddings_are_switched_by_a_word(
    value: str, wanted: bool, environ: dict[str, str], project: Path
) -> None:
    environ["GRAPHMEM_EMBEDDINGS"] = value
    assert config.locate(None, None, environ, project).embeddings is wanted


def test_another_word_for_the_switch_is_refused(environ: dict[str, str], project: Path) -> None:
    environ["GRAPHMEM_EMBEDDINGS"] = "maybe"
    with pytest.raises(UsageError, match="GRAPHMEM_EMBEDDINGS is 'maybe'"):
        config.locate(None, None, environ, project)


def test_the_model_is_the_default_unless_one_is_named(environ: dict[str, str], project: Path) -> None:
    assert config.locate(None, None, environ, project).embedding_model == config.DEFAULT_MODEL
    environ["GRAPHMEM_EMBEDDING_MODEL"] = "some/model"
    assert config.locate(None, None, environ, project).embedding_model == "some/model"
