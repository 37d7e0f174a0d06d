package access

import (
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/visibility"
)

// ReadOf is a target in the form of the audit log.
func ReadOf(t visibility.Target, verb string) auditrecord.Read {
	return ReadVisible(visibility.VisibleTarget{Target: t}, verb)
}

// ReadVisible is a target, as far as it may be seen, in the form of the audit log.
func ReadVisible(p visibility.VisibleTarget, verb string) auditrecord.Read {
	return auditrecord.Read{
		Cluster: p.Cluster, Group: p.Group, Version: p.Version, Resource: p.Resource, Namespace: p.Namespace, Name: p.Name,
		Verb: verb, Subresource: p.Subresource, Partly: p.Visible != nil,
	}
}
