package stream

// A chain is one namespace's part of a topic: which events are its own, how far they were evicted, and which readers
// wait for the next. It makes a reader of one namespace independent of how busy the others are.
type chain struct {
	seqs    numbers // of its events in the ring
	evicted eviction
	waiting waitList
}

// maxChains is how many namespaces are remembered before those without events and readers are forgotten.
const maxChains = 4096

// chain finds or makes the chain of a namespace.
func (t *Topic[O]) chain(namespace string) *chain {
	c := t.chains[namespace]
	if c == nil {
		if len(t.chains) >= t.chainLimit {
			t.forgetChains()
		}
		c = &chain{evicted: t.forgotten}
		t.chains[namespace] = c
	}
	return c
}

// forgetChains drops the chains that have neither events nor readers. What was evicted from any of them counts as
// evicted from each, and from each chain made later: a position may expire too early, but never too late.
func (t *Topic[O]) forgetChains() {
	for namespace, c := range t.chains {
		if len(c.seqs.pending()) == 0 && len(c.waiting.waiting) == 0 && !c.waiting.noted {
			t.forgotten.seq = max(t.forgotten.seq, c.evicted.seq)
			t.forgotten.pos = max(t.forgotten.pos, c.evicted.pos)
			delete(t.chains, namespace)
		}
	}
	t.chainLimit = max(maxChains, 2*len(t.chains)) // so that looking through all of them stays rare
}
