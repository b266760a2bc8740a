"""`gmem validate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from graphmem import scopes
from graphmem.cli._import_report import left_out
from graphmem.cli._inputs import SEVERITIES, brief, input_options, terminable
from graphmem.cli._progress import Bar
from graphmem.cli._shared import configuration, here, note, number, say, standard_options
from graphmem.cli._targets import check_targets
from graphmem.commit import Choices
from graphmem.errors import EXIT_DONE, EXIT_FINDINGS, EXIT_INTEGRITY, UsageError
from graphmem.findings import Severity
from graphmem.options import ImportOptions
from graphmem.outcome import ImportReport
from graphmem.outfile import replacing
from graphmem.render import STYLES, counts, render, summary
from graphmem.terminal import to_json, visible
from graphmem.validate import validate as check_files


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1)
@input_options
@click.option("--scope", metavar="SCOPE", help="The scope of records that name none.")
@click.option("--against", is_flag=True, help="Check what would become of the records in the store.")
@click.option("--store", "of_store", is_flag=True, help="Check the store itself, and no files.")
@click.option(
    "--format", "style", type=click.Choice(STYLES), help="How to print the findings.  [default: text]"
)
@click.option(
    "--output",
    "target",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the findings there and not to stdout.",
)
@click.option("--no-progress", is_flag=True, help="Show no progress bar.")
@standard_options
def validate(
    files: tuple[str, ...], from_: str | None, encoding: str | None, dangling: str, max_errors: int | None,
    fail_on: str, scope: str | None, against: bool, of_store: bool, style: str | None, target: Path | None,
    no_progress: bool, db: str | None, graph: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Check files, or the store.

    FILE is what 'gmem import' takes: a file, a folder, a glob, or '-'. All inputs are checked together, as
    one import into an empty store would see them: no store, no model and no network is needed, and nothing
    is changed. --against takes them as added to the store that --db and --graph name.

    --store checks a store: the file, its indexes, and that everything in it that belongs together does.

    --json is --format json. As text, of many notes of one rule only the first are printed.
    """
    if as_json and style not in (None, "json"):
        raise UsageError("--json and --format do not go together", "leave one of them out")
    style = "json" if as_json else style or "text"
    if of_store:
        if files or against:
            raise UsageError("--store takes no files and no --against", "check files without --store")
        return _check_store(db, graph, style, target, SEVERITIES[fail_on])
    if not files:
        raise UsageError("nothing to check", "name files, or give --store to check the store")
    options = ImportOptions(
        files, from_, encoding, max_errors=max_errors, choices=Choices(dangling=dangling),
        scope=scopes.given(scope) if scope is not None else scopes.default_scope(here()),
    )  # fmt: skip
    store = configuration(db, graph).store if against else None
    check_targets({"--output": target}, store=store, inputs=files)
    with terminable(), Bar(wanted=not no_progress) as bar:
        report = check_files(options, against=store, progress=bar.told)
    _print(_rendered(report, style, SEVERITIES[fail_on]), target)
    if target is not None:
        note(summary(report.findings))
    if max_errors is not None and report.findings.errors > max_errors:
        said = number(max_errors, "error")
        note(f"error: gave up at more than {said} (--max-errors): what comes after was not checked")
    return report.exit_status(SEVERITIES[fail_on])


def _rendered(report: ImportReport, style: str, fail_on: Severity) -> str:
    files = [one.label for one in report.inputs]
    if style == "text":
        return _as_text(report)
    if style == "json":
        shape = report.as_dict()
        kept = ("counts", "stubs", "ignored_files", "other_files", "findings", "findings_left_out",
                "findings_by_rule")  # fmt: skip
        return (
            to_json({name: shape[name] for name in kept} | counts(report.findings) | {"files": files}) + "\n"
        )
    if report.findings.left_out:
        note(f"note: {report.findings.left_out:,} more findings were counted and are not listed")
    return render(style, report.findings, files=files, fail_on=fail_on)


def _as_text(report: ImportReport) -> str:
    """The findings, of notes only the first, then how much there was in all."""
    whole = "--format json tells all of them"
    lines = [brief(report.findings, report.findings.by_rule, all_of=Severity.WARNING, whole=whole)]
    lines += left_out(report)
    read, inputs = number(report.total("read"), "record"), number(len(report.inputs), "file")
    lines.append(f"{read} in {inputs}: {summary(report.findings)}")
    return "".join(f"{line}\n" for line in lines if line)


def _print(text: str, target: Path | None) -> None:
    if target is None:
        say(text.removesuffix("\n"))
        return
    with replacing(target) as stream:
        stream.write(text.encode("utf-8", "backslashreplace"))


_ONE: Final = {
    "entities": "entity", "memories": "memory", "relations": "relation", "stubs": "stub",
    "vectors": "vector", "origins": "origin", "batches": "batch",
}  # fmt: skip
"""What is counted in a store, one of it by many."""


# ---- the store --------------------------------------------------------------------------------------


def _check_store(
    db: str | None, graph: str | None, style: str, target: Path | None, fail_on: Severity
) -> int:
    from graphmem.store import Store
    from graphmem.store.check import check

    path = configuration(db, graph).store
    check_targets({"--output": target}, store=path)
    with Store(path) as store:
        report = check(store)
    shape: dict[str, Any] = {
        "store": report.as_dict(),
        "findings": [one.as_dict() for one in report.findings],
        **counts(report.findings),
    }
    if style == "json":
        text = to_json(shape) + "\n"
    elif style == "text":
        text = f"{brief(report.findings, all_of=Severity.NOTE)}\n".lstrip("\n")
        held = ", ".join(number(count, _ONE[name], name) for name, count in report.numbers.items())
        text += f"{visible(report.path)}: {held}\n{summary(report.findings)}\n"
    else:
        text = render(style, report.findings, files=[report.path], fail_on=fail_on)
    _print(text, target)
    worst = max((one.severity for one in report.findings), default=None)
    if worst is Severity.ERROR:
        return EXIT_INTEGRITY
    return EXIT_FINDINGS if worst is not None and worst >= fail_on else EXIT_DONE
