-- What is kept of a job beside its states, each kind of it once: its spec, and the end of its log;
-- and of some of its pods the ends of theirs. Rows are their job's, and are removed with it. At is
-- the job's end to which it belongs. Data is compressed (see Pack).
CREATE TABLE IF NOT EXISTS kept (
	log BIGINT NOT NULL,
	uid $KEY NOT NULL,
	kind $KEY NOT NULL,
	at BIGINT NOT NULL,
	data $BYTES NOT NULL,
	PRIMARY KEY (log, uid, kind)
) $OPTIONS;
