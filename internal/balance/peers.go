package balance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
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
	// askTimeout bounds the lookups of all names, and after these the questions to all addresses: a name that is never found
	// takes no time from those who are.
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
	mute    map[string]*silence                                      // by address, and by name of those that have none
	resolve func(ctx context.Context, host string) ([]string, error) // nil: as net.DefaultResolver does
}

// silence is an address that does not tell its load, or a name that has no address.
type silence struct {
	since time.Time
	news  backoff.News
	lost  bool   // it is a name
	by    string // the name by which an address was found
}

// client asks the replicas themselves, and nobody to whom they would send it.
var client = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true}, // a connection in ten seconds is not worth keeping
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Ask asks all replicas at once, and returns what is known of their loads. That is complete if none is missing that has
// answered in the last 15 minutes, or was found since.
func (r *Replicas) Ask(ctx context.Context) (all []Load, complete bool) {
	token, err := r.Token()
	r.tell(err)
	found, errs := r.lookUp(ctx)
	addresses := slices.Sorted(maps.Keys(found))
	answers, failed := askAll(ctx, addresses, token)
	for i, address := range addresses { // a name may be an address
		errs[address] = failed[i]
	}
	complete = r.hearAll(found, errs, time.Now()) && err == nil
	return slices.DeleteFunc(answers, func(l Load) bool { return l.Instance == "" }), complete
}

// tell logs why replicas are not known to each other, once.
func (r *Replicas) tell(err error) {
	switch {
	case err == nil:
		if r.failing.Over() {
			r.Log.Info("the token of the replicas is read again")
		}
	case r.failing.Is(err):
		r.Log.Warn("no streams are moved to other replicas: the token by which these know each other cannot be read", "error", err)
	}
}

// hearAll takes note of what has come of looking for names and of asking addresses. It reports whether none is waited for.
func (r *Replicas) hearAll(found map[string]string, errs map[string]error, now time.Time) (complete bool) {
	complete = true
	mute := map[string]*silence{}
	for _, name := range slices.Sorted(maps.Keys(errs)) {
		if known, missing := r.hear(name, errs[name], now); known != nil {
			known.by = found[name]
			mute[name] = known
			complete = complete && !missing
		}
	}
	for address, known := range r.mute { // its name may be found again in a moment
		if _, asked := errs[address]; !asked && mute[known.by].isWaitedFor(now) {
			mute[address] = known
		}
	}
	r.mute = mute
	return complete
}

// hear takes note of whether an address has told its load, or a name has addresses, and says in the log, once, if not for long.
// It returns what is known of its silence, nil if there is none, and whether it is still waited for.
func (r *Replicas) hear(name string, err error, now time.Time) (known *silence, missing bool) {
	known = r.mute[name]
	switch {
	case err == nil && known != nil && known.news.Over():
		known.sayOver(r.Log, name)
		return nil, false
	case err == nil:
		return nil, false
	case known == nil:
		known = &silence{since: now}
	}
	_, known.lost = err.(lostError)
	missing = known.isWaitedFor(now)
	switch {
	case now.Sub(known.since) < toldAfter:
	case missing && known.news.Is(errors.New(stateOf(err))):
		r.Log.Warn("no streams are moved to other replicas: one does not tell its load", "address", name, "error", err)
	case !missing && known.news.Is(errLeftOut):
		r.Log.Warn("streams are moved without regard to a replica that has not told its load for long", "address", name, "error", err)
	}
	return known, missing
}

func (s *silence) isWaitedFor(now time.Time) bool { return s != nil && now.Sub(s.since) < leftOutAfter }

// sayOver logs that a silence is over of which the log has told.
func (s *silence) sayOver(log *slog.Logger, name string) {
	if s.lost {
		log.Info("a replica's name is found again", "name", name)
		return
	}
	log.Info("a replica tells its load again", "address", name)
}

var errLeftOut = errors.New("left out")

// lookUp returns the addresses of all replicas, each with a name that it has, and of each name why it has none; nil: it has.
func (r *Replicas) lookUp(ctx context.Context) (found map[string]string, errs map[string]error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	all, failed := make([][]string, len(r.Addresses)), make([]error, len(r.Addresses))
	var looking sync.WaitGroup
	for i, name := range r.Addresses {
		looking.Go(func() { all[i], failed[i] = r.addressesOf(ctx, name) })
	}
	looking.Wait()
	found, errs = map[string]string{}, map[string]error{}
	for i, name := range r.Addresses {
		errs[name] = failed[i]
		for _, address := range all[i] {
			found[address] = name
		}
	}
	return found, errs
}

// addressesOf returns the addresses that one name has.
func (r *Replicas) addressesOf(ctx context.Context, name string) (all []string, err error) {
	host, port, err := net.SplitHostPort(name)
	if err != nil {
		return nil, lostError{err}
	}
	resolve := r.resolve
	if resolve == nil {
		resolve = net.DefaultResolver.LookupHost
	}
	found, err := resolve(ctx, host)
	if err != nil {
		return nil, lostError{err}
	}
	for _, address := range found {
		all = append(all, net.JoinHostPort(address, port))
	}
	return all, nil
}

// lostError is why a name has no address.
type lostError struct{ error }

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

// askAll asks the replicas at some addresses.
func askAll(ctx context.Context, addresses []string, token string) (answers []Load, errs []error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	answers, errs = make([]Load, len(addresses)), make([]error, len(addresses))
	var asking sync.WaitGroup
	for i, address := range addresses {
		asking.Go(func() { answers[i], errs[i] = ask(ctx, address, token) })
	}
	asking.Wait()
	return answers, errs
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
