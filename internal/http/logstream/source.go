package logstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/http/permission"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/logs"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

// maxContainers is how many are followed on one stream: the client's position names each of them.
// Several sources of logs on one stream share them evenly.
const maxContainers = 64

// source is the eventstream.Source of logs. This file has its position and what may be seen;
// read.go tells what there is.
type source struct {
	logRequest
	eventstream.VisibilityTracker
	feeds  *logs.Feeds
	access *access.Access
	in     access.Grant
	kind   cluster.Kind // pods
	match  func(*cluster.Object) bool

	ownerKind  cluster.Kind
	owners     *ownerTree // nil: no owner was named
	quotaOwner string
	name       string // in event ids
	prefix     string // of events' names
	plain      bool   // lines are told as text
	several    bool   // of several containers, so that each line says of which
	among      int    // how many sources of logs the stream has

	to    eventstream.Sink // nil before the first Read
	known position         // of the client; without containers: it begins here
	own   string           // the same as the client sent it
	reset string           // why the client's position does not count

	cursor     *cache.Cursor // of the pods; nil: they are to be listed
	containers map[string]*container
	order      []*container     // by name
	unsure     map[string]doubt // by pod, of which it is not known whether it belongs to the owner
	sureAgain  time.Time        // when that is looked at again; zero: there are none

	began  time.Time // since when what there is, is told; zero: it has not begun
	synced bool      // that was told
	over   bool      // and nothing else was asked for
	lines  int       // that were told
	lacks  bool      // and some could not be had for now

	freshness eventstream.Freshness // only as long as it has not begun, the pods may not be known
}

