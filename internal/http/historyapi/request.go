package historyapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/seal"
	"github.com/kubecast/kubecast/internal/jobs/store"
	"github.com/kubecast/kubecast/internal/visibility"
)

// historyRequest is what a request asks for.
type historyRequest struct {
	view   string
	pod    string       // whose log it is; "": the job's
	filter store.Filter // not yet restricted to what the caller may see
	me     bool         // the caller asks for their own jobs
	by     store.By     // of usage
	step   time.Duration
	limit  int
	after  token  // where the page before ended; zero at first
	digest string // of the parameters that must be the same on all pages
}

const (
	viewJobs        = "jobs"
	viewTransitions = "transitions"
	viewUsage       = "usage"
	viewEnds        = "ends"
	viewRuns        = "runs"
	viewSpec        = "spec"
	viewLog         = "log"

	defaultLimit = 100
	maxLimit     = 1000

	maxValues = 100 // of one parameter
	maxValue  = 256 // bytes: no name that is kept is longer
)

// me is the owner that means the caller.
const me = "me"

// parse reads a request. Username is the caller's.
func parse(query url.Values, t visibility.Target, username string, now time.Time) (q historyRequest, err error) {
	for name := range query {
		if !slices.Contains(parameters, name) {
			return q, reply.BadRequest("%s: there is no such parameter; there are %s", reply.Shortened(name), strings.Join(parameters, ", "))
		}
	}
	if q.view, err = viewOf(query); err != nil {
		return q, err
	}
	if q.isOfOneJob() {
		return q, q.job(query, t)
	}
	if query.Has("pod") {
		return q, reply.BadRequest("pod: has a meaning with view=log only")
	}
	if q.limit, err = limitOf(query); err != nil {
		return q, err
	}
	states, err := valuesOf("state", query["state"])
	if err != nil {
		return q, err
	}
	for _, state := range states {
		if !jobs.State(state).Valid() {
			return q, reply.BadRequest("state: %q is none; there are %v", state, jobs.States())
		}
		q.filter.States = append(q.filter.States, jobs.State(state))
	}
	if q.filter.Owners, err = valuesOf("owner", query["owner"]); err != nil {
		return q, err
	}
	for i, owner := range q.filter.Owners {
		if owner == me {
			q.me, q.filter.Owners[i] = true, username
		}
	}
	if q.filter.Queues, err = valuesOf("queue", query["queue"]); err != nil {
		return q, err
	}
	if q.filter.UIDs, err = valuesOf("uid", query["uid"]); err != nil {
		return q, err
	}
	if q.filter.Parents, err = valuesOf("parent", query["parent"]); err != nil {
		return q, err
	}
	if q.filter.Parents != nil && q.view != viewJobs {
		return q, reply.BadRequest("parent: has a meaning with view=jobs only")
	}
	if q.filter.Causes, err = valuesOf("cause", query["cause"]); err != nil {
		return q, err
	}
	if q.filter.Search, err = searchOf(query); err != nil {
		return q, err
	}
	if q.filter.Search != "" && q.view != viewJobs && q.view != viewTransitions {
		return q, reply.BadRequest("search: has a meaning with view=jobs and view=transitions only")
	}
	if q.filter.Since, err = timeOf("since", query["since"], now); err != nil {
		return q, err
	}
	if q.filter.Until, err = timeOf("until", query["until"], now); err != nil {
		return q, err
	}
	if (q.view == viewRuns || q.view == viewEnds) && len(states) > 0 {
		return q, reply.BadRequest("state: has no meaning with view=%s", q.view)
	}
	if (q.view == viewRuns || q.view == viewEnds) && len(q.filter.Causes) > 0 {
		return q, reply.BadRequest("cause: has no meaning with view=%s", q.view)
	}
	q.digest = digest(query, t)
	if text := query.Get("continue"); text != "" {
		if q.after, err = decode(text, q); err != nil {
			return q, err
		}
		q.filter.Since, q.filter.Until = q.after.Since, q.after.Until // as they were on the first page
	}
	return q, q.usage(query, now)
}

// parseStream reads what a stream asks for. The owner me stays as it is.
func parseStream(query url.Values, t visibility.Target, now time.Time) (q historyRequest, err error) {
	limit := defaultLimit
	switch text := query.Get("limit"); text {
	case "":
	case "0":
		limit = 0
	default:
		if limit, err = limitOf(query); err != nil {
			return q, err
		}
	}
	if query.Has("continue") {
		return q, reply.BadRequest("continue: has no meaning for an event stream")
	}
	query = maps.Clone(query)
	switch view := query.Get("view"); view {
	case "":
		query.Set("view", viewTransitions)
	case viewTransitions, viewRuns:
	default:
		return q, reply.BadRequest("view: %q is not streamed, only transitions and runs are", reply.Shortened(view))
	}
	query.Del("limit")
	q, err = parse(query, t, me, now)
	q.limit = limit
	return q, err
}

var parameters = []string{"view", "state", "owner", "queue", "uid", "pod", "cause", "parent", "search", "since", "until", "limit", "continue", "by", "step"}

// Parameters are those that may stand in a query.
func Parameters() []string { return slices.Clone(parameters) }

func viewOf(query url.Values) (string, error) {
	switch view := query.Get("view"); view {
	case "":
		return viewJobs, nil
	case viewJobs, viewTransitions, viewUsage, viewRuns, viewEnds, viewSpec, viewLog:
		return view, nil
	default:
		return "", reply.BadRequest("view: %q is none; there are jobs, transitions, runs, usage, ends, spec and log", reply.Shortened(view))
	}
}

