-- Figures of many rows in one, derived: what a search compares with every row is read by the hundred. `what`
-- is 0 to 2 for the sketches of a kind's pieces of text, 3 to 5 for the lengths of its full text. A row whose
-- `body` is NULL stands for rows that changed since they were packed, and are read themselves. `pk` is
-- random and never given twice, in no store: what was read under one stays true as long as the row is there.

CREATE TABLE packed (
  pk INTEGER PRIMARY KEY,
  what INTEGER NOT NULL,
  number INTEGER NOT NULL,
  head BLOB,
  body BLOB,
  UNIQUE (what, number)
) STRICT;
CREATE INDEX packed_not ON packed (what, number) WHERE body IS NULL;

INSERT INTO packed (pk, what, number)
SELECT random() & 0x7fffffffffffffff, 0, number FROM (SELECT DISTINCT chunk >> 8 AS number FROM sketch_entity);
INSERT INTO packed (pk, what, number)
SELECT random() & 0x7fffffffffffffff, 1, number FROM (SELECT DISTINCT chunk >> 8 AS number FROM sketch_memory);
INSERT INTO packed (pk, what, number)
SELECT random() & 0x7fffffffffffffff, 2, number FROM (SELECT DISTINCT chunk >> 8 AS number FROM sketch_relation);
INSERT INTO packed (pk, what, number)
SELECT random() & 0x7fffffffffffffff, 3, number FROM (SELECT DISTINCT pk >> 10 AS number FROM entity);
INSERT INTO packed (pk, what, number)
SELECT random() & 0x7fffffffffffffff, 4, number FROM (SELECT DISTINCT pk >> 10 AS number FROM memory);
INSERT INTO packed (pk, what, number)
SELECT random() & 0x7fffffffffffffff, 5, number FROM (SELECT DISTINCT pk >> 10 AS number FROM relation);
