package table

import (
	"strings"

	"github.com/tidwall/gjson"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubecast/kubecast/internal/cluster"
)

func printNamespace(r *row, o *cluster.Object) {
	r.name(o)
	r.text(phase(o))
	r.age(o)
}

func printConfigMap(r *row, o *cluster.Object) {
	r.name(o)
	r.number(count(o.Path("data")) + count(o.Path("binaryData")))
	r.age(o)
}

func printClaim(r *row, o *cluster.Object) {
	p := partsOf(o)
	volume, capacity, modes := p.spec.Get("volumeName").Str, "", ""
	if volume != "" {
		capacity, modes = quantity(p.status.Get("capacity.storage").Str), accessModes(p.status.Get("accessModes"))
	}
	class := p.spec.Get("storageClassName").Str
	if old := p.metadata.Get("annotations." + gjson.Escape(corev1.BetaStorageClassAnnotation)); old.Exists() {
		class = old.Str
	}
	r.name(o)
	r.text(volumeStatus(o))
	r.text(volume)
	r.text(capacity)
	r.text(modes)
	r.text(class)
	r.text(orUnset(p.spec.Get("volumeAttributesClassName")))
	r.age(o)
	r.text(orUnset(p.spec.Get("volumeMode")))
}

// volumeStatus is that of a PersistentVolume, or of a claim.
func volumeStatus(o *cluster.Object) string {
	if o.Path("metadata.deletionTimestamp").Exists() {
		return "Terminating"
	}
	return phase(o)
}

func phase(o *cluster.Object) string { return o.Path("status.phase").Str }

func orUnset(value gjson.Result) string {
	if !isSet(value) {
		return unset
	}
	return value.Str
}

// quantity returns a quantity in its canonical form; "" counts as 0.
func quantity(text string) string {
	q, err := resource.ParseQuantity(or(text, "0"))
	if err != nil {
		return text
	}
	return q.String()
}

// accessModes returns the abbreviated access modes, in the order of the API server's printer.
func accessModes(modes gjson.Result) string {
	has := map[string]bool{}
	each(modes, func(mode gjson.Result) bool {
		has[mode.Str] = true
		return true
	})
	var short []string
	for _, m := range [][2]string{
		{"ReadWriteOnce", "RWO"}, {"ReadOnlyMany", "ROX"}, {"ReadWriteMany", "RWX"}, {"ReadWriteOncePod", "RWOP"},
	} {
		if has[m[0]] {
			short = append(short, m[1])
		}
	}
	return strings.Join(short, ",")
}