// open opens the source for a caller.
func (h *Handler) open(ctx context.Context, id auth.Identity, name string, q logRequest, plain bool) (_ eventstream.Source, err error) {
	granted, kind, owner, err := h.find(ctx, id, q)
	if err != nil {
		return nil, err
	}
	s := &source{
		logRequest: q, feeds: h.opts.Feeds, access: h.opts.Access, kind: kind, ownerKind: owner, match: q.selector.Match(), quotaOwner: id.QuotaOwner(),
		name: name, plain: plain, among: 1, VisibilityTracker: eventstream.VisibilityTracker{Visible: granted.Visible}, containers: map[string]*container{}, unsure: map[string]doubt{},
	}
	if s.name == "" {
		s.name = "l"
	} else {
		s.prefix = name + "."
	}
	if granted.Store, granted.Release, err = granted.Kinds.Use(kind, id.QuotaOwner()); err != nil {
		return nil, err
	}
	if q.owner.Resource != "" {
		if s.owners, err = newOwnerTree(h.opts.Access, granted.Kinds, id, q.owner, owner); err != nil {
			granted.Release()
			return nil, err
		}
	}
	s.in = granted
	if err := s.check(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *source) SetPositionBudget(among int) error {
	if s.among = among; among == 1 {
		return nil
	}
	return s.check()
}

// most is how many containers are followed.
func (s *source) most() int { return maxContainers / s.among }

// check refuses what can be seen to ask for too much, or for a container that there is not, as far
// as the pods are known.
func (s *source) check() error {
	if !s.in.Store.Upstream().Synced || s.owners != nil {
		return nil
	}
	found := 0
	snapshot := s.in.Store.Snapshot()
	for o := range s.visibleTarget().List(snapshot, s.selector, "", "") {
		if !s.selects(s.match, o) {
			continue
		}
		all := statuses(o)
		var names []string
		for _, c := range all {
			names = append(names, c.container)
			if s.wants(c.container) {
				found++
			}
		}
		if s.pods.Name != "" && len(names) > 0 && found == 0 {
			return reply.BadRequest("container: pod %s has no such container; it has %s", o.GetName(), strings.Join(names, ", "))
		}
		if found > s.most() {
			return s.tooMany()
		}
	}
	return nil
}

func (s *source) tooMany() error {
	share := ""
	if s.among > 1 {
		share = fmt.Sprintf(" in each of %d selections", s.among)
	}
	return &reply.Error{
		Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: fmt.Sprintf("this selects more than the %d containers whose logs one stream may tell%s: ask for fewer pods, for one container of each, or on streams of their own", s.most(), share),
	}
}

// visibleTarget is what the caller may see of what is asked for.
func (s *source) visibleTarget() visibility.VisibleTarget {
	pods := s.pods
	pods.Subresource = ""
	return visibility.VisibleTarget{Target: pods, Visible: s.Visible}
}

func (s *source) Name() string { return s.name }

func (s *source) Ready(ctx context.Context) error {
	if err := s.in.Store.WaitSynced(ctx); err != nil || s.owners == nil {
		return err
	}
	return s.owners.headStore.WaitSynced(ctx)
}

// Upstream is how the watch of the pods is.
func (s *source) Upstream() cache.Upstream { return s.in.Store.Upstream() }

// Epoch implements eventstream.Source. It is the objects' one, so that a client which adds logs to
// its stream is not reset everywhere.
func (s *source) Epoch(ctx context.Context) (string, error) { return s.in.Kinds.Cluster().Epoch(ctx) }

// Find implements eventstream.Source. A position is looked for in the logs themselves, once these are read.
func (s *source) Find(_ context.Context, from eventstream.From) {
	s.reset, s.known, s.own = from.Reset, position{}, ""
	if s.reset != "" || !from.Named {
		return
	}
	known, ok := parsePosition(from.Claim.Own)
	if from.Claim.Own == "" || !ok {
		s.reset = eventstream.ResetUnreadable
		return
	}
	s.known, s.own = known, from.Claim.Own
}

func (s *source) Begin(told eventstream.Freshness) (claim stream.Claim, reset string) {
	s.freshness = told
	s.synced, s.over = s.known.synced, s.known.over
	return s.claim(), s.reset
}

// claim is the client's position. Other sources may have something to tell before this one is
// read for the first time: until then the client keeps its position.
func (s *source) claim() stream.Claim {
	if s.began.IsZero() {
		return stream.Claim{Own: s.own}
	}
	var text strings.Builder
	text.WriteString(header(s.synced, s.over))
	named := 0
	for _, c := range s.order {
		if t := c.idText(); t != "" {
			text.WriteString(t)
			named++
		}
	}
	// Those to which the client has not come back yet: it would be told all of them again.
	if len(s.known.containers) > 0 && time.Since(s.began) < sureWithin {
		for _, key := range slices.Sorted(maps.Keys(s.known.containers)) {
			if c := s.containers[key]; (c == nil || c.run < 0) && named < s.most() {
				text.WriteString(s.known.containers[key].text(key))
				named++
			}
		}
	}
	return stream.Claim{Own: text.String()}
}

func (s *source) Bookmark(to eventstream.Sink) {
	if !s.began.IsZero() {
		to.Emit(eventstream.Event{Prefix: s.prefix, Name: "bookmark", Data: "{}"}, s.claim())
	}
}

func (s *source) Question() permission.Question {
	q, kinds, store, pods, owner, a := s.logRequest, s.in.Kinds, s.in.Store, s.kind, s.ownerKind, s.access
	return permission.Question{
		Key: fmt.Sprintf("log %p %#v %#v", kinds, q.pods, q.owner),
		See: func(ctx context.Context, id auth.Identity) (*visibility.Visibility, bool, error) {
			return q.see(ctx, a, kinds, id, pods, owner)
		},
		Live: func() bool { return store.Upstream().Live },
	}
}

func (s *source) AuditRead() auditrecord.Read {
	read := access.ReadVisible(visibility.VisibleTarget{Target: s.pods, Visible: s.Visible}, "get")
	if s.prefix != "" {
		read.Watch = s.name
	}
	return read
}

func (s *source) Close() {
	for _, c := range s.order {
		c.close()
	}
	if s.cursor != nil {
		s.cursor.Disarm()
	}
	s.owners.close()
	s.in.Release()
}

// due is when the logs have to be looked at again.
func (s *source) due() (due time.Time) {
	sooner := func(at time.Time) {
		if due.IsZero() || at.Before(due) {
			due = at
		}
	}
	if !s.sureAgain.IsZero() {
		sooner(s.sureAgain)
	}
	for _, c := range s.order {
		switch {
		case !c.finished.IsZero():
			sooner(c.finished.Add(endWithin))
		case c.reader == nil || c.troubled || c.late && !c.settled:
		case !c.settled:
			sooner(c.begins.Add(settleWithin))
		case !c.fails.IsZero():
			sooner(c.fails.Add(settleWithin))
		}
		if !c.gone.IsZero() && c.reader != nil {
			sooner(c.gone.Add(goneWithin))
		}
	}
	return due
}

func (s *source) emit(name, data string) {
	s.to.Emit(eventstream.Event{Prefix: s.prefix, Name: name, Data: data}, s.claim())
}

// failed is how a stream ends that cannot read a log.
func failed(err error) eventstream.Outcome {
	if errors.Is(err, logs.ErrLimit) {
		return eventstream.Limit
	}
	return eventstream.Unavailable
}
