package charttest

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// object is what these tests look at of a manifest.
type object struct {
	Kind     string
	Metadata struct {
		Name, Namespace     string
		Labels, Annotations map[string]string
	}
	Data map[string]string
	Spec struct {
		PodSelector struct{ MatchLabels map[string]string }
		Egress      []struct{ Ports []struct{ Port any } }
	}
}

// objects are those of a rendering, strictly read. Notes are left out.
func objects(t *testing.T, values, namespace string) (all []object) {
	t.Helper()
	files, err := renderIn(namespace, parse(t, values))
	if err != nil {
		t.Fatal(values, err)
	}
	for file, text := range withoutNotes(files) {
		for _, document := range strings.Split(text, "\n---\n") {
			var whole map[string]any
			var o object
			if err := yaml.UnmarshalStrict([]byte(document), &whole); err != nil {
				t.Errorf("%s: %s: %v\n%s", values, file, err, document)
			}
			if err := yaml.Unmarshal([]byte(document), &o); err != nil {
				t.Fatal(err)
			}
			if o.Kind != "" {
				all = append(all, o)
			}
		}
	}
	return all
}

// Releases of one name in two namespaces, or of two names in one, must have nothing in common elsewhere: Helm refuses the second, or takes rights from the first.
func TestReleasesShareNothingOutsideOfTheirNamespace(t *testing.T) {
	long := strings.Repeat("n", 62)
	const values = "config: {auth: {revocations: {configMap: shared/revoked}}}"
	releases := []struct{ namespace, values string }{{long + "1", values}, {long + "2", values}, {long + "1", values + "\nfullnameOverride: other"}, {"a", values + "\nfullnameOverride: b-c"}, {"a-b", values + "\nfullnameOverride: c"}}
	seen, elsewhere := map[string]bool{}, 0
	for _, r := range releases {
		for _, o := range objects(t, r.values, r.namespace) {
			if o.Metadata.Namespace == r.namespace {
				continue
			}
			key := o.Kind + "/" + o.Metadata.Namespace + "/" + o.Metadata.Name
			if seen[key] {
				t.Error("both have", key)
			}
			seen[key] = true
			elsewhere++
		}
	}
	if elsewhere != 20 {
		t.Errorf("%d objects are elsewhere: %v", elsewhere, seen)
	}
}

// The gateway, and the jobs that run before it, reach all hosts of the database.
func TestPoliciesLetOutToEachPortOfTheDatabase(t *testing.T) {
	for address, want := range map[string][]float64{
		"postgres://u@h/d":                            {443, 6443, 5432},
		"postgres://u@h1:5433,h2:5434/d":              {443, 6443, 5433, 5434},
		"postgres://u@h1,[2001:db8::1]:6432/d":        {443, 6443, 5432, 6432},
		"postgres://u@/d?host=h1&port=6432":           {443, 6443, 6432},
		"postgres:///d?user=u&host=h1,h2&port=1,2":    {443, 6443, 1, 2},
		"mysql://u@h/d?tls=true":                      {443, 6443, 3306},
		"mysql://u@h:3307/d":                          {443, 6443, 3307},
		"postgresql://u@h/d?sslmode=verify-full#:7/x": {443, 6443, 5432},
	} {
		values := "{config: {history: {database: \"" + address + "\"}}, history: {migration: {enabled: true, existingSecret: s, database: \"" + address + "\"}}}"
		policies := map[string][]float64{}
		for _, o := range objects(t, values, "kubecast") {
			if o.Kind != "NetworkPolicy" {
				continue
			}
			for _, rule := range o.Spec.Egress {
				for _, p := range rule.Ports {
					if port, is := p.Port.(float64); is && port != 53 {
						policies[o.Metadata.Name] = append(policies[o.Metadata.Name], port)
					}
				}
			}
		}
		for _, name := range []string{"gateway-kubecast", "gateway-kubecast-migrate", "gateway-kubecast-preflight"} {
			if !slices.Equal(policies[name], want) {
				t.Errorf("%s: %s lets out to %v, not %v", address, name, policies[name], want)
			}
		}
	}
}

