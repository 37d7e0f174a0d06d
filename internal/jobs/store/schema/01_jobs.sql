CREATE TABLE IF NOT EXISTS logs (
	id $ID,
	cluster $KEY NOT NULL,
	resource $KEY NOT NULL,
	name $KEY NOT NULL,
	version BIGINT NOT NULL,
	seq BIGINT NOT NULL,
	expired BIGINT NOT NULL,
	holder $KEY NOT NULL,
	lease BIGINT NOT NULL,
	moved BIGINT NOT NULL,
	UNIQUE (cluster, resource)
) $OPTIONS;
CREATE TABLE IF NOT EXISTS jobs (
	log BIGINT NOT NULL,
	uid $KEY NOT NULL,
	namespace $KEY NOT NULL,
	name $KEY NOT NULL,
	owner $KEY NOT NULL,
	queue $KEY NOT NULL,
	state $KEY NOT NULL,
	since BIGINT NOT NULL,
	reason $TEXT NOT NULL,
	message $TEXT NOT NULL,
	attempt BIGINT NOT NULL,
	version BIGINT NOT NULL,
	created BIGINT NOT NULL,
	started BIGINT NOT NULL,
	ended BIGINT NOT NULL,
	deleted BIGINT NOT NULL,
	spent $TEXT NOT NULL,
	requests $TEXT NOT NULL,
	lived BIGINT NOT NULL,
	PRIMARY KEY (log, uid)
) $OPTIONS;
-- Behind what orders them, indexes have the other columns that are asked for, so that a row that
-- does not fit is not read. No two entries are alike in such an index.
CREATE INDEX IF NOT EXISTS jobs_created ON jobs (log, created, uid, namespace, owner, queue, state, since) $UNLIKE;
CREATE INDEX IF NOT EXISTS jobs_namespace ON jobs (log, namespace, created, uid, owner, queue, state, since) $UNLIKE;
CREATE INDEX IF NOT EXISTS jobs_name ON jobs (log, name, created, uid, namespace, owner, queue, state, since) $UNLIKE;
CREATE INDEX IF NOT EXISTS jobs_owner ON jobs (log, owner, created, uid, namespace, queue, state, since) $UNLIKE;
CREATE INDEX IF NOT EXISTS jobs_queue ON jobs (log, queue, created, uid, namespace, owner, state, since) $UNLIKE;
CREATE INDEX IF NOT EXISTS jobs_state ON jobs (log, state, created, uid, namespace, owner, queue, since) $UNLIKE;
CREATE INDEX IF NOT EXISTS jobs_lived ON jobs (log, lived, created, uid, namespace, owner, queue, state, since, name) $UNLIKE;
CREATE INDEX IF NOT EXISTS jobs_deleted ON jobs (log, deleted);
CREATE TABLE IF NOT EXISTS transitions (
	log BIGINT NOT NULL,
	seq BIGINT NOT NULL,
	uid $KEY NOT NULL,
	namespace $KEY NOT NULL,
	name $KEY NOT NULL,
	version BIGINT NOT NULL,
	from_state $KEY NOT NULL,
	to_state $KEY NOT NULL,
	at BIGINT NOT NULL,
	observed BIGINT NOT NULL,
	late BIGINT NOT NULL,
	attempt BIGINT NOT NULL,
	reason $TEXT NOT NULL,
	message $TEXT NOT NULL,
	owner $KEY NOT NULL,
	queue $KEY NOT NULL,
	PRIMARY KEY (log, seq)
) $OPTIONS;
CREATE INDEX IF NOT EXISTS transitions_uid ON transitions (log, uid, seq) $UNLIKE;
CREATE INDEX IF NOT EXISTS transitions_namespace ON transitions (log, namespace, seq, owner, queue, to_state, at) $UNLIKE;
CREATE INDEX IF NOT EXISTS transitions_name ON transitions (log, name, seq, namespace, owner, queue, to_state, at) $UNLIKE;
CREATE INDEX IF NOT EXISTS transitions_owner ON transitions (log, owner, seq, namespace, queue, to_state, at) $UNLIKE;
CREATE INDEX IF NOT EXISTS transitions_queue ON transitions (log, queue, seq, namespace, owner, to_state, at) $UNLIKE;
CREATE INDEX IF NOT EXISTS transitions_to_state ON transitions (log, to_state, seq, namespace, owner, queue, at) $UNLIKE;
CREATE INDEX IF NOT EXISTS transitions_at ON transitions (log, at, seq) $UNLIKE;
CREATE TABLE IF NOT EXISTS spans (
	log BIGINT NOT NULL,
	block BIGINT NOT NULL,
	least BIGINT NOT NULL,
	most BIGINT NOT NULL,
	PRIMARY KEY (log, block)
) $OPTIONS;
