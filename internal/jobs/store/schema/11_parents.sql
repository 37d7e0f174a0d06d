-- Of which job a job is a part. Rows of before have NULL, as those of jobs that are parts of none.
-- Those are most, and where the database can leave them out, they are not in the index.
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS parent_resource $KEY;
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS parent_name $KEY;
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS parent_uid $KEY;
CREATE INDEX IF NOT EXISTS jobs_parent ON jobs (parent_uid, log, created, uid, namespace, owner, queue, state, since, name) $UNLIKE $IF parent_uid IS NOT NULL;