// An issuer, a collector or a receiver of webhooks at a port of its own would not be reached, and nothing but a sign-in says so.
func TestThePolicyLetsOutToThePortOfEachAddress(t *testing.T) {
	t.Parallel()
	for values, want := range map[string][]float64{
		`auth: {jwt: [{issuer: "https://id.example.org", audiences: [a]}]}`:                            {443, 6443},
		`auth: {jwt: [{issuer: "https://id.example.org:8443/realms/a:1", audiences: [a]}]}`:            {443, 6443, 8443},
		`auth: {jwt: [{issuer: a, jwksURL: "HTTPS://[2001:db8::1]:9443/keys?a=b:2", audiences: [a]}]}`: {443, 6443, 9443},
		`tracing: {endpoint: "http://collector:4318"}`:                                                 {443, 6443, 4318},
		`webhooks: [{name: chat, url: "http://chat.example.org/a"}]`:                                   {443, 6443, 80},
	} {
		var got []float64
		for _, o := range objects(t, "config: {"+values+"}", "kubecast") {
			if o.Kind != "NetworkPolicy" || o.Metadata.Name != "gateway-kubecast" {
				continue
			}
			for _, rule := range o.Spec.Egress {
				for _, p := range rule.Ports {
					if port, is := p.Port.(float64); is && port != 53 {
						got = append(got, port)
					}
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: it lets out to %v, not %v", values, got, want)
		}
	}
}

// Where a policy of the namespace lets nothing out, jobs hang unless one is there for them, and before them.
func TestJobsHaveAPolicyInTime(t *testing.T) {
	values := "{config: {history: {database: \"postgres://u@h/d\"}}, history: {migration: {enabled: true, existingSecret: s, database: \"postgres://o@h/d\"}}}"
	var policy, job object
	for _, o := range objects(t, values, "kubecast") {
		switch o.Kind + "/" + o.Metadata.Name {
		case "NetworkPolicy/gateway-kubecast-migrate":
			policy = o
		case "Job/gateway-kubecast-migrate":
			job = o
		}
	}
	const hook, weight = "helm.sh/hook", "helm.sh/hook-weight"
	if policy.Metadata.Annotations[hook] != "pre-install,pre-upgrade" || job.Metadata.Annotations[weight] != "-5" || policy.Metadata.Annotations[weight] != "-10" {
		t.Errorf("the policy: %v, the job: %v", policy.Metadata.Annotations, job.Metadata.Annotations)
	}
	selects := policy.Spec.PodSelector.MatchLabels
	for key, value := range selects {
		if job.Metadata.Labels[key] != value {
			t.Errorf("the policy is for %v, the job has %v", selects, job.Metadata.Labels)
		}
	}
	if len(selects) != 3 {
		t.Error(selects)
	}
}

// An image's tag may be longer than a label, and have an end that a label must not have.
func TestLabelsAreValidWithAnyTag(t *testing.T) {
	label := regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
	for _, tag := range []string{strings.Repeat("a", 62) + "-bcd", strings.Repeat("a", 61) + "._bcd", "_a", "v1.2.3"} {
		for _, o := range objects(t, "image: {tag: "+tag+"}", "kubecast") {
			for key, value := range o.Metadata.Labels {
				if !label.MatchString(value) {
					t.Errorf("%s/%s: %s: %q", o.Kind, o.Metadata.Name, key, value)
				}
			}
		}
	}
}

// What ingress.annotations says counts in place of the chart's own; a key that is there twice is no YAML.
func TestAnnotationsOfTheIngressAreSaidOnce(t *testing.T) {
	const key = "nginx.ingress.kubernetes.io/backend-protocol"
	for given, want := range map[string]string{"{}": "HTTPS", "{" + key + ": HTTPS}": "HTTPS", "{" + key + ": GRPCS}": "GRPCS"} {
		found := false
		// Any class may be one of ingress-nginx; others do not look at its annotations.
		for _, o := range objects(t, "{tls: {existingSecret: s}, ingress: {enabled: true, className: internal, host: h, nginxSnippet: true, annotations: "+given+"}}", "kubecast") {
			if o.Kind != "Ingress" {
				continue
			}
			found = true
			if got := o.Metadata.Annotations; got[key] != want || got["nginx.ingress.kubernetes.io/proxy-buffer-size"] != "16k" || !strings.Contains(got["nginx.ingress.kubernetes.io/server-snippet"], "retry: 2000") {
				t.Errorf("%s: %v", given, got)
			}
		}
		if !found {
			t.Error("no Ingress")
		}
	}
}

// Who comes by anything but ingress-nginx is let in by nobody until that is said; and an autoscaler takes replicas away at first.
func TestNotesSayWhatIsClosed(t *testing.T) {
	const closed, once = "networkPolicy.http", "Where replicas were a number before"
	for values, want := range map[string]string{
		"service: {type: LoadBalancer}":                                closed,
		"httpRoute: {enabled: true, parentRefs: [{name: g}]}":          closed,
		"{keys: {existingSecret: k}, autoscaling: {enabled: true}}":    once,
		"ingress: {enabled: true, host: h}":                            "",
		"{service: {type: NodePort}, networkPolicy: {enabled: false}}": "",
	} {
		files, err := render4(parse(t, values))
		if err != nil {
			t.Fatal(err)
		}
		notes := files["kubecast/templates/NOTES.txt"]
		for _, note := range []string{closed, once} {
			if strings.Contains(notes, note) != (note == want) {
				t.Errorf("%s: %q: %s", values, note, notes)
			}
		}
	}
}

// Whatever is before the gateway may answer 502 or 503 for it, unless it was told not to.
func TestNotesSayWhatEndsAnEventSource(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]bool{
		"ingress: {enabled: true, host: h}":                     true,
		"ingress: {enabled: true, host: h, className: traefik}": true,
		"httpRoute: {enabled: true, parentRefs: [{name: g}]}":   true,
		"service: {type: LoadBalancer}":                         true,
		"ingress: {enabled: true, host: h, nginxSnippet: true}": false,
		"{}": false,
	} {
		files, err := render4(parse(t, values))
		if err != nil {
			t.Fatal(err)
		}
		if notes := files["kubecast/templates/NOTES.txt"]; strings.Contains(notes, "502 or 503") != want {
			t.Errorf("%s: %s", values, notes)
		}
	}
}

// Helm 3 has removed a pod that succeeded before it reads its logs, and fails; nor does it read those of init containers.
func TestNotesSayHowLogsOfHelmsTestAreRead(t *testing.T) {
	t.Parallel()
	files, err := render4(parse(t, "{}"))
	if err != nil {
		t.Fatal(err)
	}
	notes := files["kubecast/templates/NOTES.txt"]
	if strings.Contains(notes, "--logs") || !strings.Contains(notes, "kubectl logs -n kubecast gateway-kubecast-preflight --all-containers") {
		t.Error(notes)
	}
}

// Who signs in at another name than that of the Ingress comes back to nothing; and the provider has to know where they come back to.
func TestNotesSayWhereUsersSignIn(t *testing.T) {
	t.Parallel()
	const login = `{keys: {existingSecret: k}, config: {auth: {jwt: [{issuer: "https://id.example.org", audiences: [a]}], ` +
		`oidcLogin: {clientID: a, clientSecretFile: /etc/kubecast-keys/s, redirectURL: "https://h.example.org:8443/tools/auth/callback"}}}, ingress: {enabled: true, `
	const other, plain = "BUT the Ingress is for", "The Ingress has no TLS"
	for ingress, want := range map[string]string{
		"host: h.example.org, tlsSecret: s":    "",
		"host: else.example.org, tlsSecret: s": other,
		"host: h.example.org":                  plain,
	} {
		files, err := render4(parse(t, login+ingress+"}}"))
		if err != nil {
			t.Fatal(err)
		}
		notes := files["kubecast/templates/NOTES.txt"]
		for _, note := range []string{other, plain} {
			if strings.Contains(notes, note) != (note == want) {
				t.Errorf("%s: %q: %s", ingress, note, notes)
			}
		}
		for _, note := range []string{"browser at https://h.example.org:8443/tools/\n", "redirect URI https://h.example.org:8443/tools/auth/callback,", "and https://h.example.org:8443/tools/ as the address after a logout"} {
			if !strings.Contains(notes, note) {
				t.Errorf("%s: nothing of %q: %s", ingress, note, notes)
			}
		}
	}
}

// A file that a volume brings is there, also one that is mounted by itself (subPath), or below a path that ends in a slash.
func TestAMountedFileIsNotRefused(t *testing.T) {
	t.Parallel()
	const login = `config: {auth: {jwt: [{issuer: "https://id.example.org", audiences: [a]}], oidcLogin: {clientID: a, redirectURL: "https://h.example.org/auth/callback", clientSecretFile: `
	for mount, file := range map[string]string{
		"mountPath: /etc/kubecast-keys/client-secret, subPath: client-secret": "/etc/kubecast-keys/client-secret",
		"mountPath: /etc/kubecast/oidc/":                                      "/etc/kubecast/oidc/client-secret",
		"mountPath: /etc/kubecast/oidc":                                       "/etc/kubecast/oidc/client-secret",
	} {
		values := `{` + login + file + `}}}, extraVolumes: [{name: s, secret: {secretName: s}}], extraVolumeMounts: [{name: s, ` + mount + `}]}`
		if _, err := render4(parse(t, values)); err != nil {
			t.Errorf("%s: %v", mount, err)
		}
		other := strings.Replace(values, file, file+"-of-another", 1)
		if _, err := render4(parse(t, other)); strings.Contains(mount, "subPath") && err == nil {
			t.Errorf("%s is taken for what brings %s-of-another", mount, file)
		}
	}
}

// While a history moves there is no replica: that is no reason for what several take.
func TestNoReplicaIsNotSeveral(t *testing.T) {
	t.Parallel()
	const values = "{keys: {existingSecret: k}, config: {history: {database: sqlite}}"
	none, err := render4(parse(t, values+", replicas: 0}"))
	if err != nil {
		t.Fatal(err)
	}
	one, err := render4(parse(t, values+"}"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range one {
		if got := strings.Replace(none[name], "  replicas: 0\n", "  replicas: 1\n", 1); got != want {
			t.Errorf("%s:\n%s\n--- not\n%s", name, got, want)
		}
	}
}
