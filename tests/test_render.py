"""The renderings of findings: one order, harmless text, and the shapes that services expect."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.findings import RULES, Finding, Severity, finding
from graphmem.records import NO_PLACE, Place
from graphmem.render import STYLES, counts, render, summary
from graphmem.sarif import MAX_RESULTS

BAD = finding("bad-json", "a ',' is missing", file="b.jsonl", place=Place(3, 7, 120))
WARN = finding("guessed-time", "'created_at' was taken as UTC", file="b.jsonl", place=Place(1, 1, 0))
NOTE = finding("stub-created", "'Redis' is not declared", file="a.md", place=Place(9, 2, 80))
HOSTILE = '{0} {name} %s %(x)s [red] \x1b[31m <b> & "q" ]]> \r\n::error::x ##[error] \ud800 \x00 \ufffe 😀'


def sarif(findings: list[Finding]) -> dict[str, Any]:
    log: dict[str, Any] = json.loads(render("sarif", findings))
    return log


def junit(findings: list[Finding], **options: Any) -> ET.Element:
    return ET.fromstring(render("junit", findings, **options))


# ---- what all styles share --------------------------------------------------------------------------


@pytest.mark.parametrize("style", STYLES)
def test_no_findings_are_a_valid_rendering(style: str) -> None:
    assert render(style, []).endswith("\n")


@pytest.mark.parametrize("style", STYLES)
def test_the_order_in_which_findings_come_makes_no_difference(style: str) -> None:
    assert render(style, [BAD, WARN, NOTE]) == render(style, [NOTE, BAD, WARN])


@pytest.mark.parametrize("style", STYLES)
def test_file_text_cannot_act_on_a_terminal_or_crash_the_output(style: str) -> None:
    said = render(style, [finding("bad-json", HOSTILE, file=HOSTILE, place=Place(1, 1, 0), hint=HOSTILE)])
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", said)
    said.encode()


@pytest.mark.parametrize("style", ["text", "github", "sarif", "json"])
def test_braces_percent_signs_and_brackets_are_literal(style: str) -> None:
    said = render(style, [finding("bad-json", "{0} {name} %(x)s [red]", file="f")])
    assert "{0} {name} %(x)s [red]" in said.replace("%25", "%")


def test_findings_are_sorted_by_file_then_line_as_a_number_then_column_then_rule() -> None:
    places = [("b", 1, 1), ("a", 10, 1), ("a", 9, 20), ("a", 9, 3)]
    found = [
        finding("bad-json", "x", file=file, place=Place(line, column, 0)) for file, line, column in places
    ]
    found.append(finding("bad-id", "x", file="a", place=Place(9, 3, 0)))
    starts = [line.split(" error")[0] + line.split("x ")[1] for line in _lines(render("text", found))]
    assert starts == [
        "a:9:3:[bad-id]",
        "a:9:3:[bad-json]",
        "a:9:20:[bad-json]",
        "a:10:1:[bad-json]",
        "b:1:1:[bad-json]",
    ]


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if "[bad" in line]


# ---- text -------------------------------------------------------------------------------------------


def test_text_has_a_line_per_finding_its_hint_below_and_the_counts_at_the_end() -> None:
    assert render("text", [BAD, NOTE]) == (
        "a.md:9:2: note: 'Redis' is not declared [stub-created]\n"
        "  hint: declare the entity to complete the stub\n"
        "b.jsonl:3:7: error: a ',' is missing [bad-json]\n"
        "  hint: repair the text at the place given; --rejects FILE collects such lines\n"
        "1 error, 1 note\n"
    )


def test_text_leaves_out_what_is_not_known() -> None:
    found = [
        finding("bad-json", "m", hint=""),
        finding("bad-json", "m", file="f", hint=""),
        finding("bad-json", "m", file="f", place=Place(2, 0, 5), hint=""),
    ]
    assert render("text", found).splitlines()[:3] == [
        "error: m [bad-json]",
        "f: error: m [bad-json]",
        "f:2: error: m [bad-json]",
    ]


def test_a_message_stays_on_one_line() -> None:
    assert "a\\nb\\tc" in render("text", [finding("bad-json", "a\nb\tc")])


def test_the_summary_counts_in_words() -> None:
    assert summary([]) == "no findings"
    assert summary([BAD, BAD, WARN, NOTE]) == "2 errors, 1 warning, 1 note"
    assert counts([BAD, BAD, WARN]) == {"errors": 2, "warnings": 1, "notes": 0}


# ---- json -------------------------------------------------------------------------------------------


def test_json_has_every_field_of_a_finding_and_the_inputs() -> None:
    said = json.loads(render("json", [BAD], files=["b.jsonl", "c.jsonl"]))
    assert said == {
        "findings": [BAD.as_dict()],
        "errors": 1,
        "warnings": 0,
        "notes": 0,
        "files": ["b.jsonl", "c.jsonl"],
    }


# ---- github -----------------------------------------------------------------------------------------


def test_github_annotations_are_escaped_workflow_commands() -> None:
    odd = finding("bad-json", "50% of\nlines: a, b", file="a,b:c%.md", place=Place(3, 7, 0), hint="")
    assert render("github", [odd]).splitlines()[0] == (
        "::error file=a%2Cb%3Ac%25.md,line=3,col=7,title=bad-json::50%25 of%0Alines: a, b"
    )


def test_github_has_a_command_for_each_severity_and_no_place_where_none_is_known() -> None:
    commands = [line.split("::")[1] for line in render("github", [BAD, WARN, NOTE]).splitlines()[:3]]
    assert [command.split(" ")[0] for command in commands] == ["notice", "warning", "error"]
    assert render("github", [finding("bad-json", "m", hint="")]).startswith("::error title=bad-json::m\n")


def test_github_annotates_ten_per_severity_and_logs_the_others() -> None:
    errors = [finding("bad-json", "m", file="f", place=Place(i, 1, 0)) for i in range(1, 14)]
    said = render("github", [*errors, WARN]).splitlines()
    assert sum(line.startswith("::error ") for line in said) == 10
    assert sum(line.startswith("::warning ") for line in said) == 1
    assert "::group::and 3 more: 3 errors" in said
    assert [line for line in said if line.startswith("f:")] == [
        f"f:{i}:1: error: m [bad-json]" for i in (11, 12, 13)
    ]
    assert said[-1] == "13 errors, 1 warning"


def test_github_takes_no_command_from_the_text_of_a_file() -> None:
    errors = [finding("bad-json", "::add-mask::x", file=f"::set-env name=A::{i:02}") for i in range(12)]
    said = render("github", errors).splitlines()
    start = next(i for i, line in enumerate(said) if line.startswith("::stop-commands::"))
    pause = said[start].removeprefix("::stop-commands::")
    end = said.index(f"::{pause}::")
    assert len(pause) > 20
    assert all(line.startswith("::error ") for line in said[: start - 1])
    assert sum("set-env" in line for line in said[start + 1 : end]) == 2
    assert said[end + 1 :] == ["::endgroup::", "12 errors"]


# ---- sarif ------------------------------------------------------------------------------------------


def _closed(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": properties,
    }


def _list(items: dict[str, Any], *, unique: bool = False) -> dict[str, Any]:
    return {"type": "array", "items": items, "uniqueItems": unique}


_TEXT = {"type": "string", "minLength": 1}
_LEVEL = {"enum": ["none", "note", "warning", "error"]}
_MESSAGE = _closed(("text",), text=_TEXT)
_VERSION = {"type": "string", "pattern": r"^\d+\.\d+\.\d+"}
# The objects of SARIF 2.1.0 that a log of ours uses, as closed as the standard has them.
SARIF = _closed(
    ("version", "runs"),
    **{"$schema": {"type": "string", "pattern": "^https://.*/sarif-schema-2\\.1\\.0\\.json$"}},
    version={"const": "2.1.0"},
    runs=_list(
        _closed(
            ("tool",),
            tool=_closed(
                ("driver",),
                driver=_closed(
                    ("name",),
                    name=_TEXT,
                    version=_VERSION,
                    semanticVersion=_VERSION,
                    rules=_list(
                        _closed(
                            ("id",),
                            id=_TEXT,
                            shortDescription=_MESSAGE,
                            help=_MESSAGE,
                            defaultConfiguration=_closed(level=_LEVEL),
                        ),
                        unique=True,
                    ),
                ),
            ),
            invocations=_list(
                _closed(
                    ("executionSuccessful",),
                    executionSuccessful={"type": "boolean"},
                    toolExecutionNotifications=_list(_closed(("message",), level=_LEVEL, message=_MESSAGE)),
                )
            ),
            columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
            results=_list(
                _closed(
                    ("message",),
                    ruleId=_TEXT,
                    ruleIndex={"type": "integer", "minimum": -1},
                    level=_LEVEL,
                    message=_MESSAGE,
                    locations=_list(
                        _closed(
                            physicalLocation=_closed(
                                ("artifactLocation",),
                                artifactLocation=_closed(
                                    uri={"type": "string", "pattern": r"^[A-Za-z0-9._~:/?#@!$&'()*+,;=%-]*$"}
                                ),
                                region=_closed(
                                    startLine={"type": "integer", "minimum": 1},
                                    startColumn={"type": "integer", "minimum": 1},
                                    byteOffset={"type": "integer", "minimum": 0},
                                ),
                            )
                        )
                    ),
                )
            ),
        )
    ),
)

_PLACES = st.builds(Place, st.integers(0, 9), st.integers(0, 9), st.integers(-1, 9)) | st.just(NO_PLACE)
_FINDINGS = st.lists(
    st.builds(
        lambda rule, message, file, place: finding(rule, message, file=file, place=place),
        st.sampled_from(sorted(RULES)),
        st.text(st.characters(), min_size=1, max_size=20),
        st.text(st.characters(), max_size=20),
        _PLACES,
    ),
    max_size=8,
)


@given(_FINDINGS)
def test_every_sarif_log_has_the_structure_of_the_standard(findings: list[Finding]) -> None:
    log = sarif(findings)
    jsonschema.validate(log, SARIF)
    run = log["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(run["results"]) == len(findings)
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])


def test_a_sarif_result_says_what_where_and_how_bad() -> None:
    result = sarif([BAD])["runs"][0]["results"][0]
    assert result == {
        "ruleId": "bad-json",
        "ruleIndex": 0,
        "level": "error",
        "message": {"text": f"a ',' is missing\nhint: {BAD.hint}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "b.jsonl"},
                    "region": {"startLine": 3, "startColumn": 7, "byteOffset": 120},
                }
            }
        ],
    }


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("notes/a b.md", "notes/a%20b.md"),
        ("/notes/é%.md", "file:///notes/%C3%A9%25.md"),
        ("C:\\My Notes\\a.md", "file:///C:/My%20Notes/a.md"),
        ("\\\\server\\share\\a.md", "file://server/share/a.md"),
        ("a:b.md", "a%3Ab.md"),
        ("x\udcff", "x%FF"),
    ],
)
def test_a_sarif_location_is_a_uri(file: str, uri: str) -> None:
    result = sarif([finding("bad-json", "m", file=file)])["runs"][0]["results"][0]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_a_sarif_log_keeps_the_worst_findings_in_order_and_says_what_it_leaves_out() -> None:
    notes = [finding("stub-created", "m", file="a", place=Place(i, 1, 0)) for i in range(1, MAX_RESULTS + 3)]
    run = sarif([*notes, BAD])["runs"][0]
    jsonschema.validate(sarif([*notes, BAD]), SARIF)
    assert len(run["results"]) == MAX_RESULTS
    assert run["results"][-1]["ruleId"] == "bad-json"
    lines = [result["locations"][0]["physicalLocation"]["region"]["startLine"] for result in run["results"]]
    assert lines[:-1] == list(range(1, MAX_RESULTS))
    notice = run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]
    assert notice == "3 more findings are not in this log, which holds 5,000 at most"


# ---- junit ------------------------------------------------------------------------------------------


@given(_FINDINGS)
def test_every_junit_report_is_well_formed_ascii_and_counts_right(findings: list[Finding]) -> None:
    said = render("junit", findings)
    root = ET.fromstring(said)
    assert said.isascii()
    assert root.get("tests") == str(len(root.findall("testsuite/testcase"))) == str(len(findings))
    assert root.get("failures") == str(len(root.findall(".//failure")))


def test_junit_names_the_place_and_the_rule_and_holds_the_text() -> None:
    case = junit([BAD]).find("testsuite/testcase")
    assert case is not None
    assert (case.get("name"), case.get("file")) == ("b.jsonl:3:7 bad-json", "b.jsonl")
    failure = case.find("failure")
    assert failure is not None
    assert (failure.get("type"), failure.get("message")) == ("bad-json", "a ',' is missing")
    assert (failure.text or "").startswith("b.jsonl:3:7: error: a ',' is missing [bad-json]\n")


def test_junit_fails_from_the_severity_that_fails_the_run() -> None:
    assert junit([BAD, WARN, NOTE]).get("failures") == "1"
    assert junit([BAD, WARN, NOTE], fail_on=Severity.WARNING).get("failures") == "2"
    assert junit([BAD, WARN, NOTE], fail_on=Severity.NOTE).get("failures") == "3"


def test_junit_lists_clean_files_as_passed() -> None:
    cases = junit([BAD], files=["b.jsonl", "clean.jsonl"]).findall("testsuite/testcase")
    assert [(case.get("name"), len(case)) for case in cases] == [
        ("b.jsonl:3:7 bad-json", 1),
        ("clean.jsonl", 0),
    ]
