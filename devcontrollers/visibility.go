package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	visibility "sigs.k8s.io/kueue/apis/visibility/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	"sigs.k8s.io/kueue/pkg/constants"
	"sigs.k8s.io/kueue/pkg/visibility/storage"
)

// serveVisibility answers Kueue's visibility API from its queues until ctx ends, and has the API
// server pass requests for it on, as Kueue's manifests do. What is answered is Kueue's own; its
// server is not used, since that keeps its certificate in a folder of the root.
func serveVisibility(ctx context.Context, config *rest.Config, queues *qcache.Manager) error {
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		return err
	}
	server := &http.Server{Handler: &pendingWorkloads{whole: storage.NewPendingWorkloadsInCqREST(queues), local: storage.NewPendingWorkloadsInLqREST(queues)}}
	go func() { _ = server.Serve(listener) }()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return registerVisibility(ctx, config, listener.Addr().(*net.TCPAddr).Port)
}

// pendingWorkloads answers in which order Workloads wait.
type pendingWorkloads struct {
	whole, local genericrest.GetterWithOptions
}

func (p *pendingWorkloads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	group := visibility.SchemeGroupVersion
	path, ok := strings.CutPrefix(strings.TrimSuffix(r.URL.Path, "/"), "/apis/"+group.String())
	parts := strings.Split(path, "/")
	var answer any
	var err error
	switch {
	case !ok:
		http.NotFound(w, r)
		return
	case path == "":
		get := metav1.Verbs{"get"}
		answer = metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: group.String(),
			APIResources: []metav1.APIResource{
				{Name: "clusterqueues/pendingworkloads", Kind: "PendingWorkloadsSummary", Verbs: get},
				{Name: "localqueues/pendingworkloads", Kind: "PendingWorkloadsSummary", Verbs: get, Namespaced: true},
			},
		}
	case len(parts) == 4 && parts[1] == "clusterqueues" && parts[3] == "pendingworkloads":
		answer, err = summary(r, p.whole, "", parts[2])
	case len(parts) == 6 && parts[3] == "localqueues" && parts[5] == "pendingworkloads":
		answer, err = summary(r, p.local, parts[2], parts[4])
	default:
		http.NotFound(w, r)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // a client that has gone is no error
}

func summary(r *http.Request, of genericrest.GetterWithOptions, namespace, name string) (runtime.Object, error) {
	options := &visibility.PendingWorkloadOptions{Limit: constants.DefaultPendingWorkloadsLimit}
	for parameter, into := range map[string]*int64{"limit": &options.Limit, "offset": &options.Offset} {
		if text := r.URL.Query().Get(parameter); text != "" {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, err
			}
			*into = n
		}
	}
	return of.Get(request.WithNamespace(r.Context(), namespace), name, options)
}

// registerVisibility makes the APIService, and a Service that leads to a port of loopback: as an
// endpoint, such an address would be refused.
func registerVisibility(ctx context.Context, config *rest.Config, port int) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	const name, namespace = "kueue-visibility-server", "kube-system"
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"type": "ExternalName", "externalName": "localhost"},
	}}
	version := visibility.SchemeGroupVersion
	api := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": version.Version + "." + version.Group},
		"spec": map[string]any{
			"group": version.Group, "version": version.Version, "groupPriorityMinimum": int64(100), "versionPriority": int64(100), "insecureSkipTLSVerify": true,
			"service": map[string]any{"name": name, "namespace": namespace, "port": int64(port)},
		},
	}}
	apply := metav1.ApplyOptions{FieldManager: "devcontrollers", Force: true}
	if _, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "services"}).Namespace(namespace).Apply(ctx, name, service, apply); err != nil {
		return err
	}
	services := schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	_, err = client.Resource(services).Apply(ctx, api.GetName(), api, apply)
	return err
}
