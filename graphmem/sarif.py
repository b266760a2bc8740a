"""Findings as a SARIF 2.1.0 log, as code scanning services take it."""

from __future__ import annotations

import os
import re
from typing import Any, Final

from graphmem import __version__
from graphmem.findings import RULES, Finding
from graphmem.terminal import visible

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
MAX_RESULTS: Final = 5_000
"""How many results a log holds at most; services show no more."""
_PLAIN: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")


def log(findings: list[Finding]) -> dict[str, Any]:
    """The log of sorted findings; where there are too many the worst are kept, and the log says so."""
    kept = _worst(findings)
    rules = sorted({one.rule for one in kept})
    index = {rule: position for position, rule in enumerate(rules)}
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "graphmem",
                        "version": __version__,
                        "semanticVersion": __version__,
                        "rules": [_rule(rule) for rule in rules],
                    }
                },
                "invocations": [_invocation(len(findings) - len(kept))],
                "columnKind": "unicodeCodePoints",
                "results": [_result(one, index) for one in kept],
            }
        ],
    }


def _worst(findings: list[Finding]) -> list[Finding]:
    if len(findings) <= MAX_RESULTS:
        return findings
    positions = sorted(range(len(findings)), key=lambda i: (-findings[i].severity, i))
    return [findings[i] for i in sorted(positions[:MAX_RESULTS])]


def _invocation(left_out: int) -> dict[str, Any]:
    if not left_out:
        return {"executionSuccessful": True}
    text = f"{left_out:,} more findings are not in this log, which holds {MAX_RESULTS:,} at most"
    notice = {"level": "warning", "message": {"text": text}}
    return {"executionSuccessful": True, "toolExecutionNotifications": [notice]}


def _rule(rule_id: str) -> dict[str, Any]:
    rule = RULES[rule_id]
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.summary},
        "help": {"text": rule.hint},
        "defaultConfiguration": {"level": rule.severity.word},
    }


def _result(one: Finding, index: dict[str, int]) -> dict[str, Any]:
    text = f"{one.message}\nhint: {one.hint}" if one.hint else one.message
    result: dict[str, Any] = {
        "ruleId": one.rule,
        "ruleIndex": index[one.rule],
        "level": one.severity.word,
        "message": {"text": visible(text, lines=True)},
    }
    if one.file:
        physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(one.file)}}
        if one.place.line:
            physical["region"] = _region(one)
        result["locations"] = [{"physicalLocation": physical}]
    return result


def _region(one: Finding) -> dict[str, int]:
    region = {"startLine": one.place.line}
    if one.place.column:
        region["startColumn"] = one.place.column
    if one.place.offset >= 0:
        region["byteOffset"] = one.place.offset
    return region


def _uri(file: str) -> str:
    """The label of an input as a URI reference: relative ones stay relative."""
    drive = re.match(r"[A-Za-z]:[\\/]", file)
    windows = drive or file.startswith("\\\\") or os.sep == "\\"
    path = file.replace("\\", "/") if windows else file
    quoted = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in _bytes(path))
    if drive:
        return f"file:///{path[0]}:{quoted[4:]}"
    if path.startswith("//"):
        return f"file:{quoted}"
    return f"file://{quoted}" if path.startswith("/") else quoted


def _bytes(path: str) -> bytes:
    try:
        return path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return path.encode("utf-8", "backslashreplace")
