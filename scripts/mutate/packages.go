package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
)

// meeting are the packages where users meet, below internal, and which of the tests of
// internal/http are for them beside their own; empty: none.
var meeting = []struct{ directory, through string }{
	{"visibility", "Narrow|Permission|Sight|Visib|Lists|Namespace"},
	{"http/access", "Narrow|Permission|Sight|Visib|Lists|Namespace|Discover|Kinds"},
	{"http/eventstream", "Narrow|Permission|Sight|Stream|Watch|Resum|Replay|Held|Conflat"},
	{"livequery", "Live"},
	{"http/livepage", "Live"},
	{"http/rest", "List|Page|Narrow|Count|Document|Get|Discover"},
	{"http/historyapi", "History"},
	{"http/notifications", "Notif"},
	{"http/logstream", "Log"},
	{"http/podlog", "Log"},
	{"http/signin", "Auth|Login|Session|Me|Token|Impersonat|CSRF|Origin"},
	{"http/ratelimit", "Turn|Rate|Limit"},
	{"jobs/service", "History"},
	{"jobs/owners", ""},
	{"jobs/store", ""},
	{"jobs/inbox", "Notif"},
	{"jobs/outbox", ""},
	{"logs", "Log"},
	{"budget", "Budget|Turn"},
	{"auth", "Auth|Token"},
	{"auth/rbac", ""},
	{"auth/sar", ""},
	{"auth/policy", ""},
}

// chosen is a package with its mutations, in the order in which they are tried.
type chosen struct {
	directory, through string
	mutations          []mutation
}

// choose returns the packages that are wanted.
func choose(only string, seed uint64) (all []chosen, err error) {
	same, err := equivalent()
	if err != nil {
		return nil, err
	}
	for _, p := range meeting {
		if only != "" && !slices.Contains(strings.Split(only, ","), p.directory) {
			continue
		}
		found, err := mutationsOf("internal/" + p.directory)
		if err != nil {
			return nil, err
		}
		found = slices.DeleteFunc(found, func(m mutation) bool { return same[m.name()] })
		all = append(all, chosen{"internal/" + p.directory, p.through, dealt(found, rand.New(rand.NewPCG(seed, 0)))})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("-packages: none of %q is known", only)
	}
	return all, nil
}

// dealt mixes mutations, and then takes one of each kind in turn, since there are many more of some than of others.
func dealt(all []mutation, random *rand.Rand) (mixed []mutation) {
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var kinds []string
	byKind := map[string][]mutation{}
	for _, m := range all {
		if byKind[m.kind] == nil {
			kinds = append(kinds, m.kind)
		}
		byKind[m.kind] = append(byKind[m.kind], m)
	}
	for len(mixed) < len(all) {
		for _, kind := range kinds {
			if left := byKind[kind]; len(left) > 0 {
				mixed, byKind[kind] = append(mixed, left[0]), left[1:]
			}
		}
	}
	return mixed
}

// equivalent returns the names of the mutations that make no difference. Behind a name are a tab and the reason.
func equivalent() (map[string]bool, error) {
	text, err := os.ReadFile("scripts/mutate/equivalent.txt")
	if err != nil {
		return nil, err
	}
	same := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if name, _, found := strings.Cut(line, "\t"); found {
			same[name] = true
		}
	}
	return same, nil
}
