-- Names of entities found in the text of memories. Derived: from name and alias of `entity`, and content
-- and title of `memory`; made anew by one command, never exported, no part of a batch's changes.

-- Each name and alias under its first word, and under its first two when it has more than one.
CREATE TABLE mention_name (
  head TEXT NOT NULL,
  name TEXT NOT NULL,
  entity INTEGER NOT NULL REFERENCES entity,
  PRIMARY KEY (head, name, entity)
) STRICT, WITHOUT ROWID;
CREATE INDEX mention_name_entity ON mention_name (entity);

CREATE TABLE mention (
  memory INTEGER NOT NULL REFERENCES memory,
  entity INTEGER NOT NULL REFERENCES entity,
  PRIMARY KEY (memory, entity)
) STRICT, WITHOUT ROWID;
CREATE INDEX mention_entity ON mention (entity);
