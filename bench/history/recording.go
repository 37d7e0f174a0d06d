//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
	"github.com/kubecast/kubecast/internal/devtoken"
)

// recording is an API server of its own, and a gateway that records its jobs.
type recording struct {
	*gateway.Gateway
	source *process.Child
	dir    string
	key    string // the file of the key that signs users' tokens
	more   string // of the gateway's configuration
}

// start starts an API server, and a gateway with a database and perhaps more in its configuration; "none" is without a history.
func (b *bench) start(role, address string, more ...string) (r *recording, err error) {
	r = &recording{more: strings.Join(more, "")}
	if r.dir, err = os.MkdirTemp(b.dir, "gateway-"); err != nil {
		return nil, err
	}
	r.key = filepath.Join(r.dir, "key.pem")
	if _, err = r.token("nobody"); err != nil { // makes the key
		return nil, err
	}
	if r.source, err = process.StartChild(role); err != nil {
		return nil, err
	}
	var listens string
	if err = r.source.Call("Start", nil, &listens); err == nil {
		_, err = gateway.Kubeconfig(r.dir, "http://"+listens)
	}
	if err == nil {
		err = r.again(b.binary, address)
	}
	if err != nil {
		r.source.Kill()
		return nil, err
	}
	return r, nil
}

// again starts the gateway, which has ended or was never there.
func (r *recording) again(binary, address string) (err error) {
	r.Gateway, err = gateway.Start(gateway.Options{Binary: binary, Dir: r.dir, Kubeconfig: filepath.Join(r.dir, "kubeconfig"), Config: fmt.Sprintf(`auth: {anonymous: true, jwt: [{issuer: "https://kubecast.local", audiences: [kubecast], publicKeyFile: %q}]}
authorizer: {mode: sar}
cache: {preload: [jobs.batch]}
history: {database: %q}
`, r.key+".pub", address) + r.more})
	return err
}

// token is one of a user.
func (r *recording) token(user string) (string, error) {
	return devtoken.Sign(devtoken.Token{KeyFile: r.key, User: user, Issuer: "https://kubecast.local", Audience: "kubecast", TTL: time.Hour})
}

func (r *recording) end() {
	if r.Gateway != nil {
		r.Stop()
	}
	r.source.Kill()
}

// metric is the sum of a metric's values, whatever its labels.
func (r *recording) metric(name string) (sum float64, err error) {
	response, err := http.Get("http://" + r.Ops + "/metrics")
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if after, ok := strings.CutPrefix(lines.Text(), name); ok && (after[0] == ' ' || after[0] == '{') {
			value, err := strconv.ParseFloat(after[strings.LastIndexByte(after, ' ')+1:], 64)
			if err != nil {
				return 0, err
			}
			sum += value
		}
	}
	return sum, nil
}

// transactions are how many have written something, and how many seconds they took.
func (r *recording) transactions() (n, seconds float64, err error) {
	n, err1 := r.metric("kubecast_history_batch_seconds_count")
	seconds, err2 := r.metric("kubecast_history_batch_seconds_sum")
	return n, seconds, errors.Join(err1, err2)
}

// rates measures how fast transitions are recorded, and how soon.
func (b *bench) rates(ctx context.Context, wanted []string) error {
	burst := figures.Table{
		Title:  fmt.Sprintf("%d transitions as fast as they come; %d rounds, medians", b.sizes.burst, b.rounds),
		Header: []any{"", "transitions/s", "gateway's CPU µs/transition", "in transactions of", "ms for each"},
	}
	lag := figures.Table{
		Title:  fmt.Sprintf("%d transitions at 200/s, from the commit at the API server until another connection sees the row", b.sizes.lag),
		Header: []any{"", "p50 ms", "p99 ms", "longest ms", "gateway's CPU ms/s"},
	}
	goals := map[string]float64{"sqlite": 1000, "postgres": 5000, "mysql": 5000}
	err := b.each(wanted, func(d *database) error {
		r, err := b.start("changing", d.address)
		if err != nil {
			return err
		}
		defer r.end()
		written := int64(someJobs)
		if err := d.await(ctx, written); err != nil {
			return err
		}
		var rates, costs, sizes, times []float64
		for range b.rounds {
			before, err := process.CPU(r.Pid)
			if err != nil {
				return err
			}
			transactions, lasted, err := r.transactions()
			if err != nil {
				return err
			}
			began := time.Now()
			if err := r.source.Call("Emit", source.Emit{Count: b.sizes.burst}, nil); err != nil {
				return err
			}
			written += int64(b.sizes.burst)
			if err := d.await(ctx, written); err != nil {
				return err
			}
			rates = append(rates, float64(b.sizes.burst)/time.Since(began).Seconds())
			after, err := process.CPU(r.Pid)
			if err != nil {
				return err
			}
			costs = append(costs, figures.Microseconds(after-before)/float64(b.sizes.burst))
			allTransactions, allLasted, err := r.transactions()
			if err != nil {
				return err
			}
			sizes = append(sizes, float64(b.sizes.burst)/(allTransactions-transactions))
			times = append(times, 1000*(allLasted-lasted)/(allTransactions-transactions))
		}
		burst.Add(d.name, figures.Median(rates), figures.Median(costs), figures.Median(sizes), figures.Median(times))
		burst.AtLeast("transitions/s with "+d.name, figures.Median(rates), goals[d.name])
		return b.lag(ctx, d, r, &lag, written)
	})
	burst.Note("from the first event until all rows are committed; the API server of the benchmark and the database compute on the same processors")
	burst.Print(b.out)
	lag.Print(b.out)
	return err
}

// lag measures how long it takes from the commit of a transition to its row.
func (b *bench) lag(ctx context.Context, d *database, r *recording, t *figures.Table, written int64) error {
	before, err := process.CPU(r.Pid)
	if err != nil {
		return err
	}
	began := time.Now()
	emitted := make(chan error, 1)
	go func() { emitted <- r.source.Call("Emit", source.Emit{Rate: 200, Count: b.sizes.lag}, nil) }()
	seen, last, err := b.follow(ctx, d, written, written+int64(b.sizes.lag))
	if sent := <-emitted; err == nil {
		err = sent
	}
	if err != nil {
		return err
	}
	after, err := process.CPU(r.Pid)
	if err != nil {
		return err
	}
	t.Add(d.name, figures.Milliseconds(seen.Quantile(0.5)), figures.Milliseconds(seen.Quantile(0.99)), figures.Milliseconds(seen.Max),
		figures.Milliseconds(after-before)/time.Since(began).Seconds())
	t.Reach("lag with "+d.name+", p99 in ms", figures.Milliseconds(seen.Quantile(0.99)), 1000)
	b.expect(d.name+": transitions of as many changes", float64(last-written), float64(b.sizes.lag))
	return nil
}

// follow reads rows as they come, up to a number.
func (b *bench) follow(ctx context.Context, d *database, from, to int64) (seen figures.Histogram, last int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for last = from; last < to; time.Sleep(2 * time.Millisecond) {
		rows, err := d.db.QueryContext(ctx, fmt.Sprintf("SELECT seq, message FROM transitions WHERE log = (SELECT id FROM logs) AND seq > %d ORDER BY seq", last))
		if err != nil {
			return seen, last, err
		}
		for rows.Next() {
			var text []byte
			if err := rows.Scan(&last, &text); err != nil {
				return seen, last, err
			}
			if m, ok := mark.Find(text); ok {
				seen.Add(time.Since(time.Unix(0, m.At)))
			}
		}
		if err := rows.Err(); err != nil {
			return seen, last, err
		}
	}
	return seen, last, nil
}
