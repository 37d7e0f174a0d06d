package config

import (
	"fmt"
	"net/url"
	"slices"
)

func (f *faults) edge(e Edge, clusters []Cluster) {
	if len(e.Core) == 0 {
		if e.TokenFile+e.CAFile != "" {
			f.refuse("edge.core", "[]", "the address of a core, or of several; without, leave the others out, too")
		}
		return
	}
	for i, address := range e.Core {
		key := fmt.Sprintf("edge.core[%d]", i)
		if len(e.Core) == 1 {
			key = "edge.core"
		}
		if !isCore(address) {
			f.refuse(key, address, "an https URL such as https://core.example.org, with no more than the core's basePath behind it")
		} else if slices.Contains(e.Core[:i], address) {
			f.refuse(key, address, "each core once")
		}
	}
	if e.TokenFile == "" {
		f.refuse("edge.tokenFile", "", "a file with the token by which the core knows this gateway")
	}
	for i, c := range clusters {
		if c.Kubeconfig != "" {
			f.add(0, fmt.Sprintf("clusters[%d].kubeconfig", i), "given beside edge.core; allowed: one of them (with edge.core, clusters have only the names that they have at the core)")
		}
		if c.Context != "" {
			f.add(0, fmt.Sprintf("clusters[%d].context", i), "given beside edge.core; allowed: one of them (with edge.core, clusters have only the names that they have at the core)")
		}
	}
}

// isCore reports whether a text is the address of a core. Tokens are sent to it, so it is https.
func isCore(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme == "https" && u.Hostname() != "" && u.User == nil && u.Fragment == "" && s == "https://"+u.Host+u.Path && (u.Path == "" || IsBasePath(u.Path))
}
