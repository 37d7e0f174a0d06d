package logstream

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/conn"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
)

// Views of a log that are answered at once, and not followed.
const (
	viewLines  = "lines"
	viewSearch = "search"
)

// What bounds a question: it reads logs from their beginning, since a node has no other order.
const (
	maxRead      = 64 << 20 // bytes of all logs
	maxAnswer    = 4 << 20  // bytes
	maxItems     = 2000     // of one answer
	maxContext   = 20       // on each side of a match
	maxScanned   = 8        // containers
	answerWithin = 15 * time.Second

	defaultItems   = 1000
	defaultMatches = 200
)

// ask is what a question wants to know of the logs that a question of streams selects.
type ask struct {
	logRequest
	view       string
	from       int       // the first item that counts
	limit      int       // of items, or of matches
	at         time.Time // whose place is wanted; zero: none
	context    int       // items beside a match
	ignoreCase bool
}

// askParameters may stand beside those that select containers.
var askParameters = []string{"view", "from", "limit", "time", "context", "ignoreCase"}

// parseAsk reads a question. Its errors are those of requests.
func parseAsk(path string, query url.Values) (a ask, err error) {
	rest := url.Values{}
	given := map[string]string{}
	for name, values := range query {
		rest[name] = values
	}
	for _, name := range askParameters {
		if len(query[name]) > 1 {
			return a, reply.BadRequest("%s: given more than once", name)
		}
		given[name] = query.Get(name)
		rest.Del(name)
	}
	for _, name := range []string{"tailLines", "sinceTime", "sinceSeconds", "follow"} {
		if rest.Has(name) {
			return a, reply.BadRequest("%s: there is no such parameter of a view", name)
		}
	}
	if a.logRequest, err = parse(path, rest); err != nil {
		return a, err
	}
	number := func(name string, otherwise, most int) (n int) {
		if n = otherwise; given[name] == "" || err != nil {
			return n
		}
		var wrong error
		if n, wrong = strconv.Atoi(given[name]); wrong != nil || n < 0 || n > most {
			err = reply.BadRequest("%s: %q is not a number from 0 to %d", name, reply.Shortened(given[name]), most)
		}
		return n
	}
	a.view = given["view"]
	a.from = number("from", 0, 1<<31-1)
	a.context = number("context", 0, maxContext)
	for _, name := range map[string][]string{viewLines: {"search", "ignoreCase", "context"}, viewSearch: {"time"}}[a.view] {
		if query.Has(name) {
			return a, reply.BadRequest("%s: there is no such parameter of view=%s", name, a.view)
		}
	}
	switch a.view {
	case viewLines:
		a.limit = number("limit", defaultItems, maxItems)
	case viewSearch:
		a.limit = number("limit", defaultMatches, maxItems)
		if a.search == "" && err == nil {
			err = reply.BadRequest("search: what is looked for has to be given")
		}
	default:
		return a, reply.BadRequest("view: %q is neither %s nor %s", reply.Shortened(a.view), viewLines, viewSearch)
	}
	switch text := given["ignoreCase"]; text {
	case "", "false":
	case "true":
		a.ignoreCase, a.search = true, strings.ToLower(a.search)
	default:
		return a, reply.BadRequest("ignoreCase: %q is neither true nor false", reply.Shortened(text))
	}
	if text := given["time"]; text != "" && err == nil {
		if a.at, err = time.Parse(time.RFC3339Nano, text); err != nil {
			err = reply.BadRequest("time: %q is not a time such as 2026-01-31T09:00:00.123Z", reply.Shortened(text))
		}
	}
	return a, err
}

// Answer answers a question about logs: a stretch of their lines, or which of them contain a text.
// It reads them while its caller waits, and keeps nothing.
func (h *Handler) Answer(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	query, err := request.Query(r)
	if err != nil {
		return err
	}
	a, err := parseAsk(r.URL.Path, query)
	if err != nil {
		return err
	}
	release, err := h.opts.Turns.Take(r.Context(), id.QuotaOwner())
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
	defer cancel()
	opened, err := h.open(ctx, id, "", a.logRequest, true)
	if err != nil {
		return err
	}
	s := opened.(*source)
	defer s.Close()
	all, err := s.present(ctx)
	if err != nil {
		return err
	}
	for range all {
		leave, err := h.opts.Take(id.QuotaOwner())
		if err != nil {
			return err
		}
		defer leave()
	}
	m := newMerge(ctx, upstream{s.in.Kinds.Cluster()}, s.in.Kinds.Cluster().Name(), all)
	defer m.close()
	var body any
	if a.view == viewSearch {
		body = a.find(m)
	} else {
		body = a.read(m)
	}
	if r.Context().Err() != nil {
		return r.Context().Err()
	}
	return h.send(w, r, body)
}

// sentAtOnce is how much of an answer is sent under one deadline, in bytes.
const sentAtOnce = 16 << 10

