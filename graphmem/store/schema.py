"""The numbered migrations of the schema, applied in order, each in one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema: its SQL file, and whether vectors must be made anew after it."""

    file: str
    reembed: bool = False


MIGRATIONS: tuple[Migration, ...] = (Migration("001_initial.sql"),)


def migration_sql(version: int) -> str:
    """The SQL that leads from schema `version` to the next."""
    return (files("graphmem.store") / "sql" / MIGRATIONS[version].file).read_text(encoding="utf-8")
