"""Folders of notes that change at random, and what a store says of them: for tests of sync."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from graphmem.ingest import run
from graphmem.options import ImportOptions
from graphmem.store import Store

_NAMES = ("Alpha", "Beta", "Gamma Ray", "Delta", "Epsilon")
_WORDS = ("is red", "uses a cache", "is slow", "has tests", "was replaced")


def said(store: Store, *, kinds: bool = True) -> list[str]:
    """Everything active in a store by what it says, without ids, times and history; sorted.

    Without `kinds` those of entities are left out.
    """
    db: Any = store.db
    entities: dict[int, tuple[str, str | None]] = {}
    told: list[Any] = []
    for pk, name, kind, description, aliases, properties, stub, state in db.execute(
        "SELECT pk, name, kind, description, aliases, properties, stub, state FROM entity"
    ):
        entities[pk] = (name, kind if kinds else None)
        if state == "active":
            told.append(["entity", entities[pk], description, aliases, properties, stub])
    for pk, *fields in db.execute(
        "SELECT pk, content, title, memory_type, tags, source, position, properties FROM memory "
        "WHERE state = 'active'"
    ).fetchall():
        links = db.execute("SELECT entity, role FROM memory_link WHERE memory = ?", (pk,)).fetchall()
        told.append(["memory", *fields, sorted([role, entities[one][0]] for one, role in links)])
    for subject, predicate, object_, *fields in db.execute(
        "SELECT subject, predicate, object, fact, weight, properties FROM relation WHERE state = 'active'"
    ):
        told.append(["relation", entities[subject], predicate, entities[object_], *fields])
    return sorted(json.dumps(one) for one in told)


def said_afresh(folder: Path) -> list[str] | None:
    """What an empty store says after an import of the folder; `None` where the files have errors."""
    with Store(":memory:", write=True) as store:
        if any(folder.glob("*.md")):
            report = run(store, ImportOptions([str(folder)]))
            if report.findings.errors:
                return None
        return said(store, kinds=False)


class World:
    """A folder of notes, changed step by step."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self._chance = random.Random(seed)
        self._count = 0

    def change(self) -> None:
        """Makes, removes, edits or rewrites a note."""
        chance = self._chance
        notes = sorted(self.folder.glob("*.md"))
        what = chance.random()
        if not notes or what < 0.25:
            name = chance.choice(_NAMES)
            self._write(self.folder / f"{name}.md", self._note(name))
        elif what < 0.4:
            chance.choice(notes).unlink()
        elif what < 0.9:
            self._edit(chance.choice(notes))
        else:
            note = chance.choice(notes)
            self._write(note, self._note(note.stem))

    def _edit(self, note: Path) -> None:
        chance = self._chance
        lines = note.read_text(encoding="utf-8").splitlines()
        body = [number for number, line in enumerate(lines) if line.startswith(("- ", "There"))]
        if not body:
            return
        at = chance.choice(body)
        what = chance.random()
        if what < 0.3:
            del lines[at]
        elif what < 0.6:
            lines[at] += " edited"
        elif what < 0.8:
            lines.insert(at, self._fact())
        else:
            line = lines.pop(at)
            lines.insert(chance.randint(lines.index("---", 1) + 1, len(lines)), line)
        self._write(note, lines)

    def _fact(self) -> str:
        self._count += 1  # no two facts are the same
        return f"- [fact] it {self._chance.choice(_WORDS)} {self._count}"

    def _note(self, name: str) -> list[str]:
        chance = self._chance
        lines = ["---", f"title: {name}"]
        if chance.random() < 0.6:
            lines.append(f"type: {chance.choice(('service', 'tool'))}")
        if chance.random() < 0.4:
            lines.append(f"aliases: [{name[:2]}{chance.choice('12')}]")
        if chance.random() < 0.3:
            lines.append(f"owner: {chance.choice(('Ann', 'Bob'))}")
        lines.append("---")
        for number in range(chance.randint(1, 2)):
            lines.append(f"## Part {number}")
            lines += [self._fact() for _ in range(chance.randint(0, 3))]
            if chance.random() < 0.5:
                lines.append(f"There is more in [[{chance.choice(_NAMES)}]] {chance.randint(0, 9999)}")
            if chance.random() < 0.5:
                lines.append(f"- depends_on [[{chance.choice(_NAMES)}]]")
        return lines

    @staticmethod
    def _write(note: Path, lines: list[str]) -> None:
        note.write_text("\n".join(lines) + "\n", encoding="utf-8")
