-- What a batch changed, so that it can be shown and taken back: changesets of SQLite's session extension
-- over the tables that are the authority, compressed. A large batch has several segments, in order.
CREATE TABLE change (
  batch INTEGER NOT NULL REFERENCES batch DEFERRABLE INITIALLY DEFERRED,
  segment INTEGER NOT NULL,
  part INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (batch, segment, part)
) STRICT;

-- Who asked for a batch, and the batch that took it back, if one did.
ALTER TABLE batch ADD COLUMN actor TEXT;
ALTER TABLE batch ADD COLUMN undone_by INTEGER;

-- Names by entity, for what makes the keys of one entity anew.
CREATE INDEX name_key_entity ON name_key (entity);

-- What files looked like when sync last read them without a problem, so that an unchanged one is not read:
-- a cache, which is believed only while the origin has the same digest. `holds`: something was taken from it;
-- `scope`: where its records went that name none.
CREATE TABLE seen_file (
  path TEXT PRIMARY KEY,
  size INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL,
  digest TEXT NOT NULL,
  holds INTEGER NOT NULL,
  scope TEXT NOT NULL
) STRICT, WITHOUT ROWID;
