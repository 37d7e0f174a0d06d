package http

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/http/logstream"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
	"github.com/kubecast/kubecast/internal/http/rest"
	"github.com/kubecast/kubecast/internal/visibility"
)

// resource answers a Kubernetes path: an object, a list, a stream of either, or a log.
func (s *Server) resource(w http.ResponseWriter, r *http.Request) error {
	id, err := s.signin.Caller(r)
	if err != nil && reply.Negotiate(r.Header) == reply.FormEvents {
		return s.streams.Refuse(w, r, err)
	}
	if err != nil {
		return err
	}
	if d, ok := rest.ParseDocument(r.URL.Path); ok {
		if err := checkTimeout(r); err != nil {
			return err
		}
		return s.rest.Document(w, r, id, d)
	}
	if t, ok := visibility.ParseLog(r.URL.Path); ok {
		return s.logs.Answer(w, r, id, t)
	}
	if p, ok := rest.ParsePending(r.URL.Path); ok && id.Gateway {
		return s.rest.Pending(w, r, id, p)
	}
	t, ok := visibility.Parse(r.URL.Path)
	if !ok {
		return noSuchPath(r.URL.Path)
	}
	accepted := reply.Negotiate(r.Header)
	if trace := auditrecord.Of(r.Context()); trace != nil {
		trace.Asked(accepted, r.URL.Query())
	}
	switch {
	case accepted == reply.FormNone:
		return reply.NotAcceptable("only application/json (as it is, as=Table or as=PartialObjectMetadata) and text/event-stream can be answered")
	case accepted == reply.FormEvents:
		return s.streams.Single(w, r, id)
	case request.MayName(r.URL.RawQuery, "watch") && reply.WantsWatch(r.URL.Query()):
		return s.objects.Watch(s.streams, w, r, id, t, accepted)
	}
	if err := checkTimeout(r); err != nil {
		return err
	}
	return s.rest.Resource(w, r, id, t, accepted)
}

// checkTimeout refuses a `timeout` that is none, as the API server does of all requests but watches and logs.
func checkTimeout(r *http.Request) error {
	if !request.MayName(r.URL.RawQuery, "timeout") {
		return nil
	}
	return reply.CheckTimeout(r.URL.Query().Get("timeout"))
}

// history answers what is below /history.
func (s *Server) history(w http.ResponseWriter, r *http.Request) error {
	id, err := s.signin.Caller(r)
	accepted := reply.Negotiate(r.Header)
	switch {
	case err == nil && accepted == reply.FormEvents:
		if trace := auditrecord.Of(r.Context()); trace != nil {
			trace.Asked(accepted, r.URL.Query())
		}
		return s.streams.Single(w, r, id)
	case accepted == reply.FormEvents:
		return s.streams.Refuse(w, r, err)
	case err != nil:
		return err
	}
	return s.jobHistory.Answer(w, r, id)
}

// streamOr answers with an event stream, if one is asked for, else by a function: what is told of queues, or the caller.
func (s *Server) streamOr(answer func(http.ResponseWriter, *http.Request, auth.Identity) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		id, err := s.signin.Caller(r)
		accepted := reply.Negotiate(r.Header)
		if trace := auditrecord.Of(r.Context()); trace != nil && err == nil {
			trace.Asked(accepted, r.URL.Query())
		}
		switch {
		case err == nil && accepted == reply.FormEvents:
			return s.streams.Single(w, r, id)
		case accepted == reply.FormEvents:
			return s.streams.Refuse(w, r, err)
		case err != nil:
			return err
		}
		return answer(w, r, id)
	}
}

// logLines answers what is below /logs, as an event stream or as lines of text, or a question about it.
func (s *Server) logLines(w http.ResponseWriter, r *http.Request) error {
	id, err := s.signin.Caller(r)
	form := formOfLogs(r.Header)
	if trace := auditrecord.Of(r.Context()); trace != nil && err == nil {
		trace.Asked(form, r.URL.Query())
	}
	switch {
	case err != nil && form == reply.FormEvents:
		return s.streams.Refuse(w, r, err)
	case err != nil:
		return err
	case form != reply.FormEvents && r.URL.Query().Has("view"):
		return s.logStreams.Answer(w, r, id)
	case form == reply.FormText:
		return s.streams.Text(w, r, id, s.logStreams.Text)
	case form == reply.FormNone:
		return reply.NotAcceptable("logs are answered as text/event-stream or text/plain")
	case logstream.IsOver(eventstream.PositionOf(r.Header, r.URL.Query())):
		w.WriteHeader(http.StatusNoContent) // which ends an EventSource
		return nil
	}
	return s.streams.Single(w, r, id)
}

// formOfLogs is the form that the client prefers; text, if it does not say.
func formOfLogs(h http.Header) reply.Form {
	if h.Get("Accept") == "" {
		return reply.FormText
	}
	return reply.Choose(h, func(media string, _ map[string]string) reply.Form {
		switch media {
		case "text/event-stream":
			return reply.FormEvents
		case "text/plain", "text/*", "*/*":
			return reply.FormText
		}
		return reply.FormNone
	})
}

// multiStream answers /stream.
func (s *Server) multiStream(w http.ResponseWriter, r *http.Request) error {
	id, err := s.signin.Caller(r)
	if err != nil {
		return s.streams.Refuse(w, r, err)
	}
	return s.streams.Multi(w, r, id)
}

// noSuchPath says why a path below /api or /apis names nothing. Whoever asks the gateway to go into
// a pod shall know that they have to ask the API server.
func noSuchPath(path string) error {
	path = strings.TrimSuffix(path, "/")
	object, subresource := path[:strings.LastIndexByte(path, '/')], path[strings.LastIndexByte(path, '/')+1:]
	if t, ok := visibility.Parse(object); ok && t.Name != "" && subresource != "" {
		return reply.NotFound(fmt.Sprintf("the gateway serves objects and logs, and no other subresources: ask the API server itself for %s/%s", t.Resource, subresource))
	}
	return reply.NoResource()
}
