package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/table"
)

// apiTable is a table as it was sent.
type apiTable struct {
	Kind, APIVersion  string
	Metadata          struct{ ResourceVersion, Continue string }
	ColumnDefinitions []metav1.TableColumnDefinition
	Rows              []apiRow
}

type apiRow struct {
	Cells      []any
	Conditions []metav1.TableRowCondition
	Object     json.RawMessage
}

// tableOf asks the API server for a table.
func (s *stage) tableOf(t *testing.T, path, include string) apiTable {
	t.Helper()
	body, err := s.kube.CoreV1().RESTClient().Get().AbsPath(path).Param("includeObject", include).
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").DoRaw(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var table apiTable
	if err := json.Unmarshal(body, &table); err != nil {
		t.Fatal(err)
	}
	return table
}

// create makes the objects of a manifest in a namespace, with their status, and deletes those that have a finalizer.
func (s *stage) create(t *testing.T, namespace, file string) {
	t.Helper()
	ctx := context.Background()
	groups, err := restmapper.GetAPIGroupResources(s.kube.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var manifests []map[string]any
	if err := yaml.Unmarshal(text, &manifests); err != nil {
		t.Fatal(err)
	}
	for _, manifest := range manifests {
		o := asUnstructured(t, manifest)
		gvk := o.GroupVersionKind()
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			t.Fatal(err)
		}
		var client dynamic.ResourceInterface = s.dynamic.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			client = s.dynamic.Resource(mapping.Resource).Namespace(namespace)
		}
		if _, err := client.Create(ctx, o, metav1.CreateOptions{}); err != nil {
			t.Fatalf("%s %s: %v", gvk.Kind, o.GetName(), err)
		}
		t.Cleanup(func() {
			_, _ = client.Patch(ctx, o.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			_ = client.Delete(ctx, o.GetName(), metav1.DeleteOptions{})
		})
		if status, ok := manifest["status"]; ok {
			patch, err := json.Marshal(map[string]any{"status": status})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
				t.Fatalf("status of %s %s: %v", gvk.Kind, o.GetName(), err)
			}
		}
		if strings.Contains(o.GetName(), "terminating") {
			if err := client.Delete(ctx, o.GetName(), metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func asUnstructured(t *testing.T, manifest map[string]any) *unstructured.Unstructured {
	t.Helper()
	text, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	return o
}

// sameTable compares a table of the API server, which includes the objects, with the gateway's table of the same
// objects. The ages must be those of some moment during the request. Where the kind has a status of its own, it must be
// what stands in the column.
func sameTable(of schema.GroupResource, ours *table.Table, theirs apiTable, began, ended time.Time) error {
	status := table.Status(of)
	at := slices.IndexFunc(theirs.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == "Status" })
	var columns []metav1.TableColumnDefinition
	if err := json.Unmarshal(ours.AppendColumns(nil), &columns); err != nil {
		return err
	}
	if d := cmp.Diff(theirs.ColumnDefinitions, columns); d != "" {
		return fmt.Errorf("columns (-API server +ours):\n%s", d)
	}
	for _, want := range theirs.Rows {
		var compact bytes.Buffer
		if err := json.Compact(&compact, want.Object); err != nil {
			return err
		}
		o, err := cluster.NewObject(compact.String())
		if err != nil {
			return err
		}
		difference := ""
		for now := began; !now.After(ended.Add(time.Second)); now = now.Add(500 * time.Millisecond) {
			var have apiRow
			if err := json.Unmarshal(ours.AppendRow(nil, o, table.Options{Include: metav1.IncludeNone, Now: now}), &have); err != nil {
				return err
			}
			have.Object, want.Object = nil, nil
			if difference = cmp.Diff(want, have); difference == "" {
				break
			}
		}
		if status != nil && status(o) != want.Cells[at] {
			return fmt.Errorf("%s is %q, at the API server %q\n%s", o.Key(), status(o), want.Cells[at], compact.String())
		}
		if difference != "" {
			return fmt.Errorf("%s (-API server +ours):\n%s\n%s", o.Key(), difference, compact.String())
		}
	}
	return nil
}

// A table has the same columns and cells as the API server's table of the same objects.
func TestTablesEqualTheAPIServers(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "tables")
	s.create(t, "tables", "testdata/tables.yaml")
	config, err := s.cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Connect(cluster.Options{Name: "tables", Config: config})
	if err != nil {
		t.Fatal(err)
	}
	// The objects of other tests are there, too, and controllers change both: that makes for more cases.
	for gvr, atLeast := range map[schema.GroupVersionResource]int{
		{Version: "v1", Resource: "pods"}:                           27,
		{Group: "batch", Version: "v1", Resource: "jobs"}:           9,
		{Group: "apps", Version: "v1", Resource: "deployments"}:     2,
		{Group: "apps", Version: "v1", Resource: "replicasets"}:     2,
		{Group: "apps", Version: "v1", Resource: "statefulsets"}:    1,
		{Group: "apps", Version: "v1", Resource: "daemonsets"}:      2,
		{Version: "v1", Resource: "nodes"}:                          3,
		{Version: "v1", Resource: "services"}:                       10,
		{Version: "v1", Resource: "namespaces"}:                     2,
		{Version: "v1", Resource: "events"}:                         4,
		{Group: "events.k8s.io", Version: "v1", Resource: "events"}: 4,
		{Version: "v1", Resource: "configmaps"}:                     2,
		{Version: "v1", Resource: "persistentvolumeclaims"}:         4,
		{Group: "", Version: "v1", Resource: "limitranges"}:         1,
	} {
		t.Run(gvr.Resource+"."+gvr.Group, func(t *testing.T) {
			kind, err := c.Resolve(context.Background(), gvr.Group, gvr.Version, gvr.Resource)
			if err != nil {
				t.Fatal(err)
			}
			ours := table.For(context.Background(), c, kind)
			// The tables are compared while the controllers work, and once they have finished.
			for range 4 {
				began := time.Now()
				theirs := s.tableOf(t, kind.Path(), "Object")
				if len(theirs.Rows) < atLeast {
					t.Errorf("%d rows, not at least %d", len(theirs.Rows), atLeast)
				}
				if err := sameTable(gvr.GroupResource(), ours, theirs, began, time.Now()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(500 * time.Millisecond)
			}
		})
	}
}

// describeAlike gives columns of the same name one description. Descriptions come from the API's
// types, of which the gateway may have others than the API server: they change from version to
// version, and kubectl does not print them.
func describeAlike(theirs, ours []metav1.TableColumnDefinition) {
	for i := range theirs {
		if i < len(ours) && theirs[i].Name == ours[i].Name {
			theirs[i].Description = ours[i].Description
		}
	}
}

// Each kind of its own that the API server has and the gateway serves is printed as there, in all
// its versions, and by kubectl in each form. Definitions are other tests', which remove them while
// this one runs; TestTablesOfCustomResourcesEqualTheAPIServers has one of its own.
func TestTablesOfAllKindsEqualTheAPIServers(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.kubectlObjects(t, "tables-listed")
	s.create(t, "tables-listed", "testdata/tables-listed.yaml")
	config, err := s.cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Connect(cluster.Options{Name: "all-tables", Config: config})
	if err != nil {
		t.Fatal(err)
	}
	defined := definedGroups(t, s) // Before discovery, which has a definition a while after it was made.
	_, lists, err := s.kube.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	empty := 0
	var namespaced, others []string // as kubectl names them
	for _, list := range lists {
		of, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			kind, err := c.Resolve(context.Background(), of.Group, of.Version, resource.Name)
			if err != nil || !kind.Watchable || defined.Has(of.Group) {
				continue
			}
			name := strings.Trim(resource.Name+"."+of.Version+"."+of.Group, ".")
			if of.Group == "" {
				name = resource.Name
			}
			if resource.Namespaced {
				namespaced = append(namespaced, name)
			} else {
				others = append(others, name)
			}
			t.Run(of.String()+"/"+resource.Name, func(t *testing.T) {
				began := time.Now()
				theirs := s.tableOf(t, kind.Path(), "Object")
				if len(theirs.Rows) == 0 {
					empty++
					t.Logf("there is no object of the kind %s", kind)
				}
				ours := table.For(context.Background(), c, kind)
				describeAlike(theirs.ColumnDefinitions, ours.Columns())
				if err := sameTable(schema.GroupResource{Group: of.Group, Resource: resource.Name}, ours, theirs, began, time.Now()); err != nil {
					t.Error(err)
				}
			})
		}
	}
	// Pods, what makes them, claims, limits and definitions are only there if other tests have made some.
	if empty > 9 {
		t.Errorf("%d kinds have no object", empty)
	}
	s.printsAlike(t, "tables-listed", namespaced, others)
}

// printsAlike has kubectl print objects at both servers: those of a namespace that is the test's
// own, and those of kinds that are in none.
func (s *stage) printsAlike(t *testing.T, namespace string, namespaced, others []string) {
	t.Helper()
	manifest, group := crd(namespace)
	s.kubectl(t, manifest, "apply", "-f", "-")
	nodes, err := s.kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// Other tests make and remove objects of these kinds all the time, so one is asked for.
	names := map[string]string{
		"namespaces": namespace, "nodes": nodes.Items[0].Name, "clusterroles": "admin", "clusterrolebindings": "cluster-admin",
		"apiservices": "v1.apps", "customresourcedefinitions": "trainings." + group,
	}
	var calm, single []string
	for _, kind := range others {
		resource, _, _ := strings.Cut(kind, ".")
		if name := names[resource]; name != "" {
			single = append(single, kind+"/"+name)
		} else {
			calm = append(calm, kind)
		}
	}
	gateway := kubectlTo(t, s.secureGateway(t), s.admin(t), "")
	for _, form := range [][]string{{"-o", "name"}, {}, {"-o", "wide"}} {
		if !slices.Contains(form, "name") {
			calm = slices.DeleteFunc(calm, func(kind string) bool { return strings.HasPrefix(kind, "flowschemas.") }) // by precedence there
		}
		for _, what := range [][]string{{strings.Join(namespaced, ","), "-n", namespace}, {strings.Join(calm, ",")}, single} {
			arguments := append(append([]string{"get"}, what...), form...)
			agree(t, fmt.Sprint("kubectl ", arguments), func() error {
				before := failure(s.tryKubectl(arguments...))
				got := failure(s.tryKubectl(append(gateway, arguments...)...))
				if got == before || aged(before, got) && aged(got, failure(s.tryKubectl(arguments...))) {
					return nil
				}
				return fmt.Errorf("prints\n%s\nafter\n%s", got, before)
			})
		}
	}
}

// definedGroups are the groups of the definitions that the API server has.
func definedGroups(t *testing.T, s *stage) sets.Set[string] {
	t.Helper()
	list, err := s.dynamic.Resource(definitionsKind).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	groups := sets.New[string]()
	for i := range list.Items {
		group, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "group")
		groups.Insert(group)
	}
	return groups
}

