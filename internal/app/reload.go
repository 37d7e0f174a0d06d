package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/config"
)

// reload follows the configuration file, the files that it names and the kubeconfigs while the gateway runs. It polls
// them: they are small, and polling works with any editor, with the symbolic links of Kubernetes' volumes, and over
// network file systems. A signal asks it not to wait for the next poll.
type reload struct {
	opts     Options
	clusters *clusters
	cert     *certificate // may be nil
	parts    []*livePart
	good     prometheus.Gauge
	needed   prometheus.Gauge

	failed string   // the fault of the file at the last reading; "": none
	told   []string // keys about which it was logged that they need a restart

	mu      sync.Mutex
	current config.Config // that is in use
	restart []string      // keys in which the file differs from it
}

// livePart is a part of the gateway that takes over its keys' changes while it runs.
type livePart struct {
	keys []string // by their full paths; one that ends with a point stands for all below it
	// files are those that the keys name, whose contents count as the keys do; nil: there are none, or the part looks
	// at them itself.
	files func(config.Config) []string
	// take makes ready what a configuration wants, and returns what puts it to use. An error means that the whole
	// configuration cannot be used, except errNeedsRestart.
	take func(config.Config) (use func(), err error)

	read [sha256.Size]byte // digest of the files when they were taken over
}

// errNeedsRestart means that a part cannot take over this change.
var errNeedsRestart = errors.New("this needs a restart")

// has reports whether a key is one of the part's.
func (p *livePart) has(key string) bool {
	return slices.ContainsFunc(p.keys, func(own string) bool {
		return key == own || strings.HasSuffix(own, ".") && strings.HasPrefix(key, own)
	})
}

func (p *livePart) digest(cfg config.Config) [sha256.Size]byte {
	if p.files == nil {
		return [sha256.Size]byte{}
	}
	return digest(p.files(cfg))
}

// newReload follows what the gateway was built from.
func newReload(opts Options, g *assembly) *reload {
	if opts.Poll <= 0 {
		opts.Poll = 2 * time.Second
	}
	r := &reload{
		opts: opts, clusters: g.clusters, cert: g.certificate, parts: g.liveParts(opts.Level), current: opts.Config,
		good: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kubecast_config_reload_successful",
			Help: "Whether the configuration file could be used when it was read last.",
		}),
		needed: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kubecast_config_restart_needed",
			Help: "Whether the configuration file was changed in keys that only a restart takes over (/debug/config).",
		}),
	}
	for _, part := range r.parts {
		part.read = part.digest(opts.Config)
	}
	g.registry.MustRegister(r.good, r.needed)
	r.good.Set(1)
	return r
}

// Run polls until the context ends.
func (r *reload) Run(ctx context.Context) error {
	tick := time.NewTicker(r.opts.Poll)
	defer tick.Stop()
	for {
		asked := false
		select {
		case <-ctx.Done():
			return nil
		case <-r.opts.Again:
			asked = true
		case <-tick.C:
		}
		if r.opts.Reload != nil {
			r.file(asked)
		}
		r.kubeconfigs()
		if r.cert != nil {
			r.cert.look(time.Now())
		}
	}
}

// file reads the configuration, and takes over what can be taken over. If anything cannot be used, nothing changes.
// Asked says that somebody waits to be told that it was read.
func (r *reload) file(asked bool) {
	next, err := r.opts.Reload()
	var applied []string
	if err == nil {
		applied, err = r.take(next)
	}
	if err != nil {
		if r.good.Set(0); asked || err.Error() != r.failed {
			r.failed = err.Error()
			r.opts.Log.Error("configuration cannot be used: everything stays as it is", "error", err)
		}
		return
	}
	r.good.Set(1)
	if r.failed != "" {
		r.failed = ""
		r.opts.Log.Info("configuration can be used again")
	}
	if asked || !slices.Equal(r.restart, r.told) {
		r.told = r.restart
		if len(r.restart) > 0 {
			r.opts.Log.Warn("configuration was changed in what needs a restart", "keys", strings.Join(r.restart, ","))
		}
	}
	if asked || len(applied) > 0 {
		r.opts.Log.Info("configuration was read again", "changed", strings.Join(applied, ","))
	}
}

// take takes a configuration over, and returns the keys of the parts that did. All parts make ready what they need
// before one puts anything to use.
func (r *reload) take(next config.Config) (applied []string, err error) {
	changed := config.Changed(r.current, next)
	var uses []func()
	var faults []error
	for _, part := range r.parts {
		var mine []string
		for _, key := range changed {
			if part.has(key) {
				mine = append(mine, key)
			}
		}
		read := part.digest(next)
		if len(mine) == 0 && read == part.read {
			continue
		}
		use, err := part.take(next)
		switch {
		case errors.Is(err, errNeedsRestart):
			continue
		case err != nil:
			faults = append(faults, err)
			continue
		}
		if len(mine) == 0 { // what the files hold
			mine = part.keys
		}
		applied = append(applied, mine...)
		uses = append(uses, func() {
			use()
			part.read = read
		})
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	for _, use := range uses {
		use()
	}
	slices.Sort(applied)
	applied = slices.Compact(applied) // two parts may have the same key
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = r.current.With(next, slices.DeleteFunc(changed, func(key string) bool { return !slices.Contains(applied, key) })...)
	r.restart = config.Changed(r.current, next)
	r.needed.Set(0)
	if len(r.restart) > 0 {
		r.needed.Set(1)
	}
	return applied, nil
}

// print is the configuration that is in use, for people.
func (r *reload) print() ([]byte, error) {
	r.mu.Lock()
	current, restart := r.current, r.restart
	r.mu.Unlock()
	text, err := config.Print(current)
	if err == nil && len(restart) > 0 {
		text = append([]byte("# The file differs in these keys, and a restart takes them over: "+strings.Join(restart, ", ")+"\n"), text...)
	}
	return text, err
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
			r.opts.Log.Error("kubeconfig, or a file of edge, cannot be used: the cluster stays as it is", "name", m.config.Name, "error", err)
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
