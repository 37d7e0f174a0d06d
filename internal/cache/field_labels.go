package cache

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fieldLabel is a field by which the API server selects objects of a built-in kind, where that is
// not simply the value at the path of the same name. The API server compares texts that it makes of
// its own structures, in which a number that is not set is 0, and a truth value false. In an
// object's JSON both are missing.
//
// Source: the functions ToSelectableFields of k8s.io/kubernetes, and the conversions of field
// labels of each version of an API.
type fieldLabel struct {
	path  string // "" for a label that the API server accepts, and finds in no object
	or    string // where the value is if the path has none
	unset string // the value of an object that has it in neither place
}

// fieldLabels are all such labels. Every other label of a built-in kind is a path of its objects,
// and its value is "" where it is not set.
var fieldLabels = map[schema.GroupResource]map[string]fieldLabel{
	{Resource: "pods"}: {
		"spec.host":        {path: "spec.nodeName"},
		"spec.hostNetwork": {path: "spec.hostNetwork", unset: "false"},
		"status.podIPs":    {},
	},
	{Resource: "nodes"}:                  {"spec.unschedulable": {path: "spec.unschedulable", unset: "false"}},
	{Resource: "replicationcontrollers"}: {"status.replicas": {path: "status.replicas", unset: "0"}},
	{Resource: "events"}:                 {"source": {path: "source.component", or: "reportingComponent"}},
	{Group: "batch", Resource: "jobs"}:   {"status.successful": {path: "status.succeeded", unset: "0"}},
}

// absentPath is a path that no object has.
const absentPath = "metadata.name.absent"

// labelled returns the term with which a field of a kind is compared, without what it is compared with.
func (p Paths) labelled(field string) (fieldTerm, error) {
	field = strings.TrimSpace(field)
	label, is := fieldLabels[p.Resource][field]
	term := fieldTerm{field: field, or: label.or, unset: label.unset}
	switch {
	case is && label.path == "":
		term.field = absentPath
	case is:
		term.field = label.path
	}
	if isDerived(term.field) {
		return term, nil
	}
	var err error
	term.path, err = fieldPath(term.field)
	return term, err
}
