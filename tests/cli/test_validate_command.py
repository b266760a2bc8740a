"""`gmem validate`: findings in five forms, exit statuses, and the check of a store."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ET
from pathlib import Path

import apsw
import pytest
from command_line import Run, process
from conftest import write_records

FIXTURES = Path(__file__).parents[2] / "fixtures"
CORRUPT = FIXTURES / "corrupt"
BAD = CORRUPT / "ten-lines-three-bad.jsonl"
CLEAN = FIXTURES / "yaml" / "garden.yml"
FILES = sorted(path for path in FIXTURES.rglob("*") if path.is_file())


def test_clean_files_have_no_findings(run: Run) -> None:
    done = run("validate", CLEAN)
    assert (done.status, done.err) == (0, "")
    assert done.out == "7 records in 1 file: no findings\n"


def test_findings_are_printed_in_the_order_of_places_with_a_hint_each_rule(run: Run) -> None:
    done = run("validate", BAD, CLEAN)
    assert done.status == 1
    lines = done.out.splitlines()
    places = [line.split(":")[1] for line in lines if ": error:" in line]
    assert places == ["2", "4", "7"]
    assert sum(line.startswith("  hint:") for line in lines) == 1
    assert lines[-1] == "17 records in 2 files: 3 errors"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FIXTURES).as_posix())
def test_a_fixture_is_judged_as_an_import_judges_it(run: Run, tmp_path: Path, path: Path) -> None:
    imported = run("import", path, "--db", tmp_path / "x.db", "--json")
    validated = run("validate", path, "--json")
    assert validated.status == imported.status
    assert validated.json["counts"] == imported.json["counts"]
    key = lambda one: (one["file"], one["line"], one["column"], one["rule"], one["message"])  # noqa: E731
    assert sorted(validated.json["findings"], key=key) == sorted(imported.json["findings"], key=key)


def test_two_runs_print_the_same(run: Run) -> None:
    for style in ("text", "json", "github", "sarif", "junit"):
        first = run("validate", FIXTURES, "--format", style)
        again = run("validate", FIXTURES, "--format", style)
        assert first == again


def test_no_store_no_home_and_no_model_is_touched(home: Path) -> None:
    env = {name: value for name, value in os.environ.items() if name != "GRAPHMEM_EMBEDDINGS"}
    done = process("validate", str(CLEAN), env=env)
    assert done.returncode == 0
    assert list(home.iterdir()) == []


def test_a_text_from_standard_input_is_checked(home: Path) -> None:
    done = process("validate", "-", "--json", stdin=BAD.read_bytes())
    assert (done.returncode, json.loads(done.stdout)["errors"]) == (1, 3)
    assert {one["file"] for one in json.loads(done.stdout)["findings"]} == {"<stdin>"}


def test_many_notes_of_one_rule_are_cut_short_as_text_and_errors_never(run: Run, tmp_path: Path) -> None:
    triples = write_records(tmp_path / "t.jsonl", [["a", "knows", f"b{i}"] for i in range(50)])
    (tmp_path / "bad.jsonl").write_text('["a","b","c"]\n' + "bad\n" * 50)
    done = run("validate", triples, tmp_path / "bad.jsonl")
    assert done.out.count("a stub was made") == 3
    assert "note: and 49 more like it [stub-created]" in done.out
    assert done.out.count("[bad-json]") == 50
    assert len(run("validate", triples, "--json").json["findings"]) == 51


# ---- forms --------------------------------------------------------------------------------------------


def test_json_holds_findings_counts_and_files(run: Run) -> None:
    done = run("validate", BAD, CLEAN, "--json")
    shape = done.json
    assert (shape["errors"], shape["warnings"], shape["notes"]) == (3, 0, 0)
    assert shape["files"] == [str(BAD), str(CLEAN)]
    assert shape["counts"]["entity"]["read"] == 10
    first = shape["findings"][0]
    assert (first["rule"], first["line"], first["severity"]) == ("bad-json", 2, "error")
    assert done.out == run("validate", BAD, CLEAN, "--format", "json").out


def test_github_prints_annotations(run: Run) -> None:
    done = run("validate", BAD, "--format", "github")
    assert done.status == 1
    assert done.out.startswith(f"::error file={BAD},line=2,col=17,title=bad-json::")
    assert done.out.splitlines()[-1] == "3 errors"


def test_sarif_lists_results_with_places(run: Run) -> None:
    log = json.loads(run("validate", BAD, "--format", "sarif").out)
    (only,) = log["runs"]
    assert (log["version"], [one["ruleId"] for one in only["results"]]) == ("2.1.0", ["bad-json"] * 3)
    assert only["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] == 2


def test_junit_counts_failures_by_what_fails(run: Run) -> None:
    path = CORRUPT / "duplicate-keys.jsonl"
    lenient = ET.fromstring(run("validate", path, CLEAN, "--format", "junit").out)
    strict = run("validate", path, CLEAN, "--format", "junit", "--fail-on", "warning")
    assert (lenient.get("tests"), lenient.get("failures")) == ("3", "0")
    assert ET.fromstring(strict.out).get("failures") == "2"
    assert strict.status == 1


@pytest.mark.parametrize("style", ["text", "json", "github", "sarif", "junit"])
def test_output_writes_to_a_file_what_stdout_would_have(run: Run, tmp_path: Path, style: str) -> None:
    printed = run("validate", BAD, "--format", style)
    done = run("validate", BAD, "--format", style, "--output", tmp_path / "out")
    assert (done.out, done.status) == ("", printed.status)
    assert (tmp_path / "out").read_text(encoding="utf-8") == printed.out
    assert done.err == "3 errors\n"


# ---- options and statuses -----------------------------------------------------------------------------


def test_from_encoding_and_dangling_are_those_of_import(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes('["北京","in","中国"]\n'.encode("gbk"))
    done = run("validate", tmp_path / "x.txt", "--from", "jsonl", "--encoding", "gbk", "--dangling", "error")
    assert done.status == 1
    assert "nothing is called '北京'" in done.out


def test_max_errors_stops_early(run: Run) -> None:
    done = run("validate", BAD, "--max-errors", "1", "--json")
    assert (done.status, done.json["errors"]) == (1, 2)


@pytest.mark.parametrize(("least", "status"), [("error", 0), ("warning", 0), ("note", 1)])
def test_stubs_are_notes(run: Run, least: str, status: int) -> None:
    assert run("validate", FIXTURES / "jsonl" / "services.jsonl", "--fail-on", least).status == status


def test_nothing_usable_is_status_3_and_says_what_was_seen(run: Run) -> None:
    done = run("validate", CORRUPT / "unknown-shape.json")
    assert done.status == 3
    assert "a JSON object with the keys 'players', 'score'" in done.out


@pytest.mark.parametrize(
    "args", [(), ("x.jsonl", "--store"), ("--store", "--against"), ("x.jsonl", "--json", "--format", "sarif")]
)
def test_options_that_do_not_fit_together_are_status_2(run: Run, args: tuple[str, ...]) -> None:
    done = run("validate", *args)
    assert (done.status, "[usage]" in done.err) == (2, True)


def test_against_says_what_the_store_would_do(run: Run, tmp_path: Path) -> None:
    store = tmp_path / "x.db"
    assert run("validate", CLEAN, "--against", "--db", store).status == 2
    run("import", CLEAN, "--db", store)
    done = run("validate", CLEAN, "--against", "--db", store, "--json")
    assert done.status == 0
    assert done.json["counts"]["entity"]["unchanged"] == 3


# ---- the store ----------------------------------------------------------------------------------------


@pytest.fixture
def store(run: Run, tmp_path: Path) -> Path:
    run("import", FIXTURES / "jsonl" / "services.jsonl", "--db", tmp_path / "x.db")
    return tmp_path / "x.db"


def test_a_sound_store_is_counted_and_its_stubs_are_a_note(run: Run, store: Path) -> None:
    done = run("validate", "--store", "--db", store)
    assert done.status == 0
    assert f"{store}: note: 2 entities are stubs [store-stubs]" in done.out
    assert "7 entities, 4 memories, 6 relations, 2 stubs, 0 vectors" in done.out
    assert run("validate", "--store", "--db", store, "--fail-on", "note").status == 1
    shape = run("validate", "--store", "--db", store, "--json").json
    assert (shape["store"]["entities"], shape["store"]["path"], shape["notes"]) == (7, str(store), 1)


@pytest.mark.parametrize("style", ["text", "json", "github", "sarif", "junit"])
def test_a_store_out_of_step_is_status_5_in_every_form(run: Run, store: Path, style: str) -> None:
    db = apsw.Connection(str(store))
    db.execute("DELETE FROM name_key WHERE entity = 1")
    db.close()
    done = run("validate", "--store", "--db", store, "--format", style)
    assert done.status == 5
    assert "store-index" in done.out


def test_a_store_that_is_not_there_is_status_2(run: Run, tmp_path: Path) -> None:
    done = run("validate", "--store", "--db", tmp_path / "none.db")
    assert (done.status, "store-not-found" in done.err) == (2, True)


def test_a_file_that_never_was_a_database_is_status_2_and_one_that_is_damaged_5(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "x.db").write_bytes(b"\x00junk" * 2000)
    done = run("validate", "--store", "--db", tmp_path / "x.db")
    assert done.status == 2
    assert "not a store" in done.err
    (tmp_path / "x.db").write_bytes(b"SQLite format 3\0" + b"junk" * 2000)
    assert run("validate", "--store", "--db", tmp_path / "x.db").status == 5
