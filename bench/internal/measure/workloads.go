//go:build linux

package measure

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Workloads are the tables of a benchmark B, in their order.
type Workloads[B any] []Workload[B]

// Workload is one of them.
type Workload[B any] struct {
	Name string
	Run  func(B) error
}

// Names are separated by commas.
func (all Workloads[B]) Names() string {
	names := make([]string, len(all))
	for i, w := range all {
		names[i] = w.Name
	}
	return strings.Join(names, ", ")
}

// Only are those that are named, separated by commas, in the order of all; all, if no name is given.
func (all Workloads[B]) Only(names string) (chosen Workloads[B], err error) {
	if names == "" {
		return all, nil
	}
	wanted := strings.Split(names, ",")
	for _, name := range wanted {
		if !slices.ContainsFunc(all, func(w Workload[B]) bool { return w.Name == name }) {
			return nil, fmt.Errorf("there is no workload %q", name)
		}
	}
	for _, w := range all {
		if slices.Contains(wanted, w.Name) {
			chosen = append(chosen, w)
		}
	}
	return chosen, nil
}

// Run runs one after the other, until one fails.
func (all Workloads[B]) Run(b B) error {
	for _, w := range all {
		if err := w.Run(b); err != nil {
			return fmt.Errorf("%s: %w", w.Name, err)
		}
	}
	return nil
}

// Promises are those of the gateway that no machine excuses: it is never so slow that an event may
// be lost or told twice.
type Promises struct{ broken []string }

// Expect notes a count that must be 0.
func (p *Promises) Expect(workload, what string, count uint64) {
	if count > 0 {
		p.broken = append(p.broken, fmt.Sprintf("%s: %d %s", workload, count, what))
	}
}

// Kept returns an error that says what was broken; nil if nothing was.
func (p *Promises) Kept() error {
	if len(p.broken) > 0 {
		return errors.New("the gateway broke its promise: " + strings.Join(p.broken, "; "))
	}
	return nil
}
