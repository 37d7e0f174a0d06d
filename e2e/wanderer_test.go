package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// wanderer reads a stream that is cut at random moments, and comes back with its position to any of some gateways.
type wanderer struct {
	path     string
	urls     []string // of the gateways, which keep them when they are started again
	token    string
	position string
	cuts     int
	idle     int // connections in a row that were cut before they told anything
	// was is what came of it last, for whoever waits in vain: a string.
	was atomic.Value
}

// idleMost bounds the connections of a client that were cut before they told anything: the next one is cut only once it
// has. On a busy machine a gateway may need longer to begin than most are read for.
const idleMost = 3

// wander reads until the context ends.
func (w *wanderer) wander(ctx context.Context, random *rand.Rand, note func(frame)) {
	for ctx.Err() == nil {
		w.read(ctx, random, note)
	}
}

// read reads from one gateway, for a while.
func (w *wanderer) read(ctx context.Context, random *rand.Rand, note func(frame)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cut := time.AfterFunc(time.Duration(50+random.IntN(1500))*time.Millisecond, cancel)
	defer cut.Stop()
	if w.idle >= idleMost {
		cut.Stop()
	}
	w.idle++
	header := bearer(w.token)
	header.Set("Accept", "text/event-stream")
	if w.position != "" {
		header.Set("Last-Event-ID", w.position)
	}
	url := w.urls[random.IntN(len(w.urls))]
	w.was.Store(fmt.Sprintf("asks %s, after %d connections in vain", url, w.idle-1))
	opened, err := openFrames(ctx, url+w.path, header)
	if err != nil {
		w.was.Store(fmt.Sprintf("asked %s, after %d connections in vain: %v", url, w.idle-1, err))
		time.Sleep(50 * time.Millisecond) // it was killed
		return
	}
	defer opened.close()
	w.cuts++
	for {
		read, err := opened.next()
		if err != nil {
			w.was.Store(fmt.Sprintf("read from %s, after %d connections in vain: %v", url, w.idle-1, err))
			return
		}
		w.was.Store(fmt.Sprintf("reads from %s, last %q %.200s", url, read.event, read.data))
		if read.id != "" {
			w.position = read.id
			if w.idle > idleMost {
				cut.Reset(0)
			}
			w.idle = 0
		}
		note(read)
	}
}
