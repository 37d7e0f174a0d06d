package cluster

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// This file names histories. A version orders within one storage only. The cluster's main storage
// is the etcd of its API server, where built-in kinds and custom resources are. Behind an
// APIService that names a service is another server, whose versions are its own: they may go back
// at any time, as when it keeps everything in memory and is restarted, and that says nothing of
// anything else.
//
// The main storage's epoch is made of the uid of the namespace kube-system, so it is the same on
// every replica. When versions go back there, a replica takes a new one at random. It agrees with
// others only once they are restarted (docs/operations.md).
//
// A replica whose watch is lost does not go on to the next hour: others may know by then that
// versions went back, and no name of theirs says so any more, while it still has what was before.
//
// Nobody restarts gateways because an aggregated server was restarted, so its epochs come to agree
// by themselves. An epoch is made of the main one, the uid of the APIService, the hour, and of how
// often the versions of which kinds went back within this hour. Replicas that noticed the same
// agree at once, and all others from the next hour on. The price is that a client that comes back
// to such a kind in another hour is reset. No two histories have the same name: a store that began
// within the hour, or was not followed when it began, and does not know what happened before in it,
// takes a name at random.

// epochOfAnHour is how long an epoch of an aggregated server's storage lasts at most.
const epochOfAnHour = time.Hour

// unnoticed is how long a watch may be lost before that is noticed, at most. The hour of an epoch
// begins so much later: whoever takes its name has followed the storage in it.
const unnoticed = 2 * time.Minute

// restarts are the kinds of a storage whose versions went back within one hour, and how often.
type restarts struct {
	hour   int64
	counts map[string]int // by path
	random string         // what a store added that cannot know what happened before within the hour
}

// Epoch identifies the cluster in the positions that clients hold, in its main storage. An error wraps ErrUnavailable.
func (c *Cluster) Epoch(ctx context.Context) (string, error) {
	c.mu.Lock()
	epoch := c.epoch
	c.mu.Unlock()
	if epoch != "" {
		return epoch, nil
	}
	answer, err := c.once(ctx, "epoch", func(ctx context.Context) (any, error) {
		body, err := c.client.Get().AbsPath("/api/v1/namespaces/kube-system").DoRaw(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w: the gateway must be able to get the namespace kube-system, whose uid identifies "+
				"cluster %s: %w", ErrUnavailable, c.name, withStatus(err))
		}
		uid := gjson.GetBytes(body, "metadata.uid").Str
		if uid == "" {
			return nil, fmt.Errorf("%w: cluster %s answered without the uid of kube-system", ErrUnavailable, c.name)
		}
		return shortHash(uid), nil
	})
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epoch == "" {
		c.epoch, c.identity = answer.(string), answer.(string)
	}
	return c.epoch, nil
}

// EpochOf is the epoch of a kind's storage, in which positions of the kind count that was followed
// up to a time: now, or when its watch was lost. It is short. An error wraps ErrUnavailable.
func (c *Cluster) EpochOf(ctx context.Context, kind Kind, followed time.Time) (string, error) {
	epoch, err := c.Epoch(ctx)
	if err == nil {
		err = c.knowStorage(ctx, kind)
	}
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	storage := c.storageOf(kind)
	if storage == "" {
		return epoch, nil
	}
	hour := hourOf(followed.Add(-unnoticed))
	name := epoch + " " + storage + " " + strconv.FormatInt(hour, 10)
	for _, back := range []*restarts{c.restarts[storage], c.restarts[unsureStorage(kind)]} {
		switch {
		case back == nil || back.hour < hour:
		case back.hour > hour: // just now, while this kind was not followed
			name += " " + strconv.FormatInt(back.hour, 10)
			fallthrough
		default:
			name += fmt.Sprint(back.counts) + back.random // which prints the keys in order
		}
	}
	return shortHash(name), nil
}

// Identity is the epoch that the cluster had at first. It stays the same when versions go back, and after a restart
// of the gateway, so permanent data is stored under it. An error wraps ErrUnavailable.
func (c *Cluster) Identity(ctx context.Context) (string, error) {
	if _, err := c.Epoch(ctx); err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.identity, nil
}

// Restarted gives the main storage a new epoch, and with it all others, because versions went back
// and earlier positions mean nothing.
func (c *Cluster) Restarted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.newest)
	if c.epoch != "" {
		c.epoch = shortHash(c.epoch + rand.Text())
	}
}

