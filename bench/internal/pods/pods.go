//go:build linux

// Package pods makes pods for benchmarks that are as varied as real ones.
package pods

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubecast/kubecast/bench/internal/apiserver"
	"github.com/kubecast/kubecast/bench/internal/mark"
)

const (
	nodes = 400
	teams = 20
	apps  = 240 // owners' templates; each has its own image, options and number of pods
)

// Kind are the pods of a cluster, as varied as real ones are, since how well they compress is what
// is measured: names, uids, nodes, addresses, image and container ids, times and conditions are
// each pod's own, and the rest is its owner's template's.
func Kind(count int) apiserver.Kind {
	return apiserver.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Objects: count, Render: Pod}
}

// TeamOf is the namespace of a pod.
func TeamOf(number int) string { return fmt.Sprintf("team-%02d", appOf(number)%teams) }

// appOf is the template of a pod: a few have many pods, and many have a few.
func appOf(number int) int {
	random := rand.New(rand.NewPCG(uint64(number), 1))
	return int(float64(apps) * random.Float64() * random.Float64())
}

var words = []string{"ranker", "ingest", "checkout", "billing", "search", "catalog", "gateway", "notifier", "trainer", "encoder", "mailer", "session", "indexer", "planner", "profiles"}

// Pod renders the pod of a number as it is after an event. What an event changes is what a kubelet
// does: a condition and its time, a count of restarts, and the mark.
func Pod(number int, version uint64, m mark.Mark) []byte {
	random := rand.New(rand.NewPCG(uint64(number), 2))
	app := appOf(number)
	created := metav1.NewTime(time.Unix(1_790_000_000-int64(random.IntN(60*86400)), 0).UTC())
	p := templates[app%len(templates)](app, number, random)
	p.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
	p.Namespace, p.UID, p.ResourceVersion, p.CreationTimestamp = TeamOf(number), uid(random), fmt.Sprint(version), created
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations["kubecast.io/bench"] = string(m.Append(nil))
	finish(p, created.Time, version, random)
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // a Pod can be encoded
	}
	return text
}

func hex(random *rand.Rand, digits int) string {
	text := make([]byte, digits)
	for i := range text {
		text[i] = "0123456789abcdef"[random.IntN(16)]
	}
	return string(text)
}

func uid(random *rand.Rand) types.UID {
	text := hex(random, 30)
	return types.UID(text[:8] + "-" + text[8:12] + "-4" + text[12:15] + "-a" + text[15:18] + "-" + text[18:])
}

func suffix(random *rand.Rand, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = "bcdfghjklmnpqrstvwxz2456789"[random.IntN(27)]
	}
	return string(text)
}

// ofApp is what all pods of a template have alike.
func ofApp(app int) (random *rand.Rand, name, image string) {
	random = rand.New(rand.NewPCG(uint64(app), 3))
	name = fmt.Sprintf("%s-%s", words[random.IntN(len(words))], words[random.IntN(len(words))])
	return random, name, fmt.Sprintf("registry.example.org/team-%02d/%s:%d.%d.%d-%s", app%teams, name, random.IntN(9), random.IntN(40), random.IntN(20), hex(random, 7))
}

var templates = []func(app, number int, random *rand.Rand) *corev1.Pod{service, training, database, service, agent, service, nightly}

func meta(name, app string, owner metav1.OwnerReference, labels map[string]string) metav1.ObjectMeta {
	yes := true
	owner.Controller, owner.BlockOwnerDeletion = &yes, &yes
	labels["app.kubernetes.io/name"] = app
	return metav1.ObjectMeta{Name: name, Labels: labels, OwnerReferences: []metav1.OwnerReference{owner}}
}

// container is the main container of a template, with as many options as it happens to have.
func container(random *rand.Rand, name, image string) corev1.Container {
	c := corev1.Container{
		Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent, TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(50*(1+random.IntN(40))), resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(int64(64<<20*(1+random.IntN(64))), resource.BinarySI)},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(int64(128<<20*(1+random.IntN(64))), resource.BinarySI)},
		},
	}
	for range 2 + random.IntN(8) {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("%s_%s", words[random.IntN(len(words))], hex(random, 2)), Value: fmt.Sprintf("http://%s.%s.svc:%d", words[random.IntN(len(words))], words[random.IntN(len(words))], 8000+random.IntN(1000))})
	}
	return c
}

