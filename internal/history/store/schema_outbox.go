package store

// outboxTables are those of package notify/outbox.
var outboxTables = []string{}
