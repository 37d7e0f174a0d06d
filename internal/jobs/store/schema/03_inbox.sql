-- The tables of package jobs/inbox.

-- Numbers of a head begin with the time at which it was made. So they never come again, even if it
-- was removed meanwhile.
CREATE TABLE IF NOT EXISTS inbox_heads (
	owner $KEY NOT NULL PRIMARY KEY,
	began BIGINT NOT NULL,
	seq BIGINT NOT NULL,
	expired BIGINT NOT NULL,
	states $KEY NOT NULL,
	digest BIGINT NOT NULL,
	paused BIGINT NOT NULL,
	due BIGINT NOT NULL,
	waiting BIGINT NOT NULL,
	news BIGINT NOT NULL,
	moved BIGINT NOT NULL
) $OPTIONS;
CREATE INDEX IF NOT EXISTS inbox_heads_news ON inbox_heads (news);
CREATE INDEX IF NOT EXISTS inbox_heads_due ON inbox_heads (due);
CREATE TABLE IF NOT EXISTS inbox (
	owner $KEY NOT NULL,
	seq BIGINT NOT NULL,
	at BIGINT NOT NULL,
	kind $KEY NOT NULL,
	cluster $KEY NOT NULL,
	resource $KEY NOT NULL,
	namespace $KEY NOT NULL,
	name $KEY NOT NULL,
	silent BIGINT NOT NULL,
	read_at BIGINT NOT NULL,
	body $TEXT NOT NULL,
	PRIMARY KEY (owner, seq)
) $OPTIONS;
CREATE INDEX IF NOT EXISTS inbox_unread ON inbox (owner, read_at, seq);
CREATE INDEX IF NOT EXISTS inbox_at ON inbox (at);
CREATE TABLE IF NOT EXISTS inbox_waiting (
	owner $KEY NOT NULL,
	n BIGINT NOT NULL,
	kind $KEY NOT NULL,
	cluster $KEY NOT NULL,
	resource $KEY NOT NULL,
	namespace $KEY NOT NULL,
	name $KEY NOT NULL,
	body $TEXT NOT NULL,
	PRIMARY KEY (owner, n)
) $OPTIONS;
-- The one row of inbox_news counts the transactions that have written to inboxes. It is locked
-- from then on until their end, so whoever has seen a number has seen all below it.
CREATE TABLE IF NOT EXISTS inbox_news (id BIGINT NOT NULL PRIMARY KEY, changes BIGINT NOT NULL) $OPTIONS;
INSERT INTO inbox_news (id, changes) SELECT 1, 0 FROM history_schema WHERE id = 1 AND NOT EXISTS (SELECT 1 FROM inbox_news);
