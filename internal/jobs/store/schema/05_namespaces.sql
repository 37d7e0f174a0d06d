-- Which namespace of its name a row is of. Rows of before have NULL: what cannot be known is not
-- made up (see where.living).
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS namespace_uid $KEY;
ALTER TABLE transitions ADD COLUMN IF NOT EXISTS namespace_uid $KEY;
