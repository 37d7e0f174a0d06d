package cache

// MayHold estimates how many bytes the cluster's stores come to hold, if their kinds stay as large as they are: their
// objects, and rings that are full. What Go needs to collect garbage comes on top of that.
func (k *Kinds) MayHold() (bytes int64) {
	for _, store := range k.All() {
		holds, objects := store.replacedBytes.holds.Load(), int64(store.Snapshot().Len())
		ring := k.opts.Topic.Bytes
		if objects > 0 {
			ring = min(ring, int64(k.opts.Topic.Events)*(holds/objects)) // of events that are as large as the mean object
		}
		bytes += holds + max(ring, store.Topic().Stats().Bytes)
	}
	return bytes
}
