//go:build linux

package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/process"
)

// Good is the process of the good users: their streams, and their lists.
type Good struct {
	*load.Client
	cancel context.CancelFunc
	lists  chan figures.Histogram
}

// Poll says where to list, and as whom.
type Poll struct {
	Address string
	Users   []load.User
	History bool // every other list is of that
}

// polls is how many lists a second good users ask for, all of them together.
const polls = 25

// Poll begins to list as one good user after the other, until Polled is called.
func (g *Good) Poll(args Poll, _ *process.None) error {
	var ctx context.Context
	ctx, g.cancel = context.WithCancel(context.Background())
	g.lists = make(chan figures.Histogram)
	go func() { g.lists <- poll(ctx, args) }()
	return nil
}

// Polled ends that, and returns how long the lists took. One that was refused counts with the longest time.
func (g *Good) Polled(_ process.None, lists *figures.Histogram) error {
	g.cancel()
	*lists = <-g.lists
	return nil
}

func poll(ctx context.Context, args Poll) (lists figures.Histogram) {
	client := &http.Client{Timeout: 20 * time.Second}
	tick := time.NewTicker(time.Second / polls)
	defer tick.Stop()
	for number := 0; ; number++ {
		select {
		case <-ctx.Done():
			return lists
		case <-tick.C:
		}
		user := args.Users[number%len(args.Users)]
		path, _, _ := strings.Cut(user.Path, "?")
		if args.History && (number+number/len(args.Users))%2 == 1 {
			path = "/history/apis/batch/v1/namespaces/" + namespaceOf(number%len(args.Users)) + "/jobs"
		}
		request, err := http.NewRequest(http.MethodGet, "http://"+args.Address+path, nil)
		if err != nil {
			panic(err) // our own path
		}
		request.Header.Set("Authorization", "Bearer "+user.Token)
		began := time.Now()
		took := client.Timeout
		if response, err := client.Do(request); err == nil {
			if _, err := io.Copy(io.Discard, response.Body); err == nil && response.StatusCode == http.StatusOK {
				took = time.Since(began)
			}
			response.Body.Close()
		}
		lists.Add(took)
	}
}
