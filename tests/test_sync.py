"""Sync: the store says what the files say, whatever happened to them, and never forgets by mistake."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hash_encoder import HashEncoder
from sync_worlds import World, said, said_afresh

from graphmem.edit.undo import undo
from graphmem.errors import SyncRefused, UsageError
from graphmem.export import export
from graphmem.ingest import run
from graphmem.options import ImportOptions
from graphmem.store import Store
from graphmem.sync import SyncReport, sync

NOTE = """---
title: Billing
type: service
aliases: [invoices]
tags: [money]
---
## Design
It rounds per line.

## History
It was written in 2019.

## Operations
- depends_on [[Postgres]]
"""
OTHER = """---
title: Postgres
type: database
---
It keeps the money.
"""


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "billing.md").write_text(NOTE, encoding="utf-8")
    (folder / "postgres.md").write_text(OTHER, encoding="utf-8")
    _age(folder)
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "memory.db", write=True) as opened:
        yield opened


def _age(folder: Path) -> None:
    """Makes the files older than the resolution of any file system's times."""
    for path in folder.rglob("*"):
        os.utime(path, ns=(10**18, 10**18))


def _sync(store: Store, *folders: Path, **options: Any) -> SyncReport:
    return sync(store, [str(one) for one in folders], ImportOptions(), **options)


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def _memory(store: Store, content: str) -> tuple[str, str]:
    """(id, state) of the only memory of a text."""
    rows: Any = store.db.execute("SELECT id, state FROM memory WHERE content = ?", (content,)).fetchall()
    ((id_, state),) = rows
    return str(id_), str(state)


def _entity(store: Store, name: str) -> tuple[Any, ...]:
    """(id, kind, state, stub) of the only entity of a name."""
    rows: Any = store.db.execute(
        "SELECT id, kind, state, stub FROM entity WHERE name = ?", (name,)
    ).fetchall()
    (row,) = rows
    return tuple(row)


# ---- what is read -----------------------------------------------------------------------------------


def test_the_first_sync_is_an_import_of_the_folder(store: Store, notes: Path) -> None:
    report = _sync(store, notes)
    assert (report.files.added, report.files.unchanged) == (2, 0)
    assert said(store, kinds=False) == said_afresh(notes)


def test_a_second_sync_writes_nothing(store: Store, notes: Path) -> None:
    _sync(store, notes)
    before = store.total_changes()
    report = _sync(store, notes)
    assert (report.files.unchanged, report.run.batches, report.quiet) == (2, [], True)
    assert store.total_changes() == before


def test_a_file_of_the_same_size_and_time_is_not_read(store: Store, notes: Path) -> None:
    _sync(store, notes)
    note = notes / "billing.md"
    note.write_bytes(b"x" * note.stat().st_size)
    _age(notes)
    assert _sync(store, notes).files.unchanged == 2


def test_a_file_that_was_only_touched_is_unchanged(store: Store, notes: Path) -> None:
    _sync(store, notes)
    os.utime(notes / "billing.md", ns=(2 * 10**18, 2 * 10**18))
    report = _sync(store, notes)
    assert (report.files.unchanged, report.run.total("read")) == (2, 0)


def test_only_changed_files_are_read(store: Store, notes: Path) -> None:
    _sync(store, notes)
    _edit(notes / "postgres.md", "the money", "all the money")
    report = _sync(store, notes)
    assert (report.files.modified, report.files.unchanged) == (1, 1)
    assert [Path(one.label).name for one in report.run.inputs] == ["postgres.md"]


def test_what_is_given_must_be_a_folder(store: Store, notes: Path) -> None:
    with pytest.raises(UsageError, match="not a folder"):
        _sync(store, notes / "billing.md")


def test_a_folder_inside_another_is_followed_once(store: Store, notes: Path) -> None:
    (notes / "deep").mkdir()
    (notes / "deep" / "one.md").write_text("# One\ntext\n", encoding="utf-8")
    assert _sync(store, notes, notes / "deep").files.added == 3


# ---- what is edited ---------------------------------------------------------------------------------


def test_an_edited_section_keeps_its_memory_with_its_history(store: Store, notes: Path) -> None:
    _sync(store, notes)
    id_, _ = _memory(store, "It rounds per line.")
    _edit(notes / "billing.md", "It rounds per line.", "It rounds per invoice.")
    report = _sync(store, notes)
    assert _memory(store, "It rounds per invoice.") == (id_, "active")
    assert sum(report.run.archived.values()) == 0
    (before,) = store.db.execute("SELECT before FROM version WHERE kind = 1").fetchone()  # type: ignore[misc]
    assert "It rounds per line." in before


