package http

import (
	"net/url"
	"strings"

	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/historyapi"
	"github.com/kubecast/kubecast/internal/http/logstream"
	"github.com/kubecast/kubecast/internal/visibility"
)

// Needs are what a caller must be allowed to do for the answers at an address, which may be one of /stream with several
// paths. Event streams take the verb watch, lists and objects take list and get; where an address has both forms, both
// are named. If the address is no resource, path is what it needs the verb get for, in a cluster ("": the default one).
func Needs(address string) (needs []access.Need, cluster, path string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, "", "", err
	}
	if u.Path != "/stream" {
		return needsOf(u.Path, "get", "list", "watch")
	}
	for _, paths := range u.Query() {
		for _, of := range paths {
			if !strings.HasPrefix(of, "/") {
				continue // a parameter
			}
			below, _, _ := strings.Cut(of, "?")
			more, _, _, err := needsOf(below, "watch", "watch")
			if err != nil {
				return nil, "", "", err
			}
			needs = append(needs, more...)
		}
	}
	return needs, "", "", nil
}

// needsOf are those of one path, with the verbs for an object, for several, and for both as a stream.
func needsOf(path string, object, several string, stream ...string) (needs []access.Need, cluster, other string, err error) {
	if strings.HasPrefix(path, logstream.Prefix+"/") {
		needs, err = logstream.Needs(path)
		return needs, "", "", err
	}
	if t, ok := historyapi.Target(path); ok {
		return []access.Need{{Target: t, Verb: "list"}}, "", "", nil
	}
	if t, ok := visibility.ParseLog(path); ok {
		return []access.Need{{Target: t, Verb: "get"}}, "", "", nil
	}
	t, ok := visibility.Parse(path)
	if !ok {
		if below, found := strings.CutPrefix(path, "/clusters/"); found {
			cluster, below, _ = strings.Cut(below, "/")
			return nil, cluster, "/" + below, nil
		}
		return nil, "", path, nil
	}
	if t.Name != "" {
		several = object
	}
	needs = []access.Need{{Target: t, Verb: several}}
	for _, verb := range stream {
		needs = append(needs, access.Need{Target: t, Verb: verb})
	}
	return needs, "", "", nil
}
