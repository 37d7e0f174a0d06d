package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/client-go/discovery"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubecast/kubecast/internal/shards"
	"github.com/kubecast/kubecast/internal/tracing"
)

// ErrNoKind means that the cluster answered, and does not serve such a kind.
var ErrNoKind = errors.New("the cluster serves no such kind")

// ErrUnavailable means that the cluster could not be asked.
var ErrUnavailable = errors.New("the cluster cannot be reached")

// Options say which cluster to connect to.
type Options struct {
	Name       string       // the gateway's name for it
	Kubeconfig string       // a file; empty: in-cluster, else the usual kubeconfig rules
	Context    string       // of the kubeconfig; empty: its current one
	Core       Core         // in place of these, if it has an address
	Share      shards.Share // what is asked of the API server; the zero value: all
	UserAgent  string
	// Serves says which kinds the gateway serves; nil: all that the cluster has. Any other kind is treated as one
	// that the cluster does not have.
	Serves func(group, resource string) bool
	Tracer *tracing.Tracer // nil: there are no traces

	// Config, if not nil, is used instead of the files; it is copied.
	Config *rest.Config
}

// Cluster is the connection to one cluster. Its methods may be called concurrently.
type Cluster struct {
	opts      Options
	name      string
	host      string
	breaker   *breaker
	client    rest.Interface
	lists     rest.Interface // for whole lists; see transports
	discovery *discovery.DiscoveryClient
	reviews   *Reviews
	tokens    *TokenReviews
	// selfReviews ask what the gateway itself may do.
	selfReviews authorizationv1.SelfSubjectAccessReviewInterface
	core        *corev1.CoreV1Client
	documents   documents
	logs        *http.Client
	flight      singleflight.Group

	definitions definitions

	mu       sync.Mutex
	catalog  *catalog             // the newest one; nil before the first
	defined  time.Time            // when a definition changed last
	changes  int                  // how many changes of what is served became known; see Changed
	changed  map[string]int       // by group, the number of its last change
	newest   map[Kind]newest      // the last answer for each kind
	epoch    string               // empty before it is known
	identity string               // the epoch that it had at first
	restarts map[string]*restarts // by storage, of those that are not the main one
	life     context.Context      // Run's; nil before it runs

	measurements briefly[Kind, *Measurements]
	orders       briefly[string, PendingOrder] // by ClusterQueue
}

// Connect prepares the connection. It does not use it, so a cluster that is away is no error here.
func Connect(opts Options) (*Cluster, error) {
	config, transports, err := opts.transports()
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", opts.Name, err)
	}
	breaker := newBreaker(transports)
	httpClient := &http.Client{Transport: breaker}
	client, err := rest.UnversionedRESTClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", opts.Name, err)
	}
	forLists := &http.Client{Transport: listBreaker{breaker}}
	lists, err := rest.UnversionedRESTClientForConfigAndClient(config, forLists)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", opts.Name, err)
	}
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", opts.Name, err)
	}
	authorization, err := authorizationv1.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", opts.Name, err)
	}
	authentication, err := authenticationv1.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", opts.Name, err)
	}
	core, err := corev1.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", opts.Name, err)
	}
	return &Cluster{
		core:        core,
		opts:        opts,
		name:        opts.Name,
		host:        config.Host,
		breaker:     breaker,
		client:      client,
		lists:       lists,
		logs:        forLists,
		discovery:   disco,
		selfReviews: authorization.SelfSubjectAccessReviews(),
		tokens:      &TokenReviews{reviews: authentication.TokenReviews(), breaker: breaker},
		reviews:     &Reviews{reviews: authorization.SubjectAccessReviews(), client: client, breaker: breaker},
		documents:   newDocuments(httpClient, readable{opts.Serves}.document),
	}, nil
}

