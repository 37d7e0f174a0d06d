package historyapi

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
	"github.com/kubecast/kubecast/internal/visibility"
)

const (
	maxSteps   = 1000
	leastStep  = time.Minute
	maxGroups  = 10_000    // of usage: all of them are one answer
	maxCounted = 3_000_000 // jobs in one usage: of each, two durations are kept
)

// bys are the values of by; the first is meant where none is given.
var bys = []string{string(store.ByNamespace), string(store.ByOwner), string(store.ByQueue), string(store.ByResource), string(store.ByState), string(store.ByCause)}

// usage reads what only a request for usage or ends has.
func (q *historyRequest) usage(query url.Values, now time.Time) error {
	if q.view != viewUsage && q.view != viewEnds {
		for _, name := range []string{"by", "step"} {
			if query.Has(name) {
				return reply.BadRequest("%s: has a meaning with view=usage and view=ends only", name)
			}
		}
		return nil
	}
	for _, name := range []string{"limit", "continue"} {
		if query.Has(name) {
			return reply.BadRequest("%s: has no meaning with view=%s, which is one answer", name, q.view)
		}
	}
	bys := bys
	if q.view == viewEnds {
		bys = slices.DeleteFunc(slices.Clone(bys), func(by string) bool { return by == string(store.ByState) }) // states are what is counted
	}
	q.by = store.By(bys[0])
	if by := query["by"]; len(by) > 1 || len(by) == 1 && !slices.Contains(bys, by[0]) {
		return reply.BadRequest("by: %q is none; there are %s", reply.Shortened(strings.Join(by, ",")), strings.Join(bys, ", "))
	} else if len(by) == 1 {
		q.by = store.By(by[0])
	}
	if q.filter.Until == 0 {
		q.filter.Until = jobs.At(now)
	}
	step := query["step"]
	if len(step) == 0 {
		return nil
	}
	var err error
	if q.step, err = time.ParseDuration(step[0]); err != nil || len(step) > 1 || q.step < leastStep || q.step%time.Second != 0 {
		return reply.BadRequest("step: %q is no duration of a minute or more in whole seconds, such as 1h", reply.Shortened(strings.Join(step, ",")))
	}
	if q.filter.Since == 0 {
		return reply.BadRequest("step: needs since, where the first step begins")
	}
	if n := q.span().Steps(); n > maxSteps {
		return reply.BadRequest("step: there would be %d steps, more than %d", n, maxSteps)
	}
	return nil
}

func (q historyRequest) span() jobs.Span {
	return jobs.Span{From: q.filter.Since, Until: q.filter.Until, Step: q.step}
}

// used is what was used as clients are told it.
type used struct {
	Key           string       `json:"key"`
	From          jobs.Time    `json:"from"`
	Jobs          int          `json:"jobs"`
	WaitedSeconds *jobs.Spread `json:"waitedSeconds"`
	RanSeconds    *jobs.Spread `json:"ranSeconds"`
	CPUHours      float64      `json:"cpuHours"`
	MemoryHours   float64      `json:"memoryHours"` // in GiB
	GPUHours      float64      `json:"gpuHours"`
	HoursUnknown  int          `json:"hoursUnknown"` // of the jobs
}

// rowCost is what it takes to read a job's row and to count it, in the bytes of budget.Task.
const rowCost = 4 << 10

// sumCost is what it takes to add to one sum: a job that ran through several steps is added to some.
const sumCost = 256

func tooManyGroups() error {
	return reply.BadRequest("there are more than %d keys and steps: ask for a shorter time, longer steps, or less by a filter", maxGroups)
}

// usageOf makes the answer to a request for usage.
func (h *Handler) usageOf(ctx context.Context, p *page, g access.Grant, t visibility.Target, q historyRequest, now jobs.Time) error {
	usage := jobs.NewUsage(q.span())
	err := p.from.Lives(ctx, g.Kinds.Cluster(), t.Qualified(), q.filter, q.by, q.span(), now, func(batch []jobs.Lived) error {
		for _, l := range batch {
			if !p.task.Step(rowCost + sumCost*usage.Add(l)) {
				return p.task.Err()
			}
		}
		p.task.Rest() // the database is read without a turn
		switch groups, jobCount := usage.Size(); {
		case groups > maxGroups:
			return tooManyGroups()
		case jobCount > maxCounted:
			return reply.BadRequest("there are more than %d jobs: ask for a shorter time, or for less by a filter", maxCounted)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, u := range usage.Sum() {
		if err := p.add(used{u.Key, u.From, u.Jobs, u.Waited, u.Ran, u.Hours.CPUs, u.Hours.Memory, u.Hours.GPUs, u.Unknown}); err != nil {
			return err
		}
	}
	return p.end("")
}

// ended is how jobs ended as clients are told it.
type ended struct {
	Key       string    `json:"key"`
	From      jobs.Time `json:"from"`
	Succeeded int       `json:"succeeded"`
	Failed    int       `json:"failed"`
	Cancelled int       `json:"cancelled"`
}

// endsOf makes the answer to a request for ends.
func (h *Handler) endsOf(ctx context.Context, p *page, g access.Grant, t visibility.Target, q historyRequest) error {
	ends, all := jobs.NewEnds(q.span()), 0
	err := p.from.Ends(ctx, g.Kinds.Cluster(), t.Qualified(), q.filter, func(batch []*jobs.Transition) error {
		for _, tr := range batch {
			if !p.task.Step(rowCost) {
				return p.task.Err()
			}
			ends.Add(q.by.KeyOf(t.Qualified(), tr), tr.To, tr.At)
		}
		p.task.Rest() // the database is read without a turn
		switch all += len(batch); {
		case ends.Size() > maxGroups:
			return tooManyGroups()
		case all > maxCounted:
			return reply.BadRequest("there are more than %d ends: ask for a shorter time, or for less by a filter", maxCounted)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, e := range ends.Sum() {
		if err := p.add(ended(e)); err != nil {
			return err
		}
	}
	return p.end("")
}
