//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/kubecast/kubecast/bench/internal/apiserver"
	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

const (
	somePods, fewPods = 10_000, 200
	podOwners         = 200 // jobs
	podPadding        = 2048
)

// pods are those of an API server, which all wait at first. Each of the first events starts one,
// and each later event ends one.
func pods(count int) apiserver.Kind {
	return apiserver.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Objects: count, Render: func(number int, version uint64, m mark.Mark) []byte {
		status, node := `"phase":"Pending"`, ""
		switch text := m.Append(nil); {
		case m.Seq > uint64(count):
			node, status = "node-1", fmt.Sprintf(`"phase":"Failed","reason":"Evicted","message":"%s","containerStatuses":[{"name":"main","state":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]`, text)
		case m.Seq > 0:
			node, status = string(text), `"phase":"Running","containerStatuses":[{"name":"main","state":{"running":{"startedAt":"2026-01-01T00:00:01Z"}}}]`
		}
		job := number % podOwners
		return fmt.Appendf(nil, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"train-%05d-%05d","namespace":"team-%d","uid":"7e1a3c52-0000-4000-8000-%012d","resourceVersion":"%d","creationTimestamp":"2026-01-01T00:00:00Z",`+
			`"ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"train-%05d","uid":"6f1a3c52-0000-4000-8000-%012d","controller":true}]},`+
			`"spec":{"nodeName":"%s","containers":[{"name":"main","image":"registry.example.org/train:2026.1","args":["%0*d"],"resources":{"requests":{"cpu":"4","memory":"16Gi","nvidia.com/gpu":"1"}}}]},"status":{%s}}`,
			job, number, job%10, number, version, job, job, node, podPadding, 0, status)
	}}
}

// pods measures how soon starts and ends of pods are recorded, each at 1,000 a second.
func (b *bench) pods(ctx context.Context, wanted []string) error {
	t := figures.Table{
		Title:  fmt.Sprintf("%d pods start, and then end, at %d/s, from the commit at the API server until another connection sees the row", b.sizes.pods, podRate),
		Header: []any{"", "p50 ms", "p99 ms", "longest ms", "changes recorded/s", "gateway's CPU ms/s", "in transactions of"},
	}
	err := b.each(wanted, func(d *database) error { return b.podsOf(ctx, d, &t) })
	t.Print(b.out)
	return err
}

// podRate is that of 1,000 starts and 1,000 ends a second.
const podRate = 2000

func (b *bench) podsOf(ctx context.Context, d *database, t *figures.Table) error {
	role := "pods"
	if b.sizes.pods == fewPods {
		role = "few pods"
	}
	r, err := b.start(role, d.address)
	if err != nil {
		return err
	}
	defer r.end()
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	const ofJobs = " FROM runs WHERE log = (SELECT id FROM logs WHERE resource = 'jobs.batch')"
	for n := int64(0); n < int64(b.sizes.pods); time.Sleep(50 * time.Millisecond) {
		if n, err = d.number(within, "SELECT COUNT(*)"+ofJobs); err != nil {
			if within.Err() != nil {
				return fmt.Errorf("%d pods are recorded: %w", n, err)
			}
			n = 0 // there may be no table yet
		}
	}
	last, err := d.number(within, "SELECT MAX(seq)"+ofJobs)
	if err != nil {
		return err
	}
	before, err := process.CPU(r.Pid)
	if err != nil {
		return err
	}
	transactions, _, err := r.transactions()
	if err != nil {
		return err
	}
	began := time.Now()
	emitted := make(chan error, 1)
	go func() {
		emitted <- r.source.Call("Emit", source.Emit{Rate: podRate, Count: 2 * b.sizes.pods}, nil)
	}()
	var seen figures.Histogram
	for ended := 0; ended < b.sizes.pods; time.Sleep(2 * time.Millisecond) {
		rows, err := d.db.QueryContext(within, fmt.Sprintf("SELECT seq, node, message, ended%s AND seq > %d ORDER BY seq", ofJobs, last))
		if err != nil {
			return err
		}
		for rows.Next() {
			var node, message []byte
			var at int64
			if err := rows.Scan(&last, &node, &message, &at); err != nil {
				return err
			}
			if at != 0 {
				ended, node = ended+1, message
			}
			if m, ok := mark.Find(node); ok {
				seen.Add(time.Since(time.Unix(0, m.At)))
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
	}
	if err := <-emitted; err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	after, err := process.CPU(r.Pid)
	if err != nil {
		return err
	}
	all, _, err := r.transactions()
	if err != nil {
		return err
	}
	t.Add(d.name, figures.Milliseconds(seen.Quantile(0.5)), figures.Milliseconds(seen.Quantile(0.99)), figures.Milliseconds(seen.Max), float64(2*b.sizes.pods)/took, figures.Milliseconds(after-before)/took, float64(2*b.sizes.pods)/max(1, all-transactions))
	t.Reach("lag of pods with "+d.name+", p99 in ms", figures.Milliseconds(seen.Quantile(0.99)), 1000)
	n, err := d.number(ctx, "SELECT COUNT(*) FROM runs WHERE ended > 0 AND exit_code = 137")
	b.expect(d.name+": pods that ended", float64(n), float64(b.sizes.pods))
	return err
}
