"""`gmem import`."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphmem import scopes
from graphmem.cli._acts import actor
from graphmem.cli._import_report import as_text
from graphmem.cli._inputs import SEVERITIES, brief, input_options, terminable
from graphmem.cli._progress import Bar
from graphmem.cli._shared import configuration, here, note, number, output, standard_options
from graphmem.cli._targets import check_targets
from graphmem.commit import Choices
from graphmem.config import Config
from graphmem.errors import (
    EXIT_DONE,
    EXIT_FINDINGS,
    EXIT_NOTHING_USABLE,
    GraphmemError,
    InputUnreadable,
    Interrupted,
    UsageError,
)
from graphmem.findings import Finding
from graphmem.ingest import rehearse, run
from graphmem.options import DEFAULT_BATCH_SIZE, ImportOptions
from graphmem.outcome import ImportReport
from graphmem.outfile import replacing
from graphmem.rejects import DOCUMENTS_SUFFIX, Rejects
from graphmem.store import Store, is_there
from graphmem.terminal import to_json, visible

if TYPE_CHECKING:
    from graphmem.detect import Detected
    from graphmem.embed import Availability


@click.command("import")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@input_options
@click.option("--detect", is_flag=True, help="Only say of each input which format it is, and why.")
@click.option("--scope", metavar="SCOPE", help="The scope of records that name none.")
@click.option(
    "--map-scope",
    metavar="OLD=NEW",
    multiple=True,
    help="Store what the inputs say of OLD, or of paths below it, under NEW; may be repeated.",
)
@click.option("--dry-run", is_flag=True, help="Report what would happen; nothing is encoded or stored.")
@click.option("--strict", is_flag=True, help="Store nothing at all if there is any error.")
@click.option("--atomic", is_flag=True, help="Store everything as one batch or nothing.")
@click.option(
    "--batch-size",
    type=click.IntRange(min=1),
    default=DEFAULT_BATCH_SIZE,
    show_default=True,
    metavar="N",
    help="Records in a batch, which is stored whole or not at all.",
)
@click.option(
    "--on-conflict",
    type=click.Choice(["merge", "newer", "overwrite", "skip", "error"]),
    default="merge",
    show_default=True,
    help="When a record differs from what is stored.",
)
@click.option(
    "--on-ambiguous",
    type=click.Choice(["error", "newest"]),
    default="error",
    show_default=True,
    help="When a name could be several entities: reject the record, or take the newest.",
)
@click.option("--fold-case", is_flag=True, help="Merge entities whose names differ only by case.")
@click.option("--restore-archived", is_flag=True, help="Bring back archived things that the inputs say.")
@click.option(
    "--rejects",
    "rejects_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write rejected records there, to be repaired and imported again.",
)
@click.option(
    "--report",
    "report_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the report there as JSON.",
)
@click.option("--no-embeddings", is_flag=True, help="Store without vectors; 'gmem reembed' adds them later.")
@click.option(
    "--no-mentions", is_flag=True, help="Do not look for names in memories; 'gmem reindex' does it later."
)
@click.option("--no-progress", is_flag=True, help="Show no progress bar.")
@standard_options
def import_(
    paths: tuple[str, ...], from_: str | None, encoding: str | None, dangling: str, max_errors: int | None,
    fail_on: str, detect: bool, scope: str | None, map_scope: tuple[str, ...], dry_run: bool, strict: bool,
    atomic: bool, batch_size: int, on_conflict: str, on_ambiguous: str, fold_case: bool,
    restore_archived: bool, rejects_file: Path | None, report_file: Path | None, no_embeddings: bool,
    no_mentions: bool, no_progress: bool, db: str | None, graph: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Read files into the store.

    PATH is a file, a folder, a glob, or '-' for standard input; gzip and zstd are unpacked. What a file is
    shows in its content. Records without a scope go to the scope of the Git repository you are in, else to
    global.

    Importing the same again changes nothing, and importing never removes. Good records are stored also
    where others are bad; the bad ones are reported on stderr. Interrupted, whole batches stay stored.

    --rejects writes JSON Lines; the file is empty when nothing was rejected. YAML documents that cannot be
    read go to FILE.yaml beside it.
    """  # fmt: skip
    if detect:
        return _detect(paths, from_, encoding, as_json=as_json)
    config = configuration(db, graph)
    check_targets(_targets(rejects_file, report_file), store=config.store, inputs=paths)
    map_ = scopes.parse_scope_map(map_scope)
    options = ImportOptions(
        paths, from_, encoding,
        scope=scopes.given(scope) if scope is not None else scopes.default_scope(here()),
        map_scope=map_,
        choices=Choices(on_conflict, on_ambiguous, dangling, fold_case, restore_archived),
        strict=strict, atomic=atomic, batch_size=batch_size, max_errors=max_errors, mentions=not no_mentions,
        actor=actor(),
    )  # fmt: skip
    report = ImportReport("import")
    with Rejects() as rejects, terminable(), Bar(wanted=not no_progress) as bar:

        def keep() -> None:
            if rejects_file is not None:
                rejects.write(rejects_file)
            if report_file is not None:
                _write_report(report, report_file)

        try:
            if dry_run:
                rehearse(config.store, options, progress=bar.told, rejects=rejects, report=report)
            else:
                _store(config, options, report, rejects, bar, vectors=not no_embeddings)
        except Interrupted:
            keep()
            raise
        except GraphmemError as error:
            if report.batches and not dry_run:
                _tell_stored(error, report)
            if not isinstance(error, UsageError):
                with suppress(GraphmemError):  # of two errors the first one is told
                    keep()
            raise
        keep()
    _tell(report)
    _tell_options(report, options, map_)
    output(report.as_dict(), as_json=as_json, text=lambda: as_text(report, str(config.store)))
    return report.exit_status(SEVERITIES[fail_on])


