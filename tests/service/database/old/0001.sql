CREATE TABLE alembic_version (
  version_num VARCHAR(32) NOT NULL,
  CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001');
CREATE TABLE api_keys (
  id VARCHAR(64) NOT NULL,
  digest VARCHAR(64) NOT NULL,
  role VARCHAR(20) NOT NULL,
  name VARCHAR(200) NOT NULL,
  made FLOAT NOT NULL,
  revoked FLOAT,
  CONSTRAINT pk_api_keys PRIMARY KEY (id),
  CONSTRAINT uq_api_keys_digest UNIQUE (digest)
);
CREATE TABLE batches (
  id VARCHAR(64) NOT NULL,
  run VARCHAR(200) NOT NULL,
  state VARCHAR(20) NOT NULL,
  size BIGINT,
  receipt VARCHAR(64),
  begun FLOAT NOT NULL,
  CONSTRAINT pk_batches PRIMARY KEY (id)
);
CREATE TABLE events (
  number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  run VARCHAR(200) NOT NULL,
  request VARCHAR(64) NOT NULL,
  state VARCHAR(20) NOT NULL,
  at FLOAT NOT NULL,
  version BIGINT,
  reason TEXT
);
CREATE TABLE log (
  run VARCHAR(200) NOT NULL,
  size BIGINT NOT NULL,
  digest VARCHAR(64) NOT NULL,
  envelope TEXT NOT NULL,
  CONSTRAINT pk_log PRIMARY KEY (run, size)
);
CREATE TABLE parts (
  request VARCHAR(64) NOT NULL,
  place INTEGER NOT NULL,
  sealed BLOB NOT NULL,
  until FLOAT NOT NULL,
  CONSTRAINT pk_parts PRIMARY KEY (request, place),
  CONSTRAINT fk_parts_request FOREIGN KEY(request) REFERENCES requests (id)
);
CREATE TABLE requests (
  number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  id VARCHAR(64) NOT NULL,
  run VARCHAR(200) NOT NULL,
  kind VARCHAR(20) NOT NULL,
  owner VARCHAR(64),
  sealed BLOB,
  mark VARCHAR(64),
  idempotency VARCHAR(64),
  counts JSON NOT NULL,
  state VARCHAR(20) NOT NULL,
  received FLOAT NOT NULL,
  deadline FLOAT NOT NULL,
  completed FLOAT,
  attempts INTEGER DEFAULT '0' NOT NULL,
  reason TEXT,
  retry_at FLOAT,
  batch VARCHAR(64),
  version BIGINT,
  CONSTRAINT uq_requests_id UNIQUE (id),
  CONSTRAINT uq_requests_run_idempotency UNIQUE (run, idempotency),
  CONSTRAINT fk_requests_batch FOREIGN KEY(batch) REFERENCES batches (id)
);
CREATE TABLE runs (
  name VARCHAR(200) NOT NULL,
  succeeds VARCHAR(200),
  seen FLOAT NOT NULL,
  CONSTRAINT pk_runs PRIMARY KEY (name)
);
CREATE TABLE subjects (
  run VARCHAR(200) NOT NULL,
  subject VARCHAR(64) NOT NULL,
  item VARCHAR(64) NOT NULL,
  node VARCHAR(64) NOT NULL,
  other VARCHAR(64),
  sealed BLOB NOT NULL,
  CONSTRAINT pk_subjects PRIMARY KEY (run, subject, item)
);
CREATE TABLE tombstones (
  number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  run VARCHAR(200) NOT NULL,
  size BIGINT NOT NULL,
  "key" VARCHAR(20) NOT NULL,
  mark VARCHAR(64) NOT NULL
);
CREATE INDEX ix_batches_run ON batches (run);
CREATE INDEX ix_requests_waiting ON requests (run, state, number);
CREATE INDEX ix_requests_batch ON requests (batch);
CREATE INDEX ix_events_request ON events (request);
CREATE INDEX ix_tombstones_run ON tombstones (run);
CREATE INDEX ix_subjects_run_item ON subjects (run, item);
CREATE INDEX ix_subjects_run_node ON subjects (run, node);
CREATE INDEX ix_subjects_run_other ON subjects (run, other);
CREATE TRIGGER events_no_update BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'rows of events are never changed or deleted'); END;
CREATE TRIGGER events_no_delete BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'rows of events are never changed or deleted'); END;
CREATE TRIGGER log_no_update BEFORE UPDATE ON log BEGIN SELECT RAISE(ABORT, 'rows of log are never changed or deleted'); END;
CREATE TRIGGER log_no_delete BEFORE DELETE ON log BEGIN SELECT RAISE(ABORT, 'rows of log are never changed or deleted'); END;
CREATE TRIGGER tombstones_no_update BEFORE UPDATE ON tombstones BEGIN SELECT RAISE(ABORT, 'rows of tombstones are never changed or deleted'); END;
CREATE TRIGGER tombstones_no_delete BEFORE DELETE ON tombstones BEGIN SELECT RAISE(ABORT, 'rows of tombstones are never changed or deleted'); END;
