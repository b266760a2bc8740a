-- The first schema. `pk` is an internal row number, `id` the public identity.
-- Sets (aliases, tags) and properties are JSON text with sorted members; times are ISO 8601 text in UTC.

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE scope (pk INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;

-- Memories have sets of scopes; there are few different sets, so a memory carries the number of its set.
CREATE TABLE scope_set (pk INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE scope_member (
  scope INTEGER NOT NULL REFERENCES scope,
  scope_set INTEGER NOT NULL REFERENCES scope_set,
  PRIMARY KEY (scope, scope_set)
) STRICT, WITHOUT ROWID;

-- One row for each committed batch; `run` is shared by the batches of one command.
CREATE TABLE batch (
  pk INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  run TEXT NOT NULL,
  at TEXT NOT NULL,
  command TEXT NOT NULL,
  importer TEXT,
  inputs TEXT NOT NULL,
  counts TEXT NOT NULL
) STRICT;

-- The row as it was before a batch changed it; a row that a batch made has its number in `batch`.
CREATE TABLE version (
  batch INTEGER NOT NULL REFERENCES batch DEFERRABLE INITIALLY DEFERRED,
  kind INTEGER NOT NULL,
  item INTEGER NOT NULL,
  before TEXT NOT NULL,
  PRIMARY KEY (kind, item, batch)
) STRICT, WITHOUT ROWID;
CREATE INDEX version_batch ON version (batch);

CREATE TABLE origin (
  pk INTEGER PRIMARY KEY,
  uri TEXT NOT NULL UNIQUE,
  format TEXT,
  digest TEXT,
  read_at TEXT
) STRICT;

-- What one record of an origin said about the item it went to. `said` is NULL while the item has this
-- contribution only and no edit since: then the item's own fields are what was said.
CREATE TABLE contribution (
  origin INTEGER NOT NULL REFERENCES origin,
  digest BLOB NOT NULL,
  kind INTEGER NOT NULL,
  item INTEGER NOT NULL,
  line INTEGER NOT NULL,
  taken_at TEXT NOT NULL,
  said TEXT,
  batch INTEGER NOT NULL,
  PRIMARY KEY (origin, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX contribution_digest ON contribution (digest);
CREATE INDEX contribution_item ON contribution (item, kind);

CREATE TABLE entity (
  pk INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  scope INTEGER NOT NULL REFERENCES scope,
  name TEXT NOT NULL,
  kind TEXT,
  kind_key TEXT NOT NULL,
  description TEXT,
  aliases TEXT,
  properties TEXT,
  state TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'archived')),
  archived_by TEXT,
  stub INTEGER NOT NULL DEFAULT 0,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  batch INTEGER NOT NULL,
  UNIQUE (scope, name, kind_key)
) STRICT;

-- Every key under which an entity is found: its name and aliases in the three forms of a name.
-- step 1 exact, 2 folded, 3 words; a form equal to a lower one has no row of its own.
CREATE TABLE name_key (
  key TEXT NOT NULL,
  step INTEGER NOT NULL,
  alias INTEGER NOT NULL,
  entity INTEGER NOT NULL REFERENCES entity,
  PRIMARY KEY (key, entity, step, alias)
) STRICT, WITHOUT ROWID;

-- Names and ids that once were, and still lead to the item.
CREATE TABLE redirect (
  scope INTEGER NOT NULL REFERENCES scope,
  name TEXT NOT NULL,
  kind TEXT,
  kind_key TEXT NOT NULL,
  entity INTEGER NOT NULL REFERENCES entity,
  PRIMARY KEY (scope, name, kind_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX redirect_entity ON redirect (entity);
CREATE TABLE id_alias (
  kind INTEGER NOT NULL,
  id TEXT NOT NULL,
  item INTEGER NOT NULL,
  PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX id_alias_item ON id_alias (item, kind);

CREATE TABLE memory (
  pk INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  key BLOB NOT NULL,
  content TEXT NOT NULL,
  title TEXT,
  memory_type TEXT,
  importance REAL,
  tags TEXT,
  scope_set INTEGER NOT NULL REFERENCES scope_set,
  source TEXT,
  position INTEGER,
  properties TEXT,
  state TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'archived')),
  archived_by TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  valid_at TEXT,
  invalid_at TEXT,
  expired_at TEXT,
  last_accessed_at TEXT,
  access_count INTEGER NOT NULL DEFAULT 0,
  batch INTEGER NOT NULL
) STRICT;
CREATE INDEX memory_key ON memory (key);
CREATE INDEX memory_source ON memory (source, position) WHERE source IS NOT NULL;

-- role 0: the memory is about the entity, 1: it mentions it.
CREATE TABLE memory_link (
  memory INTEGER NOT NULL REFERENCES memory,
  entity INTEGER NOT NULL REFERENCES entity,
  role INTEGER NOT NULL,
  PRIMARY KEY (memory, entity, role)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_link_entity ON memory_link (entity, role);

-- Derived from memory.tags, for filters.
CREATE TABLE memory_tag (
  tag TEXT NOT NULL,
  memory INTEGER NOT NULL REFERENCES memory,
  PRIMARY KEY (tag, memory)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_tag_memory ON memory_tag (memory);

CREATE TABLE relation (
  pk INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  scope INTEGER NOT NULL REFERENCES scope,
  subject INTEGER NOT NULL REFERENCES entity,
  predicate TEXT NOT NULL,
  predicate_key TEXT NOT NULL,
  object INTEGER NOT NULL REFERENCES entity,
  valid_at TEXT,
  fact TEXT,
  weight REAL,
  properties TEXT,
  state TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'archived')),
  archived_by TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  invalid_at TEXT,
  expired_at TEXT,
  batch INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX relation_key ON relation (subject, object, predicate_key, scope, ifnull(valid_at, ''));
CREATE INDEX relation_object ON relation (object);

-- The memories that state a relation, by id, so that a memory may arrive later than the relation.
CREATE TABLE stated_by (
  relation INTEGER NOT NULL REFERENCES relation,
  memory TEXT NOT NULL,
  PRIMARY KEY (relation, memory)
) STRICT, WITHOUT ROWID;
CREATE INDEX stated_by_memory ON stated_by (memory);

-- Full text, derived: contentless, so the text is stored once; `parts` holds the pieces of identifiers
-- and of text written without spaces.
CREATE VIRTUAL TABLE memory_fts USING fts5 (
  content, title, context, parts,
  content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE entity_fts USING fts5 (
  names, description, parts,
  content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE relation_fts USING fts5 (
  fact, parts,
  content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TABLE encoder (
  pk INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  revision TEXT NOT NULL,
  digest TEXT NOT NULL,
  dimension INTEGER NOT NULL,
  current INTEGER NOT NULL DEFAULT 1,
  UNIQUE (digest, name, revision)
) STRICT;

-- The authority of vectors: float32, little-endian, of unit length, by digest of the text.
CREATE TABLE vector (
  pk INTEGER PRIMARY KEY,
  text_digest BLOB NOT NULL,
  encoder INTEGER NOT NULL REFERENCES encoder,
  role INTEGER NOT NULL,
  vector BLOB NOT NULL,
  UNIQUE (text_digest, encoder, role)
) STRICT;

-- The pieces of an item's text and their vectors; `pk` is the row number in the vec0 index of its kind,
-- which is derived and made with the dimension of the first encoder.
CREATE TABLE chunk (
  pk INTEGER PRIMARY KEY,
  kind INTEGER NOT NULL,
  item INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  start INTEGER NOT NULL,
  stop INTEGER NOT NULL,
  vector INTEGER NOT NULL REFERENCES vector,
  UNIQUE (item, kind, ordinal)
) STRICT;
CREATE INDEX chunk_vector ON chunk (vector);
