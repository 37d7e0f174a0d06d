package table

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubecast/kubecast/internal/cluster"
)

// These are what the cells of listed kinds print.

func named() cell {
	return cell{nameColumn(), func(r *row, o *cluster.Object) { r.name(o) }}
}

func aged() cell {
	return cell{ageColumn(), func(r *row, o *cluster.Object) { r.age(o) }}
}

// text prints a string.
func text(path string) func(*row, *cluster.Object) { return textOr(path, "") }

// textOr prints a string or a number, or something else if there is none.
func textOr(path, otherwise string) func(*row, *cluster.Object) {
	return func(r *row, o *cluster.Object) {
		if value := o.Path(path); isSet(value) {
			r.text(value.String())
		} else {
			r.text(otherwise)
		}
	}
}

// textOrNone is textOr for a string that is as good as none if it is empty.
func textOrNone(path string) func(*row, *cluster.Object) {
	return func(r *row, o *cluster.Object) { r.text(or(o.Path(path).Str, none)) }
}

func number(path string) func(*row, *cluster.Object) {
	return func(r *row, o *cluster.Object) { r.number(o.Path(path).Int()) }
}

func boolean(path string, otherwise bool) func(*row, *cluster.Object) {
	return func(r *row, o *cluster.Object) {
		value := otherwise
		if found := o.Path(path); isSet(found) {
			value = found.Bool()
		}
		r.raw(strconv.FormatBool(value))
	}
}

// trueOrFalse prints a boolean as a word.
func trueOrFalse(path string) func(*row, *cluster.Object) {
	return func(r *row, o *cluster.Object) {
		switch value := o.Path(path); {
		case !isSet(value):
			r.text(unset)
		case value.Bool():
			r.text("True")
		default:
			r.text("False")
		}
	}
}

func ago(path, otherwise string) func(*row, *cluster.Object) {
	return func(r *row, o *cluster.Object) {
		if value := o.Path(path); isSet(value) {
			r.text(r.since(moment(value)))
		} else {
			r.text(otherwise)
		}
	}
}

// within prints a number that is 0 if it is left out of an object, and none without the object.
func within(object, member string) func(*row, *cluster.Object) {
	return func(r *row, o *cluster.Object) {
		if found := o.Path(object); isSet(found) {
			r.number(found.Get(member).Int())
		} else {
			r.text(none)
		}
	}
}

// pairs prints a map as labels are printed.
func pairs(path string) func(*row, *cluster.Object) {
	return func(r *row, o *cluster.Object) { r.text(labels.FormatLabels(texts(o.Path(path)))) }
}

func containerNames(template string) func(*row, *cluster.Object) {
	return func(r *row, o *cluster.Object) { r.text(ofContainers(o.Path(template+".spec.containers"), "name")) }
}

func containerImages(template string) func(*row, *cluster.Object) {
	return func(r *row, o *cluster.Object) { r.text(ofContainers(o.Path(template+".spec.containers"), "image")) }
}

// strs returns the strings of an array.
func strs(array gjson.Result) (all []string) {
	each(array, func(s gjson.Result) bool {
		all = append(all, s.Str)
		return true
	})
	return all
}

func annotation(o *cluster.Object, name string) gjson.Result {
	return o.Path("metadata.annotations." + gjson.Escape(name))
}

// defaultName prints a name, and whether an annotation makes it the default one.
func defaultName(annotations ...string) func(*row, *cluster.Object) {
	return func(r *row, o *cluster.Object) {
		name := o.GetName()
		if slices.ContainsFunc(annotations, func(a string) bool { return annotation(o, a).Str == "true" }) {
			name += " (default)"
		}
		r.text(name)
	}
}

// firstThree joins three texts, and says how many more there are.
func firstThree(all []string) string {
	if len(all) == 0 {
		return unset
	}
	if len(all) > 3 {
		return fmt.Sprintf("%s + %d more...", strings.Join(all[:3], ","), len(all)-3)
	}
	return strings.Join(all, ",")
}

// hosts prints the hosts of an ingress: none of them is a number too many if all have names.
func hosts(r *row, o *cluster.Object) {
	var found []string
	rules, more := 0, false
	each(o.Path("spec.rules"), func(rule gjson.Result) bool {
		rules++
		more = more || len(found) == 3
		if host := rule.Get("host").Str; !more && host != "" {
			found = append(found, host)
		}
		return true
	})
	switch {
	case len(found) == 0:
		r.text("*")
	case more:
		r.text(fmt.Sprintf("%s + %d more...", strings.Join(found, ","), rules-3))
	default:
		r.text(strings.Join(found, ","))
	}
}

