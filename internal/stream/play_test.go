package stream

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// play runs one random history through a topic and the model.
type play struct {
	*rand.Rand
	topic     *Topic[*item]
	model     *model
	followers []*follower
	names     []string
	serial    int
	seen      map[string]int // how often each thing happened
}

func TestCursorsReadExactlyWhatAPlainSliceSays(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			p := newPlay(seed, seen)
			for step := range 400 {
				if err := p.step(); err != nil {
					t.Fatalf("seed %d, step %d: %v", seed, step, err)
				}
			}
		})
	}
	for _, what := range []string{"resumed", "resumed, knowing more", "passed over", "expired", "ahead", "slow", "epoch", "tie", "within a gap", "gaps forgotten", "caught up"} {
		if seen[what] == 0 {
			t.Errorf("the histories are not random enough: %q never happened (%v)", what, seen)
		}
	}
	t.Log(seen)
}

func newPlay(seed uint64, seen map[string]int) *play {
	p := &play{Rand: rand.New(rand.NewPCG(seed, 1)), seen: seen}
	opts := Options{Events: 1 + p.IntN(40), Bytes: int64(20 + p.IntN(400)), Age: time.Duration(1+p.IntN(60)) * time.Second}
	p.topic, p.model = NewTopic[*item](opts), &model{opts: opts}
	p.names = []string{"", "busy", "busy", "busy", "a", "b", "c", "quiet"}
	p.topic.Begin(100)
	p.model.begin(100)
	return p
}

func (p *play) object(version uint64) *item {
	p.serial++
	size := 1 + p.IntN(20)
	if p.IntN(50) == 0 {
		size = 1000 // larger than the bound on all together
	}
	return &item{namespace: p.names[p.IntN(len(p.names))], name: fmt.Sprint(p.serial), version: version, size: size}
}

// step takes one random action.
func (p *play) step() error {
	switch n := p.IntN(100); {
	case n < 45:
		p.live()
	case n < 52:
		p.relist()
	case n < 57:
		version := p.model.watermark + uint64(p.IntN(5)) - 1
		p.topic.Progress(version)
		if version > p.model.watermark {
			p.model.watermark, p.model.open = version, false
		}
	case n < 62:
		time.Sleep(time.Duration(p.IntN(20)) * time.Second)
		p.topic.mu.Lock()
		p.topic.evict(time.Now()) // as Run does now and then
		p.topic.mu.Unlock()
		p.model.evict()
	case n < 63 && p.IntN(3) == 0:
		version := p.model.watermark - uint64(p.IntN(50))
		p.topic.Restart(version)
		p.model.begin(version)
		p.model.generation++
	case n < 63 && p.IntN(10) == 0:
		for range maxGaps + 1 {
			p.relist()
		}
		p.seen["gaps forgotten"]++
	case n < 75:
		return p.follow()
	default:
		return p.read()
	}
	return nil
}

func (p *play) live() {
	version := p.model.watermark + uint64(p.IntN(4)) // sometimes the same again
	if version == p.model.watermark {
		p.seen["tie"]++
	}
	i := p.object(version)
	c := Change[*item]{Object: i}
	if p.IntN(3) == 0 {
		c.Type = Deleted
	}
	p.topic.Append(version, c)
	p.model.add(i, version)
	p.model.open = c.Type == Deleted && (p.model.open || version > p.model.watermark)
	p.model.watermark = version
	p.model.evict()
}

func (p *play) relist() {
	version := p.model.watermark + uint64(p.IntN(6))
	var changes []Change[*item]
	for range p.IntN(8) {
		i := p.object(version)
		changes = append(changes, Change[*item]{Object: i})
		p.model.add(i, version)
		p.model.history[len(p.model.history)-1].relistDiff = true
	}
	p.topic.AppendBurst(version, changes)
	if len(changes) > 0 {
		p.model.evict()
	}
	p.model.relisted(version)
}

