package charttest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// evil ends whatever it is written into, begins a manifest of its own, and fails where it is taken for a template.
const evil = "x\"'}]\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: evil}\n#{{ fail (print \"exec\" \"uted\") }}\n"

// full has each feature on, so that each value is somewhere.
const full = `
config:
  auth: {jwt: [{issuer: "https://id.example.org", audiences: [a]}], revocations: {configMap: kubecast/revoked}}
  history: {database: "postgres://u@h/d"}
history: {existingSecret: p, migration: {enabled: true, database: "postgres://o@h/d", existingSecret: o}}
keys: {existingSecret: k}
tls: {existingSecret: t}
clusters: [{name: west, existingSecret: w, key: k}]
ingress: {enabled: true, host: h.example.org, tlsSecret: s}
httpRoute: {enabled: true, parentRefs: [{name: g}], hostnames: [h.example.org]}
metrics: {podMonitor: {enabled: true}, rules: {enabled: true}, dashboard: {enabled: true}}
autoscaling: {enabled: true}
preflight: {hooks: [test, post-install]}
`

// texts are the paths of all texts, and of what may be one.
func texts(values any, path []string, found func(path []string)) {
	switch v := values.(type) {
	case map[string]any:
		for key, below := range v {
			texts(below, append(slices.Clone(path), key), found)
		}
	case string:
		found(path)
	}
}

// set writes a value at a path.
func set(values map[string]any, path []string, value any) {
	for _, key := range path[:len(path)-1] {
		below, is := values[key].(map[string]any)
		if !is {
			below = map[string]any{}
		}
		below = maps.Clone(below)
		values[key] = below
		values = below
	}
	values[path[len(path)-1]] = value
}

func kinds(t *testing.T, of string, files map[string]string) (all []string) {
	t.Helper()
	for file, text := range withoutNotes(files) {
		for _, document := range strings.Split("\n"+text, "\n---\n") {
			var o object
			if err := yaml.UnmarshalStrict([]byte(document), &map[string]any{}); err != nil {
				t.Errorf("%s: %s: %v\n%s", of, file, err, document)
			}
			if err := yaml.Unmarshal([]byte(document), &o); err == nil && o.Kind != "" {
				all = append(all, o.Kind+"/"+o.Metadata.Name)
			}
		}
	}
	slices.Sort(all)
	return all
}

// Whatever text a value is, no object is made by it: it is refused, or it is a text.
func TestNoValueMakesAnObject(t *testing.T) {
	t.Parallel()
	clean, err := render4(parse(t, full))
	if err != nil {
		t.Fatal(err)
	}
	want := kinds(t, "nothing", clean)
	defaults, given := chartDefaults(t), parse(t, full)
	paths := map[string][]string{}
	note := func(path []string) { paths[strings.Join(path, ".")] = path }
	texts(defaults, nil, note)
	texts(given, nil, note)
	for _, path := range []string{
		"config.basePath", "config.listen", "config.opsListen", "config.auth.revocations.configMap", "config.auth.cookieKeyFile", "config.drain", "config.ring.bytes",
		"commonLabels.a", "podLabels.a", "podAnnotations.a", "service.annotations.a", "ingress.annotations.a", "httpRoute.annotations.a", "serviceAccount.annotations.a",
		"nodeSelector.a", "jobs.annotations.a", "service.spec.loadBalancerClass", "metrics.podMonitor.labels.a", "metrics.dashboard.annotations.a",
	} {
		note(strings.Split(path, "."))
	}
	refused := 0
	for name, path := range paths {
		values := parse(t, full)
		set(values, path, evil)
		files, err := render4(values)
		if err != nil {
			refused++
			if strings.Contains(err.Error(), "executed") {
				t.Errorf("%s is taken for a template: %v", name, err)
			}
			continue
		}
		if got := kinds(t, name, files); !slices.Equal(got, want) {
			t.Errorf("with %s there are %v", name, got)
		}
	}
	if len(paths) < 45 || refused < 28 {
		t.Errorf("%d texts were tried, %d refused", len(paths), refused)
	}
}

// A value of a wrong type is refused by its name, whichever it is.
func TestEachValueHasAType(t *testing.T) {
	t.Parallel()
	for key, value := range chartDefaults(t) {
		wrong := any([]any{map[string]any{"a": []any{1}}})
		switch value.(type) {
		case []any:
			wrong = map[string]any{"a": 1}
		case nil:
			wrong = "text"
		}
		if _, err := render4(map[string]any{key: wrong}); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
		if below, is := value.(map[string]any); is && key != "config" {
			for part, value := range below {
				wrong := any([]any{1})
				if _, is := value.([]any); is {
					wrong = map[string]any{"a": 1}
				}
				if _, err := render4(map[string]any{key: map[string]any{part: wrong}}); err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("%s.%s: %v", key, part, err)
				}
			}
		}
	}
}

// Passwords in addresses would be in a ConfigMap, which many may read.
func TestNoAddressHasAPassword(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"config: {tracing: {endpoint: \"http://u:secret@collector:4318\"}}":                   "config.tracing.endpoint",
		"config: {auth: {jwt: [{issuer: \"https://u:secret@id\", audiences: [a]}]}}":          "config.auth.jwt[0].issuer",
		"config: {auth: {jwt: [{issuer: a}, {issuer: b, jwksURL: \"https://secret@id/k\"}]}}": "config.auth.jwt[1].jwksURL",
		"config: {webhooks: [{name: a, url: \"https://u:secret@chat/x\"}]}":                   "config.webhooks[0].url",
		"config: {webhooks: [{name: a, url: \"HTTPS://u:secret@chat/x\"}]}":                   "config.webhooks[0].url",
	} {
		_, err := render4(parse(t, values))
		if err == nil || !strings.Contains(err.Error(), want+" has a password") || strings.Contains(err.Error(), "secret@") {
			t.Errorf("%s: %v", values, err)
		}
	}
	if _, err := render4(parse(t, "config: {auth: {jwt: [{issuer: \"https://id/realms/a@b\", audiences: [a]}]}}")); err != nil {
		t.Error(err)
	}
}

// Names of Services have 63 characters at most, begin with a letter, and have no dot; Helm's releases may.
func TestNamesFitAndDifferForEachRelease(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 52)
	seen := map[string]string{}
	for _, release := range []string{"a", "kubecast", long + "1", long + "2", strings.Repeat("k", 42) + "-kubecast-a", strings.Repeat("k", 42) + "-kubecast-b"} {
		files, err := renderAs(release, "kubecast", parse(t, full))
		if err != nil {
			t.Error(release, err)
			continue
		}
		for _, name := range kinds(t, release, files) {
			if other := seen[name]; other != "" && !strings.HasSuffix(name, "/revoked") {
				t.Errorf("%s and %s have %s", release, other, name)
			}
			seen[name] = release
			if kind, name, _ := strings.Cut(name, "/"); !strings.Contains(kind, "Role") && len(name) > 63 {
				t.Errorf("%s: %s/%s has %d characters", release, kind, name, len(name))
			}
		}
	}
	for _, release := range []string{"1st", "team.gateway"} {
		if _, err := renderAs(release, "kubecast", nil); err == nil || !strings.Contains(err.Error(), "set fullnameOverride") {
			t.Error(release, err)
		}
	}
}
