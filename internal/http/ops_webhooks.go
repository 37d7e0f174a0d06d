package http

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/jobs/webhook"
)

// debugWebhooks answers how the targets of webhooks are.
func (s *Server) debugWebhooks(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if s.opts.Webhooks == nil {
		fmt.Fprintln(w, "there are no webhooks")
		return
	}
	ago := func(at time.Time) string {
		if at.IsZero() {
			return "-"
		}
		return time.Since(at).Round(time.Second).String()
	}
	all := s.opts.Webhooks.Status(r.Context())
	table := reply.NewTextTable(w, "TARGET\tPLACE\tSTATE\tSENDER\tWAITING\tOLDEST\tDEAD\tANSWERED\tANSWER")
	for _, t := range all {
		state, sender := "on", "-"
		switch hold := time.Until(t.Hold.Std()); {
		case t.Err != nil:
			state = fmt.Sprintf("%q", t.Err)
		case t.Off != 0:
			state = "off since " + ago(t.Off.Std())
		case hold > 0:
			state = "held for " + hold.Round(time.Second).String()
		}
		if t.Held {
			sender = t.Holder
		}
		table.Row("%s\t%s\t%s\t%s\t%d\t%s\t%d\t%s\t%q", t.Name, t.Address, state, sender, t.Waiting, ago(t.Oldest.Std()), t.Counts.Dead, ago(t.At.Std()), t.Text)
	}
	table.End()
	fmt.Fprintln(w)
	table = reply.NewTextTable(w, "DEAD LETTER\tTARGET\tAGE\tATTEMPTS\tANSWER")
	for _, t := range all {
		for _, m := range t.Letters {
			table.Row("%s\t%s\t%s\t%d\t%q", m.ID, t.Name, ago(m.At.Std()), m.Attempts, m.Answer)
		}
	}
	table.End()
}

// askedOfWebhooks is what an operator can have done.
type askedOfWebhooks struct {
	Target string    `json:"target"`
	Action string    `json:"action"` // test, enable or resend
	ID     string    `json:"id"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
}

// operateWebhooks does what an operator asks for. Browsers send no JSON to other origins unasked,
// so that no page can have an operator's browser do so.
func (s *Server) operateWebhooks(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int, text string) { http.Error(w, text, status) }
	if s.opts.Webhooks == nil {
		refuse(http.StatusNotFound, "there are no webhooks")
		return
	}
	if r.Header.Get("Content-Type") != "application/json" {
		refuse(http.StatusUnsupportedMediaType, "the body must be application/json")
		return
	}
	var asked askedOfWebhooks
	decoder := json.NewDecoder(io.LimitReader(r.Body, 16<<10))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil {
		refuse(http.StatusBadRequest, `a body such as {"target": "NAME", "action": "test"} is expected: `+err.Error())
		return
	}
	var answer string
	var err error
	switch asked.Action {
	case "test":
		answer, err = s.opts.Webhooks.Test(r.Context(), asked.Target)
	case "enable":
		answer, err = "enabled", s.opts.Webhooks.Enable(r.Context(), asked.Target)
	case "resend":
		if (asked.ID != "") == (!asked.Since.IsZero() && asked.Since.Before(asked.Until)) {
			refuse(http.StatusBadRequest, `resend needs either "id", or "since" before "until"`)
			return
		}
		var n int64
		n, err = s.opts.Webhooks.Resend(r.Context(), asked.Target, asked.ID, asked.Since, asked.Until)
		answer = fmt.Sprintf("sent again: %d", n)
	default:
		refuse(http.StatusBadRequest, "the action must be test, enable or resend")
		return
	}
	switch {
	case errors.Is(err, webhook.ErrNoTarget):
		refuse(http.StatusNotFound, err.Error())
	case err != nil:
		refuse(http.StatusServiceUnavailable, err.Error())
	default:
		fmt.Fprintln(w, answer)
	}
}
