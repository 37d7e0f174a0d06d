package inbox

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// Settings are what a user wants to be told.
type Settings struct {
	States      []jobs.State  // to which transitions have to lead
	Digest      time.Duration // for how long what happens is gathered; 0: not at all
	PausedUntil jobs.Time     // until when what comes is silent; 0: it is not
}

// Choice is what a user has chosen.
type Choice struct {
	States      []jobs.State   // nil: as the operator has it
	Digest      *time.Duration // likewise
	PausedUntil jobs.Time
}

// chosen is a Choice as the database has it.
type chosen struct {
	states string // "": as the operator has it; else JSON
	digest int64  // in milliseconds; byDefault: as the operator has it
	paused int64
}

const byDefault = -1

// settings are those of a user who has chosen something, or nothing.
func (i *Inbox) settings(c chosen) Settings {
	usual := i.usual.Load()
	s := Settings{States: usual.states, Digest: usual.digest, PausedUntil: jobs.Time(c.paused)}
	var states []jobs.State
	if c.states != "" && json.Unmarshal([]byte(c.states), &states) == nil {
		s.States = states
	}
	if c.digest != byDefault {
		s.Digest = time.Duration(c.digest) * time.Millisecond
	}
	return s
}

func (s Settings) wants(state jobs.State) bool { return slices.Contains(s.States, state) }

// Settings are those of a user. The error wraps ErrAway, or is of the context.
func (i *Inbox) Settings(ctx context.Context, owner string) (s Settings, err error) {
	err = i.ask(ctx, "read settings", func(ctx context.Context) error {
		h, err := headOf(ctx, i.of(owner), owner)
		s = i.settings(h.chosen)
		return err
	})
	return s, err
}

// Choose replaces the settings of a user, and returns them as they are then. Errors are those of Settings.
func (i *Inbox) Choose(ctx context.Context, owner string, c Choice) (s Settings, err error) {
	err = i.ask(ctx, "write settings", func(ctx context.Context) error {
		next := chosen{digest: byDefault, paused: int64(c.PausedUntil)}
		if c.States != nil {
			text, err := json.Marshal(c.States)
			if err != nil {
				return err
			}
			next.states = string(text)
		}
		if c.Digest != nil {
			next.digest = c.Digest.Milliseconds()
		}
		s = i.settings(next)
		return i.of(owner).Transact(ctx, func(tx *store.Tx) error {
			locked, err := lock(ctx, tx, []string{owner}, nil)
			if err != nil {
				return err
			}
			h := locked[owner]
			h.chosen = next
			if h.due > 0 { // what waits does not wait for longer than is wanted now
				h.due = min(h.due, h.now+jobs.Time(s.Digest.Milliseconds()))
			}
			return save(ctx, tx, []*head{h})
		})
	})
	if err == nil {
		i.hurryUp()
	}
	return s, err
}
