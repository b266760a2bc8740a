"""`gmem import`: what is stored, what is told where, and every option with its effect."""

from __future__ import annotations

import gzip
import json
import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import pytest
from command_line import Done, Run, as_root, process
from conftest import write_records

from graphmem.outcome import UNRECOGNISED
from graphmem.store import Store

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILES = sorted(path for path in FIXTURES.rglob("*") if path.is_file())
KINDS = ("entity", "memory", "relation")
OUTCOMES = ("created", "updated", "unchanged", "merged", "skipped", "rejected")
SERVICES = FIXTURES / "jsonl" / "services.jsonl"


def numbers(store: Path) -> dict[str, int]:
    """How many rows there are of each kind of item, and of batches."""
    with Store(store) as opened:
        return {
            name: int(opened.db.execute(f"SELECT count(*) FROM {name}").get) for name in (*KINDS, "batch")
        }


def query(store: Path, sql: str) -> list[Any]:
    with Store(store) as opened:
        return [row[0] if len(row) == 1 else row for row in opened.db.execute(sql)]


def entity(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "entity", "name": name, **fields}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "stores" / "memory.db"


# ---- accounting ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FIXTURES).as_posix())
def test_every_record_of_a_fixture_is_accounted_for(run: Run, store: Path, path: Path) -> None:
    done = run("import", path, "--db", store, "--json")

    report = done.json
    for counts in report["counts"].values():
        assert counts["read"] == sum(counts[outcome] for outcome in OUTCOMES)
    created = {kind: report["counts"][kind]["created"] for kind in KINDS}
    if store.exists():
        rows = numbers(store)
        assert {kind: rows[kind] for kind in KINDS} == created | {
            "entity": created["entity"] + report["stubs"]
        }
        assert rows["batch"] == len(report["batches"])
    else:
        assert sum(created.values()) == 0
    assert done.status in (0, 1, 3)
    assert (done.status == 3) == (not any(report["counts"][kind]["read"] for kind in KINDS))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FIXTURES).as_posix())
def test_a_dry_run_counts_as_the_real_run_does(run: Run, store: Path, path: Path) -> None:
    rehearsed = run("import", path, "--db", store, "--json", "--dry-run")
    assert not store.parent.exists()
    real = run("import", path, "--db", store, "--json")

    assert rehearsed.status == real.status
    assert (rehearsed.json["dry_run"], rehearsed.json["committed"]) == (True, False)
    for key in ("counts", "stubs", "findings", "findings_by_rule"):
        assert rehearsed.json[key] == real.json[key]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FIXTURES).as_posix())
def test_importing_twice_changes_nothing(run: Run, store: Path, path: Path) -> None:
    first = run("import", path, "--db", store, "--json").json
    before = numbers(store) if store.exists() else {}
    again = run("import", path, "--db", store, "--json")

    assert (numbers(store) if store.exists() else {}) == before
    report = again.json
    assert (report["committed"], report["batches"], report["encoded"]) == (False, [], 0)
    for kind in KINDS:
        counts, old = report["counts"][kind], first["counts"][kind]
        assert counts["unchanged"] == old["created"] + old["merged"]
    assert report["counts"][UNRECOGNISED] == first["counts"][UNRECOGNISED]


def test_a_dry_run_changes_no_byte_of_the_store(run: Run, store: Path, tmp_path: Path) -> None:
    run("import", SERVICES, "--db", store)
    before = store.read_bytes()
    more = write_records(tmp_path / "more.jsonl", [entity("New"), entity("Redis", description="changed")])

    report = run("import", more, "--db", store, "--dry-run", "--json").json
    assert report["counts"]["entity"]["created"] == 1
    assert store.read_bytes() == before


# ---- what is told where -------------------------------------------------------------------------------


