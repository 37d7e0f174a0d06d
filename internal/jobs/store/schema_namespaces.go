package store

// namespaceColumns say which namespace of its name a row is of. Rows of before have NULL: what
// cannot be known is not made up (see where.living).
var namespaceColumns = []string{
	`ALTER TABLE jobs ADD COLUMN IF NOT EXISTS namespace_uid $KEY`,
	`ALTER TABLE transitions ADD COLUMN IF NOT EXISTS namespace_uid $KEY`,
}

// inboxNamespaces say the same of what is told of a job, and of what waits to be.
var inboxNamespaces = []string{
	`ALTER TABLE inbox ADD COLUMN IF NOT EXISTS namespace_uid $KEY`,
	`ALTER TABLE inbox_waiting ADD COLUMN IF NOT EXISTS namespace_uid $KEY`,
}
