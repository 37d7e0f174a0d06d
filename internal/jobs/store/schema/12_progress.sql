-- How much of a job is done, and of how much. NULL is not known.
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS progress_done BIGINT;
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS progress_of BIGINT;
