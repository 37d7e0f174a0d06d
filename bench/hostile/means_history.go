//go:build linux

package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// meansOfHistory are reads and writes of the history, and jobs that are dear to record.
var meansOfHistory = []means{
	{name: "marks", what: "16 times at once 500 notifications are marked as read", history: true, changes: true, run: func(ctx context.Context, a *Attacker) {
		a.each(ctx, 16, func(ctx context.Context, number, round int) bool {
			return a.send(ctx, http.MethodPost, "/notifications/read", fmt.Sprintf(`{"ids":[%s]}`, ids(number+16*round)), jsonBody)
		})
	}},
	{name: "usage", what: "64 times at once the usage of 999 steps, of spans of their own", history: true, run: func(ctx context.Context, a *Attacker) {
		a.each(ctx, 64, func(ctx context.Context, number, round int) bool {
			since := time.Now().Add(-999 * time.Minute).Add(time.Duration(number*1000+round) * time.Microsecond)
			return a.get(ctx, fmt.Sprintf("/history/apis/batch/v1/jobs?view=usage&by=owner&step=1m&since=%s", since.UTC().Format(time.RFC3339Nano)))
		})
	}},
	{name: "cycle", what: fmt.Sprintf("%d jobs own each other and %d pods, and change; 16 at once ask for their history", jobsInCycle, podsInCycle),
		history: true, changes: true, run: func(ctx context.Context, a *Attacker) {
			a.each(ctx, 16, func(ctx context.Context, _, _ int) bool {
				return a.get(ctx, "/history/apis/batch/v1/namespaces/"+hidden+"/jobs?view=transitions&limit=100")
			})
		}},
}

// ids are 500 of notifications, as JSON.
func ids(round int) string {
	all := make([]string, 500)
	for i := range all {
		all[i] = fmt.Sprintf(`"%d"`, 1+round*len(all)+i)
	}
	return strings.Join(all, ",")
}

// choose returns the means of some names, by default all that can be used.
func (b *bench) choose(only string) (chosen []means, err error) {
	if only == "" {
		return slices.DeleteFunc(slices.Clone(allMeans), func(m means) bool { return m.history && b.history == "none" }), nil
	}
	for name := range strings.SplitSeq(only, ",") {
		i := findMeans(name)
		switch {
		case i < 0:
			return nil, fmt.Errorf("there is no means %q", name)
		case allMeans[i].history && b.history == "none":
			return nil, fmt.Errorf("%s needs -history", name)
		}
		chosen = append(chosen, allMeans[i])
	}
	return chosen, nil
}
