package http

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
)

// Ten thousand idle streams of one caller must not ask ten thousand times what they may see; and
// what nobody tells of ends all of them in time, and no other's.
func TestStreamsOfOneCallerAskOnceWhatTheyMaySee(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		const streams, interval = 20, 10 * time.Second
		ends, told := make(chan []frame, streams), make(chan frame, 1)
		for range streams {
			s := g.stream("/api/v1/pods", asAnn)
			s.expect("synced")
			go func() { ends <- s.end() }()
		}
		bob := g.stream("/api/v1/pods", "Authorization: Bearer bob")
		bob.expect("synced")
		go func() { told <- bob.until("added") }()
		before := g.access.questions()
		pass(10 * time.Minute)
		if asked, most := g.access.questions()-before, 2*int(10*time.Minute/(interval*8/10)); asked > most || asked < most/2 {
			t.Errorf("%d questions for two callers in ten minutes, %d at most", asked, most)
		}
		began := time.Now()
		g.access.set(func(a *fakeAuth) { a.scopes = map[string]auth.Scope{"ann": {}} }) // tells nobody
		for range streams {
			left := <-ends
			if last := left[len(left)-1]; last.String() != "goodbye revoked" {
				t.Errorf("%q", last.raw)
			}
		}
		if took := time.Since(began); took > interval {
			t.Errorf("the last has ended after %v", took)
		}
		g.api.Put("pods", "a/new")
		<-told // another one's stream goes on
		synctest.Wait()
		if left := g.server.streams.Stats().Permissions; left != 1 {
			t.Errorf("%d are asked for", left)
		}
	})
}

// Whom nothing was told for long, since nothing had changed, was confirmed all the same: an
// authorizer that fails for less than a minute ends no stream.
func TestStreamThatWasConfirmedForLongOutlastsAFailingAuthorizer(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		s := g.stream("/api/v1/pods")
		s.expect("synced")
		read := func(d time.Duration) {
			for began := time.Now(); time.Since(began) < d; {
				if f := s.frame(); f.event == "goodbye" {
					t.Fatalf("%q", f.raw)
				}
			}
		}
		fail := func(err error) {
			g.access.set(func(a *fakeAuth) {
				a.decide = func(auth.Identity, auth.Request) (bool, error) { return err == nil, err }
			})
		}
		read(20 * time.Minute)
		fail(auth.ErrUndecided)
		read(35 * time.Second)
		fail(nil)
		read(5 * time.Minute)
		fail(auth.ErrUndecided)
		began := time.Now()
		s.until("goodbye")
		if took := time.Since(began); took < 45*time.Second || took > time.Minute+11*time.Second {
			t.Errorf("it goes on for %v", took)
		}
	})
}
