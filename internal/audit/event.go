package audit

import (
	"encoding/json"
	"time"
)

// Stages of a request, as audit.k8s.io/v1 names them. A request that is answered at once has only the last.
const (
	StageStarted  = "ResponseStarted"  // a stream has begun
	StageComplete = "ResponseComplete" // the request was answered, or the stream has ended
)

// Event is a line of the log: an Event of audit.k8s.io/v1 at level Metadata, so that tools for the API server's audit
// log read this one, too. The caller must put neither credentials nor the content of objects into it.
type Event struct {
	RequestID string // the same as in the answer's X-Request-Id and in the gateway's own log
	Stage     string
	Path      string
	Verb      string // get, list or watch; of any other request the method in lower case
	User      *User  // nil: not known
	Address   string // the client's, as seen by the trusted proxies
	UserAgent string
	Object    *Object // nil: the request is not for objects
	Code      int     // the answer's status
	Received  time.Time
	At        time.Time
	// Annotations are facts for which the audit format has no field.
	Annotations map[string]string
}

// User is the user as whom the client was identified.
type User struct {
	Username string   `json:"username"`
	Groups   []string `json:"groups,omitempty"`
}

// Object names the object or the objects of a request.
type Object struct {
	Resource   string `json:"resource"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
	APIGroup   string `json:"apiGroup,omitempty"`
	APIVersion string `json:"apiVersion,omitempty"`

	Subresource string `json:"subresource,omitempty"`
}

type status struct {
	Code int `json:"code"`
}

// microTime is the layout in which Kubernetes writes times to the microsecond.
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
