-- Sketches of vectors, derived: by the distance of these bits the candidates for a query's vector are found.
-- Three bits for each dimension say between which of three bounds its value lies. `scope` (of a memory, its
-- set of scopes) and `until` follow the item, so that a search need not look at items that it may not see:
-- `until` is the time at which the item stops to hold, NULL for none, '' for an archived one.

CREATE TABLE sketch_entity (
  scope INTEGER NOT NULL,
  chunk INTEGER NOT NULL,
  item INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  vector INTEGER NOT NULL,
  until TEXT,
  bits BLOB NOT NULL,
  PRIMARY KEY (scope, chunk)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX sketch_entity_chunk ON sketch_entity (chunk);

CREATE TABLE sketch_memory (
  scope INTEGER NOT NULL,
  chunk INTEGER NOT NULL,
  item INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  vector INTEGER NOT NULL,
  until TEXT,
  bits BLOB NOT NULL,
  PRIMARY KEY (scope, chunk)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX sketch_memory_chunk ON sketch_memory (chunk);

CREATE TABLE sketch_relation (
  scope INTEGER NOT NULL,
  chunk INTEGER NOT NULL,
  item INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  vector INTEGER NOT NULL,
  until TEXT,
  bits BLOB NOT NULL,
  PRIMARY KEY (scope, chunk)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX sketch_relation_chunk ON sketch_relation (chunk);

CREATE TRIGGER sketch_entity_follows AFTER UPDATE OF scope, state ON entity
WHEN (old.scope, old.state) IS NOT (new.scope, new.state)
BEGIN
  UPDATE sketch_entity SET scope = new.scope, until = CASE new.state WHEN 'archived' THEN '' END
  WHERE chunk IN (SELECT pk FROM chunk WHERE item = new.pk AND kind = 0);
END;

CREATE TRIGGER sketch_memory_follows AFTER UPDATE OF scope_set, state, invalid_at, expired_at ON memory
WHEN (old.scope_set, old.state, old.invalid_at, old.expired_at)
  IS NOT (new.scope_set, new.state, new.invalid_at, new.expired_at)
BEGIN
  UPDATE sketch_memory SET scope = new.scope_set, until = CASE new.state WHEN 'archived' THEN ''
    ELSE ifnull(min(new.invalid_at, new.expired_at), ifnull(new.invalid_at, new.expired_at)) END
  WHERE chunk IN (SELECT pk FROM chunk WHERE item = new.pk AND kind = 1);
END;

CREATE TRIGGER sketch_relation_follows AFTER UPDATE OF scope, state, invalid_at, expired_at ON relation
WHEN (old.scope, old.state, old.invalid_at, old.expired_at)
  IS NOT (new.scope, new.state, new.invalid_at, new.expired_at)
BEGIN
  UPDATE sketch_relation SET scope = new.scope, until = CASE new.state WHEN 'archived' THEN ''
    ELSE ifnull(min(new.invalid_at, new.expired_at), ifnull(new.invalid_at, new.expired_at)) END
  WHERE chunk IN (SELECT pk FROM chunk WHERE item = new.pk AND kind = 2);
END;

-- What a walk over the graph asks of relations is in the indexes themselves; those that ended are few.
DROP INDEX relation_object;
CREATE INDEX relation_object ON relation (object, subject, predicate_key, scope);
CREATE INDEX relation_ended ON relation (state, invalid_at, expired_at)
WHERE state <> 'active' OR invalid_at IS NOT NULL OR expired_at IS NOT NULL;

-- To count what a filter leaves by counting what it leaves out, which often is little.
CREATE INDEX entity_ended ON entity (state) WHERE state <> 'active';
CREATE INDEX memory_ended ON memory (state, invalid_at, expired_at)
WHERE state <> 'active' OR invalid_at IS NOT NULL OR expired_at IS NOT NULL;
CREATE INDEX memory_scope ON memory (scope_set);
CREATE INDEX relation_scope ON relation (scope);
