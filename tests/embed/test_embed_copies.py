"""Compiled copies on disk: found when whole and fitting, put in place in one step."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from graphmem.embed import copies, placing
from graphmem.embed.copies import Copy, Sheet
from graphmem.embed.sources import ModelSource
from graphmem.errors import ModelUnavailable

SOURCE = ModelSource("owner/some model", None, "key", "stamp")
SHEET = Sheet("owner/some model", "r", "d", 3, 256, 254, {"query": "q: ", "document": ""})


def fill(folder: Path) -> Sheet:
    (folder / copies.GRAPH).write_bytes(b"graph")
    return SHEET


def made(models: Path) -> Copy:
    return placing.make(models / "copy", fill)


def test_a_copy_is_found_through_its_link(tmp_path: Path) -> None:
    copy = made(tmp_path / "models")
    placing.link(tmp_path / "models", SOURCE, copy)

    found = copies.find(tmp_path / "models", SOURCE)

    assert found == copy
    assert found is not None
    assert found.sheet.files == {copies.GRAPH: 5}
    assert found.sheet.prompt("query") == "q: "


def test_a_model_that_changed_has_no_copy(tmp_path: Path) -> None:
    placing.link(tmp_path, SOURCE, made(tmp_path))

    assert copies.find(tmp_path, replace(SOURCE, stamp="other")) is None


def test_a_truncated_copy_counts_as_missing(tmp_path: Path) -> None:
    copy = made(tmp_path)
    (copy.folder / copies.GRAPH).write_bytes(b"gra")

    assert copies.read(copy.folder) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": 0}'])
def test_a_sheet_that_cannot_be_read_counts_as_missing(tmp_path: Path, text: str) -> None:
    copy = made(tmp_path)
    (copy.folder / copies.SHEET).write_text(text)

    assert copies.read(copy.folder) is None


def test_a_refusal_holds_only_for_the_tools_that_refused(tmp_path: Path) -> None:
    copy = placing.make(tmp_path / "copy", lambda _: replace(SHEET, refused="not supported"))
    sheet = copy.folder / copies.SHEET
    said = json.loads(sheet.read_text())

    assert copies.read(copy.folder) == copy
    sheet.write_text(json.dumps(said | {"versions": {**said["versions"], "torch": "0.0"}}))
    assert copies.read(copy.folder) is None


def test_a_whole_copy_that_another_process_made_first_stays(tmp_path: Path) -> None:
    def overtaken(folder: Path) -> Sheet:
        first = made(tmp_path)
        (first.folder / "mark").write_text("first")
        return fill(folder)

    copy = placing.make(tmp_path / "copy", overtaken)

    assert (copy.folder / "mark").exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["copy"]


def test_a_damaged_copy_makes_room(tmp_path: Path) -> None:
    copy = made(tmp_path)
    (copy.folder / copies.GRAPH).write_bytes(b"")

    assert made(tmp_path) == copy
    assert (copy.folder / copies.GRAPH).read_bytes() == b"graph"
    assert [entry.name for entry in tmp_path.iterdir()] == ["copy"]


def test_a_failure_while_filling_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> Sheet:
        fill(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        placing.make(tmp_path / "copy", fail)

    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_after_a_day(tmp_path: Path) -> None:
    old, new = tmp_path / ".making-old", tmp_path / ".making-new"
    for folder in (old, new):
        folder.mkdir()
    two_days_ago = time.time() - 2 * 86400
    os.utime(old, (two_days_ago, two_days_ago))

    made(tmp_path)

    assert not old.exists()
    assert new.exists()


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file")

    with pytest.raises(ModelUnavailable, match="cannot be written"):
        made(tmp_path / "models")


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_folders_are_for_their_owner_only(tmp_path: Path) -> None:
    copy = made(tmp_path / "home" / "models")
    placing.link(tmp_path / "home" / "models", SOURCE, copy)

    folders = [tmp_path / "home", *(tmp_path / "home").rglob("*/")]
    assert {oct(folder.stat().st_mode & 0o777) for folder in folders if folder.is_dir()} == {"0o700"}


def test_the_folder_of_a_copy_says_which_model_and_weights(tmp_path: Path) -> None:
    one = placing.copy_folder(tmp_path, SOURCE, "w", "s")

    assert one.name.startswith("owner-some-model-")
    assert len(one.name) == len("owner-some-model-") + 12
    assert len({one, *(placing.copy_folder(tmp_path, SOURCE, *digests) for digests in ("vs", "wt"))}) == 3
