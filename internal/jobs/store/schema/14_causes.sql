ALTER TABLE jobs ADD COLUMN IF NOT EXISTS cause $TEXT;
ALTER TABLE transitions ADD COLUMN IF NOT EXISTS cause $TEXT;
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS cause_reason $KEY;
ALTER TABLE transitions ADD COLUMN IF NOT EXISTS cause_reason $KEY;
CREATE INDEX IF NOT EXISTS jobs_cause_reason ON jobs (log, cause_reason, created, uid, namespace, owner, queue, state, since, name) $UNLIKE $IF cause_reason IS NOT NULL;
CREATE INDEX IF NOT EXISTS transitions_cause_reason ON transitions (log, cause_reason, seq, namespace, owner, queue, to_state, at, name, uid) $UNLIKE $IF cause_reason IS NOT NULL;
