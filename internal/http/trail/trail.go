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

// Trail is what the audit log will say of a request. A stream takes it along. All methods may be called on a nil one,
// which is that of a gateway without an audit log, by several at once.
type Trail struct {
	log       *audit.Log
	request   string // its id
	path      string
	address   string
	userAgent string
	received  time.Time

	mu         sync.Mutex // the watches of a stream are opened side by side
	user       *audit.User
	credential string
	session    string          // as its issuer names it
	logout     auth.Revocation // by whom the request is sent, who is none of the users
	form       string
	query      url.Values // nil once the stream has begun
	reads      []*decided
	streams    bool // the stream tells the rest
}

// Read is one thing that is asked for: what a Kubernetes path names, and what is to be done to it.
type Read struct {
	Cluster   string // "" for the default one
	Group     string
	Version   string
	Resource  string
	Namespace string
	Name      string
	Verb      string
	Partly    bool   // the caller is shown a part of it
	Watch     string // its name on a stream of several
}

// decided is what came of a read.
type decided struct {
	Read
	decision string // "" if it was not decided
	visible  string // what of it is shown
	code     int
	selected map[string]string
}

type key struct{}

// Begin gives a request a trail, which lies in its context.
func Begin(log *audit.Log, r *http.Request) (*Trail, *http.Request) {
	t := &Trail{
		log: log, request: request.ID(r), path: strings.Clone(request.PathForLog(r)), address: strings.Clone(request.Address(r)),
		userAgent: forAudit(r.UserAgent()), received: time.Now(),
	}
	return t, r.WithContext(context.WithValue(r.Context(), key{}, t))
}

// Of is the trail of a request, by its context; nil if it has none.
func Of(ctx context.Context) *Trail {
	t, _ := ctx.Value(key{}).(*Trail)
	return t
}

// Credentials by which callers are known.
const (
	ByToken   = "token"
	BySession = "session"
	ByTicket  = "ticket"
	ByLogin   = "login" // at the provider, now
)

// Is says who sent the request.
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

// Ends says whose session ends by the request, which is sent by the provider.
func (t *Trail) Ends(ended auth.Revocation) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.logout = ended
}

// By says by which credential somebody tries to be known.
func (t *Trail) By(credential string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.credential = credential
}

// Asked says in which form a Kubernetes path was asked for, and with what query.
func (t *Trail) Asked(form reply.Form, query url.Values) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.form, t.query = form.String(), query
}

// Decided says what was decided of one thing that was asked for: it is shown, or there is an error.
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
	t.reads = append(t.reads, d)
}

func shown(read Read) *decided {
	d := &decided{Read: read, decision: "allow", visible: "all", code: http.StatusOK}
	if read.Partly {
		d.visible = "part"
	}
	return d
}

// selectors are the parameters that say what of a kind is read, and the annotations that tell them.
var selectors = map[string]string{
	"labelSelector": "kubecast.io/label-selector", "fieldSelector": "kubecast.io/field-selector", "search": "kubecast.io/search",
}

// selectedOf is what of a kind was selected, by annotation. What was asked of Secrets is withheld: somebody may have guessed at what they say.
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

// Answered tells what came of a request, unless a stream goes on with it. What reads no objects and was not refused is not
// told, but for signing in and out. If nothing was decided, named says what the path names, if that is anything.
func (t *Trail) Answered(method string, code int, signsIn bool, named func() (Read, bool)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.streams {
		return
	}
	if code == 0 {
		code = http.StatusOK // net/http's
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

// Began tells that a stream has begun, of so many watches.
func (t *Trail) Began(watches []Read) {
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
	t.query = nil
}

// Ended tells that a stream has ended, and why.
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

// tell puts one line into the log. The lock is held.
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
			APIGroup: forAudit(read.Group), APIVersion: forAudit(read.Version),
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

// maxAudited bounds what a client can have written into the log by one of its values.
const maxAudited = 512

// forAudit is a client's value as it may be kept: of bounded length, and without what looks like a token.
func forAudit(value string) string {
	value = request.Redact(value)
	if len(value) > maxAudited {
		value = value[:maxAudited] + "…"
	}
	return strings.Clone(value) // a request's parts keep all of its header in memory
}
