package cache

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/kubecast/kubecast/internal/cluster"
)

// Count is how many objects have a value at a path.
type Count struct {
	Value string `json:"value"` // as in a field selector; "" if there is none
	Count int    `json:"count"`
}

// CountBy counts objects by their value at a path, which is written as in field selectors. The most frequent value
// comes first; equally frequent ones come in the order of the values. Before each object it calls step with the
// number of bytes that it is about to read. If step returns false, it ends with what it has counted.
func CountBy(objects iter.Seq[*cluster.Object], field string, step func(bytes int) bool) ([]Count, error) {
	path, err := fieldPath(field)
	if err != nil {
		return nil, err
	}
	found := map[string]int{}
	for o := range objects {
		if !step(o.Size()) {
			break
		}
		found[fieldValue(o, path)]++
	}
	counts := make([]Count, 0, len(found))
	for value, n := range found {
		counts = append(counts, Count{value, n})
	}
	slices.SortFunc(counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Value, b.Value))
	})
	return counts, nil
}