def test_the_result_is_a_table_on_stdout_and_findings_are_on_stderr(run: Run, store: Path) -> None:
    done = run("import", SERVICES, "--db", store)

    lines = done.out.splitlines()
    assert lines[0].split() == ["read", *OUTCOMES]
    assert lines[1].split() == ["entities", "5", "5", "0", "0", "0", "0", "0"]
    assert "2 stubs made for names that nothing declares" in lines
    assert lines[-1] == f"stored in {store} (1 batch)"
    assert f"{SERVICES.as_posix()}:14:1: note: nothing is called 'worker-2'" in done.err
    assert "embeddings are off" in done.err
    assert done.status == 0


def test_why_there_are_no_vectors_is_told_once_and_only_when_something_was_stored(
    run: Run, store: Path
) -> None:
    first = run("import", SERVICES, "--db", store, "--json")
    again = run("import", SERVICES, "--db", store)
    assert first.err.count("without vectors") == 1
    assert "GRAPHMEM_EMBEDDINGS=off" in first.json["without_vectors"]
    assert "without vectors" not in again.err
    assert again.out.splitlines()[-1] == f"nothing new for {store}"


def test_many_findings_of_one_rule_are_cut_short_on_stderr_and_whole_in_the_report(
    run: Run, store: Path, tmp_path: Path
) -> None:
    triples = write_records(tmp_path / "t.jsonl", [["a", "knows", f"b{i}"] for i in range(300)])
    done = run("import", triples, "--db", store, "--report", tmp_path / "report.json")
    assert done.err.count("a stub was made") == 3
    assert "note: and 298 more like it [stub-created]\n  hint: --json and --report FILE tell all" in done.err
    report = json.loads((tmp_path / "report.json").read_text())
    assert len(report["findings"]) == report["findings_by_rule"]["stub-created"] == 301


def test_the_report_file_holds_what_json_prints(run: Run, store: Path, tmp_path: Path) -> None:
    done = run("import", SERVICES, "--db", store, "--json", "--report", tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text()) == done.json


def test_stdout_holds_one_json_value_and_nothing_else(home: Path, store: Path) -> None:
    done = process("import", "-", "--db", str(store), "--json", stdin=SERVICES.read_bytes())
    assert json.loads(done.stdout)["counts"]["entity"]["created"] == 5
    assert b"stub" in done.stderr
    assert done.returncode == 0


def test_file_text_never_reaches_the_terminal_as_commands(run: Run, store: Path, tmp_path: Path) -> None:
    path = write_records(tmp_path / "t.jsonl", [["a", "knows", "\x1b[31mred"]])
    done = run("import", path, "--db", store)
    assert "\x1b" not in done.out + done.err
    assert "\\x1b[31mred" in done.err


@pytest.mark.skipif(os.name != "posix", reason="terminals of POSIX")
@pytest.mark.parametrize(("options", "shown"), [((), True), (("--no-progress",), False)])
def test_a_bar_is_shown_on_a_terminal_unless_it_is_not_wanted(
    home: Path, store: Path, tmp_path: Path, options: tuple[str, ...], shown: bool
) -> None:
    import pty
    import termios

    many = write_records(tmp_path / "many.jsonl", [entity(f"E {i}") for i in range(5000)])
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    command = [sys.executable, "-m", "graphmem", "import", str(many), "--db", str(store), *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, check=True, timeout=60)
    os.close(theirs)
    told = b""
    with suppress(OSError):  # which is how the end shows
        while piece := os.read(ours, 65536):
            told += piece
    os.close(ours)
    assert (b"reading" in told, b"storing" in told) == (shown, shown)
    assert done.stdout.decode().splitlines()[1].split() == ["entities", "5,000", "5,000", *"00000"]


def test_no_bar_is_shown_where_stderr_is_no_terminal(home: Path, store: Path, tmp_path: Path) -> None:
    many = write_records(tmp_path / "many.jsonl", [entity(f"E {i}") for i in range(5000)])
    done = process("import", str(many), "--db", str(store))
    assert done.stderr.splitlines() == [
        b"note: stored without vectors: embeddings are off (GRAPHMEM_EMBEDDINGS=off): search is lexical only"
    ]