// Refresh reads the kubeconfig, or a Core's files, again. Requests use its credentials from now on; those under way keep the old ones. It
// is not needed for files that client-go reads again by itself: a token or certificate that the kubeconfig names as a
// file, and the token of a ServiceAccount. It reports whether the API server's address has changed, which needs a new
// Cluster. In that case, and after an error, nothing is changed.
func (c *Cluster) Refresh() (moved bool, err error) {
	config, transports, err := c.opts.transports()
	switch {
	case err != nil:
		return false, fmt.Errorf("cluster %s: %w", c.name, err)
	case config.Host != c.host:
		return true, nil
	}
	c.breaker.replace(transports)
	return false, nil
}

// Files are the paths of the files by which the cluster is reached: kubeconfigs, which need not exist, or those of a Core.
func (opts Options) Files() []string {
	switch {
	case opts.Config != nil:
		return nil
	case opts.Core.given():
		return opts.Core.files()
	}
	return kubeconfigRules(opts).GetLoadingPrecedence()
}

func kubeconfigRules(opts Options) *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = opts.Kubeconfig
	return rules
}

func restConfig(opts Options) (*rest.Config, error) {
	switch {
	case opts.Config != nil:
		return rest.CopyConfig(opts.Config), nil
	case opts.Core.given():
		return opts.Core.config(opts.Name)
	}
	if opts.Kubeconfig == "" && opts.Context == "" {
		config, err := rest.InClusterConfig()
		if !errors.Is(err, rest.ErrNotInCluster) {
			return config, err
		}
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(kubeconfigRules(opts),
		&clientcmd.ConfigOverrides{CurrentContext: opts.Context}).ClientConfig()
	switch {
	case !clientcmd.IsEmptyConfig(err):
		return config, err
	case opts.Kubeconfig != "":
		return nil, fmt.Errorf("%s names no API server: it is empty, or lacks the cluster of its context", opts.Kubeconfig)
	default:
		return nil, errors.New("no cluster is configured: name a kubeconfig (--kubeconfig, or clusters[].kubeconfig), " +
			"or run the gateway inside one")
	}
}

// Name is the gateway's name for the cluster.
func (c *Cluster) Name() string { return c.name }

// Host is the API server's address, or the addresses of cores.
func (c *Cluster) Host() string {
	if c.opts.Core.given() {
		return strings.Join(c.opts.Core.Addresses, ", ")
	}
	return c.host
}

// Reviews is the client that creates SubjectAccessReviews.
func (c *Cluster) Reviews() *Reviews { return c.reviews }

// TokenReviews is the client that asks the cluster whom a token belongs to.
func (c *Cluster) TokenReviews() *TokenReviews { return c.tokens }

// ConfigMaps is the client for the ConfigMaps of a namespace. They are all that the gateway ever writes to a cluster.
func (c *Cluster) ConfigMaps(namespace string) corev1.ConfigMapInterface {
	return configMaps{c.core.ConfigMaps(namespace)}
}

// ListWatch lists and watches a kind, for an informer.
func (c *Cluster) ListWatch(kind Kind, health Health) *ListWatch {
	return &ListWatch{client: c.client, lists: c.lists, kind: kind, shard: c.shardOf(kind), cluster: c.name, tracer: c.opts.Tracer, health: health}
}

// shardOf is the part of a kind's objects for which the API server is asked.
func (c *Cluster) shardOf(kind Kind) shards.Shard { return c.opts.Share.Of(kind.Group, kind.Resource) }

// requestTimeout bounds small requests. Lists and watches have time-outs of their own.
const requestTimeout = 10 * time.Second

func (c *Cluster) lifetime() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.life
}

// once joins concurrent callers with the same question into one request. The request outlives the caller that began
// it, but not Run. A cluster that is away is not asked: the error then wraps ErrUnavailable.
func (c *Cluster) once(ctx context.Context, question string, ask func(context.Context) (any, error)) (any, error) {
	if err := c.Away(); err != nil {
		return nil, err
	}
	answer := c.flight.DoChan(question, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		if life := c.lifetime(); life != nil {
			defer context.AfterFunc(life, cancel)()
		}
		ctx, noted := noteAttempts(ctx)
		answer, err := ask(ctx)
		return answer, noted.explain(err)
	})
	select {
	case r := <-answer:
		return r.Val, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
