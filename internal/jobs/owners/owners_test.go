package owners

import (
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	trainJobs = cluster.Kind{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs", Kind: "TrainJob", Namespaced: true, Watchable: true}
	jobSets   = cluster.Kind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets", Kind: "JobSet", Namespaced: true, Watchable: true}
	workflows = cluster.Kind{Group: "argoproj.io", Version: "v1alpha1", Resource: "workflows", Kind: "Workflow", Namespaced: true, Watchable: true}
	fleets    = cluster.Kind{Group: "fleet.example.org", Version: "v1", Resource: "fleets", Kind: "Fleet", Watchable: true}
	secrets   = cluster.Kind{Version: "v1", Resource: "secrets", Kind: "Secret", Namespaced: true, Watchable: true}
)

// below is the field of an object that a kind's object controls; "uid" is what the other claims of it.
func below(kind cluster.Kind, name, uid string) string {
	return apitest.Set("metadata.ownerReferences", []map[string]any{
		{"apiVersion": "example.org/v1", "kind": "Watcher", "name": "no-controller", "uid": "u"},
		{"apiVersion": kind.APIVersion(), "kind": kind.Kind, "name": name, "uid": uid, "controller": true},
	})
}

func ownedBy(name string) string {
	return apitest.Set("metadata.annotations", map[string]string{"kubecast.io/owner": name})
}

func finder(t *testing.T, api *apitest.API, owner string) *Finder {
	t.Helper()
	set, err := rules.New(rules.Options{Key: "history", Owner: owner})
	if err != nil {
		t.Fatal(err)
	}
	return New(api.Connect(t), set, slog.New(slog.DiscardHandler))
}

func job(t *testing.T, fields ...string) *cluster.Object {
	t.Helper()
	o, err := cluster.NewObject(apitest.JSON(apitest.Jobs, "n/j", append(fields, "metadata.resourceVersion=7", "metadata.uid=j")...))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOwnersAreFoundAboveAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(append(apitest.Usual, trainJobs, jobSets, workflows, fleets)...)
		defer api.Close()
		put := func(kind cluster.Kind, name string, fields ...string) string {
			api.Put(kind.Resource, name, fields...)
			return api.UID(kind.Resource, name)
		}
		train := put(trainJobs, "n/train", ownedBy("ann@example.org"))
		set := put(jobSets, "n/set", below(trainJobs, "train", train))
		silent := put(jobSets, "n/silent")
		flow := put(workflows, "n/flow", apitest.Set("metadata.labels", map[string]string{"workflows.argoproj.io/creator": "arno"}))
		secret := put(secrets, "n/secret", ownedBy("mallory"))
		circle := put(jobSets, "n/a")
		put(jobSets, "n/a", below(jobSets, "b", put(jobSets, "n/b", below(jobSets, "a", circle)))) // they control each other
		fleet := put(fleets, "fleet", ownedBy("flo"))
		elsewhere := put(jobSets, "m/elsewhere", ownedBy("mallory"))
		put(jobSets, "n/elsewhere")
		api.Put("namespaces", "n")
		api.Put("namespaces", "kubeflow", apitest.Set("metadata.labels", map[string]string{"app.kubernetes.io/part-of": "kubeflow-profile"}), apitest.Set("metadata.annotations", map[string]string{"owner": "kim@example.org"}))
		api.Put("namespaces", "personal", ownedBy("pat"))
		api.Put("namespaces", "other", apitest.Set("metadata.annotations", map[string]string{"owner": "nobody that we know"}))

		f := finder(t, api, "")
		in := func(namespace string) string { return "metadata.namespace=" + namespace }
		for name, test := range map[string]struct {
			job   *cluster.Object
			owner string
		}{
			"two above":                      {job(t, below(jobSets, "set", set)), "ann@example.org"},
			"by its kind's own label":        {job(t, below(workflows, "flow", flow)), "arno"},
			"another of the same name":       {job(t, below(jobSets, "set", "other-uid")), ""},
			"nobody says anything":           {job(t, below(jobSets, "silent", silent)), ""},
			"gone":                           {job(t, below(jobSets, "gone", "u")), ""},
			"a kind that nobody knows":       {job(t, below(apitest.Widgets, "w", "u")), ""},
			"no object of the core group":    {job(t, below(secrets, "secret", secret)), ""},
			"by a name that leads elsewhere": {job(t, below(jobSets, "../../../../../../api/v1/namespaces/n/secrets/secret", secret)), ""},
			"in a circle":                    {job(t, below(jobSets, "a", circle)), ""},
			"without a uid":                  {job(t, below(jobSets, "set", "")), ""},
			"of another namespace":           {job(t, below(jobSets, "elsewhere", elsewhere)), ""},
			"of no namespace":                {job(t, below(fleets, "fleet", fleet)), ""}, // anybody could name it
			"of no namespace, both":          {job(t, "metadata.namespace=", below(fleets, "fleet", fleet)), "flo"},
			"a Kubeflow profile":             {job(t, in("kubeflow")), "kim@example.org"},
			"a namespace's annotation":       {job(t, below(jobSets, "silent", "u"), in("personal")), "pat"},
			"any annotation of the name":     {job(t, in("other")), ""},
		} {
			if owner, err := f.Of(t.Context(), test.job, api.UID("namespaces", test.job.GetNamespace())); owner != test.owner || err != nil {
				t.Errorf("%s: %q, %v; want %q", name, owner, err, test.owner)
			}
		}
		if n := api.Served("secrets"); n != 0 {
			t.Errorf("%d requests for secrets", n)
		}

		byQueue := finder(t, api, `object.metadata.annotations['kubecast.io/owner'].split('@')[0] + '!'`)
		if owner, err := byQueue.Of(t.Context(), job(t, below(jobSets, "set", set)), ""); owner != "ann!" || err != nil {
			t.Errorf("by an expression: %q, %v", owner, err)
		}
	})
}

func TestManyJobsOfOneOwnerAskOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(jobSets)
		defer api.Close()
		api.Put("jobsets", "n/set", ownedBy("ann"))
		f, o := finder(t, api, ""), job(t, below(jobSets, "set", api.UID("jobsets", "n/set")))
		for range 100 {
			if owner, err := f.Of(t.Context(), o, ""); owner != "ann" || err != nil {
				t.Fatal(owner, err)
			}
		}
		if n := api.Served("jobsets"); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
		api.Put("jobsets", "n/set", ownedBy("bob"))
		time.Sleep(keep + time.Second)
		if owner, err := f.Of(t.Context(), o, ""); owner != "bob" || err != nil {
			t.Errorf("a minute after a change: %q, %v", owner, err)
		}
	})
}

// A job must not become nobody's because the API server was away for a moment. And a kind that does
// not answer must not stop the recording.
func TestAnOwnerThatCannotBeAskedForNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(jobSets)
		defer api.Close()
		api.Put("jobsets", "n/set", ownedBy("ann"))
		o := job(t, below(jobSets, "set", api.UID("jobsets", "n/set")))
		f := finder(t, api, "")
		api.Away(true)
		if owner, err := f.Of(t.Context(), o, ""); err == nil {
			t.Errorf("while the API server was away: %q", owner)
		}
		api.Away(false)
		time.Sleep(time.Minute) // until the cluster is tried again
		if owner, err := f.Of(t.Context(), o, ""); owner != "ann" || err != nil {
			t.Errorf("afterwards: %q, %v", owner, err)
		}
		time.Sleep(keep + time.Second)
		api.Hang("jobsets")
		began := time.Now()
		if owner, err := f.Of(t.Context(), o, ""); owner != "" || err != nil || time.Since(began) > tries*(within+pause) {
			t.Errorf("while a kind hangs: %q, %v after %s", owner, err, time.Since(began))
		}
		api.Fail("jobsets", 0)
	})
}

// A recorder waits for owners, and must be back before its lease ends, however many jobs have one that cannot be read.
func TestAKindThatHangsHoldsABatchBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(jobSets)
		defer api.Close()
		f := finder(t, api, "")
		api.Hang("jobsets")
		began := time.Now()
		var finding errgroup.Group
		finding.SetLimit(16)
		for n := range 512 {
			o := job(t, below(jobSets, strconv.Itoa(n), "u"))
			finding.Go(func() error {
				_, err := f.Of(t.Context(), o, "")
				return err
			})
		}
		if err := finding.Wait(); err != nil || time.Since(began) > 7*time.Second {
			t.Errorf("512 jobs waited for %s: %v", time.Since(began), err)
		}
		api.Fail("jobsets", 0)
	})
}
