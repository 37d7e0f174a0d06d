package table

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubecast/kubecast/internal/cluster"
)

func printService(r *row, o *cluster.Object) {
	p := partsOf(o)
	r.name(o)
	r.text(p.spec.Get("type").Str)
	clusterIP := p.spec.Get("clusterIPs.0")
	if isSet(clusterIP) {
		r.text(clusterIP.Str)
	} else {
		r.text(none)
	}
	r.text(externalIP(p))
	r.text(or(servicePorts(p.spec), none))
	r.age(o)
	r.text(labels.FormatLabels(texts(p.spec.Get("selector"))))
}

// externalIP lists the addresses at which a service can be reached from outside of the cluster.
func externalIP(p parts) string {
	var external []string
	each(p.spec.Get("externalIPs"), func(ip gjson.Result) bool {
		external = append(external, ip.Str)
		return true
	})
	switch p.spec.Get("type").Str {
	case "ClusterIP", "NodePort":
		return or(strings.Join(external, ","), none)
	case "LoadBalancer":
		return or(strings.Join(append(ingresses(p.status), external...), ","), "<pending>")
	case "ExternalName":
		return p.spec.Get("externalName").Str
	}
	return unknown
}

// ingresses are a load balancer's addresses.
func ingresses(status gjson.Result) (found []string) {
	each(status.Get("loadBalancer.ingress"), func(i gjson.Result) bool {
		if at := or(i.Get("ip").Str, i.Get("hostname").Str); at != "" {
			found = append(found, at)
		}
		return true
	})
	slices.Sort(found)
	return slices.Compact(found)
}

func servicePorts(spec gjson.Result) string {
	var ports []string
	each(spec.Get("ports"), func(port gjson.Result) bool {
		text := strconv.FormatInt(port.Get("port").Int(), 10)
		if node := port.Get("nodePort").Int(); node > 0 {
			text += ":" + strconv.FormatInt(node, 10)
		}
		ports = append(ports, text+"/"+port.Get("protocol").Str)
		return true
	})
	return strings.Join(ports, ",")
}
