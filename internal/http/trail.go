package http

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
	"github.com/kubecast/kubecast/internal/config"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
)

// trail is what the audit log will say of a request: who sent it, by which credential, and what of it was decided. A stream
// takes it along. All methods may be called on a nil one, which is that of a gateway without an audit log.
type trail struct {
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
	reads      []*readTrail
	streams    bool // the stream tells the rest
}

// readTrail is one thing that was asked for.
type readTrail struct {
	target
	verb     string
	decision string // "" if it was not decided
	visible  string // what of it is shown
	code     int
	watch    string // its name on a stream of several
	selected map[string]string
}

type trailKey struct{}

// audited gives each request a trail, and tells it once the request is answered.
func (s *Server) audited(next http.Handler) http.Handler {
	if s.opts.Audit == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := &trail{
			log: s.opts.Audit, request: request.ID(r), path: strings.Clone(request.PathForLog(r)), address: strings.Clone(request.Address(r)),
			userAgent: forAudit(r.UserAgent()), received: time.Now(),
		}
		tracked := &statusWriter{ResponseWriter: w}
		defer func() { t.answered(r, tracked.code) }()
		next.ServeHTTP(tracked, r.WithContext(context.WithValue(r.Context(), trailKey{}, t)))
	})
}

func trailOf(ctx context.Context) *trail {
	t, _ := ctx.Value(trailKey{}).(*trail)
	return t
}

// Credentials by which callers are known.
const (
	byToken   = "token"
	bySession = "session"
	byTicket  = "ticket"
	byLogin   = "login" // at the provider, now
)

// is says who sent the request.
func (t *trail) is(id auth.Identity, credential string) {
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

// ends says whose session ends by the request, which is sent by the provider.
func (t *trail) ends(ended auth.Revocation) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.logout = ended
}

// by says by which credential somebody tries to be known.
func (t *trail) by(credential string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.credential = credential
}

// asked says in which form a Kubernetes path was asked for, and with what query.
func (t *trail) asked(form reply.Form, query url.Values) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.form, t.query = form.String(), query
}

// decided says what was decided of one thing that was asked for; s is what of it is shown.
func (t *trail) decided(what target, verb string, s *sight, err error) {
	if t == nil {
		return
	}
	read := &readTrail{target: what, verb: verb, decision: "allow", visible: "all", code: http.StatusOK}
	if s != nil {
		read.visible = "part"
	}
	if err != nil {
		reply := reply.To(err)
		read.decision, read.visible, read.code = "", "", reply.Code
		if reply.Code == http.StatusForbidden {
			read.decision = "forbid"
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reads = append(t.reads, read)
}

// selectors are the parameters that say what of a kind is read, and the annotations that tell them.
var selectors = map[string]string{
	"labelSelector": "kubecast.io/label-selector", "fieldSelector": "kubecast.io/field-selector", "search": "kubecast.io/search",
}

// selectedOf is what of a kind was selected, by annotation. What was asked of Secrets is withheld: somebody may have guessed at what they say.
func (t *trail) selectedOf(read *readTrail) map[string]string {
	own := url.Values{}
	if read.watch != "" {
		if address, err := url.Parse(t.query.Get(read.watch)); err == nil {
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
		case read.group == "" && read.resource == "secrets":
			selected[annotation] = "[withheld]"
		default:
			selected[annotation] = forAudit(value)
		}
	}
	return selected
}

// answered tells what came of a request, unless a stream goes on with it. What reads no objects and was not refused is not
// told, but for signing in and out.
func (t *trail) answered(r *http.Request, code int) {
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
	signsIn := isSignIn(r.URL.Path) && r.Method == http.MethodPost || r.URL.Path == config.CallbackPath
	if !refused && !signsIn {
		return
	}
	var read *readTrail
	if what, ok := parseTarget(r.URL.Path); ok {
		read = &readTrail{target: what, verb: "list"}
		switch {
		case reply.Negotiate(r.Header) == reply.FormEvents || reply.WantsWatch(r.URL.Query()):
			read.verb = "watch"
		case what.name != "":
			read.verb = "get"
		}
	}
	t.tell(audit.StageComplete, read, code, map[string]string{"method": r.Method})
}

// began tells that a stream has begun.
func (t *trail) began(watches []*watch) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streams = true
	if len(watches) > 0 {
		t.reads = t.reads[:0]
	}
	for _, w := range watches {
		read := &readTrail{target: w.target, verb: "watch", decision: "allow", visible: "all", code: http.StatusOK, watch: w.name}
		if w.sight != nil {
			read.visible = "part"
		}
		read.selected = t.selectedOf(read)
		t.reads = append(t.reads, read)
		t.tell(audit.StageStarted, read, http.StatusOK, nil)
	}
	t.query = nil
}

// ended tells that a stream has ended, and why.
func (t *trail) ended(reason string, events int64) {
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
func (t *trail) tell(stage string, read *readTrail, code int, more map[string]string) {
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
		e.Verb = read.verb
		e.Object = &audit.Object{
			Resource: forAudit(read.resource), Namespace: forAudit(read.namespace), Name: forAudit(read.name),
			APIGroup: forAudit(read.group), APIVersion: forAudit(read.version),
		}
		note("authorization.k8s.io/decision", read.decision)
		note("kubecast.io/cluster", forAudit(read.cluster))
		note("kubecast.io/visible", read.visible)
		note("kubecast.io/form", t.form)
		note("kubecast.io/watch", read.watch)
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
