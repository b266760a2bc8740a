"""`gmem sync`."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

import click

from graphmem import scopes
from graphmem.cli._acts import actor
from graphmem.cli._import_report import as_text as run_as_text
from graphmem.cli._inputs import SEVERITIES, brief, terminable
from graphmem.cli._progress import Bar
from graphmem.cli._shared import configuration, here, note, number, output, standard_options
from graphmem.errors import (
    EXIT_DONE,
    EXIT_FINDINGS,
    InputUnreadable,
    StoreBusy,
    SyncRefused,
    UsageError,
)
from graphmem.options import ImportOptions
from graphmem.store import Store
from graphmem.sync import SyncReport, sync

if TYPE_CHECKING:
    from graphmem.config import Config
    from graphmem.embed import Availability

_INTERVAL: Final = 2.0


@click.command("sync")
@click.argument("folders", metavar="FOLDER...", nargs=-1, required=True)
@click.option("--scope", metavar="SCOPE", help="The scope of records that name none.")
@click.option(
    "--max-delete", type=click.IntRange(min=0), metavar="N",
    help="How many things may be archived; else 50, or a tenth of what the folders hold.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Report what would happen; nothing is encoded or stored.")
@click.option("--watch", is_flag=True, help="Go on following until interrupted.")
@click.option(
    "--interval", type=click.FloatRange(min=0.1), default=_INTERVAL, show_default=True, metavar="SECONDS",
    help="How often --watch looks.",
)  # fmt: skip
@click.option("--no-embeddings", is_flag=True, help="Store without vectors; 'gmem reembed' adds them later.")
@click.option("--no-progress", is_flag=True, help="Show no progress bar.")
@standard_options
def sync_(
    folders: tuple[str, ...], scope: str | None, max_delete: int | None, dry_run: bool, watch: bool,
    interval: float, no_embeddings: bool, no_progress: bool, db: str | None, graph: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Make the store follow folders.

    Files that are new or changed are read, as 'gmem import' reads them. What only a file said that is gone,
    or that says it no longer, is archived: nothing finds it, 'gmem undo' and a file that says it again bring
    it back. What others say too stays. A file that was moved keeps everything, and so does a memory whose
    text was edited in its place.

    A file with errors removes nothing, nor does a folder that cannot be read. Where more would be archived
    than --max-delete allows, nothing is.
    """  # fmt: skip
    config = configuration(db, graph)
    options = ImportOptions(
        scope=scopes.given(scope) if scope is not None else scopes.default_scope(here()), command="sync",
        actor=actor(),
    )  # fmt: skip
    trouble = ""
    with terminable():
        status = _once(
            config, folders, options, max_delete, dry_run=dry_run, vectors=not no_embeddings,
            progress=not no_progress, as_json=as_json, quiet=False,
        )  # fmt: skip
        while watch and not dry_run:
            time.sleep(interval)
            try:
                status = _once(
                    config, folders, options, max_delete, dry_run=False, vectors=not no_embeddings,
                    progress=False, as_json=as_json, quiet=True,
                )  # fmt: skip
            except (UsageError, InputUnreadable, SyncRefused, StoreBusy) as error:
                if str(error) != trouble:  # a folder that is away for a while is told once
                    note(f"warning: {error.message}; looking again every {interval:g} s")
                trouble = str(error)
            else:
                trouble = ""
    return status


def _once(
    config: Config, folders: tuple[str, ...], options: ImportOptions, max_delete: int | None, *, dry_run: bool,
    vectors: bool, progress: bool, as_json: bool, quiet: bool,
) -> int:  # fmt: skip
    report = SyncReport()
    with Bar(wanted=progress) as bar:
        if dry_run:
            from dataclasses import replace

            with Store.snapshot(config.store) as copy:
                sync(
                    copy, folders, replace(options, history=False), None, max_delete=max_delete,
                    progress=bar.told, report=report,
                )  # fmt: skip
            report.run.dry_run = True
            report.run.committed = False
        else:
            found = _encoder(config, bar) if vectors else None
            report.run.without_vectors = "--no-embeddings was given" if found is None else found.reason
            with Store(config.store, write=True) as store:
                sync(
                    store, folders, options, None if found is None else found.encoder,
                    max_delete=max_delete, progress=bar.told, report=report,
                )  # fmt: skip
            if found is not None and found.reason and report.run.committed:
                note(f"note: stored without vectors: {found.reason}")
    if quiet and report.quiet:
        return EXIT_DONE
    _tell(report)
    output(report.as_dict(), as_json=as_json, text=lambda: _as_text(report, str(config.store)))
    return _status(report)


def _status(report: SyncReport) -> int:
    if not report.run.inputs and not report.run.findings:
        return EXIT_DONE
    if report.run.usable or not report.run.findings.errors:
        lost = report.run.total("rejected") + report.run.total("skipped")
        worst = report.run.findings.worst
        wrong = lost or (worst is not None and worst >= SEVERITIES["error"])
        return EXIT_FINDINGS if wrong else EXIT_DONE
    return report.run.exit_status(SEVERITIES["error"])


def _encoder(config: Config, bar: Bar) -> Availability:
    from graphmem import embed

    return embed.load(embed.from_environ(os.environ, config.home), bar.say)


def _tell(report: SyncReport) -> None:
    findings = report.run.findings
    told = brief(findings, findings.by_rule, whole="--json tells all of them")
    if told:
        for line in told.split("\n"):
            note(line)
    for folder in report.kept_folders:
        note(f"warning: nothing of '{folder}' was removed: not all of it can be read")


def _as_text(report: SyncReport, store: str) -> str:
    files = report.files
    lines = [
        f"files: {files.added:,} added, {files.modified:,} modified, {files.renamed:,} renamed, "
        f"{files.removed:,} removed, {files.unchanged:,} unchanged"
        + (f"; {files.broken:,} with errors" if files.broken else "")
    ]
    archived = report.run.archived
    lines.append(
        f"archived: {number(archived.get('memory', 0), 'memory', 'memories')}, "
        f"{number(archived.get('entity', 0), 'entity', 'entities')}, "
        f"{number(archived.get('relation', 0), 'relation')}; "
        f"{number(report.run.withdrawn, 'other thing')} lost something"
    )
    if files.exports:
        told = "is an export and is" if files.exports == 1 else "are exports and are"
        lines.append(f"{files.exports:,} of the files {told} not followed: what is removed from them stays")
    return "\n".join([*lines, "", run_as_text(report.run, store)])