# ---- exit statuses ------------------------------------------------------------------------------------


def test_a_record_that_is_not_stored_is_status_1(run: Run, store: Path) -> None:
    done = run("import", FIXTURES / "corrupt" / "ten-lines-three-bad.jsonl", "--db", store)
    assert done.status == 1
    assert numbers(store)["entity"] == 7


def test_a_path_that_is_not_there_is_status_2_and_makes_nothing(run: Run, store: Path) -> None:
    done = run("import", "nowhere.jsonl", "--db", store)
    assert (done.status, done.out) == (2, "")
    assert "'nowhere.jsonl' does not exist" in done.err
    assert not store.parent.exists()


def test_no_path_is_a_usage_error(run: Run) -> None:
    assert run("import").status == 2


def test_an_unknown_format_is_a_usage_error(run: Run, store: Path) -> None:
    done = run("import", SERVICES, "--from", "parquet", "--db", store)
    assert (done.status, store.parent.exists()) == (2, False)
    assert "known formats: jsonl, markdown, memory-server, yaml" in done.err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is empty"),
        (b'{"players":[{"hp":3}]}', "a JSON object with the keys 'players'"),
        (b'{"type":"entity"}\n', "1 record read, none of them understood"),
    ],
)
def test_nothing_usable_is_status_3_says_what_was_seen_and_leaves_no_store(
    run: Run, store: Path, tmp_path: Path, content: bytes, said: str
) -> None:
    (tmp_path / "in.json").write_bytes(content)
    done = run("import", tmp_path / "in.json", "--db", store)
    assert done.status == 3
    assert said in done.err
    assert "[nothing-usable]" in done.err
    assert not store.parent.exists()


