"""Keeping rejected records: each once, as text that can be imported again."""

from __future__ import annotations

import json
from pathlib import Path

from conftest import write_records
from hash_encoder import HashEncoder

from graphmem.commit import Choices
from graphmem.formats import Rejected
from graphmem.ingest import run
from graphmem.options import ImportOptions
from graphmem.records import NO_PLACE, EntityRecord
from graphmem.rejects import Rejects
from graphmem.store import Store


def written(rejects: Rejects, tmp_path: Path) -> list[str]:
    rejects.write(tmp_path / "out")
    return (tmp_path / "out").read_text(encoding="utf-8", errors="surrogateescape").splitlines()


def test_a_record_that_was_understood_is_a_line_of_canonical_json(tmp_path: Path) -> None:
    with Rejects() as rejects:
        rejects.keep(EntityRecord("Zoë", "person", "team:a", aliases=["Z"]))
        (line,) = written(rejects, tmp_path)
    assert line == '{"type":"entity","name":"Zoë","kind":"person","scope":"team:a","aliases":["Z"]}'


def test_a_record_over_several_lines_becomes_one(tmp_path: Path) -> None:
    with Rejects() as rejects:
        rejects.keep(Rejected(NO_PLACE, '{\n  "type": "entity"\n}'))
        (line,) = written(rejects, tmp_path)
    assert json.loads(line) == {"type": "entity"}


def test_half_of_a_character_is_written_as_an_escape(tmp_path: Path) -> None:
    with Rejects() as rejects:
        rejects.keep(EntityRecord("a\ud83d"))
        assert written(rejects, tmp_path) == ['{"type":"entity","name":"a\\ud83d"}']


def test_yaml_documents_stay_apart_from_each_other(tmp_path: Path) -> None:
    with Rejects() as rejects:
        for raw in ("name: [\n", "---\nname: {\n", "%YAML 1.1\n---\nname: (\n"):
            rejects.keep(Rejected(NO_PLACE, raw, "yaml"))
        assert rejects.write(tmp_path / "out") == [tmp_path / "out", tmp_path / "out.yaml"]
    text = (tmp_path / "out.yaml").read_text()
    assert text == "---\nname: [\n---\nname: {\n...\n%YAML 1.1\n---\nname: (\n"
    assert (tmp_path / "out").read_text() == ""


def test_what_was_kept_since_a_mark_can_be_forgotten(tmp_path: Path) -> None:
    with Rejects() as rejects:
        rejects.keep(Rejected(NO_PLACE, "one"))
        mark = rejects.mark()
        rejects.keep(Rejected(NO_PLACE, "two"))
        rejects.keep(Rejected(NO_PLACE, "[", "yaml"))
        rejects.rewind(mark)
        rejects.keep(Rejected(NO_PLACE, "three"))
        assert rejects.count == 2
        assert rejects.write(tmp_path / "out") == [tmp_path / "out"]
    assert (tmp_path / "out").read_text() == "one\nthree\n"


def test_a_batch_that_is_done_again_with_vectors_rejects_once(tmp_path: Path, store_path: Path) -> None:
    records = [{"type": "entity", "name": "A"}, ["A", "knows", "Nobody"], ["A", "knows", "A"]]
    options = ImportOptions(
        [str(write_records(tmp_path / "in.jsonl", records))], choices=Choices(dangling="error")
    )
    encoder = HashEncoder()
    with Rejects() as rejects, Store(store_path, write=True) as store:
        report = run(store, options, encoder, rejects=rejects)
        assert (rejects.count, report.counts["relation"].rejected) == (1, 1)
        assert json.loads(written(rejects, tmp_path)[0])["object"] == "Nobody"
    assert report.encoded == len(encoder.encoded) == 2


def test_strict_encodes_nothing_for_a_batch_with_an_error(tmp_path: Path, store_path: Path) -> None:
    records = [{"type": "entity", "name": "A"}, ["A", "knows", "Nobody"]]
    path = str(write_records(tmp_path / "in.jsonl", records))
    encoder = HashEncoder()
    with Store(store_path, write=True) as store:
        run(store, ImportOptions([path], strict=True, choices=Choices(dangling="error")), encoder)
    assert encoder.encoded == []
