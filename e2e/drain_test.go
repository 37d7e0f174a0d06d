package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"
)

// drained is the end of one stream.
type drained struct {
	frames []frame
	err    error
}

// openMany opens streams during a churn, and reads them to their ends.
func (s *stage) openMany(t *testing.T, g *gateway, count int) (all []drained, wait func()) {
	t.Helper()
	all = make([]drained, count)
	token := s.viewer(t)
	paths := []string{
		"/api/v1/pods?labelSelector=test%3Ddrain",
		"/api/v1/namespaces/drain-a/pods",
		"/stream?pods=/api/v1/namespaces/drain-b/pods&jobs=/apis/batch/v1/jobs",
	}
	var reading, synced sync.WaitGroup
	synced.Add(count)
	for i := range count {
		stream := openAs(t, g, token, paths[i%len(paths)], nil)
		reading.Go(func() {
			told := sync.OnceFunc(synced.Done)
			defer told()
			for {
				read, err := stream.next()
				if err != nil {
					all[i].err = err
					return
				}
				all[i].frames = append(all[i].frames, read)
				if read.event == "synced" || read.event == "pods.synced" {
					told()
				}
			}
		})
	}
	synced.Wait()
	return all, reading.Wait
}

// SIGTERM ends the gateway within the drain time. It is no longer ready, each stream ends between two frames and with
// its client's position, and no connection is broken off.
func TestSigtermEndsStreamsAtFrameBoundary(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "drain-a", "drain-b")
	g := s.startGateway(t, gatewayOptions{config: "drain: 10s\n"})
	g.waitReady(t)
	finish := s.startChurn(t, &churn{namespaces: []string{"drain-a", "drain-b"}, test: "drain", random: seed(t)})
	all, wait := s.openMany(t, g, 45)

	began := time.Now()
	g.process.Signal(syscall.SIGTERM)
	eventually(t, "the gateway says that it is not ready", func() error {
		if code, body := g.readyz(); code != http.StatusServiceUnavailable {
			return fmt.Errorf("readyz: %d %s", code, body)
		}
		return nil
	})
	late := openAs(t, g, s.viewer(t), "/api/v1/pods", nil)
	if end := late.mustEnd(t); len(end) != 1 || end[0].event != "goodbye" || end[0].reason(t) != "drain" {
		t.Errorf("a stream begun while draining is told %+v", end)
	}
	wait()
	<-g.process.Done()
	took := time.Since(began)
	finish()
	if code := g.process.ExitCode(); code != 0 {
		t.Errorf("the gateway's exit code is %d", code)
	}
	// The ends of the streams are spread over 80 % of the drain time; the rest allows for a busy machine.
	if took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	for i, one := range all {
		if err := one.check(); err != nil {
			t.Errorf("stream %d: %v", i, err)
		}
	}
}

// check checks the end of a drained stream.
func (d drained) check() error {
	if d.err != io.EOF {
		return fmt.Errorf("it ended with %w", d.err)
	}
	last := len(d.frames) - 1
	goodbye := d.frames[last]
	if goodbye.event != "goodbye" || goodbye.data != `{"reason":"drain"}` {
		return fmt.Errorf("the last frame is %+v", goodbye)
	}
	watches := 0
	for _, read := range d.frames {
		if read.event == "synced" || read.event == "pods.synced" || read.event == "jobs.synced" {
			watches++
		}
	}
	bookmarks, retry := 0, false
	for _, read := range d.frames[max(0, last-1-watches):last] {
		switch read.event {
		case "bookmark", "pods.bookmark", "jobs.bookmark":
			bookmarks++
		}
		retry = retry || read.retry != ""
	}
	if bookmarks != watches || !retry {
		return fmt.Errorf("before goodbye came %d bookmarks of %d, and retry: %t", bookmarks, watches, retry)
	}
	if before := d.frames[last-1]; before.id != goodbye.id {
		return fmt.Errorf("goodbye has id %s after %s", goodbye.id, before.id)
	}
	return nil
}

// A second SIGTERM waits for no stream.
func TestSecondSigtermEndsAtOnce(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.startGateway(t, gatewayOptions{config: "drain: 10m\n"})
	g.waitReady(t)
	stream := s.open(t, g, "/api/v1/nodes", nil)
	stream.find(t, "synced")
	g.process.Signal(syscall.SIGTERM)
	eventually(t, "the gateway drains", func() error {
		if code, _ := g.readyz(); code != http.StatusServiceUnavailable {
			return errors.New("it is still ready")
		}
		return nil
	})
	if !g.process.Running() {
		t.Fatal("the gateway did not wait for its stream")
	}
	g.process.Signal(syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(context.Background(), eventuallyWithin)
	defer cancel()
	select {
	case <-g.process.Done():
		if code := g.process.ExitCode(); code != 0 {
			t.Errorf("the gateway's exit code is %d", code)
		}
	case <-ctx.Done():
		t.Error("the gateway goes on after a second SIGTERM")
	}
	for {
		if _, err := stream.next(); err != nil {
			if errors.Is(err, errTorn) {
				t.Error(err)
			}
			break
		}
	}
}
