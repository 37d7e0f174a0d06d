package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
)

// faults is a handler in front of Dex that makes it fail on demand.
type faults struct {
	next   http.Handler
	keys   *keys
	logout func(context.Context) error

	mu    sync.Mutex
	away  bool
	asked map[string]int // by path
}

func (f *faults) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked[r.URL.Path]++
	away := f.away
	f.mu.Unlock()
	if away {
		panic(http.ErrAbortHandler) // the connection ends without an answer
	}
	f.next.ServeHTTP(w, r)
}

func (f *faults) setAway(away bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = away
}

// control returns the handler by which a test makes the provider fail.
func (f *faults) control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /rotate", func(w http.ResponseWriter, _ *http.Request) {
		if err := f.keys.rotate(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("POST /away", func(http.ResponseWriter, *http.Request) { f.setAway(true) })
	mux.HandleFunc("POST /back", func(http.ResponseWriter, *http.Request) { f.setAway(false) })
	mux.HandleFunc("POST /end", func(w http.ResponseWriter, r *http.Request) {
		if err := f.logout(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("GET /asked", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		fmt.Fprintln(w, f.asked[r.URL.Query().Get("path")])
	})
	return mux
}
