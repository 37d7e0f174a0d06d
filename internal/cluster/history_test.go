package cluster_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
)

var roomy = cluster.HistoryBound{Events: 1000, Bytes: 1 << 20}

// lines are the first events of the history of pods, as a watch sends them.
func lines(t *testing.T, api *apitest.API, n int) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://api.test/api/v1/pods?watch=true&resourceVersion=1000", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := api.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var b strings.Builder
	for body := bufio.NewReader(response.Body); n > 0; n-- {
		line, err := body.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(line)
	}
	return b.String()
}

// eventful is an API server with the versions 1001 to 1008, of which 1006 has three deletions.
func eventful() (api *apitest.API, all []string) {
	api = apitest.New(apitest.Pods)
	for i := range 4 {
		api.Put("pods", "n/"+fmt.Sprint("p", i))
	}
	api.Put("pods", "n/p0")
	api.Delete("pods", "n/p0", "n/p1", "n/p2")
	api.Put("pods", "n/p3")
	api.Put("pods", "n/p0")
	return api, []string{
		"ADDED n/p0@1001", "ADDED n/p1@1002", "ADDED n/p2@1003", "ADDED n/p3@1004", "MODIFIED n/p0@1005",
		"DELETED n/p0@1006", "DELETED n/p1@1006", "DELETED n/p2@1006", "MODIFIED n/p3@1007", "ADDED n/p0@1008",
	}
}

func described(past []cluster.PastChange) (found []string) {
	for _, p := range past {
		found = append(found, fmt.Sprintf("%s %s", p.Type, describe(p.Object)))
	}
	return found
}

func TestHistoryIsWhatHappenedInBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, all := eventful()
		c := api.Connect(t)
		for _, test := range []struct {
			after, until uint64
			want         []string
		}{{1000, 1008, all}, {1004, 1008, all[4:]}, {1000, 1005, all[:5]}, {1006, 1007, all[8:9]}, {1008, 1008, nil}} {
			past, err := c.History(t.Context(), apitest.Pods, test.after, test.until, roomy)
			if err != nil || !slices.Equal(described(past), test.want) {
				t.Errorf("from %d to %d: %q, %v", test.after, test.until, described(past), err)
			}
		}
	})
}

// dozing is an API server whose first watch tells a part of what happened, and then nothing until its time is up.
type dozing struct {
	*apitest.API
	part    string
	watches atomic.Int32
}

func (d *dozing) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := d.API.RoundTrip(r)
	if err == nil && strings.Contains(r.URL.RawQuery, "watch=true") && d.watches.Add(1) == 1 {
		response.Body.Close()
		response.Body = &dozingBody{strings.NewReader(d.part)}
	}
	return response, err
}

type dozingBody struct{ *strings.Reader }

func (b *dozingBody) Read(to []byte) (int, error) {
	if b.Len() == 0 {
		time.Sleep(3 * time.Second)
	}
	return b.Reader.Read(to)
}

func (*dozingBody) Close() error { return nil }

// An API server that has too much to do may tell a part of what happened, and then nothing for the rest of the watch. It sends
// bookmarks, so that silence is not its word that there was nothing else: what is missing may be the deletion of an object that
// nothing else was told of, which a comparison with the state would not show.
func TestSilenceAmidAHistoryIsNotItsEnd(t *testing.T) {
	for told := 1; told <= 10; told++ {
		synctest.Test(t, func(t *testing.T) {
			api, all := eventful()
			c, err := cluster.Connect(cluster.Options{Name: "test", Config: &rest.Config{Host: "http://api.test", Transport: &dozing{API: api, part: lines(t, api, told)}}})
			if err != nil {
				t.Fatal(err)
			}
			past, err := c.History(t.Context(), apitest.Pods, 1000, 1008, roomy)
			if err != nil || !slices.Equal(described(past), all) {
				t.Errorf("silent after %d events: %q, %v", told, described(past), err)
			}
		})
	}
}

// The time-out of its watch ends it also in the middle of a history that takes longer to send.
func TestHistoryThatIsCutOffIsReadOn(t *testing.T) {
	for cut := 1; cut <= 10; cut++ {
		synctest.Test(t, func(t *testing.T) {
			api, all := eventful()
			c := api.Connect(t)
			first := lines(t, api, cut)
			var watches atomic.Int32
			api.Intercept(func(r *http.Request) *apitest.Fault {
				if strings.Contains(r.URL.RawQuery, "watch=true") && watches.Add(1) == 1 {
					return &apitest.Fault{Body: first}
				}
				return nil
			})
			past, err := c.History(t.Context(), apitest.Pods, 1000, 1008, roomy)
			if cut == 1 {
				// With a single version, nothing shows whether more events of it follow.
				if !errors.Is(err, cluster.ErrUnavailable) {
					t.Errorf("cut off after one event: %q, %v", described(past), err)
				}
			} else if err != nil || !slices.Equal(described(past), all) {
				t.Errorf("cut off after %d events: %q, %v", cut, described(past), err)
			}
		})
	}
}

func TestHistoryThatCannotBeReadSaysWhy(t *testing.T) {
	cutAtOnce := func(r *http.Request) *apitest.Fault {
		if strings.Contains(r.URL.RawQuery, "watch=true") {
			return &apitest.Fault{}
		}
		return nil
	}
	for _, test := range []struct {
		name    string
		prepare func(*apitest.API)
		bound   cluster.HistoryBound
		until   uint64
		want    error
	}{
		{"compacted", func(api *apitest.API) { api.Compact() }, roomy, 1008, cluster.ErrExpired},
		{"too many events", func(*apitest.API) {}, cluster.HistoryBound{Events: 9, Bytes: 1 << 20}, 1008, cluster.ErrTooMuch},
		{"too large", func(*apitest.API) {}, cluster.HistoryBound{Events: 100, Bytes: 1000}, 1008, cluster.ErrTooMuch},
		{"away", func(api *apitest.API) { api.Away(true) }, roomy, 1008, cluster.ErrUnavailable},
		{"behind", func(*apitest.API) {}, roomy, 1009, cluster.ErrUnavailable},
		{"ends at once", func(api *apitest.API) { api.Intercept(cutAtOnce) }, roomy, 1008, cluster.ErrUnavailable},
	} {
		synctest.Test(t, func(t *testing.T) {
			api, _ := eventful()
			test.prepare(api)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if past, err := api.Connect(t).History(ctx, apitest.Pods, 1000, test.until, test.bound); !errors.Is(err, test.want) {
				t.Errorf("%s: %q, %v", test.name, described(past), err)
			}
		})
	}
}

// An API server may be too busy to send anything in time, as after its restart, when every client lists. What is
// missing then may be deletions, which a comparison with the state does not show.
func TestSilenceIsNoHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, all := eventful()
		c := api.Connect(t)
		if past, err := c.History(t.Context(), apitest.Pods, 1008, 1008, roomy); err != nil || len(past) != 0 {
			t.Errorf("an API server that says that nothing happened: %q, %v", described(past), err)
		}
		api.Mute()
		if past, err := c.History(t.Context(), apitest.Pods, 1000, 1008, roomy); err != nil || !slices.Equal(described(past), all) {
			t.Errorf("one without bookmarks, which told what it had: %q, %v", described(past), err)
		}
		if past, err := c.History(t.Context(), apitest.Pods, 1008, 1008, roomy); !errors.Is(err, cluster.ErrUnavailable) {
			t.Errorf("one that told nothing: %q, %v", described(past), err)
		}
	})
}
