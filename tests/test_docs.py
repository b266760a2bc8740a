"""The pages of docs/ say of the code what is true, all of it, and nothing else.

`pytest tests/test_docs.py --update` rewrites the tables that are made from the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from graphmem import errors, formats
from graphmem.cli.group import COMMANDS, Commands, gmem
from graphmem.findings import RULES

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
INTERNAL = "internal"
"""The code of a fault of graphmem itself, which has no class."""


def _page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def _command(name: str) -> click.Command:
    assert isinstance(gmem, Commands)
    command = gmem.get_command(click.Context(gmem), name)
    assert command is not None
    return command


def _section(page: str, heading: str) -> str:
    """What stands under a heading, up to the next one of its level."""
    level = heading.partition(" ")[0]
    return re.split(rf"^{level} ", page.partition(f"\n{heading}\n")[2], flags=re.MULTILINE)[0]


# ---- commands -------------------------------------------------------------------------------------


def test_every_command_has_a_section_and_every_section_a_command() -> None:
    sections = re.findall(r"^## gmem (\S+)$", _page("cli.md"), re.MULTILINE)

    assert sections == sorted(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_section_names_every_option_of_its_command_and_no_other(name: str) -> None:
    options = {
        long
        for parameter in _command(name).params
        if isinstance(parameter, click.Option) and not parameter.hidden
        for long in (*parameter.opts, *parameter.secondary_opts)
        if long.startswith("--")
    }
    section = _section(_page("cli.md"), f"## gmem {name}")
    blocks = re.findall(r"```console\n.*?```", section, re.DOTALL)
    for example in blocks[1:]:
        section = section.replace(example, "")

    assert blocks, f"write a block with '$ gmem {name} --help', and run tests/test_transcripts.py --update"
    assert f"$ gmem {name} --help\n" in blocks[0]
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", section)) == options | {"--help"}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_and_all_its_options_have_a_help_text(name: str) -> None:
    command = _command(name)

    assert command.help
    assert [one.name for one in command.params if isinstance(one, click.Option) and not one.help] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_no_command_or_option_that_is_not_there(page: Path) -> None:
    known = {"--help", "--version", *re.findall(r"--[a-z][a-z-]*", _page("cli.md"))}
    text = page.read_text(encoding="utf-8")
    spans = re.findall(r"`(gmem [^`]+)`", text) + re.findall(r"^\$ (gmem .+)$", text, re.MULTILINE)

    for span in spans:
        words = span.split()
        assert words[1] in {*COMMANDS, "COMMAND"} or words[1].startswith("--"), span
        assert {word for word in words if word.startswith("--")} <= known, span


# ---- findings and errors --------------------------------------------------------------------------


def _rules_table() -> list[str]:
    rows = [f"| `{one.id}` | {one.severity.word} | {one.summary} | {one.hint} |" for one in RULES.values()]
    return ["| rule | severity | what it means | what to do |", "| --- | --- | --- | --- |", *sorted(rows)]


def _error_classes(
    base: type[errors.GraphmemError] = errors.GraphmemError,
) -> Iterator[type[errors.GraphmemError]]:
    yield base
    for each in base.__subclasses__():
        yield from _error_classes(each)


def _errors_table() -> list[str]:
    rows = [
        f"| `{one.code}` | {one.exit_status} | `{one.__name__}` | {(one.__doc__ or '').split(chr(10))[0]} |"
        for one in _error_classes()
        if one.__module__ == errors.__name__
    ]
    rows.append(
        f"| `{INTERNAL}` | {errors.EXIT_USAGE} | | A fault of graphmem itself; the details are in its log. |"
    )
    return ["| code | status | class | what it means |", "| --- | --- | --- | --- |", *sorted(rows)]


@pytest.mark.parametrize(("name", "table"), [("rules", _rules_table()), ("errors", _errors_table())])
def test_a_table_of_the_errors_page_is_that_of_the_code(
    name: str, table: list[str], request: pytest.FixtureRequest
) -> None:
    page = _page("errors.md")
    before, _, rest = page.partition(f"<!-- {name}: made by tests/test_docs.py -->\n")
    shown, _, after = rest.partition("<!-- end -->")
    if request.config.getoption("--update"):
        shown = "".join(f"{line}\n" for line in table)
        text = f"{before}<!-- {name}: made by tests/test_docs.py -->\n{shown}<!-- end -->{after}"
        (DOCS / "errors.md").write_text(text, encoding="utf-8")

    assert shown.splitlines() == table


def test_codes_of_errors_are_told_apart() -> None:
    codes = [one.code for one in _error_classes() if one.__module__ == errors.__name__]

    assert sorted(codes) == sorted({*codes} - {INTERNAL})


def test_the_exit_statuses_are_those_of_the_code() -> None:
    listed = re.findall(r"^\| (\d+) \|", _section(_page("errors.md"), "## Exit statuses"), re.MULTILINE)

    assert {int(one) for one in listed} == {
        value for name, value in vars(errors).items() if name.startswith("EXIT_")
    }


# ---- formats, variables, links --------------------------------------------------------------------


def test_every_format_is_in_the_table_of_formats() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| (yes|no) \| (yes|no) \|", _page("formats.md"), re.MULTILINE)
    read, written = formats.importer_points(), formats.exporter_points()

    assert {name: (reads, writes) for name, reads, writes in rows} == {
        name: ("yes" if name in read else "no", "yes" if name in written else "no")
        for name in {*read, *written}
    }


def test_every_variable_that_is_read_is_documented_and_no_other() -> None:
    code = [
        path for folder in ("graphmem", "importers", "exporters") for path in (ROOT / folder).rglob("*.py")
    ]
    variable = re.compile(r"\bGRAPHMEM_[A-Z_]+\b")
    in_code = {name for path in code for name in variable.findall(path.read_text(encoding="utf-8"))}
    told = set(re.findall(r"^\| `(GRAPHMEM_[A-Z_]+)` \|", _page("cli.md"), re.MULTILINE))
    mentioned = {name for page in PAGES for name in variable.findall(page.read_text(encoding="utf-8"))}

    assert told == in_code
    assert mentioned <= told


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_links_only_to_what_is_there(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))

    assert [link for link in links if not (page.parent / link).exists()] == []
