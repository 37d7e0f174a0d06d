package trail

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/audit"
	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
)

// Trail is what the audit log will say of a request. A stream keeps it until its end. Methods may be called
// concurrently, and on a nil Trail, which a gateway without an audit log has.
type Trail struct {
	log       *audit.Log
	request   string // the request's id
	path      string
	address   string
	userAgent string
	received  time.Time

	mu         sync.Mutex // the watches of a stream are opened concurrently
	user       *audit.User
	credential string
	session    string          // the issuer's name for it
	logout     auth.Revocation // what a logout by the provider ended; its request is sent by no user
	form       string
	query      url.Values // nil once the stream has begun
	reads      []*decided
	streams    bool // a stream goes on with the request, and logs the rest
}

// Read is one thing that is asked for: what a Kubernetes path names, and the verb.
type Read struct {
	Cluster   string // "" for the default one
	Group     string
	Version   string
	Resource  string
	Namespace string
	Name      string
	Verb      string
	Partly    bool   // the caller is shown only a part of it
	Watch     string // its name on a stream of several watches

	Subresource string // "log"; "" of an object itself
}

// decided is a read with its outcome.
type decided struct {
	Read
	decision string // "" if it was not decided
	visible  string // how much of it is shown
	code     int
	selected map[string]string
}

type key struct{}

// Begin puts a new trail into a request's context.
func Begin(log *audit.Log, r *http.Request) (*Trail, *http.Request) {
	t := &Trail{
		log: log, request: request.ID(r), path: strings.Clone(request.PathForLog(r)), address: strings.Clone(request.Address(r)),
		userAgent: forAudit(r.UserAgent()), received: time.Now(),
	}
	return t, r.WithContext(context.WithValue(r.Context(), key{}, t))
}

// Of returns the trail in a request's context; nil if there is none.
func Of(ctx context.Context) *Trail {
	t, _ := ctx.Value(key{}).(*Trail)
	return t
}

// The credentials by which callers are identified.
const (
	ByToken   = "token"
	BySession = "session"
	ByTicket  = "ticket"
	ByLogin   = "login" // by this request, at the provider
)

// Is records who sent the request.
func (t *Trail) Is(id auth.Identity, credential string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if credential != "" {
		t.credential = credential
	}
	t.user = &audit.User{Username: id.Username, Groups: id.Groups}
	t.session = forAudit(id.Session)
}

// Ends records whose session the request ends; the provider sends such a request.
func (t *Trail) Ends(ended auth.Revocation) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.logout = ended
}

// By records by which credential the caller tries to be identified.
func (t *Trail) By(credential string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.credential = credential
}

// Asked records the form and the query with which a Kubernetes path was asked for.
func (t *Trail) Asked(form reply.Form, query url.Values) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.form, t.query = form.String(), query
}

// Decided records the decision on one thing that was asked for: it is shown, or refused with an error.
func (t *Trail) Decided(read Read, err error) {
	if t == nil {
		return
	}
	d := shown(read)
	if err != nil {
		failed := reply.To(err)
		d.decision, d.visible, d.code = "", "", failed.Code
		if failed.Code == http.StatusForbidden {
			d.decision = "forbid"
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.streams && err == nil {
		return // it joins
	}
	t.reads = append(t.reads, d)
}

func shown(read Read) *decided {
	d := &decided{Read: read, decision: "allow", visible: "all", code: http.StatusOK}
	if read.Partly {
		d.visible = "part"
	}
	return d
}

// selectors are the parameters that select objects of a kind, with the annotations that have their values.
var selectors = map[string]string{
	"labelSelector": "kubecast.io/label-selector", "fieldSelector": "kubecast.io/field-selector", "search": "kubecast.io/search",
}

// selectedOf returns the selectors of a read, by annotation. Those on Secrets are left out, since they may be guesses
// at the Secrets' values.
func (t *Trail) selectedOf(read *decided) map[string]string {
	own := url.Values{}
	if read.Watch != "" {
		if address, err := url.Parse(t.query.Get(read.Watch)); err == nil {
			own = address.Query()
		}
	}
	selected := map[string]string{}
	for parameter, annotation := range selectors {
		value := t.query.Get(parameter)
		if own.Has(parameter) {
			value = own.Get(parameter)
		}
		switch {
		case value == "":
		case read.Group == "" && read.Resource == "secrets":
			selected[annotation] = "[withheld]"
		default:
			selected[annotation] = forAudit(value)
		}
	}
	return selected
}

// Answered logs the outcome of a request, unless a stream goes on with it. A request that reads no objects and was
// not refused is logged only if it signs in or out. If nothing was decided, named returns what the path names, if
// anything.
func (t *Trail) Answered(method string, code int, signsIn bool, named func() (Read, bool)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.streams {
		return
	}
	if code == 0 {
		code = http.StatusOK // net/http's default
	}
	refused := slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests}, code)
	if len(t.reads) > 0 {
		for _, read := range t.reads {
			read.selected = t.selectedOf(read)
			t.tell(audit.StageComplete, read, max(code, read.code), nil)
		}
		return
	}
	if !refused && !signsIn {
		return
	}
	var read *decided
	if what, ok := named(); ok {
		read = &decided{Read: what}
	}
	t.tell(audit.StageComplete, read, code, map[string]string{"method": method})
}

