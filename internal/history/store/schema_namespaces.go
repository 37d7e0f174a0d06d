package store

// namespaceColumns say which namespace of its name a row is of. Rows of before have NULL: what cannot be known is not made up (see where.living).
// history_keys has what replicas share and nobody else knows.
var namespaceColumns = []string{
	`ALTER TABLE jobs ADD COLUMN IF NOT EXISTS namespace_uid $KEY`,
	`ALTER TABLE transitions ADD COLUMN IF NOT EXISTS namespace_uid $KEY`,
	`ALTER TABLE inbox ADD COLUMN IF NOT EXISTS namespace_uid $KEY`,
	`ALTER TABLE inbox_waiting ADD COLUMN IF NOT EXISTS namespace_uid $KEY`,
	`CREATE TABLE IF NOT EXISTS history_keys (name $KEY NOT NULL PRIMARY KEY, value $KEY NOT NULL) $OPTIONS`,
}
