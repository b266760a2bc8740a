"""The command line as a whole: lazy commands, exit statuses, errors in two forms, and no tracebacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, NoReturn

import click
import pytest

from graphmem import __version__, errors
from graphmem.cli import main
from graphmem.cli.group import _TABLE, COMMANDS, gmem
from graphmem.schema import NAMES, schema


class Done(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith(("GRAPHMEM_", "_GMEM"))]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # which would hide what happens at the last flush
    made = tmp_path / "user"
    made.mkdir()
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.setenv("USERPROFILE", str(made))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return made


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def runner(*args: str) -> Done:
        status = main(args)
        return Done(status, *capsys.readouterr())

    return runner


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """A command `fail` that raises what it is given."""

    def install(error: BaseException) -> None:
        @click.command()
        @click.option("--json", is_flag=True)
        def fail(json: bool) -> NoReturn:
            raise error

        monkeypatch.setitem(COMMANDS, "fail", f"{__name__}:failing_command")
        monkeypatch.setitem(globals(), "failing_command", fail)

    return install


def process(*args: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    command = (sys.executable, "-m", "graphmem", *args)
    return subprocess.run(command, capture_output=True, check=False, env=env)


# ---- help and the table of commands -----------------------------------------------------------------


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_lists_every_command_with_its_line(run: Run, flag: str) -> None:
    done = run(flag)
    assert (done.status, done.err) == (0, "")
    for _, name, _, line in _TABLE:
        assert f"  {name} " in done.out
        assert line in done.out


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_in_the_table_is_the_first_line_of_the_commands_help(name: str) -> None:
    command = gmem.get_command(click.Context(gmem), name)
    assert command is not None
    line = next(line for _, known, _, line in _TABLE if known == name)
    assert line == (command.help or "").split("\n")[0]
    assert command.name == name


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_takes_the_standard_options(name: str) -> None:
    command = gmem.get_command(click.Context(gmem), name)
    assert command is not None
    taken = {option for parameter in command.params for option in parameter.opts}
    assert taken >= {"--db", "--graph", "--json"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_has_help(name: str) -> None:
    command = gmem.get_command(click.Context(gmem), name)
    assert command is not None
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    assert all(option.help for option in options)


def imported_by(*args: str) -> set[str]:
    code = (
        "import sys; from graphmem.cli import main; main(sys.argv[1:]); "
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run((sys.executable, "-c", code, *args), capture_output=True, check=True, text=True)
    return set(done.stderr.split())


def test_help_imports_no_command_and_nothing_of_the_core() -> None:
    ours = {name for name in imported_by("--help") if name.startswith("graphmem.")}
    assert ours == {"graphmem.cli", "graphmem.cli.group", "graphmem.errors"}


def test_a_command_imports_itself_and_no_other() -> None:
    loaded = imported_by("schema", "--help")
    assert "graphmem.cli.schema" in loaded
    assert not loaded & {"graphmem.cli.init", "graphmem.cli.trust", "numpy", "yaml", "apsw", "tqdm"}


def test_the_version_is_printed_without_reading_metadata() -> None:
    done = process("--version")
    assert done.stdout.decode() == f"graphmem {__version__}{os.linesep}"
    assert "importlib.metadata" not in imported_by("--version")


def test_without_a_command_the_help_goes_to_stderr_and_the_status_says_usage(run: Run) -> None:
    done = run()
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("Usage: gmem")


# ---- errors -----------------------------------------------------------------------------------------


def test_an_unknown_command_is_a_usage_error_with_a_suggestion(run: Run) -> None:
    done = run("shema")
    assert (done.status, done.out) == (2, "")
    assert done.err == (
        "error: there is no command 'shema' [usage]\n  did you mean: schema\n  hint: see 'gmem --help'\n"
    )


def test_an_unknown_option_is_a_usage_error_in_our_form(run: Run) -> None:
    done = run("init", "--jsn")
    assert done.status == 2
    assert done.err.startswith("error: no such option")
    assert "[usage]\n  did you mean: --json\n  hint: see 'gmem init --help'\n" in done.err


def test_an_option_before_the_command_is_told_where_it_goes(run: Run) -> None:
    assert "hint: options come after the command; see 'gmem --help'" in run("--db", "x", "init").err


def test_a_bad_argument_is_a_usage_error(run: Run) -> None:
    done = run("schema", "nonsense")
    assert done.status == 2
    assert done.err.startswith("error: invalid value for '")
    assert done.err.count("\n") == 2


def test_with_json_an_error_is_an_object_on_stdout_and_text_on_stderr(run: Run) -> None:
    done = run("shema", "--json")
    assert done.status == 2
    assert json.loads(done.out) == {
        "ok": False,
        "error": {
            "code": "usage",
            "message": "there is no command 'shema'",
            "hint": "see 'gmem --help'",
            "suggestions": ["schema"],
        },
    }
    assert done.err.startswith("error: there is no command 'shema' [usage]\n")


def test_json_after_two_dashes_is_an_argument(run: Run) -> None:
    assert run("shema", "--", "--json").out == ""


def all_errors(base: type[errors.GraphmemError] = errors.GraphmemError) -> list[type[errors.GraphmemError]]:
    return [base, *(one for below in base.__subclasses__() for one in all_errors(below))]


@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.code)
def test_every_error_ends_with_its_code_and_status(
    kind: type[errors.GraphmemError], run: Run, failing: Callable[[BaseException], None]
) -> None:
    failing(kind("it's {0} %s [red]", "do x", ("a", "b")))
    done = run("fail")
    assert done.status == kind.exit_status
    assert done.err == f"error: it's {{0}} %s [red] [{kind.code}]\n  did you mean: a, b\n  hint: do x\n"


def test_an_interrupt_ends_with_130(run: Run, failing: Callable[[BaseException], None]) -> None:
    failing(KeyboardInterrupt())
    done = run("fail")
    assert (done.status, done.out, done.err) == (130, "", "error: interrupted [interrupted]\n")


def test_a_bug_is_one_line_and_the_traceback_is_in_a_private_log(
    run: Run, failing: Callable[[BaseException], None], home: Path
) -> None:
    failing(ValueError("odd \x1b[31m thing"))
    done = run("fail", "--json")
    log = home / ".graphmem" / "logs" / "gmem.log"
    assert done.status == 2
    assert done.err == (
        "error: internal error: ValueError: odd \\x1b[31m thing [internal]\n"
        f"  hint: the details are in '{log}'\n"
    )
    assert json.loads(done.out)["error"]["code"] == "internal"
    assert "Traceback (most recent call last)" in log.read_text()
    if os.name == "posix":
        assert (log.parent.stat().st_mode & 0o777, log.stat().st_mode & 0o777) == (0o700, 0o600)


def test_a_log_that_has_grown_large_is_put_aside(
    run: Run, failing: Callable[[BaseException], None], home: Path
) -> None:
    failing(ValueError("x"))
    run("fail")
    log = home / ".graphmem" / "logs" / "gmem.log"
    log.write_bytes(b"old" * 400_000)
    run("fail")
    assert log.stat().st_size < 10_000
    assert log.with_name("gmem.log.1").stat().st_size == 1_200_000


def test_a_bug_shows_its_traceback_on_request(
    run: Run, failing: Callable[[BaseException], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHMEM_DEBUG", "1")
    failing(ValueError("x"))
    assert "Traceback (most recent call last)" in run("fail").err


def test_a_bug_where_no_log_can_be_written_is_still_one_line(
    run: Run, failing: Callable[[BaseException], None], monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    (home / "file").touch()
    monkeypatch.setenv("GRAPHMEM_HOME", str(home / "file"))
    failing(ValueError("x"))
    assert run("fail").err.startswith("error: internal error: ValueError: x [internal]\n  hint: run it again")


@pytest.mark.parametrize("error", [RecursionError("deep"), MemoryError(), EOFError("cut"), OSError(5, "io")])
def test_other_faults_of_the_machine_end_the_same_way(
    error: BaseException, run: Run, failing: Callable[[BaseException], None]
) -> None:
    failing(error)
    done = run("fail")
    assert done.status == 2
    assert done.err.startswith(f"error: internal error: {type(error).__name__}")


# ---- output -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("args", [("schema",), ("schema", "manifest"), ("--help",)], ids=" ".join)
def test_a_reader_who_leaves_ends_the_command_quietly(args: tuple[str, ...], home: Path) -> None:
    writer = subprocess.Popen(
        (sys.executable, "-m", "graphmem", *args), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert writer.stdout is not None
    assert writer.stderr is not None
    writer.stdout.close()
    assert writer.stderr.read() == b""
    writer.stderr.close()
    assert writer.wait() == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("args", [("schema",), ("schema", "manifest")], ids=" ".join)
def test_output_that_cannot_be_written_is_an_error(args: tuple[str, ...], home: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            (sys.executable, "-m", "graphmem", *args), stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 2
    assert done.stderr == b"error: cannot write the output: no space left on device [error]\n"


@pytest.mark.skipif(os.name != "posix", reason="closing a stream by the shell is POSIX")
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-"])
def test_closed_streams_are_no_crash(closed: str, home: Path) -> None:
    command = (
        f'"{sys.executable}" -m graphmem schema {closed}; "{sys.executable}" -m graphmem nonsense {closed}'
    )
    done = subprocess.run(("sh", "-c", command), capture_output=True, check=False)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "cp932"])
def test_names_that_the_terminal_cannot_show_are_escaped(encoding: str, home: Path) -> None:
    folder = Path.cwd() / "大きさ 😀"
    folder.mkdir()
    environ = os.environ | {"PYTHONIOENCODING": encoding, "LC_ALL": "C"}
    text = process("init", str(folder), env=environ)
    as_json = process("init", str(folder), "--json", env=environ)
    failed = process("trust", "😀", env=environ)
    assert (text.returncode, as_json.returncode, failed.returncode) == (0, 0, 2)
    assert b"\\U0001f600" in text.stdout
    assert json.loads(as_json.stdout.decode(encoding))["folder"] == str(folder / ".graphmem")
    assert b"\\U0001f600" in failed.stderr


def test_shell_completion_is_offered(home: Path) -> None:
    environ = os.environ | {"_GMEM_COMPLETE": "bash_complete", "COMP_WORDS": "gmem ", "COMP_CWORD": "1"}
    done = process(env=environ)
    assert done.returncode == 0
    assert {line.split(",")[1] for line in done.stdout.decode().split()} == set(COMMANDS)


# ---- init, trust, schema ----------------------------------------------------------------------------


def test_init_tells_where_the_store_will_be(run: Run) -> None:
    made = Path.cwd() / ".graphmem"
    assert run("init").out == f"made {made}\nstore: {made / 'memory.db'}\n"
    assert run("init").out == f"already there: {made}\nstore: {made / 'memory.db'}\n"


def test_init_of_another_folder_names_the_graph_asked_for(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    done = run("init", str(tmp_path / "other"), "--graph", "work", "--json")
    made = tmp_path / "other" / ".graphmem"
    assert json.loads(done.out) == {
        "folder": str(made),
        "created": True,
        "store": str(made / "work.db"),
        "via": "folder",
    }


def test_init_says_when_something_else_comes_first(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert f"note: --db is given and comes first: '{tmp_path / 'a.db'}'" in run("init", "--db", "../a.db").err
    monkeypatch.setenv("GRAPHMEM_DB", str(tmp_path / "b.db"))
    assert f"note: GRAPHMEM_DB is given and comes first: '{tmp_path / 'b.db'}'" in run("init").err


def test_init_of_a_folder_that_is_not_there_is_a_usage_error(run: Run) -> None:
    done = run("init", "nowhere")
    assert done.status == 2
    assert "'nowhere' does not exist [usage]" in done.err


def test_trust_tells_what_it_trusts(run: Run) -> None:
    run("init")
    made = Path.cwd() / ".graphmem"
    assert run("trust").out == f"trusted {made}\nstore: {made / 'memory.db'}\n"
    assert json.loads(run("trust", "--json").out)["new"] is False


def test_trust_without_a_folder_is_a_usage_error(run: Run) -> None:
    assert run("trust").status == 2


def test_a_current_folder_that_is_gone_is_a_usage_error(run: Run, tmp_path: Path) -> None:
    if os.name != "posix":
        pytest.skip("the current folder cannot be removed")
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    done = run("init", "/")
    os.chdir(tmp_path)
    assert done.status == 2
    assert "the current folder does not exist any more" in done.err


@pytest.mark.parametrize("name", NAMES)
def test_schema_prints_the_schema_of_that_name(name: str, run: Run) -> None:
    done = run("schema", name)
    assert json.loads(done.out) == schema(name)
    assert run("schema", name, "--json").out == done.out


def test_schema_prints_that_of_any_record_unless_told_otherwise(run: Run) -> None:
    assert json.loads(run("schema").out) == schema("record")