// Began logs that a stream with these watches has begun. More says that others may join.
func (t *Trail) Began(watches []Read, more bool) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streams = true
	if len(watches) > 0 {
		t.reads = t.reads[:0]
	}
	for _, watch := range watches {
		read := shown(watch)
		read.selected = t.selectedOf(read)
		t.reads = append(t.reads, read)
		t.tell(audit.StageStarted, read, http.StatusOK, nil)
	}
	if !more {
		t.query = nil
	}
}

// Joined logs that a stream goes on with one more watch, which could not be opened when it began.
func (t *Trail) Joined(watch Read) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	read := shown(watch)
	read.selected = t.selectedOf(read)
	t.reads = append(slices.DeleteFunc(t.reads, func(d *decided) bool { return d.Watch == watch.Watch }), read)
	t.tell(audit.StageStarted, read, http.StatusOK, nil)
}

// Ended logs that a stream has ended, and why.
func (t *Trail) Ended(reason string, events int64) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	more := map[string]string{"kubecast.io/ended": reason, "kubecast.io/events": strconv.FormatInt(events, 10)}
	if len(t.reads) == 0 { // it never had watches
		t.tell(audit.StageComplete, nil, http.StatusOK, more)
	}
	for _, read := range t.reads {
		t.tell(audit.StageComplete, read, read.code, more)
	}
}

// tell puts one line into the log. The caller holds the lock.
func (t *Trail) tell(stage string, read *decided, code int, more map[string]string) {
	e := &audit.Event{
		RequestID: t.request, Stage: stage, Path: t.path, User: t.user, Address: t.address, UserAgent: t.userAgent,
		Code: code, Received: t.received, At: time.Now(), Annotations: map[string]string{},
	}
	note := func(name, value string) {
		if value != "" {
			e.Annotations[name] = value
		}
	}
	for name, value := range more {
		note(name, value)
	}
	e.Verb = strings.ToLower(e.Annotations["method"])
	delete(e.Annotations, "method")
	note("kubecast.io/credential", t.credential)
	note("kubecast.io/session", t.session)
	note("kubecast.io/ended-issuer", forAudit(t.logout.Issuer))
	note("kubecast.io/ended-subject", forAudit(t.logout.Subject))
	note("kubecast.io/ended-session", forAudit(t.logout.Session))
	if read != nil {
		e.Verb = read.Verb
		e.Object = &audit.Object{
			Resource: forAudit(read.Resource), Namespace: forAudit(read.Namespace), Name: forAudit(read.Name),
			APIGroup: forAudit(read.Group), APIVersion: forAudit(read.Version), Subresource: read.Subresource,
		}
		note("authorization.k8s.io/decision", read.decision)
		note("kubecast.io/cluster", forAudit(read.Cluster))
		note("kubecast.io/visible", read.visible)
		note("kubecast.io/form", t.form)
		note("kubecast.io/watch", read.Watch)
		for annotation, value := range read.selected {
			note(annotation, value)
		}
	}
	t.log.Record(e)
}

// maxAudited bounds the logged part of one value that a client sent, in bytes.
const maxAudited = 512

// forAudit is a client's value in the form that may be logged: of bounded length, and without anything that looks
// like a token.
func forAudit(value string) string {
	value = request.Redact(value)
	if len(value) > maxAudited {
		value = value[:maxAudited] + "…"
	}
	return strings.Clone(value) // a part of a request would keep its whole header in memory
}
