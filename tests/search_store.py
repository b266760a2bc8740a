"""Small stores for tests of search, written row by row, and an encoder that knows synonyms."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from graphmem import lexical
from graphmem.embed import EncoderInfo, Role
from graphmem.names import kind_key, name_keys, predicate_key
from graphmem.store.connection import connect
from graphmem.store.packed import measured, unpack
from graphmem.store.sets import Scopes
from graphmem.store.vectors import VectorWriter, need_index, use_encoder
from graphmem.store.write import TABLES

NOW = "2026-06-01T00:00:00.000Z"
DIMENSION = 64
SYNONYMS = {"automobile": "car", "vehicle": "car", "physician": "doctor", "begin": "start"}


class SynonymEncoder:
    """Texts that share words, or synonyms, have vectors that are close."""

    def __init__(self, name: str = "synonyms") -> None:
        self.info = EncoderInfo(name, "", sha256(name.encode()).hexdigest(), DIMENSION)
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str], role: Role) -> list[bytes]:
        self.encoded.extend(texts)
        return [self._encode_one(text) for text in texts]

    def _encode_one(self, text: str) -> bytes:
        total = [0.0] * DIMENSION
        for word in re.findall(r"\w+", text.casefold()) or [text]:
            digest = sha256(SYNONYMS.get(word, word).encode()).digest() * 2
            salted = sha256(digest).digest() + sha256(digest[::-1]).digest()
            total = [sum_ + byte - 127.5 for sum_, byte in zip(total, salted, strict=True)]
        length = math.sqrt(sum(value * value for value in total))
        return struct.pack(f"<{DIMENSION}f", *(value / length for value in total))


class TextEncoder(Protocol):
    """What a small store needs of an encoder."""

    @property
    def info(self) -> EncoderInfo: ...

    def encode(self, texts: Sequence[str], role: Role) -> list[bytes]: ...


class SmallStore:
    """A store that is filled one item at a time; with an encoder, every item gets a vector."""

    def __init__(self, path: Path | str = ":memory:", encoder: TextEncoder | None = None) -> None:
        self.db = connect(path, write=True)
        self.encoder = encoder
        self._scopes = Scopes(self.db)
        self._vectors: VectorWriter | None = None
        self._next = 0
        if encoder is not None:
            need_index(self.db)
            info = encoder.info
            held = use_encoder(self.db, info.name, info.revision, info.digest, info.dimension)
            self._vectors = VectorWriter(self.db, held)

    def _number(self) -> int:
        self._next += 1
        return self._next

    def _insert(self, table: str, **columns: Any) -> None:
        names = ", ".join(columns)
        values = ", ".join("?" * len(columns))
        self.db.execute(f"INSERT INTO {table} ({names}) VALUES ({values})", tuple(columns.values()))

    def _text(self, kind: int, pk: int, **columns: str | None) -> None:
        self._insert(f"{TABLES[kind]}_fts", rowid=pk, **columns)
        unpack(self.db, measured(kind), [pk])

    def _vector(self, kind: int, pk: int, *texts: str) -> None:
        if self._vectors is None or self.encoder is None:
            return
        pieces = []
        for ordinal, text in enumerate(texts):
            digest = sha256(text.encode()).digest()
            vector = self._vectors.find(digest)
            if vector is None:
                vector = self._vectors.put(digest, self.encoder.encode([text], "document")[0])
            pieces.append((ordinal, ordinal + 1, vector))
        self._vectors.attach(kind, pk, pieces)

    def entity(
        self, name: str, kind: str | None = None, scope: str = "global", *, aliases: Sequence[str] = (),
        description: str | None = None, id_: str | None = None, state: str = "active",
    ) -> int:  # fmt: skip
        """Adds an entity; its row number."""
        pk = self._number()
        self._insert(
            "entity", pk=pk, id=id_ or f"e{pk:04}", scope=self._scopes.pk(scope), name=name, kind=kind,
            kind_key=kind_key(kind), description=description, aliases=json.dumps(list(aliases)), state=state,
            created_at=NOW, updated_at=NOW, batch=1,
        )  # fmt: skip
        for alias, spelled in ((0, name), *((1, alias) for alias in aliases)):
            for key, step in name_keys(spelled):
                self.db.execute("INSERT OR IGNORE INTO name_key VALUES (?, ?, ?, ?)", (key, step, alias, pk))
        names, said, parts = lexical.entity_row(name, aliases, description)
        self._text(0, pk, names=names, description=said, parts=parts)
        self._vector(0, pk, lexical.entity_text(name, kind, description))
        return pk

    def memory(
        self, content: str, scopes: Sequence[str] = ("global",), *, title: str | None = None,
        memory_type: str | None = None, tags: Sequence[str] = (), about: Sequence[int] = (),
        mentions: Sequence[int] = (), source: str | None = None, position: int | None = None,
        valid_at: str | None = None, created_at: str = NOW, invalid_at: str | None = None,
        expired_at: str | None = None, state: str = "active", id_: str | None = None,
        properties: dict[str, Any] | None = None, pieces: Sequence[str] = (),
    ) -> str:  # fmt: skip
        """Adds a memory, with vectors of its pieces where these are given; its id."""
        pk = self._number()
        id_ = id_ or f"m{pk:04}"
        self._insert(
            "memory", pk=pk, id=id_, key=b"", content=content, title=title, memory_type=memory_type,
            tags=json.dumps(sorted(tags)) if tags else None, source=source,
            scope_set=self._scopes.set_pk(tuple(sorted(scopes))),
            position=position, properties=json.dumps(properties) if properties else None,
            state=state, created_at=created_at, updated_at=created_at, valid_at=valid_at,
            invalid_at=invalid_at, expired_at=expired_at, batch=1,
        )  # fmt: skip
        for role, entities in enumerate((about, mentions)):
            for entity in entities:
                self.db.execute("INSERT INTO memory_link VALUES (?, ?, ?)", (pk, entity, role))
        for tag in tags:
            self.db.execute("INSERT INTO memory_tag VALUES (?, ?)", (tag, pk))
        names = [self.db.execute("SELECT name FROM entity WHERE pk = ?", (one,)).get for one in about]
        row = lexical.memory_row(content, title, source, valid_at, names)
        columns = ("content", "title", "context", "parts")
        self._text(1, pk, **dict(zip(columns, row, strict=True)))
        self._vector(1, pk, *(pieces or (lexical.memory_text(content, title),)))
        return id_

    def relation(
        self, subject: int, predicate: str, object_: int, scope: str = "global", *, fact: str | None = None,
        valid_at: str | None = None, invalid_at: str | None = None, expired_at: str | None = None,
        state: str = "active", id_: str | None = None,
    ) -> str:  # fmt: skip
        """Adds a relation; its id."""
        pk = self._number()
        id_ = id_ or f"r{pk:04}"
        self._insert(
            "relation", pk=pk, id=id_, scope=self._scopes.pk(scope), subject=subject, predicate=predicate,
            predicate_key=predicate_key(predicate), object=object_, valid_at=valid_at, fact=fact, state=state,
            created_at=NOW, updated_at=NOW, invalid_at=invalid_at, expired_at=expired_at, batch=1,
        )  # fmt: skip
        ends = [
            self.db.execute("SELECT name FROM entity WHERE pk = ?", (end,)).get for end in (subject, object_)
        ]
        said, parts = lexical.relation_row(fact, ends[0], predicate, ends[1])
        self._text(2, pk, fact=said, parts=parts)
        self._vector(2, pk, lexical.relation_text(fact, ends[0], predicate, ends[1]))
        return id_
