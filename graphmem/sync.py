"""Following folders: the store holds what the files say, and lets go of what they no longer say.

Only files that changed are read. A file is taken for unchanged when its size and time are those of the last
sync and nothing was taken back since, else when its content is. A file that vanished while an equal one
appeared was moved. Everything else is an import, with what files no longer say withdrawn at its end.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from graphmem.errors import SyncRefused, UsageError
from graphmem.findings import Finding
from graphmem.gather import looked_at, siblings_of
from graphmem.ingest import run
from graphmem.options import Follow, ImportOptions
from graphmem.outcome import ImportReport
from graphmem.reading import open_input
from graphmem.store import Store
from graphmem.store.follow import Following, SeenFile, Source
from graphmem.walk import STDIN, Found, discover, file_is_gone

if TYPE_CHECKING:
    from graphmem.embed import Encoder
    from graphmem.ingest import Progress
    from graphmem.rejects import Rejects

LEAST_ALLOWED: Final = 50
"""How many items may always be archived."""

ALLOWED_SHARE: Final = 0.1
"""The share of the items of a folder that may be archived."""

_RACY_NS: Final = 2_000_000_000
"""A file this young may change again within the resolution of its time: its content is looked at."""

_BY_TIME: Final = -1


@dataclass(slots=True)
class Files:
    """How many files there are of each kind.

    `broken` are those with errors, `exports` those that were read as exports of a store and are no origin of
    what they say, so that their removal removes nothing; both are of any of the other kinds too.
    """

    added: int = 0
    modified: int = 0
    renamed: int = 0
    removed: int = 0
    unchanged: int = 0
    broken: int = 0
    exports: int = 0


@dataclass(slots=True)
class SyncReport:
    """What a sync did: to files, and in `run` to what they say."""

    files: Files = field(default_factory=Files)
    run: ImportReport = field(default_factory=lambda: ImportReport("sync"))
    kept_folders: list[str] = field(default_factory=list)
    """Folders of which nothing was removed, since a part of them cannot be read."""

    @property
    def quiet(self) -> bool:
        """Whether nothing changed and nothing is wrong."""
        files = self.files
        changed = files.added + files.modified + files.renamed + files.removed
        return not (changed or self.run.batches or self.run.findings)

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        from dataclasses import asdict

        return {
            "files": asdict(self.files),
            "archived": self.run.archived or {"entity": 0, "memory": 0, "relation": 0},
            "withdrawn": self.run.withdrawn,
            "kept_folders": self.kept_folders,
            **self.run.as_dict(),
        }


@dataclass(slots=True)
class _Folder:
    """A folder that is followed, and what was found in it."""

    given: str
    real: str
    found: list[Found] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def uri(self) -> str:
        """The address of the folder, with a slash at its end."""
        return Path(self.real).as_uri().rstrip("/") + "/"

    @property
    def prefix(self) -> str:
        """The path of the folder, with a separator at its end."""
        path = os.path.join(self.real, "")  # noqa: PTH118 - text, as the walk has it
        return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")

    @property
    def readable(self) -> bool:
        """Whether all of it could be looked at."""
        return all(one.rule != "file-unreadable" for one in self.findings)


@dataclass(slots=True)
class _Plan:
    """Which files are read, and which are gone."""

    changed: list[Found] = field(default_factory=list)
    renamed: dict[str, int] = field(default_factory=dict)
    removed: list[Source] = field(default_factory=list)
    looks: dict[str, tuple[Found, tuple[int, int] | None]] = field(default_factory=dict)
    unchanged: list[tuple[str, SeenFile]] = field(default_factory=list)
    known: dict[str, str | None] = field(default_factory=dict)
    """Of files that were there before: the digest of what was taken from them."""
    lost: list[str] = field(default_factory=list)


def sync(
    store: Store, folders: Sequence[str], options: ImportOptions, encoder: Encoder | None = None, *,
    max_delete: int | None = None, progress: Progress | None = None, rejects: Rejects | None = None,
    report: SyncReport | None = None,
) -> SyncReport:  # fmt: skip
    """Makes the store follow folders, and says what that changed.

    At most `max_delete` items are archived, by default 50 or a tenth of what the folders support, if that is
    more. Raises `SyncRefused` when it would be more, or when a folder is empty that was not: then nothing was
    archived. Raises `UsageError` for what is no folder, and what an import raises.
    """
    report = report if report is not None else SyncReport()
    began = time.time_ns()
    following = Following(store.db)
    plan = _Plan()
    roots = [_look(one) for one in _apart(folders)]
    held: list[int] = []
    with store.errors():
        for root in roots:
            sources = following.below(root.uri)
            held += [one.pk for one in sources]
            _compare(following, root, sources, options.scope, plan, report)
        allowed = _allowed(following, roots, held, plan, max_delete)
    inputs: list[Found | Finding] = [*(one for root in roots for one in root.findings), *plan.changed]
    siblings = {root: names for one in roots for root, names in siblings_of(one.found).items()}
    follow = Follow(inputs, siblings, plan.renamed, [one.pk for one in plan.removed], allowed)
    wanted = replace(options, paths=(), follow=follow, command="sync")
    if inputs or plan.removed:
        run(store, wanted, encoder, progress=progress, rejects=rejects, report=report.run)
    _remember(store, plan, report, began, options.scope, dry_run=not options.history)
    return report


def _apart(folders: Sequence[str]) -> list[_Folder]:
    """The folders, those inside others left out. Raises `UsageError` for what is no folder."""
    roots: dict[str, _Folder] = {}
    for given in folders:
        if given == STDIN or not Path(given).is_dir():
            raise UsageError(f"'{given}' is not a folder", "sync follows folders; 'gmem import' reads files")
        real = os.path.realpath(given)
        roots.setdefault(real, _Folder(given, real))
    return [
        one for real, one in sorted(roots.items())
        if not any(real != other and real.startswith(os.path.join(other, "")) for other in roots)  # noqa: PTH118
    ]  # fmt: skip


def _look(root: _Folder) -> _Folder:
    for one in discover([root.given]):
        if isinstance(one, Found):
            root.found.append(one)
        else:
            root.findings.append(one)
    return root


def _path_of(found: Found) -> str:
    """The path of a file as it can be stored, whatever bytes it is of."""
    return found.real.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _compare(
    following: Following,
    root: _Folder,
    sources: Sequence[Source],
    scope: str,
    plan: _Plan,
    report: SyncReport,
) -> None:
    seen = following.seen(root.prefix)
    by_uri = {one.uri: one for one in sources}
    present: set[str] = set()
    added: list[Found] = []
    for one in root.found:
        uri = one.uri
        present.add(uri)
        look = looked_at(one)
        plan.looks[uri] = (one, look)
        source, before = by_uri.get(uri), seen.pop(_path_of(one), None)
        if before is not None and before.scope != scope:  # its records went elsewhere than they now shall
            before = None
        elif source is not None:
            plan.known[uri] = source.digest
        if _is_unchanged(one, look, source, before, plan):
            report.files.unchanged += 1
        elif source is None and before is None:
            added.append(one)
        else:
            plan.changed.append(one)
    plan.lost += seen
    gone = [one for one in sources if one.uri not in present]
    if not root.readable:
        report.kept_folders.append(root.given)
        gone = []
    _pair(following, added, gone, plan)
    for one in added:
        if one.uri not in plan.renamed:
            plan.changed.append(one)
    renamed = set(plan.renamed.values())
    plan.removed += [one for one in gone if one.pk not in renamed]


def _is_unchanged(
    found: Found, look: tuple[int, int] | None, source: Source | None, before: SeenFile | None, plan: _Plan
) -> bool:
    """Whether a file says what was taken from it, all of it and without a problem."""
    if (
        before is None
        or look is None
        or (before.holds and (source is None or source.digest != before.digest))
    ):
        return False
    if (before.size, before.mtime_ns) == look:
        return True
    if _digest(found) != before.digest:
        return False
    plan.unchanged.append((_path_of(found), before._replace(size=look[0], mtime_ns=look[1])))
    return True


def _digest(found: Found) -> str | None:
    with open_input(found) as opened:
        digest = opened.digest
        return digest if opened.complete else None


def _pair(following: Following, added: Sequence[Found], gone: Sequence[Source], plan: _Plan) -> None:
    """Finds the files that only have another name now: equal content of a file that is not there any more.

    That may have been in this folder, or anywhere: a whole folder may have moved.
    """
    if not added or not following.has_files():
        return
    digests = {one.uri: _digest(one) or "" for one in added}
    here = {one.pk for one in gone}
    waiting: dict[str, list[Source]] = {}
    for source in following.all_of(digests.values()):
        if source.digest and (source.pk in here or file_is_gone(source.uri)):
            waiting.setdefault(source.digest, []).append(source)
    for same in waiting.values():  # what was in this folder first
        same.sort(key=lambda source: (source.pk not in here, source.uri))
    for found in added:
        same = waiting.get(digests[found.uri], [])
        if same:
            plan.renamed[found.uri] = same.pop(0).pk
            plan.changed.append(found)


def _allowed(
    following: Following, roots: Sequence[_Folder], held: list[int], plan: _Plan, max_delete: int | None
) -> int:
    """How many items may be archived. Raises `SyncRefused` when the files that are gone are too many."""
    removed = [one.pk for one in plan.removed]
    if max_delete is None:
        empty = [
            root.given for root in roots if not root.found and any(_in(root, one) for one in plan.removed)
        ]
        if empty:
            count = following.held_alone(removed)
            raise SyncRefused(
                f"'{empty[0]}' is empty, and {count:,} things were taken from it",
                f"if the files are really gone, allow it with --max-delete {count}",
            )
    allowed = max_delete
    if allowed is None:
        allowed = max(LEAST_ALLOWED, int(following.held(held) * ALLOWED_SHARE))
    count = following.held_alone(removed) if removed else 0
    if count > allowed:
        raise SyncRefused(
            f"{len(removed):,} files are gone; {count:,} things that only they say would be archived, "
            f"more than {allowed:,}",
            f"if the files are really gone, allow it with --max-delete {count}",
        )
    return allowed


def _in(root: _Folder, source: Source) -> bool:
    return source.uri.startswith(root.uri)


def _remember(
    store: Store, plan: _Plan, report: SyncReport, began: int, scope: str, *, dry_run: bool
) -> None:
    """Counts the files that were read, and keeps what those without a problem look like."""
    renamed = set(plan.renamed)
    seen: list[tuple[str, SeenFile]] = list(plan.unchanged)
    broken: list[str] = []
    following = Following(store.db)
    problems = {one.file for one in report.run.findings if one.severity.name == "ERROR"}
    known = {one.uri: one for one in report.run.inputs}
    for one in plan.changed:
        summary = known.get(one.uri)
        found, look = plan.looks[one.uri]
        _count(report, one.uri, None if summary is None else summary.digest, renamed, plan)
        clean = (
            summary is not None and summary.digest is not None and not summary.broken
            and found.label not in problems and look is not None
        )  # fmt: skip
        if not clean or summary is None or look is None:
            report.files.broken += 1
            broken.append(_path_of(one))
            continue
        mtime = _BY_TIME if look[1] > began - _RACY_NS else look[1]
        digest = summary.digest or ""
        seen.append((_path_of(one), SeenFile(look[0], mtime, digest, following.holds(one.uri), scope)))
    report.files.exports = sum(one.transport for one in report.run.inputs)
    report.files.removed = len(plan.removed)
    if dry_run or not (seen or broken or plan.lost):
        return
    with store.transaction():
        following.see(seen)
        following.forget_files([*broken, *plan.lost])


def _count(report: SyncReport, uri: str, digest: str | None, renamed: Iterable[str], plan: _Plan) -> None:
    if uri in renamed:
        report.files.renamed += 1
    elif uri in plan.known:
        same = digest is not None and plan.known[uri] == digest
        report.files.unchanged += same
        report.files.modified += not same
    else:
        report.files.added += 1