// endpoints prints the first three addresses, with each port of its subset.
func endpoints(r *row, o *cluster.Object) {
	subsets := o.Path("subsets")
	if subsets.Get("#").Int() == 0 {
		r.text(none)
		return
	}
	var all []string
	each(subsets, func(subset gjson.Result) bool {
		addresses := strs(subset.Get("addresses.#.ip"))
		ports := subset.Get("ports")
		if ports.Get("#").Int() == 0 {
			all = append(all, addresses...)
			return true
		}
		each(ports, func(port gjson.Result) bool {
			for _, address := range addresses {
				all = append(all, net.JoinHostPort(address, strconv.FormatInt(port.Get("port").Int(), 10)))
			}
			return true
		})
		return true
	})
	if len(all) == 0 {
		r.text("")
		return
	}
	r.text(firstThree(all))
}

func slicePorts(r *row, o *cluster.Object) {
	var ports []string
	each(o.Path("ports"), func(port gjson.Result) bool {
		number, name := port.Get("port"), port.Get("name")
		switch {
		case isSet(number):
			ports = append(ports, strconv.FormatInt(number.Int(), 10))
		case isSet(name):
			ports = append(ports, name.Str)
		default:
			ports = append(ports, "*")
		}
		return true
	})
	r.text(firstThree(ports))
}

func sliceEndpoints(r *row, o *cluster.Object) {
	var addresses []string
	each(o.Path("endpoints"), func(endpoint gjson.Result) bool {
		addresses = append(addresses, strs(endpoint.Get("addresses"))...)
		return true
	})
	r.text(firstThree(addresses))
}

func signingCondition(r *row, o *cluster.Object) {
	has := map[string]bool{}
	each(o.Path("status.conditions"), func(c gjson.Result) bool {
		has[c.Get("type").Str] = true
		return true
	})
	status := "Pending"
	switch {
	case has["Denied"]:
		status = "Denied"
	case has["Approved"]:
		status = "Approved"
	}
	if has["Failed"] {
		status += ",Failed"
	}
	if o.Path("status.certificate").Str != "" {
		status += ",Issued"
	}
	r.text(status)
}

// lastOf is the last condition's type among some, or what is said without any.
func lastOf(o *cluster.Object, otherwise string, kinds ...string) string {
	each(o.Path("status.conditions"), func(c gjson.Result) bool {
		if kind := c.Get("type").Str; slices.Contains(kinds, kind) {
			otherwise = kind
		}
		return true
	})
	return otherwise
}

func controllerOf(r *row, o *cluster.Object) {
	name := none
	each(o.Path("metadata.ownerReferences"), func(owner gjson.Result) bool {
		if !owner.Get("controller").Bool() {
			return true
		}
		name = owner.Get("name").Str
		if gv, err := schema.ParseGroupVersion(owner.Get("apiVersion").Str); err == nil {
			name = strings.ToLower(gv.WithKind(owner.Get("kind").Str).GroupKind().String()) + "/" + name
		}
		return false
	})
	r.text(name)
}

func serviceAvailable(r *row, o *cluster.Object) {
	status := "Unknown"
	each(o.Path("status.conditions"), func(c gjson.Result) bool {
		if c.Get("type").Str != "Available" {
			return true
		}
		status = c.Get("status").Str
		if reason := c.Get("reason").Str; status != "True" && reason != "" {
			status += " (" + reason + ")"
		}
		return false
	})
	r.text(status)
}

// quota prints what is used of what may be used: of limits, or of everything else.
func quota(limits bool) func(*row, *cluster.Object) {
	return func(r *row, o *cluster.Object) {
		hard, used := texts(o.Path("status.hard")), texts(o.Path("status.used"))
		var names []string
		for name := range hard {
			if strings.HasPrefix(name, "limits.") == limits {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for i, name := range names {
			names[i] = fmt.Sprintf("%s: %s/%s", name, quantity(used[name]), quantity(hard[name]))
		}
		r.text(strings.Join(names, ", "))
	}
}

func claimState(r *row, o *cluster.Object) {
	var states []string
	deleted := o.Path("metadata.deletionTimestamp").Exists()
	if deleted {
		states = append(states, "deleted")
	}
	switch {
	case isSet(o.Path("status.allocation")):
		states = append(states, "allocated")
		if o.Path("status.reservedFor.#").Int() > 0 {
			states = append(states, "reserved")
		}
	case !deleted:
		states = append(states, "pending")
	}
	r.text(strings.Join(states, ","))
}
