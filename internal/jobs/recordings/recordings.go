// Package recordings has lives of jobs as real controllers wrote them, for tests: every version of the job, of its pods
// and of what Kueue or Volcano keeps beside it, and what a person says happened. lives.tar.gz has them as
// a file of the job-like objects, with files of their pods, Workloads and PodGroups, and the person's words, for each
// scenario. They were made on a real control plane with simulated kubelets, by the controllers that docs/history.md
// names.
package recordings

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed lives.tar.gz
var archive []byte

// Event is one version of an object, as a watch told it.
type Event struct {
	At     time.Time       `json:"at"`
	Type   string          `json:"type"` // ADDED, MODIFIED or DELETED
	Object json.RawMessage `json:"object"`
}

// Life is one recorded scenario.
type Life struct {
	Folder, Scenario string
	Resource         string  // of the job, as resource.group; "" for plain pods
	Jobs             []Event // of all job-like objects
	Pods             []Event
	Workloads        []Event
	PodGroups        []Event
	Truth            Truth
}

// Name is the life's own.
func (l *Life) Name() string { return l.Folder + "/" + l.Scenario }

// Truth is what a person says that happened.
type Truth struct {
	States   []string
	Attempts int
	Failures int     // of pods
	CPU      float64 // seconds of CPUs that its pods requested while they ran
	GPU      float64 // likewise
	Pods     []Pod   // of a job of many only the first ones
	Text     string
}

// Pod is what a person says of a pod's life. Times are seconds since the life's first version, in
// tenths; negative: not while it was recorded.
type Pod struct {
	Name             string
	Made, Runs, Ends float64 // of one that was gone before it ended: when it was
	End              string  // its phase; its containers' reason and exit code, and who ended it
	Restarts         int64
}

// resources are the kinds of the folders' jobs.
var resources = map[string]string{
	"Job": "jobs.batch", "KueueJob": "jobs.batch", "JobSet": "jobsets.jobset.x-k8s.io", "KueueJobSet": "jobsets.jobset.x-k8s.io",
	"TrainJob": "trainjobs.trainer.kubeflow.org", "KueueTrainJob": "trainjobs.trainer.kubeflow.org", "RayJob": "rayjobs.ray.io",
	"KueueRayJob": "rayjobs.ray.io", "Workflow": "workflows.argoproj.io", "VolcanoJob": "jobs.batch.volcano.sh",
	"TaskRun": "taskruns.tekton.dev", "PipelineRun": "pipelineruns.tekton.dev", "MPIJob": "mpijobs.kubeflow.org",
	"PyTorchJob": "pytorchjobs.kubeflow.org",
}

// All are the recorded lives, by folder and scenario. They are read once, and shared.
var All = sync.OnceValues(func() ([]*Life, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	lives := map[string]*Life{}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		folder, file, ok := strings.Cut(header.Name, "/")
		if header.Typeflag != tar.TypeReg || !ok {
			continue
		}
		scenario, kind, _ := strings.Cut(file, ".")
		life := lives[folder+"/"+scenario]
		if life == nil {
			life = &Life{Folder: folder, Scenario: scenario, Resource: resources[folder]}
			lives[life.Name()] = life
		}
		if err := life.read(kind, files); err != nil {
			return nil, fmt.Errorf("%s: %w", header.Name, err)
		}
	}
	var all []*Life
	for _, name := range slices.Sorted(maps.Keys(lives)) {
		all = append(all, lives[name])
	}
	return all, nil
})

func (l *Life) read(kind string, from io.Reader) (err error) {
	switch kind {
	case "jsonl":
		l.Jobs, err = readEvents(from)
	case "pods.jsonl":
		l.Pods, err = readEvents(from)
	case "workload.jsonl":
		l.Workloads, err = readEvents(from)
	case "podgroup.jsonl":
		l.PodGroups, err = readEvents(from)
	default:
		var text []byte
		if text, err = io.ReadAll(from); err == nil {
			l.Truth, err = readTruth(string(text))
		}
	}
	return err
}

func readEvents(from io.Reader) (all []Event, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, lines.Err()
}

var (
	states   = regexp.MustCompile(`(?m)^States: (.*?)\.$`)
	attempts = regexp.MustCompile(`(?m)^Attempts of the job as a whole: (\d+)`)
	failures = regexp.MustCompile(`(?m)^Pod failures: (\d+)`)
	hours    = regexp.MustCompile(`(?m)^Hours: .*?: ([\d.]+) CPU·s .*?, ([\d.]+) GPU·s`)
	pods     = regexp.MustCompile(`(?m)^- pod (\S+): made ([\d.]+), runs ([\d.]+|-), ends ([\d.]+|-), gone ([\d.]+|-);(.*?)(?: restarts (\d+))?$`)
)

func readTruth(text string) (t Truth, err error) {
	t.Text = text
	told, tries, failed, used := states.FindStringSubmatch(text), attempts.FindStringSubmatch(text), failures.FindStringSubmatch(text), hours.FindStringSubmatch(text)
	if told == nil || tries == nil || failed == nil || used == nil {
		return t, errors.New("it does not say what happened")
	}
	t.States = strings.Split(told[1], " → ")
	t.Attempts, _ = strconv.Atoi(tries[1])
	t.Failures, _ = strconv.Atoi(failed[1])
	t.CPU, _ = strconv.ParseFloat(used[1], 64)
	t.GPU, _ = strconv.ParseFloat(used[2], 64)
	seconds := func(text string) float64 {
		if at, err := strconv.ParseFloat(text, 64); err == nil {
			return at
		}
		return -1
	}
	for _, p := range pods.FindAllStringSubmatch(text, -1) {
		pod := Pod{Name: p[1], Made: seconds(p[2]), Runs: seconds(p[3]), Ends: seconds(p[4]), End: strings.TrimSpace(p[6])}
		if pod.Ends < 0 {
			pod.Ends = seconds(p[5])
		}
		pod.Restarts, _ = strconv.ParseInt(p[7], 10, 64)
		t.Pods = append(t.Pods, pod)
	}
	return t, nil
}