func service(app, _ int, random *rand.Rand) *corev1.Pod {
	of, name, image := ofApp(app)
	set := name + "-" + suffix(of, 10)
	p := &corev1.Pod{ObjectMeta: meta(set+"-"+suffix(random, 5), name, metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set, UID: uid(of)},
		map[string]string{"pod-template-hash": suffix(of, 10), "app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/instance": name + "-production"})}
	p.Annotations = map[string]string{"checksum/config": hex(of, 64), "prometheus.io/port": "9090", "prometheus.io/scrape": "true"}
	main := container(of, name, image)
	main.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}, {Name: "metrics", ContainerPort: 9090, Protocol: corev1.ProtocolTCP}}
	main.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromString("http"), Scheme: "HTTP"}}, PeriodSeconds: 5, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3}
	p.Spec.Containers = []corev1.Container{main}
	if of.IntN(3) == 0 {
		p.Spec.Containers = append(p.Spec.Containers, container(of, "proxy", "registry.example.org/mesh/proxy:1.29.3"))
	}
	p.Spec.RestartPolicy = corev1.RestartPolicyAlways
	return p
}

func training(app, number int, random *rand.Rand) *corev1.Pod {
	of, name, image := ofApp(app)
	job := fmt.Sprintf("%s-run-%04d", name, number%1500)
	p := &corev1.Pod{ObjectMeta: meta(fmt.Sprintf("%s-%d-%s", job, number%8, suffix(random, 5)), name, metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: job, UID: uid(rand.New(rand.NewPCG(uint64(number%1500), 5)))},
		map[string]string{"batch.kubernetes.io/job-name": job, "batch.kubernetes.io/job-completion-index": fmt.Sprint(number % 8), "kueue.x-k8s.io/queue-name": fmt.Sprintf("gpu-%d", app%5), "kubecast.io/owner": fmt.Sprintf("user-%03d", number%300)})}
	main := container(of, "worker", image)
	main.Command = []string{"torchrun", "--nnodes=8", fmt.Sprintf("--node-rank=%d", number%8), "train.py", fmt.Sprintf("--data=s3://datasets/%s/%s", name, hex(random, 12))}
	main.Resources.Limits["nvidia.com/gpu"] = resource.MustParse("8")
	p.Spec.Containers, p.Spec.RestartPolicy = []corev1.Container{main}, corev1.RestartPolicyNever
	p.Spec.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	return p
}

func database(app, number int, _ *rand.Rand) *corev1.Pod {
	of, name, image := ofApp(app)
	set := fmt.Sprintf("%s-db-%03d", name, number%700)
	p := &corev1.Pod{ObjectMeta: meta(fmt.Sprintf("%s-%d", set, number/700), name, metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: set, UID: uid(rand.New(rand.NewPCG(uint64(number%700), 6)))},
		map[string]string{"statefulset.kubernetes.io/pod-name": fmt.Sprintf("%s-%d", set, number/700), "controller-revision-hash": set + "-" + suffix(of, 10)})}
	main := container(of, "postgres", image)
	main.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/var/lib/postgresql"}}
	p.Spec.Containers, p.Spec.RestartPolicy = []corev1.Container{main}, corev1.RestartPolicyAlways
	p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + p.Name}}}}
	return p
}