// WentBack gives the storage of a kind a new epoch, because the kind's versions went back. They
// were followed from a time on until now, or until the watch was lost.
func (c *Cluster) WentBack(kind Kind, since, followed time.Time) {
	c.mu.Lock()
	storage := c.storageOf(kind)
	if storage == "" {
		c.mu.Unlock()
		c.Restarted()
		return
	}
	defer c.mu.Unlock()
	if c.isUnsure(kind) {
		since = time.Now() // so that whatever the storage is, no other replica has its name
	}
	maps.DeleteFunc(c.newest, func(of Kind, _ newest) bool { return c.storageOf(of) == storage })
	began := time.Now().Add(-unnoticed).Truncate(epochOfAnHour) // which is at a whole hour of Unix time, too
	hour := hourOf(began)
	back := c.restarts[storage]
	if back == nil || back.hour != hour {
		back = &restarts{hour: hour, counts: map[string]int{}}
		if c.restarts == nil {
			c.restarts = map[string]*restarts{}
		}
		c.restarts[storage] = back
	}
	back.counts[kind.Path()]++
	if start := began.Add(unnoticed); !since.Before(start) || followed.Before(start) {
		back.random += rand.Text()
	}
}

func hourOf(t time.Time) int64 { return t.Unix() / int64(epochOfAnHour/time.Second) }

// storageOf names the storage of a kind; "" is the main one. The caller holds the lock.
func (c *Cluster) storageOf(kind Kind) string {
	switch gv := (schema.GroupVersion{Group: kind.Group, Version: kind.Version}); {
	case c.catalog == nil:
		return ""
	case c.isUnsure(kind): // a main storage that goes back is noticed by the built-in kinds
		return unsureStorage(kind)
	default:
		return c.catalog.storages[gv]
	}
}

// unsureStorage stands for that of a kind of which it is not known.
func unsureStorage(kind Kind) string { return kind.APIVersion() + " ?" }

// isUnsure reports whether the API server has not said who serves a kind, though it may. The caller holds the lock.
func (c *Cluster) isUnsure(kind Kind) bool {
	if c.catalog == nil || !c.catalog.unsure || isBuiltIn(kind.Group) {
		return false
	}
	_, registered := c.catalog.services[schema.GroupVersion{Group: kind.Group, Version: kind.Version}]
	return !registered
}

// knowStorage asks who serves a kind, if the API server did not answer that when it was asked what
// it serves. An error wraps ErrUnavailable: a name that is not the storage's would be that of
// another history.
func (c *Cluster) knowStorage(ctx context.Context, kind Kind) error {
	c.mu.Lock()
	unsure, before := c.isUnsure(kind), c.catalog
	c.mu.Unlock()
	if !unsure {
		return nil
	}
	answer, err := c.once(ctx, "services", func(ctx context.Context) (any, error) { return c.askAPIServices(ctx) })
	if err != nil {
		return err
	}
	now := *before
	now.services, now.unsure = answer.(apiServices), false
	now.tellStorages()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.catalog == before {
		c.catalog = &now
	}
	return nil
}

// tellStorages names the storages of what is served.
func (c *catalog) tellStorages() {
	versions := map[schema.GroupVersion]bool{}
	for gvr := range c.kinds {
		versions[gvr.GroupVersion()] = true
	}
	c.storages = c.services.storages(versions)
}

// apiServices says of each version of a group that an APIService registers who serves it: the uid
// of the APIService if that names a service, or "" for the API server itself.
type apiServices map[schema.GroupVersion]string

var apiServicesPath = "/apis/apiregistration.k8s.io/v1/apiservices"

// askAPIServices reads them. It returns nil if the gateway may not list them, and none for an API
// server that has no such kind.
func (c *Cluster) askAPIServices(ctx context.Context) (apiServices, error) {
	body, err := c.client.Get().AbsPath(apiServicesPath).MaxRetries(0).DoRaw(ctx)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return nil, nil
	case apierrors.IsNotFound(err):
		return apiServices{}, nil
	case err != nil:
		return nil, fmt.Errorf("%w: reading the APIServices of cluster %s: %w", ErrUnavailable, c.name, err)
	}
	found := apiServices{}
	gjson.GetBytes(body, "items").ForEach(func(_, item gjson.Result) bool {
		of := item.Get("spec")
		uid := ""
		if of.Get("service").IsObject() {
			uid = item.Get("metadata.uid").String()
		}
		found[schema.GroupVersion{Group: of.Get("group").String(), Version: of.Get("version").String()}] = uid
		return true
	})
	return found, nil
}

// storages names the storages of the versions of groups, of those that are not in the main one.
// What no APIService registers is not served by the API server itself, unless that is built in.
func (s apiServices) storages(versions map[schema.GroupVersion]bool) map[schema.GroupVersion]string {
	if s == nil {
		return nil // they cannot be told apart
	}
	found := map[schema.GroupVersion]string{}
	for gv := range versions {
		if uid, registered := s[gv]; uid != "" || !registered && !isBuiltIn(gv.Group) {
			found[gv] = gv.String() + " " + uid
		}
	}
	return found
}

// isBuiltIn reports whether a group is one of Kubernetes' own, by its name.
func isBuiltIn(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// shortHash returns 40 bits of a hash, in lower-case letters and digits.
func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5]))
}
