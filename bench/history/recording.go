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
	"github.com/kubecast/kubecast/bench/internal/measure"
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

// start starts an API server, and a gateway with a database and perhaps more in its configuration;
// "none" is without a history.
func (b *bench) start(role, address string, more ...string) (r *recording, err error) {
	return b.startOf(b.binary, role, address, more...)
}

func (b *bench) startOf(binary, role, address string, more ...string) (r *recording, err error) {
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
		err = r.again(binary, address)
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

// burst is what it took to record many transitions that came at once.
type burst struct{ rate, cost, size, took float64 }

// burst lets transitions come as fast as they can, after so many that are written.
func (b *bench) burst(ctx context.Context, d *database, r *recording, written int64) (measured burst, err error) {
	before, err := process.CPU(r.Pid)
	if err != nil {
		return measured, err
	}
	transactions, lasted, err := r.transactions()
	if err != nil {
		return measured, err
	}
	began := time.Now()
	if err := r.source.Call("Emit", source.Emit{Count: b.sizes.burst}, nil); err != nil {
		return measured, err
	}
	if err := d.await(ctx, written+int64(b.sizes.burst)); err != nil {
		return measured, err
	}
	measured.rate = float64(b.sizes.burst) / time.Since(began).Seconds()
	after, err := process.CPU(r.Pid)
	if err != nil {
		return measured, err
	}
	measured.cost = figures.Microseconds(after-before) / float64(b.sizes.burst)
	allTransactions, allLasted, err := r.transactions()
	measured.size = float64(b.sizes.burst) / (allTransactions - transactions)
	measured.took = 1000 * (allLasted - lasted) / (allTransactions - transactions)
	return measured, err
}

// now and earlier are the gateways that are compared: this one, and the one that -before names.
const now, earlier = "", ", before"

// rates measures how fast transitions are recorded, and how soon.
func (b *bench) rates(ctx context.Context, wanted []string) error {
	bursts := figures.Table{
		Title:  fmt.Sprintf("%d transitions as fast as they come; %d rounds, medians", b.sizes.burst, b.rounds),
		Header: []any{"", "transitions/s", "gateway's CPU µs/transition", "in transactions of", "ms for each"},
	}
	lag := figures.Table{
		Title:  fmt.Sprintf("%d transitions at 200/s, from the commit at the API server until another connection sees the row", b.sizes.lag),
		Header: []any{"", "p50 ms", "p99 ms", "longest ms", "gateway's CPU ms/s"},
	}
	goals := map[string]float64{"sqlite": 1000, "postgres": 5000, "mysql": 5000}
	err := b.each(wanted, func(d *database) error {
		ways, err := b.ways("changing", d)
		if err != nil {
			return err
		}
		defer ways.end()
		written := int64(someJobs)
		for _, way := range ways.all {
			if err := way.await(ctx, written); err != nil {
				return err
			}
		}
		results, err := measure.InTurn(b.rounds, ways.names(), func(name string) (burst, error) {
			way := ways.all[name]
			measured, err := b.burst(ctx, way.database, way.recording, written+way.rounds*int64(b.sizes.burst))
			way.rounds++
			return measured, err
		})
		if err != nil {
			return err
		}
		for _, name := range ways.names() {
			of := func(read func(burst) float64) float64 { return figures.MedianOf(results[name], read) }
			bursts.Add(d.name+name, of(func(m burst) float64 { return m.rate }), of(func(m burst) float64 { return m.cost }), of(func(m burst) float64 { return m.size }), of(func(m burst) float64 { return m.took }))
		}
		if len(ways.all) > 1 {
			bursts.Note("%s: %.2f × the transitions/s of before, for %.2f × the CPU", d.name,
				measure.Ratio(results[now], results[earlier], func(m burst) float64 { return m.rate }), measure.Ratio(results[now], results[earlier], func(m burst) float64 { return m.cost }))
		}
		bursts.AtLeast("transitions/s with "+d.name, figures.MedianOf(results[now], func(m burst) float64 { return m.rate }), goals[d.name])
		return b.lag(ctx, d, ways.all[now].recording, &lag, written+ways.all[now].rounds*int64(b.sizes.burst))
	})
	bursts.Note("from the first event until all rows are committed; the API server of the benchmark and the database compute on the same processors")
	bursts.Print(b.out)
	lag.Print(b.out)
	return err
}

// way is a gateway with its own API server and database.
type way struct {
	*recording
	*database
	rounds int64
}

// ways are the gateways that are compared, by their names.
type ways struct {
	all   map[string]*way
	other *database // the earlier one's
}

// ways starts this gateway with a database, and the earlier one, if there is one, with another of the same sort.
func (b *bench) ways(role string, d *database) (*ways, error) {
	w := &ways{all: map[string]*way{}}
	r, err := b.start(role, d.address)
	if err != nil {
		return nil, err
	}
	w.all[now] = &way{recording: r, database: d}
	if b.before == "" {
		return w, nil
	}
	if w.other, err = b.open(d.name); err == nil {
		r, err = b.startOf(b.before, role, w.other.address)
	}
	if err != nil {
		w.end()
		return nil, err
	}
	w.all[earlier] = &way{recording: r, database: w.other}
	return w, nil
}

func (w *ways) names() []string {
	if len(w.all) == 1 {
		return []string{now}
	}
	return []string{earlier, now}
}

func (w *ways) end() {
	for _, way := range w.all {
		way.recording.end()
	}
	if w.other != nil {
		w.other.close()
	}
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
