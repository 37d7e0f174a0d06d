package table

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
)

func printNode(r *row, o *cluster.Object) {
	p := partsOf(o)
	info := p.status.Get("nodeInfo")
	kernel := or(info.Get("kernelVersion").Str, unknown)
	if architecture := info.Get("architecture").Str; architecture != "" {
		kernel += " (" + architecture + ")"
	}
	r.name(o)
	r.text(nodeStatus(p))
	r.text(or(nodeRoles(o), none))
	r.age(o)
	r.text(info.Get("kubeletVersion").Str)
	r.text(nodeAddress(p.status, "InternalIP"))
	r.text(nodeAddress(p.status, "ExternalIP"))
	r.text(or(info.Get("osImage").Str, unknown))
	r.text(kernel)
	r.text(or(info.Get("containerRuntimeVersion").Str, unknown))
}

func nodeStatus(p parts) string {
	status := "Unknown"
	each(p.status.Get("conditions"), func(c gjson.Result) bool {
		if c.Get("type").Str == "Ready" { // the last one counts
			status = "NotReady"
			if c.Get("status").Str == "True" {
				status = "Ready"
			}
		}
		return true
	})
	if p.spec.Get("unschedulable").Bool() {
		status += ",SchedulingDisabled"
	}
	return status
}

// nodeRoles returns the roles of a node, which labels name in either of two ways.
func nodeRoles(o *cluster.Object) string {
	var roles []string
	for label, value := range o.GetLabels() {
		role, named := strings.CutPrefix(label, "node-role.kubernetes.io/")
		if label == "kubernetes.io/role" {
			role, named = value, true
		}
		if named && role != "" {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	return strings.Join(slices.Compact(roles), ",")
}

func nodeAddress(status gjson.Result, kind string) string {
	found := none
	each(status.Get("addresses"), func(a gjson.Result) bool {
		if a.Get("type").Str != kind {
			return true
		}
		found = a.Get("address").Str
		return false
	})
	return found
}
