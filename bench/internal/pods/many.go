//go:build linux

package pods

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubecast/kubecast/bench/internal/apiserver"
	"github.com/kubecast/kubecast/bench/internal/mark"
)

// template is the text of a pod without what is each pod's own.
type template struct {
	before, afterName, afterNamespace, afterUID, afterVersion, afterMark []byte
	name, uid                                                            string
}

// Many returns a render for many pods in a number of namespaces, which costs a tenth of Pod's. The pods have their own
// names, uids, namespaces and marks; all else is that of one of some templates.
func Many(templates, namespaces int) apiserver.Render {
	all := make([]template, templates)
	for i := range all {
		all[i] = newTemplate(Pod(i, apiserver.FirstVersion, mark.Mark{}))
	}
	return func(number int, version uint64, m mark.Mark) []byte {
		t := &all[number%len(all)]
		b := make([]byte, 0, len(t.before)+len(t.afterName)+len(t.afterNamespace)+len(t.afterUID)+len(t.afterVersion)+len(t.afterMark)+256)
		b = append(b, t.before...)
		b = append(b, t.name...)
		b = append(b, '-')
		b = strconv.AppendInt(b, int64(number), 10)
		b = append(b, t.afterName...)
		b = append(b, NamespaceOf(number, namespaces)...)
		b = append(b, t.afterNamespace...)
		b = append(b, t.uid...)
		b = fmt.Appendf(b, "%012d", number)
		b = append(b, t.afterUID...)
		b = strconv.AppendUint(b, version, 10)
		b = append(b, t.afterVersion...)
		b = m.Append(b)
		return append(b, t.afterMark...)
	}
}

// NamespaceOf is the namespace of a pod of Many.
func NamespaceOf(number, namespaces int) string { return "team-" + strconv.Itoa(number%namespaces) }

func newTemplate(text []byte) (t template) {
	var p corev1.Pod
	if err := json.Unmarshal(text, &p); err != nil {
		panic(err) // Pod renders pods
	}
	cut := func(value string) (before []byte) {
		before, after, found := bytes.Cut(text, []byte(value))
		if !found {
			panic(fmt.Sprintf("a pod has no %s", value))
		}
		text = after
		return bytes.Clone(before)
	}
	// The members are in this order, and the first of each is the metadata's.
	t.before = append(cut(`"name":"`+p.Name+`"`), `"name":"`...)
	t.afterName = append([]byte(`"`), append(cut(`"namespace":"`+p.Namespace+`"`), `"namespace":"`...)...)
	t.afterNamespace = append([]byte(`"`), append(cut(`"uid":"`+string(p.UID)+`"`), `"uid":"`...)...)
	t.afterUID = append([]byte(`"`), append(cut(`"resourceVersion":"`+p.ResourceVersion+`"`), `"resourceVersion":"`...)...)
	t.afterVersion = append([]byte(`"`), cut(string(mark.Mark{}.Append(nil)))...)
	t.afterMark = text
	t.name, t.uid = p.Name, string(p.UID)[:24]
	return t
}
