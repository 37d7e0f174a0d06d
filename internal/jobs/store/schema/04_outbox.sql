-- The tables of package jobs/outbox.

CREATE TABLE IF NOT EXISTS webhooks (
	name $KEY NOT NULL,
	url $KEY NOT NULL,
	off BIGINT NOT NULL,
	reason $TEXT NOT NULL,
	hold BIGINT NOT NULL,
	holder $KEY NOT NULL,
	lease BIGINT NOT NULL,
	answered BIGINT NOT NULL,
	answer $TEXT NOT NULL,
	PRIMARY KEY (name)
) $OPTIONS;
CREATE TABLE IF NOT EXISTS outbox (
	target $KEY NOT NULL,
	log BIGINT NOT NULL,
	seq BIGINT NOT NULL,
	uid $KEY NOT NULL,
	id $KEY NOT NULL,
	at BIGINT NOT NULL,
	due BIGINT NOT NULL,
	attempts BIGINT NOT NULL,
	dead BIGINT NOT NULL,
	body $TEXT NOT NULL,
	answer $TEXT NOT NULL,
	PRIMARY KEY (target, log, seq)
) $OPTIONS;
CREATE INDEX IF NOT EXISTS outbox_uid ON outbox (target, log, uid, seq);
CREATE INDEX IF NOT EXISTS outbox_due ON outbox (target, dead, due, log, seq);
CREATE INDEX IF NOT EXISTS outbox_at ON outbox (target, dead, at);
