package balance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/backoff"
)

// Path is where a replica's ops listener says what its load is.
const Path = "/load"

const (
	// askTimeout bounds one round of questions, the lookups of names included.
	askTimeout = 3 * time.Second
	// toldAfter is how long a replica may not answer before the log says so: one that has just ended is no news.
	toldAfter = 30 * time.Second
	// leftOutAfter is how long it is waited for. One that was removed, but not from the configuration, would otherwise keep
	// the others from ever being level.
	leftOutAfter = 15 * time.Minute
)

// Replicas are the ops listeners of all replicas. They are asked by one goroutine.
type Replicas struct {
	Addresses []string // host:port; a host's name stands for all addresses that it has
	// Token returns the secret that all replicas share, by which they know each other; "": there is none.
	Token func() (string, error)
	Log   *slog.Logger

	failing backoff.News
	mute    map[string]*silence // by address
}

// silence is an address that does not tell its load.
type silence struct {
	since time.Time
	news  backoff.News
}

// client asks the replicas themselves, and nobody to whom they would send it.
var client = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true}, // a connection in ten seconds is not worth keeping
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Ask asks all replicas at once, and returns what is known of their loads. That is complete if none is missing that has
// answered in the last 15 minutes, or was found since.
func (r *Replicas) Ask(ctx context.Context) (all []Load, complete bool) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	token, err := r.Token()
	addresses, unknown := r.lookUp(ctx)
	err = errors.Join(err, unknown)
	r.tell(err)
	answers, errs := make([]Load, len(addresses)), make([]error, len(addresses))
	var asking sync.WaitGroup
	for i, address := range addresses {
		asking.Go(func() { answers[i], errs[i] = ask(ctx, address, token) })
	}
	asking.Wait()
	complete = err == nil
	silent := map[string]*silence{}
	for i, address := range addresses {
		if known, missing := r.hear(address, errs[i], time.Now()); known != nil {
			silent[address] = known
			complete = complete && !missing
		}
	}
	r.mute = silent
	return slices.DeleteFunc(answers, func(l Load) bool { return l.Instance == "" }), complete
}

// tell logs why replicas are not found, once.
func (r *Replicas) tell(err error) {
	switch {
	case err == nil:
		if r.failing.Over() {
			r.Log.Info("the replicas are found again")
		}
	case r.failing.Is(err):
		r.Log.Warn("no streams are moved to other replicas: not all of these can be found", "error", err)
	}
}

// hear takes note of whether an address has told its load, and says in the log, once, if it does not for long. It returns what
// is known of its silence, nil if it has answered, and whether it is still waited for.
func (r *Replicas) hear(address string, err error, now time.Time) (known *silence, missing bool) {
	known = r.mute[address]
	switch {
	case err == nil && known != nil && known.news.Over():
		r.Log.Info("a replica tells its load again", "address", address)
		return nil, false
	case err == nil:
		return nil, false
	case known == nil:
		known = &silence{since: now}
	}
	lasted := now.Sub(known.since)
	missing = lasted < leftOutAfter
	switch {
	case lasted < toldAfter:
	case missing && known.news.Is(errors.New(stateOf(err))):
		r.Log.Warn("no streams are moved to other replicas: one does not tell its load", "address", address, "error", err)
	case !missing && known.news.Is(errLeftOut):
		r.Log.Warn("streams are moved without regard to a replica that has not told its load for long", "address", address, "error", err)
	}
	return known, missing
}

var errLeftOut = errors.New("left out")

// lookUp returns the addresses of all replicas, each once.
func (r *Replicas) lookUp(ctx context.Context) (all []string, err error) {
	for _, name := range r.Addresses {
		host, port, err := net.SplitHostPort(name)
		if err != nil {
			return nil, err
		}
		found, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil {
			return nil, err
		}
		for _, address := range found {
			all = append(all, net.JoinHostPort(address, port))
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// answerError is an answer that is none of a replica that shares the token and is ready.
type answerError string

func (e answerError) Error() string { return string(e) }

// stateOf is what an error is called if it is to be told once: those of connections name ports that differ each time.
func stateOf(err error) string {
	if answer := answerError(""); errors.As(err, &answer) {
		return string(answer)
	}
	return "no answer"
}

// ask asks one replica.
func ask(ctx context.Context, address, token string) (Load, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+Path, nil)
	if err != nil {
		return Load{}, err
	}
	q := sign(r, token, time.Now())
	response, err := client.Do(r)
	if err != nil {
		return Load{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return Load{}, answerError("it answers " + response.Status)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if err != nil {
		return Load{}, err
	}
	if token != "" && !q.isProof(token, response.Header.Get(proofHeader), text) {
		return Load{}, answerError("it does not prove that it knows the token")
	}
	var load Load
	if err := json.Unmarshal(text, &load); err != nil {
		return Load{}, answerError("it answers no JSON")
	}
	if load.Instance == "" || load.Streams < 0 {
		return Load{}, answerError(fmt.Sprintf("it answers %+v", load))
	}
	return load, nil
}
