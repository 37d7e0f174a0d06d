package config

import (
	"regexp"
	"strings"
	"time"
)

// dnsName matches what Kubernetes calls a DNS subdomain.
var dnsName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

func (f *faults) revocations(r Revocations) {
	const key = "auth.revocations"
	namespace, name, both := strings.Cut(r.ConfigMap, "/")
	if r.ConfigMap != "" && (!both || !dnsLabel.MatchString(namespace) || !dnsName.MatchString(name) || len(name) > 253) {
		f.refuse(key+".configMap", r.ConfigMap, "namespace/name of a ConfigMap in the default cluster")
	}
	// A session that began with a login can still be renewed a day after its last renewal. It must not outlive the
	// entry that ended it.
	f.between(key+".keep", r.Keep, 25*time.Hour, 10*365*24*time.Hour)
}
