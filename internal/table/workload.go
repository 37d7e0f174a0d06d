package table

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubecast/kubecast/internal/cluster"
)

func printJob(r *row, o *cluster.Object) {
	p := partsOf(o)
	succeeded := p.status.Get("succeeded").Int()
	completions := strconv.FormatInt(succeeded, 10) + "/"
	wanted, parallelism := p.spec.Get("completions"), p.spec.Get("parallelism").Int()
	switch {
	case isSet(wanted):
		completions += strconv.FormatInt(wanted.Int(), 10)
	case parallelism > 1:
		completions += "1 of " + strconv.FormatInt(parallelism, 10)
	default:
		completions += "1"
	}
	took := ""
	if began, ended := moment(p.status.Get("startTime")), moment(p.status.Get("completionTime")); !began.IsZero() {
		if ended.IsZero() {
			ended = r.now
		}
		took = duration.HumanDuration(ended.Sub(began))
	}
	r.name(o)
	r.text(jobStatus(p))
	r.text(completions)
	r.text(took)
	r.age(o)
	r.template(p.spec)
	r.text(selector(p.spec.Get("selector")))
}

// jobStatus is the text for the condition that says most about a job.
func jobStatus(p parts) string {
	conditions := p.status.Get("conditions")
	is := func(condition string) bool { return conditionStatus(conditions, condition) == "True" }
	for _, ended := range []string{"Complete", "Failed"} {
		if is(ended) {
			return ended
		}
	}
	if p.metadata.Get("deletionTimestamp").Exists() {
		return "Terminating"
	}
	for _, condition := range []string{"Suspended", "FailureTarget", "SuccessCriteriaMet"} {
		if is(condition) {
			return condition
		}
	}
	return "Running"
}

func printDeployment(r *row, o *cluster.Object) {
	p := partsOf(o)
	r.name(o)
	r.text(ratio(int(p.status.Get("readyReplicas").Int()), int(p.spec.Get("replicas").Int())))
	r.number(p.status.Get("updatedReplicas").Int())
	r.number(p.status.Get("availableReplicas").Int())
	r.age(o)
	r.template(p.spec)
	r.text(plainSelector(p.spec.Get("selector")))
}

func printReplicaSet(r *row, o *cluster.Object) {
	p := partsOf(o)
	r.name(o)
	r.number(p.spec.Get("replicas").Int())
	r.number(p.status.Get("replicas").Int())
	r.number(p.status.Get("readyReplicas").Int())
	r.age(o)
	r.template(p.spec)
	r.text(selector(p.spec.Get("selector")))
}

func printStatefulSet(r *row, o *cluster.Object) {
	p := partsOf(o)
	r.name(o)
	r.text(ratio(int(p.status.Get("readyReplicas").Int()), int(p.spec.Get("replicas").Int())))
	r.age(o)
	r.template(p.spec)
}

func printDaemonSet(r *row, o *cluster.Object) {
	p := partsOf(o)
	r.name(o)
	for _, n := range []string{"desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable"} {
		r.number(p.status.Get(n).Int())
	}
	r.text(labels.FormatLabels(texts(p.spec.Get("template.spec.nodeSelector"))))
	r.age(o)
	r.template(p.spec)
	r.text(selector(p.spec.Get("selector")))
}

// template appends the names and the images of the containers in a workload's template.
func (r *row) template(spec gjson.Result) {
	containers := spec.Get("template.spec.containers")
	r.text(ofContainers(containers, "name"))
	r.text(ofContainers(containers, "image"))
}

// ofContainers is one member of each container.
func ofContainers(containers gjson.Result, member string) string {
	var all []string
	each(containers, func(c gjson.Result) bool {
		all = append(all, c.Get(member).Str)
		return true
	})
	return strings.Join(all, ",")
}

// plainSelector is a label selector as text. It is "" both if it selects everything and if it selects
// nothing.
func plainSelector(value gjson.Result) string {
	var s *metav1.LabelSelector
	if raw := value.Raw; raw != "" && json.Unmarshal([]byte(raw), &s) != nil {
		return invalid
	}
	parsed, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return invalid
	}
	return parsed.String()
}

// selector is a label selector as text, as a column of a built-in kind has it.
func selector(value gjson.Result) string {
	text := plainSelector(value)
	if text == invalid {
		return "<error>"
	}
	return or(text, none)
}

// texts returns an object of strings as a map; nil if it has no members.
func texts(object gjson.Result) (m map[string]string) {
	if !object.IsObject() {
		return nil
	}
	object.ForEach(func(key, value gjson.Result) bool {
		if m == nil {
			m = map[string]string{}
		}
		m[key.Str] = value.Str
		return true
	})
	return m
}
