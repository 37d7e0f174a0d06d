// Package cluster reaches API servers: it holds the connection to one cluster, answers which kinds that cluster
// serves, and turns its LIST and WATCH bodies into Objects.
//
// What it promises: each body is decoded as it arrives, one object at a time, and each object once. An Object is
// the API server's own compact JSON without what nobody reads (managedFields, the last-applied annotation) and
// without what nobody may read (the values of Secrets); whatever else the gateway needs to know of it is looked up
// in these bytes. Objects are immutable.
//
// What it refuses: to write. It issues GET requests, and the reviews that package auth asks for: SubjectAccessReviews and
// TokenReviews. The exception is not its own: Cluster.ConfigMaps, by which package auth patches the list of what was revoked.
package cluster
