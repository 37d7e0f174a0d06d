package cache

// versions is how many versions of each object an estimate has in a ring: those of a pod's life, from pending to deleted, and somewhat more.
const versions = 10

// MayHold estimates how many bytes the cluster's stores come to hold, if their kinds stay as large as they are: their
// objects, what rings hold now, and further versions of each object, up to a full ring. What Go needs to collect garbage comes on top of that.
func (k *Kinds) MayHold() (bytes int64) {
	for _, store := range k.All() {
		holds, objects := store.replacedBytes.holds.Load(), int64(store.Snapshot().Len())
		ring := store.Topic().Stats().Bytes
		if objects > 0 {
			full := min(k.opts.Topic.Bytes, int64(k.opts.Topic.Events)*(holds/objects)) // of events that are as large as the mean object
			ring = max(ring, min(full, ring+versions*holds))
		}
		bytes += holds + ring
	}
	return bytes
}
