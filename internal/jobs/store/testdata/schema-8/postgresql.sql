CREATE TABLE IF NOT EXISTS history_schema (id BIGINT PRIMARY KEY, version BIGINT NOT NULL);
INSERT INTO history_schema (id, version) VALUES (1, 8);
CREATE TABLE IF NOT EXISTS logs (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  cluster TEXT COLLATE "C" NOT NULL,
  resource TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  version BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  expired BIGINT NOT NULL,
  holder TEXT COLLATE "C" NOT NULL,
  lease BIGINT NOT NULL,
  moved BIGINT NOT NULL,
  UNIQUE (cluster, resource)
);
CREATE TABLE IF NOT EXISTS jobs (
  log BIGINT NOT NULL,
  uid TEXT COLLATE "C" NOT NULL,
  namespace TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  owner TEXT COLLATE "C" NOT NULL,
  queue TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
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
CREATE INDEX IF NOT EXISTS jobs_created ON jobs (log, created, uid, namespace, owner, queue, state, since) WITH (deduplicate_items = off);
CREATE INDEX IF NOT EXISTS jobs_namespace ON jobs (log, namespace, created, uid, owner, queue, state, since) WITH (deduplicate_items = off);
CREATE INDEX IF NOT EXISTS jobs_name ON jobs (log, name, created, uid, namespace, owner, queue, state, since) WITH (deduplicate_items = off);
CREATE INDEX IF NOT EXISTS jobs_owner ON jobs (log, owner, created, uid, namespace, queue, state, since) WITH (deduplicate_items = off);
CREATE INDEX IF NOT EXISTS jobs_queue ON jobs (log, queue, created, uid, namespace, owner, state, since) WITH (deduplicate_items = off);
CREATE INDEX IF NOT EXISTS jobs_state ON jobs (log, state, created, uid, namespace, owner, queue, since) WITH (deduplicate_items = off);
CREATE INDEX IF NOT EXISTS jobs_lived ON jobs (log, lived, created, uid, namespace, owner, queue, state, since, name) WITH (deduplicate_items = off);
CREATE INDEX IF NOT EXISTS jobs_deleted ON jobs (log, deleted);
CREATE TABLE IF NOT EXISTS transitions (
  log BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  uid TEXT COLLATE "C" NOT NULL,
  namespace TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  version BIGINT NOT NULL,
  from_state TEXT COLLATE "C" NOT NULL,
  to_state TEXT COLLATE "C" NOT NULL,
  at BIGINT NOT NULL,
  observed BIGINT NOT NULL,
  late BIGINT NOT NULL,
  attempt BIGINT NOT NULL,
  reason TEXT NOT NULL,
  message TEXT NOT NULL,
  owner TEXT COLLATE "C" NOT NULL,
  queue TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (log, seq)
);
CREATE INDEX IF NOT EXISTS transitions_uid ON transitions (log, uid, seq) WITH (deduplicate_items = off);
CREATE INDEX IF NOT EXISTS transitions_namespace ON transitions (log, namespace, seq, owner, queue, to_state, at) WITH (deduplicate_items = off);
CREATE INDEX IF NOT EXISTS transitions_name ON transitions (log, name, seq, namespace, owner, queue, to_state, at) WITH (deduplicate_items = off);
CREATE INDEX IF NOT EXISTS transitions_owner ON transitions (log, owner, seq, namespace, queue, to_state, at) WITH (deduplicate_items = off);
CREATE INDEX IF NOT EXISTS transitions_queue ON transitions (log, queue, seq, namespace, owner, to_state, at) WITH (deduplicate_items = off);
CREATE INDEX IF NOT EXISTS transitions_to_state ON transitions (log, to_state, seq, namespace, owner, queue, at) WITH (deduplicate_items = off);
CREATE INDEX IF NOT EXISTS transitions_at ON transitions (log, at, seq) WITH (deduplicate_items = off);
CREATE TABLE IF NOT EXISTS spans (
  log BIGINT NOT NULL,
  block BIGINT NOT NULL,
  least BIGINT NOT NULL,
  most BIGINT NOT NULL,
  PRIMARY KEY (log, block)
);
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS reasons TEXT;
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS ran_until BIGINT;
CREATE INDEX IF NOT EXISTS jobs_ran ON jobs (log, ran_until, created);
CREATE TABLE IF NOT EXISTS inbox_heads (
  owner TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  began BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  expired BIGINT NOT NULL,
  states TEXT COLLATE "C" NOT NULL,
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
  owner TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  at BIGINT NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  cluster TEXT COLLATE "C" NOT NULL,
  resource TEXT COLLATE "C" NOT NULL,
  namespace TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  silent BIGINT NOT NULL,
  read_at BIGINT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (owner, seq)
);
CREATE INDEX IF NOT EXISTS inbox_unread ON inbox (owner, read_at, seq);
CREATE INDEX IF NOT EXISTS inbox_at ON inbox (at);
CREATE TABLE IF NOT EXISTS inbox_waiting (
  owner TEXT COLLATE "C" NOT NULL,
  n BIGINT NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  cluster TEXT COLLATE "C" NOT NULL,
  resource TEXT COLLATE "C" NOT NULL,
  namespace TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (owner, n)
);
CREATE TABLE IF NOT EXISTS inbox_news (id BIGINT NOT NULL PRIMARY KEY, changes BIGINT NOT NULL);
INSERT INTO inbox_news (id, changes) SELECT 1, 0 FROM history_schema WHERE id = 1 AND NOT EXISTS (SELECT 1 FROM inbox_news);
CREATE TABLE IF NOT EXISTS webhooks (
  name TEXT COLLATE "C" NOT NULL,
  url TEXT COLLATE "C" NOT NULL,
  off BIGINT NOT NULL,
  reason TEXT NOT NULL,
  hold BIGINT NOT NULL,
  holder TEXT COLLATE "C" NOT NULL,
  lease BIGINT NOT NULL,
  answered BIGINT NOT NULL,
  answer TEXT NOT NULL,
  PRIMARY KEY (name)
);
CREATE TABLE IF NOT EXISTS outbox (
  target TEXT COLLATE "C" NOT NULL,
  log BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  uid TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
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
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS namespace_uid TEXT COLLATE "C";
ALTER TABLE transitions ADD COLUMN IF NOT EXISTS namespace_uid TEXT COLLATE "C";
ALTER TABLE outbox ADD COLUMN IF NOT EXISTS namespace TEXT COLLATE "C";
CREATE INDEX IF NOT EXISTS outbox_namespace ON outbox (target, dead, namespace, due, log, seq);
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS counts TEXT;
ALTER TABLE inbox ADD COLUMN IF NOT EXISTS namespace_uid TEXT COLLATE "C";
ALTER TABLE inbox_waiting ADD COLUMN IF NOT EXISTS namespace_uid TEXT COLLATE "C";