// columnsManifest defines a kind with a column of each type, and some columns whose JSONPath has more than names.
const columnsManifest = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: runs.columns.e2e.kubecast.io}
spec:
  group: columns.e2e.kubecast.io
  scope: Namespaced
  names: {plural: runs, singular: run, kind: Run, listKind: RunList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    additionalPrinterColumns:
    - {name: Text, type: string, jsonPath: .spec.text, description: a text}
    - {name: Number, type: integer, jsonPath: .spec.number, format: int32}
    - {name: Rate, type: number, jsonPath: .spec.rate, priority: 1}
    - {name: Flag, type: boolean, jsonPath: .spec.flag}
    - {name: Since, type: date, jsonPath: .spec.since}
    - {name: Made, type: date, jsonPath: .metadata.creationTimestamp}
    - {name: First, type: string, jsonPath: ".spec.list[0].name"}
    - {name: All, type: string, jsonPath: ".spec.list[*].name"}
    - {name: Chosen, type: string, jsonPath: ".spec.list[?(@.name==\"b\")].value"}
    - {name: Ready, type: string, jsonPath: ".status.conditions[?(@.type==\"Ready\")].status"}
    - {name: Map, type: string, jsonPath: .spec.map}
    - {name: Label, type: string, jsonPath: ".metadata.labels.e2e\\.kubecast\\.io/label"}
    - {name: Quoted, type: string, jsonPath: ".spec['text']"}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - name: v0
    served: false
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// runValues are values of a field that a column prints: of the column's type, of others, and none.
var runValues = []string{
	`"a text"`, `""`, `3`, `3.5`, `true`, `null`, `["a","b"]`, `{"a":1}`,
	`"2026-01-01T00:00:00Z"`, `"2026-01-01T00:00:00.5+02:00"`, `"yesterday"`, `9007199254740993`, `1e21`, `-0.000001`, `"null"`, `[]`,
}

// Custom resources have the columns of their definition in the requested version, and the same cells as at the API
// server, whatever the fields hold.
func TestTablesOfCustomResourcesEqualTheAPIServers(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "columns")
	s.kubectl(t, columnsManifest, "apply", "-f", "-")
	t.Cleanup(func() { s.kubectl(t, "", "delete", "crd", "runs.columns.e2e.kubecast.io") })
	s.kubectl(t, "", "wait", "--for=condition=Established", "crd", "runs.columns.e2e.kubecast.io")
	runs := s.dynamic.Resource(schema.GroupVersionResource{Group: "columns.e2e.kubecast.io", Version: "v1", Resource: "runs"}).Namespace("columns")
	for i, value := range runValues {
		o := &unstructured.Unstructured{}
		err := o.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion":"columns.e2e.kubecast.io/v1","kind":"Run",
			"metadata":{"name":"run-%[2]d","labels":{"e2e.kubecast.io/label":"l%[2]d"}},
			"spec":{"text":%[1]s,"number":%[1]s,"rate":%[1]s,"flag":%[1]s,"since":%[1]s,"map":%[1]s,
				"list":[{"name":"a","value":%[1]s},{"name":"b","value":%[1]s}]},
			"status":{"conditions":[{"type":"Ready","status":%[1]s}]}}`, value, i))
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the kind is served", func() error {
			_, err := runs.Create(context.Background(), o, metav1.CreateOptions{})
			return err
		})
	}
	bare := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "columns.e2e.kubecast.io/v1", "kind": "Run", "metadata": map[string]any{"name": "bare"}}}
	odd := bare.DeepCopy()
	odd.SetName("odd")
	odd.Object["spec"] = "no object"
	for _, o := range []*unstructured.Unstructured{bare, odd} {
		if _, err := runs.Create(context.Background(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	config, err := s.cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Connect(cluster.Options{Name: "columns", Config: config})
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v1", "v2"} {
		kind, err := c.Resolve(context.Background(), "columns.e2e.kubecast.io", version, "runs")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		theirs := s.tableOf(t, kind.Path(), "Object")
		if len(theirs.Rows) != len(runValues)+2 {
			t.Fatalf("%d rows, not %d", len(theirs.Rows), len(runValues)+2)
		}
		if err := sameTable(schema.GroupResource{}, table.For(context.Background(), c, kind), theirs, began, time.Now()); err != nil {
			t.Error(err)
		}
	}
}

// Beside the cells a row has the object, its metadata, or nothing.
func TestTableRowsIncludeWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "include")
	if _, err := s.kube.CoreV1().ConfigMaps("include").Create(context.Background(), configMap("include", "one", map[string]string{"a": "b"}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	o, err := s.kube.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/include/configmaps/one").DoRaw(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	object, err := cluster.NewObject(string(o))
	if err != nil {
		t.Fatal(err)
	}
	configMaps := table.For(context.Background(), nil, cluster.Kind{Version: "v1", Resource: "configmaps"})
	for _, include := range []string{"", "None", "Metadata", "Object"} {
		theirs := s.tableOf(t, "/api/v1/namespaces/include/configmaps/one", include)
		var have apiRow
		row := configMaps.AppendRow(nil, object, table.Options{Include: metav1.IncludeObjectPolicy(include), Now: time.Now()})
		if err := json.Unmarshal(row, &have); err != nil {
			t.Fatal(err)
		}
		if want := theirs.Rows[0].Object; !sameJSON(string(have.Object), string(want)) {
			t.Errorf("includeObject=%s: %s\nnot %s", include, have.Object, want)
		}
	}
}
