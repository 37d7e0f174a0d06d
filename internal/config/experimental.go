package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Experimental are settings that may change or go in any release.
type Experimental struct {
	// Shard is the part that this gateway, a core, holds of ShardKinds, such as 1/2; empty: all. See docs/edges.md.
	Shard      string `yaml:"shard"`
	ShardKinds []Kind `yaml:"shardKinds"` // in all of their versions
	// Shards is of how many shards the cores of this gateway, an edge, are; 0: each has everything.
	Shards int `yaml:"shards"`
}

// mostShards is a limit: an edge waits for all.
const mostShards = 16

// Part is Shard as numbers; 0 and 0 are all.
func (e Experimental) Part() (number, of int) {
	number, of, _ = partOf(e.Shard)
	return number, of
}

func partOf(text string) (number, of int, ok bool) {
	if text == "" {
		return 0, 0, true
	}
	before, after, _ := strings.Cut(text, "/")
	number, bad := strconv.Atoi(before)
	of, worse := strconv.Atoi(after)
	if bad != nil || worse != nil || number < 1 || number > of || of < 2 || of > mostShards || fmt.Sprintf("%d/%d", number, of) != text {
		return 0, 0, false
	}
	return number, of, true
}

// undivided are kinds that a gateway needs whole: by them it knows who may see what, what there is, and what was revoked. Of Events API servers
// send no bookmarks, without which an edge could not merge them.
var undivided = []Kind{
	{Resource: "namespaces"}, {Resource: "configmaps"}, {Resource: "events"}, {Resource: "events", Group: "events.k8s.io"},
	{Resource: "customresourcedefinitions", Group: "apiextensions.k8s.io"}, {Resource: "apiservices", Group: "apiregistration.k8s.io"},
	{Resource: "roles", Group: "rbac.authorization.k8s.io"}, {Resource: "rolebindings", Group: "rbac.authorization.k8s.io"},
	{Resource: "clusterroles", Group: "rbac.authorization.k8s.io"}, {Resource: "clusterrolebindings", Group: "rbac.authorization.k8s.io"},
}

func (f *faults) experimental(c Config) {
	e := c.Experimental
	is := e.Shard != ""
	if _, _, ok := partOf(e.Shard); !ok {
		f.refuse("experimental.shard", e.Shard, fmt.Sprintf("1/2 for the first of two shards, of which there may be %d; empty: all", mostShards))
	}
	if is != (len(e.ShardKinds) > 0) {
		f.add(0, "experimental", "only one of shard and shardKinds is given; allowed: both, or neither")
	}
	for i, kind := range e.ShardKinds {
		key := fmt.Sprintf("experimental.shardKinds[%d]", i)
		switch {
		case kind.Version != "":
			f.refuse(key, kind, "a resource with its group, in all versions, such as pods or jobs.batch")
		case slices.Contains(undivided, kind):
			f.refuse(key, kind, "other kinds: each gateway needs this one whole")
		}
	}
	if is && c.IsEdge() {
		f.refuse("experimental.shard", e.Shard, "nothing at an edge: its cores are of shards, of which experimental.shards says how many there are")
	}
	if is && len(c.Gateways) == 0 {
		f.refuse("gateways", "[]", "the usernames of the edges: a core of a shard answers nobody else")
	}
	if is && c.History.Database != HistoryNone {
		f.refuse("history.database", c.History.Database, "none at a core of a shard, which sees a part of the jobs; an edge records all")
	}
	switch {
	case e.Shards == 0:
	case e.Shards < 2 || e.Shards > mostShards:
		f.refuse("experimental.shards", e.Shards, fmt.Sprintf("2 to %d; 0: each core has everything", mostShards))
	case len(c.Edge.Core) == 0 || len(c.Edge.Core)%e.Shards != 0:
		f.refuse("experimental.shards", e.Shards, "as many as divide the number of addresses in edge.core")
	}
}