def test_a_new_paragraph_before_another_leaves_that_one_its_identity(store: Store, notes: Path) -> None:
    _sync(store, notes)
    id_, _ = _memory(store, "It rounds per line.")
    _edit(notes / "billing.md", "## Design", "## First\nIt is new.\n\n## Design")
    _sync(store, notes)
    assert _memory(store, "It rounds per line.") == (id_, "active")
    assert said(store, kinds=False) == said_afresh(notes)


def test_an_edited_memory_that_another_file_says_too_stays_as_it_was(store: Store, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.jsonl").write_text('{"type":"memory","content":"shared"}\n', encoding="utf-8")
    _sync(store, tmp_path / "one", tmp_path / "two")
    id_, _ = _memory(store, "shared")
    (tmp_path / "one" / "a.jsonl").write_text('{"type":"memory","content":"own"}\n', encoding="utf-8")
    _sync(store, tmp_path / "one", tmp_path / "two")
    assert _memory(store, "shared") == (id_, "active")
    assert _memory(store, "own")[0] != id_


def test_text_that_moves_to_another_file_keeps_its_identity(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    record = '{"type":"memory","content":"moving"}\n'
    (folder / "a.jsonl").write_text(record + '{"type":"memory","content":"a"}\n', encoding="utf-8")
    (folder / "b.jsonl").write_text('{"type":"memory","content":"b"}\n', encoding="utf-8")
    _sync(store, folder)
    id_, _ = _memory(store, "moving")
    (folder / "a.jsonl").write_text('{"type":"memory","content":"a, edited"}\n', encoding="utf-8")
    (folder / "b.jsonl").write_text('{"type":"memory","content":"b"}\n' + record, encoding="utf-8")
    _sync(store, folder)
    assert _memory(store, "moving") == (id_, "active")


def test_what_a_note_no_longer_says_of_its_entity_goes(store: Store, notes: Path) -> None:
    _sync(store, notes)
    id_ = _entity(store, "Billing")[0]
    _edit(notes / "billing.md", "aliases: [invoices]\n", "")
    report = _sync(store, notes)
    assert report.run.withdrawn == 1
    assert _entity(store, "Billing")[0] == id_
    assert "invoices" not in str(store.db.execute("SELECT aliases FROM entity WHERE name = 'Billing'").get)
    assert store.db.execute("SELECT count(*) FROM name_key WHERE key = 'invoices'").get == 0


def test_an_entity_whose_kind_was_edited_stays_itself(store: Store, notes: Path) -> None:
    _sync(store, notes)
    id_ = _entity(store, "Postgres")[0]
    _edit(notes / "postgres.md", "type: database", "type: store")
    _sync(store, notes)
    assert _entity(store, "Postgres") == (id_, "store", "active", 0)


# ---- what moves and what goes -----------------------------------------------------------------------


def test_a_file_that_is_moved_keeps_everything(store: Store, notes: Path) -> None:
    _sync(store, notes)
    before = sorted(store.db.execute("SELECT id FROM memory UNION SELECT id FROM entity").fetchall())
    (notes / "deep").mkdir()
    (notes / "billing.md").rename(notes / "deep" / "billing.md")
    report = _sync(store, notes)
    assert (report.files.renamed, report.files.removed, report.files.added) == (1, 0, 0)
    assert sum(report.run.archived.values()) == 0
    assert report.run.total("created") == 0
    assert sorted(store.db.execute("SELECT id FROM memory UNION SELECT id FROM entity").fetchall()) == before


def test_a_note_that_is_named_by_its_file_keeps_its_entity(store: Store, notes: Path) -> None:
    (notes / "Old name.md").write_text("Just a text.\n", encoding="utf-8")
    _sync(store, notes)
    id_ = _entity(store, "Old name")[0]
    (notes / "Old name.md").rename(notes / "New name.md")
    _sync(store, notes)
    assert _entity(store, "New name")[0] == id_
    assert store.db.execute("SELECT count(*) FROM entity WHERE name = 'Old name'").get == 0
    assert said(store, kinds=False) == said_afresh(notes)


def test_what_only_a_removed_file_said_is_archived_and_the_rest_stays(store: Store, notes: Path) -> None:
    _sync(store, notes)
    (notes / "postgres.md").unlink()
    report = _sync(store, notes)
    assert report.files.removed == 1
    assert report.run.archived == {"entity": 0, "memory": 1, "relation": 0}
    assert _memory(store, "It keeps the money.")[1] == "archived"
    # Billing still refers to it: it stands as the stub that this reference would have made.
    assert _entity(store, "Postgres")[2:] == ("active", 1)
    assert said(store, kinds=False) == said_afresh(notes)


def test_support_that_comes_back_wakes_what_was_archived(store: Store, notes: Path) -> None:
    _sync(store, notes)
    memory = _memory(store, "It keeps the money.")
    entity = _entity(store, "Postgres")
    (notes / "postgres.md").unlink()
    _sync(store, notes)
    (notes / "postgres.md").write_text(OTHER, encoding="utf-8")
    _sync(store, notes)
    assert _memory(store, "It keeps the money.") == memory
    assert _entity(store, "Postgres") == entity


def test_what_a_person_archived_stays_archived(store: Store, notes: Path) -> None:
    from graphmem.edit.forget import forget

    _sync(store, notes)
    id_, _ = _memory(store, "It keeps the money.")
    forget(store, [id_], None)
    _edit(notes / "postgres.md", "type: database", "type: store")
    _sync(store, notes)
    assert _memory(store, "It keeps the money.") == (id_, "archived")


def test_removal_never_reaches_outside_the_folder(store: Store, notes: Path, tmp_path: Path) -> None:
    beside = tmp_path / "notes-too"
    shutil.copytree(notes, beside)
    _edit(beside / "postgres.md", "It keeps the money.", "Elsewhere.")
    _sync(store, notes, beside)
    shutil.rmtree(beside)
    report = _sync(store, notes)
    assert report.files.removed == 0
    assert _memory(store, "Elsewhere.")[1] == "active"


def test_what_was_remembered_by_hand_stays_when_its_file_goes(store: Store, notes: Path) -> None:
    from graphmem.edit.update import Update, update

    _sync(store, notes)
    id_, _ = _memory(store, "It keeps the money.")
    update(store, id_, Update(set={"content": "It keeps all money."}), None)
    (notes / "postgres.md").unlink()
    _sync(store, notes)
    assert _memory(store, "It keeps all money.") == (id_, "active")


def test_what_a_person_tagged_follows_its_edited_text(store: Store, notes: Path) -> None:
    from graphmem.edit.update import Update, update

    _sync(store, notes)
    id_, _ = _memory(store, "It keeps the money.")
    update(store, id_, Update(add={"tags": ["reviewed"]}), None)
    _edit(notes / "postgres.md", "the money", "all the money")
    _sync(store, notes)
    assert _memory(store, "It keeps all the money.") == (id_, "active")
    assert store.db.execute("SELECT tags FROM memory WHERE id = ?", (id_,)).get == '["reviewed"]'


def test_what_a_person_edited_stands_whole_when_its_file_goes(store: Store, notes: Path) -> None:
    from graphmem.edit.update import Update, update

    _sync(store, notes)
    id_, _ = _memory(store, "It rounds per line.")
    update(store, id_, Update(add={"tags": ["reviewed"]}), None)
    columns = "SELECT content, title, tags, scope_set, source, position, key FROM memory WHERE id = ?"
    before = store.db.execute(columns, (id_,)).fetchone()
    (notes / "billing.md").unlink()
    _sync(store, notes)
    assert _memory(store, "It rounds per line.") == (id_, "active")
    assert store.db.execute(columns, (id_,)).fetchone() == before
    (notes / "billing.md").write_text(NOTE, encoding="utf-8")
    _sync(store, notes)
    assert _memory(store, "It rounds per line.")[0] == id_


def test_an_update_of_what_sync_archived_changes_what_was_asked_for_only(store: Store, notes: Path) -> None:
    from graphmem.edit.update import Update, update

    _sync(store, notes)
    id_, _ = _memory(store, "It rounds per line.")
    (notes / "billing.md").unlink()
    _sync(store, notes)
    done = update(store, id_, Update(set={"valid_at": "2020-01-01"}), None)
    assert done.fields == ("valid_at",)


def test_entities_with_equal_memories_that_were_archived_can_be_merged(store: Store, tmp_path: Path) -> None:
    from graphmem.edit.identity import merge

    folder = tmp_path / "notes"
    folder.mkdir()
    for name in "AB":
        (folder / f"{name}.md").write_text(f"# {name}\n## H\nsame text\n\n- uses [[C]]\n", encoding="utf-8")
    (folder / "C.md").write_text("# C\nx\n", encoding="utf-8")
    _sync(store, folder)
    for name in "AB":
        (folder / f"{name}.md").write_text(f"# {name}\n", encoding="utf-8")
    _sync(store, folder)
    told = merge(store, "A", "B", None)
    assert (told["memories_united"], told["relations_united"]) == (1, 1)


def test_a_store_that_has_archived_things_is_itself_after_export_and_import(
    store: Store, notes: Path, tmp_path: Path
) -> None:
    _sync(store, notes)
    (notes / "postgres.md").unlink()
    _edit(notes / "billing.md", "- depends_on [[Postgres]]", "")
    _sync(store, notes)
    first, second, third = (tmp_path / f"{number}.jsonl" for number in range(3))
    export(store, "jsonl", first)
    with Store(tmp_path / "other.db", write=True) as other:
        run(other, ImportOptions([str(first)]))
        export(other, "jsonl", second)
    assert second.read_bytes() == first.read_bytes()
    assert run(store, ImportOptions([str(first)])).batches == []
    export(store, "jsonl", third)
    assert third.read_bytes() == first.read_bytes()


def test_a_whole_folder_that_was_moved_keeps_everything(store: Store, notes: Path, tmp_path: Path) -> None:
    _sync(store, notes)
    before = said(store)
    moved = notes.rename(tmp_path / "elsewhere")
    report = _sync(store, moved)
    assert report.files.renamed == 2
    assert said(store) == before
    (moved / "postgres.md").unlink()
    assert _sync(store, moved).run.archived["memory"] == 1


def test_another_scope_moves_what_a_folder_says(store: Store, notes: Path) -> None:
    _sync(store, notes)
    sync(store, [str(notes)], ImportOptions(scope="project:z"), max_delete=100)
    scopes: Any = store.db.execute(
        "SELECT DISTINCT s.name FROM entity AS e JOIN scope AS s ON s.pk = e.scope WHERE e.state = 'active'"
    ).fetchall()
    assert scopes == [("project:z",)]


@pytest.mark.skipif(sys.platform != "linux", reason="names that are no text")
def test_names_that_are_no_text_are_followed_too(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    with open(os.fsencode(folder) + b"/bad\xff.md", "wb") as stream:  # noqa: PTH123
        stream.write(b"text\n")
    os.utime(os.fsencode(folder) + b"/bad\xff.md", ns=(10**18, 10**18))
    assert _sync(store, folder).files.added == 1
    assert _sync(store, folder).files.unchanged == 1


def test_after_an_undo_files_count_as_added_again(store: Store, notes: Path) -> None:
    _sync(store, notes)
    undo(store)
    assert _sync(store, notes).files.added == 2


# ---- never by mistake -------------------------------------------------------------------------------


def test_a_file_with_errors_removes_nothing(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    good = '{"type":"memory","content":"one"}\n{"type":"memory","content":"two"}\n'
    (folder / "a.jsonl").write_text(good, encoding="utf-8")
    _sync(store, folder)
    (folder / "a.jsonl").write_text('{"type":"memory","content":"one"}\n{"type":"mem', encoding="utf-8")
    report = _sync(store, folder)
    assert report.files.broken == 1
    assert report.run.findings.by_rule["kept-while-broken"] == 1
    assert _memory(store, "two")[1] == "active"
    again = _sync(store, folder)
    assert again.run.findings.errors == report.run.findings.errors


def test_an_empty_folder_is_no_reason_to_forget(store: Store, notes: Path) -> None:
    _sync(store, notes)
    before = said(store)
    for note in notes.glob("*.md"):
        note.unlink()
    with pytest.raises(SyncRefused, match="is empty"):
        _sync(store, notes)
    assert said(store) == before
    report = _sync(store, notes, max_delete=100)
    assert report.files.removed == 2
    assert said(store) == []


def test_more_than_is_allowed_is_not_archived(store: Store, notes: Path) -> None:
    _sync(store, notes)
    before = said(store)
    (notes / "billing.md").unlink()
    with pytest.raises(SyncRefused, match="4 things") as refused:
        _sync(store, notes, max_delete=1)
    assert "--max-delete 4" in refused.value.hint
    assert said(store) == before
    assert _sync(store, notes, max_delete=10).files.removed == 1


def test_an_edit_that_would_archive_too_much_changes_nothing(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    lines = [f'{{"type":"memory","content":"number {number}"}}\n' for number in range(200)]
    (folder / "a.jsonl").write_text("".join(lines), encoding="utf-8")
    _sync(store, folder)
    (folder / "a.jsonl").write_text("".join(lines[:20]), encoding="utf-8")
    with pytest.raises(SyncRefused):
        _sync(store, folder)
    assert store.db.execute("SELECT count(*) FROM memory WHERE state = 'active'").get == 200


def test_a_folder_that_cannot_be_read_in_part_removes_nothing(
    store: Store, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (notes / "closed").mkdir()
    (notes / "closed" / "one.md").write_text("# One\ntext\n", encoding="utf-8")
    _sync(store, notes)
    listing = os.scandir

    def refusing(path: str) -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return listing(path)

    monkeypatch.setattr(os, "scandir", refusing)
    report = _sync(store, notes)
    assert (report.files.removed, report.kept_folders) == (0, [str(notes)])
    assert _memory(store, "text")[1] == "active"


def test_a_file_that_changes_while_it_is_read_is_taken_the_next_time(
    store: Store, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _sync(store, notes)
    before = said(store)
    _edit(notes / "postgres.md", "the money", "all the money")
    state = Path.stat
    looks = 0

    def growing(path: Path, **options: Any) -> os.stat_result:
        nonlocal looks
        found = state(path, **options)
        if path.name == "postgres.md":
            looks += 1
            if looks == 3:  # after it was read
                os.utime(path, ns=(3 * 10**18, 3 * 10**18))
                found = state(path, **options)
        return found

    monkeypatch.setattr(Path, "stat", growing)
    report = _sync(store, notes)
    assert report.run.findings.by_rule == {"changed-while-read": 1}
    assert said(store) == before
    monkeypatch.undo()
    assert _sync(store, notes).files.modified == 1
    assert _memory(store, "It keeps all the money.")[1] == "active"


def test_exports_are_read_and_told_to_be_no_origin(store: Store, notes: Path, tmp_path: Path) -> None:
    run(store, ImportOptions([str(notes)]))
    export(store, "jsonl", notes / "all.jsonl")
    with Store(tmp_path / "other.db", write=True) as other:
        report = _sync(other, notes)
        assert report.files.exports == 1
        assert said(other) == said(store)


# ---- log, undo, vectors -----------------------------------------------------------------------------


def test_a_sync_is_one_batch_and_can_be_taken_back(store: Store, notes: Path) -> None:
    _sync(store, notes)
    before = said(store)
    _edit(notes / "billing.md", "It rounds per line.", "It rounds per invoice.")
    (notes / "postgres.md").unlink()
    report = _sync(store, notes)
    after = said(store)
    assert len(report.run.batches) == 1
    undone = undo(store)
    assert said(store) == before
    undo(store, undone.batch)
    assert said(store) == after


def test_after_an_undo_the_files_are_read_again(store: Store, notes: Path) -> None:
    _sync(store, notes)
    after = said(store)
    undo(store)
    assert said(store) == []
    assert _sync(store, notes).run.total("created") > 0
    assert said(store) == after


def test_only_changed_texts_are_encoded(store: Store, notes: Path) -> None:
    encoder = HashEncoder()
    _sync(store, notes, encoder=encoder)
    _edit(notes / "billing.md", "It rounds per line.", "It rounds per invoice.")
    report = _sync(store, notes, encoder=encoder)
    assert report.run.encoded == 1
    without: Any = store.db.execute(
        "SELECT count(*) FROM memory WHERE NOT EXISTS "
        "(SELECT 1 FROM chunk WHERE kind = 1 AND item = memory.pk)"
    ).get
    assert without == 0


def test_a_file_that_was_imported_before_is_followed_from_then_on(store: Store, notes: Path) -> None:
    run(store, ImportOptions([str(notes)]))
    report = _sync(store, notes)
    assert (report.files.unchanged, report.run.batches) == (2, [])
    (notes / "postgres.md").unlink()
    assert _sync(store, notes).files.removed == 1


@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_to_files_the_store_says_what_an_import_of_them_says(
    store: Store, tmp_path: Path, seed: int
) -> None:
    follow_a_world(store, tmp_path / "notes", seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_whatever_happens_to_files_at_length(store: Store, tmp_path: Path, seed: int) -> None:
    follow_a_world(store, tmp_path / "notes", seed)


def follow_a_world(store: Store, folder: Path, seed: int) -> None:
    """Syncs a folder through its changes; each time compares with a fresh import, undoes and redoes."""
    folder.mkdir()
    world = World(folder, seed)
    for _ in range(6):
        world.change()
        world.change()
        expected = said_afresh(folder)
        if expected is None:
            return
        before = said(store)
        report = _sync(store, folder, max_delete=1000)
        after = said(store)
        assert said(store, kinds=False) == expected
        assert _sync(store, folder, max_delete=1000).run.batches == []
        if report.run.batches:
            undone = undo(store)
            assert said(store) == before
            undo(store, undone.batch)
            assert said(store) == after
