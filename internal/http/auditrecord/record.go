package auditrecord

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

// Record is what the audit log will say of a request. A stream keeps it until its end. Methods may be called
// concurrently, and on a nil Record, which a gateway without an audit log has.
type Record struct {
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

// Begin puts a new record into a request's context.
func Begin(log *audit.Log, r *http.Request) (*Record, *http.Request) {
	record := &Record{
		log: log, request: request.ID(r), path: strings.Clone(request.PathForLog(r)), address: strings.Clone(request.Address(r)),
		userAgent: forAudit(r.UserAgent()), received: time.Now(),
	}
	return record, r.WithContext(context.WithValue(r.Context(), key{}, record))
}

// Of returns the record in a request's context; nil if there is none.
func Of(ctx context.Context) *Record {
	r, _ := ctx.Value(key{}).(*Record)
	return r
}

// The credentials by which callers are identified.
const (
	ByToken   = "token"
	BySession = "session"
	ByTicket  = "ticket"
	ByLogin   = "login" // by this request, at the provider
)

// Is records who sent the request.
func (r *Record) Is(id auth.Identity, credential string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if credential != "" {
		r.credential = credential
	}
	r.user = &audit.User{Username: id.Username, Groups: id.Groups}
	r.session = forAudit(id.Session)
}

// Ends records whose session the request ends; the provider sends such a request.
func (r *Record) Ends(ended auth.Revocation) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logout = ended
}

// By records by which credential the caller tries to be identified.
func (r *Record) By(credential string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.credential = credential
}

// Asked records the form and the query with which a Kubernetes path was asked for.
func (r *Record) Asked(form reply.Form, query url.Values) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.form, r.query = form.String(), query
}

// Decided records the decision on one thing that was asked for: it is shown, or refused with an error.
func (r *Record) Decided(read Read, err error) {
	if r == nil {
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
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.streams && err == nil {
		return // it joins
	}
	r.reads = append(r.reads, d)
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
func (r *Record) selectedOf(read *decided) map[string]string {
	own := url.Values{}
	if read.Watch != "" {
		if address, err := url.Parse(r.query.Get(read.Watch)); err == nil {
			own = address.Query()
		}
	}
	selected := map[string]string{}
	for parameter, annotation := range selectors {
		value := r.query.Get(parameter)
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
func (r *Record) Answered(method string, code int, signsIn bool, named func() (Read, bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.streams {
		return
	}
	if code == 0 {
		code = http.StatusOK // net/http's default
	}
	refused := slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests}, code)
	if len(r.reads) > 0 {
		for _, read := range r.reads {
			read.selected = r.selectedOf(read)
			r.tell(audit.StageComplete, read, max(code, read.code), nil)
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
	r.tell(audit.StageComplete, read, code, map[string]string{"method": method})
}

// Began logs that a stream with these watches has begun. More says that others may join.
func (r *Record) Began(watches []Read, more bool) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.streams = true
	if len(watches) > 0 {
		r.reads = r.reads[:0]
	}
	for _, watch := range watches {
		read := shown(watch)
		read.selected = r.selectedOf(read)
		r.reads = append(r.reads, read)
		r.tell(audit.StageStarted, read, http.StatusOK, nil)
	}
	if !more {
		r.query = nil
	}
}

// Joined logs that a stream goes on with one more watch, which could not be opened when it began.
func (r *Record) Joined(watch Read) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	read := shown(watch)
	read.selected = r.selectedOf(read)
	r.reads = append(slices.DeleteFunc(r.reads, func(d *decided) bool { return d.Watch == watch.Watch }), read)
	r.tell(audit.StageStarted, read, http.StatusOK, nil)
}

// Ended logs that a stream has ended, and why.
func (r *Record) Ended(reason string, events int64) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	more := map[string]string{"kubecast.io/ended": reason, "kubecast.io/events": strconv.FormatInt(events, 10)}
	if len(r.reads) == 0 { // it never had watches
		r.tell(audit.StageComplete, nil, http.StatusOK, more)
	}
	for _, read := range r.reads {
		r.tell(audit.StageComplete, read, read.code, more)
	}
}

// tell puts one line into the log. The caller holds the lock.
func (r *Record) tell(stage string, read *decided, code int, more map[string]string) {
	e := &audit.Event{
		RequestID: r.request, Stage: stage, Path: r.path, User: r.user, Address: r.address, UserAgent: r.userAgent,
		Code: code, Received: r.received, At: time.Now(), Annotations: map[string]string{},
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
	note("kubecast.io/credential", r.credential)
	note("kubecast.io/session", r.session)
	note("kubecast.io/ended-issuer", forAudit(r.logout.Issuer))
	note("kubecast.io/ended-subject", forAudit(r.logout.Subject))
	note("kubecast.io/ended-session", forAudit(r.logout.Session))
	if read != nil {
		e.Verb = read.Verb
		e.Object = &audit.Object{
			Resource: forAudit(read.Resource), Namespace: forAudit(read.Namespace), Name: forAudit(read.Name),
			APIGroup: forAudit(read.Group), APIVersion: forAudit(read.Version), Subresource: read.Subresource,
		}
		note("authorization.k8s.io/decision", read.decision)
		note("kubecast.io/cluster", forAudit(read.Cluster))
		note("kubecast.io/visible", read.visible)
		note("kubecast.io/form", r.form)
		note("kubecast.io/watch", read.Watch)
		for annotation, value := range read.selected {
			note(annotation, value)
		}
	}
	r.log.Record(e)
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
