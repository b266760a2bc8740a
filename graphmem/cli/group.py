"""The `gmem` group: the table of commands, each imported only when it runs."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Final, NoReturn

import click

from graphmem import __version__
from graphmem.errors import EXIT_USAGE

# Section, command, where it is, its one line in `gmem --help` (a test compares it with the command's).
_TABLE: Final = (
    ("Data in and out", "import", "graphmem.cli.import_:import_", "Read files into the store."),
    ("Data in and out", "sync", "graphmem.cli.sync:sync_", "Make the store follow folders."),
    ("Data in and out", "export", "graphmem.cli.export:export", "Write what the store holds to files."),
    ("Data in and out", "validate", "graphmem.cli.validate:validate", "Check files, or the store."),
    ("Data in and out", "backup", "graphmem.cli.backup:backup", "Write the store to one checked file."),
    ("Data in and out", "restore", "graphmem.cli.restore:restore", "Make the store what a backup holds."),
    ("Data in and out", "schema", "graphmem.cli.schema:schema", "Print the JSON Schema of a record."),
    ("Memories", "remember", "graphmem.cli.remember:remember", "Remember something."),
    ("Memories", "search", "graphmem.cli.search:search", "Find memories, facts and entities."),
    ("Memories", "list", "graphmem.cli.list_:list_", "List memories."),
    ("Memories", "show", "graphmem.cli.show:show", "Show a memory, an entity or a relation."),
    ("Memories", "update", "graphmem.cli.update:update", "Change an item in place."),
    ("Memories", "forget", "graphmem.cli.forget:forget", "Forget memories, relations or entities."),
    ("Memories", "relate", "graphmem.cli.relate:relate", "Relate two entities."),
    ("The graph", "graph", "graphmem.cli.graph:graph_", "Show what is around entities."),
    ("The graph", "path", "graphmem.cli.path:path", "Show all shortest paths between two entities."),
    ("The graph", "entities", "graphmem.cli.entities:entities", "List entities."),
    ("The graph", "resolve", "graphmem.cli.resolve:resolve", "Say which entity a name means."),
    ("The graph", "merge", "graphmem.cli.merge:merge", "Make two entities one."),
    ("The graph", "rename", "graphmem.cli.rename:rename", "Give an entity another name."),
    ("The graph", "alias", "graphmem.cli.alias:alias", "Give an entity further names."),
    ("The store", "init", "graphmem.cli.init:init", "Give a project a store of its own."),
    ("The store", "trust", "graphmem.cli.trust:trust", "Allow a store that came with a repository."),
    ("The store", "status", "graphmem.cli.status:status", "Tell what the store holds."),
    ("The store", "doctor", "graphmem.cli.doctor:doctor", "Find what is wrong, and mend what can be mended."),
    ("The store", "scopes", "graphmem.cli.scopes:scopes", "List scopes, or give one another name."),
    ("The store", "graphs", "graphmem.cli.graphs:graphs", "List, create or delete graphs."),
    ("The store", "log", "graphmem.cli.log:log", "Show what was done to the store."),
    ("The store", "undo", "graphmem.cli.undo:undo", "Take back what a command did."),
    ("The store", "reindex", "graphmem.cli.reindex:reindex", "Look for names in all memories anew."),
    ("The store", "reembed", "graphmem.cli.reembed:reembed", "Make missing vectors, or all anew."),
    ("The store", "flush", "graphmem.cli.flush:flush", "Empty the store for good."),
    ("Serving", "mcp", "graphmem.cli.mcp:mcp", "Serve the store to an MCP client."),
)
COMMANDS: Final = {name: target for _, name, target, _ in _TABLE}
"""Every command and where it is, `module:attribute`."""


class UnknownCommand(click.UsageError):
    """There is no command of that name; `possibilities` has close ones."""

    def __init__(self, name: str, ctx: click.Context) -> None:
        from difflib import get_close_matches

        super().__init__(f"there is no command '{name}'", ctx)
        self.possibilities = get_close_matches(name, COMMANDS)


class Commands(click.Group):
    """A group that knows its commands by name and line of help, and imports the one that is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of that name, imported now; `None` when there is none."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name].split(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first argument names; close names are suggested where there is none."""
        name = args[0]
        if name == "help":
            self._help(ctx, args[1:])
        command = self.get_command(ctx, name)
        if command is not None:
            return name, command, args[1:]
        if name.startswith("-"):
            raise click.NoSuchOption(name, ctx=ctx)
        raise UnknownCommand(name, ctx)

    def _help(self, ctx: click.Context, args: list[str]) -> NoReturn:
        """Prints what `--help` prints, of a command if one is named."""
        if args:
            name, command, _ = self.resolve_command(ctx, args)
            assert command is not None
            ctx = click.Context(command, info_name=name, parent=ctx)
        click.echo(ctx.get_help())
        ctx.exit()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The commands by section, in the order of the table."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for section, name, _, line in _TABLE:
            sections.setdefault(section, []).append((name, line))
        width = max(len(name) for name in COMMANDS)
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(width), line) for name, line in rows])


@click.group(
    "gmem",
    cls=Commands,
    invoke_without_command=True,
    subcommand_metavar="COMMAND ...",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 done, 1 findings or something not stored, 2 usage or tool error, "
    "3 nothing usable, 4 store busy, 5 integrity, 130 interrupted.",
)
@click.version_option(__version__, prog_name="graphmem", message="%(prog)s %(version)s")
@click.pass_context
def gmem(ctx: click.Context) -> int | None:
    """Local graph memory in one SQLite file.

    Every command takes --db, --graph, --json and --help.
    """
    if ctx.invoked_subcommand is not None:
        return None
    click.echo(ctx.get_help(), err=True)
    return EXIT_USAGE


def run(args: list[str]) -> int:
    """Run a command line and return its exit status. Raises what the command and click raise."""
    if "_GMEM_COMPLETE" in os.environ:
        gmem.main(list(args), prog_name="gmem")
    try:
        with gmem.make_context("gmem", list(args)) as ctx:
            status = gmem.invoke(ctx)
    except click.exceptions.Exit as done:
        return done.exit_code
    return status if isinstance(status, int) else 0
