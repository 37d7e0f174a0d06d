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

// askTimeout bounds one round of questions, the lookups of names included.
const askTimeout = 3 * time.Second

// Replicas are the ops listeners of all replicas.
type Replicas struct {
	Addresses []string // host:port; a host's name stands for all addresses that it has
	// Token returns what the listeners want to see; "": nothing.
	Token func() (string, error)
	Log   *slog.Logger

	failing backoff.News
}

// client asks the replicas themselves, and nobody to whom they would send it.
var client = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true}, // a connection in ten seconds is not worth keeping
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Ask asks all replicas at once. Those that do not answer are left out.
func (r *Replicas) Ask(ctx context.Context) []Load {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	token, err := r.Token()
	addresses, unknown := r.lookUp(ctx)
	r.tell(errors.Join(err, unknown))
	answers := make([]Load, len(addresses))
	var asking sync.WaitGroup
	for i, address := range addresses {
		asking.Go(func() {
			var err error
			if answers[i], err = ask(ctx, address, token); err != nil { // it may have just ended
				r.Log.Debug("a replica does not tell its load", "address", address, "error", err)
			}
		})
	}
	asking.Wait()
	return slices.DeleteFunc(answers, func(l Load) bool { return l.Instance == "" })
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

// ask asks one replica.
func ask(ctx context.Context, address, token string) (load Load, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+Path, nil)
	if err != nil {
		return load, err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(r)
	if err != nil {
		return load, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return load, fmt.Errorf("it answers %s", response.Status)
	}
	if err = json.NewDecoder(io.LimitReader(response.Body, 1<<10)).Decode(&load); err == nil && (load.Instance == "" || load.Streams < 0) {
		err = fmt.Errorf("it answers %+v", load)
	}
	if err != nil {
		return Load{}, err
	}
	return load, nil
}
