package policy

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
)

// The result of a policy depends only on what the policy mentions. So its answer for a namespace holds for all users
// and requests that do not differ in that. The answers are remembered: when a namespace comes, the policies are asked
// about it alone, and not about all namespaces for each watch of each user.

const (
	// turn is how long one user's evaluations go on before other users get a turn.
	turn = 10 * time.Millisecond
	// maxKnown bounds what is remembered, in bytes.
	maxKnown = 32 << 20
)

// inputs identifies a user and a request by what the policies mention of them.
type inputs [sha256.Size]byte

// answers are what the policies say of namespaces. They never change.
type answers struct {
	names   []string // the namespaces that were asked about, sorted
	allowed []string // those of them that may be seen
}

// size is what the answers occupy, in bytes, without the names themselves, which are shared.
func (k *answers) size() int { return 256 + 16*(cap(k.names)+cap(k.allowed)) }

// memory remembers answers by their inputs; the least recently used are dropped first.
type memory struct {
	mu    sync.Mutex
	bytes int
	order list.List // of *remembered
	items map[inputs]*list.Element
}

type remembered struct {
	inputs inputs
	known  *answers
}

func (m *memory) get(in inputs) *answers {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at := m.items[in]; at != nil {
		m.order.MoveToFront(at)
		return at.Value.(*remembered).known
	}
	return &answers{}
}

func (m *memory) put(in inputs, k *answers) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.items == nil {
		m.items = map[inputs]*list.Element{}
	}
	if at := m.items[in]; at != nil {
		m.drop(at)
	}
	m.items[in] = m.order.PushFront(&remembered{in, k})
	m.bytes += k.size()
	for m.bytes > maxKnown && m.order.Len() > 1 {
		m.drop(m.order.Back())
	}
}

func (m *memory) drop(at *list.Element) {
	r := m.order.Remove(at).(*remembered)
	delete(m.items, r.inputs)
	m.bytes -= r.known.size()
}

// inputsOf hashes what the policies mention. Each text follows its length, so that no two inputs look the same.
func (a *Authorizer) inputsOf(id *auth.Identity, req *auth.Request) (inputs, error) {
	buf := make([]byte, 0, 512)
	add := func(s string) {
		buf = binary.AppendUvarint(buf, uint64(len(s)))
		buf = append(buf, s...)
	}
	v := variables{id, req}
	for _, name := range []string{userName, requestVerb, requestGroup, requestResource} {
		value := ""
		if a.mentions[name] {
			resolved, _ := v.ResolveName(name)
			value = resolved.(string)
		}
		add(value)
	}
	add(req.Cluster) // the namespaces are this cluster's
	if a.mentions[userGroups] {
		for _, group := range id.Groups {
			add(group)
		}
	}
	if a.mentions[userClaims] {
		claims, err := json.Marshal(id.Claims)
		if err != nil {
			return inputs{}, err
		}
		add("claims") // so that claims do not look like more groups
		buf = append(buf, claims...)
	}
	return sha256.Sum256(buf), nil
}

// over returns which of some namespaces may be seen. It works in turns: a user whose questions take long waits behind
// users whose questions do not. The answers that were found for a caller that has left serve the next one.
func (a *Authorizer) over(ctx context.Context, id *auth.Identity, req auth.Request, names []string) ([]string, error) {
	in, err := a.inputsOf(id, &req)
	if err != nil {
		return nil, fmt.Errorf("%w: the claims cannot be told apart: %w", auth.ErrUndecided, err)
	}
	k := a.known.get(in)
	for !slices.Equal(k.names, names) {
		release, err := a.turns.Take(ctx, id.QuotaOwner())
		if err != nil {
			return nil, fmt.Errorf("wait for the policies: %w", err)
		}
		if others := a.known.get(in); len(others.names) > len(k.names) {
			k = others
		}
		k = a.further(ctx, id, req, names, k)
		a.known.put(in, k)
		release()
	}
	return slices.Clone(k.allowed), nil
}

// further returns what is known of namespaces after one more turn.
func (a *Authorizer) further(ctx context.Context, id *auth.Identity, req auth.Request, names []string, before *answers) *answers {
	if slices.Equal(before.names, names) {
		return before
	}
	after := &answers{names: make([]string, 0, len(names))}
	began, old, allowed := time.Now(), before.names, before.allowed
	ended := false
	for _, name := range names {
		for len(old) > 0 && old[0] < name {
			old = old[1:]
		}
		for len(allowed) > 0 && allowed[0] < name {
			allowed = allowed[1:]
		}
		sees := len(allowed) > 0 && allowed[0] == name
		if len(old) == 0 || old[0] != name {
			if ended = ended || ctx.Err() != nil || time.Since(began) > turn; ended {
				continue // left to another turn
			}
			req.Namespace = name
			answer, _ := a.evaluate(id, &req)
			sees = answer == yes
		}
		after.names = append(after.names, name)
		if sees {
			after.allowed = append(after.allowed, name)
		}
	}
	if len(after.names) == len(names) {
		after.names = names // one slice, shared by all answers about the same namespaces
	}
	return after
}
