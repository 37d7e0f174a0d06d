package cluster

import (
	"slices"
	"strings"
)

// JoinEpochs is the epoch of a set of clusters: the only one's own, or a short one made from all of theirs.
func JoinEpochs(epochs []string) string {
	set := slices.Compact(slices.Sorted(slices.Values(epochs)))
	if len(set) == 1 {
		return set[0]
	}
	return shortHash(strings.Join(set, "."))
}
