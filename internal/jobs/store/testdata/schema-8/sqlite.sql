CREATE TABLE IF NOT EXISTS history_schema (id BIGINT PRIMARY KEY, version BIGINT NOT NULL);
INSERT INTO history_schema (id, version) VALUES (1, 8);
CREATE TABLE IF NOT EXISTS logs (
  id INTEGER PRIMARY KEY,
  cluster TEXT NOT NULL,
  resource TEXT NOT NULL,
  name TEXT NOT NULL,
  version BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  expired BIGINT NOT NULL,
  holder TEXT NOT NULL,
  lease BIGINT NOT NULL,
  moved BIGINT NOT NULL,
  UNIQUE (cluster, resource)
);
CREATE TABLE IF NOT EXISTS jobs (
  log BIGINT NOT NULL,
  uid TEXT NOT NULL,
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  owner TEXT NOT NULL,
  queue TEXT NOT NULL,
  state TEXT NOT NULL,
  since BIGINT NOT NULL,
  reason TEXT NOT NULL,
  message TEXT NOT NULL,
  attempt BIGINT NOT NULL,
  version BIGINT NOT NULL,
  created BIGINT NOT NULL,
  started BIGINT NOT NULL,
  ended BIGINT NOT NULL,
  deleted BIGINT NOT NULL,
  spent TEXT NOT NULL,
  requests TEXT NOT NULL,
  lived BIGINT NOT NULL,
  PRIMARY KEY (log, uid)
);
CREATE INDEX IF NOT EXISTS jobs_created ON jobs (log, created, uid, namespace, owner, queue, state, since);
CREATE INDEX IF NOT EXISTS jobs_namespace ON jobs (log, namespace, created, uid, owner, queue, state, since);
CREATE INDEX IF NOT EXISTS jobs_name ON jobs (log, name, created, uid, namespace, owner, queue, state, since);
CREATE INDEX IF NOT EXISTS jobs_owner ON jobs (log, owner, created, uid, namespace, queue, state, since);
CREATE INDEX IF NOT EXISTS jobs_queue ON jobs (log, queue, created, uid, namespace, owner, state, since);
CREATE INDEX IF NOT EXISTS jobs_state ON jobs (log, state, created, uid, namespace, owner, queue, since);
CREATE INDEX IF NOT EXISTS jobs_lived ON jobs (log, lived, created, uid, namespace, owner, queue, state, since, name);
CREATE INDEX IF NOT EXISTS jobs_deleted ON jobs (log, deleted);
CREATE TABLE IF NOT EXISTS transitions (
  log BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  uid TEXT NOT NULL,
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  version BIGINT NOT NULL,
  from_state TEXT NOT NULL,
  to_state TEXT NOT NULL,
  at BIGINT NOT NULL,
  observed BIGINT NOT NULL,
  late BIGINT NOT NULL,
  attempt BIGINT NOT NULL,
  reason TEXT NOT NULL,
  message TEXT NOT NULL,
  owner TEXT NOT NULL,
  queue TEXT NOT NULL,
  PRIMARY KEY (log, seq)
);
CREATE INDEX IF NOT EXISTS transitions_uid ON transitions (log, uid, seq);
CREATE INDEX IF NOT EXISTS transitions_namespace ON transitions (log, namespace, seq, owner, queue, to_state, at);
CREATE INDEX IF NOT EXISTS transitions_name ON transitions (log, name, seq, namespace, owner, queue, to_state, at);
CREATE INDEX IF NOT EXISTS transitions_owner ON transitions (log, owner, seq, namespace, queue, to_state, at);
CREATE INDEX IF NOT EXISTS transitions_queue ON transitions (log, queue, seq, namespace, owner, to_state, at);
CREATE INDEX IF NOT EXISTS transitions_to_state ON transitions (log, to_state, seq, namespace, owner, queue, at);
CREATE INDEX IF NOT EXISTS transitions_at ON transitions (log, at, seq);
CREATE TABLE IF NOT EXISTS spans (
  log BIGINT NOT NULL,
  block BIGINT NOT NULL,
  least BIGINT NOT NULL,
  most BIGINT NOT NULL,
  PRIMARY KEY (log, block)
);
ALTER TABLE jobs ADD COLUMN reasons TEXT;
ALTER TABLE jobs ADD COLUMN ran_until BIGINT;
CREATE INDEX IF NOT EXISTS jobs_ran ON jobs (log, ran_until, created);
CREATE TABLE IF NOT EXISTS inbox_heads (
  owner TEXT NOT NULL PRIMARY KEY,
  began BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  expired BIGINT NOT NULL,
  states TEXT NOT NULL,
  digest BIGINT NOT NULL,
  paused BIGINT NOT NULL,
  due BIGINT NOT NULL,
  waiting BIGINT NOT NULL,
  news BIGINT NOT NULL,
  moved BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS inbox_heads_news ON inbox_heads (news);
CREATE INDEX IF NOT EXISTS inbox_heads_due ON inbox_heads (due);
CREATE TABLE IF NOT EXISTS inbox (
  owner TEXT NOT NULL,
  seq BIGINT NOT NULL,
  at BIGINT NOT NULL,
  kind TEXT NOT NULL,
  cluster TEXT NOT NULL,
  resource TEXT NOT NULL,
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  silent BIGINT NOT NULL,
  read_at BIGINT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (owner, seq)
);
CREATE INDEX IF NOT EXISTS inbox_unread ON inbox (owner, read_at, seq);
CREATE INDEX IF NOT EXISTS inbox_at ON inbox (at);
CREATE TABLE IF NOT EXISTS inbox_waiting (
  owner TEXT NOT NULL,
  n BIGINT NOT NULL,
  kind TEXT NOT NULL,
  cluster TEXT NOT NULL,
  resource TEXT NOT NULL,
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (owner, n)
);
CREATE TABLE IF NOT EXISTS inbox_news (id BIGINT NOT NULL PRIMARY KEY, changes BIGINT NOT NULL);
INSERT INTO inbox_news (id, changes) SELECT 1, 0 FROM history_schema WHERE id = 1 AND NOT EXISTS (SELECT 1 FROM inbox_news);
CREATE TABLE IF NOT EXISTS webhooks (
  name TEXT NOT NULL,
  url TEXT NOT NULL,
  off BIGINT NOT NULL,
  reason TEXT NOT NULL,
  hold BIGINT NOT NULL,
  holder TEXT NOT NULL,
  lease BIGINT NOT NULL,
  answered BIGINT NOT NULL,
  answer TEXT NOT NULL,
  PRIMARY KEY (name)
);
CREATE TABLE IF NOT EXISTS outbox (
  target TEXT NOT NULL,
  log BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  uid TEXT NOT NULL,
  id TEXT NOT NULL,
  at BIGINT NOT NULL,
  due BIGINT NOT NULL,
  attempts BIGINT NOT NULL,
  dead BIGINT NOT NULL,
  body TEXT NOT NULL,
  answer TEXT NOT NULL,
  PRIMARY KEY (target, log, seq)
);
CREATE INDEX IF NOT EXISTS outbox_uid ON outbox (target, log, uid, seq);
CREATE INDEX IF NOT EXISTS outbox_due ON outbox (target, dead, due, log, seq);
CREATE INDEX IF NOT EXISTS outbox_at ON outbox (target, dead, at);
ALTER TABLE jobs ADD COLUMN namespace_uid TEXT;
ALTER TABLE transitions ADD COLUMN namespace_uid TEXT;
ALTER TABLE outbox ADD COLUMN namespace TEXT;
CREATE INDEX IF NOT EXISTS outbox_namespace ON outbox (target, dead, namespace, due, log, seq);
ALTER TABLE jobs ADD COLUMN counts TEXT;
ALTER TABLE inbox ADD COLUMN namespace_uid TEXT;
ALTER TABLE inbox_waiting ADD COLUMN namespace_uid TEXT;
