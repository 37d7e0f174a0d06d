package store

// inboxTables are those of package notify/inbox.
var inboxTables = []string{}
