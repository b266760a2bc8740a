"""Scopes: their syntax, the scope of a folder, and mapping them between machines."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from command_line import as_root

from graphmem import scopes
from graphmem.errors import UsageError


def run_git(folder: Path, *args: str) -> None:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(("git", *identity, "-C", str(folder), *args), check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    made = tmp_path / "repository"
    made.mkdir()
    run_git(made, "init", "-q")
    (made / "src").mkdir()
    run_git(made, "commit", "-q", "--allow-empty", "-m", "first")
    return made


# ---- syntax -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scope",
    [
        "global",
        "repo:/home/ada/shop/.git",
        "repo:C:\\work\\shop",
        "repo:c:/code/shop",
        "repo:\\\\server\\share\\shop",
        "repo:/with space/and=sign/ ",
        "team:payments",
        "x:1",
        "my-kind_2:Größe, 大きさ 😀",
        "kind:with:colons",
        "repo:/" + "x" * 1018,
    ],
)
def test_these_are_scopes(scope: str) -> None:
    assert scopes.is_scope(scope)


@pytest.mark.parametrize(
    "scope",
    [
        "",
        "Global",
        "global\n",
        "repo:",
        "repo:relative/path",
        "repo:~/x",
        "kind:",
        "kind: ",
        "kind: x",
        "kind:x ",
        "Kind:x",
        "2kind:x",
        "no kind",
        "kind:a\nb",
        "repo:/a\x00b",
        "repo:/a\x1b[31m",
        "kind:a\x85b",
        "kind:\ud800",
        "repo:/" + "x" * 1019,
    ],
)
def test_these_are_not(scope: str) -> None:
    assert not scopes.is_scope(scope)
    with pytest.raises(UsageError, match="is not a scope"):
        scopes.checked(scope)


def test_a_read_sees_its_scope_first_and_then_global() -> None:
    assert scopes.visible_scopes("team:x") == ("team:x", "global")
    assert scopes.visible_scopes("global") == ("global",)


# ---- the scope of a folder --------------------------------------------------------------------------


def test_outside_a_repository_the_scope_is_global(tmp_path: Path) -> None:
    assert scopes.default_scope(tmp_path) == "global"


def test_inside_a_repository_the_scope_is_its_common_directory(repository: Path) -> None:
    assert scopes.default_scope(repository / "src") == f"repo:{repository / '.git'}"
    assert scopes.default_scope(repository / ".git" / "refs") == f"repo:{repository / '.git'}"


def test_linked_worktrees_share_the_scope(repository: Path, tmp_path: Path) -> None:
    run_git(repository, "worktree", "add", "-q", str(tmp_path / "linked"))
    assert scopes.default_scope(tmp_path / "linked") == scopes.default_scope(repository)


def test_git_itself_names_the_same_directory(repository: Path, tmp_path: Path) -> None:
    run_git(repository, "worktree", "add", "-q", str(tmp_path / "linked"))
    run_git(tmp_path, "init", "-q", "--separate-git-dir", str(tmp_path / "apart"), "separate")
    run_git(tmp_path, "clone", "-q", "--bare", str(repository), "bare.git")
    for folder in (repository, tmp_path / "linked", tmp_path / "separate", tmp_path / "bare.git"):
        said = subprocess.run(
            ("git", "-C", str(folder), "rev-parse", "--path-format=absolute", "--git-common-dir"),
            check=True,
            capture_output=True,
        )
        assert scopes.default_scope(folder) == f"repo:{os.fsdecode(said.stdout).strip()}"


def test_a_submodule_is_a_repository_of_its_own(repository: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    run_git(outer, "init", "-q")
    run_git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repository), "sub")
    assert scopes.default_scope(outer / "sub") == f"repo:{outer}/.git/modules/sub"


def test_links_lead_to_the_same_scope(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repository, target_is_directory=True)
    assert scopes.default_scope(tmp_path / "link" / "src") == scopes.default_scope(repository)


def test_a_worktree_whose_repository_is_out_of_reach_keeps_its_scope(
    repository: Path, tmp_path: Path
) -> None:
    run_git(repository, "worktree", "add", "-q", str(tmp_path / "linked"))
    scope = scopes.default_scope(tmp_path / "linked")
    repository.rename(tmp_path / "gone")
    assert scopes.default_scope(tmp_path / "linked") == scope


@pytest.mark.parametrize("text", [b"", b"nonsense", b"gitdir:", b"gitdir: \x00", b"\xff\xfe"])
def test_a_git_file_that_names_nothing_is_not_a_repository(text: bytes, tmp_path: Path) -> None:
    (tmp_path / ".git").write_bytes(text)
    assert scopes.default_scope(tmp_path) == "global"


def test_an_empty_git_folder_is_not_a_repository(repository: Path) -> None:
    (repository / "src" / ".git").mkdir()
    assert scopes.default_scope(repository / "src") == f"repo:{repository / '.git'}"


@pytest.mark.skipif(os.name != "posix", reason="such names exist on POSIX only")
def test_a_path_that_cannot_be_a_scope_is_an_error_and_never_global(tmp_path: Path) -> None:
    odd = tmp_path / "a\nb"
    odd.mkdir()
    run_git(odd, "init", "-q")
    with pytest.raises(UsageError, match="cannot be a scope"):
        scopes.default_scope(odd)


def test_the_path_of_a_checkout_given_as_a_scope_means_its_repository(
    repository: Path, tmp_path: Path
) -> None:
    scope = f"repo:{repository / '.git'}"
    run_git(repository, "worktree", "add", "-q", str(tmp_path / "linked"))
    assert scopes.given(f"repo:{repository}") == scope
    assert scopes.given(f"repo:{repository}/") == scope
    assert scopes.given(f"repo:{tmp_path / 'linked'}") == scope
    assert scopes.given(scope) == scope


def test_other_scopes_are_taken_as_given(repository: Path) -> None:
    for scope in ("global", "team:x", "repo:/not/here/at-all", f"repo:{repository / 'src'}"):
        assert scopes.given(scope) == scope


# ---- mapping ----------------------------------------------------------------------------------------


def test_a_mapped_scope_is_replaced_and_others_stay() -> None:
    mapping = scopes.parse_scope_map(["team:a=team:b", "repo:/x/.git=global"])
    moved = [scopes.map_scope(scope, mapping) for scope in ("team:a", "repo:/x/.git", "team:aa", "global")]
    assert moved == ["team:b", "global", "team:aa", "global"]


def test_what_lies_below_a_mapped_path_moves_along() -> None:
    mapping = scopes.parse_scope_map(["repo:/home/ada=repo:/Users/ada", "repo:/home/ada/old/=repo:/archive"])
    assert scopes.map_scope("repo:/home/ada/shop/.git", mapping) == "repo:/Users/ada/shop/.git"
    assert scopes.map_scope("repo:/home/ada/old/x/.git", mapping) == "repo:/archive/x/.git"
    assert scopes.map_scope("repo:/home/adam/.git", mapping) == "repo:/home/adam/.git"


def test_paths_move_between_kinds_of_machines() -> None:
    to_windows = scopes.parse_scope_map(["repo:/home/ada=repo:C:\\Users\\ada"])
    to_posix = scopes.parse_scope_map(["repo:C:\\Users\\ada=repo:/home/ada"])
    assert scopes.map_scope("repo:/home/ada/shop/.git", to_windows) == "repo:C:\\Users\\ada\\shop\\.git"
    assert scopes.map_scope("repo:C:\\Users\\ada\\shop\\.git", to_posix) == "repo:/home/ada/shop/.git"


def test_a_path_below_is_not_mapped_to_a_scope_that_is_no_path() -> None:
    mapping = scopes.parse_scope_map(["repo:/home/ada=team:a"])
    assert scopes.map_scope("repo:/home/ada/shop/.git", mapping) == "repo:/home/ada/shop/.git"


def test_paths_with_an_equals_sign_are_cut_where_both_sides_are_scopes() -> None:
    assert scopes.parse_scope_map(["repo:/a=b=repo:/c"]) == {"repo:/a=b": "repo:/c"}


@pytest.mark.parametrize("option", ["", "x", "=", "team:a=", "=team:a", "team:a=nothing", "relative=global"])
def test_a_mapping_without_two_scopes_is_refused(option: str) -> None:
    with pytest.raises(UsageError, match="is not OLD=NEW"):
        scopes.parse_scope_map([option])


def test_a_mapping_that_can_be_cut_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="several ways"):
        scopes.parse_scope_map(["team:a=team:b=team:c"])


def test_one_scope_mapped_to_two_is_refused() -> None:
    with pytest.raises(UsageError, match="mapped twice"):
        scopes.parse_scope_map(["team:a=team:b", "team:a=team:c"])


def test_a_folder_that_may_not_be_looked_into_is_no_repository(guarded: Path, nobody: None) -> None:
    def put() -> None:
        (guarded / "closed").mkdir(mode=0o700)
        (guarded / "closed" / "inside").mkdir()

    as_root(put)
    if os.geteuid() == os.getuid():
        (guarded / "closed").chmod(0)
    assert scopes.default_scope(guarded / "closed" / "inside") == "global"
