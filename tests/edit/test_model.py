"""A store beside a model of it in plain Python: files, what people say, and taking back."""

from __future__ import annotations

import copy
import json
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from graphmem.backup import backup, restore
from graphmem.edit.forget import forget
from graphmem.edit.remember import remember
from graphmem.edit.undo import undo
from graphmem.edit.update import Update, update
from graphmem.options import ImportOptions
from graphmem.store import Store
from graphmem.sync import sync

_TEXTS = ("one", "two", "three", "four")
_FILES = ("a", "b")
texts = st.sampled_from(_TEXTS)
lists = st.lists(texts, max_size=3, unique=True)


@dataclass
class Item:
    """A memory: what it says, which lines of files support it, whether a person does, and its state."""

    content: str
    lines: set[tuple[str, str]] = field(default_factory=set)
    person: bool = False
    archived_by: str | None = None


@dataclass
class Model:
    """What a store should hold, in the plainest words."""

    items: list[Item] = field(default_factory=list)

    def active(self) -> list[str]:
        """The contents that a search finds."""
        return sorted(one.content for one in self.items if one.archived_by is None)

    def say(self, file: str, content: str) -> None:
        """A line of a file is read."""
        if any((file, content) in one.lines for one in self.items):
            found = next(one for one in self.items if (file, content) in one.lines)
        elif (known := self._known(content)) is not None:
            found = known
        else:
            found = next((one for one in self.items if one.content == content), None) or Item(content)
        if found not in self.items:
            self.items.append(found)
        found.lines.add((file, content))
        if found.archived_by == "sync":
            found.archived_by = None

    def _known(self, content: str) -> Item | None:
        """The item that the same line of another file went to; words of a person are another record."""
        for one in self.items:
            if any(said == content and name in _FILES for name, said in one.lines):
                return one
        return None

    def unsay(self, file: str, gone: set[str]) -> None:
        """A file no longer says what it said."""
        for one in self.items:
            before = set(one.lines)
            one.lines = {(name, said) for name, said in one.lines if name != file or said not in gone}
            if before and not one.lines and not one.person and one.archived_by is None:
                one.archived_by = "sync"


class StoreAndModel(RuleBasedStateMachine):
    """Everything is done to both; what a search finds is compared after each step."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="gmem-model-"))
        self.notes = self.folder / "notes"
        self.notes.mkdir()
        self.path = self.folder / "memory.db"
        self.store = Store(self.path, write=True)
        self.model = Model()
        self.past: list[Model] = []
        self.saved: tuple[Path, Model, list[Model]] | None = None

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)

    def _batches(self) -> int:
        count: Any = self.store.db.execute("SELECT count(*) FROM batch").get
        return int(count)

    def _done(self, before: Model, batches: int) -> None:
        """Notes what an undo of the last act goes back to, where the act was one."""
        if self._batches() > batches:
            self.past.append(before)

    def _find(self, content: str) -> str | None:
        rows: Any = self.store.db.execute(
            "SELECT id FROM memory WHERE content = ? AND state = 'active'", (content,)
        ).fetchall()
        return rows[0][0] if rows else None

    # ---- what is done -----------------------------------------------------------------------------

    @rule(name=st.sampled_from(_FILES), content=lists)
    def write(self, name: str, content: list[str]) -> None:
        file = self.notes / f"{name}.jsonl"
        lines = [json.dumps({"type": "memory", "content": one, "title": "t"}) for one in content]
        if lines:
            file.write_text("".join(f"{one}\n" for one in lines), encoding="utf-8")
        else:  # an empty file is an error, and removes nothing
            file.unlink(missing_ok=True)

    @rule()
    def follow(self) -> None:
        before, batches = copy.deepcopy(self.model), self._batches()
        sync(self.store, [str(self.notes)], ImportOptions(), max_delete=1000)
        now: dict[str, list[str]] = {name: [] for name in _FILES}
        for file in sorted(self.notes.glob("*.jsonl")):
            read = [json.loads(line)["content"] for line in file.read_text(encoding="utf-8").splitlines()]
            now[file.stem] = read
        for name, said in now.items():
            for content in said:
                self.model.say(name, content)
        for name, said in now.items():
            held = {line for one in self.model.items for file, line in one.lines if file == name}
            self.model.unsay(name, held - set(said))
        self._done(before, batches)

    @rule(content=texts)
    def keep(self, content: str) -> None:
        before, batches = copy.deepcopy(self.model), self._batches()
        remember(self.store, [{"type": "memory", "content": content}], scope="global")
        found = next((one for one in self.model.items if ("remember:", content) in one.lines), None)
        if found is None:
            found = next((one for one in self.model.items if one.content == content), None)
        if found is None:
            found = Item(content)
            self.model.items.append(found)
        found.lines.add(("remember:", content))
        found.archived_by = None
        self._done(before, batches)

    @rule(content=texts)
    def lose(self, content: str) -> None:
        id_ = self._find(content)
        if id_ is None:
            return
        before, batches = copy.deepcopy(self.model), self._batches()
        forget(self.store, [id_], None)
        next(
            one for one in self.model.items if one.content == content and one.archived_by is None
        ).archived_by = "person"
        self._done(before, batches)

    @rule(content=texts, number=st.integers(0, 3))
    def edit(self, content: str, number: int) -> None:
        id_ = self._find(content)
        if id_ is None:
            return
        before, batches = copy.deepcopy(self.model), self._batches()
        other = f"edited {number}"
        if self._find(other) is not None:  # two memories of one text are another story
            return
        update(self.store, id_, Update(set={"content": other}), None)
        found = next(one for one in self.model.items if one.content == content and one.archived_by is None)
        found.content, found.person = other, True
        self._done(before, batches)

    @precondition(lambda self: self.past)
    @rule()
    def take_back(self) -> None:
        undo(self.store)
        self.model = self.past.pop()

    @rule()
    def save(self) -> None:
        made = backup(self.path)
        self.saved = (Path(made.file), copy.deepcopy(self.model), copy.deepcopy(self.past))

    @precondition(lambda self: self.saved is not None)
    @rule()
    def go_back(self) -> None:
        assert self.saved is not None
        file, model, past = self.saved
        self.store.close()
        restore(file, self.path)
        self.store = Store(self.path, write=True)
        self.model, self.past = copy.deepcopy(model), copy.deepcopy(past)

    @invariant()
    def both_agree(self) -> None:
        rows: Any = self.store.db.execute("SELECT content FROM memory WHERE state = 'active'")
        assert sorted(content for (content,) in rows) == self.model.active()


TestStoreAndModel = StoreAndModel.TestCase
TestStoreAndModel.settings = settings(max_examples=15, stateful_step_count=12, deadline=None)


@pytest.mark.slow
def test_the_store_and_the_model_at_length() -> None:
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        StoreAndModel, settings=settings(max_examples=400, stateful_step_count=40, deadline=None)
    )