// send sends an answer, for which a slow client may need long.
func (h *Handler) send(w http.ResponseWriter, r *http.Request, body any) error {
	text := reply.MustJSON(body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	to := conn.NewPatientWriter(w, r, h.opts.WriteTimeout)
	for len(text) > 0 {
		n := min(len(text), sentAtOnce)
		if _, err := to.Write([]byte(text[:n])); err != nil {
			return err // what was sent does not look complete
		}
		text = text[n:]
	}
	return nil
}

// present are the containers of which there is a log now.
func (s *source) present(ctx context.Context) (all []*container, err error) {
	if err := s.Ready(ctx); err != nil {
		return nil, reply.Unavailable("the pods are not known yet", time.Second, err)
	}
	found := map[string]*container{}
	for o := range s.visibleTarget().List(s.in.Store.Snapshot(), s.selector, "", "") {
		if !s.selects(s.match, o) || !s.Visible.Sees(o) {
			continue
		}
		if s.owners != nil {
			yes, _, unread := s.owners.belongs(ctx, o)
			if unread != nil {
				return nil, reply.Unavailable("it is not known for now which pods these are", time.Second, unread.Err)
			}
			if !yes {
				continue
			}
		}
		for _, status := range statuses(o) {
			if s.wants(status.container) && len(status.runs) > 0 {
				c := newContainer(o, status)
				found[c.key] = c
			}
		}
		if len(found) > maxScanned {
			return nil, &reply.Error{
				Code: http.StatusUnprocessableEntity, Reason: "Invalid",
				Message: fmt.Sprintf("this selects more than the %d containers whose logs one question may read: ask for fewer pods, or for one container of each", maxScanned),
			}
		}
	}
	return sorted(found), nil
}

// linesAnswer is a stretch of all items. The place of an item is how many are before it.
type linesAnswer struct {
	First    string `json:"first,omitempty"`   // the time of the first line that was looked at; another one: lines have been rotated away, and the others have other places
	From     int    `json:"from"`              // the place of the first of the items
	Items    []item `json:"items"`             //
	Count    int    `json:"count"`             // how many items were looked at
	Index    *int   `json:"index,omitempty"`   // the place of the first line that is not before the time that was asked for
	Complete bool   `json:"complete"`          // all were looked at
	Stopped  string `json:"stopped,omitempty"` // why not all that was asked for is told
}

// match is a line that contains what is looked for.
type match struct {
	Index  int    `json:"index"`
	Item   item   `json:"item"`
	Before []item `json:"before,omitempty"`
	After  []item `json:"after,omitempty"`
}

type searchAnswer struct {
	First    string   `json:"first,omitempty"`
	Matches  []*match `json:"matches"`
	Count    int      `json:"count"`
	Complete bool     `json:"complete"`
	Stopped  string   `json:"stopped,omitempty"`
}

// read tells a stretch of items.
func (a *ask) read(m *merge) linesAnswer {
	answer := linesAnswer{From: a.from, Items: []item{}}
	size := 0
	for {
		placed := a.at.IsZero() || answer.Index != nil
		if placed && (len(answer.Items) >= a.limit) {
			break
		}
		next, ok := m.next()
		if !ok {
			break
		}
		if !placed && next.isLine() && !next.sorted.Before(a.at) {
			n := answer.Count
			answer.Index = &n
		}
		if answer.Count++; answer.Count <= a.from || len(answer.Items) >= a.limit {
			continue
		}
		if size += next.size(); size > maxAnswer {
			answer.Count--
			m.stopped = "size"
			break
		}
		answer.Items = append(answer.Items, *next)
	}
	answer.First, answer.Complete, answer.Stopped = m.first, m.complete, m.stopped
	return answer
}

// find tells the lines that contain a text.
func (a *ask) find(m *merge) searchAnswer {
	answer := searchAnswer{Matches: []*match{}}
	size := 0
	var before []item
	var open []*match // whose context goes on
	unread := false
	for len(answer.Matches) < a.limit || len(open) > 0 {
		next, ok := m.next()
		if !ok {
			break
		}
		place := answer.Count
		answer.Count++
		unread = unread || next.Reason == eventstream.Unavailable.String()
		still := open[:0]
		for _, of := range open {
			size += next.size()
			if of.After = append(of.After, *next); len(of.After) < a.context {
				still = append(still, of)
			}
		}
		open = still
		if place >= a.from && len(answer.Matches) < a.limit && next.isLine() && a.contains(next.Text) {
			found := &match{Index: place, Item: *next, Before: slices.Clone(before[max(0, len(before)-a.context):])}
			for _, one := range found.Before {
				size += one.size()
			}
			size += next.size()
			answer.Matches = append(answer.Matches, found)
			if a.context > 0 {
				open = append(open, found)
			}
		}
		if a.context > 0 {
			if before = append(before, *next); len(before) > 8*a.context { // a copy for each line would take most of the time
				before = append(before[:0], before[len(before)-a.context:]...)
			}
		}
		if size > maxAnswer {
			m.stopped = "size"
			break
		}
	}
	answer.First, answer.Complete, answer.Stopped = m.first, m.complete, m.stopped
	if unread && m.complete { // no item says so here
		answer.Complete, answer.Stopped = false, "unavailable"
	}
	return answer
}

// contains reports whether a line has the text, whatever colours it has.
func (a *ask) contains(text string) bool {
	if strings.IndexByte(text, '\x1b') >= 0 {
		text = withoutColours(text)
	}
	if a.ignoreCase {
		text = strings.ToLower(text)
	}
	return strings.Contains(text, a.search)
}

// withoutColours leaves the control sequences out by which a terminal colours a text (ECMA-48, SGR).
func withoutColours(text string) string {
	var kept strings.Builder
	for {
		at := strings.Index(text, "\x1b[")
		if at < 0 {
			kept.WriteString(text)
			return kept.String()
		}
		kept.WriteString(text[:at])
		end := at + len("\x1b[")
		for end < len(text) && text[end] >= 0x20 && text[end] < 0x40 {
			end++
		}
		if end < len(text) && text[end] >= 0x40 && text[end] < utf8.RuneSelf {
			end++
		}
		text = text[end:]
	}
}
