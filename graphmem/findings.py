"""Something wrong in a file, as a value: rule id, severity, place, message and what to do.

Every rule is declared in `RULES`; a finding can only be made of a declared rule, and
`docs/errors.md` is compared with the table by a test.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from graphmem.records import NO_PLACE, Place


class Severity(IntEnum):
    """How bad a finding is; ordered, the worst is the greatest."""

    NOTE = 1
    WARNING = 2
    ERROR = 3

    @property
    def word(self) -> str:
        """The severity as printed."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of finding."""

    id: str
    severity: Severity
    summary: str
    hint: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong, or worth knowing, about one place in one input."""

    rule: str
    severity: Severity
    message: str
    file: str = ""
    place: Place = NO_PLACE
    hint: str = ""
    excerpt: str = ""
    record_kind: str = ""
    """The kind of the record that was rejected, where it is known."""

    def as_dict(self) -> dict[str, Any]:
        """The finding as it stands in JSON reports."""
        return {
            "rule": self.rule,
            "severity": self.severity.word,
            "message": self.message,
            "file": self.file,
            "line": self.place.line,
            "column": self.place.column,
            "offset": self.place.offset,
            "hint": self.hint,
            "excerpt": self.excerpt,
        }


def _rules(severity: Severity, *rows: tuple[str, str, str]) -> list[Rule]:
    return [Rule(id_, severity, summary, hint) for id_, summary, hint in rows]


RULES: dict[str, Rule] = {
    rule.id: rule
    for rule in [
        # ---- reading bytes and lines -------------------------------------------------------------
        *_rules(
            Severity.ERROR,
            (
                "bad-encoding",
                "bytes that are not text in the expected encoding",
                "name the file's encoding with --encoding, or save it as UTF-8",
            ),
            (
                "bad-json",
                "a line or file that is not JSON",
                "repair the text at the place given; --rejects FILE collects such lines",
            ),
            (
                "bad-query",
                "a line of a file of queries that asks nothing",
                "write an object with 'query', and optionally 'id', 'scopes', 'limit' and 'offset'",
            ),
            ("bad-yaml", "a document that is not YAML", "repair the text at the place given"),
            (
                "yaml-alias-bomb",
                "a YAML document that expands to an unreasonable size",
                "write the values out instead of nesting aliases",
            ),
            (
                "conflict-markers",
                "a file with unresolved Git conflict markers",
                "resolve the conflict and import again",
            ),
            (
                "unknown-format",
                "an input that no format recognises",
                "name its format with --from, or see 'gmem schema' for the shapes that are read",
            ),
            ("ambiguous-format", "an input that more than one format claims", "choose one with --from"),
            (
                "unknown-shape",
                "a record whose keys are not those of any kind of record",
                "see 'gmem schema' for the shapes that are read, or force a format with --from",
            ),
            (
                "not-a-record",
                "a value that is not an object or a short triple",
                "write one JSON object, or [subject, predicate, object], per record",
            ),
            (
                "lone-surrogate",
                "text with half of a surrogate pair, which is not a character",
                "replace the \\udXXX escape by the character that was meant",
            ),
            (
                "truncated-input",
                "an input that ends in the middle of a record or of its compression",
                "fetch or export the file again; what came before was read",
            ),
            (
                "file-unreadable",
                "a file or folder that could not be opened or read",
                "check that it exists and that its permissions let you read it",
            ),
            (
                "damaged-compression",
                "compressed data that is damaged",
                "fetch or export the file again; what came before was read",
            ),
            (
                "record-too-large",
                "a line, record or document beyond the size that is read",
                "split it; 32 MiB are read for one line, record or document",
            ),
            ("too-deep", "a value nested deeper than 100 levels", "flatten the value"),
        ),
        *_rules(
            Severity.WARNING,
            (
                "two-records-on-a-line",
                "several JSON objects on one line",
                "both were read; put each on its own line",
            ),
            (
                "duplicate-key",
                "a key given twice in one object",
                "lists were united; for other values the last one counts (in frontmatter the first)",
            ),
            (
                "raw-control-character",
                "an unescaped control character inside a JSON string",
                "it was kept; escape it as \\u00XX",
            ),
            (
                "not-finite",
                "NaN or Infinity, which JSON does not have",
                "it was kept as text; write a number or null",
            ),
            (
                "huge-number",
                "an integer or exponent beyond what a number column holds",
                "it was kept as text; quote it to silence this",
            ),
            (
                "link-outside",
                "a link that leads out of the folder that was given",
                "it was not followed; give its target as an input of its own",
            ),
            (
                "yaml-merge-key",
                "a YAML merge key, which is not applied",
                "it was kept as a key of the name '<<'; write the values out",
            ),
        ),
        # ---- records -----------------------------------------------------------------------------
        *_rules(
            Severity.ERROR,
            ("missing-key", "a record without a key it needs", "add the key named in the message"),
            ("bad-value", "a value of the wrong type or out of range", "give a value as the message says"),
            (
                "bad-time",
                "a time that cannot be understood",
                "write ISO 8601, for example 2026-05-08T12:30:00Z, or epoch seconds or milliseconds",
            ),
            ("bad-name", "a name that is empty after trimming", "give the entity a name"),
            (
                "bad-scope",
                "a scope that is not 'global', 'repo:/path' or 'kind:value'",
                "write 'global', 'repo:/absolute/path' or 'kind:value'",
            ),
            (
                "bad-id",
                "an id that is empty or longer than 128 characters",
                "use a string of 1 to 128 characters, or leave the id out",
            ),
            (
                "bad-manifest",
                "a manifest line that cannot be understood",
                "export the file again, or remove the line to import it as an ordinary file",
            ),
            (
                "newer-format",
                "a file written by a newer version of the format",
                "upgrade graphmem to read it",
            ),
            (
                "manifest-mismatch",
                "a file that does not hold what its manifest says",
                "it was cut or edited since it was exported: export it again, or take the manifest line out",
            ),
        ),
        *_rules(
            Severity.WARNING,
            (
                "guessed-time",
                "a time without a zone or unit, whose meaning was guessed",
                "write ISO 8601 with a zone, for example 2026-05-08T12:30:00Z",
            ),
            (
                "key-collision",
                "an unknown key that is also in 'properties'",
                "the one in 'properties' was kept, the other as 'extra.KEY'",
            ),
            (
                "unknown-key-near",
                "a key that is not known, and looks like one that is",
                "it was kept as a property; correct the key, or put it into 'properties' to silence this",
            ),
            (
                "incomplete-record",
                "a record without a key that its format always has",
                "it was read as far as it goes; add the key named in the message",
            ),
            (
                "taken-as-text",
                "a value that should be text and is not",
                "it was kept as the text that JSON writes for it; quote it to silence this",
            ),
            (
                "empty-observation",
                "an observation that says nothing",
                "it was left out, since there is nothing in it to keep",
            ),
            (
                "several-types",
                "an entity with different types in one file of a format that knows it by its name alone",
                "the first type stands, the other was kept in 'properties'; give them different names",
            ),
            (
                "value-kept-aside",
                "a value that does not fit its key",
                "it was kept in 'properties' as it stands",
            ),
            (
                "likely-secret",
                "text that looks like a password, a key or a token",
                "take it out of the source; 'gmem forget --purge ID' erases it from the store",
            ),
            (
                "manifest-not-first",
                "a manifest that is not the first record",
                "it was ignored; keep the manifest as the first line",
            ),
            (
                "partial-export",
                "an export that was made with filters",
                "what the filters left out is not in this file",
            ),
        ),
        # ---- markdown and frontmatter ------------------------------------------------------------
        *_rules(
            Severity.WARNING,
            (
                "frontmatter-fallback",
                "frontmatter that is not YAML and was read line by line",
                "quote the value at the place given",
            ),
            (
                "frontmatter-unclosed",
                "frontmatter that is opened and never closed",
                "the text was read as body; close it with a line '---'",
            ),
            (
                "second-frontmatter",
                "a second frontmatter block",
                "it was united with the first, whose values win; remove one of them",
            ),
            (
                "duplicate-note",
                "two notes that are one entity by name and kind",
                "give one of them another title or type; their memories were kept under the one entity",
            ),
            ("frontmatter-tab", "a tab used to indent frontmatter", "indent with spaces"),
        ),
        # ---- references and identity -------------------------------------------------------------
        *_rules(
            Severity.ERROR,
            (
                "ambiguous-name",
                "a reference that several entities answer to",
                'give the kind: {"name": …, "kind": …}; or take the newest with --on-ambiguous newest',
            ),
            (
                "dangling-reference",
                "a reference to an id that is not there, or to nothing (with --dangling error)",
                "import the item of that id, or refer to the name; declare a name, or take --dangling stub",
            ),
            (
                "foreign-scope",
                "a reference into a scope the record cannot see",
                "refer to an entity of the record's own scope or of 'global'",
            ),
            (
                "id-conflict",
                "an id and a natural key that point at two different items",
                "remove the id, or correct the name",
            ),
            (
                "id-scope-conflict",
                "a memory id that exists in scopes this record does not share",
                "give the record another id, or a scope in common with the stored memory",
            ),
            (
                "conflict",
                "a record that differs from the stored item (with --on-conflict error)",
                "choose what should happen with --on-conflict merge, newer, overwrite or skip",
            ),
        ),
        *_rules(
            Severity.WARNING,
            (
                "relation-left-out",
                "a relation with an end that is not there (with --dangling skip)",
                "declare the entity, correct the name, or import with --dangling stub",
            ),
            (
                "skipped-reference",
                "a reference to nothing that was left out (with --dangling skip)",
                "declare the entity, correct the name, or import with --dangling stub",
            ),
            (
                "unknown-id",
                "a reference by id to something that is not there",
                "the reference was kept and will hold when the item is imported",
            ),
        ),
        *_rules(
            Severity.NOTE,
            (
                "conflict-skipped",
                "a record that differs from the stored item (with --on-conflict skip)",
                "choose another policy with --on-conflict to take it",
            ),
            (
                "stub-created",
                "a reference to nothing, for which a stub entity was made",
                "declare the entity to complete the stub",
            ),
            (
                "taken-as-newest",
                "a reference to several entities that went to the one updated last",
                'give the kind: {"name": …, "kind": …}',
            ),
            (
                "resolved-by-words",
                "a reference that was resolved by the words of the name",
                "declare the spelling as an alias to make it exact",
            ),
            (
                "near-names",
                "entities whose names differ only by case, separators or form",
                "give them one name where they are one thing; --fold-case does so for case alone",
            ),
            (
                "kind-unknown",
                "an entity without a kind where several kinds of that name exist",
                "give the record a kind",
            ),
            (
                "tied-values",
                "values of equal age that differ; the greatest was kept",
                "give the records an updated_at",
            ),
            (
                "older-kept-out",
                "a record older than what the store holds, whose values were not taken",
                "use --on-conflict overwrite to take them all the same",
            ),
            (
                "kept-archived",
                "a record of an archived item, which stays archived",
                "use --restore-archived to bring it back",
            ),
            (
                "not-in-source",
                "something this source said before and no longer says",
                "import never removes: 'gmem sync' of the folder does",
            ),
            (
                "refers-to-archived",
                "a reference to an entity that was forgotten: what is said of it is stored and not shown",
                "bring the entity back with 'gmem update NAME --restore', or import with --restore-archived",
            ),
            (
                "changed-while-read",
                "a file that changed while sync read it",
                "nothing to do: the next sync takes it",
            ),
            (
                "kept-while-broken",
                "a file with errors, for whose sake sync removes nothing",
                "mend what is reported of the file and sync again",
            ),
        ),
        # ---- the store itself --------------------------------------------------------------------
        *_rules(
            Severity.ERROR,
            (
                "store-damage",
                "a store file that SQLite finds damaged",
                "'gmem doctor --repair' mends what can be made anew, else restore a backup",
            ),
            (
                "store-log",
                "a write-ahead log beside the store that does not belong to it",
                "end whatever uses the store, move the log (NAME-wal) elsewhere, and run 'gmem doctor' again",
            ),
            (
                "store-reference",
                "a row of the store that refers to one that is not there",
                "restore a backup; or export the store with 'gmem export' and import that into a new one",
            ),
            (
                "store-index",
                "an index of the store, derived from its items, that is out of step with them",
                "run 'gmem doctor --repair' to make it anew",
            ),
            (
                "store-value",
                "a value in the store that no version of graphmem writes",
                "restore a backup; or export the store with 'gmem export' and import that into a new one",
            ),
            (
                "store-text",
                "items and their indexes that say different things, where either may be damaged",
                "compare them with a backup or with their sources; nothing was changed in them",
            ),
            (
                "store-vector",
                "vectors that do not fit their items or their encoder, or the index of vectors",
                "run 'gmem doctor --repair', and 'gmem reembed' for what has no vector then",
            ),
            (
                "store-history",
                "a batch of which it cannot be read any more what it changed",
                "it cannot be undone; 'gmem doctor --repair' drops what is left of its changes",
            ),
        ),
        *_rules(
            Severity.WARNING,
            (
                "store-mentions",
                "an index of names found in memories that is out of step",
                "run 'gmem reindex'",
            ),
            (
                "encoder-stale",
                "vectors of another model than the configured one",
                "run 'gmem reembed', or set GRAPHMEM_EMBEDDING_MODEL to the model of the store",
            ),
            (
                "encoder-damaged",
                "a compiled model that cannot be used",
                "the next command that needs it makes it anew, for which sentence-transformers must be installed",
            ),
            (
                "no-vector-extension",
                "an installation without the sqlite-vec extension, so that vectors cannot be searched",
                "reinstall sqlite-vec",
            ),
            (
                "open-permissions",
                "memories that other users of this machine can read",
                "run the command shown",
            ),
            (
                "store-read-only",
                "a store or folder that can only be read",
                "change its permissions, or name another store with --db",
            ),
            (
                "disk-low",
                "a disk with little room left",
                "free some room: an import needs the size of what it stores, a backup that of the store",
            ),
            (
                "log-large",
                "a write-ahead log that has become large",
                "a program that reads without end keeps it so: end those that use the store, then write once",
            ),
        ),
        *_rules(
            Severity.NOTE,
            (
                "store-stubs",
                "entities that are referred to and declared nowhere",
                "import what declares them",
            ),
            (
                "store-homonyms",
                "entities of one name and scope that differ by kind",
                "'gmem merge' unites those that are one thing",
            ),
            (
                "store-older",
                "a store of an earlier schema",
                "the first command that writes to it brings it up to date",
            ),
            ("store-missing", "no store where one is looked for", "the first import makes it"),
            (
                "source-gone",
                "files that memories were taken from and that are not there any more",
                "nothing is lost by that; 'gmem sync' archives what only a removed file said",
            ),
            (
                "scope-gone",
                "scopes of repositories that are not on this machine",
                "export the store, and import it elsewhere with --map-scope OLD=NEW",
            ),
            (
                "encoder-missing",
                "no embedding model that could be used: search is by words alone",
                "install it with pip install 'graphmem[embeddings]'",
            ),
            (
                "store-without-vectors",
                "items that search by meaning does not find, because they have no vector",
                "run 'gmem reembed'",
            ),
        ),
    ]
}


def finding(
    rule: str,
    message: str,
    *,
    file: str = "",
    place: Place = NO_PLACE,
    hint: str | None = None,
    excerpt: str = "",
    record_kind: str = "",
) -> Finding:
    """A finding of a declared rule, with the rule's severity and, unless given, its hint.

    Raises `KeyError` for a rule that is not in `RULES`. `excerpt` is bounded to 200 characters.
    """
    declared = RULES[rule]
    text = declared.hint if hint is None else hint
    return Finding(rule, declared.severity, message, file, place, text, excerpt[:200], record_kind)
