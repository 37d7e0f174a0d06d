package notifications

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/ratelimit"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/inbox"
)

// Options configure a Handler; all are required unless they say otherwise.
type Options struct {
	Inbox  *inbox.Inbox // nil: no history is kept, so nobody is told anything
	Access *access.Access
	Kinds  []string // whose history is kept, as resource[.group]
	// SeeTheirOwn says whether callers are told of their own jobs without any other permission.
	SeeTheirOwn bool
	Turns       *ratelimit.Turns // of questions to the database
}

// Handler answers requests for notifications.
type Handler struct{ opts Options }

// New returns a Handler.
func New(opts Options) *Handler { return &Handler{opts} }

// The addresses.
const (
	Path         = "/notifications"
	ReadPath     = Path + "/read"
	SettingsPath = Path + "/settings"
)

// Allows is what the header Allow says of a path; "" if the path is not one of these that take more than GET.
func Allows(path string) string {
	switch path {
	case ReadPath:
		return "POST, OPTIONS"
	case SettingsPath:
		return "GET, HEAD, PUT, OPTIONS"
	}
	return ""
}

// awayFor is after how long clients may ask again while the history's database is away.
const awayFor = 5 * time.Second

// answer answers one request of a caller who has an inbox, in the caller's turn.
func (h *Handler) answer(r *http.Request, id auth.Identity, verb string, do func() error) error {
	err := h.permitted(id)
	if err == nil {
		err = h.inTurn(r.Context(), id, do)
	}
	switch {
	case errors.Is(err, inbox.ErrRefused):
		err = reply.Unavailable("the notifications' database has the schema of another release of the gateway, and this one cannot use it", awayFor, err)
	case errors.Is(err, inbox.ErrAway):
		err = reply.Unavailable("the notifications' database is away; try again in a moment", awayFor, err)
	}
	auditrecord.Of(r.Context()).Decided(read(verb), err)
	return err
}

func read(verb string) auditrecord.Read {
	return auditrecord.Read{Group: "kubecast.io", Resource: "notifications", Verb: verb}
}

func (h *Handler) permitted(id auth.Identity) error {
	switch {
	case h.opts.Inbox == nil:
		return reply.NotFoundFor(reply.ReasonNotEnabled, "the gateway keeps no history, and so has no notifications")
	case id.Anonymous, id.Username == "", id.Cluster != "":
		return &reply.Error{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "only users who signed in have notifications, and not the service accounts of a cluster"}
	}
	return nil
}

func (h *Handler) inTurn(ctx context.Context, id auth.Identity, do func() error) error {
	release, err := h.opts.Turns.Take(ctx, id.QuotaOwner())
	if err != nil {
		return err
	}
	defer release()
	return do()
}

// list is a page of notifications.
type list struct {
	Items    []inbox.Notification `json:"items"`
	Unread   int                  `json:"unread"`
	Continue string               `json:"continue"`
}

// List answers a page of the caller's notifications, the newest first.
func (h *Handler) List(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	return h.answer(r, id, "list", func() error {
		if reply.Negotiate(r.Header) != reply.FormJSON {
			return reply.NotAcceptable("notifications are answered as application/json or text/event-stream")
		}
		query, err := request.Query(r)
		if err != nil {
			return err
		}
		q, err := parse(query)
		if err != nil {
			return err
		}
		visible, err := h.see(r.Context(), id)
		if err != nil {
			return err
		}
		sees, err := h.seesOf(r.Context(), visible)
		if err != nil {
			return err
		}
		found, next, err := h.opts.Inbox.Page(r.Context(), id.Username, sees, q.below, q.unread, q.limit)
		if err != nil {
			return err
		}
		l := list{Items: append([]inbox.Notification{}, found...)}
		if l.Unread, err = h.opts.Inbox.Unread(r.Context(), id.Username, sees); err != nil {
			return err
		}
		if next > 0 {
			l.Continue = q.goOn(next)
		}
		return send(w, l)
	})
}

func send(w http.ResponseWriter, body any) error {
	w.Header().Set("Cache-Control", "no-store")
	return reply.JSON(w, body)
}

// inboxRequest is what a list asks for.
type inboxRequest struct {
	unread bool
	limit  int
	below  uint64 // 0: all
}

const (
	defaultLimit = 100
	maxLimit     = 1000
)

// Parameters are those that may stand in a query.
func Parameters() []string { return []string{"unread", "limit", "continue"} }

func parse(query url.Values) (q inboxRequest, err error) {
	for name, values := range query {
		switch {
		case !slices.Contains(Parameters(), name):
			return q, reply.BadRequest("%s: there is no such parameter; there are %s", reply.Shortened(name), strings.Join(Parameters(), ", "))
		case len(values) > 1:
			return q, reply.BadRequest("%s: given more than once", name)
		}
	}
	switch text := query.Get("unread"); text {
	case "", "false":
	case "true":
		q.unread = true
	default:
		return q, reply.BadRequest("unread: %q is neither true nor false", reply.Shortened(text))
	}
	if q.limit, err = limitOf(query, 1); err != nil {
		return q, err
	}
	if text := query.Get("continue"); text != "" {
		raw, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			return q, reply.BadRequest("continue: is no token of this gateway's")
		}
		of, below, _ := strings.Cut(string(raw), "-")
		if q.below, err = strconv.ParseUint(below, 10, 63); err != nil || of != q.name() || q.below == 0 {
			return q, reply.BadRequest("continue: is a token of another question")
		}
	}
	return q, nil
}

