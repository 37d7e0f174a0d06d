package cache

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
)

// TestBusyKindIsLiveAsSoonAsItHasCaughtUp after its watch was lost, and no sooner: it is never
// quiet, and no bookmark comes.
func TestBusyKindIsLiveAsSoonAsItHasCaughtUp(t *testing.T) {
	for name, test := range map[string]struct {
		silent bool // the API server does not tell its newest version
		within time.Duration
	}{
		"the API server tells its newest version": {false, 25 * time.Second},
		"the API server does not":                 {true, 90 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := apitest.New(pods)
				api.Put("pods", "n/first")
				store, stop := fill(t, api, roomy)
				defer stop()
				synctest.Wait()
				api.Put("pods", "n/first")
				synctest.Wait()
				api.Mute()
				api.Slowly(300 * time.Millisecond)
				api.Away(true)
				time.Sleep(time.Second) // in which client-go begins to try again
				for n := range 20 {
					api.Put("pods", fmt.Sprintf("n/missed-%d", n))
				}
				api.Put("pods", "n/last")
				api.Requests()
				api.Away(false)
				if test.silent {
					api.Intercept(func(r *http.Request) *apitest.Fault {
						if r.URL.Query().Get("limit") == "1" {
							return apitest.Refuse(http.StatusInternalServerError)
						}
						return nil
					})
				}
				began := time.Now()
				for n := 0; !store.Upstream().Live; n++ {
					if time.Since(began) > test.within {
						t.Fatal("it is not live")
					}
					time.Sleep(500 * time.Millisecond) // less than the quiet that proves something
					api.Put("pods", "n/busy", fmt.Sprint("spec.n=", n))
					synctest.Wait()
				}
				if store.Snapshot().Get("n", "last") == nil {
					t.Errorf("it is live %s after its watch is back, before what was missed", time.Since(began))
				}
				if asked := strings.Count(strings.Join(api.Requests(), " "), "limit=1"); asked != 1 {
					t.Errorf("the API server was asked %d times", asked)
				}
			})
		})
	}
}

// TestPauseAmidWhatWasMissedIsNoEndOfIt: an API server, or what is on the way to it, may be silent
// for longer than a moment with the rest of it still to come.
func TestPauseAmidWhatWasMissedIsNoEndOfIt(t *testing.T) {
	for _, pause := range []time.Duration{1500 * time.Millisecond, 7 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			api := apitest.New(pods)
			api.Put("pods", "n/first")
			store, stop := fill(t, api, roomy)
			defer stop()
			synctest.Wait()
			api.Put("pods", "n/first")
			synctest.Wait()
			api.Away(true)
			time.Sleep(time.Second) // in which client-go begins to try again
			if api.Slowly(pause); store.Upstream().Live {
				t.Fatal("it does not know that its watch is lost")
			}
			for n := range 4 {
				api.Put("pods", fmt.Sprintf("n/missed-%d", n))
			}
			api.Put("pods", "n/last")
			api.Away(false)
			var all time.Time
			for began := time.Now(); !store.Upstream().Live; time.Sleep(100 * time.Millisecond) {
				if all.IsZero() && store.Snapshot().Get("n", "last") != nil {
					all = time.Now()
				}
				if time.Since(began) > 2*time.Minute {
					t.Fatal("it is not live")
				}
			}
			if all.IsZero() {
				t.Errorf("pauses of %s: it is live before what was missed", pause)
			} else if late := time.Since(all); late > 10*time.Second {
				t.Errorf("pauses of %s: it is live %s after the last of what was missed", pause, late)
			}
		})
	}
}

// TestQuietKindIsLiveSoonAfterItsWatchIsBack, also if the API server sends no bookmarks of it.
func TestQuietKindIsLiveSoonAfterItsWatchIsBack(t *testing.T) {
	for name, server := range map[string]func(*apitest.API){"with bookmarks": func(*apitest.API) {}, "without": (*apitest.API).Mute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := apitest.New(pods)
				store, stop := fill(t, api, roomy)
				defer stop()
				synctest.Wait()
				api.Put("pods", "n/first")
				synctest.Wait()
				server(api)
				api.CutWatches()
				synctest.Wait()
				if store.Upstream().Live {
					t.Fatal("it does not know that its watch is lost")
				}
				began := time.Now()
				for !store.Upstream().Live && time.Since(began) < time.Minute {
					time.Sleep(100 * time.Millisecond)
				}
				if after := time.Since(began); after > 6*time.Second {
					t.Errorf("live after %s", after)
				}
			})
		})
	}
}
