package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
)

// labelledObjects have, and lack, the fields that the API server selects by.
const labelledObjects = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shirts.labels.example.org}
spec:
  group: labels.example.org
  scope: Namespaced
  names: {kind: Shirt, plural: shirts, singular: shirt}
  versions:
  - name: v1
    served: true
    storage: true
    selectableFields: [{jsonPath: .spec.color}, {jsonPath: .spec.size}, {jsonPath: .spec.washed}, {jsonPath: .spec.made.in}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {color: {type: string}, size: {type: integer}, washed: {type: boolean}, made: {type: object, properties: {in: {type: string}}}}
---
apiVersion: v1
kind: Node
metadata: {name: labels-shut}
spec: {unschedulable: true}
---
apiVersion: batch/v1
kind: Job
metadata: {name: done, namespace: field-labels}
spec:
  template:
    metadata: {annotations: {devcluster.kubecast.io/run-seconds: "1"}}
    spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: held, namespace: field-labels}
spec:
  suspend: true
  template:
    spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}
---
apiVersion: v1
kind: Pod
metadata: {name: host, namespace: field-labels}
spec: {hostNetwork: true, schedulerName: nobody, restartPolicy: Never, containers: [{name: main, image: busybox}]}
---
apiVersion: v1
kind: Pod
metadata: {name: own, namespace: field-labels}
spec: {containers: [{name: main, image: busybox}]}
---
apiVersion: v1
kind: ReplicationController
metadata: {name: none, namespace: field-labels}
spec: {replicas: 0, selector: {app: none}, template: {metadata: {labels: {app: none}}, spec: {containers: [{name: main, image: busybox}]}}}
---
apiVersion: v1
kind: ReplicationController
metadata: {name: one, namespace: field-labels}
spec: {replicas: 1, selector: {app: one}, template: {metadata: {labels: {app: one}}, spec: {schedulerName: nobody, containers: [{name: main, image: busybox}]}}}
---
apiVersion: v1
kind: Event
metadata: {name: said, namespace: field-labels}
involvedObject: {kind: Pod, name: own, namespace: field-labels, apiVersion: v1, uid: u-1, resourceVersion: "7", fieldPath: spec.containers}
reason: Demo
message: m
type: Normal
source: {component: demo}
firstTimestamp: "2026-01-02T03:04:05Z"
lastTimestamp: "2026-01-02T03:04:05Z"
---
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: reported, namespace: field-labels}
regarding: {kind: Pod, name: host, namespace: field-labels}
reason: Demo
action: Try
note: m
type: Warning
reportingController: example.org/demo
reportingInstance: one
eventTime: "2026-01-02T03:04:05.000006Z"
---
apiVersion: v1
kind: Secret
metadata: {name: plain, namespace: field-labels}
---
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: field-labels}
type: kubernetes.io/basic-auth
stringData: {username: u, password: p}
---
apiVersion: v1
kind: Service
metadata: {name: headless, namespace: field-labels}
spec: {clusterIP: None, selector: {a: b}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: away, namespace: field-labels}
spec: {type: ExternalName, externalName: example.org}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: labels-node}
spec: {driver: gpu.example.org, nodeName: labels-shut, pool: {name: p, generation: 1, resourceSliceCount: 1}, devices: []}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: labels-all}
spec: {driver: nic.example.org, allNodes: true, pool: {name: q, generation: 1, resourceSliceCount: 1}, devices: []}
`

const labelledShirts = `
apiVersion: labels.example.org/v1
kind: Shirt
metadata: {name: red, namespace: field-labels}
spec: {color: red, size: 42, washed: true, made: {in: here}}
---
apiVersion: labels.example.org/v1
kind: Shirt
metadata: {name: grey, namespace: field-labels}
spec: {size: 0, washed: false, color: ""}
---
apiVersion: labels.example.org/v1
kind: Shirt
metadata: {name: bare, namespace: field-labels}
`

// Every field label that the API server knows selects the same here, in lists and in watches, of
// objects that have and lack the field.
func TestFieldLabelsSelectWhatTheAPIServerSelects(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "field-labels")
	s.kubectl(t, labelledObjects, "apply", "-f", "-")
	t.Cleanup(func() {
		s.kubectl(t, "", "delete", "node/labels-shut", "crd/shirts.labels.example.org", "resourceslice/labels-node", "resourceslice/labels-all", "--wait=false")
	})
	s.kubectl(t, "", "wait", "--for=condition=Established", "crd/shirts.labels.example.org", "--timeout=60s")
	s.kubectl(t, labelledShirts, "apply", "-f", "-")
	s.kubectl(t, "", "wait", "--for=condition=Complete", "job/done", "-n", "field-labels", "--timeout=120s")
	in := func(path string) string { return strings.Replace(path, "/v1/", "/v1/namespaces/field-labels/", 1) }
	everywhere := []string{"metadata.name", "metadata.namespace"}
	of := func(prefix string) (labels []string) {
		for _, name := range []string{"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"} {
			labels = append(labels, prefix+"."+name)
		}
		return labels
	}
	kinds := []struct {
		path   string
		labels []string
	}{
		{in("/api/v1/pods"), append(everywhere, "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
			"status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName", "spec.host")},
		{"/api/v1/nodes", []string{"metadata.name", "spec.unschedulable"}},
		{in("/api/v1/replicationcontrollers"), []string{"metadata.name", "status.replicas"}},
		{in("/api/v1/events"), slices.Concat(everywhere, of("involvedObject"), []string{"reason", "reportingComponent", "source", "type"})},
		{in("/apis/events.k8s.io/v1/events"), slices.Concat(everywhere, of("regarding"), []string{"reason", "reportingController", "type"})},
		{"/api/v1/namespaces", []string{"metadata.name", "status.phase"}},
		{in("/api/v1/secrets"), append(everywhere, "type")},
		{in("/api/v1/services"), append(everywhere, "spec.clusterIP", "spec.type")},
		{in("/api/v1/configmaps"), everywhere},
		{in("/apis/batch/v1/jobs"), append(everywhere, "status.successful")},
		{in("/apis/apps/v1/replicasets"), everywhere},
		{"/apis/certificates.k8s.io/v1/certificatesigningrequests", []string{"metadata.name", "spec.signerName"}},
		{"/apis/resource.k8s.io/v1/resourceslices", []string{"metadata.name", "spec.nodeName", "spec.driver"}},
		{in("/apis/labels.example.org/v1/shirts"), append(everywhere, "spec.color", "spec.size", "spec.washed", "spec.made.in")},
	}
	values := []string{"", "0", "1", "42", "true", "false", "done", "own", "labels-shut", "field-labels", "nobody", "Never", "Running", "Pending", "default",
		"None", "ClusterIP", "Opaque", "Active", "demo", "example.org/demo", "Demo", "Warning", "Pod", "v1", "7", "u-1", "spec.containers", "red", "here", "gpu.example.org"}
	config, err := s.cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	g, token := s.sharedGateway(t), s.admin(t)
	compare := func(query string, watched bool) error {
		want, err := selected(client, nil, config.Host+query)
		if err != nil {
			return err
		}
		got, err := selected(http.DefaultClient, bearer(token), g.url+query)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("%v, and at the API server %v", got, want)
		}
		if err != nil || !watched {
			return err
		}
		if got, err = watchedFirst(http.DefaultClient, bearer(token), g.url+query); err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("a watch has %v, and a list at the API server %v", got, want)
		}
		return err
	}
	var comparing errgroup.Group
	comparing.SetLimit(8)
	var differ struct {
		sync.Mutex
		queries []string
	}
	for _, kind := range kinds {
		for _, label := range kind.labels {
			for i, value := range values {
				for _, operator := range []string{"=", "!="} {
					query := kind.path + "?fieldSelector=" + url.QueryEscape(label+operator+value)
					comparing.Go(func() error {
						if compare(query, i < 6 || value == "demo") != nil {
							differ.Lock()
							defer differ.Unlock()
							differ.queries = append(differ.queries, query)
						}
						return nil
					})
				}
			}
		}
	}
	_ = comparing.Wait()                   // none returns an error
	for _, query := range differ.queries { // objects may have changed between two answers
		eventually(t, query+" is answered alike", func() error { return compare(query, true) })
	}
}

// selected are the names in a list.
func selected(client *http.Client, header http.Header, address string) (names []string, err error) {
	response, err := open(client, header, address)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var list struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return nil, err
	}
	for _, item := range list.Items {
		names = append(names, item.Metadata.Name)
	}
	slices.Sort(names)
	return names, nil
}

// watchedFirst are the names that a watch begins with.
func watchedFirst(client *http.Client, header http.Header, address string) (names []string, err error) {
	response, err := open(client, header, address+"&watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=30")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		var event struct {
			Type   string
			Object struct{ Metadata struct{ Name string } }
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, err
		}
		if event.Type == "BOOKMARK" {
			slices.Sort(names)
			return names, nil
		}
		names = append(names, event.Object.Metadata.Name)
	}
	return nil, fmt.Errorf("the watch ended before its first state was told")
}

func open(client *http.Client, header http.Header, address string) (*http.Response, error) {
	request, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	if header != nil {
		request.Header = header
	}
	response, err := (&http.Client{Transport: client.Transport, Timeout: time.Minute}).Do(request)
	if err == nil && response.StatusCode != http.StatusOK {
		response.Body.Close()
		err = fmt.Errorf("status %d of %s", response.StatusCode, address)
	}
	return response, err
}
