package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubecast/kubecast/internal/backoff"
)

const (
	// revocationsWrite bounds one write.
	revocationsWrite = 5 * time.Second

	// logoutPrefix is the prefix of the keys of entries that the provider caused. Users can cause any number of
	// these, by signing in and out. A ConfigMap holds 1 MiB, so such entries get only logoutsRoom, in bytes; the rest
	// is for operators.
	logoutPrefix = "logout-"
	logoutsRoom  = 512 << 10
	// maxLogoutsEach is how many entries for single sessions of one subject are kept at the same time. The next
	// logout becomes an entry that ends all earlier sessions of the subject, and replaces the others.
	maxLogoutsEach = 16
)

// write adds the missing entries to the ConfigMap, and removes those that are over. Each entry has its own key, so
// that replicas can write at the same time without reading first.
func (r *Revocations) write(ctx context.Context) error {
	now := time.Now()
	data := map[string]*string{}
	home := r.home.Load()
	var full error
	r.mu.Lock()
	room := logoutsRoom
	if len(r.own) > 0 {
		wide := wideLogouts(r.own)
		for key, entry := range r.shared {
			switch {
			case entry.over(now), wide.cover(key, entry):
				data[key] = nil
			case isLogoutEntry(key):
				room -= r.size(key, entry)
			}
		}
	}
	left := len(data)
	for name, entry := range r.own {
		if isLogoutEntry(name) {
			if room -= r.size(name, entry); room < 0 {
				full = errors.New("no room is left for what the provider ends: the rest is for operators")
				continue
			}
		}
		text := r.brief(entry)
		data[name] = &text
	}
	written := len(data) - left
	r.mu.Unlock()
	switch {
	case written == 0 && (left == 0 || full == nil):
		return full
	case home == nil:
		return errors.New("the cluster is not known yet")
	}
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, revocationsWrite)
	defer cancel()
	// The entries stay in own until the watch has seen them in the ConfigMap.
	_, err = home.maps.Patch(ctx, r.opts.ConfigMap, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kubecast"})
	if err != nil {
		return fmt.Errorf("ConfigMap %s: %w", r.opts.ConfigMap, err)
	}
	if full != nil {
		return fmt.Errorf("ConfigMap %s: %w", r.opts.ConfigMap, full)
	}
	return nil
}

// brief is an entry in the form in which it is written: without an Until that follows from Before, since room is
// scarce.
func (r *Revocations) brief(entry Revocation) string {
	if entry.Until.Equal(entry.Before.Add(r.opts.Keep)) {
		entry.Until = time.Time{}
	}
	return entry.String()
}

// size is the room that an entry takes, in bytes.
func (r *Revocations) size(name string, entry Revocation) int { return len(name) + len(r.brief(entry)) }

func isLogoutEntry(name string) bool { return strings.HasPrefix(name, logoutPrefix) }

// gather returns the entry for a logout. Once a subject has maxLogoutsEach entries, that is one which ends all
// earlier sessions of the subject, and own entries that it covers are dropped. The caller holds the lock.
func (r *Revocations) gather(name string, entry Revocation) Revocation {
	if !isLogoutEntry(name) || entry.Subject == "" {
		return entry
	}
	before := 0
	for _, entries := range []map[string]Revocation{r.shared, r.own} {
		for key, known := range entries {
			if isLogoutEntry(key) && known.Issuer == entry.Issuer && known.Subject == entry.Subject {
				before++
			}
		}
	}
	if before >= maxLogoutsEach {
		entry.Session = ""
	}
	wide := wideLogouts(map[string]Revocation{name: entry})
	maps.DeleteFunc(r.own, wide.cover)
	return entry
}

// logouts are the entries that end all sessions of a subject, by issuer and subject.
type logouts map[[2]string]Revocation

func wideLogouts(entries map[string]Revocation) logouts {
	wide := logouts{}
	for name, entry := range entries {
		who := [2]string{entry.Issuer, entry.Subject}
		if isLogoutEntry(name) && entry.Subject != "" && entry.Session == "" && !wide[who].Before.After(entry.Before) {
			wide[who] = entry
		}
	}
	return wide
}

// cover reports whether one of them ends all that another logout ends, for at least as long.
func (l logouts) cover(name string, entry Revocation) bool {
	wide, found := l[[2]string{entry.Issuer, entry.Subject}]
	return found && isLogoutEntry(name) && !entry.Before.After(wide.Before) && !entry.Until.After(wide.Until)
}

// writeAgain writes the entries that could not be written at once.
func (r *Revocations) writeAgain(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.unwritten:
		}
		for ctx.Err() == nil {
			err := r.write(ctx)
			if err == nil {
				break
			}
			r.opts.Log.Error("what was revoked cannot be written down: other replicas do not know of it", "error", err)
			backoff.Pause(ctx, revocationsLast)
		}
	}
}
