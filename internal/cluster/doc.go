// Package cluster reaches API servers: it holds the connection to one cluster, knows which kinds that cluster serves,
// and turns the bodies of its LIST and WATCH answers into Objects.
//
// What it promises: each body is decoded as it arrives, one object at a time, and each object once. An Object is the
// API server's own compact JSON, without what no client needs (managedFields, the last-applied annotation) and
// without what no client may read (the values of Secrets). All else that the gateway wants to know of an object is
// looked up in these bytes. Objects are immutable.
//
// What it refuses: to write. It issues GET requests, the reviews that package auth asks for,
// SubjectAccessReviews and TokenReviews, and those of what the gateway itself may do. The exception
// is not its own: Cluster.ConfigMaps, by which package auth patches the list of what was revoked.
package cluster