// follow begins another cursor, at the head or after some version.
func (p *play) follow() error {
	namespaces := AllNamespaces()
	switch p.IntN(3) {
	case 1:
		namespaces = Namespaces("quiet")
	case 2:
		namespaces = Namespaces("a", "never", "busy", "c", "a")
	}
	f := &follower{sole: -1, namespaces: namespaces, generation: p.model.generation}
	if p.IntN(3) == 0 {
		head := p.topic.Head()
		if head.Version != p.model.watermark {
			return fmt.Errorf("the head is at %d, not %d", head.Version, p.model.watermark)
		}
		f.cursor, f.next, f.position = p.topic.From(head, namespaces), len(p.model.history), head.Known().All
	} else {
		known := p.known()
		cursor, err := p.topic.Resume(known, namespaces)
		want := p.model.resume(known, namespaces)
		if !errors.Is(err, want) || err != nil && want == nil {
			return fmt.Errorf("Resume(%v, %v) failed with %v, not %v", known, namespaces, err, want)
		}
		p.note(known, err)
		f.next = p.model.evicted
		if errors.Is(err, ErrAhead) {
			f.next, f.ahead = len(p.model.history), true
			if cursor, err = p.topic.Ahead(known, namespaces); err != nil {
				return err
			}
		} else if err != nil {
			if known.All > p.model.floor && known.All <= p.model.watermark {
				p.followers = append(p.followers, p.catchUp(known, namespaces))
				p.seen["caught up"]++
			}
			return nil
		}
		f.cursor, f.known, f.knew, f.position, f.ties, f.deduplicates = cursor, known, known, known.All, true, true
		f.ahead = f.ahead || known.Some > p.model.watermark
		for f.next < len(p.model.history) && !p.model.history[f.next].due(known.All) {
			f.next++
		}
		f.from = f.next
		if f.next < len(p.model.history) {
			f.expects(p.model, f.next) // what is alone in its version now may not be later
		}
	}
	p.followers = append(p.followers, f)
	return nil
}

// catchUp begins a cursor in a backlog of all that the model remembers.
func (p *play) catchUp(known Known, namespaces NamespaceSet) *follower {
	m, head := p.model, p.topic.Head()
	var events []*Event[*item]
	for _, e := range m.history[m.begun:] {
		if e.pos >= known.All {
			events = append(events, &Event[*item]{Change: Change[*item]{Object: e.item}, Pos: e.pos, ID: e.pos})
		}
	}
	return &follower{
		sole: -1, cursor: p.topic.CaughtUp(head, events, known, namespaces), namespaces: namespaces, generation: m.generation,
		next: m.begun, begun: m.begun, from: m.begun, start: len(m.history), after: known.All,
		known: Known{All: max(known.All, head.Version), Some: max(known.Some, head.Version)}, knew: known, deduplicates: true, ahead: true, ties: true,
	}
}

// known is what some client may know, told by this replica or by another one.
func (p *play) known() Known {
	newest := p.model.watermark + 3
	known := UpTo(newest - min(newest-1, uint64(p.IntN(70))))
	switch n := len(p.model.gaps); {
	case p.IntN(3) > 0:
	case n > 0 && p.IntN(2) == 0:
		g := p.model.gaps[p.IntN(n)]
		known = g.burst // it was cut off in one
	case p.IntN(2) == 0:
		known.Some++ // behind a deletion
	default:
		known.Some += uint64(p.IntN(10))
	}
	return known
}

func (p *play) note(known Known, err error) {
	switch {
	case err == nil && known.Some > known.All:
		p.seen["resumed, knowing more"]++
	case err == nil:
		p.seen["resumed"]++
	case errors.Is(err, ErrAhead):
		p.seen["ahead"]++
	case p.model.passedByRelist(known):
		p.seen["within a gap"]++
	default:
		p.seen["expired"]++
	}
}

// read lets a random cursor read a random number of events.
func (p *play) read() error {
	if len(p.followers) == 0 {
		return nil
	}
	i := p.IntN(len(p.followers))
	f := p.followers[i]
	alive, err := f.read(p.model, 1+p.IntN(12), p.Rand)
	if err != nil {
		return fmt.Errorf("namespaces %v after %v: %w", f.namespaces, f.known, err)
	}
	if !alive {
		switch {
		case f.generation != p.model.generation:
			p.seen["epoch"]++
		case f.deduplicates && p.model.passedByRelist(f.known):
			p.seen["passed over"]++
		default:
			p.seen["slow"]++
		}
		p.followers = slices.Delete(p.followers, i, i+1)
	}
	return nil
}
