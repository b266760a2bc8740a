"""The numbered migrations of the schema, applied in order, each in one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema: its SQL file, and which index must be made anew after it."""

    file: str
    mentions: bool = False
    sketches: bool = False


MIGRATIONS: tuple[Migration, ...] = (
    Migration("001_initial.sql"),
    Migration("002_mentions.sql", mentions=True),
    Migration("003_history.sql"),
    Migration("004_sketches.sql"),
    Migration("005_packed.sql", sketches=True),
)


def migration_sql(version: int) -> str:
    """The SQL that leads from schema `version` to the next."""
    return (files("graphmem.store") / "sql" / MIGRATIONS[version].file).read_text(encoding="utf-8")
