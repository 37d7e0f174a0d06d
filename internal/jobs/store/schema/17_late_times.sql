-- Columns of their own: a gateway of before writes all of a column that it knows, and would take
-- from it what it does not know.
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS began_late BIGINT;
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS stopped_late BIGINT;
