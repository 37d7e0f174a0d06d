package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// hookReceiver is the target of a record's two webhooks: one has a message of each transition, the
// other one digests. It refuses some messages, once each.
type hookReceiver struct {
	config string // of gateways
	hook   *standardwebhooks.Webhook

	mu       sync.Mutex
	random   *rand.Rand
	bodies   map[string][]byte            // by id: the first
	ids      map[string]map[uint64]string // by path: of each transition by its number
	arrivals int
	err      error // what must not be
}

// receiveHooks starts a receiver, which lasts as long as the test.
func receiveHooks(t *testing.T, random *rand.Rand) *hookReceiver {
	t.Helper()
	key := make([]byte, 32)
	for i := range key {
		key[i] = byte(random.Uint32())
	}
	secret := "whsec_" + base64.StdEncoding.EncodeToString(key)
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := &hookReceiver{hook: hook, random: rand.New(rand.NewPCG(random.Uint64(), 0)), bodies: map[string][]byte{}, ids: map[string]map[uint64]string{"/each": {}, "/digest": {}}}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	const wanted = "states: [Submitted, Suspended, Pending, Running, Retrying, Succeeded, Failed, Deleted], namespaces: [recorded]"
	h.config = fmt.Sprintf("webhooks:\n- {name: each, url: %q, secretFile: %q, %s}\n- {name: digest, url: %q, secretFile: %q, digest: 1s, %s}\n",
		server.URL+"/each", file, wanted, server.URL+"/digest", file, wanted)
	return h
}

// ServeHTTP is the target.
func (h *hookReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the gateway was killed
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.arrivals++
	refuse, err := h.take(r.URL.Path, r.Header, body)
	if err != nil && h.err == nil {
		h.err = err
	}
	if refuse {
		w.WriteHeader(http.StatusInternalServerError)
	}
}

func (h *hookReceiver) take(path string, header http.Header, body []byte) (refuse bool, err error) {
	if err := h.hook.Verify(body, header); err != nil {
		return false, err
	}
	id := header.Get("webhook-id")
	first, known := h.bodies[id]
	switch {
	case known && !bytes.Equal(first, body):
		return false, fmt.Errorf("%s was %s, and became %s", id, first, body)
	case known:
		return false, nil
	}
	h.bodies[id] = body
	type told struct{ Transition struct{ Seq string } }
	var event struct {
		ID   string
		Data struct {
			told
			Transitions []told
		}
	}
	if err := json.Unmarshal(body, &event); err != nil || event.ID != id {
		return false, fmt.Errorf("%s: %s, %w", id, body, err)
	}
	all := event.Data.Transitions
	if len(all) == 0 {
		all = []told{event.Data.told}
	}
	for _, one := range all {
		seq, err := strconv.ParseUint(one.Transition.Seq, 10, 64)
		if err != nil {
			return false, fmt.Errorf("%s: %s, %w", id, body, err)
		}
		if before := h.ids[path][seq]; before != "" {
			return false, fmt.Errorf("%d is told as %s and as %s", seq, before, id)
		}
		h.ids[path][seq] = id
	}
	return h.random.IntN(20) == 0, nil
}

// count is how many transitions have arrived, of each path.
func (h *hookReceiver) count() (n int, _ error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, ids := range h.ids {
		n += len(ids)
	}
	return n, nil
}

// checkHooks compares what arrived with the transitions of a namespace: each that was not late arrived with one id, and
// nothing that is not there. Of what was late only the newest of a job is told.
func (r *record) checkHooks() error {
	r.hooks.mu.Lock()
	defer r.hooks.mu.Unlock()
	if r.hooks.err != nil {
		return r.hooks.err
	}
	rows, err := r.db.Query("SELECT t.seq, t.late FROM transitions t JOIN logs l ON l.id = t.log WHERE t.namespace = 'recorded' AND l.resource = 'jobs.batch'")
	if err != nil {
		return err
	}
	defer rows.Close()
	late := map[uint64]bool{}
	for rows.Next() {
		var seq uint64
		var wasLate int
		if err := rows.Scan(&seq, &wasLate); err != nil {
			return err
		}
		late[seq] = wasLate != 0
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for path, ids := range r.hooks.ids {
		missing := 0
		for seq, wasLate := range late {
			if ids[seq] == "" && !wasLate {
				missing++
			}
		}
		if missing > 0 {
			return fmt.Errorf("%s: of %d transitions %d did not arrive", path, len(late), missing)
		}
		for seq, id := range ids {
			if _, there := late[seq]; !there {
				return fmt.Errorf("%s: %s tells of %d, which is not recorded", path, id, seq)
			}
		}
	}
	return nil
}