func agent(app, number int, random *rand.Rand) *corev1.Pod {
	of, name, image := ofApp(app)
	p := &corev1.Pod{ObjectMeta: meta(name+"-agent-"+suffix(random, 5), name, metav1.OwnerReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: name + "-agent", UID: uid(of)},
		map[string]string{"controller-revision-hash": suffix(of, 10), "pod-template-generation": fmt.Sprint(of.IntN(30))})}
	main := container(of, "agent", image)
	main.VolumeMounts = []corev1.VolumeMount{{Name: "root", MountPath: "/host", ReadOnly: true}}
	p.Spec.Containers, p.Spec.RestartPolicy, p.Spec.HostNetwork = []corev1.Container{main}, corev1.RestartPolicyAlways, true
	p.Spec.Volumes = []corev1.Volume{{Name: "root", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
	return p
}

func nightly(app, number int, random *rand.Rand) *corev1.Pod {
	of, name, image := ofApp(app)
	job := fmt.Sprintf("%s-nightly-%d", name, 29_800_000+number%90*1440)
	p := &corev1.Pod{ObjectMeta: meta(job+"-"+suffix(random, 5), name, metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: job, UID: uid(rand.New(rand.NewPCG(uint64(number%90), uint64(app))))},
		map[string]string{"batch.kubernetes.io/job-name": job})}
	p.Spec.Containers, p.Spec.RestartPolicy = []corev1.Container{container(of, "task", image)}, corev1.RestartPolicyOnFailure
	return p
}

// finish adds what the API server, the scheduler and the kubelet do.
func finish(p *corev1.Pod, created time.Time, version uint64, random *rand.Rand) {
	seconds, priority := int64(300), int32(0)
	node := random.IntN(nodes)
	p.Spec.NodeName = fmt.Sprintf("node-%03d.zone-%c.example.org", node, 'a'+rune(node%3))
	p.Spec.ServiceAccountName, p.Spec.SchedulerName, p.Spec.DNSPolicy, p.Spec.Priority = "default", "default-scheduler", corev1.DNSClusterFirst, &priority
	p.Spec.TerminationGracePeriodSeconds = new(int64)
	*p.Spec.TerminationGracePeriodSeconds = 30
	for _, key := range []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds})
	}
	token := "kube-api-access-" + suffix(random, 5)
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: token, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: &seconds, Path: "token"}}}}}})
	at := func(after time.Duration) metav1.Time { return metav1.NewTime(created.Add(after).Truncate(time.Second)) }
	started := at(time.Duration(random.IntN(20)) * time.Second)
	ready := at(time.Duration(20+random.IntN(100)) * time.Second)
	var restarts int32
	if random.IntN(6) == 0 {
		restarts = int32(random.IntN(30))
	}
	changes := version - apiserver.FirstVersion
	if changes > 0 {
		restarts += int32(changes % 1000)
		ready = metav1.NewTime(time.Unix(1_790_000_000+int64(changes), 0).UTC())
	}
	p.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: fmt.Sprintf("10.0.%d.%d", node/250, node%250), PodIP: fmt.Sprintf("10.%d.%d.%d", 64+random.IntN(64), random.IntN(256), random.IntN(256)),
		StartTime: &started, QOSClass: corev1.PodQOSBurstable,
	}
	p.Status.PodIPs = []corev1.PodIP{{IP: p.Status.PodIP}}
	phase := random.IntN(20)
	switch {
	case p.Spec.RestartPolicy != corev1.RestartPolicyAlways && phase < 9:
		p.Status.Phase = corev1.PodSucceeded
	case phase == 19:
		p.Status.Phase = corev1.PodFailed
	}
	for _, c := range []corev1.PodConditionType{"PodReadyToStartContainers", corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		since := started
		if c == corev1.PodReady || c == corev1.ContainersReady {
			since = ready
		}
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: since})
	}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: token, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true})
		status := corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image + "@sha256:" + hex(rand.New(rand.NewPCG(uint64(len(c.Image)), uint64(c.Image[len(c.Image)-1]))), 64),
			ContainerID: "containerd://" + hex(random, 64), Ready: p.Status.Phase == corev1.PodRunning, RestartCount: restarts,
		}
		if status.Ready {
			status.State.Running = &corev1.ContainerStateRunning{StartedAt: ready}
		} else {
			status.State.Terminated = &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: started, FinishedAt: ready, ContainerID: status.ContainerID}
		}
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, status)
	}
}
