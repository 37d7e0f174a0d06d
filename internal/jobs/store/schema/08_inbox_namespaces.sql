-- Of which namespace of its name the job is of what is told of it, and of what waits to be.
ALTER TABLE inbox ADD COLUMN IF NOT EXISTS namespace_uid $KEY;
ALTER TABLE inbox_waiting ADD COLUMN IF NOT EXISTS namespace_uid $KEY;
