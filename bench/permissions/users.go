//go:build linux

package main

import (
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/devtoken"
)

// The development tokens' issuer and audience.
const (
	issuer   = "https://kubecast.local"
	audience = "kubecast"
)

// set is a set of namespaces, by number.
type set uint64

func (s set) has(namespace int) bool { return s&(1<<namespace) != 0 }
func (s set) size() int              { return bits.OnesCount64(uint64(s)) }

// user is a user who may see some namespaces. One of these stays, so that the user's streams never end.
type user struct {
	name      string
	token     string
	home      int  // the namespace that stays
	bystander bool // the user's bindings never change

	mu      sync.Mutex
	busy    bool // a change is under way
	sees    set
	changes []change
}

// change is the making or the deletion of a binding.
type change struct {
	namespace        int
	made             bool
	issued, answered time.Time
}

// bystanders says that one user in so many is a bystander.
const bystanders = 10

// extra is how many namespaces a user sees at the beginning, besides their own. Later the number varies between one
// and twice extra.
const extra = 2

// prepare makes everything that must exist before the gateway starts.
func (b *bench) prepare(ctx context.Context) error {
	if err := b.cluster.createNamespaces(ctx, b.namespaces); err != nil {
		return fmt.Errorf("make the namespaces: %w", err)
	}
	if err := each(ctx, b.pods, func(ctx context.Context, number int) error {
		_, err := b.cluster.client.CoreV1().Pods(namespaceName(number%b.namespaces)).Create(ctx, pod(number), metav1.CreateOptions{})
		return err
	}); err != nil {
		return fmt.Errorf("make the pods: %w", err)
	}
	for number := range b.users {
		u := &user{name: fmt.Sprintf("user-%03d", number), home: number % b.namespaces, bystander: number%bystanders == 0}
		u.sees = 1 << u.home
		for u.sees.size() < 1+extra {
			u.sees |= 1 << rand.IntN(b.namespaces)
		}
		b.people = append(b.people, u)
	}
	if err := each(ctx, b.users, func(ctx context.Context, number int) error {
		u := b.people[number]
		for namespace := range b.namespaces {
			if !u.sees.has(namespace) {
				continue
			}
			if err := b.cluster.bind(ctx, u.name, namespaceName(namespace)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return fmt.Errorf("make the bindings: %w", err)
	}
	return nil
}

// signIn makes a token for each user, and the key with which the gateway accepts them.
func (b *bench) signIn() (err error) {
	for _, u := range b.people {
		if u.token, err = devtoken.Sign(devtoken.Token{
			KeyFile: b.key, User: u.name, Issuer: issuer, Audience: audience, TTL: 12 * time.Hour,
		}); err != nil {
			return err
		}
	}
	return nil
}

// choose begins a change of the bindings of a random user for whom none is under way.
func (b *bench) choose(ctx context.Context) (*user, change) {
	for ctx.Err() == nil {
		u := b.people[rand.IntN(len(b.people))]
		if c, ok := u.choose(b.namespaces); ok {
			return u, c
		}
	}
	return nil, change{}
}

func (u *user) choose(namespaces int) (c change, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.bystander || u.busy {
		return c, false
	}
	more := u.sees.size() - 1
	c.made = more <= 1 || more < 2*extra && rand.IntN(2) == 0
	for {
		c.namespace = rand.IntN(namespaces)
		if c.namespace != u.home && u.sees.has(c.namespace) != c.made {
			break
		}
	}
	u.busy = true
	return c, true
}

// apply changes a binding, and records when.
func (b *bench) apply(ctx context.Context, u *user, c change) error {
	do := b.cluster.unbind
	if c.made {
		do = b.cluster.bind
	}
	c.issued = time.Now()
	err := do(ctx, u.name, namespaceName(c.namespace))
	c.answered = time.Now()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.busy = false
	if err != nil {
		return fmt.Errorf("change a binding of %s: %w", u.name, err)
	}
	u.sees ^= 1 << c.namespace
	u.changes = append(u.changes, c)
	return nil
}

// visible returns the namespaces that the user may see now.
func (u *user) visible() set {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.sees
}