def test_a_folder_without_a_known_file_is_status_3(run: Run, store: Path, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpeg").write_bytes(b"\xff\xd8")
    done = run("import", tmp_path / "photos", "--db", store)
    assert done.status == 3
    assert "no file of a known format was found, 1 other was left out" in done.err


def test_an_export_of_an_empty_store_is_no_failure(run: Run, store: Path, tmp_path: Path) -> None:
    Store(tmp_path / "empty.db", write=True).close()
    run("export", "--db", tmp_path / "empty.db", "-o", tmp_path / "empty.jsonl")
    done = run("import", tmp_path / "empty.jsonl", "--db", store)
    assert done.status == 0
    assert not store.exists()


def test_a_store_that_stays_locked_is_status_4(
    run: Run, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("import", SERVICES, "--db", store)
    monkeypatch.setenv("GRAPHMEM_BUSY_TIMEOUT", "30")
    other = apsw.Connection(str(store))
    other.execute("BEGIN IMMEDIATE")
    done = run("import", FIXTURES / "yaml", "--db", store)
    other.close()
    assert done.status == 4
    assert "store-busy" in done.err
    assert numbers(store)["batch"] == 1


def test_a_file_that_is_not_what_its_manifest_says_is_status_5(run: Run, store: Path, tmp_path: Path) -> None:
    run("import", SERVICES, "--db", store)
    run("export", "--db", store, "-o", tmp_path / "out.jsonl")
    lines = (tmp_path / "out.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "out.jsonl").write_bytes(b"".join(lines[:-1]))
    done = run("import", tmp_path / "out.jsonl", "--db", tmp_path / "other.db")
    assert done.status == 5
    assert "manifest-mismatch" in done.err


def test_a_store_that_never_was_a_database_is_status_2_and_stays_as_it_is(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"not a database, but long enough to be looked at" * 40)
    done = run("import", SERVICES, "--db", tmp_path / "x.db")
    assert done.status == 2
    assert "not a store: the file is no SQLite database, and was not touched [store-foreign]" in done.err
    assert (tmp_path / "x.db").read_bytes().startswith(b"not a database")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_interrupted_run_leaves_whole_batches_and_is_status_130(
    home: Path, store: Path, tmp_path: Path, number: signal.Signals
) -> None:
    many = write_records(tmp_path / "many.jsonl", [entity(f"E {i}") for i in range(60_000)])
    command = [
        sys.executable,
        "-m",
        "graphmem",
        "import",
        str(many),
        "--db",
        str(store),
        "--batch-size",
        "500",
    ]
    report, rejects = tmp_path / "report.json", tmp_path / "rejects.jsonl"
    command += ["--report", str(report), "--rejects", str(rejects)]
    # What starts the tests may ignore interrupts, which a child inherits.
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (store.exists() and store.stat().st_size and _batches(store)):
        time.sleep(0.02)
    running.send_signal(number)
    out, err = running.communicate(timeout=60)

    assert (running.returncode, out) == (130, b"")
    assert b"[interrupted]" in err
    rows = numbers(store)
    assert 0 < rows["batch"] < 120
    assert rows["entity"] == 500 * rows["batch"]
    assert json.loads(report.read_text())["counts"]["entity"]["created"] == rows["entity"]
    assert rejects.read_bytes() == b""


def _batches(store: Path) -> int:
    try:
        return numbers(store)["batch"]
    except Exception:
        return 0  # it is being made


# ---- options ------------------------------------------------------------------------------------------


def test_from_forces_a_format(run: Run, store: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("just a line of text\n")
    assert run("import", tmp_path / "notes.txt", "--db", store).status == 3
    assert run("import", tmp_path / "notes.txt", "--db", store, "--from", "markdown").status == 0
    assert query(store, "SELECT content FROM memory") == ["just a line of text"]


def test_detect_says_what_each_input_is_and_imports_nothing(run: Run, store: Path, tmp_path: Path) -> None:
    packed = tmp_path / "s.gz"
    packed.write_bytes(gzip.compress(SERVICES.read_bytes()))
    done = run("import", packed, FIXTURES / "yaml" / "team.yaml", "--detect", "--db", store)
    assert (done.status, done.err) == (0, "")
    first, second = done.out.splitlines()
    assert first == f"{packed.as_posix()}: jsonl (JSON objects of type 'entity'; gzip)"
    assert ": yaml (" in second
    assert not store.parent.exists()


def test_detect_of_nothing_known_is_status_3(run: Run) -> None:
    done = run("import", FIXTURES / "corrupt" / "unknown-shape.json", "--detect", "--json")
    assert done.status == 3
    assert done.json["inputs"] == []
    assert done.json["findings"][0]["rule"] == "unknown-format"


def test_encoding_names_what_the_bytes_are(run: Run, store: Path, tmp_path: Path) -> None:
    path = tmp_path / "gbk.jsonl"
    path.write_bytes('{"type":"entity","name":"北京"}\n'.encode("gbk"))
    assert run("import", path, "--db", store).status == 3
    assert run("import", path, "--db", store, "--encoding", "gbk").status == 0
    assert query(store, "SELECT name FROM entity") == ["北京"]


def test_a_byte_that_the_encoding_lacks_is_reported_with_its_name(
    run: Run, store: Path, tmp_path: Path
) -> None:
    path = tmp_path / "gbk.jsonl"
    path.write_bytes(b'{"type":"entity","name":"\x81"}\n{"type":"entity","name":"A"}\n')
    done = run("import", path, "--db", store, "--encoding", "gbk")
    assert "cannot be decoded as gbk" in done.err


def test_the_default_scope_is_that_of_the_repository_one_is_in(
    run: Run, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "repo")], check=True)
    monkeypatch.chdir(tmp_path / "repo")
    path = write_records(tmp_path / "a.jsonl", [entity("A"), entity("B", scope="global")])
    run("import", path, "--db", store)
    found = dict(query(store, "SELECT e.name, s.name FROM entity AS e JOIN scope AS s ON s.pk = e.scope"))
    assert found == {"A": f"repo:{(tmp_path / 'repo' / '.git').resolve()}", "B": "global"}


def test_scope_is_for_records_that_name_none(run: Run, store: Path, tmp_path: Path) -> None:
    path = write_records(tmp_path / "a.jsonl", [entity("A"), entity("B", scope="team:b")])
    run("import", path, "--db", store, "--scope", "team:a")
    found = query(
        store, "SELECT e.name, s.name FROM entity AS e JOIN scope AS s ON s.pk = e.scope ORDER BY 1"
    )
    assert found == [("A", "team:a"), ("B", "team:b")]
    assert run("import", path, "--db", store, "--scope", "nonsense").status == 2


def test_map_scope_moves_a_path_and_what_lies_below_it(run: Run, store: Path, tmp_path: Path) -> None:
    records = [
        entity("A", scope="repo:/home/ann/one/.git"),
        entity("B", scope="team:x"),
        {"type": "memory", "content": "m", "scopes": ["repo:/home/ann/one/.git"], "about": ["A"]},
    ]
    path = write_records(tmp_path / "a.jsonl", records)
    done = run(
        "import", path, "--db", store, "--map-scope", "repo:/home/ann=repo:/Users/ann",
        "--map-scope", "team:x=team:y",
    )  # fmt: skip
    assert done.status == 0
    found = query(
        store, "SELECT e.name, s.name FROM entity AS e JOIN scope AS s ON s.pk = e.scope ORDER BY 1"
    )
    assert found == [("A", "repo:/Users/ann/one/.git"), ("B", "team:y")]
    assert query(store, "SELECT key FROM scope_set") == ['["repo:/Users/ann/one/.git"]']


@pytest.mark.parametrize("bad", ['{"type":"entity"}', '["x","knows","x y z"]'])
def test_strict_stores_nothing_if_there_is_any_error(run: Run, store: Path, tmp_path: Path, bad: str) -> None:
    lines = [*SERVICES.read_text().splitlines(), bad]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    done = run("import", tmp_path / "a.jsonl", "--db", store, "--strict", "--dangling", "error", "--json")
    assert done.status == 1
    assert done.json["committed"] is False
    for kind in KINDS:
        counts = done.json["counts"][kind]
        assert counts["skipped"] == counts["read"] - counts["rejected"]
    assert not store.exists() or numbers(store) == {"entity": 0, "memory": 0, "relation": 0, "batch": 0}


def test_strict_makes_no_store_for_an_input_with_an_error_near_its_start(
    run: Run, store: Path, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("bad\n" + "".join(f'["a","knows","b{i}"]\n' for i in range(50)))
    assert run("import", path, "--db", store, "--strict", "--batch-size", "10").status == 1
    assert not store.parent.exists()


def test_strict_rolls_back_changes_to_what_was_there(run: Run, store: Path, tmp_path: Path) -> None:
    run("import", write_records(tmp_path / "a.jsonl", [entity("A", description="old")]), "--db", store)
    before = numbers(store)
    records = [entity("A", description="new", updated_at="2030-01-01T00:00:00Z"), ["A", "knows", "nobody"]]
    path = write_records(tmp_path / "b.jsonl", records)
    assert run("import", path, "--db", store, "--strict", "--dangling", "error").status == 1
    assert query(store, "SELECT description FROM entity") == ["old"]
    assert numbers(store) == before


def test_atomic_makes_one_batch_of_what_would_be_several(run: Run, store: Path, tmp_path: Path) -> None:
    path = write_records(tmp_path / "a.jsonl", [entity(f"E {i}") for i in range(10)])
    run("import", path, "--db", tmp_path / "several.db", "--batch-size", "3")
    run("import", path, "--db", store, "--batch-size", "3", "--atomic")
    assert (numbers(tmp_path / "several.db")["batch"], numbers(store)["batch"]) == (4, 1)
    assert numbers(store)["entity"] == 10


def test_max_errors_gives_up_while_reading_and_stores_nothing(run: Run, store: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"type":"entity","name":"A"}\n' + "bad\n" * 5)
    done = run("import", path, "--db", store, "--max-errors", "2", "--json")
    assert done.status == 1
    assert done.json["findings_by_rule"] == {"bad-json": 3}
    assert done.json["counts"]["entity"]["skipped"] == 1
    assert not store.parent.exists()
    assert run("import", path, "--db", store, "--max-errors", "5").status == 1
    assert numbers(store)["entity"] == 1


def test_max_errors_gives_up_while_storing_and_keeps_the_batches_before(
    run: Run, store: Path, tmp_path: Path
) -> None:
    good = write_records(tmp_path / "a.jsonl", [entity(f"E {i}") for i in range(4)])
    bad = write_records(tmp_path / "b.jsonl", [["E 1", "knows", f"nobody {i}"] for i in range(4)])
    more = write_records(tmp_path / "c.jsonl", [entity(f"F {i}") for i in range(4)])
    done = run(
        "import", good, bad, more, "--db", store, "--batch-size", "4", "--dangling", "error",
        "--max-errors", "2", "--json",
    )  # fmt: skip
    assert done.status == 1
    assert numbers(store) == {"entity": 4, "memory": 0, "relation": 0, "batch": 1}
    counts = done.json["counts"]
    assert (counts["entity"]["created"], counts["entity"]["skipped"]) == (4, 4)
    assert (counts["relation"]["rejected"], counts["relation"]["read"]) == (4, 4)


@pytest.mark.parametrize(
    ("policy", "description", "status"),
    [
        ("merge", "new", 0),
        ("newer", "new", 0),
        ("overwrite", "new", 0),
        ("skip", "old", 1),
        ("error", "old", 1),
    ],
)
def test_on_conflict_decides_what_a_different_record_does(
    run: Run, store: Path, tmp_path: Path, policy: str, description: str, status: int
) -> None:
    run("import", write_records(tmp_path / "a.jsonl", [entity("A", description="old")]), "--db", store)
    changed = entity("A", description="new", updated_at="2035-01-01T00:00:00Z")
    path = write_records(tmp_path / "b.jsonl", [changed])
    assert run("import", path, "--db", store, "--on-conflict", policy).status == status
    assert query(store, "SELECT description FROM entity") == [description]


def test_on_ambiguous_newest_takes_the_newest_of_several(run: Run, store: Path, tmp_path: Path) -> None:
    records = [
        entity("Mercury", kind="planet", updated_at="2020-01-01T00:00:00Z"),
        entity("Mercury", kind="element", updated_at="2024-01-01T00:00:00Z"),
        {"type": "memory", "content": "it is toxic", "about": ["Mercury"]},
    ]
    path = write_records(tmp_path / "a.jsonl", records)
    refused = run("import", path, "--db", store)
    assert refused.status == 1
    assert "'Mercury' could be any of 'Mercury' (element, global), 'Mercury' (planet, global)" in refused.err
    assert run("import", path, "--db", store, "--on-ambiguous", "newest").status == 0
    about = "SELECT e.kind FROM memory_link AS l JOIN entity AS e ON e.pk = l.entity"
    assert query(store, about) == ["element"]


@pytest.mark.parametrize(
    ("policy", "rows", "status"),
    [("stub", (2, 1), 0), ("skip", (1, 0), 1), ("error", (1, 0), 1)],
)
def test_dangling_decides_what_a_reference_to_nothing_does(
    run: Run, store: Path, tmp_path: Path, policy: str, rows: tuple[int, int], status: int
) -> None:
    path = write_records(tmp_path / "a.jsonl", [entity("A"), ["A", "knows", "B"]])
    assert run("import", path, "--db", store, "--dangling", policy).status == status
    found = numbers(store)
    assert (found["entity"], found["relation"]) == rows


def test_fold_case_merges_names_that_differ_by_case(run: Run, store: Path, tmp_path: Path) -> None:
    path = write_records(tmp_path / "a.jsonl", [entity("Redis"), entity("redis")])
    run("import", path, "--db", tmp_path / "apart.db")
    run("import", path, "--db", store, "--fold-case")
    assert (numbers(tmp_path / "apart.db")["entity"], numbers(store)["entity"]) == (2, 1)


def test_restore_archived_brings_back_what_the_input_says(run: Run, store: Path, tmp_path: Path) -> None:
    path = write_records(tmp_path / "a.jsonl", [entity("A")])
    run("import", path, "--db", store)
    with Store(store, write=True) as opened:
        opened.db.execute("UPDATE entity SET state = 'archived', archived_by = 'person'")
    kept = run("import", path, "--db", store)
    assert "1 record of archived things, which stay archived" in kept.out
    assert query(store, "SELECT state FROM entity") == ["archived"]
    run("import", path, "--db", store, "--restore-archived")
    assert query(store, "SELECT state FROM entity") == ["active"]


@pytest.mark.parametrize(("least", "status"), [("error", 0), ("warning", 0), ("note", 1)])
def test_fail_on_sets_the_severity_that_fails(run: Run, store: Path, least: str, status: int) -> None:
    assert run("import", SERVICES, "--db", store, "--fail-on", least).status == status


def test_fail_on_warning_fails_at_a_warning(run: Run, store: Path) -> None:
    path = FIXTURES / "corrupt" / "duplicate-keys.jsonl"
    assert run("import", path, "--db", store).status == 0
    assert run("import", path, "--db", store, "--fail-on", "warning").status == 1


def test_no_embeddings_needs_no_model(run: Run, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMEM_EMBEDDINGS", "on")
    monkeypatch.setenv("GRAPHMEM_EMBEDDING_MODEL", "./no-such-model")
    failed = run("import", SERVICES, "--db", store)
    assert failed.status == 2
    assert "model-unavailable" in failed.err
    assert not store.parent.exists()
    done = run("import", SERVICES, "--db", store, "--no-embeddings", "--json")
    assert done.status == 0
    assert done.json["without_vectors"] == "--no-embeddings was given"
    assert "without vectors" not in done.err


def test_the_store_and_its_folder_are_private(run: Run, store: Path) -> None:
    run("import", SERVICES, "--db", store)
    if os.name == "posix":
        assert stat.S_IMODE(store.stat().st_mode) == 0o600
        assert stat.S_IMODE(store.parent.stat().st_mode) == 0o700


def test_a_write_protected_store_is_status_2_and_stays_protected(
    run: Run, store: Path, guarded: Path, nobody: None
) -> None:
    def put() -> None:
        run("import", SERVICES, "--db", store)
        (guarded / "x.db").write_bytes(store.read_bytes())
        (guarded / "x.db").chmod(0o444)
        guarded.chmod(0o777)

    as_root(put)
    os.chdir(guarded)
    done = run("import", FIXTURES / "yaml" / "garden.yml", "--db", guarded / "x.db")
    assert done.status == 2
    assert "store-read-only" in done.err
    assert stat.S_IMODE((guarded / "x.db").stat().st_mode) == 0o444


def test_what_a_note_no_longer_says_is_counted_and_kept(run: Run, store: Path, tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    note.write_text("# Redis\n\n- [fact] it is fast\n- [fact] it is red\n")
    run("import", note, "--db", store)
    note.write_text("# Redis\n\n- [fact] it is fast\n")
    done = run("import", note, "--db", store)
    assert "1 thing that a source said before and no longer says: kept" in done.out
    assert numbers(store)["memory"] == 2


def test_links_between_the_notes_of_a_folder_find_the_note_that_is_meant(
    run: Run, store: Path, tmp_path: Path
) -> None:
    for name, text in {
        "a/Plan.md": "# Plan A\n",
        "b/Plan.md": "# Plan B\n",
        "b/Log.md": "[[Plan]]\n",
    }.items():
        (tmp_path / "vault" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "vault" / name).write_text(text)
    assert run("import", tmp_path / "vault", "--db", store).status == 0
    linked = "SELECT e.name FROM relation AS r JOIN entity AS e ON e.pk = r.object"
    assert query(store, linked) == ["Plan B"]


# ---- rejects ------------------------------------------------------------------------------------------


def repaired(path: Path, *changes: tuple[str, str]) -> None:
    text = path.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


def test_rejects_can_be_repaired_and_imported_again(run: Run, store: Path, tmp_path: Path) -> None:
    good, rejects = '{"type":"entity","name":"A","scope":"team:x"}', tmp_path / "rejects.jsonl"
    bad = ['{"type":"entity","name":"B"', '{"type":"entity","nome":"C"}']
    understood = '{"type":"relation","subject":"A","predicate":"knows","object":"Nobody","scope":"team:x"}'
    (tmp_path / "a.jsonl").write_text("\n".join([good, *bad, understood]))
    args = ("--db", store, "--dangling", "error", "--rejects", rejects)

    assert run("import", tmp_path / "a.jsonl", *args).status == 1
    assert rejects.read_text().splitlines() == [*bad, understood]
    again = tmp_path / "again.jsonl"
    args = (*args[:-1], again)
    assert run("import", rejects, *args).status == 1
    assert again.read_text().splitlines() == [*bad, understood]

    repaired(rejects, (bad[0], bad[0] + "}"), ("nome", "name"), ("Nobody", "A"))
    assert run("import", rejects, *args).status == 0
    assert again.read_text() == ""
    assert numbers(store)["entity"] == 3
    assert numbers(store)["relation"] == 1


def test_damaged_yaml_goes_to_a_file_beside_the_rejects(run: Run, store: Path, tmp_path: Path) -> None:
    rejects = tmp_path / "rejects.jsonl"
    run("import", FIXTURES / "corrupt" / "damaged-list.yaml", "--db", store, "--rejects", rejects)
    assert rejects.read_text() == ""
    again = run("import", f"{rejects}.yaml", "--db", store)
    assert "bad-yaml" in again.err


def test_bytes_that_are_not_text_are_written_as_they_stood(run: Run, store: Path, tmp_path: Path) -> None:
    path = FIXTURES / "corrupt" / "gbk.jsonl"
    run("import", path, "--db", store, "--rejects", tmp_path / "rejects.jsonl")
    assert (tmp_path / "rejects.jsonl").read_bytes() in path.read_bytes()
    assert (tmp_path / "rejects.jsonl").read_bytes().count(b"\n") == 1


def test_a_rejects_file_that_cannot_be_written_is_told(run: Run, store: Path, tmp_path: Path) -> None:
    done = run("import", SERVICES, "--db", store, "--rejects", tmp_path / "no" / "such" / "folder")
    assert done.status == 2
    assert "output-unwritable" in done.err


# ---- vectors ------------------------------------------------------------------------------------------


@pytest.mark.model
def test_texts_are_encoded_once_and_never_again(
    run: Run, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GRAPHMEM_EMBEDDINGS")
    rejects = tmp_path / "rejects.jsonl"
    path = write_records(tmp_path / "a.jsonl", [entity("A"), entity("B"), ["A", "knows", "Nobody"]])
    args = ("import", path, "--db", store, "--dangling", "error", "--rejects", rejects, "--json")
    first: Done = run(*args)
    assert first.json["encoded"] == 2
    assert first.json["without_vectors"] == ""
    assert len(rejects.read_text().splitlines()) == 1
    assert run(*args).json["encoded"] == 0
    assert query(store, "SELECT count(*) FROM vector") == [2]


def test_a_note_that_cannot_be_opened_makes_no_entity(run: Run, guarded: Path, nobody: None) -> None:
    note = guarded / "real.md"
    as_root(lambda: note.write_text("---\ntitle: Real\n---\ntext\n"))
    as_root(lambda: note.chmod(0o000))
    done = run("import", note, "--db", guarded / "s.db", "--no-embeddings", "--json")

    assert done.json["findings_by_rule"] == {"file-unreadable": 1}
    assert done.json["counts"]["entity"]["read"] == 0
