package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/config"
)

// reload follows the configuration file, the kubeconfigs and the certificate while the gateway runs. It polls them:
// they are small, and polling works with any editor, with the symbolic links of Kubernetes' volumes, and over network
// file systems.
type reload struct {
	opts     Options
	clusters *clusters
	cert     *certificate // may be nil

	current config.Config
	failed  string   // the fault of the file at the last reading; "": none
	told    []string // keys about which it was logged that they need a restart
}

func newReload(opts Options, clusters *clusters, cert *certificate) *reload {
	if opts.Poll <= 0 {
		opts.Poll = 2 * time.Second
	}
	return &reload{opts: opts, clusters: clusters, cert: cert, current: opts.Config}
}

// Run polls until the context ends.
func (r *reload) Run(ctx context.Context) error {
	tick := time.NewTicker(r.opts.Poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if r.opts.Reload != nil {
			r.file()
		}
		r.kubeconfigs()
		if r.cert != nil {
			r.cert.look(time.Now())
		}
	}
}

// file reads the configuration, and takes over its clusters. A file that is not valid changes nothing.
func (r *reload) file() {
	next, err := r.opts.Reload()
	if err == nil && !slices.Equal(next.Clusters, r.current.Clusters) {
		err = r.clusters.set(next.Clusters)
	}
	if err != nil {
		if err.Error() != r.failed {
			r.failed = err.Error()
			r.opts.Log.Error("configuration cannot be used: everything stays as it is", "error", err)
		}
		return
	}
	if r.failed != "" {
		r.failed = ""
		r.opts.Log.Info("configuration can be used again")
	}
	r.current.Clusters = next.Clusters
	if keys := changed(r.current, next); !slices.Equal(keys, r.told) {
		r.told = keys
		if len(keys) > 0 {
			r.opts.Log.Warn("configuration was changed in what needs a restart", "keys", strings.Join(keys, ","))
		}
	}
}

// changed returns the top-level keys, except clusters, in which two configurations differ.
func changed(a, b config.Config) (keys []string) {
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range va.NumField() {
		key := va.Type().Field(i).Tag.Get("yaml")
		if key != "clusters" && !reflect.DeepEqual(va.Field(i).Interface(), vb.Field(i).Interface()) {
			keys = append(keys, key)
		}
	}
	return keys
}

// kubeconfigs makes the clusters read their kubeconfigs again if these have changed. One that cannot be used may just
// be being written; it is tried again when it changes.
func (r *reload) kubeconfigs() {
	for _, m := range r.clusters.list() {
		now := digest(m.files)
		if now == m.read {
			continue
		}
		m.read = now
		if err := r.clusters.refresh(m); err != nil {
			r.opts.Log.Error("kubeconfig cannot be used: the cluster stays as it is", "name", m.config.Name, "error", err)
		}
	}
}

// digest identifies the contents of files. A file that does not exist counts as empty.
func digest(files []string) (d [sha256.Size]byte) {
	sum := sha256.New()
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			content = []byte(err.Error())
		}
		part := sha256.Sum256(content)
		sum.Write(part[:])
	}
	sum.Sum(d[:0])
	return d
}
