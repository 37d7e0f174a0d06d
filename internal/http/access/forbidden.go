package access

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/visibility"
)

// Need is something that a caller must be allowed to do.
type Need struct {
	visibility.Target
	Verb string
}

// Forbidden is a 403 in the API server's own words.
func Forbidden(id auth.Identity, t visibility.Target, verb string) error {
	message := t.Qualified()
	if t.Name != "" {
		message += fmt.Sprintf(" %q", t.Name)
	}
	resource := t.Resource
	if t.Subresource != "" {
		resource += "/" + t.Subresource
	}
	message += fmt.Sprintf(" is forbidden: User %q cannot %s resource %q in API group %q", id.Username, verb, resource, t.Group)
	if t.Namespace != "" {
		message += fmt.Sprintf(" in the namespace %q", t.Namespace)
	} else {
		message += " at the cluster scope"
	}
	return &reply.Error{
		Code:    http.StatusForbidden,
		Reason:  metav1.StatusReasonForbidden,
		Message: message,
		Details: &metav1.StatusDetails{Name: t.Name, Group: t.Group, Kind: t.Resource},
	}
}
