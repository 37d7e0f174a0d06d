package permission

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/scheduler"
	"github.com/kubecast/kubecast/internal/visibility"
)

// subscriber is one that does nothing when it is woken.
type subscriber struct{ Subscription }

func (*subscriber) Wake() {}

func (m *subscriber) Permission() *Subscription { return &m.Subscription }

// What was asked before a stream began does not say what its caller may see: that could give back
// what was taken away. An answer that all have had wakes nobody; and who was not told is told the
// next one, though it is the same.
func TestAnswerFromBeforeAStreamBeganIsNotForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{Reauthorize: time.Hour, Alarm: scheduler.NewAlarm()})
		asking := &shared{of: all}
		defer all.opts.Alarm.Remove(&asking.entry)
		join := func() Subscriber {
			m := &subscriber{}
			m.asked, m.owed = time.Now(), true
			asking.subscribers = append(asking.subscribers, m)
			return m
		}
		answered := func(asked time.Time, what *visibility.Visibility) (told []Subscriber) {
			return asking.answered(&Answer{asked: asked, visible: []visible{{known: true, visible: what}}})
		}
		of := func(namespaces ...string) *visibility.Visibility {
			visible, _ := visibility.Of(auth.Scope{Namespaces: namespaces}, visibility.Target{}, cluster.Kind{Namespaced: true})
			return visible
		}
		wide, narrow := of("a", "b"), of("a")
		first := join()
		if told := answered(time.Now(), wide); !slices.Equal(told, []Subscriber{first}) {
			t.Errorf("the first answer goes to %d", len(told))
		}
		asked := time.Now()
		time.Sleep(time.Second)
		second := join()
		if told := answered(asked, wide); len(told) != 0 {
			t.Errorf("an answer from before it began, or that is known, goes to %d", len(told))
		}
		if told := answered(time.Now(), wide); !slices.Equal(told, []Subscriber{second}) {
			t.Errorf("the same one again goes to %d", len(told))
		}
		if told := answered(time.Now(), wide); len(told) != 0 {
			t.Errorf("what both know goes to %d", len(told))
		}
		if told := answered(time.Now(), narrow); len(told) != 2 {
			t.Errorf("another answer goes to %d", len(told))
		}
	})
}

// Two callers, or two things that are shown, must not share an answer.
func TestPermissionsAreSharedByNobodyElse(t *testing.T) {
	base := auth.Identity{Username: "ann", Groups: []string{"a", "b"}, Claims: map[string]any{"sub": "1", "n": 1.0}}
	pods := []Question{{Key: "pods"}}
	seen := map[key]string{keyOf(&base, pods): "base"}
	add := func(what string, questions []Question, change func(*auth.Identity)) {
		id := base
		change(&id)
		key := keyOf(&id, questions)
		if other, known := seen[key]; known {
			t.Errorf("%s is taken for %s", what, other)
		}
		seen[key] = what
	}
	for what, change := range map[string]func(*auth.Identity){
		"another name":  func(id *auth.Identity) { id.Username = "bob" },
		"other groups":  func(id *auth.Identity) { id.Groups = []string{"a b"} },
		"quoted groups": func(id *auth.Identity) { id.Groups = []string{`a" "b`} },
		"bytes":         func(id *auth.Identity) { id.Username = "ann\xff" },
		"other bytes":   func(id *auth.Identity) { id.Username = "ann\xfe" },
		"claims":        func(id *auth.Identity) { id.Claims = map[string]any{"sub": "1", "n": "1"} },
		"end":           func(id *auth.Identity) { id.ExpiresAt = time.Unix(1, 0) },
		"begin":         func(id *auth.Identity) { id.Begun = time.Unix(1, 0) },
		"session":       func(id *auth.Identity) { id.Session = "s" },
		"token":         func(id *auth.Identity) { id.Token = "s" },
		"cluster":       func(id *auth.Identity) { id.Cluster = "s" },
		"anonymous":     func(id *auth.Identity) { id.Anonymous = true },
	} {
		add(what, pods, change)
	}
	nothing := func(*auth.Identity) {}
	add("another question", []Question{{Key: "pods of a"}}, nothing)
	add("two", append(slices.Clone(pods), pods...), nothing)
}
