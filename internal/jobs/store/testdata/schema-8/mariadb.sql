CREATE TABLE IF NOT EXISTS history_schema (id BIGINT PRIMARY KEY, version BIGINT NOT NULL) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
INSERT INTO history_schema (id, version) VALUES (1, 8);
CREATE TABLE IF NOT EXISTS logs (
  id BIGINT AUTO_INCREMENT PRIMARY KEY,
  cluster VARBINARY(256) NOT NULL,
  resource VARBINARY(256) NOT NULL,
  name VARBINARY(256) NOT NULL,
  version BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  expired BIGINT NOT NULL,
  holder VARBINARY(256) NOT NULL,
  lease BIGINT NOT NULL,
  moved BIGINT NOT NULL,
  UNIQUE (cluster, resource)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
CREATE TABLE IF NOT EXISTS jobs (
  log BIGINT NOT NULL,
  uid VARBINARY(256) NOT NULL,
  namespace VARBINARY(256) NOT NULL,
  name VARBINARY(256) NOT NULL,
  owner VARBINARY(256) NOT NULL,
  queue VARBINARY(256) NOT NULL,
  state VARBINARY(256) NOT NULL,
  since BIGINT NOT NULL,
  reason MEDIUMBLOB NOT NULL,
  message MEDIUMBLOB NOT NULL,
  attempt BIGINT NOT NULL,
  version BIGINT NOT NULL,
  created BIGINT NOT NULL,
  started BIGINT NOT NULL,
  ended BIGINT NOT NULL,
  deleted BIGINT NOT NULL,
  spent MEDIUMBLOB NOT NULL,
  requests MEDIUMBLOB NOT NULL,
  lived BIGINT NOT NULL,
  PRIMARY KEY (log, uid)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
CREATE INDEX jobs_created ON jobs (log, created, uid, namespace, owner, queue, state, since);
CREATE INDEX jobs_namespace ON jobs (log, namespace, created, uid, owner, queue, state, since);
CREATE INDEX jobs_name ON jobs (log, name, created, uid, namespace, owner, queue, state, since);
CREATE INDEX jobs_owner ON jobs (log, owner, created, uid, namespace, queue, state, since);
CREATE INDEX jobs_queue ON jobs (log, queue, created, uid, namespace, owner, state, since);
CREATE INDEX jobs_state ON jobs (log, state, created, uid, namespace, owner, queue, since);
CREATE INDEX jobs_lived ON jobs (log, lived, created, uid, namespace, owner, queue, state, since, name);
CREATE INDEX jobs_deleted ON jobs (log, deleted);
CREATE TABLE IF NOT EXISTS transitions (
  log BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  uid VARBINARY(256) NOT NULL,
  namespace VARBINARY(256) NOT NULL,
  name VARBINARY(256) NOT NULL,
  version BIGINT NOT NULL,
  from_state VARBINARY(256) NOT NULL,
  to_state VARBINARY(256) NOT NULL,
  at BIGINT NOT NULL,
  observed BIGINT NOT NULL,
  late BIGINT NOT NULL,
  attempt BIGINT NOT NULL,
  reason MEDIUMBLOB NOT NULL,
  message MEDIUMBLOB NOT NULL,
  owner VARBINARY(256) NOT NULL,
  queue VARBINARY(256) NOT NULL,
  PRIMARY KEY (log, seq)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
CREATE INDEX transitions_uid ON transitions (log, uid, seq);
CREATE INDEX transitions_namespace ON transitions (log, namespace, seq, owner, queue, to_state, at);
CREATE INDEX transitions_name ON transitions (log, name, seq, namespace, owner, queue, to_state, at);
CREATE INDEX transitions_owner ON transitions (log, owner, seq, namespace, queue, to_state, at);
CREATE INDEX transitions_queue ON transitions (log, queue, seq, namespace, owner, to_state, at);
CREATE INDEX transitions_to_state ON transitions (log, to_state, seq, namespace, owner, queue, at);
CREATE INDEX transitions_at ON transitions (log, at, seq);
CREATE TABLE IF NOT EXISTS spans (
  log BIGINT NOT NULL,
  block BIGINT NOT NULL,
  least BIGINT NOT NULL,
  most BIGINT NOT NULL,
  PRIMARY KEY (log, block)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
ALTER TABLE jobs ADD COLUMN reasons MEDIUMBLOB;
ALTER TABLE jobs ADD COLUMN ran_until BIGINT;
CREATE INDEX jobs_ran ON jobs (log, ran_until, created);
CREATE TABLE IF NOT EXISTS inbox_heads (
  owner VARBINARY(256) NOT NULL PRIMARY KEY,
  began BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  expired BIGINT NOT NULL,
  states VARBINARY(256) NOT NULL,
  digest BIGINT NOT NULL,
  paused BIGINT NOT NULL,
  due BIGINT NOT NULL,
  waiting BIGINT NOT NULL,
  news BIGINT NOT NULL,
  moved BIGINT NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
CREATE INDEX inbox_heads_news ON inbox_heads (news);
CREATE INDEX inbox_heads_due ON inbox_heads (due);
CREATE TABLE IF NOT EXISTS inbox (
  owner VARBINARY(256) NOT NULL,
  seq BIGINT NOT NULL,
  at BIGINT NOT NULL,
  kind VARBINARY(256) NOT NULL,
  cluster VARBINARY(256) NOT NULL,
  resource VARBINARY(256) NOT NULL,
  namespace VARBINARY(256) NOT NULL,
  name VARBINARY(256) NOT NULL,
  silent BIGINT NOT NULL,
  read_at BIGINT NOT NULL,
  body MEDIUMBLOB NOT NULL,
  PRIMARY KEY (owner, seq)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
CREATE INDEX inbox_unread ON inbox (owner, read_at, seq);
CREATE INDEX inbox_at ON inbox (at);
CREATE TABLE IF NOT EXISTS inbox_waiting (
  owner VARBINARY(256) NOT NULL,
  n BIGINT NOT NULL,
  kind VARBINARY(256) NOT NULL,
  cluster VARBINARY(256) NOT NULL,
  resource VARBINARY(256) NOT NULL,
  namespace VARBINARY(256) NOT NULL,
  name VARBINARY(256) NOT NULL,
  body MEDIUMBLOB NOT NULL,
  PRIMARY KEY (owner, n)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
CREATE TABLE IF NOT EXISTS inbox_news (id BIGINT NOT NULL PRIMARY KEY, changes BIGINT NOT NULL) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
INSERT INTO inbox_news (id, changes) SELECT 1, 0 FROM history_schema WHERE id = 1 AND NOT EXISTS (SELECT 1 FROM inbox_news);
CREATE TABLE IF NOT EXISTS webhooks (
  name VARBINARY(256) NOT NULL,
  url VARBINARY(256) NOT NULL,
  off BIGINT NOT NULL,
  reason MEDIUMBLOB NOT NULL,
  hold BIGINT NOT NULL,
  holder VARBINARY(256) NOT NULL,
  lease BIGINT NOT NULL,
  answered BIGINT NOT NULL,
  answer MEDIUMBLOB NOT NULL,
  PRIMARY KEY (name)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
CREATE TABLE IF NOT EXISTS outbox (
  target VARBINARY(256) NOT NULL,
  log BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  uid VARBINARY(256) NOT NULL,
  id VARBINARY(256) NOT NULL,
  at BIGINT NOT NULL,
  due BIGINT NOT NULL,
  attempts BIGINT NOT NULL,
  dead BIGINT NOT NULL,
  body MEDIUMBLOB NOT NULL,
  answer MEDIUMBLOB NOT NULL,
  PRIMARY KEY (target, log, seq)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
CREATE INDEX outbox_uid ON outbox (target, log, uid, seq);
CREATE INDEX outbox_due ON outbox (target, dead, due, log, seq);
CREATE INDEX outbox_at ON outbox (target, dead, at);
ALTER TABLE jobs ADD COLUMN namespace_uid VARBINARY(256);
ALTER TABLE transitions ADD COLUMN namespace_uid VARBINARY(256);
ALTER TABLE outbox ADD COLUMN namespace VARBINARY(256);
CREATE INDEX outbox_namespace ON outbox (target, dead, namespace, due, log, seq);
ALTER TABLE jobs ADD COLUMN counts MEDIUMBLOB;
ALTER TABLE inbox ADD COLUMN namespace_uid VARBINARY(256);
ALTER TABLE inbox_waiting ADD COLUMN namespace_uid VARBINARY(256);
