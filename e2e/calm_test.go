package e2e

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// beQuiet lets clients come back to a cluster in which nothing happens any more, and then makes single changes, one
// after the other. Most clients are cut off, and miss some changes. Half of the time the gateways are started again
// in the meantime, so that clients have to be caught up with changes that their gateway never saw. Then all clients
// have their positions, and stay. Each single change wakes each stream anew, and no change before it can hide that a
// stream was not woken. At last the permissions of the clients change for which they do.
func (m *model) beQuiet(t *testing.T) {
	t.Helper()
	m.quiets++
	mark := fmt.Sprintf("zz-quiet-%d", m.quiets)
	m.churn.mark(t, mark)
	m.waitHave(t, mark)
	m.churn.resting.Lock()
	defer m.churn.resting.Unlock()
	m.check(t)
	var comeBack []func()
	for _, f := range m.followers() {
		if m.random.IntN(4) > 0 {
			comeBack = append(comeBack, f.leave())
		}
		f.keep(true)
		defer f.keep(false)
	}
	for range 1 + m.random.IntN(3) {
		m.touch(t, mark)
	}
	restarted := []int{0, 1}
	switch m.random.IntN(4) {
	case 0:
		restarted = nil
	case 1, 2:
		restarted = restarted[m.random.IntN(2):][:1]
	}
	if m.quiets == 1 { // even in the shortest sample
		restarted = []int{0, 1}
	}
	t.Logf("it is quiet: %d of %d clients leave, gateways %v are restarted", len(comeBack), len(m.followers()), restarted)
	for _, i := range restarted {
		m.gateways[i].kill()
	}
	for _, i := range restarted {
		m.gateways[i].restart(t)
	}
	m.waitHave(t, mark)
	for _, back := range comeBack {
		back()
	}
	m.check(t) // they have been told what they missed
	time.Sleep(time.Duration(m.random.IntN(300)) * time.Millisecond)
	c := keepCalmWhile(func() {
		for range 3 {
			m.touch(t, mark)
			time.Sleep(time.Duration(100+m.random.IntN(400)) * time.Millisecond)
		}
		time.Sleep(500 * time.Millisecond)
	})
	m.calms = append(m.calms, c)
	m.check(t)
	m.roamers.check(t)
	m.roamers.roam(t)
	m.roamers.check(t)
}

// followers returns the clients, each once.
func (m *model) followers() (each []*follower) {
	for _, w := range m.watched {
		if len(each) == 0 || each[len(each)-1] != w.follower {
			each = append(each, w.follower)
		}
	}
	return each
}

// touch changes one of the pods in each namespace that match every selector.
func (m *model) touch(t *testing.T, name string) {
	t.Helper()
	m.touches++
	for _, namespace := range m.churn.namespaces {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"touched":%q}}}`, strconv.Itoa(m.touches))
		_, err := m.stage.kube.CoreV1().Pods(namespace).Patch(context.Background(), name, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
}
