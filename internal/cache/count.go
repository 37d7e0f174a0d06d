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
	Value string `json:"value"` // as a field selector names it; "" for none
	Count int    `json:"count"`
}

// CountBy counts objects by their value at a path, as in selectors: the most frequent value comes first, and equals
// come in the order of their values. It calls step before it looks at so many bytes, and gives up if that is false.
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
