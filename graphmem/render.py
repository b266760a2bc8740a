"""Findings as people and machines read them: `text`, `json`, `github`, `sarif` and `junit`.

Every rendering is sorted by file, line, column and rule, and is one text with a final newline.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from graphmem.findings import Finding, Severity
from graphmem.terminal import to_json, visible

_GITHUB_CAP: Final = 10
_GITHUB_COMMANDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


class Report(NamedTuple):
    """What a rendering shows: sorted findings, the inputs that were checked, and what counts as failed."""

    findings: list[Finding]
    files: Sequence[str]
    fail_on: Severity


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """The findings by file, line, column and rule."""
    return sorted(
        findings, key=lambda one: (one.file, one.place.line, one.place.column, one.rule, one.message)
    )


def render(
    style: str,
    findings: Iterable[Finding],
    *,
    files: Sequence[str] = (),
    fail_on: Severity = Severity.ERROR,
) -> str:
    """The findings in a style of `STYLES`. `files` are all inputs checked, also those without findings.

    `fail_on` is the least severity that counts as a failed test in `junit`.
    Raises `KeyError` for another style.
    """
    return _RENDERERS[style](Report(ordered(findings), files, fail_on))


def counts(findings: Iterable[Finding]) -> dict[str, int]:
    """How many findings there are per severity: `errors`, `warnings`, `notes`."""
    number = dict.fromkeys(("errors", "warnings", "notes"), 0)
    for one in findings:
        number[f"{one.severity.word}s"] += 1
    return number


def summary(findings: Iterable[Finding]) -> str:
    """The counts in words, for example `2 errors, 1 note`; `no findings` when there are none."""
    parts = [_number(count, name[:-1]) for name, count in counts(findings).items() if count]
    return ", ".join(parts) or "no findings"


def line_of(one: Finding) -> str:
    """A finding on one line: `file:line:column: severity: message [rule]`."""
    place = [one.file] if one.file else []
    if one.place.line:
        place += [str(number) for number in (one.place.line, one.place.column) if number]
    start = f"{':'.join(place)}: " if place else ""
    return visible(f"{start}{one.severity.word}: {one.message} [{one.rule}]")


def _number(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def as_text(findings: Iterable[Finding]) -> str:
    """The findings as lines in the order given, each with its hint on a line of its own."""
    return "".join(
        f"{line_of(one)}\n" + (f"  hint: {visible(one.hint)}\n" if one.hint else "") for one in findings
    )


def _text(report: Report) -> str:
    return f"{as_text(report.findings)}{summary(report.findings)}\n"


def _json(report: Report) -> str:
    shape = {
        "findings": [one.as_dict() for one in report.findings],
        **counts(report.findings),
        "files": list(report.files),
    }
    return to_json(shape) + "\n"


# ---- GitHub workflow commands -----------------------------------------------------------------------


def _github(report: Report) -> str:
    """Annotations up to GitHub's limit per step; the others stand in the log as text."""
    shown: dict[Severity, int] = dict.fromkeys(Severity, 0)
    lines: list[str] = []
    rest: list[Finding] = []
    for one in report.findings:
        if shown[one.severity] < _GITHUB_CAP:
            shown[one.severity] += 1
            lines.append(_annotation(one))
        else:
            rest.append(one)
    if rest:
        lines += _github_rest(rest)
    lines.append(summary(report.findings))
    return "".join(f"{line}\n" for line in lines)


def _annotation(one: Finding) -> str:
    properties = {
        "file": one.file,
        "line": one.place.line,
        "col": one.place.column if one.place.line else 0,
        "title": one.rule,
    }
    given = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items() if value)
    message = one.message + (f"\nhint: {one.hint}" if one.hint else "")
    return f"::{_GITHUB_COMMANDS[one.severity]} {given}::{_data(visible(message, lines=True))}"


def _github_rest(rest: list[Finding]) -> list[str]:
    text = as_text(rest)
    # File text must not be taken for commands; the word that ends the pause cannot stand in the text.
    pause = f"graphmem-{hashlib.sha256(text.encode()).hexdigest()[:32]}"
    return [
        f"::group::and {len(rest):,} more: {summary(rest)}",
        f"::stop-commands::{pause}",
        *text.splitlines(),
        f"::{pause}::",
        "::endgroup::",
    ]


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(visible(text)).replace(":", "%3A").replace(",", "%2C")


# ---- JUnit ------------------------------------------------------------------------------------------


def _junit(report: Report) -> str:
    """One test case per finding and one per clean file; what is below `fail_on` passes, with its text."""
    cases = [_junit_finding(one, report.fail_on) for one in report.findings]
    dirty = {one.file for one in report.findings}
    cases += [
        _element("testcase", {"classname": "gmem", "name": file})
        for file in report.files
        if file not in dirty
    ]
    failed = sum(one.severity >= report.fail_on for one in report.findings)
    totals = {"tests": len(cases), "failures": failed, "errors": 0}
    suite = _element("testsuite", {"name": "gmem", **totals}, "\n".join(["", *cases, ""]))
    root = _element("testsuites", totals, f"\n{suite}\n")
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n{root}\n'
    # Character references are right in every encoding that the output may have.
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _junit_finding(one: Finding, fail_on: Severity) -> str:
    where = one.file or "input"
    place = f"{where}:{one.place.line}:{one.place.column}" if one.place.line else where
    said = as_text([one])
    if one.severity >= fail_on:
        inner = _element("failure", {"type": one.rule, "message": one.message}, _xml(said))
    else:
        inner = _element("system-out", {}, _xml(said))
    attributes = {"classname": "gmem", "name": f"{place} {one.rule}"}
    return _element("testcase", attributes | ({"file": one.file} if one.file else {}), inner)


def _element(name: str, attributes: dict[str, Any], content: str = "") -> str:
    given = "".join(f' {key}="{_xml(visible(str(value)))}"' for key, value in attributes.items())
    return f"<{name}{given}>{content}</{name}>" if content else f"<{name}{given}/>"


def _xml(text: str) -> str:
    for sign, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(sign, entity)
    return text


def _sarif(report: Report) -> str:
    from graphmem.sarif import log

    return to_json(log(report.findings)) + "\n"


_RENDERERS: Final[dict[str, Callable[[Report], str]]] = {
    "text": _text,
    "json": _json,
    "github": _github,
    "sarif": _sarif,
    "junit": _junit,
}
STYLES: Final = tuple(_RENDERERS)
"""The names of the renderings, as `--format` takes them."""