func limitOf(query url.Values) (int, error) {
	text := query.Get("limit")
	if text == "" {
		return defaultLimit, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > maxLimit {
		return 0, reply.BadRequest("limit: %q is not a number from 1 to %d", reply.Shortened(text), maxLimit)
	}
	return limit, nil
}

// searchOf is what names have to contain, as they have it: no object's name has capitals.
func searchOf(query url.Values) (string, error) {
	given := query["search"]
	switch {
	case len(given) == 0:
		return "", nil
	case len(given) > 1:
		return "", reply.BadRequest("search: is given twice")
	case given[0] == "":
		return "", reply.BadRequest("search: has an empty value; leave it out to ask for all")
	case len(given[0]) > maxValue || !isText(given[0]):
		return "", reply.BadRequest("search: has a value that no name can contain")
	}
	return strings.ToLower(given[0]), nil
}

// valuesOf are the values of a parameter, separated by commas.
func valuesOf(name string, given []string) (values []string, err error) {
	for _, text := range given {
		for value := range strings.SplitSeq(text, ",") {
			switch {
			case value == "":
				return nil, reply.BadRequest("%s: has an empty value; leave it out to ask for all", name)
			case len(value) > maxValue || !isText(value):
				return nil, reply.BadRequest("%s: has a value that nothing can have", name)
			}
			values = append(values, value)
		}
	}
	if len(values) > maxValues {
		return nil, reply.BadRequest("%s: has more than %d values", name, maxValues)
	}
	return values, nil
}

// isText reports whether all databases take a text.
func isText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// timeOf reads a time, or how long before now it is; 0 if it is not given.
func timeOf(name string, given []string, now time.Time) (jobs.Time, error) {
	if len(given) == 0 {
		return 0, nil
	}
	text := given[0]
	at, err := time.Parse(time.RFC3339, text)
	if back, failed := time.ParseDuration(text); failed == nil && back >= 0 {
		at, err = now.Add(-back), nil
	}
	if err != nil || len(given) > 1 {
		return 0, reply.BadRequest("%s: %q is neither a time such as 2026-01-31T09:00:00Z nor how long ago it was, such as 24h", name, reply.Shortened(text))
	}
	return max(jobs.At(at), 1), nil // 0 would be no bound
}

// digest is the same for two questions if the pages of one may follow those of the other.
func digest(query url.Values, t visibility.Target) string {
	asked := url.Values{"": {t.Cluster, t.Qualified(), t.Namespace, t.Name}}
	for name, values := range query {
		if name != "limit" && name != "continue" {
			asked[name] = values
		}
	}
	sum := sha256.Sum256([]byte(asked.Encode()))
	return hex.EncodeToString(sum[:8])
}

// token is where a page ended.
type token struct {
	Question string    `json:"q"`
	Created  int64     `json:"c,omitempty"` // of jobs, and of pods
	UID      string    `json:"u,omitempty"`
	Looked   string    `json:"l,omitempty"` // of jobs in place of these two: where looking for more ended, sealed, since it is the time of a job that the caller may not see
	Seq      uint64    `json:"s,omitempty"` // of transitions: the number of the last one,
	Row      string    `json:"r,omitempty"` // or that sealed, for a caller who may not see all of the kind
	Since    jobs.Time `json:"-"`
	Until    jobs.Time `json:"-"`
	// From and To are Since and Until as numbers.
	From int64 `json:"f,omitempty"`
	To   int64 `json:"t,omitempty"`
}

// job is where a page of jobs begins.
func (t token) job(creations *seal.Numbers) (store.JobAfter, error) {
	if t.Looked == "" {
		return store.JobAfter{Created: jobs.Time(t.Created), UID: t.UID}, nil
	}
	created, ok := creations.Open(t.Looked)
	if !ok {
		return store.JobAfter{}, errGone()
	}
	return store.JobAfter{Created: jobs.Time(created)}, nil
}

// errGone refuses a token of which the place was not sealed here, or of another key.
func errGone() error {
	return reply.Expired("continue: the token does not count any more; begin with the first page", "")
}

// isOf reports whether a token has what one of a view has, and nothing else.
func (t token) isOf(view string) bool {
	numbered, looked := t.Seq != 0 || t.Row != "", t.Looked != ""
	switch view {
	case viewTransitions:
		return (t.Seq == 0) != (t.Row == "") && t.UID == "" && !looked
	case viewJobs:
		return (t.UID != "") != looked && !numbered
	}
	return t.UID != "" && !numbered && !looked
}

// goOn is the token with which the request goes on behind a place.
func (q historyRequest) goOn(at token) string {
	at.Question, at.From, at.To = q.digest, int64(q.filter.Since), int64(q.filter.Until)
	return base64.RawURLEncoding.EncodeToString([]byte(reply.MustJSON(at)))
}

func decode(text string, q historyRequest) (t token, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(raw, &t) != nil {
		return t, reply.BadRequest("continue: is no token of this gateway's")
	}
	if t.Question != q.digest || !t.isOf(q.view) || t.Looked != "" && q.filter.Search == "" || len(t.UID) > maxValue || !isText(t.UID) || int64(t.Seq) < 0 {
		return t, reply.BadRequest("continue: is a token of another question")
	}
	t.Since, t.Until = jobs.Time(t.From), jobs.Time(t.To)
	return t, nil
}