def _targets(rejects_file: Path | None, report_file: Path | None) -> dict[str, Path | None]:
    """What may be written, by the option that says so."""
    documents = None
    if rejects_file is not None:
        documents = rejects_file.with_name(rejects_file.name + DOCUMENTS_SUFFIX)
    return {"--rejects": rejects_file, "--report": report_file, "the YAML of --rejects": documents}


def _store(
    config: Config, options: ImportOptions, report: ImportReport, rejects: Rejects, bar: Bar, *, vectors: bool
) -> None:
    """Imports into the store, which is made when the first records are ready for it."""
    found = _encoder(config, bar.say) if vectors else None
    report.without_vectors = "--no-embeddings was given" if found is None else found.reason
    with ExitStack() as stack:

        def opened() -> Store:
            return stack.enter_context(Store(config.store, write=True))

        store: Store | Callable[[], Store] = opened() if is_there(config.store) else opened
        run(
            store, options, None if found is None else found.encoder,
            progress=bar.told, rejects=rejects, report=report,
        )  # fmt: skip
    if found is not None and found.reason and report.committed:
        note(f"note: stored without vectors: {found.reason}")
        if found.hint:
            note(f"  hint: {found.hint}")


def _encoder(config: Config, say: Callable[[str], None]) -> Availability:
    from graphmem import embed

    return embed.load(embed.from_environ(os.environ, config.home), say)


def _write_report(report: ImportReport, target: Path) -> None:
    with replacing(target) as stream:
        stream.write((to_json(report.as_dict()) + "\n").encode("utf-8", "backslashreplace"))


def _tell(report: ImportReport) -> None:
    """What is wrong, on stderr."""
    told = brief(report.findings, report.findings.by_rule, whole="--json and --report FILE tell all of them")
    if told:
        for line in told.split("\n"):
            note(line)
    if report.unreadable:
        note(f"error: nothing of what was given could be read [{InputUnreadable.code}]")
    elif not report.usable:
        note(f"error: nothing usable: {_seen(report)} [nothing-usable]")


def _tell_stored(error: GraphmemError, report: ImportReport) -> None:
    """Adds to what ended a run what is stored all the same."""
    again = "run the same command again to store the rest"
    error.message += f"; {report.batches_told()}"
    error.hint = f"{error.hint}; then {again}" if error.hint else again
    error.details["batches"] = report.batches


def _tell_options(report: ImportReport, options: ImportOptions, mapped: scopes.ScopeMap) -> None:
    """Which options made the run end early, or did nothing, on stderr."""
    if options.max_errors is not None and report.findings.errors > options.max_errors:
        held = f"{report.batches_told()}, and nothing after" if report.batches else "nothing was stored"
        if report.dry_run:
            held = "what comes after was not looked at"
        note(f"error: gave up at more than {number(options.max_errors, 'error')} (--max-errors): {held}")
    if report.usable:
        for old in mapped.unmet:
            note(f"note: --map-scope: no record names the scope '{old}'")


def _seen(report: ImportReport) -> str:
    """What an input was that held nothing that could be used."""
    rejected = report.total("rejected")
    if rejected:
        return f"{number(rejected, 'record')} read, none of them understood"
    known = sum(one.format is not None for one in report.inputs)
    if known:
        return f"{number(known, 'input')} read, without a record"
    if report.inputs:
        return "no format recognises what was given"
    left_out = report.ignored_files + report.other_files
    others = f", {number(left_out, 'other was', 'others were')} left out" if left_out else ""
    return f"no file of a known format was found{others}"


# ---- detecting --------------------------------------------------------------------------------------


def _detect(paths: tuple[str, ...], from_: str | None, encoding: str | None, *, as_json: bool) -> int:
    from graphmem.detect import Detected, detect

    inputs: list[Detected] = []
    findings: list[Finding] = []
    for one in detect(paths, format_name=from_, encoding=encoding):
        if isinstance(one, Detected):
            inputs.append(one)
        else:
            findings.append(one)
    for line in filter(None, brief(findings).split("\n")):
        note(line)
    result: dict[str, Any] = {
        "inputs": [one.as_dict() for one in inputs],
        "findings": [one.as_dict() for one in findings],
    }
    if inputs or as_json:
        output(result, as_json=as_json, text=lambda: "\n".join(map(_line, inputs)))
    if not inputs:
        return EXIT_NOTHING_USABLE
    return EXIT_FINDINGS if any(SEVERITIES["error"] == one.severity for one in findings) else EXIT_DONE


def _line(one: Detected) -> str:
    packed = ", ".join(filter(None, (one.compression, one.encoding)))
    return visible(f"{one.label}: {one.format} ({one.why}{f'; {packed}' if packed else ''})")
