package render

import (
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/http/reply"
)

// View says in which form a client wants objects, and which part of them.
type View struct {
	Form    reply.Form
	Fields  *Fields                    // nil: all
	Include metav1.IncludeObjectPolicy // in the rows of a table
}

func ParseView(of cache.Paths, query url.Values, accepted reply.Form) (v View, err error) {
	v.Form = accepted
	if text := query.Get("fields"); text != "" {
		if accepted.IsTable() {
			return v, reply.BadRequest("fields: a table has columns in place of fields")
		}
		if v.Fields, err = ParseFields(of, text); err != nil {
			return v, reply.BadRequest("%s", err)
		}
	}
	v.Include = metav1.IncludeObjectPolicy(query.Get("includeObject"))
	switch v.Include {
	case "", metav1.IncludeNone, metav1.IncludeMetadata, metav1.IncludeObject:
	default:
		return v, reply.BadRequest("Unable to convert to Table as requested: includeObject: Invalid value: %q: must be 'Metadata', 'Object', 'None', or empty", v.Include)
	}
	return v, nil
}
