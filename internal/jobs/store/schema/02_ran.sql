-- MySQL gives such columns no default. So nothing is written to existing rows, however many there
-- are.
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS reasons $TEXT;
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS ran_until BIGINT;
CREATE INDEX IF NOT EXISTS jobs_ran ON jobs (log, ran_until, created);
