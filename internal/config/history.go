package config

import (
	"fmt"
	"net/url"
	"slices"
	"time"
)

// schemes are those of history.database.
var schemes = []string{"sqlite", "postgres", "postgresql", "mysql"}

// Recorded are the kinds whose history is kept.
func (h History) Recorded() (kinds []Kind) {
	if h.Database == HistoryNone {
		return nil
	}
	kinds = append(kinds, Kind{Resource: "jobs", Group: "batch"})
	for _, k := range h.Kinds {
		if kind, err := ParseKind(k.Resource); err == nil {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// maxLogTail bounds what is kept of a log. It is compressed, and may not be larger than some specs then.
const maxLogTail = 1 << 20

// history checks what can be said without the database and the rules: package app asks them.
func (f *faults) history(h History, kinds Kinds) {
	f.historyDatabase(h)
	f.oneOf("history.owners", h.Owners, OwnersAsPermitted, OwnersSeeTheirOwn)
	f.between("history.keep", h.Keep, time.Hour, 100*365*24*time.Hour)
	if h.KeepLogTail < 0 || h.KeepLogTail > maxLogTail {
		f.refuse("history.keepLogTail", h.KeepLogTail, "up to 1Mi, or 0 for none")
	}
	for i, k := range h.Kinds {
		key := fmt.Sprintf("history.kinds[%d].resource", i)
		parsed, err := ParseKind(k.Resource)
		switch {
		case err != nil || parsed.Version != "":
			f.refuse(key, k.Resource, "a resource with its group and without a version, such as trainjobs.trainer.kubeflow.org")
		case !kinds.Serves(parsed.Group, parsed.Resource):
			f.refuse(key, k.Resource, "a kind that kinds.allow and kinds.deny let be served")
		case slices.ContainsFunc(h.Kinds[:i], func(other HistoryKind) bool { return other.Resource == k.Resource }):
			f.refuse(key, k.Resource, "each kind once")
		}
	}
}

// historyDatabase shows nothing of an address: it may have a password.
func (f *faults) historyDatabase(h History) {
	const key = "history.database"
	const allowed = "none, sqlite, sqlite:///path, postgres://… or mysql://…"
	address, err := url.Parse(h.Database)
	switch {
	case h.Database == HistoryNone, h.Database == HistorySQLite:
	case err != nil || address.Scheme == "" || address.Opaque != "":
		f.add(0, key, "what is given is no address; allowed: %s", allowed)
	case !slices.Contains(schemes, address.Scheme):
		f.add(0, key, "an address that begins with %s given; allowed: %s", quoted(address.Scheme+":"), allowed)
	}
	if h.StateDir != "" && h.Database != HistorySQLite {
		f.add(0, "history.stateDir", "given though the database is not in it; allowed: where history.database is sqlite")
	}
	server := err == nil && address.Host != "" || err == nil && slices.Contains(schemes[1:], address.Scheme)
	if h.PasswordFile != "" && !server {
		f.add(0, "history.passwordFile", "given though the database takes no password; allowed: where history.database is an address of a server")
	}
}
