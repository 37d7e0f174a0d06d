package audit

import (
	"encoding/json"
	"time"
)

// Stages of a request, as audit.k8s.io/v1 names them. What is answered at once has only the last.
const (
	StageStarted  = "ResponseStarted"  // of a stream: it begins
	StageComplete = "ResponseComplete" // it was answered, or the stream has ended
)

// Event is a line of the log: an Event of audit.k8s.io/v1 at level Metadata, so that what reads the API server's audit log
// reads this one. Whoever makes one puts no credentials into it, and nothing that an object says.
type Event struct {
	RequestID string // also in the answer's X-Request-Id and in the log
	Stage     string
	Path      string
	Verb      string // get, list or watch; of others the method in lower case
	User      *User  // nil: it is not known who
	Address   string // of the client, as the trusted proxies saw it
	UserAgent string
	Object    *Object // nil: no object was asked for
	Code      int     // of the answer
	Received  time.Time
	At        time.Time
	// Annotations are what Kubernetes has no field for.
	Annotations map[string]string
}

// User is who was identified.
type User struct {
	Username string   `json:"username"`
	Groups   []string `json:"groups,omitempty"`
}

// Object is what was asked for.
type Object struct {
	Resource   string `json:"resource"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
	APIGroup   string `json:"apiGroup,omitempty"`
	APIVersion string `json:"apiVersion,omitempty"`
}

type status struct {
	Code int `json:"code"`
}

// microTime is how Kubernetes writes times to the microsecond.
const microTime = "2006-01-02T15:04:05.000000Z07:00"

// line is the event as one line of JSON.
func (e *Event) line() ([]byte, error) {
	user := e.User
	if user == nil {
		user = &User{}
	}
	text, err := json.Marshal(struct {
		Kind        string            `json:"kind"`
		APIVersion  string            `json:"apiVersion"`
		Level       string            `json:"level"`
		AuditID     string            `json:"auditID"`
		Stage       string            `json:"stage"`
		RequestURI  string            `json:"requestURI"`
		Verb        string            `json:"verb"`
		User        *User             `json:"user"`
		SourceIPs   []string          `json:"sourceIPs,omitempty"`
		UserAgent   string            `json:"userAgent,omitempty"`
		ObjectRef   *Object           `json:"objectRef,omitempty"`
		Status      status            `json:"responseStatus"`
		Received    string            `json:"requestReceivedTimestamp"`
		At          string            `json:"stageTimestamp"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}{
		"Event", "audit.k8s.io/v1", "Metadata", e.RequestID, e.Stage, e.Path, e.Verb, user, []string{e.Address}, e.UserAgent,
		e.Object, status{e.Code}, e.Received.UTC().Format(microTime), e.At.UTC().Format(microTime), e.Annotations,
	})
	return append(text, '\n'), err
}
