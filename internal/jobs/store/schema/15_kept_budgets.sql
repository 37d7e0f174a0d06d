-- What of a namespace's budget was used up, by whom, and in which span of time.
CREATE TABLE IF NOT EXISTS kept_budgets (
	namespace $KEY NOT NULL,
	log BIGINT NOT NULL,
	kind $KEY NOT NULL,
	span BIGINT NOT NULL,
	bytes BIGINT NOT NULL,
	PRIMARY KEY (namespace, log, kind, span)
) $OPTIONS;
