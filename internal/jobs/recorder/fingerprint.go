package recorder

import (
	"hash/maphash"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
)

// Most of what happens to a pod says nothing of its life: a new address, a probe that flaps. So
// what a pod says is read only if it may be something else than before, which a fingerprint of 8
// bytes tells for a fraction of the cost.

var fingerprints = maphash.MakeSeed()

// saysNothing are parts of a pod's status that package pods does not read, and of its conditions
// those that say nothing new by themselves: of an end, Ready counts only with the phase that says
// so.
var (
	saysNothing              = map[string]bool{"podIP": true, "podIPs": true, "hostIP": true, "hostIPs": true, "observedGeneration": true}
	conditionsThatSayNothing = map[string]bool{"Ready": true, "ContainersReady": true, "Initialized": true, "PodReadyToStartContainers": true}
)

// fingerprint is the same of two versions of a pod if they say the same of its life, and otherwise,
// but for one in 2^64, if that is not known. It is never 0.
func fingerprint(o *cluster.Object) uint64 {
	var h maphash.Hash
	h.SetSeed(fingerprints)
	write := func(key, value gjson.Result) {
		_, _ = h.WriteString(key.Raw)
		_, _ = h.WriteString(value.Raw)
		_ = h.WriteByte(0)
	}
	gjson.Parse(o.JSON()).ForEach(func(key, part gjson.Result) bool {
		switch key.Str {
		case "spec":
			write(key, part)
		case "metadata":
			part.ForEach(func(key, value gjson.Result) bool {
				switch key.Str {
				case "resourceVersion", "managedFields", "generation":
				default:
					write(key, value)
				}
				return true
			})
		case "status":
			part.ForEach(func(key, value gjson.Result) bool {
				switch {
				case saysNothing[key.Str]:
				case key.Str == "conditions":
					value.ForEach(func(_, c gjson.Result) bool {
						if !conditionsThatSayNothing[c.Get("type").Str] {
							write(key, c)
						}
						return true
					})
				default:
					write(key, value)
				}
				return true
			})
		}
		return true
	})
	return max(h.Sum64(), 1)
}