func limitOf(query url.Values, least int) (int, error) {
	text := query.Get("limit")
	if text == "" {
		return defaultLimit, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < least || limit > maxLimit {
		return 0, reply.BadRequest("limit: %q is not a number from %d to %d", reply.Shortened(text), least, maxLimit)
	}
	return limit, nil
}

func (q inboxRequest) name() string {
	if q.unread {
		return "unread"
	}
	return "all"
}

// goOn is the token with which the request goes on below a number.
func (q inboxRequest) goOn(below uint64) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s-%d", q.name(), below))
}

// maxIDs is how many notifications one request marks by their ids.
const maxIDs = 500

// MarkRead answers a POST that says what the caller has read.
func (h *Handler) MarkRead(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	return h.answer(r, id, "update", func() error {
		var body struct {
			UpTo *string   `json:"upTo"`
			IDs  *[]string `json:"ids"`
		}
		if err := decode(r, &body); err != nil {
			return err
		}
		if (body.UpTo == nil) == (body.IDs == nil) {
			return reply.BadRequest(`the body is either {"upTo":"ID"} or {"ids":["ID"]}`)
		}
		var upTo uint64
		var ids []uint64
		var err error
		if body.UpTo != nil {
			if upTo, err = numberOf("upTo", *body.UpTo); err != nil {
				return err
			}
		} else {
			if len(*body.IDs) > maxIDs {
				return reply.BadRequest("ids: are more than %d", maxIDs)
			}
			for _, text := range *body.IDs {
				n, err := numberOf("ids", text)
				if err != nil {
					return err
				}
				ids = append(ids, n)
			}
		}
		visible, err := h.see(r.Context(), id)
		if err != nil {
			return err
		}
		sees, err := h.seesOf(r.Context(), visible)
		if err != nil {
			return err
		}
		if err := h.opts.Inbox.Read(r.Context(), id.Username, sees, upTo, ids); err != nil {
			return err
		}
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
}

func numberOf(key, text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n == 0 {
		return 0, reply.BadRequest("%s: %q is no notification's id", key, reply.Shortened(text))
	}
	return n, nil
}

// settings are those of a user, as they are told and given.
type settings struct {
	States      []jobs.State `json:"states"`
	Digest      string       `json:"digest"`
	PausedUntil jobs.Time    `json:"pausedUntil"`
}

func tell(w http.ResponseWriter, s inbox.Settings) error {
	told := settings{States: append([]jobs.State{}, s.States...), Digest: durationText(s.Digest), PausedUntil: s.PausedUntil}
	if told.PausedUntil < jobs.At(time.Now()) {
		told.PausedUntil = 0
	}
	return send(w, told)
}

// durationText is a duration without the zeros that Go writes: 5m and not 5m0s; none is 0s.
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Settings answers what the caller wants to be told.
func (h *Handler) Settings(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	return h.answer(r, id, "get", func() error {
		s, err := h.opts.Inbox.Settings(r.Context(), id.Username)
		if err != nil {
			return err
		}
		return tell(w, s)
	})
}

// maxDigest is for how long notifications may be gathered.
const maxDigest = 24 * time.Hour

// ChangeSettings answers a PUT of settings. What it does not name becomes what the operator has chosen for all.
func (h *Handler) ChangeSettings(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	return h.answer(r, id, "update", func() error {
		var body struct {
			States      []jobs.State `json:"states"`
			Digest      *string      `json:"digest"`
			PausedUntil jobs.Time    `json:"pausedUntil"`
		}
		if err := decode(r, &body); err != nil {
			return err
		}
		choice := inbox.Choice{PausedUntil: max(body.PausedUntil, 0)}
		if body.States != nil {
			choice.States = []jobs.State{}
		}
		for _, state := range body.States {
			switch {
			case !state.Valid():
				return reply.BadRequest("states: %q is none; there are %v", reply.Shortened(string(state)), jobs.States())
			case !slices.Contains(choice.States, state):
				choice.States = append(choice.States, state)
			}
		}
		if body.Digest != nil {
			d, err := time.ParseDuration(*body.Digest)
			if err != nil || d < 0 || d > maxDigest {
				return reply.BadRequest("digest: %q is not a time from 0s to %s, such as 5m", reply.Shortened(*body.Digest), durationText(maxDigest))
			}
			choice.Digest = &d
		}
		s, err := h.opts.Inbox.Choose(r.Context(), id.Username, choice)
		if err != nil {
			return err
		}
		return tell(w, s)
	})
}

// decode reads a request's body, which is one JSON object without unknown keys.
func decode(r *http.Request, into any) error {
	media, _, err := mime.ParseMediaType(cmp.Or(r.Header.Get("Content-Type"), "application/json"))
	if err != nil || media != "application/json" {
		return &reply.Error{Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType, Message: "the body is application/json"}
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return reply.Unreadable(err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil || strings.TrimSpace(string(text)) == "null" {
		return reply.BadRequest("the body is not what is expected here: %s", reply.Shortened(fmt.Sprint(err)))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return reply.BadRequest("the body is more than one JSON object")
	}
	return nil
}
